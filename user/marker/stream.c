// SPDX-License-Identifier: BSD-2-Clause
/*
 * Entering and leaving streams. A signal handler that interrupts these sees the stream before or after,
 * never a half of both: the number is there before the depth says so.
 */
#define TMK_NO_INLINE
#include "marker/stream.h"

#include <errno.h>
#include <inttypes.h>

#include "marker/error.h"

__thread struct tmk_thread_streams tmk_thread_streams;

int tmk_stream_enter(uint64_t number)
{
	struct tmk_thread_streams *t = &tmk_thread_streams;
	uint32_t depth = t->depth;

	if (depth < TMK_STREAM_DEPTH)
		t->number[depth] = number;
	__atomic_signal_fence(__ATOMIC_RELEASE);
	if (depth != UINT32_MAX)
		t->depth = depth + 1;
	if (depth < TMK_STREAM_DEPTH)
		return 0;
	return tmk_error_note(-ENOSPC, "leave the streams that are done with",
			      "stream %" PRIu64 ": %u are entered already", number, depth);
}

void tmk_stream_leave(void)
{
	if (tmk_thread_streams.depth)
		tmk_thread_streams.depth--;
}
