// SPDX-License-Identifier: BSD-2-Clause
/*
 * Benchmark: what a begin+end pair of an operation, and a start+end pair of a window, cost while nobody
 * listens, next to a loop that is otherwise the same and empty. They alternate, ROUNDS times; each round
 * prints "EMPTY_NS PAIR_NS WINDOW_NS", nanoseconds a turn.
 */
#include <stdio.h>
#include <time.h>

#include "tickmark/tickmark.h"

#define ROUNDS 25
#define TURNS 50000000u

TMK_SITE(site, "operation:train:Gpt::forward:3", "matmul", "x", "w_qkv");

/* The compiler must believe that memory changed: work between and around the marks would do that. */
#define WORK() __asm__ volatile("" ::: "memory")

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static __attribute__((noinline)) double empty_run(void)
{
	double start = now_ns();

	for (unsigned int i = 0; i < TURNS; i++) {
		WORK();
		WORK();
	}
	return (now_ns() - start) / TURNS;
}

static __attribute__((noinline)) double pair_run(struct tmk_session *s)
{
	double start = now_ns();

	for (unsigned int i = 0; i < TURNS; i++) {
		struct tmk_op op = tmk_op_begin(s, &site);

		WORK();
		tmk_op_end(s, op, NULL);
		WORK();
	}
	return (now_ns() - start) / TURNS;
}

static __attribute__((noinline)) double window_run(struct tmk_session *s)
{
	double start = now_ns();

	for (unsigned int i = 0; i < TURNS; i++) {
		struct tmk_window w;

		tmk_window_start(s, "decode", &w);
		WORK();
		tmk_window_end(s, w, NULL);
		WORK();
	}
	return (now_ns() - start) / TURNS;
}

int main(void)
{
	struct tmk_config config = tmk_config_train("Gpt::forward");
	struct tmk_session *s;

	if (tmk_session_open(&s, NULL, &config)) {
		fprintf(stderr, "pair: %s\n", tmk_last_error());
		return 1;
	}
	empty_run();
	pair_run(s);
	window_run(s);
	for (int i = 0; i < ROUNDS; i++) {
		double empty = empty_run(), pair = pair_run(s);

		printf("%.4f %.4f %.4f\n", empty, pair, window_run(s));
	}
	return tmk_session_finish(s) ? 1 : 0;
}
