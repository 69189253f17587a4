/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second opinion: the program times its marked operations with a clock of its own, so that a test
 * can say whether what was traced is true. Off, it is one test of a pointer; it marks nothing itself.
 *
 * Four readings surround each operation: before its begin, after its begin, before its end, after
 * its end. The traced duration must lie between the inner and the outer difference.
 */
#ifndef TRANSFORMER_SELF_CLOCK_H
#define TRANSFORMER_SELF_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define SELF_CLOCK_ROWS 64u
#define SELF_CLOCK_NAME 32u

/* Sums over all operations of one name. */
struct self_clock_row {
	char op[SELF_CLOCK_NAME];
	atomic_uint_fast64_t count;
	atomic_uint_fast64_t inner_ns;
	atomic_uint_fast64_t outer_ns;
};

/* The rows of one session. */
struct self_clock_table {
	struct self_clock_row rows[SELF_CLOCK_ROWS];
	unsigned int n;
};

struct self_clock;

/* The readings of one operation; it may move between threads with it. */
struct self_clock_span {
	uint64_t before_begin;
	uint64_t after_begin;
	uint64_t before_end;
};

/* Creates the file at once: a wrong path is reported before the work and not after. */
int self_clock_open(struct self_clock **out, const char *path);

struct self_clock_table *self_clock_train(struct self_clock *clock);
struct self_clock_table *self_clock_infer(struct self_clock *clock);

/*
 * The row of an operation's name, made when it is new. Only while no other thread uses the table. A
 * NULL table gives 0. Names past the last row share it.
 */
unsigned int self_clock_row(struct self_clock_table *table, const char *op);

/*
 * Writes the sums as one JSON object and frees the clock:
 * {"train":{"matmul":{"count":1,"inner_ns":2,"outer_ns":3},...},"infer":{...}}
 * NULL is fine. Returns 0 or the error of writing.
 */
int self_clock_close(struct self_clock *clock);

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void self_clock_before_begin(const struct self_clock_table *t,
					   struct self_clock_span *span)
{
	if (t)
		span->before_begin = clock_ns();
}

static inline void self_clock_after_begin(const struct self_clock_table *t,
					  struct self_clock_span *span)
{
	if (t)
		span->after_begin = clock_ns();
}

static inline void self_clock_before_end(const struct self_clock_table *t,
					 struct self_clock_span *span)
{
	if (t)
		span->before_end = clock_ns();
}

static inline void self_clock_after_end(struct self_clock_table *t, unsigned int row,
					const struct self_clock_span *span)
{
	struct self_clock_row *r;

	if (!t)
		return;
	r = &t->rows[row];
	atomic_fetch_add_explicit(&r->outer_ns, clock_ns() - span->before_begin,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&r->inner_ns, span->before_end - span->after_begin,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
}

#endif
