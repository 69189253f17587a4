// SPDX-License-Identifier: BSD-2-Clause
/*
 * The assembler: pairing, numbering, order of time, the life of sessions and processes. Tests are named
 * by the statement they hold the assembler to.
 */
#include "unit/feed.h"

#include "assemble/names.h"
#include "assemble/order.h"
#include "assemble/pair.h"
#include "assemble/sessions.h"
#include "base/report.h"

static const struct feed_who A = { 1, 100, 101 }; /* incarnation, process, thread */
static const struct feed_who A2 = { 1, 100, 102 };
static const struct feed_who B = { 2, 200, 201 };

enum { SITE = 0x10, OTHER_SITE = 0x20, NAME = 0x30, EDGE = 0x40 };

static int setup(void **state)
{
	struct feed *f = feed_new();

	assert_int_equal(feed_process(f, A, 5, "job"), 0);
	feed_session(f, A, 1);
	feed_site(f, A, SITE, "static:1\nmatmul\nx\ny\n");
	feed_site(f, A, OTHER_SITE, "static:2\nadd\n");
	feed_name(f, A, NAME, "out\n");
	feed_edge_site(f, A, EDGE, "from\nto\n");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	feed_free(*state);
	return 0;
}

static void conf04_one_counter_for_operations_and_edges(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 90, SITE, 0, 10);
	feed_edge(f, A, 1, EDGE, 0, 5, 11);
	feed_begin(f, A, 1, 91, SITE, 0, 12);
	feed_end(f, A, 1, 90, 0, 0, 13);
	feed_end(f, A, 1, 91, 0, 0, 14);
	feed_tide(f, 20, 0);
	assert_int_equal(f->n_ops, 2);
	assert_int_equal(f->n_edges, 1);
	assert_int_equal(f->ops[0].op.n, 1);
	assert_int_equal(f->edges[0].edge.n, 2);
	assert_int_equal(f->ops[1].op.n, 3);
}

/* The counter follows the order of begins in time, whatever the tokens are and however they arrive. */
static void conf04_counter_follows_begin_time(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 7, SITE, 0, 30);
	feed_begin(f, A2, 1, 9, SITE, 0, 10);
	feed_begin(f, A, 1, 8, SITE, 0, 20);
	feed_end(f, A, 1, 7, 0, 0, 41);
	feed_end(f, A, 1, 8, 0, 0, 42);
	feed_end(f, A, 1, 9, 0, 0, 43);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_ops, 3);
	assert_int_equal(f->ops[0].op.n, 3);
	assert_int_equal(f->ops[1].op.n, 2);
	assert_int_equal(f->ops[2].op.n, 1);
}

static void conf05_06_steps(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 3, 10);
	feed_end(f, A, 1, 1, 0, 4, 20);
	feed_begin(f, A, 1, 2, SITE, 5, 30);
	feed_end(f, A, 1, 2, 0, 5, 40);
	feed_tide(f, 100, 0);
	assert_int_equal(f->ops[0].op.begin_step, 3);
	assert_int_equal(f->ops[0].op.end_step, 4);
	assert_int_equal(f->ops[0].op.n, 1);
	assert_int_equal(f->ops[1].op.begin_step, 5);
	assert_int_equal(f->ops[1].op.n, 2);
}

static void conf10_lines_in_end_order(void **state)
{
	struct feed *f = *state;

	/* Arrival: one ring after the other. */
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 50);
	feed_begin(f, A2, 1, 2, OTHER_SITE, 0, 20);
	feed_end(f, A2, 1, 2, 0, 0, 40);
	feed_begin(f, A2, 1, 3, OTHER_SITE, 0, 41);
	feed_end(f, A2, 1, 3, 0, 0, 45);
	assert_int_equal(f->n_ops, 0); /* nothing before the tide */
	feed_tide(f, 45, 0);
	assert_int_equal(f->n_ops, 2); /* the end at 50 waits */
	assert_int_equal(f->ops[0].op.n, 2);
	assert_int_equal(f->ops[1].op.n, 3);
	feed_tide(f, 50, 0);
	assert_int_equal(f->n_ops, 3);
	assert_int_equal(f->ops[2].op.n, 1);
}

static void conf11_durations(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 10);
	feed_begin(f, A, 1, 2, SITE, 0, 11);
	feed_end(f, A, 1, 2, 0, 0, 158014);
	feed_begin(f, A, 1, 3, SITE, 0, 0);
	feed_end(f, A, 1, 3, 0, 0, UINT64_MAX);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 20);
	assert_int_equal(f->n_ops, 3);
	assert_int_equal(f->ops[0].op.duration_ns, 0);
	assert_int_equal(f->ops[1].op.duration_ns, 158003);
	assert_int_equal(f->ops[2].op.duration_ns, UINT64_MAX);
	assert_int_equal(f->ops[1].op.start_ns, 11);
}

/* No operation ends before it begins: not a zero, not a negative, not a pair. */
static void conf11_end_before_begin_is_no_pair(void **state)
{
	struct feed *f = *state;

	feed_end(f, A, 1, 1, 0, 0, 5);
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_tide(f, 100, 0);
	feed_end(f, A, 1, 1, 0, 0, 9); /* late, and older than the begin */
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_ops, 0);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_int_equal(f->n_ops, 0);
	assert_int_equal(f->n_unfinished, 1);
	assert_int_equal(f->finish.unpaired.end_without_begin, 2);
}

static void conf12_nested_and_overlapping(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 10); /* 1 holds 2; 3 overlaps 1 */
	feed_begin(f, A, 1, 2, OTHER_SITE, 0, 20);
	feed_end(f, A, 1, 2, 0, 0, 30);
	feed_begin(f, A, 1, 3, OTHER_SITE, 0, 40);
	feed_end(f, A, 1, 1, 0, 0, 60);
	feed_end(f, A, 1, 3, 0, 0, 100);
	feed_tide(f, 1000, 0);
	assert_int_equal(f->n_ops, 3);
	assert_int_equal(f->ops[0].op.duration_ns, 10);
	assert_int_equal(f->ops[1].op.duration_ns, 50);
	assert_string_equal(f->ops[1].name, "matmul");
	assert_int_equal(f->ops[2].op.duration_ns, 60);
	assert_string_equal(f->ops[2].name, "add");
}

static void conf13_cross_thread(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A2, 1, 1, 0, 0, 25);
	feed_tide(f, 1000, 0);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->ops[0].op.duration_ns, 15);
	assert_int_equal(f->ops[0].op.pid, 100);
	assert_int_equal(f->ops[0].op.tid, 101);
	assert_int_equal(f->ops[0].op.end_tid, 102);
	assert_int_equal(f->ops[0].op.stream, 101); /* the begin's own */
	assert_false(f->ops[0].op.named);
}

static void conf13_end_arrives_before_its_begin(void **state)
{
	struct feed *f = *state;

	feed_end(f, A2, 1, 1, NAME, 2, 25);
	feed_begin(f, A, 1, 1, SITE, 1, 10);
	feed_tide(f, 1000, 0);
	/* Even behind a tide that promised that nothing older would come. */
	feed_end(f, A2, 1, 2, NAME, 2, 1025);
	feed_tide(f, 2000, 0);
	assert_int_equal(f->n_ops, 1);
	feed_begin(f, A, 1, 2, SITE, 1, 1010);
	feed_tide(f, 3000, 0);
	assert_int_equal(f->n_ops, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(f->ops[i].op.duration_ns, 15);
		assert_int_equal(f->ops[i].op.begin_step, 1);
		assert_int_equal(f->ops[i].op.end_step, 2);
		assert_int_equal(f->ops[i].op.tid, 101);
		assert_int_equal(f->ops[i].op.end_tid, 102);
		assert_string_equal(f->ops[i].output, "out");
	}
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 4000);
	assert_int_equal(f->finish.late, 1);
	assert_int_equal(f->finish.unpaired.end_without_begin, 0);
}

static void conf14_unknown_and_repeated_end(void **state)
{
	struct feed *f = *state;

	feed_end(f, A, 1, 77, 0, 0, 5);
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	feed_end(f, A, 1, 1, 0, 0, 21);
	feed_begin(f, A, 1, 2, SITE, 0, 30);
	feed_end(f, A, 1, 2, 0, 0, 40);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_ops, 2);
	assert_int_equal(f->ops[0].op.duration_ns, 10);
	assert_int_equal(f->ops[1].op.duration_ns, 10);
	feed_marker(f, A, TMK_REC_SESSION_FINISH, 1, 110);
	feed_capture_end(f, TMK_CAPTURE_COMPLETE, 200);
	assert_int_equal(f->finish.unpaired.end_without_begin, 1);
	assert_int_equal(f->finish.unpaired.repeated_end, 1);
	assert_int_equal(f->finish.totals[0].unpaired.end_without_begin, 1);
	assert_int_equal(f->finish.totals[0].operations, 2);
	assert_string_equal(f->finish.totals[0].status, "complete");
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_OK);
}

static void conf14_repeated_end_is_remembered_as_far_as_documented(void **state)
{
	struct feed *f = *state;
	uint64_t t = 10;

	feed_begin(f, A, 1, 1, SITE, 0, t++);
	feed_end(f, A, 1, 1, 0, 0, t++);
	for (uint64_t token = 2; token <= TMK_PAIR_RECENT; token++) {
		feed_begin(f, A, 1, token, SITE, 0, t++);
		feed_end(f, A, 1, token, 0, 0, t++);
	}
	feed_end(f, A, 1, 1, 0, 0, t++);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, t);
	assert_int_equal(f->n_ops, TMK_PAIR_RECENT);
	assert_int_equal(f->finish.unpaired.repeated_end, 1);
	assert_int_equal(f->finish.unpaired.end_without_begin, 0);
}

static void conf15_unended(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 6, 10);
	feed_begin(f, A, 1, 2, OTHER_SITE, 6, 20);
	feed_end(f, A, 1, 2, 0, 6, 30);
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 100);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->n_unfinished, 1);
	assert_string_equal(f->unfinished[0].name, "matmul");
	assert_string_equal(f->unfinished[0].reason, "detached");
	assert_int_equal(f->unfinished[0].u.n, 1);
	assert_int_equal(f->unfinished[0].u.begin_step, 6);
	assert_int_equal(f->unfinished[0].u.start_ns, 10);
	assert_int_equal(f->unfinished[0].u.tid, 101);
	assert_int_equal(f->finish.totals[0].unfinished, 1);
	assert_string_equal(f->finish.totals[0].status, "detached");
	/* In flight when the capture ended: nothing was lost. */
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_OK);
}

static void conf16_output_absent_or_there(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	feed_begin(f, A, 1, 2, SITE, 0, 30);
	feed_end(f, A, 1, 2, NAME, 0, 40);
	feed_tide(f, 100, 0);
	assert_false(f->ops[0].has_output);
	assert_true(f->ops[1].has_output);
	assert_string_equal(f->ops[1].output, "out");
	assert_string_equal(
		f->ops[0].site,
		"\"op\":\"matmul\",\"static_id\":\"static:1\",\"inputs\":[\"x\",\"y\"]");
}

static void conf18_same_site_many_times(void **state)
{
	struct feed *f = *state;

	for (uint64_t i = 1; i <= 1000; i++) {
		feed_begin(f, A, 1, i, SITE, 0, i * 2);
		feed_end(f, A, 1, i, 0, 0, i * 2 + 1);
	}
	feed_tide(f, 10000, 0);
	assert_int_equal(f->n_ops, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(f->ops[i].op.n, i + 1);
}

static void conf19_cut_strings_are_flagged(void **state)
{
	struct feed *f = *state;

	assert_int_equal(feed_describe_text(f, A, 0x50, 1, TMK_DESC_SITE, TMK_DESC_CUT_STATIC_ID,
					    "cut\nop\n"),
			 0);
	assert_int_equal(
		feed_describe_text(f, A, 0x60, 1, TMK_DESC_NAME, TMK_DESC_CUT_NAME, "cut\n"), 0);
	feed_begin(f, A, 1, 1, 0x50, 0, 10);
	feed_end(f, A, 1, 1, 0x60, 0, 20);
	feed_begin(f, A, 1, 2, SITE, 0, 30);
	feed_end(f, A, 1, 2, NAME, 0, 40);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 50);
	assert_int_equal(f->ops[0].op.cut, TMK_DESC_CUT_NAME);
	assert_int_equal(f->ops[1].op.cut, 0);
	assert_int_equal(f->finish.totals[0].truncated, 1);
}

/* A descriptor that breaks the bound of a string is cut here, inside no character, and says so. */
static void conf19_too_long_strings_are_cut(void **state)
{
	struct feed *f = *state;
	char blob[3000];
	size_t n = 0;

	/* static_id: 1023 bytes and a two-byte character across the bound. op: just within it. */
	memset(blob, 'a', 1023);
	n = 1023;
	memcpy(blob + n, "\xc3\xa9zzz", 6);
	n += 6;
	memset(blob + n, 'o', 1024);
	blob[n + 1024] = '\0';
	n += 1025;
	assert_int_equal(feed_describe(f, A, 0x50, 1, TMK_DESC_SITE, 0, blob, (uint32_t)n, 2), 0);
	feed_begin(f, A, 1, 1, 0x50, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 50);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->finish.totals[0].truncated, 1);
}

static void conf21_sessions_and_processes_never_share(void **state)
{
	struct feed *f = *state;

	feed_session(f, A, 2);
	feed_process(f, B, 5, "other");
	feed_session(f, B, 1);
	feed_site(f, B, SITE, "static:b\nsoftmax\n"); /* same address, other process */
	/* One token, three times at once. */
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_begin(f, A, 2, 1, SITE, 0, 20);
	feed_begin(f, B, 1, 1, SITE, 0, 30);
	feed_end(f, B, 1, 1, 0, 0, 40);
	feed_end(f, A, 1, 1, 0, 0, 60);
	feed_end(f, A, 2, 1, 0, 0, 80);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_sessions, 3);
	assert_int_equal(f->n_ops, 3);
	assert_int_equal(f->ops[0].session, 2);
	assert_int_equal(f->ops[0].op.duration_ns, 10);
	assert_string_equal(f->ops[0].name, "softmax");
	assert_int_equal(f->ops[0].op.pid, 200);
	assert_int_equal(f->ops[1].session, 0);
	assert_int_equal(f->ops[1].op.duration_ns, 50);
	assert_string_equal(f->ops[1].name, "matmul");
	assert_int_equal(f->ops[2].session, 1);
	assert_int_equal(f->ops[2].op.duration_ns, 60);
	for (int i = 0; i < 3; i++)
		assert_int_equal(f->ops[i].op.n, 1);
	assert_string_equal(f->sessions[2]->comm, "other");
	assert_int_equal(f->sessions[2]->pid, 200);
	assert_int_equal(f->sessions[2]->ns_pid, 5);
}

static void conf22_23_24_edges_verbatim(void **state)
{
	static const uint64_t durations[] = { 0, UINT64_MAX, 10, 15 };
	struct feed *f = *state;

	for (int i = 0; i < 4; i++)
		feed_edge(f, A, 1, EDGE, 40 + i, durations[i], 10 + i);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_edges, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(f->edges[i].edge.duration_ns, durations[i]);
		assert_int_equal(f->edges[i].edge.step, 40 + i);
		assert_int_equal(f->edges[i].edge.n, i + 1);
		assert_int_equal(f->edges[i].edge.start_ns, 10 + i);
		assert_string_equal(f->edges[i].from, "from");
		assert_string_equal(f->edges[i].to, "to");
	}
}

/* Tokens 1 to 4 on one thread; every single record is left out once. */
static void conf31_a_lost_record_never_makes_a_wrong_pair(void **state)
{
	(void)state;
	for (int lost = 0; lost < 8; lost++) {
		struct feed *f = feed_new();
		int at = 0;

		feed_process(f, A, 5, "job");
		feed_session(f, A, 1);
		feed_site(f, A, SITE, "s\nmatmul\n");
		for (uint64_t token = 1; token <= 4; token++, at++) {
			if (at != lost)
				feed_begin(f, A, 1, token, SITE, token, token * 10);
		}
		for (uint64_t token = 1; token <= 4; token++, at++) {
			if (at != lost)
				feed_end(f, A, 1, token, 0, token, 1000 + token * 100);
		}
		feed_capture_end(f, TMK_CAPTURE_DETACHED, 5000);
		assert_int_equal(f->n_ops, 3);
		for (size_t i = 0; i < 3; i++) {
			uint64_t token = f->ops[i].op.end_step;

			assert_int_not_equal(token, lost % 4 + 1);
			assert_int_equal(f->ops[i].op.begin_step, token);
			assert_int_equal(f->ops[i].op.duration_ns, 1000 + token * 90);
		}
		assert_int_equal(f->n_unfinished, lost >= 4);
		assert_int_equal(f->finish.unpaired.end_without_begin, lost < 4);
		feed_free(f);
	}
}

static void conf31_conservation_and_exit(void **state)
{
	struct feed *f = *state;
	struct tmk_rec_end end = feed_end_record(TMK_CAPTURE_DETACHED, 100);

	end.hits[TMK_REC_OP_BEGIN] = 10;
	end.delivered[TMK_REC_OP_BEGIN] = 7;
	end.lost[TMK_REC_OP_BEGIN][TMK_LOST_RING_FULL] = 2;
	end.lost[TMK_REC_OP_BEGIN][TMK_LOST_RECURSION] = 1;
	assert_int_equal(feed_tide(f, 10, 3), 0);
	assert_int_equal(feed_tide(f, 20, 3), 0);
	assert_int_equal(f->n_losses, 1); /* told when it has grown */
	assert_int_equal(f->loss, 3);
	assert_int_equal(feed_rec(f, &end), 0);
	assert_true(f->finish.conserved);
	assert_int_equal(f->finish.hits, 10);
	assert_int_equal(f->finish.delivered, 7);
	assert_int_equal(f->finish.lost, 3);
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
}

static void conf31_counters_that_disagree_fail_the_run(void **state)
{
	struct feed *f = *state;
	struct tmk_rec_end end = feed_end_record(TMK_CAPTURE_COMPLETE, 100);

	/* The sums agree, the markers do not. */
	end.hits[TMK_REC_OP_BEGIN] = 5;
	end.delivered[TMK_REC_OP_END] = 5;
	feed_marker(f, A, TMK_REC_SESSION_FINISH, 1, 50);
	assert_int_equal(feed_rec(f, &end), 0);
	assert_false(f->finish.conserved);
	assert_string_equal(f->finish.totals[0].status, "failed");
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_FAILED);
}

static void counters_that_overflow_do_not_agree(void **state)
{
	struct feed *f = *state;
	struct tmk_rec_end end = feed_end_record(TMK_CAPTURE_COMPLETE, 100);

	end.hits[TMK_REC_EDGE] = 1;
	end.delivered[TMK_REC_EDGE] = UINT64_MAX;
	end.lost[TMK_REC_EDGE][TMK_LOST_RING_FULL] = 2; /* wraps to 1 */
	assert_int_equal(feed_rec(f, &end), 0);
	assert_false(f->finish.conserved);
}

static void begin_of_an_open_token_drops_both(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_begin(f, A, 1, 1, OTHER_SITE, 0, 20);
	feed_end(f, A, 1, 1, 0, 0, 30);
	feed_begin(f, A, 1, 1, OTHER_SITE, 0, 40);
	feed_end(f, A, 1, 1, 0, 0, 50);
	feed_begin(f, A, 1, 2, SITE, 0, 60);
	feed_end(f, A, 1, 2, 0, 0, 70);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 100);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->ops[0].op.start_ns, 60);
	assert_int_equal(f->n_unfinished, 0);
	assert_int_equal(f->finish.unpaired.begin_reused, 3);
	assert_int_equal(f->finish.unpaired.end_without_begin, 2);
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
}

/* A token may be handed out again after its operation has ended. */
static void token_used_again_after_its_end(void **state)
{
	struct feed *f = *state;

	for (int i = 0; i < 3; i++) {
		feed_begin(f, A, 1, 5, SITE, 0, 10 + 100 * i);
		feed_end(f, A, 1, 5, 0, 0, 20 + 100 * i);
	}
	feed_tide(f, 1000, 0);
	assert_int_equal(f->n_ops, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f->ops[i].op.duration_ns, 10);
		assert_int_equal(f->ops[i].op.n, i + 1);
	}
}

static void finish_leaves_open_operations_unfinished(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_begin(f, A, 1, 2, SITE, 0, 11);
	feed_end(f, A, 1, 2, 0, 0, 12);
	feed_marker(f, A, TMK_REC_SESSION_FINISH, 1, 20);
	feed_end(f, A, 1, 1, 0, 0, 30); /* too late: the session is over */
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->n_unfinished, 1);
	assert_string_equal(f->unfinished[0].reason, "finished");
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 200);
	assert_string_equal(f->finish.totals[0].status, "complete");
	assert_int_equal(f->finish.totals[0].unpaired.end_without_begin, 1);
	assert_int_equal(f->finish.totals[0].unfinished, 1);
}

static void gone_process(void **state)
{
	struct feed *f = *state;

	feed_session(f, A, 2);
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_marker(f, A, TMK_REC_SESSION_FINISH, 2, 15);
	feed_gone(f, A, 20, true, 9);
	feed_begin(f, A, 1, 2, SITE, 0, 30); /* from beyond the grave */
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_unfinished, 1);
	assert_string_equal(f->unfinished[0].reason, "target_gone");
	assert_string_equal(f->unfinished[0].name, "matmul");
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 200);
	assert_string_equal(f->finish.totals[0].status, "target_gone");
	assert_string_equal(f->finish.totals[1].status, "complete");
	for (int i = 0; i < 2; i++) {
		assert_true(f->finish.totals[i].exit_known);
		assert_int_equal(f->finish.totals[i].exit_status, 9);
	}
	assert_int_equal(f->finish.unpaired.no_session, 1);
}

/* The order of time decides, not that of arrival: the loader says "gone" before it has read all. */
static void gone_waits_for_its_place_in_time(void **state)
{
	struct feed *f = *state;

	feed_gone(f, A, 100, false, 0);
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_ops, 1);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 200);
	assert_false(f->finish.totals[0].exit_known);
	assert_int_equal(f->finish.unpaired.no_session, 0);
}

static void exec_ends_the_old_image_only(void **state)
{
	static const struct feed_who after = { 9, 100, 100 }; /* the same process, a new image */
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_exec(f, after, 50);
	/* The new image speaks before the exec's place in time has come. */
	feed_process(f, after, 5, "new");
	feed_session(f, after, 1);
	feed_site(f, after, SITE, "s\nnew_op\n");
	feed_begin(f, after, 1, 1, SITE, 0, 60);
	feed_end(f, after, 1, 1, 0, 0, 70);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_unfinished, 1);
	assert_string_equal(f->unfinished[0].reason, "exec");
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->ops[0].session, 1);
	assert_int_equal(f->ops[0].op.n, 1);
	assert_string_equal(f->ops[0].name, "new_op");
	feed_capture_end(f, TMK_CAPTURE_DETACHED, 200);
	assert_string_equal(f->finish.totals[0].status, "target_gone");
	assert_string_equal(f->finish.totals[1].status, "detached");
	assert_string_equal(f->sessions[0]->comm, "job");
	assert_string_equal(f->sessions[1]->comm, "new");
}

/* A pid that was given to a new process meanwhile is none of the old exec's business. */
static void exec_spares_a_later_process_of_the_same_pid(void **state)
{
	static const struct feed_who image2 = { 8, 100, 100 }, later = { 9, 100, 100 };
	struct feed *f = *state;

	feed_exec(f, image2, 50);
	feed_gone(f, image2, 60, false, 0);
	feed_process(f, later, 6, "later");
	feed_session(f, later, 1);
	feed_site(f, later, SITE, "s\nop\n");
	feed_begin(f, later, 1, 1, SITE, 0, 70);
	feed_end(f, later, 1, 1, 0, 0, 80);
	feed_tide(f, 100, 0);
	assert_int_equal(f->n_ops, 1);
}

static void capture_status_of_running_sessions(void **state)
{
	static const struct {
		uint32_t status;
		const char *text;
	} cases[] = {
		{ TMK_CAPTURE_DETACHED, "detached" },
		{ TMK_CAPTURE_STOPPED, "stopped" },
		{ TMK_CAPTURE_TARGET_GONE, "target_gone" },
		{ TMK_CAPTURE_FAILED, "failed" },
		{ TMK_CAPTURE_COMPLETE, "detached" }, /* it was not finished: it is not complete */
		{ 0, "failed" },
		{ 77, "failed" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct feed *f = feed_new();

		feed_session(f, A, 1);
		feed_begin(f, A, 1, 1, SITE, 0, 10);
		assert_int_equal(feed_capture_end(f, cases[i].status, 20), 0);
		assert_string_equal(f->finish.totals[0].status, cases[i].text);
		assert_string_equal(f->unfinished[0].reason, cases[i].text);
		feed_free(f);
	}
}

static void descriptions_may_come_after_the_first_use(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, 0x90, 0, 10);
	feed_tide(f, 15, 0);
	feed_site(f, A, 0x90, "late\nlate_op\n");
	feed_end(f, A, 1, 1, 0, 0, 20);
	feed_tide(f, 30, 0);
	assert_int_equal(f->n_ops, 1);
	assert_string_equal(f->ops[0].name, "late_op");
	assert_int_not_equal(f->ops[0].site_index, 0);
}

static void what_was_never_described_is_a_question_mark(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, 0x999, 0, 10);
	feed_end(f, A, 1, 1, 0x998, 0, 20);
	feed_edge(f, A, 1, 0x997, 0, 5, 21);
	feed_begin(f, A, 1, 2, EDGE, 0, 22); /* described, but as something else */
	feed_end(f, A, 1, 2, 0, 0, 23);
	feed_begin(f, A, 1, 3, 0x996, 0, 30);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 50);
	assert_int_equal(f->n_ops, 2);
	assert_string_equal(f->ops[0].name, "?");
	assert_string_equal(f->ops[0].output, "?");
	assert_string_equal(f->ops[0].site, "\"op\":\"?\",\"static_id\":\"\",\"inputs\":[]");
	assert_int_equal(f->ops[0].site_index, 0);
	assert_string_equal(f->ops[1].name, "?");
	assert_string_equal(f->edges[0].from, "?");
	assert_string_equal(f->edges[0].to, "?");
	assert_string_equal(f->unfinished[0].name, "?");
	assert_int_equal(f->finish.undescribed, 4);
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
}

static void first_description_counts(void **state)
{
	struct feed *f = *state;

	feed_site(f, A, SITE, "other\nother\n");
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	feed_tide(f, 30, 0);
	assert_string_equal(f->ops[0].name, "matmul");
}

static void records_of_an_unknown_session(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 99, 1, SITE, 0, 10);
	feed_end(f, A, 99, 1, 0, 0, 20);
	feed_edge(f, A, 99, EDGE, 0, 0, 21);
	feed_marker(f, A, TMK_REC_SESSION_OPEN, 99, 22);
	feed_marker(f, B, TMK_REC_SESSION_FINISH, 1, 23); /* known, but of another process */
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 50);
	assert_int_equal(f->n_ops + f->n_edges + f->n_unfinished, 0);
	assert_int_equal(f->finish.unpaired.no_session, 5);
	assert_string_equal(f->finish.totals[0].status, "stopped");
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
}

static void session_may_be_described_after_its_first_hit(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 3, 1, SITE, 0, 10);
	feed_end(f, A, 3, 1, 0, 0, 20);
	feed_session(f, A, 3); /* from another ring, before the tide */
	feed_tide(f, 30, 0);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->ops[0].session, 1);
}

static void meta_of_a_session(void **state)
{
	static const char blob[] = "E\0infer\0debug\0an:1\0b:1\0cuda\0f16"; /* its NUL ends f16 */
	struct feed *f = *state;
	const struct tmk_r3_meta *m;

	assert_int_equal(feed_describe(f, A, 0x77, 4, TMK_DESC_SESSION,
				       TMK_DESC_HAS_ANALYSIS_ID | TMK_DESC_HAS_BUILD_ID |
					       TMK_DESC_CUT_SESSION,
				       blob, sizeof(blob), 7),
			 0);
	assert_int_equal(f->n_sessions, 0);
	feed_tide(f, 10, 0);
	assert_int_equal(f->n_sessions, 2);
	m = &f->sessions[1]->meta;
	assert_int_equal(m->entrypoint.len, 1);
	assert_memory_equal(m->phase.data, "infer", 5);
	assert_memory_equal(m->profile.data, "debug", 5);
	assert_memory_equal(m->analysis_id.data, "an:1", 4);
	assert_memory_equal(m->build_id.data, "b:1", 3);
	assert_int_equal(m->n_cargo_features, 2);
	assert_memory_equal(m->cargo_features[1].data, "f16", 3);
	assert_int_equal(f->sessions[1]->cut, TMK_DESC_CUT_SESSION);
	assert_null(f->sessions[0]->meta.analysis_id.data);
	assert_null(f->sessions[0]->meta.build_id.data);
	assert_int_equal(f->sessions[0]->meta.n_cargo_features, 0);
}

static void order_is_stable_and_complete(void **state)
{
	struct feed *f = *state;
	/* Equal times keep the order of arrival: the end of 1 comes before the begin of 2. */
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 10);
	feed_begin(f, A, 1, 2, SITE, 0, 10);
	feed_end(f, A, 1, 2, 0, 0, 10);
	/* Two rings of 500 operations each over the same time, read one after the other. */
	for (int ring = 0; ring < 2; ring++) {
		for (uint64_t i = 0; i < 500; i++) {
			uint64_t token = 10 + ring * 1000 + i, at = 100 + i * 10 + ring * 5;

			feed_begin(f, ring ? A2 : A, 1, token, SITE, 0, at);
			feed_end(f, ring ? A2 : A, 1, token, 0, 0, at + 3);
		}
	}
	feed_tide(f, 100000, 0);
	assert_int_equal(f->n_ops, 1002);
	assert_int_equal(f->ops[0].op.n, 1);
	assert_int_equal(f->ops[1].op.n, 2);
	for (size_t i = 2; i < 1002; i++) {
		assert_int_equal(f->ops[i].op.n, i + 1);
		assert_int_equal(f->ops[i].op.start_ns, 100 + (i - 2) * 5);
		assert_int_equal(f->ops[i].op.tid, i % 2 ? 102 : 101);
	}
}

/* Equal times keep the order of arrival: near the tail, and across rings that are read in turn. */
static void order_of_equal_times(void **state)
{
	struct feed *f = *state;

	for (uint64_t i = 0; i < 10; i++)
		feed_edge(f, A, 1, EDGE, i, 0, 50);
	for (uint64_t ring = 0; ring < 3; ring++)
		for (uint64_t i = 0; i < 100; i++)
			feed_edge(f, A, 1, EDGE, ring * 1000 + i, 0, 1000 + i);
	feed_tide(f, 5000, 0);
	assert_int_equal(f->n_edges, 310);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(f->edges[i].edge.step, i);
	for (uint64_t i = 0; i < 300; i++)
		assert_int_equal(f->edges[10 + i].edge.step, i % 3 * 1000 + i / 3);
}

/* A tide says that everything up to its time, that time included, has come. */
static void late_records_are_counted(void **state)
{
	struct feed *f = *state;

	feed_tide(f, 100, 0);
	feed_edge(f, A, 1, EDGE, 0, 0, 101);
	feed_tide(f, 150, 0);
	feed_edge(f, A, 1, EDGE, 1, 0, 151);
	feed_edge(f, A, 1, EDGE, 2, 0, 150); /* late */
	feed_edge(f, A, 1, EDGE, 3, 0, 20);  /* very */
	feed_tide(f, 10, 0);		     /* a tide does not go back */
	assert_int_equal(f->n_edges, 3);
	assert_int_equal(f->edges[1].edge.step, 3);
	assert_int_equal(f->edges[2].edge.step, 2);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 200);
	assert_int_equal(f->n_edges, 4);
	assert_int_equal(f->finish.late, 2);
}

/* Random arrival with bounded and with unbounded delay, against a sorted copy. */
static void order_of_random_arrival(void **state)
{
	struct feed *f = *state;
	uint64_t x = 1, sum = 0;

	for (uint64_t round = 0; round < 100; round++) {
		uint64_t spread = round % 3 ? 40 : 4000;

		for (uint64_t i = 0; i < 40; i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			/* The step says when it arrived: equal times must keep it. */
			feed_edge(f, A, 1, EDGE, round * 40 + i, 0,
				  10000 * (round + 1) + (x >> 33) % spread);
		}
		feed_tide(f, 10000 * (round + 1) + 20, 0);
	}
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 1);
	assert_int_equal(f->n_edges, 4000);
	for (size_t i = 1; i < 4000; i++) {
		const struct tmk_r3_edge *e = &f->edges[i].edge;
		const struct tmk_r3_edge *before = &f->edges[i - 1].edge;

		assert_true(e->start_ns >= before->start_ns);
		assert_true(e->start_ns > before->start_ns || e->step > before->step);
		sum += e->step;
	}
	assert_int_equal(sum + f->edges[0].edge.step, 4000ull * 3999 / 2); /* each one once */
	assert_int_equal(f->finish.late, 0);
}

/* Held records are bounded: the oldest go first, and what comes too late for them is counted. */
static void held_records_are_bounded(void **state)
{
	struct feed *f = *state;
	uint64_t n = TMK_ORDER_HELD_MAX;

	for (uint64_t i = 0; i <= n; i++)
		assert_int_equal(feed_edge(f, A, 1, EDGE, 0, i, 1000 + i), 0);
	assert_int_equal(f->n_edges, n / 2);
	feed_edge(f, A, 1, EDGE, 0, 0, 1000); /* its time has been released */
	feed_capture_end(f, TMK_CAPTURE_STOPPED, n + 2000);
	assert_int_equal(f->n_edges, n + 2);
	assert_int_equal(f->finish.late, 1);
	assert_int_equal(f->finish.totals[0].edges, n + 2);
}

static void open_operations_are_bounded(void **state)
{
	struct feed *f = *state;
	uint64_t more = 10, n = TMK_PAIR_OPEN_MAX + more;

	for (uint64_t i = 1; i <= n; i++)
		assert_int_equal(feed_begin(f, A, 1, i, SITE, 0, i), 0);
	feed_tide(f, n, 0);
	for (uint64_t i = 1; i <= n; i++)
		assert_int_equal(feed_end(f, A, 1, i, 0, 0, n + i), 0);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 10 * n);
	assert_int_equal(f->n_ops, TMK_PAIR_OPEN_MAX);
	assert_int_equal(f->finish.unpaired.open_overflow, more);
	assert_int_equal(f->finish.unpaired.end_without_begin, more);
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
}

static void held_ends_are_bounded(void **state)
{
	struct feed *f = *state;
	uint64_t n = TMK_PAIR_EARLY_MAX;

	for (uint64_t i = 1; i <= n + 1; i++)
		assert_int_equal(feed_end(f, A, 1, i, 0, 0, 1000 + i), 0);
	feed_tide(f, n + 2000, 0);
	/* The oldest made room for the newest; every other one still pairs. */
	feed_begin(f, A, 1, 1, SITE, 0, 500);
	feed_begin(f, A, 1, 2, SITE, 0, 500);
	feed_begin(f, A, 1, n + 1, SITE, 0, 500);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, n + 3000);
	assert_int_equal(f->n_ops, 2);
	assert_int_equal(f->n_unfinished, 1);
	assert_int_equal(f->finish.unpaired.end_without_begin, n - 1);
}

static void sessions_are_bounded(void **state)
{
	struct feed *f = *state;

	for (uint64_t i = 2; i <= TMK_SESSIONS_MAX + 5; i++)
		feed_session(f, A, i);
	feed_begin(f, A, TMK_SESSIONS_MAX, 1, SITE, 0, 10);
	feed_end(f, A, TMK_SESSIONS_MAX, 1, 0, 0, 20);
	feed_begin(f, A, TMK_SESSIONS_MAX + 1, 1, SITE, 0, 30);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 100);
	assert_int_equal(f->n_sessions, TMK_SESSIONS_MAX);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->finish.unpaired.no_session, 1);
	assert_int_equal(f->finish.names_dropped, 5);
}

static void described_objects_are_bounded_and_freed_with_their_process(void **state)
{
	struct feed *f = *state;
	struct feed_who w = B;

	feed_process(f, w, 1, "liar");
	for (uint64_t i = 0; i < TMK_NAMES_MAX + 100; i++)
		feed_name(f, w, 0x10000 + i, "n\n");
	feed_site(f, A, 0x555, "s\nno_room\n");
	feed_gone(f, w, 10, false, 0);
	feed_tide(f, 10, 0);
	feed_site(f, A, 0x556, "s\nroom_again\n");
	feed_begin(f, A, 1, 1, 0x555, 0, 20);
	feed_end(f, A, 1, 1, 0, 0, 21);
	feed_begin(f, A, 1, 2, 0x556, 0, 22);
	feed_end(f, A, 1, 2, 0, 0, 23);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 100);
	assert_string_equal(f->ops[0].name, "?");
	assert_string_equal(f->ops[1].name, "room_again");
	/* setup() describes four objects of its own; 100 and the first site above did not fit. */
	assert_int_equal(f->finish.names_dropped, 105);
}

/* 16 MiB of strings at a time, and the memory comes back over many short-lived processes. */
static void strings_are_bounded_and_freed_with_their_process(void **state)
{
	struct feed *f = *state;
	char blob[3003];
	uint64_t dropped = 0;

	memset(blob, 1, sizeof(blob)); /* each byte takes six in JSON */
	blob[0] = '\0';
	for (int i = 1; i <= 3; i++)
		blob[i * 1000 + 1] = '\0';
	blob[3002] = '\0';
	for (uint32_t round = 0; round < 3; round++) {
		struct feed_who w = { 100 + round, 300, 300 };

		for (uint64_t i = 0; i < 2000; i++)
			assert_int_equal(feed_describe(f, w, 0x10000 + i, 1, TMK_DESC_SITE, 0, blob,
						       3002, 4),
					 0);
		feed_gone(f, w, 10 + round, false, 0);
		feed_tide(f, 10 + round, 0);
	}
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 100);
	dropped = f->finish.names_dropped;
	/* 16 MiB hold somewhat less than 16 MiB / 18,000 = 932 of them, in every round the same. */
	assert_int_equal(dropped % 3, 0);
	assert_in_range(dropped / 3, 2000 - 932, 2000 - 600);
}

static void malformed_records_are_refused(void **state)
{
	struct feed *f = *state;
	struct tmk_rec_op_begin begin = { .h = feed_head(TMK_REC_OP_BEGIN, sizeof(begin), A, 10),
					  .session_id = 1,
					  .site = SITE,
					  .token = 1 };
	struct tmk_rec_op_begin r;
	struct tmk_rec_tide tide = { .h = feed_head(TMK_REC_TIDE, 24, A, 10) };
	uint64_t refused = 0;

	/* Shorter than it says, shorter or longer than its kind, no length at all. */
	assert_int_equal(tmk_assembler_feed(f->a, &begin.h, sizeof(begin) - 8), -EINVAL);
	assert_int_equal(tmk_assembler_feed(f->a, &begin.h, 8), -EINVAL);
	assert_int_equal(tmk_assembler_feed(f->a, &begin.h, 0), -EINVAL);
	r = begin;
	r.h.bytes = sizeof(struct tmk_rec_op_end);
	assert_int_equal(tmk_assembler_feed(f->a, &r.h, sizeof(r)), -EINVAL);
	r = begin;
	r.h.bytes = 0;
	assert_int_equal(tmk_assembler_feed(f->a, &r.h, sizeof(r)), -EINVAL);
	r = begin;
	r.h.kind = TMK_REC_OP_END; /* the wrong length for it */
	assert_int_equal(tmk_assembler_feed(f->a, &r.h, sizeof(r)), -EINVAL);
	refused = 6;
	for (int kind = 0; kind < 256; kind++) {
		bool known = (kind >= 1 && kind <= 8) || kind == 32 || kind == 33 ||
			     (kind >= 64 && kind <= 67);

		if (known)
			continue;
		r = begin;
		r.h.kind = (uint8_t)kind;
		assert_int_equal(tmk_assembler_feed(f->a, &r.h, sizeof(r)), -EINVAL);
		refused++;
	}
	r = begin;
	r.h.incarnation = 0;
	assert_int_equal(tmk_assembler_feed(f->a, &r.h, sizeof(r)), -EINVAL);
	r = begin;
	r.h.source = 1;
	assert_int_equal(tmk_assembler_feed(f->a, &r.h, sizeof(r)), -EINVAL);
	assert_int_equal(tmk_assembler_feed(f->a, &tide.h, 24), -EINVAL);
	refused += 3;
	assert_int_equal(feed_capture_end(f, TMK_CAPTURE_STOPPED, 100), 0);
	assert_int_equal(f->n_unfinished, 0);
	assert_int_equal(f->finish.malformed, refused);
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
	/* Nothing comes behind the end. */
	assert_int_equal(tmk_assembler_feed(f->a, &begin.h, sizeof(begin)), -EINVAL);
	assert_int_equal(feed_capture_end(f, TMK_CAPTURE_STOPPED, 100), -EINVAL);
	assert_int_equal(f->n_finishes, 1);
}

static void malformed_descriptors_are_refused(void **state)
{
	static const struct {
		const char *what;
		uint16_t kind, flags;
		const char *strings;
		uint32_t bytes, count;
	} cases[] = {
		{ "no strings", TMK_DESC_SITE, 0, "", 0, 0 },
		{ "one string where two are needed", TMK_DESC_SITE, 0, "a", 2, 1 },
		{ "fewer strings than it says", TMK_DESC_SITE, 0, "a\0b", 4, 3 },
		{ "more strings than it says", TMK_DESC_SITE, 0, "a\0b\0c", 6, 2 },
		{ "no NUL at the end", TMK_DESC_SITE, 0, "a\0bc", 4, 2 },
		{ "an absurd count", TMK_DESC_SITE, 0, "a\0b", 4, UINT32_MAX },
		{ "no kind", 0, 0, "a\0b", 4, 2 },
		{ "a kind that is none", 5, 0, "a\0b", 4, 2 },
		{ "a session without a profile", TMK_DESC_SESSION, 0, "a\0b", 4, 2 },
		{ "a session without its build id", TMK_DESC_SESSION, TMK_DESC_HAS_BUILD_ID,
		  "a\0b\0c", 6, 3 },
		{ "an edge to nowhere", TMK_DESC_EDGE, 0, "a", 2, 1 },
		{ "a name without a name", TMK_DESC_NAME, 0, "", 0, 0 },
	};
	struct feed *f = *state;
	_Alignas(8) char rec[8192];
	struct tmk_rec *h = (struct tmk_rec *)rec;
	struct tmk_desc *d = (struct tmk_desc *)(rec + sizeof(struct tmk_rec_describe));

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].what);
		assert_int_equal(feed_describe(f, A, 0x5000 + i, 50 + i, cases[i].kind,
					       cases[i].flags, cases[i].strings, cases[i].bytes,
					       cases[i].count),
				 -EINVAL);
	}
	feed_describe_build(rec, A, 0x6000, 60, TMK_DESC_SESSION, 0, "a\0b\0c", 6, 3);
	d->magic++;
	assert_int_equal(tmk_assembler_feed(f->a, h, h->bytes), -EINVAL);
	d->magic--;
	d->serial = 61; /* memory that now belongs to another session */
	assert_int_equal(tmk_assembler_feed(f->a, h, h->bytes), -EINVAL);
	d->serial = 60;
	d->bytes = UINT32_MAX;
	assert_int_equal(tmk_assembler_feed(f->a, h, h->bytes), -EINVAL);
	d->bytes = h->bytes; /* reaches behind the record */
	assert_int_equal(tmk_assembler_feed(f->a, h, h->bytes), -EINVAL);
	d->bytes = 6;
	assert_int_equal(tmk_assembler_feed(f->a, h, h->bytes), 0);
	h->bytes = sizeof(struct tmk_rec_describe); /* nothing follows */
	assert_int_equal(tmk_assembler_feed(f->a, h, h->bytes), -EINVAL);
	feed_capture_end(f, TMK_CAPTURE_STOPPED, 100);
	assert_int_equal(f->n_sessions, 2);
}

static void cut_short_capture(void **state)
{
	struct feed *f = *state;

	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	feed_begin(f, A, 1, 2, SITE, 0, 30);
	assert_null(tmk_assembler_result(f->a));
	assert_int_equal(tmk_assembler_cut_short(f->a, 5, 1005), 0);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->n_unfinished, 1);
	assert_string_equal(f->unfinished[0].reason, "failed");
	assert_null(f->finish.end);
	assert_string_equal(f->finish.totals[0].status, "failed");
	assert_int_equal(f->finish.start_ns, 10);
	assert_int_equal(f->finish.end_ns, 30);
	assert_int_equal(f->finish.n_anchors, 1);
	assert_int_equal(f->finish.anchors[0].real_ns, 1005);
	assert_int_equal(tmk_finish_exit(&f->finish), TMK_EXIT_LOSS);
	assert_int_equal(tmk_assembler_cut_short(f->a, 5, 1005), 0);
	assert_int_equal(f->n_finishes, 1);
}

static void a_sinks_error_is_sticky_and_fails_the_run(void **state)
{
	struct feed *f = *state;

	f->fail_op_with = -ENOSPC;
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	assert_int_equal(feed_tide(f, 100, 0), -ENOSPC);
	f->fail_op_with = 0;
	feed_begin(f, A, 1, 2, SITE, 0, 110);
	assert_int_equal(feed_end(f, A, 1, 2, 0, 0, 120), -ENOSPC);
	assert_int_equal(feed_capture_end(f, TMK_CAPTURE_STOPPED, 200), -ENOSPC);
	assert_int_equal(f->n_ops, 1);
	assert_int_equal(f->n_finishes, 1); /* it has something to close */
}

static void a_sinks_einval_is_no_malformed_record(void **state)
{
	struct feed *f = *state;

	f->fail_op_with = -EINVAL;
	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	assert_int_equal(feed_tide(f, 100, 0), -EIO);
}

static void statistics(void **state)
{
	struct feed *f = *state;
	struct tmk_assembler_stats st;

	feed_begin(f, A, 1, 1, SITE, 0, 10);
	feed_end(f, A, 1, 1, 0, 0, 20);
	feed_begin(f, A, 1, 2, SITE, 0, 30);
	feed_begin(f, A, 1, 3, SITE, 0, 31);
	feed_edge(f, A, 1, EDGE, 0, 5, 32);
	feed_tide(f, 100, 0);
	tmk_assembler_stats(f->a, &st);
	assert_int_equal(st.operations, 1);
	assert_int_equal(st.open, 2);
	assert_int_equal(st.edges, 1);
	assert_int_equal(st.sessions, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(conf04_one_counter_for_operations_and_edges),
		TEST(conf04_counter_follows_begin_time),
		TEST(conf05_06_steps),
		TEST(conf10_lines_in_end_order),
		TEST(conf11_durations),
		TEST(conf11_end_before_begin_is_no_pair),
		TEST(conf12_nested_and_overlapping),
		TEST(conf13_cross_thread),
		TEST(conf13_end_arrives_before_its_begin),
		TEST(conf14_unknown_and_repeated_end),
		TEST(conf14_repeated_end_is_remembered_as_far_as_documented),
		TEST(conf15_unended),
		TEST(conf16_output_absent_or_there),
		TEST(conf18_same_site_many_times),
		TEST(conf19_cut_strings_are_flagged),
		TEST(conf19_too_long_strings_are_cut),
		TEST(conf21_sessions_and_processes_never_share),
		TEST(conf22_23_24_edges_verbatim),
		cmocka_unit_test(conf31_a_lost_record_never_makes_a_wrong_pair),
		TEST(conf31_conservation_and_exit),
		TEST(conf31_counters_that_disagree_fail_the_run),
		TEST(counters_that_overflow_do_not_agree),
		TEST(begin_of_an_open_token_drops_both),
		TEST(token_used_again_after_its_end),
		TEST(finish_leaves_open_operations_unfinished),
		TEST(gone_process),
		TEST(gone_waits_for_its_place_in_time),
		TEST(exec_ends_the_old_image_only),
		TEST(exec_spares_a_later_process_of_the_same_pid),
		cmocka_unit_test(capture_status_of_running_sessions),
		TEST(descriptions_may_come_after_the_first_use),
		TEST(what_was_never_described_is_a_question_mark),
		TEST(first_description_counts),
		TEST(records_of_an_unknown_session),
		TEST(session_may_be_described_after_its_first_hit),
		TEST(meta_of_a_session),
		TEST(order_is_stable_and_complete),
		TEST(order_of_equal_times),
		TEST(late_records_are_counted),
		TEST(order_of_random_arrival),
		TEST(held_records_are_bounded),
		TEST(open_operations_are_bounded),
		TEST(held_ends_are_bounded),
		TEST(sessions_are_bounded),
		TEST(described_objects_are_bounded_and_freed_with_their_process),
		TEST(strings_are_bounded_and_freed_with_their_process),
		TEST(malformed_records_are_refused),
		TEST(malformed_descriptors_are_refused),
		TEST(cut_short_capture),
		TEST(a_sinks_error_is_sticky_and_fails_the_run),
		TEST(a_sinks_einval_is_no_malformed_record),
		TEST(statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
