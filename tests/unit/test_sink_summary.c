// SPDX-License-Identifier: BSD-2-Clause
/*
 * The summary table: the right numbers in the right order, and nothing of a target raw.
 */
#include "unit/feed.h"

#include <errno.h>

#include "base/report.h"
#include "sink/summary.h"

static const struct feed_who A = { 1, 100, 101 };

struct run {
	struct tmk_sink sink;
	struct feed *f;
	char *text;
	size_t len;
	FILE *out;
};

static int setup(void **state)
{
	struct run *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->out = open_memstream(&r->text, &r->len);
	assert_non_null(r->out);
	assert_int_equal(tmk_summary_new(&r->sink, r->out), 0);
	r->f = feed_new_with(&r->sink);
	assert_int_equal(feed_process(r->f, A, 5, "job"), 0);
	feed_session(r->f, A, 1);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct run *r = *state;

	feed_free(r->f);
	r->sink.ops->free(r->sink.self);
	fclose(r->out);
	free(r->text);
	free(r);
	return 0;
}

/* One operation of `ns` at the site; times do not matter here. */
static void op(struct run *r, uint64_t site, uint64_t ns)
{
	static uint64_t token, now = 1000000000;

	token++;
	feed_begin(r->f, A, 1, token, site, 0, now);
	feed_end(r->f, A, 1, token, 0, 0, now + ns);
	now += ns + 1;
}

static const char *line_of(const struct run *r, const char *start)
{
	static char line[512];
	const char *at = r->text;
	size_t n;

	while (at && strncmp(at, start, strlen(start)))
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	if (!at) {
		fail_msg("no line begins with '%s' in:\n%s", start, r->text);
		return "";
	}
	n = strcspn(at, "\n");
	snprintf(line, sizeof(line), "%.*s", (int)n, at);
	return line;
}

static void has(const struct run *r, const char *part)
{
	if (!strstr(r->text, part))
		fail_msg("'%s' is not in:\n%s", part, r->text);
}

static void hasnt(const struct run *r, const char *part)
{
	if (strstr(r->text, part))
		fail_msg("'%s' is in:\n%s", part, r->text);
}

/* Collapses runs of spaces, so that tests need not count columns. */
static const char *squeezed(const char *s)
{
	static char out[512];
	char *to = out;

	for (; *s; s++)
		if (*s != ' ' || (to > out && to[-1] != ' '))
			*to++ = *s;
	*to = '\0';
	return out;
}

static void the_table(void **state)
{
	struct run *r = *state;

	feed_site(r->f, A, 0x10, "s\nmatmul\n");
	feed_site(r->f, A, 0x20, "s\nadd\n");
	feed_site(r->f, A, 0x30, "other\nmatmul\n"); /* another site, the same operation */
	for (int i = 0; i < 98; i++)
		op(r, i % 2 ? 0x10 : 0x30, 1000);
	op(r, 0x10, 2000);
	op(r, 0x10, 9900000);
	op(r, 0x20, 30000000);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 2000000000);
	/* add: 30 ms of 40 ms; matmul: 98 * 1 us + 2 us + 9.9 ms = 10 ms, sorted behind it. */
	assert_string_equal(squeezed(line_of(r, "operation")),
			    "operation count total share mean p50 p99 max");
	assert_string_equal(squeezed(line_of(r, "add")),
			    "add 1 30.0 ms 75.0 % 30.0 ms 30.0 ms 30.0 ms 30.0 ms");
	assert_true(strstr(r->text, "\nadd") < strstr(r->text, "\nmatmul"));
	/* p50 and p99 may be off by 1.6 %. */
	assert_non_null(
		strstr(squeezed(line_of(r, "matmul")), "matmul 100 10.0 ms 25.0 % 100 µs "));
	assert_non_null(strstr(squeezed(line_of(r, "matmul")), " 9.90 ms"));
	assert_int_equal(tmk_safe_width(line_of(r, "add")), tmk_safe_width(line_of(r, "matmul")));
	assert_string_equal(
		line_of(r, "session"),
		"session 1: job (pid 100), Model::forward, train: stopped; 101 operations");
	has(r, "hits 0 = delivered 0 + lost 0\n");
	hasnt(r, "LOST");
	hasnt(r, "unpaired");
	hasnt(r, "odd");
	hasnt(r, "own cost");
}

enum { STEP = 0x100, LAYER = 0x200 };

/* A window of thread A's own stream; `how` as a program gives it. */
static void window(struct run *r, uint64_t name, uint64_t id, uint64_t start, uint64_t end,
		   uint64_t how)
{
	struct feed_key key = { id, 101 };

	feed_window_start(r->f, A, 1, name, key, 0, start);
	feed_window_end(r->f, A, 1, name, key, how, end);
}

static void windows_and_streams(void **state)
{
	struct run *r = *state;
	struct feed_key on = { 90 | TMK_WINDOW_NAMED, UINT64_MAX };

	feed_site(r->f, A, 0x10, "s\nmatmul\n");
	feed_site(r->f, A, 0x20, "s\nadd\n");
	feed_name(r->f, A, STEP, "step\n");
	feed_name(r->f, A, LAYER, "layer\n");
	feed_window_start(r->f, A, 1, STEP, (struct feed_key){ 1, 101 }, 0, 1000000);
	feed_begin(r->f, A, 1, 1, 0x10, 0, 1000000);
	feed_end(r->f, A, 1, 1, 0, 0, 4000000);
	feed_begin(r->f, A, 1, 2, 0x20, 0, 4000000);
	feed_end(r->f, A, 1, 2, 0, 0, 5000000);
	window(r, LAYER, 2, 6000000, 7000000, TMK_WINDOW_CLOSED);
	feed_window_end(r->f, A, 1, STEP, (struct feed_key){ 1, 101 }, TMK_WINDOW_CLOSED, 9000000);
	window(r, STEP, 3, 10000000, 12000000, TMK_WINDOW_ABANDONED);
	window(r, STEP, 4, 13000000, 13000000, TMK_WINDOW_CLOSED);
	window(r, STEP, 5, 14000000, 15000000, TMK_WINDOW_FAILED);
	window(r, STEP, 6, 20000000, 21000000, TMK_WINDOW_PENDING | TMK_HOW_DEVICE);
	feed_window_resolve(r->f, A, 1, (struct feed_key){ 6, 101 }, 77000000, TMK_WINDOW_CLOSED,
			    22000000);
	feed_window_start(r->f, A, 1, LAYER, on, 0, 30000000);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 40000000);
	assert_string_equal(squeezed(line_of(r, "window ")),
			    "window count mean p50 p99 max abandoned unmeasured idle inside");
	/* Durations of a device's clock are never mixed with the host's. */
	assert_string_equal(squeezed(line_of(r, "step (device)")),
			    "step (device) 1 77.0 ms 77.0 ms 77.0 ms 77.0 ms 0 0 100.0 % -");
	/* Idle: 4 of 8 ms of the closed one, and all of 2 + 1 of those without a duration. */
	assert_string_equal(
		squeezed(line_of(r, "step  ")),
		"step 1 8.00 ms 8.00 ms 8.00 ms 8.00 ms 1 2 63.6 % matmul 75 %, add 25 %");
	assert_string_equal(squeezed(line_of(r, "layer")),
			    "layer 1 1.00 ms 1.00 ms 1.00 ms 1.00 ms 0 0 100.0 % -");
	assert_true(strstr(r->text, "\nstep (device)") < strstr(r->text, "\nstep  "));
	assert_true(strstr(r->text, "\nstep  ") < strstr(r->text, "\nlayer"));
	has(r, "18446744073709551615"); /* the named stream */
	has(r, "; 2 operations, 7 windows");
}

static void no_windows_no_tables(void **state)
{
	struct run *r = *state;

	feed_site(r->f, A, 0x10, "s\nmatmul\n");
	op(r, 0x10, 1000);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 10);
	hasnt(r, "window");
	hasnt(r, "stream");
}

static void hostile_names_of_windows(void **state)
{
	struct run *r = *state;

	feed_name(r->f, A, STEP, "\x1b]0;owned\x07\xff\n");
	window(r, STEP, 1, 10, 20, TMK_WINDOW_CLOSED);
	window(r, STEP, 2, 30, 40, TMK_WINDOW_PENDING | TMK_HOW_DEVICE);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 100);
	for (size_t i = 0; i < r->len; i++)
		assert_true((unsigned char)r->text[i] >= 0x20 || r->text[i] == '\n');
	has(r, "\n?]0;owned??  ");
}

static void many_windows_and_streams(void **state)
{
	struct run *r = *state;
	char name[32];

	for (uint64_t i = 1; i <= 5000; i++) {
		struct feed_key key = { i | TMK_WINDOW_NAMED, i };

		snprintf(name, sizeof(name), "w%llu\n", (unsigned long long)i);
		feed_name(r->f, A, 0x1000 * i, name);
		feed_window_start(r->f, A, 1, 0x1000 * i, key, 0, 1000 * i);
		feed_window_end(r->f, A, 1, 0x1000 * i, key, TMK_WINDOW_CLOSED, 1001 * i);
	}
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 100000000);
	assert_int_equal(r->f->finish.windows.closed, 5000);
	has(r, "(others)");
	has(r, " more");
	assert_true(r->len < 20000); /* a screen or two, not a book */
}

static void nothing_at_all(void **state)
{
	struct run *r = *state;

	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 10);
	hasnt(r, "share");
	has(r, "; 0 operations\n");
}

static void hostile_names(void **state)
{
	struct run *r = *state;

	feed_process(r->f, A, 5, "\x1b[31mjob");
	feed_site(r->f, A, 0x10, "s\n\x1b]0;owned\x07\xff\n");
	op(r, 0x10, 10);
	feed_begin(r->f, A, 1, 1000000, 0x10, 0, 5);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 1005);
	for (size_t i = 0; i < r->len; i++)
		assert_true((unsigned char)r->text[i] >= 0x20 || r->text[i] == '\n');
	has(r, "\n?]0;owned??  ");
	has(r, "?[31mjob (pid 100)");
	has(r,
	    "unfinished: ?]0;owned?? (pid 100, thread 101), begun 1.00 µs before the end: stopped");
}

static void long_names_are_cut_for_the_screen(void **state)
{
	struct run *r = *state;
	char site[256] = "s\n";

	for (int i = 0; i < 50; i++)
		strcat(site, "é");
	strcat(site, "\n");
	feed_site(r->f, A, 0x10, site);
	op(r, 0x10, 10);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 10);
	site[2 + 2 * 39] = '\0';
	strcat(site, "…  ");
	has(r, site + 2);
}

static void many_names(void **state)
{
	struct run *r = *state;
	char site[32];

	/* 5000 names; the k-th takes k ns. 4095 have a row of their own, the rest share one. */
	for (uint64_t i = 1; i <= 5000; i++) {
		snprintf(site, sizeof(site), "s\nname%llu\n", (unsigned long long)i);
		feed_site(r->f, A, 0x1000 * i, site);
		op(r, 0x1000 * i, i);
	}
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 10);
	assert_non_null(strstr(squeezed(line_of(r, "(others)")), "(others) 905 "));
	has(r, "\nname4095 ");
	has(r, "\nname4057 ");
	hasnt(r, "\nname4056 ");
	has(r, "\n… and 4056 more\n");
}

static void loss(void **state)
{
	struct run *r = *state;
	struct tmk_rec_end end = feed_end_record(TMK_CAPTURE_DETACHED, 3000000000);

	end.start_ns = 1000000000;
	end.hits[TMK_REC_OP_BEGIN] = 12345;
	end.delivered[TMK_REC_OP_BEGIN] = 12000;
	end.lost[TMK_REC_OP_BEGIN][TMK_LOST_RING_FULL] = 300;
	end.lost[TMK_REC_OP_BEGIN][TMK_LOST_RECURSION] = 45;
	end.hit_cost_ns = 1000;
	feed_end(r->f, A, 1, 7, 0, 0, 10);
	feed_begin(r->f, A, 9, 7, 0, 0, 10);
	feed_rec(r->f, &end);
	has(r, "hits 12,345 = delivered 12,000 + lost 345\n");
	has(r, "LOST: ring full 300, recursion 45;");
	has(r, "unpaired: end_without_begin 1, no_session 1\n");
	has(r, "own cost: about 1.00 µs a hit, 12.3 ms in all in 2.00 s\n");
	hasnt(r, "DISAGREE");
}

static void counters_that_disagree(void **state)
{
	struct run *r = *state;
	struct tmk_rec_end end = feed_end_record(TMK_CAPTURE_DETACHED, 300);

	end.hits[TMK_REC_OP_END] = 5;
	end.delivered[TMK_REC_OP_END] = 3;
	end.lost[TMK_REC_OP_END][TMK_LOST_INVALID] = 1;
	feed_rec(r->f, &end);
	has(r, "THE COUNTERS DISAGREE");
	has(r, "op_end: 5 hits, but 3 delivered and 1 lost\n");
}

static void cut_short(void **state)
{
	struct run *r = *state;

	assert_int_equal(tmk_assembler_cut_short(r->f->a, 0, 0), 0);
	has(r, "CUT SHORT");
	hasnt(r, "hits");
}

static void exits_and_unfinished(void **state)
{
	struct run *r = *state;

	feed_site(r->f, A, 0x10, "s\nstuck\n");
	for (uint64_t i = 1; i <= 12; i++)
		feed_begin(r->f, A, 1, i, 0x10, 0, 1000 * i);
	feed_gone(r->f, A, 20000, true, 9); /* as waitpid(2) gives it: signal 9 */
	feed_capture_end(r->f, TMK_CAPTURE_TARGET_GONE, 31000);
	has(r, ": target_gone, killed by signal 9; 0 operations, 12 unfinished\n");
	has(r,
	    "unfinished: stuck (pid 100, thread 101), begun 30.0 µs before the end: target_gone\n");
	has(r, "\n… and 4 more unfinished\n");
}

static void a_stream_that_cannot_be_written(void **state)
{
	struct tmk_sink sink;
	FILE *full = fopen("/dev/full", "w");
	struct feed *f;

	(void)state;
	assert_int_equal(tmk_summary_new(&sink, full), 0);
	f = feed_new_with(&sink);
	assert_int_equal(feed_capture_end(f, TMK_CAPTURE_STOPPED, 10), -ENOSPC);
	feed_free(f);
	sink.ops->free(sink.self);
	fclose(full);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_table),
		TEST(windows_and_streams),
		TEST(no_windows_no_tables),
		TEST(hostile_names_of_windows),
		TEST(many_windows_and_streams),
		TEST(nothing_at_all),
		TEST(hostile_names),
		TEST(long_names_are_cut_for_the_screen),
		TEST(many_names),
		TEST(loss),
		TEST(counters_that_disagree),
		TEST(cut_short),
		TEST(exits_and_unfinished),
		cmocka_unit_test(a_stream_that_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
