// SPDX-License-Identifier: BSD-2-Clause
/*
 * tmk_check_windows(): each rule by its name, who is held to them, random schedules whose lines were made
 * with the rules of user/stream, and texts with wounds in their bytes.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime3/check_windows.h"
#include "runtime3/json.h"
#include "runtime3/runtime3.h"
#include "stream/streams.h"

#define META                                                                             \
	"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"E\"," \
	"\"profile\":\"release\"}\n"
#define LINE(id) "{\"kind\":\"operation\",\"event_id\":\"" id "\",\"op\":\"m\","
/* An operation on a stream, from start to start + duration. */
#define OP(id, on, start, duration) \
	LINE(id) "\"duration_ns\":" duration ",\"start_ns\":" start ",\"stream\":" on "}\n"
/* A window; `top` are members of the line. */
#define WINDOW(id, top, members) \
	LINE("w" id) top ",\"window\":{\"id\":" id ",\"opened_on\":0," members "}}\n"
#define ON_7 "\"stream\":7"
#define SYSTEM "\"method\":\"system\",\"flush\":false"
#define DEVICE "\"method\":\"device\",\"flush\":true"
#define CLOSED "\"status\":\"closed\"," SYSTEM
#define FROM_TO(start, end) "\"start_ns\":" start ",\"end_ns\":" end
/* From 100 to 200. */
#define SPAN FROM_TO("100", "200")
#define GOOD CLOSED "," SPAN ",\"duration_ns\":100"
#define CAPTURE(windows) \
	LINE("c") "\"capture\":{\"status\":\"complete\",\"source\":\"traced\"" windows "}}\n"
#define CLOSED_1 CAPTURE(",\"windows\":{\"closed\":1}")
#define CLOSED_2 CAPTURE(",\"windows\":{\"closed\":2}")

/* --- checking */

struct reports {
	size_t n;
	uint64_t line[32];
	char text[32][512];
};

static struct reports last;
static int64_t violations; /* of the importer's rules */

static void report_keep(void *ctx, uint64_t line, const char *text)
{
	struct reports *r = ctx;

	assert_true(r->n < 32);
	r->line[r->n] = line;
	snprintf(r->text[r->n++], sizeof(r->text[0]), "%s", text);
}

/* In a block of the text's very size, so that a sanitizer sees what is read past it. */
static int64_t check_bytes(const char *text, size_t len)
{
	struct tmk_check_counts counts;
	char *copy = malloc(len ? len : 1);
	int64_t n;

	assert_non_null(copy);
	memcpy(copy, text, len);
	memset(&last, 0, sizeof(last));
	violations = tmk_check_memory(copy, len, NULL, NULL, 0, &counts);
	n = tmk_check_windows(copy, len, &counts, report_keep, &last, 20);
	free(copy);
	return n;
}

/* How often a rule is broken in a text that the importer accepts. */
static int64_t broken(const char *text)
{
	int64_t n = check_bytes(text, strlen(text));

	assert_int_equal(violations, 0);
	return n;
}

#define assert_good(t)                                           \
	do {                                                     \
		if (broken(t))                                   \
			fail_msg("%s\nin\n%s", last.text[0], t); \
	} while (0)
/* Exactly one rule, once. */
#define assert_broken(text_, at, what)                                    \
	do {                                                              \
		int64_t n_ = broken(text_);                               \
                                                                          \
		assert_string_equal(last.text[0], "window: " what);       \
		if (n_ != 1)                                              \
			fail_msg("%d broken: %s", (int)n_, last.text[1]); \
		assert_int_equal(last.line[0], at);                       \
	} while (0)

/* --- who is held to the rules */

#define BAD "\"status\":\"closed\"," SPAN

static void only_files_of_ours_are_judged(void **state)
{
	(void)state;
	assert_true(broken(META WINDOW("1", ON_7, BAD) CLOSED_1) > 0);
	/* No capture line, none at the end, and none of ours. */
	assert_good(META WINDOW("1", ON_7, BAD));
	assert_good(META CLOSED_1 WINDOW("1", ON_7, BAD));
	assert_good(META WINDOW("1", ON_7, BAD) LINE("c") "\"capture\":{\"status\":\"x\"}}\n");
	assert_good(META WINDOW("1", ON_7, BAD) LINE("c") "\"capture\":{\"source\":1}}\n");
	assert_good(META WINDOW("1", ON_7, BAD) LINE("c") "\"capture\":[\"source\"]}\n");
	/* Blank lines behind it are no lines. */
	assert_true(broken(META WINDOW("1", ON_7, BAD) CLOSED_1 "\n \xc2\xa0\r\n") > 0);
	assert_int_equal(last.line[0], 2);
}

static void only_windows_such_as_ours_are_judged(void **state)
{
	(void)state;
	assert_good(META LINE("a") "\"window\":{\"id\":1,\"duration_ns\":9}}\n" CAPTURE(""));
	assert_good(META LINE("a") "\"window\":{\"id\":-1,\"opened_on\":0}}\n" CAPTURE(""));
	assert_good(META LINE("a") "\"window\":{\"id\":1,\"opened_on\":\"0\"}}\n" CAPTURE(""));
	assert_good(META LINE("a") "\"window\":7}\n" CAPTURE(""));
	assert_good(META LINE("a") "\"window\":[1,0]}\n" CAPTURE(""));
	assert_good(META CAPTURE(""));
	/* Members that are not known are somebody else's. */
	assert_good(META WINDOW("1", ON_7, GOOD ",\"kernel\":{\"id\":[]}") CLOSED_1);
}

/* --- one line by itself */

static void rule_types(void **state)
{
	(void)state;
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"depth\":-1") CLOSED_1, 2,
		      "types: depth: -1 is not a whole number (u64)");
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"idle_ns\":1.0") CLOSED_1, 2,
		      "types: idle_ns: 1.0 is not a whole number (u64)");
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"incomplete\":1") CLOSED_1, 2,
		      "types: incomplete: 1 is not true or false");
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"reason\":{}") CLOSED_1, 2,
		      "types: reason: an object is not a string");
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"f\\u006cush\":true") CLOSED_1, 2,
		      "types: flush is given twice");
	assert_broken(META WINDOW("1", "\"stream\":\"7\"", GOOD) CLOSED_1, 2,
		      "types: stream: \"7\" is not a whole number (u64)");
	assert_broken(META WINDOW("1", "\"stream\":7,\"named\":1", GOOD) CLOSED_1, 2,
		      "types: named: 1 is not true or false");
	assert_broken(META WINDOW("1", "\"stream\":7,\"stream\":7", GOOD) CLOSED_1, 2,
		      "types: stream is given twice");
	assert_broken(META WINDOW("1", ON_7, GOOD) CAPTURE(",\"windows\":1"), 3,
		      "types: the capture line's windows: 1 is not an object");
	assert_broken(META WINDOW("1", ON_7, GOOD) CAPTURE(",\"windows\":{\"closed\":true}"), 3,
		      "types: closed: true is not a whole number (u64)");
	/* What is wrong with a type is all that is said of a line. */
	assert_int_equal(broken(META WINDOW("1", ON_7, "\"status\":\"closed\"") CLOSED_1), 2);
	assert_string_equal(last.text[0], "window: types: method is missing");
	assert_string_equal(last.text[1], "window: types: flush is missing");
}

static void rules_method_status_reason_and_error(void **state)
{
	(void)state;
	assert_broken(META WINDOW("1", ON_7,
				  "\"status\":\"closed\",\"method\":\"gpu\",\"flush\":true," SPAN
				  ",\"duration_ns\":1") CLOSED_1,
		      2, "method: \"gpu\" is neither \"system\" nor \"device\"");
	assert_broken(META WINDOW("1", ON_7, "\"status\":\"shut\"," SYSTEM "," SPAN) CLOSED_1, 2,
		      "status: \"shut\" is none that is known");
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"reason\":\"program\"") CLOSED_1, 2,
		      "reason: \"program\" does not go with the status closed");
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"error\":5") CLOSED_1, 2,
		      "error: goes with the status failed, not with closed");
	assert_broken(META WINDOW("1", ON_7, "\"status\":\"failed\",\"error\":0," SYSTEM "," SPAN)
			      CAPTURE(",\"windows\":{\"failed\":1}"),
		      2, "error: 0 is no errno");
	assert_broken(META WINDOW("1", ON_7, "\"status\":\"open\"," SYSTEM ",\"start_ns\":1")
			      CAPTURE(",\"windows\":{\"open\":1}"),
		      2, "reason: is missing, and the status open needs one");
}

/* Every status with every reason, and what the table of the format says of both. */
static void reasons_go_with_their_status(void **state)
{
	static const char *const statuses[] = { "closed", "abandoned", "not_measured", "failed",
						"open" };
	static const struct {
		const char *reason;
		unsigned int with; /* bits, in the order of the statuses */
	} reasons[] = {
		{ "program", 2 },     { "finished", 2 },
		{ "target_gone", 2 }, { "exec", 2 },
		{ "limit", 2 },	      { "backend", 4 | 8 },
		{ "no_time", 4 },     { "unresolved", 4 },
		{ "reused", 4 },      { "opened_before_capture", 4 },
		{ "recorded", 8 },    { "start_unknown", 4 },
		{ "detached", 16 },   { "stopped", 16 },
		{ "failed", 16 },     { "", 0 },
		{ "Program", 0 },     { "program\\u0000", 0 },
	};
	char text[1024];

	(void)state;
	for (size_t s = 0; s < 5; s++) {
		for (size_t r = 0; r < sizeof(reasons) / sizeof(reasons[0]); r++) {
			bool good = reasons[r].with >> s & 1;

			snprintf(text, sizeof(text),
				 META WINDOW("1", ON_7,
					     SYSTEM ",\"start_ns\":1%s,\"status\":\"%s\","
						    "\"reason\":\"%s\"")
					 CAPTURE(",\"windows\":{\"%s\":1}"),
				 s ? "" : ",\"end_ns\":2,\"duration_ns\":1", statuses[s],
				 reasons[r].reason, statuses[s]);
			assert_int_equal(broken(text), !good);
			assert_true(good || strstr(last.text[0], "window: reason: "));
		}
	}
}

static void rule_end(void **state)
{
	(void)state;
	assert_broken(META WINDOW("1", ON_7,
				  "\"status\":\"not_measured\",\"reason\":\"no_time\"," SYSTEM
				  "," FROM_TO("200", "199"))
			      CAPTURE(",\"windows\":{\"not_measured\":1}"),
		      2, "end: end_ns 199 is before start_ns 200");
	assert_broken(META WINDOW("1", ON_7,
				  "\"status\":\"open\",\"reason\":\"detached\"," SYSTEM "," SPAN)
			      CAPTURE(",\"windows\":{\"open\":1}"),
		      2, "end: there is an end_ns where nobody saw the end");
	assert_broken(META WINDOW("1", ON_7,
				  "\"status\":\"abandoned\",\"reason\":\"exec\"," SYSTEM "," SPAN)
			      CAPTURE(",\"windows\":{\"abandoned\":1}"),
		      2, "end: there is an end_ns where nobody saw the end");
	assert_broken(META WINDOW("1", ON_7, CLOSED ",\"start_ns\":100,\"duration_ns\":1") CLOSED_1,
		      2, "end: a closed window has a start_ns and an end_ns");
	assert_good(META WINDOW("1", ON_7,
				"\"status\":\"abandoned\",\"reason\":\"finished\"," SYSTEM "," SPAN)
			    CAPTURE(",\"windows\":{\"abandoned\":1}"));
}

static void conf41_rule_duration(void **state)
{
	(void)state;
	assert_good(META WINDOW("1", ON_7, GOOD) CLOSED_1);
	assert_broken(META WINDOW("1", ON_7, CLOSED "," SPAN ",\"duration_ns\":0") CLOSED_1, 2,
		      "duration: 0 is no measurement: what was not measured is left out");
	assert_broken(META WINDOW("1", ON_7, CLOSED "," SPAN) CLOSED_1, 2,
		      "duration: duration_ns is missing, and a closed window has one");
	assert_broken(META WINDOW("1", ON_7, CLOSED "," SPAN ",\"duration_ns\":99") CLOSED_1, 2,
		      "duration: duration_ns 99 is not end_ns - start_ns, which is 100");
	assert_broken(META WINDOW("1", ON_7,
				  "\"status\":\"failed\"," SYSTEM "," SPAN ",\"duration_ns\":100")
			      CAPTURE(",\"windows\":{\"failed\":1}"),
		      2, "duration: only a closed window has a duration_ns");
	assert_broken(META WINDOW("1", "\"duration_ns\":100," ON_7, GOOD) CLOSED_1, 2,
		      "duration: there is one at the top of the line, and the importer would "
		      "average it");
	assert_broken(META WINDOW("1", ON_7,
				  CLOSED ",\"start_ns\":0,\"end_ns\":18446744073709551615,"
					 "\"duration_ns\":1") CLOSED_1,
		      2,
		      "duration: duration_ns 1 is not end_ns - start_ns, which is "
		      "18446744073709551615");
}

static void conf48_device_durations_are_not_held_against_the_host(void **state)
{
	(void)state;
	assert_good(META WINDOW("1", ON_7,
				"\"status\":\"closed\"," DEVICE "," SPAN ",\"duration_ns\":12345")
			    CLOSED_1);
}

static void rule_idle(void **state)
{
	(void)state;
	assert_good(META WINDOW("1", ON_7, GOOD ",\"idle_ns\":100") CLOSED_1);
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"idle_ns\":101") CLOSED_1, 2,
		      "idle: idle_ns 101 is more than end_ns - start_ns, which is 100");
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"idle_ns\":1,\"incomplete\":true") CLOSED_1, 2,
		      "idle: an incomplete window has no idle_ns");
	assert_broken(META WINDOW("1", ON_7,
				  "\"status\":\"open\",\"reason\":\"stopped\"," SYSTEM
				  ",\"start_ns\":1,\"idle_ns\":0")
			      CAPTURE(",\"windows\":{\"open\":1}"),
		      2, "idle: there is an idle_ns without a start_ns and an end_ns");
}

/* --- lines together */

#define INNER(times, parent)                                                               \
	WINDOW("2", ON_7,                                                                  \
	       "\"status\":\"failed\"," SYSTEM "," times ",\"depth\":1,\"parent\":" parent \
	       ",\"overlaps\":0")
#define BOTH CAPTURE(",\"windows\":{\"closed\":1,\"failed\":1}")
#define NOT_HELD(id) "parent: no window " id " on this stream was open from its start to its end"

static void conf36_rule_parent(void **state)
{
	(void)state;
	assert_good(META INNER(FROM_TO("110", "190"), "1") WINDOW("1", ON_7, GOOD) BOTH);
	assert_good(META INNER(SPAN, "1") WINDOW("1", ON_7, GOOD) BOTH);
	assert_good(META INNER("\"start_ns\":110", "1") WINDOW("1", ON_7, GOOD) BOTH);
	assert_broken(META INNER(FROM_TO("110", "190"), "3") WINDOW("1", ON_7, GOOD) BOTH, 2,
		      NOT_HELD("3"));
	assert_broken(META INNER(FROM_TO("99", "190"), "1") WINDOW("1", ON_7, GOOD) BOTH, 2,
		      NOT_HELD("1"));
	assert_broken(META INNER(FROM_TO("110", "201"), "1") WINDOW("1", ON_7, GOOD) BOTH, 2,
		      NOT_HELD("1"));
	assert_broken(META INNER(FROM_TO("110", "190"), "2") WINDOW("1", ON_7, GOOD) BOTH, 2,
		      NOT_HELD("2"));
	/* On another stream: of another number, or of the same one in the other name space. */
	assert_broken(META INNER(FROM_TO("110", "190"), "1") WINDOW("1", "\"stream\":8", GOOD) BOTH,
		      2, NOT_HELD("1"));
	assert_broken(META INNER(FROM_TO("110", "190"), "1")
			      WINDOW("1", "\"stream\":7,\"named\":true", GOOD) BOTH,
		      2, NOT_HELD("1"));
	assert_broken(META WINDOW("2", "\"pid\":1", GOOD ",\"depth\":1,\"parent\":1") CLOSED_1, 2,
		      "parent: there is one without a stream and a start_ns");
}

static void a_parent_that_never_ended_holds_any_end(void **state)
{
#define OUTER "\"status\":\"open\",\"reason\":\"detached\"," SYSTEM ",\"start_ns\":100"
	(void)state;
	assert_good(META INNER(FROM_TO("110", "18446744073709551614"), "1") WINDOW("1", ON_7, OUTER)
			    CAPTURE(",\"windows\":{\"open\":1,\"failed\":1}"));
	assert_broken(META INNER(FROM_TO("99", "190"), "1") WINDOW("1", ON_7, OUTER)
			      CAPTURE(",\"windows\":{\"open\":1,\"failed\":1}"),
		      2, NOT_HELD("1"));
}

/* One id twice on one stream, as only a target that lies has it: any of them may be the parent. */
static void a_parent_may_be_any_window_of_its_id(void **state)
{
#define TWIN(event, times)                                                                 \
	LINE(event)                                                                        \
	ON_7 ",\"window\":{\"id\":1,\"opened_on\":" event ",\"status\":\"failed\"," SYSTEM \
	     "," times "}}\n"
#define INNER_TWIN(times)                                                                    \
	LINE("9")                                                                            \
	ON_7 ",\"window\":{\"id\":1,\"opened_on\":9,\"status\":\"failed\"," SYSTEM "," times \
	     ",\"depth\":1,\"parent\":1}}\n"
#define FAILED(n) CAPTURE(",\"windows\":{\"failed\":" n "}")
	(void)state;
	assert_good(META TWIN("3", FROM_TO("10", "20")) TWIN("4", FROM_TO("30", "90")) TWIN(
		"5", FROM_TO("35", "40")) INNER_TWIN(FROM_TO("36", "90")) FAILED("4"));
	assert_broken(META TWIN("3", FROM_TO("10", "20")) TWIN("4", FROM_TO("30", "90"))
			      TWIN("5", FROM_TO("35", "40")) INNER_TWIN(FROM_TO("36", "91"))
				      FAILED("4"),
		      5, NOT_HELD("1"));
	/* But never itself. */
	assert_broken(META INNER_TWIN(FROM_TO("36", "91")) FAILED("1"), 2, NOT_HELD("1"));
}

static void rule_depth(void **state)
{
	(void)state;
	assert_good(META WINDOW("1", ON_7, GOOD ",\"depth\":0,\"overlaps\":3") CLOSED_1);
	assert_broken(META WINDOW("1", ON_7, GOOD ",\"depth\":2") CLOSED_1, 2,
		      "depth: depth is 2, and there is no parent");
	assert_broken(META WINDOW("1", ON_7, GOOD) WINDOW("2", ON_7, GOOD ",\"parent\":1") CLOSED_2,
		      3, "depth: there is a parent, and depth is missing");
	assert_broken(META WINDOW("1", ON_7, GOOD)
			      WINDOW("2", ON_7, GOOD ",\"depth\":0,\"parent\":1") CLOSED_2,
		      3, "depth: there is a parent, and depth is 0");
}

#define OPS(n) GOOD ",\"operations\":" n

static void conf46_rule_operations(void **state)
{
	/* Owed in, inside, and two that are no longer or not yet in; others' do not count. */
#define SOME                                                       \
	OP("1", "7", "0", "150")                                   \
	OP("2", "7", "140", "20")                                  \
	OP("3", "7", "10", "20")                                   \
	OP("4", "7", "150", "51")                                  \
	OP("5", "8", "140", "1")                                   \
	LINE("6")                                                  \
	"\"start_ns\":140,\"duration_ns\":1,\"stream\":7,"         \
	"\"named\":true}\n" LINE("7") "\"duration_ns\":1}\n" LINE( \
		"8") "\"stream\":7,\"unfinished\":{}}\n"
	(void)state;
	assert_good(META SOME WINDOW("1", ON_7, OPS("2")) CLOSED_1);
	assert_good(META SOME WINDOW("1", "\"stream\":7,\"named\":true", OPS("1")) CLOSED_1);
	assert_good(META SOME WINDOW("1", "\"stream\":7,\"named\":false", OPS("2")) CLOSED_1);
	assert_good(META SOME WINDOW("1", "\"stream\":9", OPS("0")) CLOSED_1);
	assert_broken(META SOME WINDOW("1", ON_7, OPS("3")) CLOSED_1, 10,
		      "operations: 3 are claimed, and 2 ended on its stream while it was open");
	assert_broken(META SOME WINDOW("1", "\"stream\":9", OPS("1")) CLOSED_1, 10,
		      "operations: 1 are claimed, and 0 ended on its stream while it was open");
	/* Nothing is claimed, or there is nothing to hold it against. */
	assert_good(META SOME WINDOW("1", ON_7, GOOD) CLOSED_1);
	assert_good(META SOME WINDOW("1", ON_7,
				     "\"status\":\"open\",\"reason\":\"failed\"," SYSTEM
				     ",\"start_ns\":1,\"operations\":9")
			    CAPTURE(",\"windows\":{\"open\":1}"));
}

/* Lines that came out of the order of time are held to what they say of themselves only. */
static void late_records_excuse_claims_on_other_lines(void **state)
{
#define LATE(n) CAPTURE(",\"windows\":{\"closed\":1},\"unpaired\":{\"late\":" n "}")
#define ORPHAN GOOD ",\"operations\":9,\"depth\":1,\"parent\":77"
	(void)state;
	assert_good(META WINDOW("1", ON_7, ORPHAN) LATE("3"));
	assert_int_equal(broken(META WINDOW("1", ON_7, ORPHAN) LATE("0")), 2);
	assert_int_equal(broken(META WINDOW("1", ON_7, ORPHAN) LATE("\"3\"")), 2);
	assert_int_equal(broken(META WINDOW("1", ON_7, ORPHAN) CLOSED_1), 2);
	assert_true(broken(META WINDOW("1", ON_7, BAD) LATE("3")) > 0);
}

static void conf46_an_end_on_the_edge_may_be_in_or_out(void **state)
{
#define EDGES OP("1", "7", "0", "100") OP("2", "7", "150", "10") OP("3", "7", "150", "50")
	(void)state;
	assert_good(META EDGES WINDOW("1", ON_7, OPS("1")) CLOSED_1);
	assert_good(META EDGES WINDOW("1", ON_7, OPS("2")) CLOSED_1);
	assert_good(META EDGES WINDOW("1", ON_7, OPS("3")) CLOSED_1);
	assert_broken(
		META EDGES WINDOW("1", ON_7, OPS("0")) CLOSED_1, 5,
		"operations: 0 are claimed, and 1 to 3 ended on its stream while it was open");
	assert_broken(
		META EDGES WINDOW("1", ON_7, OPS("4")) CLOSED_1, 5,
		"operations: 4 are claimed, and 1 to 3 ended on its stream while it was open");
}

static void conf46_ends_in_any_order_and_of_any_size(void **state)
{
#define U64 "18446744073709551615"
	(void)state;
	assert_good(META OP("1", "7", "180", "1") OP("2", "7", "0", U64) OP("3", "7", U64, U64)
			    OP("4", "7", "110", "1") WINDOW("1", ON_7, OPS("2")) CLOSED_1);
	assert_broken(META OP("1", "7", "180", "1") OP("4", "7", "110", "1")
			      WINDOW("1", ON_7, OPS(U64)) CLOSED_1,
		      4,
		      "operations: 18446744073709551615 are claimed, and 2 ended on its stream "
		      "while it was open");
	assert_good(META OP("1", U64, "0", U64) WINDOW("1", "\"stream\":" U64,
						       "\"status\":\"failed\"," SYSTEM
						       "," FROM_TO(U64, U64) ",\"operations\":1")
			    FAILED("1"));
}

static void conf40_rule_counts(void **state)
{
	(void)state;
	assert_broken(META WINDOW("1", ON_7, GOOD) WINDOW("2", ON_7, GOOD) CLOSED_1, 4,
		      "counts: the capture line has 1 closed, and the file has 2");
	assert_broken(META WINDOW("1", ON_7, GOOD) CAPTURE(""), 3,
		      "counts: the capture line has 0 closed, and the file has 1");
	assert_broken(META OP("1", "7", "1", "1") CAPTURE(",\"windows\":{\"abandoned\":1}"), 3,
		      "counts: the capture line has 1 abandoned, and the file has 0");
	assert_good(META CAPTURE(",\"windows\":{\"closed\":0,\"open\":0,\"other\":5}"));
}

/* --- reports */

static void rules_are_reported_in_the_order_of_lines(void **state)
{
	(void)state;
	assert_int_equal(
		broken(META WINDOW("1", ON_7, OPS("1")) "\n" OP("1", "8", "1", "1") WINDOW(
			"2", ON_7, CLOSED "," SPAN ",\"duration_ns\":0,\"depth\":1") CAPTURE("")),
		4);
	assert_int_equal(last.line[0], 2);
	assert_int_equal(last.line[1], 5);
	assert_int_equal(last.line[2], 5);
	assert_int_equal(last.line[3], 6);
	assert_non_null(strstr(last.text[0], "window: operations: "));
	assert_non_null(strstr(last.text[1], "window: duration: "));
	assert_non_null(strstr(last.text[2], "window: depth: "));
	assert_non_null(strstr(last.text[3], "window: counts: "));
}

static void broken_rules_are_capped_but_all_are_counted(void **state)
{
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_buf_puts(&b, META);
	for (unsigned int i = 0; i < 100; i++) {
		tmk_buf_puts(&b, "{\"kind\":\"operation\",\"event_id\":\"");
		tmk_buf_putu64(&b, i);
		tmk_buf_puts(&b, "\",\"op\":\"m\"," ON_7
				 ",\"window\":{\"id\":1,\"opened_on\":0," OPS("1") "}}\n");
	}
	tmk_buf_puts(&b, CAPTURE(",\"windows\":{\"closed\":100}"));
	assert_int_equal(check_bytes(b.data, b.len), 100);
	assert_int_equal(last.n, 20);
	tmk_buf_free(&b);
}

static void no_byte_of_a_file_is_reported_raw(void **state)
{
	(void)state;
	assert_int_equal(
		broken(META WINDOW(
			"1", ON_7,
			"\"status\":\"\x7f\xc2\x9b[2J\xe2\x80\xae\",\"method\":\"\\u001b\","
			"\"flush\":true") CLOSED_1),
		2);
	for (size_t i = 0; i < last.n; i++) {
		for (const char *p = last.text[i]; *p; p++)
			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		assert_null(strstr(last.text[i], "\xc2\x9b"));
		assert_null(strstr(last.text[i], "\xe2\x80\xae"));
	}
}

/* --- random schedules, with lines made by the rules of user/stream */

#define STREAMS 5u
#define IN_FLIGHT 24u

/* What is written of each window, or in the capture line, otherwise than it was. */
enum lie {
	LIE_NONE,
	LIE_OPERATIONS,
	LIE_IDLE,
	LIE_PARENT,
	LIE_DEPTH,
	LIE_DURATION,
	LIE_COUNTS,
	LIES
};

struct schedule {
	enum lie lie;
	uint64_t lies;						 /* how many were told */
	uint64_t random, now, n_events, n_windows, by_status[2]; /* closed, abandoned */
	struct tmk_streams streams;
	struct tmk_r3_site site;
	struct tmk_buf text;
	struct op {
		bool active;
		struct tmk_stream_id stream;
		uint64_t begin_ns;
	} ops[IN_FLIGHT];
	struct window {
		struct tmk_stream_window w; /* first: the parent is found by it */
		bool open;
		uint64_t id, n;
		struct tmk_stream_id stream;
	} windows[IN_FLIGHT];
};

static uint64_t draw(struct schedule *s, uint64_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (s->random >> 11) % below;
}

static struct tmk_stream_id stream_draw(struct schedule *s)
{
	return (struct tmk_stream_id){ .number = draw(s, STREAMS), .named = draw(s, 2) };
}

static void op_toggle(struct schedule *s, struct op *op)
{
	struct tmk_stream_op ended = { .begin_ns = op->begin_ns };
	struct tmk_r3_op line = {
		.phase = { "infer", 5 },
		.site = &s->site,
		.start_ns = op->begin_ns,
		.stream = op->stream.number,
		.named = op->stream.named,
	};

	if (!op->active) {
		op->stream = stream_draw(s);
		op->begin_ns = s->now;
		assert_int_equal(tmk_streams_op_begin(&s->streams, &op->stream, &op->begin_ns), 0);
	} else {
		tmk_streams_op_end(&s->streams, &op->stream, &ended, &s->now);
		line.n = ++s->n_events;
		line.duration_ns = s->now - op->begin_ns;
		tmk_r3_op_line(&s->text, &line, false);
	}
	op->active = !op->active;
}

/* Returns whether there was something to lie about. */
static bool window_belie(struct tmk_r3_window *w, enum lie lie)
{
	switch (lie) {
	case LIE_OPERATIONS:
		w->operations += 1000;
		return true;
	case LIE_IDLE:
		w->idle_ns = w->end_ns - w->start_ns + 1;
		return true;
	case LIE_PARENT:
		w->parent = 1; /* nobody's */
		return w->has_parent;
	case LIE_DEPTH:
		w->depth = !w->depth;
		return true;
	case LIE_DURATION:
		w->duration_ns++;
		return w->has_duration;
	default:
		return false;
	}
}

static void window_write(struct schedule *s, const struct window *w,
			 const struct tmk_stream_inside *inside)
{
	const struct window *parent = (const void *)inside->parent;
	bool closed = s->now > w->w.start_ns;
	struct tmk_r3_window line = {
		.phase = { "infer", 5 },
		.name = { "w", 1 },
		.n = w->n,
		.id = w->id,
		.opened_on = w->stream.number,
		.stream = w->stream.number,
		.named = w->stream.named,
		.has_stream = true,
		.has_start = true,
		.has_end = true,
		.has_duration = closed,
		.start_ns = w->w.start_ns,
		.end_ns = s->now,
		.duration_ns = s->now - w->w.start_ns,
		.status = closed ? "closed" : "abandoned",
		.reason = closed ? NULL : "program",
		.has_place = true,
		.depth = inside->depth,
		.overlaps = inside->overlaps,
		.has_parent = parent,
		.parent = parent ? parent->id : 0,
		.has_operations = true,
		.operations = inside->operations,
		.has_idle = true,
		.idle_ns = inside->idle_ns,
	};

	s->by_status[!closed]++;
	s->lies += window_belie(&line, s->lie);
	tmk_r3_window_line(&s->text, &line);
}

static void window_toggle(struct schedule *s, struct window *w)
{
	struct tmk_stream_inside inside;
	uint64_t time = s->now;

	if (!w->open) {
		*w = (struct window){ .id = 100 + s->n_windows, .stream = stream_draw(s) };
		w->n = ++s->n_windows;
		assert_int_equal(tmk_streams_window_start(&s->streams, &w->stream, &w->w, &time),
				 0);
		w->open = true;
		return;
	}
	tmk_streams_window_end(&s->streams, &w->w, &time, false, &inside);
	assert_int_equal(time, s->now);
	window_write(s, w, &inside);
	w->open = false;
}

static void schedule_run(struct schedule *s, uint64_t seed, enum lie lie)
{
	struct tmk_r3_count windows[] = { { "closed", 0 }, { "abandoned", 0 } };
	struct tmk_r3_capture c = {
		.status = "complete",
		.source = "traced",
		.windows = windows,
		.n_windows = 2,
	};
	struct tmk_seed hash_seed = { seed, 1 };

	*s = (struct schedule){ .lie = lie, .random = seed * 0x9e3779b97f4a7c15u | 1, .now = 1000 };
	tmk_streams_init(&s->streams, &hash_seed, false);
	assert_int_equal(tmk_r3_site_render(&s->site, (struct tmk_str){ "s", 1 },
					    (struct tmk_str){ "o", 1 }, NULL, 0, 0),
			 0);
	tmk_buf_puts(&s->text, META);
	for (uint64_t events = 20 + draw(s, 200); events; events--) {
		s->now += draw(s, 3); /* often none: ends that fall on edges */
		if (draw(s, 3))
			op_toggle(s, &s->ops[draw(s, IN_FLIGHT)]);
		else
			window_toggle(s, &s->windows[draw(s, IN_FLIGHT)]);
	}
	for (size_t i = 0; i < IN_FLIGHT; i++) {
		if (s->windows[i].open)
			window_toggle(s, &s->windows[i]);
	}
	windows[0].value = s->by_status[0];
	windows[1].value = s->by_status[1];
	if (lie == LIE_COUNTS)
		windows[draw(s, 2)].value += ++s->lies;
	tmk_r3_capture_line(&s->text, &c);
	assert_int_equal(s->text.err, 0);
}

static void schedule_free(struct schedule *s)
{
	tmk_streams_free(&s->streams);
	tmk_r3_site_free(&s->site);
	tmk_buf_free(&s->text);
}

static void what_the_streams_say_breaks_no_rule(void **state)
{
	uint64_t windows = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct schedule s;

		schedule_run(&s, seed, LIE_NONE);
		if (check_bytes(s.text.data, s.text.len) || violations)
			fail_msg("seed %" PRIu64 ": line %" PRIu64 ": %s\n%.*s", seed, last.line[0],
				 last.text[0], (int)s.text.len, s.text.data);
		windows += s.n_windows;
		schedule_free(&s);
	}
	assert_true(windows > 30000);
}

static void each_lie_about_a_window_is_found(void **state)
{
	static const char *const rules[LIES] = {
		[LIE_OPERATIONS] = "window: operations: ", [LIE_IDLE] = "window: idle: ",
		[LIE_PARENT] = "window: parent: ",	   [LIE_DEPTH] = "window: depth: ",
		[LIE_DURATION] = "window: duration: ",	   [LIE_COUNTS] = "window: counts: ",
	};
	uint64_t told[LIES] = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= 1200; seed++) {
		enum lie lie = 1 + seed % (LIES - 1);
		struct schedule s;
		int64_t n;

		schedule_run(&s, seed, lie);
		n = check_bytes(s.text.data, s.text.len);
		if (violations || n != (int64_t)s.lies)
			fail_msg("seed %" PRIu64 ": %" PRIu64 " lies, %" PRIi64 " found", seed,
				 s.lies, n);
		for (size_t i = 0; i < last.n; i++)
			assert_non_null(strstr(last.text[i], rules[lie]));
		told[lie] += s.lies;
		schedule_free(&s);
	}
	for (int lie = 1; lie < LIES; lie++)
		assert_true(told[lie] >= 150);
}

/* --- hostile texts */

/* Any beginning of a file, each in a block of its own size. */
static void every_truncation_is_survived(void **state)
{
	struct schedule s;

	(void)state;
	schedule_run(&s, 7, LIE_NONE);
	for (size_t len = 0; len < s.text.len; len++)
		assert_true(check_bytes(s.text.data, len) >= 0);
	schedule_free(&s);
}

/* A wound: a byte, a number, a piece of the same text, or a piece less. */
static void text_wound(struct schedule *s, char *text, size_t *len, size_t cap)
{
	static const char bytes[] = "{}[],:\"\\0123456789eE+-.ntfu \t\r\n\x01\x7f\x80\xc2\xed\xff";
	static const char *const numbers[] = { "18446744073709551615",
					       "18446744073709551616",
					       "0",
					       "-1",
					       "1.5",
					       "null",
					       "\"\"",
					       "{}",
					       "true" };
	size_t at = draw(s, *len), from = draw(s, *len), n = 1 + draw(s, 40);
	const char *number = numbers[draw(s, sizeof(numbers) / sizeof(numbers[0]))];
	size_t digits;

	n = n < *len - from ? n : *len - from;
	n = n < *len - at ? n : *len - at;
	switch (draw(s, 4)) {
	case 0:
		text[at] = bytes[draw(s, sizeof(bytes) - 1)];
		return;
	case 1:
		memmove(text + at, text + from, n);
		return;
	case 2:
		memmove(text + at, text + at + n, *len - at - n);
		*len -= n;
		return;
	default:
		while (at < *len && (text[at] < '0' || text[at] > '9'))
			at++;
		digits = strspn(text + at, "0123456789");
		if (at >= *len || *len + 24 > cap)
			return;
		memmove(text + at + strlen(number), text + at + digits, *len - at - digits + 1);
		memcpy(text + at, number, strlen(number));
		*len = *len - digits + strlen(number);
	}
}

static void wounded_texts_are_survived(void **state)
{
	static char text[1 << 16];
	uint64_t judged = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct schedule s;

		schedule_run(&s, seed, LIE_NONE);
		assert_true(s.text.len < sizeof(text) / 2);
		for (int round = 0; round < 40; round++) {
			size_t len = s.text.len;

			memcpy(text, s.text.data, len);
			text[len] = '\0';
			for (uint64_t wounds = 1 + draw(&s, 4); wounds && len; wounds--) {
				text_wound(&s, text, &len, sizeof(text));
				text[len] = '\0';
			}
			judged += check_bytes(text, len) > 0;
		}
		schedule_free(&s);
	}
	assert_true(judged > 500);
}

/* Claims that a slow check would compare with all lines: each window with each other, and each operation. */
static void hostile_numbers_of_lines_take_no_square_of_time(void **state)
{
	const unsigned int n = 60000;
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_buf_puts(&b, META);
	for (unsigned int i = 0; i < n; i++) {
		tmk_buf_puts(&b, "{\"kind\":\"operation\",\"event_id\":\"o");
		tmk_buf_putu64(&b, i);
		tmk_buf_puts(&b, "\",\"op\":\"\",\"start_ns\":0,\"stream\":7,\"duration_ns\":");
		tmk_buf_putu64(&b, i % 2 ? i : 2 * n - i);
		tmk_buf_puts(&b, "}\n{\"kind\":\"operation\",\"event_id\":\"w");
		tmk_buf_putu64(&b, i);
		tmk_buf_puts(&b, "\",\"op\":\"\",\"stream\":7,\"window\":{\"id\":1,\"opened_on\":0,"
				 "\"status\":\"failed\"," SYSTEM ",\"start_ns\":");
		tmk_buf_putu64(&b, i);
		tmk_buf_puts(&b, ",\"end_ns\":");
		tmk_buf_putu64(&b, 4 * n - i);
		tmk_buf_puts(&b, ",\"operations\":999999999,\"depth\":1,\"parent\":1}}\n");
	}
	tmk_buf_puts(&b, FAILED("60000"));
	/* Every count is wrong, and of all the parents only the outermost window's. */
	assert_int_equal(check_bytes(b.data, b.len), n + 1);
	tmk_buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_files_of_ours_are_judged),
		cmocka_unit_test(only_windows_such_as_ours_are_judged),
		cmocka_unit_test(rule_types),
		cmocka_unit_test(rules_method_status_reason_and_error),
		cmocka_unit_test(reasons_go_with_their_status),
		cmocka_unit_test(rule_end),
		cmocka_unit_test(conf41_rule_duration),
		cmocka_unit_test(conf48_device_durations_are_not_held_against_the_host),
		cmocka_unit_test(rule_idle),
		cmocka_unit_test(conf36_rule_parent),
		cmocka_unit_test(a_parent_that_never_ended_holds_any_end),
		cmocka_unit_test(a_parent_may_be_any_window_of_its_id),
		cmocka_unit_test(rule_depth),
		cmocka_unit_test(conf46_rule_operations),
		cmocka_unit_test(late_records_excuse_claims_on_other_lines),
		cmocka_unit_test(conf46_an_end_on_the_edge_may_be_in_or_out),
		cmocka_unit_test(conf46_ends_in_any_order_and_of_any_size),
		cmocka_unit_test(conf40_rule_counts),
		cmocka_unit_test(rules_are_reported_in_the_order_of_lines),
		cmocka_unit_test(broken_rules_are_capped_but_all_are_counted),
		cmocka_unit_test(no_byte_of_a_file_is_reported_raw),
		cmocka_unit_test(what_the_streams_say_breaks_no_rule),
		cmocka_unit_test(each_lie_about_a_window_is_found),
		cmocka_unit_test(every_truncation_is_survived),
		cmocka_unit_test(wounded_texts_are_survived),
		cmocka_unit_test(hostile_numbers_of_lines_take_no_square_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
