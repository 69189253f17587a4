/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is going on on each stream: how many operations are in flight, which windows are open, and, when
 * a window closes, what lay inside it. One set of rules for the tracer's assembler and for the file that
 * a session writes by itself.
 *
 * An operation belongs to a window when it *ended* on the window's stream while that was open. Idle is
 * the window's time that no operation of the stream covers, whatever its own begin and end. Both come
 * out of running sums of the stream, so that an event costs the same however many windows are open.
 *
 * A stream is known only while something is in flight on it. Times of one stream never go backwards here:
 * every call that takes a time by pointer moves it up to the stream's last one where it was read before
 * another thread's event got in.
 *
 * Not thread-safe. No locks, no clock, no marks: those are the callers'.
 */
#ifndef TICKMARK_STREAM_STREAMS_H
#define TICKMARK_STREAM_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/slots.h"
#include "stream/rank.h"
#include "stream/totals.h"

/* A number that the program chose, or that of a thread whose own stream it is. */
struct tmk_stream_id {
	uint64_t owner; /* session; the caller's numbering */
	uint64_t number;
	bool named;
};

struct tmk_stream; /* streams.c's */

/* Embedded in the caller's own struct for a window; zeroed to begin with. */
struct tmk_stream_window {
	/* Set by tmk_streams_window_start(), for the caller to read. */
	uint64_t start_ns;
	/* streams.c's own. */
	struct tmk_stream *stream;	       /* NULL: not open */
	struct tmk_stream_window *prev, *next; /* on its stream, in the order of starts */
	uint32_t position;		       /* in stream->rank */
	uint32_t open_before;		    /* windows that were open on the stream at the start */
	uint64_t busy_ns, ended;	    /* the stream's running sums at the start */
	struct tmk_totals_snapshot *totals; /* likewise; NULL: not kept */
};

/* What a window was found to hold when it closed. */
struct tmk_stream_inside {
	uint64_t operations, idle_ns;
	uint32_t depth;	   /* windows of the stream that hold it whole */
	uint32_t overlaps; /* those that it overlaps without either holding the other */
	const struct tmk_stream_window
		*parent; /* the innermost that holds it, still open; or NULL */
	/* Only where totals are kept; NULL, 0: none, or no room. Valid until the next call. */
	const struct tmk_stream_total *totals;
	size_t n_totals;
};

struct tmk_streams {
	struct tmk_seed seed;
	struct tmk_index index;
	struct tmk_slots slots;	 /* struct tmk_stream, also those that are not in use */
	struct tmk_stream *last; /* found last: mostly the next one, too */
	bool keep_totals;
	size_t totals_bytes;
	struct tmk_stream_total scratch[TMK_STREAM_NAMES + 1];
};

void tmk_streams_init(struct tmk_streams *t, const struct tmk_seed *seed, bool keep_totals);
void tmk_streams_free(struct tmk_streams *t);

/* How many streams are known. */
static inline uint32_t tmk_streams_count(const struct tmk_streams *t)
{
	return tmk_slots_used(&t->slots);
}

/* An operation begins. Returns 0 or -ENOMEM: it is then not to be ended here. */
int tmk_streams_op_begin(struct tmk_streams *t, const struct tmk_stream_id *id, uint64_t *time);

/* Flushes that are remembered on a stream while something is in flight there. */
#define TMK_STREAM_FLUSHES 4u

struct tmk_stream_op {
	uint64_t begin_ns;
	uint32_t name; /* the caller's number for its name; only for totals */
};

/*
 * An operation that was begun here ends. Returns whether it ended after a flush that should have drained
 * it: it was begun in a window that was then closed with flush, and is still remembered.
 */
bool tmk_streams_op_end(struct tmk_streams *t, const struct tmk_stream_id *id,
			const struct tmk_stream_op *op, uint64_t *time);

/* An operation that was begun here will never end, or nobody will know when. */
void tmk_streams_op_drop(struct tmk_streams *t, const struct tmk_stream_id *id, uint64_t time);

/* Opens a window. Returns 0 or -ENOMEM. */
int tmk_streams_window_start(struct tmk_streams *t, const struct tmk_stream_id *id,
			     struct tmk_stream_window *w, uint64_t *time);

/* Closes it, however: an abandoned one held as much up to here. */
void tmk_streams_window_end(struct tmk_streams *t, struct tmk_stream_window *w, uint64_t *time,
			    bool flush, struct tmk_stream_inside *inside);

/*
 * The windows that are open on a stream, the oldest first; NULL when there is none. Nothing may be
 * called meanwhile but for the caller's own window.
 */
struct tmk_stream_window *tmk_streams_windows(struct tmk_streams *t,
					      const struct tmk_stream_id *id);
static inline struct tmk_stream_window *tmk_stream_window_next(const struct tmk_stream_window *w)
{
	return w->next;
}

#endif /* TICKMARK_STREAM_STREAMS_H */
