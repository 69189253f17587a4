/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One stretch of the work, measured on every stream that takes part in it: a window on the stream of
 * the calling thread, and one on the stream of each worker. What they hold differs: the caller's has the
 * operations that it queued, a worker's has the pieces that this worker executed, and how long it had
 * nothing to do.
 */
#ifndef TRANSFORMER_WIDE_WINDOW_H
#define TRANSFORMER_WIDE_WINDOW_H

#include "marks.h"
#include "pool.h"

struct wide_window {
	struct window own;
	struct window workers[POOL_THREADS_MAX];
};

/* `own` names the caller's window, `others` those on the streams of the workers. */
void wide_window_start(struct wide_window *wide, const struct marks *marks, const struct pool *pool,
		       const char *own, const char *others);
void wide_window_end(struct wide_window *wide, const struct marks *marks, const struct pool *pool);
void wide_window_abandon(struct wide_window *wide, const struct marks *marks,
			 const struct pool *pool);

#endif
