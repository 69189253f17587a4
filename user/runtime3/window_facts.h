/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the lines of one file say of its streams: when operations ended on each, and from when to when
 * its windows were open. It is what the claims of a window's own line are held against.
 *
 * Filled in any order, sealed once, then asked. 16 bytes an operation (24 while it is sealed) and 40 a
 * window; sealing takes n log n, a question log n. Any numbers will do. Not thread-safe.
 */
#ifndef TICKMARK_RUNTIME3_WINDOW_FACTS_H
#define TICKMARK_RUNTIME3_WINDOW_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/* A stream as lines print it. */
struct tmk_facts_stream {
	uint64_t number;
	bool named;
};

struct tmk_facts_op;
struct tmk_facts_window;

struct tmk_window_facts {
	struct tmk_seed seed;
	struct tmk_index index; /* of streams */
	struct tmk_facts_stream *streams;
	size_t n_streams, streams_cap;
	struct tmk_facts_op *ops;
	size_t n_ops, ops_cap;
	struct tmk_facts_window *windows;
	size_t n_windows, windows_cap;
	/* Sealed: the ends of stream i, ascending, are ends[first[i]] to ends[first[i + 1]]. */
	uint64_t *ends;
	size_t *first;
};

void tmk_window_facts_init(struct tmk_window_facts *f);
void tmk_window_facts_free(struct tmk_window_facts *f);

/* An operation ended. Returns 0 or -ENOMEM. */
int tmk_window_facts_op(struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			uint64_t end_ns);

struct tmk_facts_span {
	uint64_t start_ns, end_ns; /* end_ns UINT64_MAX: no end is known */
};

/* A window was open. Returns 0 or -ENOMEM. */
int tmk_window_facts_window(struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			    uint64_t id, const struct tmk_facts_span *span);

/* Sorts it all. Returns 0 or -ENOMEM: there is then nothing to ask. */
int tmk_window_facts_seal(struct tmk_window_facts *f);

/*
 * How many operations ended on the stream in that time: at least *least, and *most with those that ended
 * in the very nanosecond of its start or end.
 */
void tmk_window_facts_ended(const struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			    const struct tmk_facts_span *span, uint64_t *least, uint64_t *most);

/*
 * Whether a window of that stream and id held the span whole. `other` says that the span is itself of
 * such a window, and that it takes another one.
 */
bool tmk_window_facts_held(const struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			   uint64_t id, const struct tmk_facts_span *span, bool other);

#endif /* TICKMARK_RUNTIME3_WINDOW_FACTS_H */
