// SPDX-License-Identifier: BSD-2-Clause
/*
 * The assembler's windows: what closes them, what lies inside, and what becomes of them. Tests are named
 * by the statement they hold the assembler to. That any mixture of all this comes out right is
 * test_window_model.c's.
 */
#include "unit/feed.h"

#include "assemble/windows.h"
#include "base/report.h"

static const struct feed_who A = { 1, 100, 101 }; /* incarnation, process, thread */
static const struct feed_who A2 = { 1, 100, 102 };
static const struct feed_who A3 = { 1, 100, 103 };
static const struct feed_who B = { 2, 200, 201 };

enum { SITE = 0x10, OTHER_SITE = 0x20, STEP = 0x30, LAYER = 0x40 };

/* Window i of thread A's own stream, and of a stream that the program named. */
static struct feed_key own(uint64_t i)
{
	return (struct feed_key){ i, 101 };
}

static struct feed_key on(uint64_t stream, uint64_t i)
{
	return (struct feed_key){ i | TMK_WINDOW_NAMED, stream };
}

static int setup(void **state)
{
	struct feed *f = feed_new();

	assert_int_equal(feed_process(f, A, 5, "job"), 0);
	feed_session(f, A, 1);
	feed_site(f, A, SITE, "static:1\nmatmul\nx\ny\n");
	feed_site(f, A, OTHER_SITE, "static:2\nadd\n");
	feed_name(f, A, STEP, "step\n");
	feed_name(f, A, LAYER, "layer\n");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	feed_free(*state);
	return 0;
}

static void start(struct feed *f, struct feed_who w, struct feed_key key, uint64_t time)
{
	assert_int_equal(feed_window_start(f, w, 1, STEP, key, 3, time), 0);
}

static void end(struct feed *f, struct feed_who w, struct feed_key key, uint64_t how, uint64_t time)
{
	assert_int_equal(feed_window_end(f, w, 1, STEP, key, how, time), 0);
}

static void close_at(struct feed *f, struct feed_who w, struct feed_key key, uint64_t time)
{
	end(f, w, key, TMK_WINDOW_CLOSED, time);
}

static void resolve(struct feed *f, struct feed_who w, struct feed_key key, uint64_t duration,
		    uint64_t how, uint64_t time)
{
	assert_int_equal(feed_window_resolve(f, w, 1, key, duration, how, time), 0);
}

/* An operation on A's own stream. */
static void op(struct feed *f, uint64_t token, uint64_t begin, uint64_t end_at)
{
	feed_begin(f, A, 1, token, SITE, 0, begin);
	feed_end(f, A, 1, token, 0, 0, end_at);
}

static const struct feed_window *only(const struct feed *f)
{
	assert_int_equal(f->n_windows, 1);
	return &f->windows[0];
}

#define closed_with(win, ns)                               \
	do {                                               \
		const struct feed_window *w_ = (win);      \
                                                           \
		assert_string_equal(w_->status, "closed"); \
		assert_string_equal(w_->reason, "");       \
		assert_true(w_->w.has_duration);           \
		assert_int_equal(w_->w.duration_ns, (ns)); \
	} while (0)

#define without_duration(win, status_, reason_)             \
	do {                                                \
		const struct feed_window *w_ = (win);       \
                                                            \
		assert_string_equal(w_->status, (status_)); \
		assert_string_equal(w_->reason, (reason_)); \
		assert_false(w_->w.has_duration);           \
		assert_int_equal(w_->w.duration_ns, 0);     \
	} while (0)

static void the_fields_of_a_window(void **state)
{
	struct feed *f = *state;
	const struct feed_window *w;

	start(f, A, own(1), 10);
	end(f, A, own(1), TMK_WINDOW_CLOSED | TMK_HOW_FLUSH, 30);
	feed_tide(f, 100, 0);
	w = only(f);
	closed_with(w, 20);
	assert_string_equal(w->name, "step");
	assert_int_equal(w->w.n, 1);
	assert_int_equal(w->w.step, 3);
	assert_int_equal(w->w.id, 1);
	assert_int_equal(w->w.opened_on, 101);
	assert_int_equal(w->w.pid, 100);
	assert_int_equal(w->w.tid, 101);
	assert_int_equal(w->w.end_tid, 101);
	assert_true(w->w.has_stream && !w->w.named);
	assert_int_equal(w->w.stream, 101);
	assert_true(w->w.has_start && w->w.has_end);
	assert_int_equal(w->w.start_ns, 10);
	assert_int_equal(w->w.end_ns, 30);
	assert_false(w->w.device);
	assert_true(w->w.flush);
	assert_true(w->w.has_place && !w->w.has_parent);
	assert_int_equal(w->w.depth, 0);
	assert_int_equal(w->w.overlaps, 0);
	assert_true(w->w.has_operations && w->w.has_idle);
	assert_int_equal(w->w.operations, 0);
	assert_int_equal(w->w.idle_ns, 20);
	assert_false(w->w.incomplete);
}

/* A key is (session, opened_on, id): equal ids on two streams, in two sessions, in two processes. */
static void conf34_equal_ids_do_not_cross(void **state)
{
	struct feed *f = *state;
	const struct feed_window *w = f->windows;

	feed_session(f, A, 2);
	feed_session(f, B, 1);
	start(f, A, on(4, 1), 10);
	start(f, A, on(5, 1), 20);
	start(f, A, (struct feed_key){ 1, 4 }, 30); /* a thread's own stream of the same number */
	feed_window_start(f, A, 2, STEP, on(4, 1), 0, 40);
	feed_window_start(f, B, 1, STEP, on(4, 1), 0, 50);
	close_at(f, A, on(4, 1), 111);
	close_at(f, A, on(5, 1), 122);
	close_at(f, A, (struct feed_key){ 1, 4 }, 133);
	feed_window_end(f, A, 2, STEP, on(4, 1), TMK_WINDOW_CLOSED, 144);
	feed_window_end(f, B, 1, STEP, on(4, 1), TMK_WINDOW_CLOSED, 155);
	feed_tide(f, 200, 0);
	assert_int_equal(f->n_windows, 5);
	closed_with(&w[0], 101);
	closed_with(&w[1], 102);
	closed_with(&w[2], 103);
	closed_with(&w[3], 104);
	closed_with(&w[4], 105);
	assert_int_equal(w[3].session, 1);
	assert_int_equal(w[4].session, 2);
	for (int i = 0; i < 5; i++)
		assert_true(w[i].w.depth == 0 && w[i].w.overlaps == 0);
}

/* Ids and stream numbers are any 64 bits. */
static void conf34_keys_are_any_bits(void **state)
{
	struct feed *f = *state;
	static const struct feed_key keys[] = {
		{ 0, 0 },
		{ UINT64_MAX, UINT64_MAX },
		{ UINT64_MAX & ~TMK_WINDOW_NAMED, UINT64_MAX },
		{ 1ull << 63, 1ull << 63 },
		{ 0, UINT64_MAX },
		{ UINT64_MAX, 0 },
	};
	const size_t n = sizeof(keys) / sizeof(keys[0]);

	for (size_t i = 0; i < n; i++)
		start(f, A, keys[i], 10 + i);
	for (size_t i = 0; i < n; i++)
		close_at(f, A, keys[i], 1000 + 10 * i);
	feed_tide(f, 2000, 0);
	assert_int_equal(f->n_windows, n);
	for (size_t i = 0; i < n; i++) {
		closed_with(&f->windows[i], 1000 + 10 * i - (10 + i));
		assert_int_equal(f->windows[i].w.id, keys[i].id);
		assert_int_equal(f->windows[i].w.opened_on, keys[i].opened_on);
	}
}

static void conf35_closed_from_another_thread(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	op(f, 90, 11, 15);
	/* The closer's own stream has operations, too: they are not the window's. */
	feed_begin(f, A2, 1, 91, SITE, 0, 12);
	feed_end(f, A2, 1, 91, 0, 0, 14);
	close_at(f, A2, own(1), 30);
	feed_tide(f, 100, 0);
	closed_with(only(f), 20);
	assert_int_equal(f->windows[0].w.stream, 101);
	assert_int_equal(f->windows[0].w.tid, 101);
	assert_int_equal(f->windows[0].w.end_tid, 102);
	assert_int_equal(f->windows[0].w.operations, 1);
	assert_int_equal(f->windows[0].w.idle_ns, 16);
}

static void conf36_nested(void **state)
{
	struct feed *f = *state;
	const struct feed_window *w = f->windows;

	start(f, A, own(1), 10);
	start(f, A, own(2), 20);
	start(f, A, own(3), 30);
	close_at(f, A, own(3), 40);
	close_at(f, A, own(2), 50);
	start(f, A, own(4), 60);
	close_at(f, A, own(4), 70);
	close_at(f, A, own(1), 80);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 4);
	closed_with(&w[0], 10); /* 3 */
	closed_with(&w[1], 30); /* 2 */
	closed_with(&w[2], 10); /* 4 */
	closed_with(&w[3], 70); /* 1 */
	assert_int_equal(w[0].w.depth, 2);
	assert_true(w[0].w.has_parent && w[0].w.parent == 2);
	assert_int_equal(w[1].w.depth, 1);
	assert_true(w[1].w.has_parent && w[1].w.parent == 1);
	assert_int_equal(w[2].w.depth, 1);
	assert_true(w[2].w.has_parent && w[2].w.parent == 1);
	assert_int_equal(w[3].w.depth, 0);
	assert_false(w[3].w.has_parent);
	for (int i = 0; i < 4; i++)
		assert_int_equal(w[i].w.overlaps, 0);
}

/* Windows of other streams hold nothing here. */
static void conf36_nesting_is_a_streams_own(void **state)
{
	struct feed *f = *state;

	start(f, A, on(1, 1), 10);
	start(f, A, on(2, 2), 20);
	close_at(f, A, on(2, 2), 30);
	close_at(f, A, on(1, 1), 40);
	feed_tide(f, 100, 0);
	assert_int_equal(f->windows[0].w.depth, 0);
	assert_false(f->windows[0].w.has_parent);
}

static void conf37_overlapping(void **state)
{
	struct feed *f = *state;
	const struct feed_window *w = f->windows;

	start(f, A, own(1), 10);
	start(f, A, own(2), 20);
	close_at(f, A, own(1), 40);
	close_at(f, A, own(2), 70);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 2);
	closed_with(&w[0], 30);
	closed_with(&w[1], 50);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w[i].w.depth, 0);
		assert_int_equal(w[i].w.overlaps, 1);
		assert_false(w[i].w.has_parent);
	}
}

static void conf38_repeated_and_unknown_end(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	start(f, A, own(2), 11);
	close_at(f, A, own(1), 20);
	close_at(f, A, own(1), 25);  /* again */
	close_at(f, A, own(77), 26); /* never started here */
	close_at(f, A, own(2), 30);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 3);
	closed_with(&f->windows[0], 10);
	without_duration(&f->windows[1], "not_measured", "opened_before_capture");
	closed_with(&f->windows[2], 19);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->finish.unpaired.window_repeated_end, 1);
	assert_int_equal(f->finish.windows.closed, 2);
	assert_int_equal(f->finish.windows.not_measured, 1);
	/* An early end, or one too many, is the program's; nothing of the capture is lost. */
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_OK);
}

static void conf38_a_start_that_repeats_a_key_spoils_the_window(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	start(f, A, own(1), 15);
	close_at(f, A, own(1), 20);
	start(f, A, own(2), 30);
	close_at(f, A, own(2), 31);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 2);
	without_duration(&f->windows[0], "not_measured", "reused");
	closed_with(&f->windows[1], 1);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->finish.unpaired.window_start_reused, 1);
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
}

static void conf39_abandon(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	end(f, A, own(1), TMK_WINDOW_ABANDONED, 20);
	close_at(f, A, own(1), 30); /* dead */
	start(f, A, own(2), 40);
	close_at(f, A, own(2), 50);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 2);
	without_duration(&f->windows[0], "abandoned", "program");
	assert_true(f->windows[0].w.has_end);
	closed_with(&f->windows[1], 10);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->finish.windows.abandoned, 1);
	assert_int_equal(f->finish.unpaired.window_repeated_end, 1);
}

/* The stream has seen no end of it: an abandoned window without its start says so as well. */
static void conf39_abandoned_but_opened_before_the_capture(void **state)
{
	struct feed *f = *state;

	end(f, A, own(1), TMK_WINDOW_ABANDONED, 20);
	end(f, A, own(2), TMK_WINDOW_LIMIT, 20);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 2);
	without_duration(&f->windows[0], "abandoned", "program");
	without_duration(&f->windows[1], "abandoned", "limit");
	for (int i = 0; i < 2; i++) {
		assert_false(f->windows[i].w.has_start);
		assert_false(f->windows[i].w.has_place);
		assert_false(f->windows[i].w.has_operations);
	}
}

static void conf40_open_at_death(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	op(f, 90, 12, 14);
	start(f, A2, (struct feed_key){ 2, 102 }, 20);
	feed_gone(f, A, 50, true, 9);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 2);
	for (int i = 0; i < 2; i++) {
		without_duration(&f->windows[i], "abandoned", "target_gone");
		assert_false(f->windows[i].w.has_end);
		assert_false(f->windows[i].w.has_idle);
	}
	assert_int_equal(f->windows[1].w.operations, 1); /* what it held as far as it went */
	feed_capture_end(f, TMK_CAPTURE_TARGET_GONE, 200);
	assert_int_equal(f->finish.windows.abandoned, 2);
	assert_int_equal(f->finish.totals[0].windows.abandoned, 2);
}

/* How a window ends that is open when its session, its image or the capture does. */
static void conf40_every_way_to_stay_open(void **state)
{
	struct feed *f = *state;
	struct feed_who image = { 3, 100, 101 };

	start(f, A, own(1), 10);
	feed_marker(f, A, TMK_REC_SESSION_FINISH, 1, 20);
	feed_tide(f, 30, 0);
	without_duration(&f->windows[0], "abandoned", "finished");
	assert_true(f->windows[0].w.has_end); /* the program's own end of it */
	assert_int_equal(f->windows[0].w.end_ns, 20);

	feed_session(f, A, 2);
	feed_window_start(f, A, 2, STEP, own(1), 0, 40);
	feed_exec(f, image, 50);
	feed_tide(f, 60, 0);
	without_duration(&f->windows[1], "abandoned", "exec");

	feed_session(f, image, 3);
	feed_window_start(f, image, 3, STEP, own(1), 0, 70);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 80);
	assert_int_equal(f->n_windows, 3);
	without_duration(&f->windows[2], "open", "stopped");
	assert_int_equal(f->finish.windows.open, 1);
	assert_int_equal(f->finish.windows.abandoned, 2);
}

static void conf40_a_capture_cut_short(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	end(f, A, own(1), TMK_WINDOW_PENDING | TMK_HOW_DEVICE, 20);
	start(f, A, own(2), 30);
	assert_int_equal(tmk_assembler_cut_short(f->a, 0, 0), 0);
	assert_int_equal(f->n_windows, 2);
	without_duration(&f->windows[0], "open", "failed");
	without_duration(&f->windows[1], "not_measured", "unresolved");
}

static void conf41_empty_is_not_zero(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	close_at(f, A, own(1), 10); /* no time between */
	start(f, A, own(2), 20);
	end(f, A, own(2), TMK_WINDOW_NOT_MEASURED, 30);
	start(f, A, own(3), 40);
	end(f, A, own(3), TMK_WINDOW_NOT_MEASURED | TMK_HOW_DEVICE, 50);
	start(f, A, own(4), 60);
	end(f, A, own(4), TMK_WINDOW_PENDING | TMK_HOW_DEVICE, 70);
	resolve(f, A, own(4), 0, TMK_WINDOW_CLOSED, 80); /* says that it measured nothing */
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 4);
	without_duration(&f->windows[0], "not_measured", "no_time");
	without_duration(&f->windows[1], "not_measured", "no_time");
	without_duration(&f->windows[2], "not_measured", "backend");
	without_duration(&f->windows[3], "not_measured", "backend");
}

/* An end whose record is older than its start's comes first: it ends nothing that begins later. */
static void conf41_end_before_start(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 50);
	close_at(f, A, own(1), 40);
	feed_tide(f, 100, 0);
	without_duration(only(f), "not_measured", "opened_before_capture");
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->n_windows, 2);
	without_duration(&f->windows[1], "open", "detached");
}

/* ... also when it comes late, after its time was told already. */
static void conf41_end_before_start_and_late(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 50);
	feed_tide(f, 100, 0);
	close_at(f, A, own(1), 40);
	feed_tide(f, 200, 0);
	without_duration(only(f), "not_measured", "no_time");
	assert_false(f->windows[0].w.has_end);
	assert_false(f->windows[0].w.has_idle);
}

static void conf45_a_failure_has_its_errno(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	end(f, A, own(1), TMK_WINDOW_FAILED | (uint64_t)5 << TMK_HOW_ERROR_SHIFT, 20);
	start(f, A, own(2), 30);
	end(f, A, own(2), TMK_WINDOW_PENDING | TMK_HOW_DEVICE, 40);
	resolve(f, A, own(2), 7, TMK_WINDOW_FAILED | (uint64_t)6 << TMK_HOW_ERROR_SHIFT, 50);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 2);
	without_duration(&f->windows[0], "failed", "");
	assert_int_equal(f->windows[0].w.error, 5);
	without_duration(&f->windows[1], "failed", "");
	assert_int_equal(f->windows[1].w.error, 6);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->finish.windows.failed, 2);
}

static void conf46_membership(void **state)
{
	struct feed *f = *state;
	const struct feed_window *w;

	op(f, 1, 2, 5);			    /* before: out */
	feed_begin(f, A, 1, 2, SITE, 0, 8); /* owed from before: in */
	start(f, A, own(1), 10);
	op(f, 3, 11, 12); /* in */
	feed_end(f, A, 1, 2, 0, 0, 14);
	feed_begin(f, A, 1, 4, OTHER_SITE, 0, 15); /* still open at the end: out */
	feed_begin(f, A2, 1, 5, SITE, 0, 15);	   /* another thread's stream: out */
	feed_end(f, A2, 1, 5, 0, 0, 16);
	feed_op_begin_on(f, A, 1, 6, SITE, 101,
			 15); /* a named stream of the thread's number: out */
	feed_end(f, A, 1, 6 | TMK_TOKEN_NAMED, 0, 0, 16);
	feed_begin(f, A, 1, 7, OTHER_SITE, 0,
		   16); /* ended by another thread, but begun on this stream */
	feed_end(f, A3, 1, 7, 0, 0, 18);
	close_at(f, A, own(1), 20);
	feed_end(f, A, 1, 4, 0, 0, 22);
	feed_tide(f, 100, 0);
	w = only(f);
	assert_int_equal(w->w.operations, 3);
	/* 10-14 is covered by what was owed, 15-20 by what is still open. */
	assert_int_equal(w->w.idle_ns, 1);
	assert_int_equal(w->n_totals, 2);
	for (size_t i = 0; i < 2; i++) {
		bool matmul = !strcmp(w->totals[i].name, "matmul");

		assert_string_equal(w->totals[i].name, matmul ? "matmul" : "add");
		assert_int_equal(w->totals[i].count, matmul ? 2 : 1);
		assert_int_equal(w->totals[i].total_ns, matmul ? 6 + 1 : 2);
	}
}

/* The same on streams that the program named, across threads. */
static void conf46_membership_on_a_named_stream(void **state)
{
	struct feed *f = *state;

	start(f, A, on(7, 1), 10);
	feed_op_begin_on(f, A2, 1, 1, SITE, 7, 11);
	feed_end(f, A3, 1, 1 | TMK_TOKEN_NAMED, 0, 0, 13);
	feed_op_begin_on(f, A2, 1, 2, SITE, 8, 12);
	feed_end(f, A2, 1, 2 | TMK_TOKEN_NAMED, 0, 0, 14);
	op(f, 3, 15, 16);
	close_at(f, A, on(7, 1), 20);
	feed_tide(f, 100, 0);
	closed_with(only(f), 10);
	assert_int_equal(f->windows[0].w.operations, 1);
	assert_int_equal(f->windows[0].w.idle_ns, 8);
	assert_true(f->windows[0].w.named);
	assert_int_equal(f->windows[0].w.stream, 7);
}

static void conf46_more_names_than_are_told_apart(void **state)
{
	struct feed *f = *state;
	const struct feed_window *w;
	uint64_t time = 10;
	char site[64];

	start(f, A, own(1), time);
	for (uint64_t i = 0; i < 2 * TMK_STREAM_NAMES; i++) {
		snprintf(site, sizeof(site), "static:%d\nop%d\n", (int)i, (int)i);
		feed_site(f, A, 0x1000 + i, site);
		feed_begin(f, A, 1, i + 1, 0x1000 + i, 0, time += 1);
		feed_end(f, A, 1, i + 1, 0, 0, time += 2);
	}
	close_at(f, A, own(1), time += 1);
	feed_tide(f, time, 0);
	w = only(f);
	assert_int_equal(w->w.operations, 2 * TMK_STREAM_NAMES);
	assert_int_equal(w->n_totals, TMK_STREAM_NAMES + 1);
	for (size_t i = 0; i < 8; i++) /* those that are told apart, and the others */
		assert_int_equal(w->totals[i].count, w->totals[i].name[0] ? 1 : TMK_STREAM_NAMES);
}

static void conf47_flush_and_what_ends_after_it(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	feed_begin(f, A, 1, 1, SITE, 0, 12);
	end(f, A, own(1), TMK_WINDOW_CLOSED | TMK_HOW_FLUSH, 20);
	feed_end(f, A, 1, 1, 0, 0, 25); /* should have been drained */
	start(f, A, own(2), 30);
	feed_begin(f, A, 1, 2, SITE, 0, 32);
	close_at(f, A, own(2), 40); /* no flush: that is how it is */
	feed_end(f, A, 1, 2, 0, 0, 45);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->n_windows, 2);
	assert_true(f->windows[0].w.flush);
	assert_int_equal(f->windows[0].w.operations, 0);
	assert_false(f->windows[1].w.flush);
	assert_int_equal(f->n_ops, 2);
	assert_int_equal(f->finish.unpaired.ended_after_flush, 1);
	assert_int_equal(f->finish.totals[0].unpaired.ended_after_flush, 1);
}

static void conf48_device_results_in_any_order(void **state)
{
	struct feed *f = *state;
	const struct feed_window *w = f->windows;

	for (uint64_t i = 1; i <= 3; i++) {
		start(f, A, own(i), 10 * i);
		op(f, i, 10 * i + 1, 10 * i + 3);
		end(f, A, own(i), TMK_WINDOW_PENDING | TMK_HOW_DEVICE, 10 * i + 5);
	}
	feed_tide(f, 50, 0);
	assert_int_equal(f->n_windows, 0); /* nothing is known of them yet */
	resolve(f, A2, own(3), 1000000, TMK_WINDOW_CLOSED, 60);
	resolve(f, A3, own(1), 7, TMK_WINDOW_CLOSED, 61);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 2);
	closed_with(&w[0], 1000000); /* longer than the host's end − start: another clock */
	assert_int_equal(w[0].w.id, 3);
	assert_true(w[0].w.device);
	assert_int_equal(w[0].w.start_ns, 30);
	assert_int_equal(w[0].w.end_ns, 35);
	assert_int_equal(w[0].w.end_tid, 101); /* who closed it, not who resolved it */
	assert_int_equal(w[0].w.operations, 1);
	assert_int_equal(w[0].n_totals, 1);
	assert_int_equal(w[0].totals[0].total_ns, 2);
	closed_with(&w[1], 7);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->n_windows, 3);
	without_duration(&w[2], "not_measured", "unresolved");
	assert_true(w[2].w.device);
}

static void conf48_a_host_clock_is_never_a_devices(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	/* Closed by the device's clock, it says, but without a result to come. */
	end(f, A, own(1), TMK_WINDOW_CLOSED | TMK_HOW_DEVICE, 20);
	feed_tide(f, 100, 0);
	without_duration(only(f), "not_measured", "backend");
	assert_true(f->windows[0].w.device);
}

static void resolves_that_fit_nothing(void **state)
{
	struct feed *f = *state;

	resolve(f, A, own(9), 5, TMK_WINDOW_CLOSED, 5); /* unknown */
	start(f, A, own(1), 10);
	resolve(f, A, own(1), 5, TMK_WINDOW_CLOSED, 11); /* still open */
	end(f, A, own(1), TMK_WINDOW_PENDING | TMK_HOW_DEVICE, 20);
	resolve(f, A, own(1), 8, TMK_WINDOW_CLOSED, 21);
	resolve(f, A, own(1), 9, TMK_WINDOW_CLOSED, 22); /* again */
	start(f, A, own(2), 30);
	close_at(f, A, own(2), 40);
	resolve(f, A, own(2), 9, TMK_WINDOW_CLOSED, 50); /* waits for none */
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->n_windows, 2);
	closed_with(&f->windows[0], 8);
	closed_with(&f->windows[1], 10);
	assert_int_equal(f->finish.unpaired.resolve_unknown, 4);
}

static void unknown_outcomes_measure_nothing(void **state)
{
	struct feed *f = *state;
	static const uint64_t hows[] = { 0, 7, 0xff, UINT64_MAX, TMK_WINDOW_OUTCOMES };

	for (uint64_t i = 0; i < 5; i++) {
		start(f, A, own(i), 10 * i + 1);
		end(f, A, own(i), hows[i], 10 * i + 5);
		start(f, A, own(100 + i), 10 * i + 6);
		end(f, A, own(100 + i), TMK_WINDOW_PENDING, 10 * i + 7);
		resolve(f, A, own(100 + i), 5, hows[i], 10 * i + 8);
	}
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_windows, 10);
	for (uint64_t i = 0; i < 10; i++)
		without_duration(&f->windows[i], "not_measured", "backend");
}

/* A second end of a window that waits for its device is one too many. */
static void a_pending_window_is_closed(void **state)
{
	struct feed *f = *state;

	start(f, A, own(1), 10);
	end(f, A, own(1), TMK_WINDOW_PENDING | TMK_HOW_DEVICE, 20);
	close_at(f, A, own(1), 30);
	resolve(f, A, own(1), 4, TMK_WINDOW_CLOSED, 40);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	closed_with(only(f), 4);
	assert_int_equal(f->windows[0].w.end_ns, 20);
	assert_int_equal(f->finish.unpaired.window_repeated_end, 1);
}

static void loss_marks_what_was_open(void **state)
{
	struct feed *f = *state;
	bool incomplete[8] = { false };

	start(f, A, own(1), 10);
	close_at(f, A, own(1), 20);
	start(f, A, own(2), 30); /* open all along */
	feed_tide(f, 40, 0);
	start(f, A, own(3), 50);
	close_at(f, A, own(3), 60);
	feed_tide(f, 100, 5);	  /* five hits were lost between 40 and 100 */
	start(f, A, own(4), 110); /* or as late as the next tide */
	close_at(f, A, own(4), 120);
	feed_tide(f, 200, 5);
	start(f, A, own(5), 210);
	close_at(f, A, own(5), 220);
	close_at(f, A, own(99), 225); /* its start was lost, or it was open before */
	feed_tide(f, 300, 5);
	start(f, A, own(6), 310);
	close_at(f, A, own(6), 320);
	close_at(f, A, own(2), 330);
	feed_tide(f, 400, 5);
	assert_int_equal(f->n_windows, 7);
	for (size_t i = 0; i < 7; i++) {
		const struct feed_window *w = &f->windows[i];

		if (w->w.id == 99)
			without_duration(w, "not_measured", "start_unknown");
		else
			incomplete[w->w.id] = w->w.incomplete;
		if (w->w.incomplete)
			assert_false(w->w.has_idle); /* a lost operation covers nothing */
	}
	assert_false(incomplete[1]);
	assert_true(incomplete[2]);
	assert_true(incomplete[3]);
	assert_true(incomplete[4]);
	assert_false(incomplete[6]);
}

/* What was lost since the last tide is only known at the end. */
static void loss_that_the_end_tells_of(void **state)
{
	struct feed *f = *state;
	struct tmk_rec_end e = feed_end_record(TMK_CAPTURE_DETACHED, 100);

	start(f, A, own(1), 10);
	close_at(f, A, own(1), 20);
	e.hits[TMK_REC_OP_BEGIN] = e.lost[TMK_REC_OP_BEGIN][TMK_LOST_RING_FULL] = 1;
	assert_int_equal(feed_rec(f, &e), 0);
	assert_true(only(f)->w.incomplete);
}

static void a_leak_is_bounded(void **state)
{
	struct feed *f = *state;
	const uint64_t more = 1000, n = TMK_WINDOWS_HELD_MAX + more;
	uint64_t limit = 0;

	for (uint64_t i = 0; i < n; i++) {
		start(f, A, own(i), 10 + i);
		if (i % 1024 == 0)
			feed_tide(f, 10 + i, 0);
	}
	feed_tide(f, 10 + n, 0);
	assert_int_equal(f->n_windows, more);
	for (uint64_t i = 0; i < more; i++) { /* the oldest, in their order */
		without_duration(&f->windows[i], "abandoned", "limit");
		assert_int_equal(f->windows[i].w.id, i);
		limit++;
	}
	close_at(f, A, own(0), 20 + n);	    /* long given up: no window of it a second time */
	close_at(f, A, own(n - 1), 21 + n); /* the newest is intact */
	feed_tide(f, 30 + n, 0);
	assert_int_equal(f->n_windows, more + 1);
	assert_int_equal(f->windows[more].w.id, n - 1);
	assert_string_equal(f->windows[more].status, "closed");
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 40 + n);
	assert_int_equal(f->finish.windows_limit, limit);
	assert_int_equal(f->finish.windows.abandoned, limit);
	assert_int_equal(f->finish.windows.open, TMK_WINDOWS_HELD_MAX - 1);
	assert_int_equal(f->finish.unpaired.window_repeated_end, 1);
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
}

/* Pending ones count, too, and are given up as unresolved. */
static void a_device_that_never_answers_is_bounded(void **state)
{
	struct feed *f = *state;

	for (uint64_t i = 0; i <= TMK_WINDOWS_HELD_MAX; i++) {
		start(f, A, own(i), 10 + 2 * i);
		end(f, A, own(i), TMK_WINDOW_PENDING | TMK_HOW_DEVICE, 11 + 2 * i);
		if (i % 1024 == 0)
			feed_tide(f, 11 + 2 * i, 0);
	}
	feed_tide(f, UINT64_MAX, 0);
	without_duration(only(f), "not_measured", "unresolved");
	assert_int_equal(f->windows[0].w.id, 0);
}

static void nesting_is_as_deep_as_there_are_windows(void **state)
{
	struct feed *f = *state;
	const uint64_t n = 100000;

	for (uint64_t i = 0; i < n; i++)
		start(f, A, own(i), 10 + i);
	for (uint64_t i = n; i-- > 0;)
		close_at(f, A, own(i), 10 + n + (n - i));
	feed_tide(f, UINT64_MAX, 0);
	assert_int_equal(f->n_windows, n);
	for (uint64_t i = 0; i < FEED_LOG; i++) {
		const struct tmk_r3_window *w = &f->windows[i].w;

		assert_int_equal(w->id, n - 1 - i);
		assert_int_equal(w->depth, n - 1 - i);
		assert_true(w->has_parent && w->parent == n - 2 - i);
		assert_int_equal(w->overlaps, 0);
	}
}

static void windows_and_operations_have_counters_of_their_own(void **state)
{
	struct feed *f = *state;

	start(f, A, own(50), 10);
	op(f, 1, 11, 12);
	start(f, A, own(51), 13);
	close_at(f, A, own(51), 14);
	close_at(f, A, own(50), 20);
	feed_tide(f, 100, 0);
	assert_int_equal(f->ops[0].op.n, 1);
	assert_int_equal(f->windows[0].w.n, 2);
	assert_int_equal(f->windows[1].w.n, 1);
}

static void windows_of_an_unknown_session(void **state)
{
	struct feed *f = *state;

	feed_window_start(f, A, 9, STEP, own(1), 0, 10);
	feed_window_end(f, A, 9, STEP, own(1), TMK_WINDOW_CLOSED, 20);
	feed_window_resolve(f, A, 9, own(1), 5, TMK_WINDOW_CLOSED, 30);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->n_windows, 0);
	assert_int_equal(f->finish.unpaired.no_session, 3);
}

static void a_name_that_was_never_described(void **state)
{
	struct feed *f = *state;

	feed_window_start(f, A, 1, 0x999, own(1), 0, 10);
	feed_window_end(f, A, 1, 0x999, own(1), TMK_WINDOW_CLOSED, 20);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	closed_with(only(f), 10);
	assert_string_equal(f->windows[0].name, "?");
	assert_int_equal(f->finish.undescribed, 1);
}

/* An operation that never ends leaves the stream free again, however it comes to be dropped. */
static void a_dropped_operation_covers_no_more(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 5);
	feed_begin(f, A, 1, 1, SITE, 0, 8); /* the token again: both are void */
	start(f, A, own(1), 10);
	op(f, 2, 12, 15);
	close_at(f, A, own(1), 20);
	feed_tide(f, 100, 0);
	assert_int_equal(only(f)->w.operations, 1);
	assert_int_equal(f->windows[0].w.idle_ns, 7);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_fields_of_a_window),
		TEST(conf34_equal_ids_do_not_cross),
		TEST(conf34_keys_are_any_bits),
		TEST(conf35_closed_from_another_thread),
		TEST(conf36_nested),
		TEST(conf36_nesting_is_a_streams_own),
		TEST(conf37_overlapping),
		TEST(conf38_repeated_and_unknown_end),
		TEST(conf38_a_start_that_repeats_a_key_spoils_the_window),
		TEST(conf39_abandon),
		TEST(conf39_abandoned_but_opened_before_the_capture),
		TEST(conf40_open_at_death),
		TEST(conf40_every_way_to_stay_open),
		TEST(conf40_a_capture_cut_short),
		TEST(conf41_empty_is_not_zero),
		TEST(conf41_end_before_start),
		TEST(conf41_end_before_start_and_late),
		TEST(conf45_a_failure_has_its_errno),
		TEST(conf46_membership),
		TEST(conf46_membership_on_a_named_stream),
		TEST(conf46_more_names_than_are_told_apart),
		TEST(conf47_flush_and_what_ends_after_it),
		TEST(conf48_device_results_in_any_order),
		TEST(conf48_a_host_clock_is_never_a_devices),
		TEST(resolves_that_fit_nothing),
		TEST(unknown_outcomes_measure_nothing),
		TEST(a_pending_window_is_closed),
		TEST(loss_marks_what_was_open),
		TEST(loss_that_the_end_tells_of),
		TEST(a_leak_is_bounded),
		TEST(a_device_that_never_answers_is_bounded),
		TEST(nesting_is_as_deep_as_there_are_windows),
		TEST(windows_and_operations_have_counters_of_their_own),
		TEST(windows_of_an_unknown_session),
		TEST(a_name_that_was_never_described),
		TEST(a_dropped_operation_covers_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
