// SPDX-License-Identifier: BSD-2-Clause
/*
 * The runtime/3 file sink, driven by the assembler: what is in the files, which files there are, and
 * what happens when they cannot be written.
 */
#include "unit/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/report.h"
#include "runtime3/check.h"
#include "sink/runtime3_file.h"

static const struct feed_who A = { 1, 100, 101 }, B = { 2, 200, 201 };

enum { SITE = 0x10, SITE2 = 0x20, NAME = 0x30, EDGE = 0x40 };

static char dir[64];

struct run {
	struct tmk_out_path path;
	struct tmk_sink sink;
	struct feed *f;
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/tickmark-test-sink.XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *in_dir(const char *name)
{
	static char path[4][256];
	static int next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof(path[next]), "%s/%s", dir, name);
	return path[next];
}

static struct run *run_new(const char *out, const struct tmk_runtime3_file_options *options)
{
	struct run *r = calloc(1, sizeof(*r));
	char why[256] = "";

	assert_non_null(r);
	if (tmk_out_path_init(&r->path, out, why, sizeof(why)))
		fail_msg("%s: %s", out, why);
	assert_int_equal(tmk_runtime3_file_new(&r->sink, &r->path, options), 0);
	r->f = feed_new_with(&r->sink);
	return r;
}

static void run_free(struct run *r)
{
	feed_free(r->f);
	r->sink.ops->free(r->sink.self);
	tmk_out_path_free(&r->path);
	free(r);
}

static char *file_read(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *text;

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(fstat(fd, &st), 0);
	text = malloc((size_t)st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
	text[st.st_size] = '\0';
	close(fd);
	if (len)
		*len = (size_t)st.st_size;
	return text;
}

static void report(void *ctx, uint64_t line, const char *text)
{
	(void)ctx;
	print_error("line %llu: %s\n", (unsigned long long)line, text);
}

/* conf25: the importer's rules hold for every file that a test here writes. */
static struct tmk_check_counts file_check(const char *path)
{
	struct tmk_check_counts counts;
	size_t len;
	char *text = file_read(path, &len);

	assert_int_equal(tmk_check_memory(text, len, report, NULL, 10, &counts), 0);
	free(text);
	return counts;
}

static void file_expect(const char *path, const char *expected)
{
	char *text = file_read(path, NULL);

	assert_string_equal(text, expected);
	free(text);
}

/* The calls that profile_session.jsonl was written by, as marks. */
static void profile_session_feed(struct feed *f)
{
	feed_process(f, A, 100, "job");
	feed_describe_text(f, A, 0x99, 1, TMK_DESC_SESSION,
			   TMK_DESC_HAS_ANALYSIS_ID | TMK_DESC_HAS_BUILD_ID,
			   "Model::forward\ntrain\nrelease\nanalysis:test\n"
			   "candle-graph/build/1:0123456789abcdef\ncuda\na\"b\n");
	feed_site(f, A, SITE,
		  "operation:train:Model::forward:0\nmatmul\nx\n"
		  "y\x01\t\x7f\xe2\x80\xa8\xc3\xa9\xf0\x9f\x98\x80/\\\"\n");
	feed_site(f, A, SITE2, "\n\n");
	feed_name(f, A, NAME, "out\n");
	feed_edge_site(f, A, EDGE, "tensor:a\noperation:b\n");
	feed_begin(f, A, 1, 1, SITE, 0, 1000);
	feed_edge(f, A, 1, EDGE, 0, UINT64_MAX, 2000);
	feed_begin(f, A, 1, 2, SITE2, 4, 3000);
	feed_end(f, A, 1, 1, NAME, 4, 7838);
	feed_end(f, A, 1, 2, 0, 4, 13506);
	feed_marker(f, A, TMK_REC_SESSION_FINISH, 1, 14000);
}

/* The bytes of the real ProfileSession for these calls; the durations are those above. */
static const char profile_session[] =
	"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"Model::forward\","
	"\"profile\":\"release\",\"cargo_features\":[\"cuda\",\"a\\\"b\"],\"cfg\":[],\"analysis_id\":"
	"\"analysis:test\",\"build_id\":\"candle-graph/build/1:0123456789abcdef\",\"phase\":\"train\"}\n"
	"{\"kind\":\"edge_timing\",\"event_id\":\"train-edge-0-2\",\"from_static_id\":\"tensor:a\","
	"\"to_static_id\":\"operation:b\",\"duration_ns\":18446744073709551615,\"step\":0}\n"
	"{\"kind\":\"operation\",\"event_id\":\"train-op-0-1\",\"op\":\"matmul\",\"static_id\":"
	"\"operation:train:Model::forward:0\",\"inputs\":[\"x\",\"y\\u0001\\t\x7f\xe2\x80\xa8\xc3\xa9"
	"\xf0\x9f\x98\x80/\\\\\\\"\"],\"output\":\"out\",\"step\":4,\"duration_ns\":6838}\n"
	"{\"kind\":\"operation\",\"event_id\":\"train-op-4-3\",\"op\":\"\",\"static_id\":\"\","
	"\"inputs\":[],\"step\":4,\"duration_ns\":10506}\n";

static void conf30_strict_gives_profile_sessions_bytes(void **state)
{
	const struct tmk_runtime3_file_options strict = { .strict = true };
	struct run *r = run_new(in_dir("s.jsonl"), &strict);

	(void)state;
	profile_session_feed(r->f);
	assert_int_equal(feed_capture_end(r->f, TMK_CAPTURE_COMPLETE, 20000), 0);
	run_free(r);
	file_expect(in_dir("s.jsonl"), profile_session);
	file_check(in_dir("s.jsonl"));
}

/* Own fields follow the base fields, so a line without them is ProfileSession's. */
static void conf29_own_fields_come_last(void **state)
{
	struct run *r = run_new(in_dir("s.jsonl"), NULL);
	const char *expected = profile_session, *got;
	char *text;
	int lines = 0;

	(void)state;
	profile_session_feed(r->f);
	assert_int_equal(feed_capture_end(r->f, TMK_CAPTURE_COMPLETE, 20000), 0);
	run_free(r);
	assert_true(file_check(in_dir("s.jsonl")).has_capture);
	text = file_read(in_dir("s.jsonl"), NULL);
	for (got = text; *expected; lines++) {
		size_t base = strcspn(expected, "\n") - 1; /* without the closing brace */

		assert_memory_equal(got, expected, base);
		if (lines)
			assert_memory_equal(got + base, ",\"start_ns\":", 12);
		else
			assert_memory_equal(got + base, "}\n", 2);
		expected += base + 2;
		got = strchr(got, '\n') + 1;
	}
	assert_int_equal(lines, 4);
	/* One more line: the capture record. */
	assert_non_null(strstr(got, "{\"kind\":\"operation\",\"event_id\":\"capture\""));
	assert_string_equal(strchr(got, '\n'), "\n");
	free(text);
}

static void capture_line(void **state)
{
	struct run *r = run_new(in_dir("c.jsonl"), NULL);
	struct tmk_rec_end end = feed_end_record(TMK_CAPTURE_DETACHED, 900);
	char *text;

	(void)state;
	feed_process(r->f, A, 100, "jo\x1b\xff");
	feed_session(r->f, A, 1);
	feed_end(r->f, A, 1, 1, 0, 0, 10);
	end.start_ns = 5;
	end.real_start_ns = 1005;
	end.mono_end_ns = 899;
	end.real_end_ns = 1899;
	end.hit_cost_ns = 300;
	end.hits[TMK_REC_OP_END] = 3;
	end.delivered[TMK_REC_OP_END] = 1;
	end.lost[TMK_REC_OP_END][TMK_LOST_RING_FULL] = 2;
	end.hits[TMK_REC_SESSION_OPEN] = end.delivered[TMK_REC_SESSION_OPEN] = 1;
	assert_int_equal(feed_rec(r->f, &end), 0);
	run_free(r);
	file_check(in_dir("c.jsonl"));
	text = file_read(in_dir("c.jsonl"), NULL);
	assert_string_equal(
		strchr(text, '\n') + 1,
		"{\"kind\":\"operation\",\"event_id\":\"capture\",\"op\":\"capture\",\"inputs\":[],"
		"\"capture\":{\"status\":\"detached\",\"source\":\"traced\",\"start_ns\":5,\"end_ns\":900,"
		"\"clock\":{\"id\":\"CLOCK_MONOTONIC\",\"anchors\":[{\"monotonic_ns\":5,\"realtime_ns\":"
		"1005},{\"monotonic_ns\":899,\"realtime_ns\":1899}]},\"pid\":100,\"comm\":"
		"\"jo\\u001b\xef\xbf\xbd\",\"operations\":0,\"edges\":0,\"unfinished\":0,\"truncated\":0,"
		"\"hits\":{\"session_open\":1,\"op_end\":3},\"delivered\":{\"session_open\":1,"
		"\"op_end\":1},\"lost\":{\"ring_full\":2,\"recursion\":0,\"invalid\":0},\"unpaired\":{"
		"\"end_without_begin\":1,\"repeated_end\":0,\"begin_reused\":0,\"open_overflow\":0},"
		"\"overhead\":{\"hit_ns\":300,\"hits_total_ns\":1200}}}\n");
	free(text);
}

static void windows_feed(struct feed *f)
{
	struct feed_key on = { 7 | TMK_WINDOW_NAMED, UINT64_MAX }, own = { 8, 101 },
			lost = { 9, 1 };

	feed_process(f, A, 100, "job");
	feed_session(f, A, 1);
	feed_site(f, A, SITE, "static:1\nmatmul\n");
	feed_name(f, A, NAME, "tok\x1b\xff\n");
	feed_window_start(f, A, 1, NAME, on, 3, 100);
	feed_op_begin_on(f, A, 1, 1, SITE, UINT64_MAX, 110);
	feed_end(f, A, 1, 1 | TMK_TOKEN_NAMED, 0, 0, 130);
	feed_window_start(f, A, 1, NAME, own, 3, 140);
	feed_window_end(f, (struct feed_who){ 1, 100, 102 }, 1, NAME, own,
			TMK_WINDOW_PENDING | TMK_HOW_DEVICE | TMK_HOW_FLUSH, 160);
	feed_window_end(f, A, 1, NAME, on, TMK_WINDOW_CLOSED, 200);
	feed_window_resolve(f, A, 1, own, 5000, TMK_WINDOW_CLOSED, 210);
	feed_window_end(f, A, 1, NAME, lost, TMK_WINDOW_CLOSED, 220);
}

static void window_lines(void **state)
{
	struct run *r = run_new(in_dir("w.jsonl"), NULL);
	char *text, *at;

	(void)state;
	windows_feed(r->f);
	assert_int_equal(feed_capture_end(r->f, TMK_CAPTURE_DETACHED, 900), 0);
	run_free(r);
	file_check(in_dir("w.jsonl"));
	text = file_read(in_dir("w.jsonl"), NULL);
	at = strstr(text, "{\"kind\":\"operation\",\"event_id\":\"train-window");
	assert_non_null(at);
	*strstr(at, "{\"kind\":\"operation\",\"event_id\":\"capture") = '\0';
	assert_string_equal(
		at, "{\"kind\":\"operation\",\"event_id\":\"train-window-3-1\",\"op\":\"tok\\u001b"
		    "\xef\xbf\xbd\",\"inputs\":[],\"step\":3,\"pid\":100,\"tid\":101,\"stream\":184"
		    "46744073709551615,\"named\":true,\"window\":{\"id\":4503599627370503,\"opened_"
		    "on\":18446744073709551615,\"start_ns\":100,\"end_ns\":200,\"duration_ns\":100,"
		    "\"method\":\"system\",\"status\":\"closed\",\"depth\":0,\"overlaps\":0,\"flush"
		    "\":false,\"operations\":1,\"idle_ns\":80}}\n"
		    "{\"kind\":\"operation\",\"event_id\":\"train-window-3-2\",\"op\":\"tok\\u001b"
		    "\xef\xbf\xbd\",\"inputs\":[],\"step\":3,\"pid\":100,\"tid\":101,\"stream\":101"
		    ",\"end_tid\":102,\"window\":{\"id\":8,\"opened_on\":101,\"start_ns\":140,\"end"
		    "_ns\":160,\"duration_ns\":5000,\"method\":\"device\",\"status\":\"closed\",\"d"
		    "epth\":0,\"overlaps\":0,\"flush\":true,\"operations\":0,\"idle_ns\":20}}\n"
		    "{\"kind\":\"operation\",\"event_id\":\"train-window-0-3\",\"op\":\"tok\\u001b"
		    "\xef\xbf\xbd\",\"inputs\":[],\"step\":0,\"pid\":100,\"end_tid\":101,\"window\""
		    ":{\"id\":9,\"opened_on\":1,\"end_ns\":220,\"method\":\"system\",\"status\":\"n"
		    "ot_measured\",\"reason\":\"opened_before_capture\",\"flush\":false}}\n");
	free(text);
}

/* A strict file is ProfileSession's, which knows no windows. */
static void conf30_strict_has_no_windows(void **state)
{
	const struct tmk_runtime3_file_options strict = { .strict = true };
	struct run *r = run_new(in_dir("w.jsonl"), &strict);
	char *text;

	(void)state;
	windows_feed(r->f);
	assert_int_equal(feed_capture_end(r->f, TMK_CAPTURE_DETACHED, 900), 0);
	run_free(r);
	assert_int_equal(file_check(in_dir("w.jsonl")).operations, 1);
	text = file_read(in_dir("w.jsonl"), NULL);
	assert_null(strstr(text, "window"));
	free(text);
}

static void capture_line_counts_windows(void **state)
{
	struct run *r = run_new(in_dir("w.jsonl"), NULL);
	char *text;

	(void)state;
	windows_feed(r->f);
	assert_int_equal(feed_capture_end(r->f, TMK_CAPTURE_DETACHED, 900), 0);
	run_free(r);
	text = file_read(in_dir("w.jsonl"), NULL);
	assert_non_null(strstr(text,
			       "\"unfinished\":0,\"truncated\":0,\"windows\":{\"closed\":2,"
			       "\"abandoned\":0,\"not_measured\":1,\"failed\":0,\"open\":0}"));
	free(text);
}

/* Without an end record its counters are absent, not zero. */
static void capture_line_of_a_capture_cut_short(void **state)
{
	struct run *r = run_new(in_dir("c.jsonl"), NULL);
	char *text;

	(void)state;
	feed_process(r->f, A, 100, "job");
	feed_session(r->f, A, 1);
	feed_site(r->f, A, SITE, "s\nop\n");
	feed_begin(r->f, A, 1, 1, SITE, 3, 10);
	assert_int_equal(tmk_assembler_cut_short(r->f->a, 0, 0), 0);
	run_free(r);
	assert_int_equal(file_check(in_dir("c.jsonl")).unfinished, 1);
	text = file_read(in_dir("c.jsonl"), NULL);
	assert_non_null(strstr(text, "\"status\":\"failed\""));
	assert_null(strstr(text, "\"hits\""));
	assert_null(strstr(text, "\"delivered\""));
	assert_null(strstr(text, "\"lost\""));
	assert_null(strstr(text, "\"overhead\""));
	assert_non_null(strstr(text, "\"unpaired\""));
	free(text);
}

/* conf49: lines for people carry no duration that an importer could average. */
static void conf49_unfinished_line(void **state)
{
	struct run *r = run_new(in_dir("u.jsonl"), NULL);
	char *text;

	(void)state;
	feed_session(r->f, A, 1);
	feed_site(r->f, A, SITE, "s\nop\nx\n");
	feed_begin(r->f, A, 1, 1, SITE, 3, 10);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 90);
	run_free(r);
	assert_int_equal(file_check(in_dir("u.jsonl")).unfinished, 1);
	text = file_read(in_dir("u.jsonl"), NULL);
	assert_non_null(
		strstr(text, "{\"kind\":\"operation\",\"event_id\":\"train-op-3-1\",\"op\":\"op\","
			     "\"static_id\":\"s\",\"inputs\":[\"x\"],\"step\":3,"));
	assert_non_null(strstr(text, "\"unfinished\":{\"start_ns\":10,\"reason\":\"stopped\""));
	assert_null(strstr(text, "\"duration_ns\""));
	free(text);
}

static void conf08_a_session_without_events(void **state)
{
	static const char dual[] =
		"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"Model::forward\","
		"\"profile\":\"release\",\"cargo_features\":[],\"cfg\":[],\"phase\":\"train\",\"run\":{"
		"\"entrypoint\":\"Model::forward\",\"profile\":\"release\",\"cargo_features\":[],\"cfg\":[],"
		"\"phase\":\"train\"}}\n";
	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		const struct tmk_runtime3_file_options o = { .strict = strict };
		struct run *r = run_new(in_dir("z.jsonl"), &o);

		feed_session(r->f, A, 1);
		/* An unfinished operation is no event of ProfileSession's. */
		feed_begin(r->f, A, 1, 1, SITE, 3, 10);
		feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 90);
		run_free(r);
		file_check(in_dir("z.jsonl"));
		if (strict)
			file_expect(in_dir("z.jsonl"), dual);
	}
}

static void conf07_09_whole_lines_while_it_runs(void **state)
{
	struct run *r = run_new(in_dir("live.jsonl"), NULL);
	char *text;
	size_t len;

	(void)state;
	feed_session(r->f, A, 1);
	feed_site(r->f, A, SITE, "s\nop\n");
	feed_tide(r->f, 5, 0);
	text = file_read(in_dir("live.jsonl"), &len);
	assert_non_null(strstr(text, "\"kind\":\"meta\"")); /* at once */
	free(text);
	for (uint64_t i = 1; i <= 5000; i++) {
		feed_begin(r->f, A, 1, i, SITE, 0, i * 10);
		feed_end(r->f, A, 1, i, 0, 0, i * 10 + 5);
		if (i % 100 == 0) {
			feed_tide(r->f, i * 10 + 5, 0);
			text = file_read(in_dir("live.jsonl"), &len);
			assert_int_equal(text[len - 1], '\n');
			free(text);
		}
	}
	usleep(120000);
	feed_tide(r->f, 60000, 0);
	assert_int_equal(file_check(in_dir("live.jsonl")).operations, 5000);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 90000);
	run_free(r);
	assert_true(file_check(in_dir("live.jsonl")).has_capture);
}

static void conf20_hostile_strings(void **state)
{
	struct run *r = run_new(in_dir("h.jsonl"), NULL);
	char *text;
	size_t len;

	(void)state;
	feed_process(r->f, A, 100, "\x1b[2J\xff\xfe/../x");
	feed_describe_text(r->f, A, 0x99, 1, TMK_DESC_SESSION, 0,
			   "E\x1b\xc3\n\xed\xa0\x80\"\n\\\n");
	feed_site(r->f, A, SITE, "\xff\xfe\nop\x1b]0;t\x07\n\xc0\x80\n\"},{\n");
	feed_name(r->f, A, NAME, "\xf5\x80\x80\x80\n");
	feed_edge_site(r->f, A, EDGE, "\x80\n\xe2\x82\n");
	feed_begin(r->f, A, 1, 1, SITE, 0, 10);
	feed_end(r->f, A, 1, 1, NAME, 0, 20);
	feed_edge(r->f, A, 1, EDGE, 0, 1, 30);
	feed_begin(r->f, A, 1, 2, SITE, 0, 40);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 90);
	run_free(r);
	file_check(in_dir("h.jsonl"));
	text = file_read(in_dir("h.jsonl"), &len);
	for (size_t i = 0; i < len; i++)
		assert_true((unsigned char)text[i] >= 0x20 || text[i] == '\n');
	free(text);
}

static void conf28_a_million_ids(void **state)
{
	const struct tmk_runtime3_file_options strict = { .strict = true };
	struct run *r = run_new(in_dir("m.jsonl"), &strict);
	struct tmk_check_counts counts;

	(void)state;
	feed_session(r->f, A, 1);
	feed_site(r->f, A, SITE, "s\nop\n");
	feed_edge_site(r->f, A, EDGE, "a\nb\n");
	for (uint64_t i = 1; i <= 1000000; i++) {
		feed_begin(r->f, A, 1, i, SITE, i % 3, i * 10);
		feed_end(r->f, A, 1, i, 0, i % 3, i * 10 + 5);
		if (i % 100 == 0)
			feed_edge(r->f, A, 1, EDGE, i % 3, 1, i * 10 + 6);
		if (i % 10000 == 0)
			feed_tide(r->f, i * 10 + 6, 0);
	}
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 90);
	run_free(r);
	counts = file_check(in_dir("m.jsonl"));
	assert_int_equal(counts.operations, 1000000);
	assert_int_equal(counts.edges, 10000);
}

static void conf21_a_file_a_session(void **state)
{
	struct run *r = run_new(in_dir("run.jsonl"), NULL);

	(void)state;
	tmk_report_set_quiet(1);
	feed_session(r->f, A, 1);
	feed_session(r->f, A, 2);
	feed_session(r->f, B, 1);
	feed_site(r->f, A, SITE, "s\nof_a\n");
	feed_site(r->f, B, SITE, "s\nof_b\n");
	for (uint64_t i = 1; i <= 10; i++) {
		feed_begin(r->f, A, 1, i, SITE, 0, i * 10);
		feed_begin(r->f, B, 1, i, SITE, 0, i * 10 + 1);
		feed_end(r->f, A, 1, i, 0, 0, i * 10 + 2);
		feed_end(r->f, B, 1, i, 0, 0, i * 10 + 3);
	}
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 1000);
	tmk_report_set_quiet(0);
	run_free(r);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "run.jsonl", "run.2.jsonl", "run.3.jsonl" };
		char *text = file_read(in_dir(names[i]), NULL);

		assert_int_equal(file_check(in_dir(names[i])).operations, i == 1 ? 0 : 10);
		assert_int_equal(!!strstr(text, "of_a"), i == 0);
		assert_int_equal(!!strstr(text, "of_b"), i == 2);
		assert_int_equal(!!strstr(text, "\"train-op-0-1\""), i != 1);
		assert_null(strstr(text, "\"train-op-0-11\""));
		free(text);
	}
}

static void directory_names(void **state)
{
	static const struct {
		const char *comm, *file;
	} cases[] = {
		{ "job", "job-300-1.jsonl" },
		{ "../../etc/x", "_._.._etc_x-300-1.jsonl" },
		{ "-rf", "_rf-300-1.jsonl" },
		{ ".hidden", "_hidden-300-1.jsonl" },
		{ "", "unnamed-300-1.jsonl" },
		{ "a b\x1b\xff\n", "a_b___-300-1.jsonl" },
		{ "sixteen_bytes_xx", "sixteen_bytes_xx-300-1.jsonl" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run *r = run_new(dir, NULL);
		struct feed_who w = { 3, 300, 300 };

		feed_process(r->f, w, 1, cases[i].comm);
		feed_session(r->f, w, 1);
		feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 10);
		run_free(r);
		file_check(in_dir(cases[i].file));
		assert_int_equal(unlink(in_dir(cases[i].file)), 0);
	}
}

/* The same pid, session id and name, after an exec: still two files. */
static void directory_names_never_collide(void **state)
{
	const struct feed_who first = { 3, 300, 300 }, second = { 4, 300, 300 };
	struct run *r = run_new(in_dir("made/"), NULL); /* and the directory is made */

	(void)state;
	tmk_report_set_quiet(1);
	feed_process(r->f, first, 1, "job");
	feed_session(r->f, first, 1);
	feed_tide(r->f, 5, 0);
	feed_exec(r->f, second, 6);
	feed_process(r->f, second, 1, "job");
	feed_session(r->f, second, 1);
	feed_site(r->f, second, SITE, "s\nop\n");
	feed_begin(r->f, second, 1, 1, SITE, 0, 10);
	feed_end(r->f, second, 1, 1, 0, 0, 11);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 20);
	tmk_report_set_quiet(0);
	run_free(r);
	assert_int_equal(file_check(in_dir("made/job-300-1.jsonl")).operations, 0);
	assert_int_equal(file_check(in_dir("made/job-300-1-2.jsonl")).operations, 1);
}

/* Many more sessions than files may be open, all written in turn. */
static void more_sessions_than_descriptors(void **state)
{
	enum { N = 300, ROUNDS = 3 };
	struct run *r = run_new(dir, NULL);
	struct rlimit old, low;
	char name[64];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	tmk_report_set_quiet(1);
	feed_process(r->f, A, 1, "job");
	for (uint64_t s = 1; s <= N; s++)
		feed_session(r->f, A, s);
	feed_site(r->f, A, SITE, "s\nop\n");
	for (uint64_t i = 0; i < N * ROUNDS; i++) {
		feed_begin(r->f, A, i % N + 1, i + 1, SITE, i, 100 + i * 10);
		feed_end(r->f, A, i % N + 1, i + 1, 0, i, 105 + i * 10);
	}
	assert_int_equal(feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 100000), 0);
	tmk_report_set_quiet(0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	run_free(r);
	for (uint64_t s = 1; s <= N; s++) {
		struct tmk_check_counts counts;
		char *text, id[64];

		snprintf(name, sizeof(name), "job-100-%llu.jsonl", (unsigned long long)s);
		counts = file_check(in_dir(name));
		assert_int_equal(counts.operations, ROUNDS);
		assert_true(counts.has_capture);
		text = file_read(in_dir(name), NULL);
		for (uint64_t k = 0; k < ROUNDS; k++) {
			snprintf(id, sizeof(id), "\"train-op-%llu-%llu\"", s - 1ull + k * N,
				 (unsigned long long)k + 1);
			assert_non_null(strstr(text, id));
		}
		free(text);
	}
}

/* Text that the sink says on stderr, in f. */
static char said[4096];

static void stderr_catch(int *old)
{
	fflush(stderr);
	*old = dup(STDERR_FILENO);
	int fd = open(in_dir("stderr"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	dup2(fd, STDERR_FILENO);
	close(fd);
}

static void stderr_release(int old)
{
	char *text;

	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	text = file_read(in_dir("stderr"), NULL);
	snprintf(said, sizeof(said), "%s", text);
	free(text);
}

static int session_write(const char *out, const struct tmk_runtime3_file_options *o, uint64_t n)
{
	struct run *r = run_new(out, o);
	int old, err;

	stderr_catch(&old);
	feed_process(r->f, A, 1, "job");
	feed_session(r->f, A, 1);
	feed_site(r->f, A, SITE, "s\nop\n");
	for (uint64_t i = 1; i <= n; i++) {
		feed_begin(r->f, A, 1, i, SITE, 0, i * 10);
		feed_end(r->f, A, 1, i, 0, 0, i * 10 + 5);
	}
	err = feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 1000000);
	stderr_release(old);
	run_free(r);
	return err;
}

static void conf33_no_space_at_the_first_write(void **state)
{
	(void)state;
	assert_int_equal(session_write("/dev/full", NULL, 10), -ENOSPC);
	assert_string_equal(said,
			    "tickmark: /dev/full: cannot be written: No space left on device; "
			    "free some space, or give another -o\n");
}

static void conf33_a_later_write_fails(void **state)
{
	const size_t limit = 300007;
	struct rlimit old, low;
	struct tmk_check_counts counts;
	size_t len;
	char *text;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = old;
	low.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(session_write(in_dir("full.jsonl"), NULL, 10000), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(said, "full.jsonl: cannot be written: File too large"));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* said once */
	counts = file_check(in_dir("full.jsonl"));
	assert_false(counts.has_capture); /* it was cut short, and does not claim otherwise */
	text = file_read(in_dir("full.jsonl"), &len);
	assert_in_range(len, limit - 200, limit);
	assert_int_equal(text[len - 1], '\n');
	free(text);
}

static void the_input_is_not_overwritten(void **state)
{
	struct tmk_runtime3_file_options o = { .has_avoid = true };
	FILE *f = fopen(in_dir("in"), "w");
	struct stat st;

	(void)state;
	fputs("precious", f);
	fclose(f);
	assert_int_equal(stat(in_dir("in"), &st), 0);
	assert_int_equal(symlink(in_dir("in"), in_dir("link")), 0);
	o.avoid_dev = st.st_dev;
	o.avoid_ino = st.st_ino;
	assert_int_equal(session_write(in_dir("in"), &o, 1), -EDEADLK);
	assert_non_null(strstr(said, "it is the input"));
	assert_int_equal(session_write(in_dir("link"), &o, 1), -EDEADLK);
	file_expect(in_dir("in"), "precious");
}

/* In a directory that others can write, names can be foreseen, and something planted there. */
static void planted_files_are_not_followed(void **state)
{
	static const char name[] = "job-100-1.jsonl";
	FILE *f = fopen(in_dir("victim"), "w");

	(void)state;
	fputs("precious", f);
	fclose(f);
	assert_int_equal(symlink(in_dir("victim"), in_dir(name)), 0);
	assert_int_equal(session_write(dir, NULL, 1), -ELOOP);
	unlink(in_dir(name));
	assert_int_equal(link(in_dir("victim"), in_dir(name)), 0);
	assert_int_equal(session_write(dir, NULL, 1), -EMLINK);
	unlink(in_dir(name));
	file_expect(in_dir("victim"), "precious");
	assert_int_equal(mkfifo(in_dir(name), 0600), 0);
	assert_true(session_write(dir, NULL, 1) < 0); /* and it does not wait for a reader */
	unlink(in_dir(name));
	assert_int_equal(session_write(dir, NULL, 1), 0);
	/* The file that the user named may be a link. */
	unlink(in_dir("victim"));
	assert_int_equal(symlink(in_dir("victim"), in_dir("link")), 0);
	assert_int_equal(session_write(in_dir("link"), NULL, 1), 0);
	file_check(in_dir("victim"));
}

static void paths_are_checked_beforehand(void **state)
{
	static const struct {
		const char *arg, *why;
	} cases[] = {
		{ "", "empty" },
		{ "/nonexistent/dir/x.jsonl", "its directory does not exist; create it first" },
		{ "/nonexistent/dir/", "the directory above it does not exist" },
		{ "/dev/null/x.jsonl", "give another -o" },
		{ "/dev/null/", "not a directory" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tmk_out_path p;
		char why[256] = "";

		assert_true(tmk_out_path_init(&p, cases[i].arg, why, sizeof(why)) < 0);
		if (!strstr(why, cases[i].why))
			fail_msg("%s: '%s' does not say '%s'", cases[i].arg, why, cases[i].why);
	}
}

static void numbered_names(void **state)
{
	static const struct {
		const char *base, *second;
	} cases[] = {
		{ "run.jsonl", "run.2.jsonl" }, { "run", "run.2" },
		{ "a.b/run", "a.b/run.2" },	{ "x/.hidden", "x/.hidden.2" },
		{ "run.a.b", "run.a.2.b" },
	};
	struct tmk_session_view s = { .index = 1, .comm = "" };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tmk_out_path p = { .mode = TMK_OUT_FILE, .base = (char *)cases[i].base };
		char *path;

		s.index = 1;
		path = tmk_out_path_session(&p, &s, 0);
		assert_string_equal(path, cases[i].second);
		free(path);
		s.index = 0;
		path = tmk_out_path_session(&p, &s, 0);
		assert_string_equal(path, cases[i].base);
		free(path);
	}
}

static void standard_output_holds_one_session(void **state)
{
	struct run *r = run_new("-", NULL);
	int fd = open(in_dir("out"), O_RDWR | O_CREAT | O_TRUNC, 0600), old;

	(void)state;
	fflush(stdout);
	old = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	close(fd);
	tmk_report_set_quiet(1);
	for (uint64_t s = 1; s <= 3; s++)
		feed_session(r->f, A, s);
	feed_site(r->f, A, SITE, "s\nop\n");
	feed_begin(r->f, A, 2, 1, SITE, 0, 10);
	feed_end(r->f, A, 2, 1, 0, 0, 20);
	feed_begin(r->f, A, 1, 1, SITE, 0, 30);
	feed_end(r->f, A, 1, 1, 0, 0, 40);
	feed_capture_end(r->f, TMK_CAPTURE_STOPPED, 100);
	tmk_report_set_quiet(0);
	assert_int_equal(tmk_runtime3_file_skipped(&r->sink), 2);
	run_free(r);
	/* Still open: the sink wrote a copy of the descriptor. */
	assert_int_equal(write(STDOUT_FILENO, "", 0), 0);
	dup2(old, STDOUT_FILENO);
	close(old);
	assert_int_equal(file_check(in_dir("out")).operations, 1);
}

static void discard_removes_what_was_written(void **state)
{
	struct run *r = run_new(in_dir("d.jsonl"), NULL);

	(void)state;
	tmk_report_set_quiet(1);
	feed_session(r->f, A, 1);
	feed_session(r->f, A, 2);
	feed_tide(r->f, 10, 0);
	tmk_report_set_quiet(0);
	assert_int_equal(access(in_dir("d.jsonl"), F_OK), 0);
	/* Somebody else's by now. */
	assert_int_equal(rename(in_dir("d.2.jsonl"), in_dir("moved")), 0);
	fclose(fopen(in_dir("d.2.jsonl"), "w"));
	tmk_runtime3_file_discard(&r->sink);
	assert_int_equal(access(in_dir("d.jsonl"), F_OK), -1);
	assert_int_equal(access(in_dir("d.2.jsonl"), F_OK), 0);
	run_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(conf30_strict_gives_profile_sessions_bytes),
		TEST(conf29_own_fields_come_last),
		TEST(capture_line),
		TEST(window_lines),
		TEST(conf30_strict_has_no_windows),
		TEST(capture_line_counts_windows),
		TEST(capture_line_of_a_capture_cut_short),
		TEST(conf49_unfinished_line),
		TEST(conf08_a_session_without_events),
		TEST(conf07_09_whole_lines_while_it_runs),
		TEST(conf20_hostile_strings),
		TEST(conf28_a_million_ids),
		TEST(conf21_a_file_a_session),
		TEST(directory_names),
		TEST(directory_names_never_collide),
		TEST(more_sessions_than_descriptors),
		TEST(conf33_no_space_at_the_first_write),
		TEST(conf33_a_later_write_fails),
		TEST(the_input_is_not_overwritten),
		TEST(planted_files_are_not_followed),
		TEST(paths_are_checked_beforehand),
		TEST(numbered_names),
		TEST(standard_output_holds_one_session),
		TEST(discard_removes_what_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
