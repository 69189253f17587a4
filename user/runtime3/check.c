// SPDX-License-Identifier: BSD-2-Clause
/*
 * The importer's verdict: which form a text has (a document or JSON lines), and what must hold across
 * its records. A single record is judged in record.c; json.c says why none of this is a library's.
 */
#include "runtime3/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "runtime3/event_ids.h"
#include "runtime3/json.h"
#include "runtime3/record.h"
#include "runtime3/text.h"

struct check {
	tmk_check_report_fn report;
	void *ctx;
	uint64_t max_reports;
	uint64_t violations;
	struct tmk_check_counts *counts;

	/*
	 * Where complaints belong. In a document, `line` begins at `line_at` and is the one of
	 * `line_known`; all three only move on.
	 */
	uint64_t line;
	const char *line_at, *line_known;

	struct tmk_json json;
	struct tmk_record record;
	struct tmk_event_ids ids;
	char *plain; /* an id without its escapes */
	size_t plain_cap;
	bool meta_seen;
};

/* --- complaints */

static void complain_text(void *ctx, const char *text)
{
	struct check *ck = ctx;

	if (ck->violations++ < ck->max_reports && ck->report)
		ck->report(ck->ctx, ck->line, text);
}

__attribute__((format(printf, 2, 3))) static void complain(struct check *ck, const char *fmt, ...)
{
	char text[256];
	va_list args;

	if (ck->violations < ck->max_reports) {
		va_start(args, fmt);
		vsnprintf(text, sizeof(text), fmt, args);
		va_end(args);
	} else {
		text[0] = '\0';
	}
	complain_text(ck, text);
}

/* Moves ck->line on to the line of `at`; what was passed is not gone back to. */
static void line_move(struct check *ck, const char *at)
{
	const char *p = ck->line_known;

	while (p < at && (p = memchr(p, '\n', (size_t)(at - p)))) {
		p++;
		ck->line++;
		ck->line_at = p;
	}
	if (ck->line_known < at)
		ck->line_known = at;
}

/* JSON that is none. `begin` is where byte 1 of the line is. */
static void complain_json(struct check *ck, const char *begin)
{
	complain(ck, "not JSON at byte %zu of the line: %s", (size_t)(ck->json.p - begin) + 1,
		 ck->json.why);
}

static void complain_utf8(struct check *ck, size_t at)
{
	complain(ck, "not UTF-8 at byte %zu of the line, and the importer reads only UTF-8",
		 at + 1);
}

/* --- what holds across records */

static int plain_reserve(struct check *ck, size_t len)
{
	char *plain;

	if (len <= ck->plain_cap)
		return 0;
	plain = realloc(ck->plain, len);
	if (!plain)
		return -ENOMEM;
	ck->plain = plain;
	ck->plain_cap = len;
	return 0;
}

static int event_id_check(struct check *ck, const struct tmk_json_value *id)
{
	char shown[TMK_EXCERPT];
	const char *text = id->text;
	size_t len = id->len;
	int err;

	if (id->escaped) {
		err = plain_reserve(ck, len);
		if (err)
			return err;
		len = tmk_json_unescape(id, ck->plain, ck->plain_cap);
		text = ck->plain;
	}
	if (!len) {
		complain(ck, "event_id: must not be empty");
		return 0;
	}
	err = tmk_event_ids_add(&ck->ids, text, len, !id->escaped);
	if (!err)
		complain(ck, "event_id: %s is used a second time", tmk_json_excerpt(id, shown));
	return err < 0 ? err : 0;
}

static void schema_check(struct check *ck, const struct tmk_record *r)
{
	static const char family[] = "candle-graph/runtime/";
	const struct tmk_json_value *v = &r->value[TMK_F_SCHEMA];
	char shown[TMK_EXCERPT], known[sizeof(family) + 1];

	if (!tmk_record_has(r, TMK_F_SCHEMA) || v->type != TMK_JSON_STRING)
		return;
	for (char version = '1'; version <= '3'; version++) {
		int n = snprintf(known, sizeof(known), "%s%c", family, version);

		if (tmk_json_equals(v, known, (size_t)n))
			return;
	}
	complain(ck, "schema: %s is not \"%s1\", \"%s2\" or \"%s3\"", tmk_json_excerpt(v, shown),
		 family, family, family);
}

static void event_count(struct tmk_check_counts *n, const struct tmk_record *r)
{
	switch (r->kind) {
	case TMK_RECORD_TENSOR:
		n->tensors++;
		break;
	case TMK_RECORD_VALUE:
		n->values++;
		break;
	case TMK_RECORD_GRADIENT:
		n->gradients++;
		break;
	case TMK_RECORD_EDGE_TIMING:
		n->edges++;
		break;
	case TMK_RECORD_OPERATION:
		if (tmk_record_has(r, TMK_F_CAPTURE))
			n->captures++;
		else if (tmk_record_has(r, TMK_F_WINDOW))
			n->windows++;
		else if (tmk_record_has(r, TMK_F_UNFINISHED))
			n->unfinished++;
		else
			n->operations++;
		break;
	default:
		break;
	}
}

/* An event that is well-formed JSON, in a line or in one of a document's arrays. */
static int event_check(struct check *ck, enum tmk_record_rules rules)
{
	const struct tmk_record *r = &ck->record;
	const struct tmk_json_value *id = tmk_record_event_id(r);

	tmk_record_judge(r, rules, complain_text, ck);
	event_count(ck->counts, r);
	return id ? event_id_check(ck, id) : 0;
}

/* --- JSON lines */

static void meta_check(struct check *ck)
{
	if (ck->meta_seen)
		complain(ck, "a second meta event: a file has one");
	ck->meta_seen = true;
	tmk_record_judge(&ck->record, TMK_RULES_LINE, complain_text, ck);
	schema_check(ck, &ck->record);
}

static void kind_complain(struct check *ck)
{
	const struct tmk_record *r = &ck->record;
	char shown[TMK_EXCERPT];

	if (!tmk_record_has(r, TMK_F_KIND))
		complain(ck, "kind: missing, and every line needs it");
	else
		complain(
			ck,
			"kind: %s is not meta, operation, edge_timing, tensor, value or gradient; the "
			"importer rejects a whole file for it",
			tmk_json_excerpt(&r->value[TMK_F_KIND], shown));
}

/* A line with something in it: `text` to `end`, trimmed; it begins at `begin`. */
static int line_parse(struct check *ck, const char *begin, const char *text, const char *end)
{
	struct tmk_record *r = &ck->record;
	bool is_record;
	int err;

	if (end - text >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		complain(ck, "begins with a byte order mark: save it without one");
		return 0;
	}
	tmk_json_set(&ck->json, text, (size_t)(end - text));
	err = tmk_record_read(&ck->json, TMK_RULES_LINE, 0, r, &is_record);
	if (!err)
		err = tmk_json_end(&ck->json);
	if (err == -EBADMSG) {
		complain_json(ck, begin);
		return 0;
	}
	if (err)
		return err;
	ck->counts->has_capture = false;
	if (!is_record) {
		complain(ck, "not an event: a line must hold one JSON object");
		return 0;
	}
	if (r->repeated >> TMK_F_KIND & 1) {
		complain(ck, "kind: given twice");
		return 0;
	}
	if (r->kind == TMK_RECORD_UNKNOWN) {
		kind_complain(ck);
		return 0;
	}
	if (r->kind == TMK_RECORD_META) {
		meta_check(ck);
		return 0;
	}
	ck->counts->has_capture =
		r->kind == TMK_RECORD_OPERATION && tmk_record_has(r, TMK_F_CAPTURE);
	return event_check(ck, TMK_RULES_LINE);
}

static int lines_check(struct check *ck, const char *data, const char *end)
{
	const char *p = data;
	int err = 0;

	while (!err && p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *stop = newline ? newline : end, *text = p, *text_end = stop;
		size_t valid = tmk_text_valid(p, (size_t)(stop - p));

		ck->line = ++ck->counts->lines;
		if (valid < (size_t)(stop - p)) {
			complain_utf8(ck, valid);
		} else {
			tmk_text_trim(&text, &text_end);
			if (text < text_end)
				err = line_parse(ck, p, text, text_end);
		}
		p = newline ? newline + 1 : end;
	}
	ck->line = 0;
	if (!err && !ck->meta_seen)
		complain(
			ck,
			"has no meta line (\"kind\":\"meta\" with schema, entrypoint and profile)");
	return err;
}

/* --- a document */

static const struct {
	enum tmk_field field;
	enum tmk_record_kind kind;
} sections[] = {
	{ TMK_F_RUN, TMK_RECORD_RUN },
	{ TMK_F_TENSORS, TMK_RECORD_TENSOR },
	{ TMK_F_OPERATIONS, TMK_RECORD_OPERATION },
	{ TMK_F_GRADIENTS, TMK_RECORD_GRADIENT },
	{ TMK_F_VALUES, TMK_RECORD_VALUE },
	{ TMK_F_EDGE_TIMINGS, TMK_RECORD_EDGE_TIMING },
};

#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

struct part {
	struct tmk_json_value value;
	enum tmk_record_kind kind;
};

/* Reads and checks one element, and leaves ck->json behind it whatever it was. */
static int element_check(struct check *ck, enum tmk_record_rules rules, enum tmk_record_kind kind)
{
	struct tmk_json_value skipped;
	const char *begin;
	bool is_record;
	int err;

	tmk_json_peek(&ck->json);
	begin = ck->json.p;
	line_move(ck, begin);
	err = tmk_record_read(&ck->json, rules, kind, &ck->record, &is_record);
	if (err == -EBADMSG) {
		/* Its grammar is known to be good: what failed is a value that is not skipped. */
		complain_json(ck, ck->line_at);
		ck->json.p = begin;
		ck->json.lenient = true;
		ck->json.depth = 1;
		err = tmk_json_value(&ck->json, &skipped);
		ck->json.lenient = false;
		return err;
	}
	if (err)
		return err;
	if (!is_record)
		complain(ck, "not an object, where %s must be", tmk_record_phrase(kind));
	else if (kind == TMK_RECORD_RUN)
		tmk_record_judge(&ck->record, rules, complain_text, ck);
	else
		return event_check(ck, rules);
	return 0;
}

static int part_check(struct check *ck, enum tmk_record_rules rules, const struct part *part)
{
	struct tmk_json *j = &ck->json;
	bool first = true;
	int err, more;

	tmk_json_set(j, part->value.text, part->value.len);
	if (part->kind == TMK_RECORD_RUN)
		return element_check(ck, rules, part->kind);
	if (part->value.type != TMK_JSON_ARRAY)
		return 0;
	err = tmk_json_enter(j);
	while (!err) {
		more = tmk_json_next(j, first);
		if (more <= 0)
			return more;
		err = element_check(ck, rules, part->kind);
		first = false;
	}
	return err;
}

/* The parts in the order of the text, so that lines are reported and counted forwards. */
static size_t parts_collect(const struct tmk_record *r, struct part parts[N_SECTIONS])
{
	size_t n = 0;

	for (size_t i = 0; i < N_SECTIONS; i++) {
		struct part part = { r->value[sections[i].field], sections[i].kind };
		size_t at;

		if (!tmk_record_has(r, sections[i].field))
			continue;
		for (at = n++; at > 0 && parts[at - 1].value.text > part.value.text; at--)
			parts[at] = parts[at - 1];
		parts[at] = part;
	}
	return n;
}

/* The head of a document has been read into ck->record: judges it, then goes through its parts. */
static int document_check(struct check *ck, enum tmk_record_rules rules)
{
	struct part parts[N_SECTIONS];
	size_t n = parts_collect(&ck->record, parts);
	bool lone_event =
		tmk_record_has(&ck->record, TMK_F_KIND) && !tmk_record_has(&ck->record, TMK_F_RUN);
	int err = 0;

	if (lone_event)
		complain(ck,
			 "a file of one line is read as a document, and this is a JSONL event: it "
			 "needs a second line, or a \"run\"");
	tmk_record_judge(&ck->record, rules, complain_text, ck);
	schema_check(ck, &ck->record);
	for (size_t i = 0; !err && i < n; i++)
		err = part_check(ck, rules, &parts[i]);
	/* A part can only be bad JSON on its second reading when somebody writes to the text. */
	if (err == -EBADMSG) {
		complain(ck, "changed while it was being checked");
		err = 0;
	}
	return err;
}

static bool document_utf8_check(struct check *ck, const char *data, const char *end)
{
	size_t valid = tmk_text_valid(data, (size_t)(end - data));

	if (data + valid == end)
		return true;
	line_move(ck, data + valid);
	complain_utf8(ck, (size_t)(data + valid - ck->line_at));
	return false;
}

/* One line: typed straight from the text. */
static int line_document_check(struct check *ck, const char *begin, const char *end)
{
	bool is_record;
	int err;

	ck->counts->document = true;
	if (!document_utf8_check(ck, begin, end))
		return 0;
	tmk_json_set(&ck->json, begin, (size_t)(end - begin));
	err = tmk_record_read(&ck->json, TMK_RULES_TYPED, TMK_RECORD_DOCUMENT, &ck->record,
			      &is_record);
	if (!err)
		err = tmk_json_end(&ck->json);
	if (!err)
		return document_check(ck, TMK_RULES_TYPED);
	if (err == -EBADMSG) {
		complain_json(ck, ck->line_at);
		err = 0;
	}
	return err;
}

/*
 * Whether a text that is no JSON as a whole was meant as a document: as JSON lines it is sure to be
 * rejected, since its first line is no JSON either, but better explained as what it was meant to be.
 */
static bool meant_as_document(const struct check *ck, const char *begin)
{
	const char *newline = memchr(begin, '\n', (size_t)(ck->json.p - begin)), *end = newline;

	if (!newline)
		return false;
	tmk_text_trim(&begin, &end);
	return end - begin == 1 || !tmk_record_has(&ck->record, TMK_F_KIND);
}

/*
 * Many lines that begin with a brace: a document, if the whole is one JSON value with "schema" and
 * "run". Returns 1 when that settled it, 0 when the text must be read as JSON lines.
 */
static int tree_document_check(struct check *ck, const char *begin, const char *end)
{
	bool is_record, one_value, head;
	int err;

	tmk_json_set(&ck->json, begin, (size_t)(end - begin));
	err = tmk_record_read(&ck->json, TMK_RULES_TREE, TMK_RECORD_DOCUMENT, &ck->record,
			      &is_record);
	one_value = !err;
	if (!err)
		err = tmk_json_end(&ck->json);
	if (err && err != -EBADMSG)
		return err;
	head = !err && tmk_record_has(&ck->record, TMK_F_SCHEMA) &&
	       tmk_record_has(&ck->record, TMK_F_RUN);
	if (err && (one_value || !meant_as_document(ck, begin)))
		return 0;
	ck->counts->document = true;
	if (err) {
		line_move(ck, ck->json.p);
		complain_json(ck, ck->line_at);
		return 1;
	}
	if (!document_utf8_check(ck, begin, end))
		return 1;
	if (head) {
		err = document_check(ck, TMK_RULES_TREE);
		return err ? err : 1;
	}
	complain(ck,
		 "a JSON value over many lines must be a document with \"schema\" and \"run\"; in "
		 "JSON lines, each event is on one line");
	return 1;
}

/* --- */

static uint64_t lines_count(const char *p, const char *end)
{
	uint64_t n = 0;

	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));

		n++;
		p = newline ? newline + 1 : end;
	}
	return n;
}

static int text_check(struct check *ck, const char *data, const char *end)
{
	const char *begin = data, *stop = end;
	int err;

	tmk_text_trim(&begin, &stop);
	if (begin == stop) {
		complain(ck, data == end ? "is empty" : "holds nothing but white space");
		return 0;
	}
	if (*begin != '{')
		return lines_check(ck, data, end);
	ck->line = 1;
	ck->line_at = ck->line_known = data;
	line_move(ck, begin);
	if (!memchr(begin, '\n', (size_t)(stop - begin))) {
		err = line_document_check(ck, begin, stop);
	} else {
		err = tree_document_check(ck, begin, stop);
		if (!err)
			return lines_check(ck, data, end);
	}
	ck->counts->lines = lines_count(data, end);
	return err < 0 ? err : 0;
}

int64_t tmk_check_memory(const char *data, size_t len, tmk_check_report_fn report, void *ctx,
			 uint64_t max_reports, struct tmk_check_counts *counts)
{
	struct check *ck = calloc(1, sizeof(*ck));
	int64_t result;
	int err;

	memset(counts, 0, sizeof(*counts));
	if (!ck)
		return -ENOMEM;
	ck->report = report;
	ck->ctx = ctx;
	ck->max_reports = max_reports;
	ck->counts = counts;
	tmk_json_init(&ck->json);
	tmk_event_ids_init(&ck->ids);
	err = text_check(ck, data, data + len);
	result = err ? err : (int64_t)ck->violations;
	tmk_event_ids_free(&ck->ids);
	tmk_json_free(&ck->json);
	free(ck->plain);
	free(ck);
	return result;
}
