/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The windows of all sessions: which are open, which wait for their device, and how each one ended.
 *
 * A window is named by (session, opened_on, id). What becomes of its records:
 *  - an end closes the open window of its key, whatever thread it came from;
 *  - an end without one is a `window_repeated_end` as long as the first is remembered (like an
 *    operation's, cf. pair.h); otherwise it is told as a window that was opened before the capture;
 *  - a start of a key that is open counts as `window_start_reused`, and makes the window ambiguous: it
 *    never gets a duration;
 *  - a resolve of a key that waits for none counts as `resolve_unknown`;
 *  - of more than TMK_WINDOWS_MAX the oldest is given up.
 *
 * What lies inside a window is user/stream's to know, to which operations are told as well.
 */
#ifndef TICKMARK_ASSEMBLE_WINDOWS_H
#define TICKMARK_ASSEMBLE_WINDOWS_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/slots.h"
#include "capture_abi.h"
#include "sink/sink.h"
#include "stream/streams.h"

/* Held at a time, open and pending together; the library gives up the oldest at the same number. */
#define TMK_WINDOWS_HELD_MAX 131072u
/* Ended windows that are remembered: some of each set, by the low bits of their ids. */
#define TMK_WINDOWS_RECENT_SETS 2048u /* power of two */
#define TMK_WINDOWS_RECENT_WAYS 8u
/* What the totals of pending windows may take; those beyond are without. */
#define TMK_WINDOWS_TOTALS_MAX (16u << 20)

struct tmk_window_entry;

/* What the table needs to know of a session; embedded there. Zeroed, but for `id`, to begin with. */
struct tmk_window_owner {
	uint32_t id;
	struct tmk_window_entry *oldest, *newest;
	uint64_t n; /* windows so far */
	struct tmk_window_counts counts;
	uint64_t start_reused, repeated_end, resolve_unknown, after_flush;
};

/* A window that is all known. `w` lacks phase, name and pid, which are the caller's to add. */
struct tmk_window_told {
	struct tmk_r3_window w;
	uint64_t name; /* address */
	const struct tmk_stream_total *totals;
	size_t n_totals;
};

typedef void (*tmk_window_tell_fn)(void *ctx, struct tmk_window_owner *o,
				   struct tmk_window_told *told);

struct tmk_windows {
	struct tmk_seed seed;
	struct tmk_index index;
	struct tmk_slots slots;			  /* struct tmk_window_entry */
	struct tmk_window_entry *oldest, *newest; /* of all sessions */
	struct tmk_window_recent_set *recent;
	struct tmk_streams streams;
	size_t totals_bytes;
	uint64_t given_up; /* for want of room */
	uint64_t losses;   /* stretches of time in which hits were lost */
	bool losing;	   /* in one of them */
	tmk_window_tell_fn tell;
	void *ctx;
};

int tmk_windows_init(struct tmk_windows *t, const struct tmk_seed *seed, tmk_window_tell_fn tell,
		     void *ctx);
void tmk_windows_free(struct tmk_windows *t);

/* These return 0 or -ENOMEM. */
int tmk_windows_start(struct tmk_windows *t, struct tmk_window_owner *o,
		      const struct tmk_rec_window *r);
int tmk_windows_end(struct tmk_windows *t, struct tmk_window_owner *o,
		    const struct tmk_rec_window *r);
void tmk_windows_resolve(struct tmk_windows *t, struct tmk_window_owner *o,
			 const struct tmk_rec_window_resolve *r);

/* The session is over at `time` (has_time: by its own word). `reason` as an unfinished operation's. */
void tmk_windows_close(struct tmk_windows *t, struct tmk_window_owner *o, const char *reason,
		       uint64_t time);

/* Hits are being lost in the time whose records come next, or not any more. */
void tmk_windows_losing(struct tmk_windows *t, bool losing);

#endif /* TICKMARK_ASSEMBLE_WINDOWS_H */
