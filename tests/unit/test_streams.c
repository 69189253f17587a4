// SPDX-License-Identifier: BSD-2-Clause
/*
 * What lies inside a window: ranks, membership, idle time, nesting, totals, and that streams and memory
 * come and go with what is in flight.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stream/streams.h"

static const struct tmk_stream_id own = { 0, 7, false };
static const struct tmk_stream_id named = { 0, 7, true };

static struct tmk_streams *streams_new(void)
{
	struct tmk_streams *t = malloc(sizeof(*t));
	struct tmk_seed seed = { 1, 2 };

	assert_non_null(t);
	tmk_streams_init(t, &seed, true);
	return t;
}

static void streams_done(struct tmk_streams *t)
{
	assert_int_equal(tmk_streams_count(t), 0);
	tmk_streams_free(t);
	free(t);
}

static void op_begin(struct tmk_streams *t, const struct tmk_stream_id *id, uint64_t time)
{
	uint64_t moved = time;

	assert_int_equal(tmk_streams_op_begin(t, id, &moved), 0);
	assert_int_equal(moved, time);
}

static bool op_end(struct tmk_streams *t, const struct tmk_stream_id *id, uint32_t name,
		   uint64_t begin, uint64_t time)
{
	struct tmk_stream_op op = { begin, name };

	return tmk_streams_op_end(t, id, &op, &time);
}

static void window_start(struct tmk_streams *t, const struct tmk_stream_id *id,
			 struct tmk_stream_window *w, uint64_t time)
{
	assert_int_equal(tmk_streams_window_start(t, id, w, &time), 0);
	assert_int_equal(w->start_ns, time);
}

static struct tmk_stream_inside window_end(struct tmk_streams *t, struct tmk_stream_window *w,
					   uint64_t time, bool flush)
{
	struct tmk_stream_inside in;

	tmk_streams_window_end(t, w, &time, flush, &in);
	return in;
}

/* --- ranks */

static void test_rank_agrees_with_counting(void **state)
{
	enum { N = 3000 };
	static uint32_t position[N];
	static bool alive[N];
	struct tmk_rank r = { 0 };
	uint32_t first = 0, n = 0;

	(void)state;
	srandom(1);
	for (int step = 0; step < 20000 && n < N; step++) {
		uint32_t before = 0, i;

		if (random() % 3) {
			if (tmk_rank_full(&r)) {
				assert_int_equal(tmk_rank_reset(&r, r.live), 0);
				for (i = first; i < n; i++)
					if (alive[i])
						position[i] = tmk_rank_add(&r);
			}
			position[n] = tmk_rank_add(&r);
			alive[n++] = true;
			continue;
		}
		if (!n)
			continue;
		i = (uint32_t)random() % n;
		if (!alive[i])
			continue;
		for (uint32_t k = 0; k < i; k++)
			before += alive[k];
		assert_int_equal(tmk_rank_before(&r, position[i]), before);
		tmk_rank_remove(&r, position[i]);
		alive[i] = false;
	}
	tmk_rank_free(&r);
	assert_int_equal(n, N);
}

static void test_rank_of_a_stack_never_fills_up(void **state)
{
	struct tmk_rank r = { 0 };

	(void)state;
	assert_int_equal(tmk_rank_reset(&r, 0), 0);
	for (int i = 0; i < 1000; i++) {
		uint32_t a = tmk_rank_add(&r), b = tmk_rank_add(&r);

		assert_false(tmk_rank_full(&r));
		tmk_rank_remove(&r, b);
		tmk_rank_remove(&r, a);
	}
	tmk_rank_free(&r);
}

/* --- membership */

static void test_s46_owed_in_open_out_others_never(void **state)
{
	struct tmk_streams *t = streams_new();
	struct tmk_stream_window w = { 0 };
	struct tmk_stream_inside in;

	(void)state;
	op_begin(t, &own, 10); /* owed */
	op_begin(t, &named, 11);
	window_start(t, &own, &w, 20);
	op_end(t, &own, 1, 10, 25);
	op_end(t, &named, 1, 11, 26); /* of another stream */
	op_begin(t, &own, 30);
	op_end(t, &own, 1, 30, 35);
	op_begin(t, &own, 38); /* still open at the end */
	in = window_end(t, &w, 40, false);
	assert_int_equal(in.operations, 2);
	assert_int_equal(in.idle_ns, 20 - 5 - 5 - 2);
	assert_int_equal(in.n_totals, 1);
	assert_int_equal(in.totals[0].name, 1);
	assert_int_equal(in.totals[0].count, 2);
	assert_int_equal(in.totals[0].total_ns, 15 + 5);
	op_end(t, &own, 1, 38, 50);
	streams_done(t);
}

static void test_idle_counts_overlapping_operations_once(void **state)
{
	struct tmk_streams *t = streams_new();
	struct tmk_stream_window w = { 0 };

	(void)state;
	window_start(t, &own, &w, 100);
	op_begin(t, &own, 110);
	op_begin(t, &own, 120);
	op_end(t, &own, 1, 110, 130);
	op_end(t, &own, 2, 120, 140);
	op_begin(t, &own, 150);
	tmk_streams_op_drop(t, &own, 160); /* covers, but did not end */
	assert_int_equal(window_end(t, &w, 200, false).idle_ns, 100 - 30 - 10);
	streams_done(t);
}

static void test_s36_nested_and_s37_overlapping(void **state)
{
	struct tmk_streams *t = streams_new();
	struct tmk_stream_window a = { 0 }, b = { 0 }, c = { 0 };
	struct tmk_stream_inside in;

	(void)state;
	window_start(t, &own, &a, 0);
	window_start(t, &own, &b, 10);
	window_start(t, &own, &c, 20);
	in = window_end(t, &b, 30, false); /* crosses c, inside a */
	assert_int_equal(in.depth, 1);
	assert_ptr_equal(in.parent, &a);
	assert_int_equal(in.overlaps, 1);
	in = window_end(t, &a, 40, false); /* holds b, crosses c */
	assert_int_equal(in.depth, 0);
	assert_null(in.parent);
	assert_int_equal(in.overlaps, 1);
	in = window_end(t, &c, 50, false);
	assert_int_equal(in.depth, 0);
	assert_null(in.parent);
	assert_int_equal(in.overlaps, 2);
	streams_done(t);
}

static void test_nesting_100000_deep(void **state)
{
	enum { N = 100000 };
	struct tmk_stream_window *w = calloc(N, sizeof(*w));
	struct tmk_streams *t = streams_new();

	(void)state;
	assert_non_null(w);
	for (int i = 0; i < N; i++)
		window_start(t, &own, &w[i], 100 + (uint64_t)i);
	for (int i = N - 1; i >= 0; i--) {
		struct tmk_stream_inside in = window_end(t, &w[i], 1000000, false);

		assert_int_equal(in.depth, i);
		assert_int_equal(in.overlaps, 0);
	}
	streams_done(t);
	free(w);
}

static void test_s47_what_ends_after_a_flush_is_told(void **state)
{
	struct tmk_streams *t = streams_new();
	struct tmk_stream_window w = { 0 };

	(void)state;
	op_begin(t, &own, 5); /* holds the window */
	window_start(t, &own, &w, 10);
	op_begin(t, &own, 20);
	op_begin(t, &own, 21);
	assert_false(op_end(t, &own, 1, 20, 25));
	window_end(t, &w, 30, true);
	op_begin(t, &own, 31);
	assert_true(op_end(t, &own, 1, 21, 35));
	assert_false(op_end(t, &own, 1, 5, 36));
	assert_false(op_end(t, &own, 1, 31, 37));
	streams_done(t);
}

static void test_times_of_a_stream_never_go_back(void **state)
{
	struct tmk_streams *t = streams_new();
	struct tmk_stream_window w = { 0 };
	struct tmk_stream_op op = { 100, 1 };
	struct tmk_stream_inside in;
	uint64_t time = 50;

	(void)state;
	op_begin(t, &own, 100);
	assert_int_equal(tmk_streams_window_start(t, &own, &w, &time), 0);
	assert_int_equal(time, 100);
	time = 120;
	tmk_streams_op_end(t, &own, &op, &time);
	time = 90;
	tmk_streams_window_end(t, &w, &time, false, &in);
	assert_int_equal(time, 120);
	assert_int_equal(in.idle_ns, 0);
	assert_int_equal(in.operations, 1);
	streams_done(t);
}

static void test_unknown_names_and_ends_change_nothing(void **state)
{
	struct tmk_streams *t = streams_new();
	struct tmk_stream_window w = { 0 };
	struct tmk_stream_inside in;

	(void)state;
	assert_false(op_end(t, &own, 1, 0, 10));
	tmk_streams_op_drop(t, &own, 10);
	window_start(t, &own, &w, 0);
	assert_false(op_end(t, &own, 1, 0, 10)); /* none was begun */
	for (uint32_t name = 0; name < 200; name++) {
		op_begin(t, &own, 10 + name);
		op_end(t, &own, name, 10 + name, 10 + name + 1);
	}
	in = window_end(t, &w, 1000, false);
	assert_int_equal(in.operations, 200);
	assert_int_equal(in.n_totals, TMK_STREAM_NAMES + 1);
	for (size_t i = 0; i < in.n_totals; i++) {
		if (in.totals[i].name == TMK_STREAM_OTHERS)
			assert_int_equal(in.totals[i].count, 200 - TMK_STREAM_NAMES);
		else
			assert_int_equal(in.totals[i].count, 1);
	}
	assert_int_equal(tmk_streams_count(t), 0);
	streams_done(t);
}

static void test_memory_of_totals_is_bounded_and_comes_back(void **state)
{
	enum { N = 60000 };
	struct tmk_stream_window *w = calloc(N, sizeof(*w));
	struct tmk_streams *t = streams_new();
	size_t with = 0;

	(void)state;
	assert_non_null(w);
	for (uint64_t i = 0; i < N; i++) {
		window_start(t, &own, &w[i], i);
		op_begin(t, &own, i);
		op_end(t, &own, (uint32_t)i % TMK_STREAM_NAMES, i, i);
		assert_true(t->totals_bytes <= TMK_STREAM_TOTALS_MAX);
	}
	for (int i = 0; i < N; i++) {
		struct tmk_stream_inside in = window_end(t, &w[i], N, false);

		assert_int_equal(in.operations, N - i);
		with += in.n_totals != 0;
	}
	assert_in_range(with, 1000, N - 1000);
	assert_true(t->totals_bytes < 4096);
	streams_done(t);
	free(w);
}

static void test_many_streams_come_and_go(void **state)
{
	enum { N = 10000 };
	struct tmk_streams *t = streams_new();

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < N; i++) {
			struct tmk_stream_id id = { i % 3, ~i, i & 1 };

			op_begin(t, &id, i);
		}
		assert_int_equal(tmk_streams_count(t), N);
		for (uint64_t i = 0; i < N; i++) {
			struct tmk_stream_id id = { i % 3, ~i, i & 1 };

			op_end(t, &id, 0, i, i + 1);
		}
		assert_int_equal(tmk_streams_count(t), 0);
	}
	assert_int_equal(t->slots.n, N);
	streams_done(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_agrees_with_counting),
		cmocka_unit_test(test_rank_of_a_stack_never_fills_up),
		cmocka_unit_test(test_s46_owed_in_open_out_others_never),
		cmocka_unit_test(test_idle_counts_overlapping_operations_once),
		cmocka_unit_test(test_s36_nested_and_s37_overlapping),
		cmocka_unit_test(test_nesting_100000_deep),
		cmocka_unit_test(test_s47_what_ends_after_a_flush_is_told),
		cmocka_unit_test(test_times_of_a_stream_never_go_back),
		cmocka_unit_test(test_unknown_names_and_ends_change_nothing),
		cmocka_unit_test(test_memory_of_totals_is_bounded_and_comes_back),
		cmocka_unit_test(test_many_streams_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
