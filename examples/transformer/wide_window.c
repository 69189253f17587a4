// SPDX-License-Identifier: BSD-2-Clause
/*
 * A window on every stream at once. A stream is no thread: to open a window on a worker's stream, the
 * caller enters that stream for a moment, whatever the worker does meanwhile. To close one, nobody has
 * to be anywhere: a window knows where it was opened.
 */
#include "wide_window.h"

void wide_window_start(struct wide_window *wide, const struct marks *marks, const struct pool *pool,
		       const char *own, const char *others)
{
	wide->own = window_start(marks, own);
	for (unsigned int i = 0; i < pool_threads(pool); i++) {
		const unsigned int before = stream_enter(STREAM_OF_WORKER(i));

		wide->workers[i] = window_start(marks, others);
		stream_leave(before);
	}
}

void wide_window_end(struct wide_window *wide, const struct marks *marks, const struct pool *pool)
{
	for (unsigned int i = 0; i < pool_threads(pool); i++)
		window_end(marks, &wide->workers[i], NULL);
	window_end(marks, &wide->own, NULL);
}

void wide_window_abandon(struct wide_window *wide, const struct marks *marks,
			 const struct pool *pool)
{
	for (unsigned int i = 0; i < pool_threads(pool); i++)
		window_abandon(marks, &wide->workers[i]);
	window_abandon(marks, &wide->own);
}
