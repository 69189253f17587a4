// SPDX-License-Identifier: BSD-2-Clause
/*
 * tmk_check_memory() and what it stands on: the oracle files, the importer's rules one by one, and the
 * wording of reports. What nobody would think of is left to tests/importer/fuzz.py.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the headers above first */
#include <cmocka.h>

#include "runtime3/check.h"
#include "runtime3/event_ids.h"
#include "runtime3/json.h"
#include "runtime3/record.h"
#include "runtime3/text.h"

#define ORACLE "tests/data/importer"

#define META                                                                             \
	"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"E\"," \
	"\"profile\":\"release\"}\n"
#define OP(members) "{\"kind\":\"operation\",\"event_id\":\"a\",\"op\":\"m\"" members "}\n"
#define DOC(members)                                                                                      \
	"{\"schema\":\"candle-graph/runtime/3\",\"run\":{\"entrypoint\":\"E\",\"profile\":\"p\"}" members \
	"}"
#define DOC_LINES(members)                                                                                  \
	"{\"schema\":\"candle-graph/runtime/3\",\n\"run\":{\"entrypoint\":\"E\",\"profile\":\"p\"}" members \
	"\n}"

struct reports {
	size_t n;
	uint64_t line[32];
	char text[32][512];
};

static void report_keep(void *ctx, uint64_t line, const char *text)
{
	struct reports *r = ctx;

	assert_true(r->n < 32);
	r->line[r->n] = line;
	snprintf(r->text[r->n++], sizeof(r->text[0]), "%s", text);
}

static struct reports last;
static struct tmk_check_counts counts;

/* In a block of the text's very size, so that a sanitizer sees what is read past it. */
static int64_t check_bytes(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);
	int64_t n;

	assert_non_null(copy);
	memcpy(copy, text, len);
	memset(&last, 0, sizeof(last));
	n = tmk_check_memory(copy, len, report_keep, &last, 20, &counts);
	free(copy);
	return n;
}

#define check_text(t) check_bytes(t, sizeof(t) - 1)
#define assert_accepted(t)                                      \
	do {                                                    \
		if (check_text(t))                              \
			fail_msg("rejected: %s", last.text[0]); \
	} while (0)
/* Exactly one violation. */
#define assert_rejected(t, at, why)                     \
	do {                                            \
		check_text(t);                          \
		assert_string_equal(last.text[0], why); \
		assert_int_equal(last.line[0], at);     \
		assert_int_equal(last.n, 1);            \
	} while (0)

/* --- the oracle */

/* Into a block of 64 KiB; returns its bytes. */
static size_t file_read(const char *path, char *data)
{
	FILE *f = fopen(path, "rb");
	size_t len;

	if (!f) {
		fail_msg("%s: cannot be read", path);
		return 0;
	}
	len = fread(data, 1, 1 << 16, f);
	assert_true(len < 1 << 16);
	fclose(f);
	return len;
}

static size_t oracle_check(const char *dir, bool accepted)
{
	static char data[1 << 16];
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t files = 0;

	if (!d) {
		fail_msg("%s is missing; run the tests from the top folder", dir);
		return 0;
	}
	while ((e = readdir(d))) {
		char path[512];
		int64_t n;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n = check_bytes(data, file_read(path, data));
		if ((n == 0) != accepted)
			fail_msg("%s: %ld violations, %s", path, (long)n, last.text[0]);
		files++;
	}
	closedir(d);
	return files;
}

static void conf25_oracle_verdicts(void **state)
{
	(void)state;
	assert_int_equal(oracle_check(ORACLE "/accept", true), 45);
	assert_int_equal(oracle_check(ORACLE "/reject", false), 71);
}

/* --- rules, by statement */

static void conf08_zero_event_session(void **state)
{
	(void)state;
	assert_int_equal(check_text(META), 2);
	assert_non_null(strstr(last.text[0], "a file of one line is read as a document"));
	assert_string_equal(last.text[1], "run: missing, and a document needs it");
	assert_accepted(
		"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"E\","
		"\"profile\":\"p\",\"run\":{\"entrypoint\":\"E\",\"profile\":\"p\"}}\n");
	assert_true(counts.document);
	assert_accepted(META OP(",\"capture\":{\"status\":\"complete\"}"));
	assert_true(counts.has_capture);
	assert_int_equal(counts.captures, 1);
	assert_int_equal(counts.operations, 0);
}

static void conf20_only_utf8(void **state)
{
	(void)state;
	assert_rejected(META OP(",\"output\":\"\xff\""), 2,
			"not UTF-8 at byte 55 of the line, and the importer reads only UTF-8");
	assert_rejected(META OP(",\"output\":\"\xc0\xaf\""), 2,
			"not UTF-8 at byte 55 of the line, and the importer reads only UTF-8");
	assert_rejected(DOC(",\"x\":\"\xed\xa0\x80\""), 1,
			"not UTF-8 at byte 80 of the line, and the importer reads only UTF-8");
	assert_rejected(DOC_LINES(",\"x\":\"\xed\xa0\x80\""), 2,
			"not UTF-8 at byte 45 of the line, and the importer reads only UTF-8");
	assert_accepted(META OP(",\"output\":\"\x7f\xc2\x80\xe2\x80\xa8\xf4\x8f\xbf\xbf\""));
}

static void conf22_edge_durations(void **state)
{
#define EDGE(ns)                                                                     \
	META "{\"kind\":\"edge_timing\",\"event_id\":\"e\",\"from_static_id\":\"\"," \
	     "\"to_static_id\":\"t\",\"duration_ns\":" ns "}\n"
	(void)state;
	assert_accepted(EDGE("0"));
	assert_accepted(EDGE("18446744073709551615"));
	assert_int_equal(counts.edges, 1);
	assert_rejected(EDGE("null"), 2, "duration_ns: null is not a whole number (u64)");
}

static void conf25_kinds_and_duplicates(void **state)
{
	(void)state;
	assert_accepted(META OP(""));
	assert_rejected(
		META "{\"kind\":\"window\"}\n", 2,
		"kind: \"window\" is not meta, operation, edge_timing, tensor, value or gradient; "
		"the importer rejects a whole file for it");
	assert_rejected(META OP(",\"kind\":\"operation\""), 2, "kind: given twice");
	assert_rejected(META OP(",\"op\":\"m\""), 2, "op: given twice");
	assert_rejected(META OP(",\"\\u006fp\":\"m\""), 2, "op: given twice");
	assert_accepted(META OP(",\"norm\":1,\"norm\":2,\"x\":1,\"x\":2"));
	assert_rejected(META META OP(""), 2, "a second meta event: a file has one");
}

static void conf25_nulls(void **state)
{
	(void)state;
	assert_accepted(META OP(",\"static_id\":null,\"source\":null,\"output\":null,\"step\":null,"
				"\"duration_ns\":null"));
	assert_rejected(META OP(",\"inputs\":null"), 2, "inputs: null is not an array of strings");
}

static void conf25_lines(void **state)
{
	(void)state;
	assert_accepted("\n \n" META "\r\n\x0c\xc2\xa0" OP("") "\xe3\x80\x80\n\x0b");
	assert_int_equal(counts.lines, 7);
	assert_rejected("\xef\xbb\xbf" META META, 1,
			"begins with a byte order mark: save it without one");
}

static void conf25_array_form(void **state)
{
	(void)state;
	assert_accepted(META "[\"operation\",\"a\",\"m\"]\n");
	assert_accepted(META "[\"operation\",\"a\",\"m\",null,null,[\"i\"],\"o\",1,2]\n");
	assert_rejected(META "[\"operation\",\"a\",\"m\",null,null,[\"i\"],\"o\",1,2,3]\n", 2,
			"an array of 9 values is too long for an operation (at most 8)");
	assert_rejected(META "[\"operation\",\"a\"]\n", 2,
			"op: missing, and an operation needs it");
	assert_rejected(META "[]\n", 2, "kind: missing, and every line needs it");
	assert_int_equal(check_text("[\"meta\",\"candle-graph/runtime/3\",\"E\",\"p\"]\n" OP("")),
			 1);
}

static void conf26_escapes(void **state)
{
	(void)state;
	assert_accepted(META OP(",\"output\":\"\\u0000\\b\\t\\n\\f\\r\\/\\\\\\\"\\ud83d\\ude00\""));
	assert_int_equal(check_text(META OP(",\"output\":\"\n\"")), 2);
	assert_string_equal(last.text[0],
			    "not JSON at byte 55 of the line: the text ends inside a string");
	assert_rejected(
		META OP(",\"output\":\"\x1f\""), 2,
		"not JSON at byte 55 of the line: a control byte inside a string (JSON wants "
		"\\u00XX)");
	assert_rejected(META OP(",\"output\":\"\\x41\""), 2,
			"not JSON at byte 55 of the line: not an escape that JSON knows");
	assert_rejected(
		META OP(",\"x\":\"\\ud800\""), 2,
		"not JSON at byte 50 of the line: half a surrogate pair: the high half without the "
		"low one");
	/* A document on one line is typed straight from the text: what nobody asked for is skipped. */
	assert_accepted(DOC(",\"x\":\"\\ud800\",\"y\":{\"\\udc00\":1e999}"));
	assert_accepted(
		DOC(",\"operations\":[{\"event_id\":\"a\",\"op\":\"m\",\"norm\":\"\\ud800\"}]"));
	assert_rejected(
		DOC(",\"operations\":[{\"event_id\":\"a\",\"op\":\"\\ud800\"}]"), 1,
		"not JSON at byte 111 of the line: half a surrogate pair: the high half without "
		"the low one");
	assert_int_equal(check_text(DOC_LINES(",\"x\":\"\\ud800\"")), 1);
}

static void conf27_numbers_are_u64(void **state)
{
	static const char *const good[] = { "0", "1", "18446744073709551615", "null" };
	static const char *const bad[] = { "-1",    "-0",   "1.0", "1e3", "18446744073709551616",
					   "\"5\"", "true", "[]" };
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), META OP(",\"duration_ns\":%s"), good[i]);
		assert_int_equal(check_bytes(text, strlen(text)), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), META OP(",\"duration_ns\":%s"), bad[i]);
		assert_int_equal(check_bytes(text, strlen(text)), 1);
		assert_non_null(strstr(last.text[0], "is not a whole number (u64) or null"));
	}
	assert_rejected(META OP(",\"duration_ns\":1.0"), 2,
			"duration_ns: 1.0 is not a whole number (u64) or null");
	assert_rejected(META OP(",\"duration_ns\":00"), 2,
			"not JSON at byte 59 of the line: a number must not begin with 0");
}

static char *ids_text(size_t n, size_t *len)
{
	char *text = malloc(n * 64 + 256), *p = text;

	assert_non_null(text);
	p += sprintf(p, "%s", META);
	for (size_t i = 1; i <= n; i++)
		p += sprintf(
			p, "{\"kind\":\"operation\",\"event_id\":\"train-op-0-%zu\",\"op\":\"\"}\n",
			i);
	*len = (size_t)(p - text);
	return text;
}

static void conf28_unique_event_ids(void **state)
{
	static const char repeat[] =
		"{\"kind\":\"edge_timing\",\"event_id\":\"train-op-0-\\u00377\","
		"\"from_static_id\":\"\",\"to_static_id\":\"\",\"duration_ns\":1}\n";
	size_t n = 1000000, len;
	char *text = ids_text(n, &len);

	(void)state;
	assert_int_equal(check_bytes(text, len), 0);
	assert_int_equal(counts.operations, n);
	memcpy(text + len, repeat, sizeof(repeat) - 1);
	assert_int_equal(check_bytes(text, len + sizeof(repeat) - 1), 1);
	assert_string_equal(last.text[0],
			    "event_id: \"train-op-0-\\u00377\" is used a second time");
	assert_int_equal(last.line[0], n + 2);
	free(text);
	assert_rejected(META "{\"kind\":\"operation\",\"event_id\":\"\",\"op\":\"m\"}\n", 2,
			"event_id: must not be empty");
}

static void conf29_own_fields(void **state)
{
	(void)state;
	assert_accepted(META OP(",\"start_ns\":1,\"pid\":2,\"tid\":3,\"stream\":4,\"end_tid\":5"));
	assert_int_equal(counts.operations, 1);
	assert_false(counts.has_capture);
}

static void conf49_window_unfinished_and_capture_lines(void **state)
{
#define OWN(id, field) \
	"{\"kind\":\"operation\",\"event_id\":\"" id "\",\"op\":\"\",\"" field "\":{}}\n"
	(void)state;
	assert_accepted(META OWN("w", "window") OWN("u", "unfinished") OWN("c", "capture"));
	assert_int_equal(counts.windows, 1);
	assert_int_equal(counts.unfinished, 1);
	assert_int_equal(counts.captures, 1);
	assert_int_equal(counts.operations, 0);
	assert_true(counts.has_capture);
	assert_accepted(META OWN("c", "capture") OWN("w", "window"));
	assert_false(counts.has_capture);
}

/* --- rules beside the statements */

static void gradient_norms(void **state)
{
#define GRADIENT(rest) \
	META "{\"kind\":\"gradient\",\"event_id\":\"g\",\"root\":\"r\",\"key\":\"k\"," rest "}\n"
	(void)state;
	assert_accepted(GRADIENT("\"state\":\"zero\",\"norm\":-0"));
	assert_accepted(GRADIENT("\"state\":\"zero\",\"norm\":1e-400"));
	assert_accepted(GRADIENT("\"state\":\"zero\",\"norm\":0e99999999999"));
	assert_accepted(GRADIENT("\"state\":\"present\",\"norm\":5e-324"));
	assert_accepted(GRADIENT("\"state\":\"missing\",\"norm\":null"));
	assert_accepted(GRADIENT("\"state\":{\"missing\":null}"));
	assert_accepted(GRADIENT("\"state\":{\"missing\":{}}"));
	assert_int_equal(counts.gradients, 1);
	assert_rejected(GRADIENT("\"state\":\"present\",\"norm\":1e-400"), 2,
			"norm: must not be 0 where the state is present (say zero)");
	assert_rejected(GRADIENT("\"state\":\"non_finite\",\"norm\":1"), 2,
			"norm: must not be finite where the state is non_finite");
	assert_int_equal(check_text(GRADIENT("\"state\":{\"missing\":null,\"missing\":null}")), 1);
	assert_int_equal(check_text(GRADIENT("\"state\":{\"missing\":[]}")), 1);
	assert_int_equal(check_text(GRADIENT("\"state\":{}")), 1);
	assert_int_equal(check_text(GRADIENT("\"state\":[\"zero\"]")), 1);
}

static void documents_on_one_line_and_on_many(void **state)
{
#define OPS(members) ",\"operations\":[{\"event_id\":\"a\",\"op\":\"m\"" members "}]"
	(void)state;
	assert_accepted(DOC(OPS("")));
	assert_int_equal(counts.operations, 1);
	assert_accepted(DOC_LINES(OPS("")));
	assert_int_equal(counts.lines, 3);
	assert_accepted(DOC(",\"values\":[[\"v\",null,null,null,1,2,3]]"));
	/* The last duplicate wins in a tree; straight from the text, it is fatal. */
	assert_rejected(DOC(OPS(",\"op\":\"m\"")), 1, "op: given twice");
	assert_accepted(DOC_LINES(OPS(",\"op\":\"m\"")));
	assert_accepted(DOC_LINES(OPS(",\"op\":1,\"op\":\"m\"")));
	assert_accepted(DOC_LINES(",\"operations\":1" OPS("")));
	assert_accepted(DOC_LINES(OPS("") OPS("")));
	assert_int_equal(
		check_text(DOC_LINES(OPS("") ",\"values\":[[\"a\",null,null,null,1,2,3]]")), 1);
	assert_string_equal(last.text[0], "event_id: \"a\" is used a second time");
	assert_rejected(DOC_LINES(",\n\"tensors\":null"), 1, "tensors: null is not an array");
	assert_rejected(DOC_LINES(",\n\"values\":[\n7]"), 4,
			"not an object, where a value must be");
	assert_int_equal(check_text("{\"a\":1}\n" META OP("")), 1);
	assert_string_equal(last.text[0], "kind: missing, and every line needs it");
	assert_rejected(
		"{\n\"a\":1}\n", 1,
		"a JSON value over many lines must be a document with \"schema\" and \"run\"; in "
		"JSON lines, each event is on one line");
	assert_rejected("{\n\"a\":1,\n}\n", 3,
			"not JSON at byte 1 of the line: a name in quotes must begin "
			"here");
}

static char *nested(const char *before, size_t depth, const char *after)
{
	char *text = malloc(strlen(before) + strlen(after) + 2 * depth + 1), *p;

	assert_non_null(text);
	p = stpcpy(text, before);
	memset(p, '[', depth);
	memset(p + depth, ']', depth);
	strcpy(p + 2 * depth, after);
	return text;
}

static int64_t check_nested(const char *before, size_t depth, const char *after)
{
	char *text = nested(before, depth, after);
	int64_t n = check_bytes(text, strlen(text));

	free(text);
	return n;
}

static void nesting_ends_at_127(void **state)
{
	(void)state;
	assert_int_equal(check_nested(META "{\"x\":", 126,
				      ",\"kind\":\"operation\",\"event_id\":\"a\","
				      "\"op\":\"\"}"),
			 0);
	assert_int_equal(check_nested(META "{\"x\":", 127, "}"), 1);
	assert_string_equal(last.text[0],
			    "not JSON at byte 132 of the line: nested deeper than 127 levels");
	/* What is skipped may be nested without end, in memory of one bit a level. */
	assert_int_equal(
		check_nested("{\"x\":", 1000000,
			     ",\"schema\":\"candle-graph/runtime/1\",\"run\":[\"e\",\"p\"]}"),
		0);
}

static void number_range_is_serdes(void **state)
{
	static const struct {
		const char *text;
		bool in_range;
		double value;
	} numbers[] = {
		{ "1e308", true, 1e308 },
		{ "1e309", false, 0 },
		{ "-1e309", false, 0 },
		{ "17976931348623157e292", true, 1.7976931348623157e308 },
		{ "1.8e308", false, 0 },
		{ "0e99999999999", true, 0 },
		{ "0.00e99999999999", true, 0 },
		{ "0.001e99999999999", false, 0 },
		{ "1e-99999999999", true, 0 },
		{ "5e-324", true, 5e-324 },
		{ "1e2147483647", false, 0 },
		{ "1e-2147483648", true, 0 },
		{ "18446744073709551615", true, 18446744073709551615.0 },
		{ "18446744073709551616", true, 18446744073709551616.0 },
		{ "-9223372036854775809", true, -9223372036854775809.0 },
		{ "100000000000000000000000e-23", true, 1 },
		/* A fraction digit that fits again after integer digits that did not. */
		{ "18446744073709551616.5", true, 18446744073709551615.0 },
	};
	struct tmk_json_value v;
	struct tmk_json j;

	(void)state;
	tmk_json_init(&j);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		tmk_json_set(&j, numbers[i].text, strlen(numbers[i].text));
		if (!numbers[i].in_range) {
			assert_int_equal(tmk_json_value(&j, &v), -EBADMSG);
			tmk_json_set(&j, numbers[i].text, strlen(numbers[i].text));
			j.lenient = true;
			assert_int_equal(tmk_json_value(&j, &v), 0);
			continue;
		}
		assert_int_equal(tmk_json_value(&j, &v), 0);
		assert_int_equal(tmk_json_end(&j), 0);
		assert_true(v.number == numbers[i].value);
	}
	tmk_json_free(&j);
}

static void strings_unescape(void **state)
{
	static const char text[] = "\"a\\u0000\\n\\\"\\/\\ud83d\\ude00\\u00e9\\u20ac\"";
	static const char plain[] = "a\0\n\"/\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xac";
	struct tmk_json_value v;
	struct tmk_json j;
	char out[64];

	(void)state;
	tmk_json_init(&j);
	tmk_json_set(&j, text, sizeof(text) - 1);
	assert_int_equal(tmk_json_value(&j, &v), 0);
	assert_true(v.escaped);
	assert_int_equal(tmk_json_unescape(&v, out, sizeof(out)), sizeof(plain) - 1);
	assert_memory_equal(out, plain, sizeof(plain) - 1);
	assert_true(tmk_json_equals(&v, plain, sizeof(plain) - 1));
	assert_false(tmk_json_equals(&v, plain, sizeof(plain) - 2));
	assert_true(tmk_json_unescape(&v, out, sizeof(plain) - 2) == SIZE_MAX);
	tmk_json_free(&j);
}

static void field_names_are_all_found(void **state)
{
	(void)state;
	for (int f = TMK_F_NONE + 1; f < TMK_FIELDS; f++) {
		struct tmk_json_value name = { .type = TMK_JSON_STRING };

		assert_non_null(tmk_field_name(f));
		name.text = tmk_field_name(f);
		name.len = strlen(name.text);
		assert_int_equal(tmk_field_find(&name), f);
		name.len--;
		assert_int_not_equal(tmk_field_find(&name), f);
	}
}

static void white_space_is_unicodes(void **state)
{
	static const char *const not_space[] = { "\x1c", "\xe2\x80\x8b", "\xef\xbb\xbf",
						 "\xc2\x86" };
	static const char text[] =
		"\t\x0b\x0c\r \xc2\x85\xe1\x9a\x80\xe2\x80\x80\xe2\x80\x8a.x."
		"\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\x9f\xe3\x80\x80\xc2\xa0\n";
	const char *begin = text, *end = text + sizeof(text) - 1;

	(void)state;
	tmk_text_trim(&begin, &end);
	assert_int_equal(end - begin, 3);
	assert_memory_equal(begin, ".x.", 3);
	for (size_t i = 0; i < sizeof(not_space) / sizeof(not_space[0]); i++) {
		begin = not_space[i];
		end = begin + strlen(begin);
		tmk_text_trim(&begin, &end);
		assert_int_equal(end - begin, strlen(not_space[i]));
	}
}

static void event_ids_keep_copies_that_do_not_stay(void **state)
{
	struct tmk_event_ids ids;
	char id[32];

	(void)state;
	tmk_event_ids_init(&ids);
	for (int i = 0; i < 20000; i++) {
		snprintf(id, sizeof(id), "id-%d", i);
		assert_int_equal(tmk_event_ids_add(&ids, id, strlen(id), false), 1);
	}
	for (int i = 0; i < 20000; i++) {
		snprintf(id, sizeof(id), "id-%d", i);
		assert_int_equal(tmk_event_ids_add(&ids, id, strlen(id), true), 0);
	}
	assert_int_equal(tmk_event_ids_add(&ids, "id-1\0", 5, true), 1);
	tmk_event_ids_free(&ids);
	tmk_event_ids_free(NULL);
}

/* --- reports */

static void every_violation_is_reported_with_its_line(void **state)
{
	(void)state;
	assert_int_equal(
		check_text(META "{\"kind\":\"operation\",\"duration_ns\":-1}\n\nnull\n" OP("")), 4);
	assert_string_equal(last.text[0], "event_id: missing, and an operation needs it");
	assert_string_equal(last.text[1], "op: missing, and an operation needs it");
	assert_string_equal(last.text[2], "duration_ns: -1 is not a whole number (u64) or null");
	assert_string_equal(last.text[3], "not an event: a line must hold one JSON object");
	assert_int_equal(last.line[2], 2);
	assert_int_equal(last.line[3], 4);
	assert_int_equal(check_text("[]\n[]\n[]\n"), 4);
	assert_int_equal(last.line[3], 0);
}

static void reports_are_capped_but_all_are_counted(void **state)
{
	char text[100];

	(void)state;
	memset(text, '\n', sizeof(text));
	for (size_t i = 0; i < sizeof(text); i += 2)
		text[i] = '1';
	assert_int_equal(check_bytes(text, sizeof(text)), 51);
	assert_int_equal(last.n, 20);
	assert_int_equal(tmk_check_memory(text, sizeof(text), NULL, NULL, 20, &counts), 51);
}

static void hostile_bytes_are_never_reported_raw(void **state)
{
	static const char text[] = META "{\"kind\":\"\x7f\xc2\x9b"
					"2J\xe2\x80\xae\"}\n"
					"{\"kind\":\"\\u001b[2J\"}\n";

	(void)state;
	assert_int_equal(check_text(text), 2);
	for (size_t i = 0; i < last.n; i++) {
		for (const char *p = last.text[i]; *p; p++)
			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		assert_null(strstr(last.text[i], "\xc2\x9b"));
		assert_null(strstr(last.text[i], "\xe2\x80\xae"));
	}
}

/* Any beginning of a file is read without a step past its end, and only whole lines are accepted. */
static void every_truncation_is_survived(void **state)
{
	static const char text[] = META OP(
		",\"inputs\":[\"\\ud83d\\ude00\",\"b\"],\"duration_ns\":12.5e-3") "{\"kind\":\"gradient\",\"state\":{\"zero\":null},\"norm\":-0.0}";
	static const char good[] =
		META OP("") "{\"kind\":\"operation\",\"event_id\":\"b\",\"op\":\"\"}";
	size_t meta = sizeof(META) - 1, op = sizeof(META OP("")) - 1;

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++)
		assert_true(check_bytes(text, len) > 0);
	for (size_t len = meta + 1; len < sizeof(good); len++) {
		bool whole = len == op - 1 || len == op || len == sizeof(good) - 1;

		assert_int_equal(check_bytes(good, len) == 0, whole);
	}
}

static void empty_and_blank_texts(void **state)
{
	(void)state;
	assert_rejected("", 0, "is empty");
	assert_rejected(" \n\xc2\xa0\n", 0, "holds nothing but white space");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf25_oracle_verdicts),
		cmocka_unit_test(conf08_zero_event_session),
		cmocka_unit_test(conf20_only_utf8),
		cmocka_unit_test(conf22_edge_durations),
		cmocka_unit_test(conf25_kinds_and_duplicates),
		cmocka_unit_test(conf25_nulls),
		cmocka_unit_test(conf25_lines),
		cmocka_unit_test(conf25_array_form),
		cmocka_unit_test(conf26_escapes),
		cmocka_unit_test(conf27_numbers_are_u64),
		cmocka_unit_test(conf28_unique_event_ids),
		cmocka_unit_test(conf29_own_fields),
		cmocka_unit_test(conf49_window_unfinished_and_capture_lines),
		cmocka_unit_test(gradient_norms),
		cmocka_unit_test(documents_on_one_line_and_on_many),
		cmocka_unit_test(nesting_ends_at_127),
		cmocka_unit_test(number_range_is_serdes),
		cmocka_unit_test(strings_unescape),
		cmocka_unit_test(field_names_are_all_found),
		cmocka_unit_test(white_space_is_unicodes),
		cmocka_unit_test(event_ids_keep_copies_that_do_not_stay),
		cmocka_unit_test(every_violation_is_reported_with_its_line),
		cmocka_unit_test(reports_are_capped_but_all_are_counted),
		cmocka_unit_test(hostile_bytes_are_never_reported_raw),
		cmocka_unit_test(every_truncation_is_survived),
		cmocka_unit_test(empty_and_blank_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
