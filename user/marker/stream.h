/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which stream the calling thread is on.
 */
#ifndef TICKMARK_MARKER_STREAM_H
#define TICKMARK_MARKER_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "marker/identity.h"
#include "tickmark/window.h"

/* Small, and in the static TLS block, for the reasons that identity.h gives. */
struct tmk_thread_streams {
	uint32_t depth; /* enters without a leave; beyond TMK_STREAM_DEPTH they change nothing */
	uint64_t number[TMK_STREAM_DEPTH];
};

extern __thread struct tmk_thread_streams tmk_thread_streams
	__attribute__((tls_model("initial-exec")));

/* The number of the stream; *named tells whether the program chose it. Async-signal-safe. */
static inline uint64_t tmk_thread_stream(bool *named)
{
	uint32_t depth = tmk_thread_streams.depth;

	*named = depth != 0;
	if (!depth)
		return tmk_thread_id();
	if (depth > TMK_STREAM_DEPTH)
		depth = TMK_STREAM_DEPTH;
	return tmk_thread_streams.number[depth - 1];
}

#endif /* TICKMARK_MARKER_STREAM_H */
