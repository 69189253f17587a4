// SPDX-License-Identifier: BSD-2-Clause
/*
 * Goes through the lines twice: first to collect what they say of streams, then to hold the window lines
 * against it. What a line can break by itself is in window_claims.c.
 */
#include "runtime3/check_windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime3/json.h"
#include "runtime3/record.h"
#include "runtime3/text.h"
#include "runtime3/window_claims.h"
#include "runtime3/window_facts.h"

struct line {
	const char *text;
	size_t len;
	uint64_t number;
};

struct windows_check {
	tmk_check_report_fn report;
	void *ctx;
	uint64_t max_reports;
	uint64_t violations;
	uint64_t line; /* where complaints belong */
	bool late;     /* the capture says that records came after their time was written */

	struct tmk_json json;
	struct tmk_record record;
	struct tmk_window_claims claims;
	struct tmk_window_facts facts;
	struct line *lines; /* of windows */
	size_t n_lines, lines_cap;
	uint64_t by_status[TMK_W_STATUSES + 1];
};

/* --- complaints */

static void complain_rule(void *ctx, const char *rule, const char *what)
{
	struct windows_check *wc = ctx;
	char text[320];

	if (wc->violations++ >= wc->max_reports || !wc->report)
		return;
	snprintf(text, sizeof(text), "window: %s: %s", rule, what);
	wc->report(wc->ctx, wc->line, text);
}

__attribute__((format(printf, 3, 4))) static void complain(struct windows_check *wc,
							   const char *rule, const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	complain_rule(wc, rule, what);
}

/* --- reading */

/* Into wc->record; false for what the importer does not take, which its verdict is about. */
static bool line_read(struct windows_check *wc, const struct line *line)
{
	const char *text = line->text, *end = text + line->len;
	bool is_record;

	if (tmk_text_valid(text, line->len) < line->len)
		return false;
	tmk_text_trim(&text, &end);
	if (text == end)
		return false;
	tmk_json_set(&wc->json, text, (size_t)(end - text));
	return !tmk_record_read(&wc->json, TMK_RULES_LINE, 0, &wc->record, &is_record) &&
	       !tmk_json_end(&wc->json) && is_record;
}

/* The first member of that name in an object. */
static bool member_get(const struct tmk_json_value *object, const char *name,
		       struct tmk_json_value *value)
{
	struct tmk_json_value key;
	struct tmk_json j;
	bool found = false, first = true;

	if (object->type != TMK_JSON_OBJECT)
		return false;
	tmk_json_init(&j);
	tmk_json_set(&j, object->text, object->len);
	if (!tmk_json_enter(&j)) {
		for (; !found && tmk_json_next(&j, first) > 0; first = false) {
			if (tmk_json_key(&j, &key) || tmk_json_value(&j, value))
				break;
			found = tmk_json_equals(&key, name, strlen(name));
		}
	}
	tmk_json_free(&j);
	return found;
}

static bool u64_get(const struct tmk_record *r, enum tmk_field f, uint64_t *n)
{
	if (!tmk_record_has(r, f) || r->value[f].type != TMK_JSON_UNSIGNED)
		return false;
	*n = tmk_json_u64(&r->value[f]);
	return true;
}

/* --- collecting */

static int op_collect(struct windows_check *wc)
{
	const struct tmk_record *r = &wc->record;
	struct tmk_facts_stream stream;
	uint64_t start_ns, duration_ns, end_ns;

	if (r->kind != TMK_RECORD_OPERATION || tmk_record_has(r, TMK_F_WINDOW) ||
	    tmk_record_has(r, TMK_F_UNFINISHED) || tmk_record_has(r, TMK_F_CAPTURE) ||
	    !u64_get(r, TMK_F_START_NS, &start_ns) ||
	    !u64_get(r, TMK_F_DURATION_NS, &duration_ns) || !tmk_record_stream(r, &stream))
		return 0;
	if (__builtin_add_overflow(start_ns, duration_ns, &end_ns))
		end_ns = UINT64_MAX;
	return tmk_window_facts_op(&wc->facts, &stream, end_ns);
}

static struct tmk_facts_span span_of(const struct tmk_window_claims *c, uint64_t no_end)
{
	return (struct tmk_facts_span){
		.start_ns = c->number[TMK_W_START_NS],
		.end_ns = tmk_window_claims_has(c, TMK_W_END_NS) ? c->number[TMK_W_END_NS] : no_end,
	};
}

static int window_collect(struct windows_check *wc, const struct line *line)
{
	const struct tmk_window_claims *c = &wc->claims;
	struct tmk_facts_span span = span_of(c, UINT64_MAX);

	if (wc->n_lines == wc->lines_cap) {
		size_t cap = wc->lines_cap ? wc->lines_cap * 2 : 64;
		struct line *lines = reallocarray(wc->lines, cap, sizeof(*lines));

		if (!lines)
			return -ENOMEM;
		wc->lines = lines;
		wc->lines_cap = cap;
	}
	wc->lines[wc->n_lines++] = *line;
	if (!c->has_stream || !tmk_window_claims_has(c, TMK_W_START_NS))
		return 0;
	return tmk_window_facts_window(&wc->facts, &c->stream, c->number[TMK_W_ID], &span);
}

static int line_collect(struct windows_check *wc, const struct line *line)
{
	if (!line_read(wc, line))
		return 0;
	if (tmk_window_claims_read(&wc->record, &wc->claims))
		return window_collect(wc, line);
	return op_collect(wc);
}

static int lines_collect(struct windows_check *wc, const char *data, const char *end)
{
	struct line line = { .text = data };
	int err = 0;

	while (!err && line.text < end) {
		const char *newline = memchr(line.text, '\n', (size_t)(end - line.text));

		line.len = (size_t)((newline ? newline : end) - line.text);
		line.number++;
		err = line_collect(wc, &line);
		line.text += line.len + 1;
		if (!newline)
			break;
	}
	return err ? err : tmk_window_facts_seal(&wc->facts);
}

/* --- judging */

static void parent_judge(struct windows_check *wc)
{
	const struct tmk_window_claims *c = &wc->claims;
	uint64_t parent = c->number[TMK_W_PARENT];
	struct tmk_facts_span span = span_of(c, c->number[TMK_W_START_NS]);

	if (!tmk_window_claims_has(c, TMK_W_PARENT))
		return;
	if (!c->has_stream || !tmk_window_claims_has(c, TMK_W_START_NS))
		complain(wc, "parent", "there is one without a stream and a start_ns");
	else if (!tmk_window_facts_held(&wc->facts, &c->stream, parent, &span,
					parent == c->number[TMK_W_ID]))
		complain(wc, "parent",
			 "no window %" PRIu64 " on this stream was open from its start to its end",
			 parent);
}

static void operations_judge(struct windows_check *wc)
{
	const struct tmk_window_claims *c = &wc->claims;
	struct tmk_facts_span span = span_of(c, 0);
	uint64_t claimed = c->number[TMK_W_OPERATIONS], least, most;

	if (!tmk_window_claims_has(c, TMK_W_OPERATIONS) || !c->has_stream ||
	    !tmk_window_claims_has(c, TMK_W_START_NS) || !tmk_window_claims_has(c, TMK_W_END_NS) ||
	    span.end_ns < span.start_ns)
		return;
	tmk_window_facts_ended(&wc->facts, &c->stream, &span, &least, &most);
	if (claimed >= least && claimed <= most)
		return;
	if (least == most)
		complain(wc, "operations",
			 "%" PRIu64 " are claimed, and %" PRIu64
			 " ended on its stream while it was open",
			 claimed, least);
	else
		complain(wc, "operations",
			 "%" PRIu64 " are claimed, and %" PRIu64 " to %" PRIu64
			 " ended on its stream while it was open",
			 claimed, least, most);
}

static void window_judge(struct windows_check *wc, const struct line *line)
{
	/* It was read before: it can only fail now when somebody writes to the text. */
	if (!line_read(wc, line) || !tmk_window_claims_read(&wc->record, &wc->claims))
		return;
	wc->line = line->number;
	wc->by_status[wc->claims.status]++;
	/* With late records nobody knows any more what was open when a line was written. */
	if (!tmk_window_claims_judge(&wc->record, &wc->claims, complain_rule, wc) || wc->late)
		return;
	parent_judge(wc);
	operations_judge(wc);
}

/* What the capture line says of one status; what it leaves out is 0. */
static void count_judge(struct windows_check *wc, const struct tmk_json_value *windows,
			const char *name, uint64_t found)
{
	char shown[TMK_EXCERPT];
	struct tmk_json_value v;
	uint64_t claimed = 0;

	if (member_get(windows, name, &v)) {
		if (v.type != TMK_JSON_UNSIGNED) {
			complain(wc, "types", "%s: %s is not a whole number (u64)", name,
				 tmk_json_excerpt(&v, shown));
			return;
		}
		claimed = tmk_json_u64(&v);
	}
	if (claimed != found)
		complain(wc, "counts",
			 "the capture line has %" PRIu64 " %s, and the file has %" PRIu64, claimed,
			 name, found);
}

/* A status that is not known was complained of where it stands, and nobody can have counted it. */
static void counts_judge(struct windows_check *wc, const struct tmk_json_value *capture)
{
	struct tmk_json_value windows = { .type = TMK_JSON_NULL };
	char shown[TMK_EXCERPT];

	if (wc->by_status[TMK_W_STATUSES])
		return;
	if (member_get(capture, "windows", &windows) && windows.type != TMK_JSON_OBJECT) {
		complain(wc, "types", "the capture line's windows: %s is not an object",
			 tmk_json_excerpt(&windows, shown));
		return;
	}
	for (int s = 0; s < TMK_W_STATUSES; s++)
		count_judge(wc, &windows, tmk_window_status_names[s], wc->by_status[s]);
}

/* --- */

static uint64_t newlines_count(const char *p, const char *end)
{
	uint64_t n = 0;

	while ((p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		n++;
	}
	return n;
}

/*
 * The last line, if it is a capture line that tickmark wrote; *capture then points into the text. Returns
 * where it begins, or NULL.
 */
static const char *capture_find(struct windows_check *wc, const char *data, const char *end,
				struct tmk_json_value *capture)
{
	struct tmk_json_value source;
	const char *newline;
	struct line line = { 0 };

	tmk_text_trim(&data, &end);
	newline = memrchr(data, '\n', (size_t)(end - data));
	line.text = newline ? newline + 1 : data;
	line.len = (size_t)(end - line.text);
	if (!line_read(wc, &line) || wc->record.kind != TMK_RECORD_OPERATION ||
	    !tmk_record_has(&wc->record, TMK_F_CAPTURE))
		return NULL;
	*capture = wc->record.value[TMK_F_CAPTURE];
	if (!member_get(capture, "source", &source) || source.type != TMK_JSON_STRING)
		return NULL;
	return line.text;
}

static bool late_records(const struct tmk_json_value *capture)
{
	struct tmk_json_value unpaired, late;

	return member_get(capture, "unpaired", &unpaired) && member_get(&unpaired, "late", &late) &&
	       late.type == TMK_JSON_UNSIGNED && tmk_json_u64(&late);
}

static int text_check(struct windows_check *wc, const char *data, const char *end, bool has_windows)
{
	struct tmk_json_value capture;
	const char *last = capture_find(wc, data, end, &capture);
	int err;

	if (!last)
		return 0;
	wc->late = late_records(&capture);
	err = has_windows ? lines_collect(wc, data, end) : 0;
	if (err)
		return err;
	for (size_t i = 0; i < wc->n_lines; i++)
		window_judge(wc, &wc->lines[i]);
	wc->line = newlines_count(data, last) + 1;
	counts_judge(wc, &capture);
	return 0;
}

int64_t tmk_check_windows(const char *data, size_t len, const struct tmk_check_counts *counts,
			  tmk_check_report_fn report, void *ctx, uint64_t max_reports)
{
	struct windows_check *wc;
	int64_t result;
	int err;

	if (!counts->has_capture)
		return 0;
	wc = calloc(1, sizeof(*wc));
	if (!wc)
		return -ENOMEM;
	wc->report = report;
	wc->ctx = ctx;
	wc->max_reports = max_reports;
	tmk_json_init(&wc->json);
	tmk_window_facts_init(&wc->facts);
	err = text_check(wc, data, data + len, counts->windows > 0);
	result = err ? err : (int64_t)wc->violations;
	tmk_window_facts_free(&wc->facts);
	tmk_json_free(&wc->json);
	free(wc->lines);
	free(wc);
	return result;
}
