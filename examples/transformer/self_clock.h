/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second opinion: the program times its marked operations with a clock of its own, so that a test
 * can say whether what was traced is true. Off, it is one test of a pointer; it marks nothing itself.
 *
 * Four readings surround each operation: before its begin, after its begin, before its end, after
 * its end. The traced duration must lie between the inner and the outer difference. Operations are added
 * up by name. Windows are written one by one, as they close: there are few, and each has an id.
 */
#ifndef TRANSFORMER_SELF_CLOCK_H
#define TRANSFORMER_SELF_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <tickmark/tickmark.h>
#include <time.h>

#define SELF_CLOCK_ROWS 64u
#define SELF_CLOCK_NAME 32u
#define SELF_CLOCK_STREAMS 128u

/* Sums over all operations of one name. */
struct self_clock_row {
	char op[SELF_CLOCK_NAME];
	atomic_uint_fast64_t count;
	atomic_uint_fast64_t inner_ns;
	atomic_uint_fast64_t outer_ns;
};

/*
 * Operations of one session that ended on one stream. What anybody else has counted at a moment lies
 * between the two: `ended` is raised after the mark of an end, `ending` before.
 */
struct self_clock_stream {
	atomic_uint_fast64_t ending;
	atomic_uint_fast64_t ended;
};

struct self_clock;

/* The rows and streams of one session. */
struct self_clock_table {
	struct self_clock *clock;
	const char *phase;
	struct self_clock_row rows[SELF_CLOCK_ROWS];
	unsigned int n;
	struct self_clock_stream streams[SELF_CLOCK_STREAMS];
};

/* The readings of one operation; it may move between threads with it. */
struct self_clock_span {
	uint64_t before_begin;
	uint64_t after_begin;
	uint64_t before_end;
	unsigned int stream; /* that it was begun on */
};

/* The readings of one window, of the clock and of the count of its stream; likewise. */
struct self_clock_window {
	const char *name;
	unsigned int stream; /* that it was opened on */
	uint64_t before_start, after_start, before_end;
	uint64_t ended_before_start, ending_after_start, ended_before_end;
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
 * Writes the sums and frees the clock. The file is then one JSON object:
 * {"windows":[{"phase":"train","name":"layer","id":1,"opened_on":2,"how":"closed","start_ns":[3,4],
 *              "end_ns":[8,9],"operations":[5,6]},...],
 *  "train":{"matmul":{"count":1,"inner_ns":2,"outer_ns":3},...},"infer":{...}}
 * where the truth lies between the numbers of each pair. NULL is fine. Returns 0 or the error of writing.
 */
int self_clock_close(struct self_clock *clock);

/* The stream that the calling thread is on; 0: its own, where only one thread ever begins anything. */
extern _Thread_local unsigned int self_clock_here;

/* The out-of-line halves of what is below. */
void self_clock_window_opening(struct self_clock_table *t, struct self_clock_window *w,
			       const char *name);
void self_clock_window_opened(struct self_clock_table *t, struct self_clock_window *w);
void self_clock_window_closing(struct self_clock_table *t, struct self_clock_window *w);
void self_clock_window_closed(struct self_clock_table *t, const struct self_clock_window *w,
			      const struct tmk_window *token, const char *how);

/*
 * What a device measured, as one more line of "windows": {"phase":"infer","id":1,"opened_on":2,
 * "ticks":[3,4,5]}, the last being ticks a second. A NULL table is fine.
 */
void self_clock_device(struct self_clock_table *t, const struct tmk_window *token,
		       const struct tmk_ticks *ticks);

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void self_clock_before_begin(const struct self_clock_table *t,
					   struct self_clock_span *span)
{
	if (!t)
		return;
	span->stream = self_clock_here;
	span->before_begin = clock_ns();
}

static inline void self_clock_after_begin(const struct self_clock_table *t,
					  struct self_clock_span *span)
{
	if (t)
		span->after_begin = clock_ns();
}

static inline void self_clock_before_end(struct self_clock_table *t, struct self_clock_span *span)
{
	if (!t)
		return;
	atomic_fetch_add(&t->streams[span->stream].ending, 1);
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
	atomic_fetch_add(&t->streams[span->stream].ended, 1);
}

/* Returns the stream before. */
static inline unsigned int self_clock_enter(unsigned int stream)
{
	const unsigned int before = self_clock_here;

	self_clock_here = stream;
	return before;
}

static inline void self_clock_before_start(struct self_clock_table *t, struct self_clock_window *w,
					   const char *name)
{
	if (t)
		self_clock_window_opening(t, w, name);
}

static inline void self_clock_after_start(struct self_clock_table *t, struct self_clock_window *w)
{
	if (t)
		self_clock_window_opened(t, w);
}

static inline void self_clock_before_close(struct self_clock_table *t, struct self_clock_window *w)
{
	if (t)
		self_clock_window_closing(t, w);
}

/* A window without an id is none: nobody listened when it was to be opened. */
static inline void self_clock_after_close(struct self_clock_table *t,
					  const struct self_clock_window *w,
					  const struct tmk_window *token, const char *how)
{
	if (t && token->id)
		self_clock_window_closed(t, w, token, how);
}

#endif
