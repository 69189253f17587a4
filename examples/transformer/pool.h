/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker threads. A job is cut into pieces; any worker runs any piece; nothing here knows what a
 * piece computes. Each worker is on a stream of its own, see STREAM_OF_WORKER() in marks.h.
 *
 * One thread, the one that opened the pool, submits and waits. Jobs are started in the order in which
 * they were submitted; several may be in flight.
 */
#ifndef TRANSFORMER_POOL_H
#define TRANSFORMER_POOL_H

#define POOL_THREADS_MAX 64u

struct pool;

/* Owned by the caller, who leaves it alone from pool_submit() until pool_wait() returned. */
struct job {
	void (*run)(struct job *job, unsigned int piece);
	void (*done)(struct job *job); /* on the worker that ran the last piece; may be NULL */
	unsigned int pieces;	       /* at least 1 */

	/* The pool's own. */
	struct job *next;
	unsigned int taken;
	unsigned int left;
};

/* Starts `threads` workers (1 to POOL_THREADS_MAX). Returns 0 or a negative errno. */
int pool_open(struct pool **out, unsigned int threads);

/* Waits for the workers to leave. No job may be in flight. NULL is fine. */
void pool_close(struct pool *pool);

unsigned int pool_threads(const struct pool *pool);

void pool_submit(struct pool *pool, struct job *job);

/* Returns once every piece has run and `done` has returned; at once for a job never submitted. */
void pool_wait(struct pool *pool, struct job *job);

#endif
