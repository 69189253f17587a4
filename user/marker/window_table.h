/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session's windows that are open, or closed and waiting for their device, and what goes on on its
 * streams meanwhile. Divided by stream, so that threads on different streams do not wait for each other.
 *
 * Thread-safe but for free. What is taken out of the table belongs to whoever took it; no lock is held
 * outside of a call.
 */
#ifndef TICKMARK_MARKER_WINDOW_TABLE_H
#define TICKMARK_MARKER_WINDOW_TABLE_H

#include "runtime3/runtime3.h"
#include "stream/streams.h"
#include "tickmark/window.h"

enum tmk_entry_state {
	TMK_ENTRY_OPEN,
	TMK_ENTRY_CLOSING, /* its closer is at work, perhaps in the backend */
	TMK_ENTRY_PENDING,
};

/* What is known of a window when it opens. */
struct tmk_window_opened {
	struct tmk_window token;
	const struct tmk_desc *name;
	uint64_t n, step;
	uint64_t time; /* ns, by the clock of the session's file */
	uint32_t tid;
	struct tmk_stream_id stream;
	const struct tmk_backend *backend; /* NULL: the host's clock alone */
	void *device;
	uint64_t handle;
};

struct tmk_window_entry {
	struct tmk_stream_window inside; /* first: parents are found by it */
	struct tmk_window_opened start;

	/* Under the lock. */
	enum tmk_entry_state state;
	bool closed;		    /* on its stream; its closer may still be at work */
	int failed;		    /* a recorded failure, negative errno */
	bool resolved;		    /* CLOSING: the result was faster than the backend's return */
	struct tmk_duration result; /* likewise */
	uint32_t slot, hash;
	struct tmk_window_entry *older, *newer;

	/* Of whoever has taken it, and of one that is pending. */
	struct tmk_duration *pending;
	struct tmk_r3_window line;
};

struct tmk_window_table;

/*
 * `n_max`: how many entries it keeps. `inside`: it is to say what lay in a window; costs most of the time
 * that a window takes. NULL without memory.
 */
struct tmk_window_table *tmk_window_table_new(uint32_t n_max, bool inside);

/* Entries that are still there are freed as they are; see tmk_window_table_take_newest(). */
void tmk_window_table_free(struct tmk_window_table *t);

/* --- operations, for a table whose windows say what lay inside; times are moved as streams.h says */

bool tmk_window_table_op_begin(struct tmk_window_table *t, const struct tmk_stream_id *id,
			       uint64_t *time);
bool tmk_window_table_op_end(struct tmk_window_table *t, const struct tmk_stream_id *id,
			     uint64_t begin_ns, uint64_t *time);

/* --- windows */

/* Enters an open window. Returns 0 or -ENOMEM. */
int tmk_window_table_add(struct tmk_window_table *t, const struct tmk_window_opened *start);

/*
 * After `w` was added: the oldest of all where there are more than n_max, to be given up; NULL where not.
 * CLOSING or taken out.
 */
struct tmk_window_entry *tmk_window_table_overflow(struct tmk_window_table *t, struct tmk_window w);

/*
 * The open window `w`, for its closer alone: CLOSING, and so registered no more. NULL where it is not
 * open. tmk_window_table_close() is due.
 */
struct tmk_window_entry *tmk_window_table_take(struct tmk_window_table *t, struct tmk_window w);

/*
 * Closes a window and lets it go, all at once, where nothing is left to do but to mark its end: it is
 * measured by the host's clock alone, and the table does not say what lay inside. False where it is not
 * open, or not of this kind: nothing was done.
 */
bool tmk_window_table_drop(struct tmk_window_table *t, struct tmk_window w,
			   const struct tmk_desc **name, int *failed);

/* What was found when a window was closed. */
struct tmk_window_found {
	struct tmk_stream_inside inside; /* but for the parent: */
	uint64_t parent_id;
	uint64_t start_ns, end_ns;
	int failed;
};

/* Closes a window that was taken, on its stream. The entry is still in the table. */
void tmk_window_table_close(struct tmk_window_table *t, struct tmk_window_entry *e, uint64_t time,
			    bool flush, struct tmk_window_found *found);

/*
 * Lets a closed window go: out of the table, the caller's. With `result` it is to stay, PENDING, with
 * e->pending and e->line as they are: true. Where its result has come meanwhile that is in *result, and
 * it is let go after all: false.
 */
bool tmk_window_table_release(struct tmk_window_table *t, struct tmk_window_entry *e,
			      struct tmk_duration *result);

/*
 * Takes a pending window out: *out is the caller's. Where its closer is not yet done the result is left
 * with it, and *out is NULL. Returns 0 or -ENOENT.
 */
int tmk_window_table_resolve(struct tmk_window_table *t, struct tmk_window w,
			     const struct tmk_duration *result, struct tmk_window_entry **out);

/* Notes a failure with every window that is open on a stream, or on the one `w` was opened on. */
void tmk_window_table_fail_stream(struct tmk_window_table *t, const struct tmk_stream_id *id,
				  int err);
int tmk_window_table_fail(struct tmk_window_table *t, struct tmk_window w, int err);

/* Takes out the entry that came last, open or pending; NULL when there is none. For the end of a session. */
struct tmk_window_entry *tmk_window_table_take_newest(struct tmk_window_table *t);

#endif /* TICKMARK_MARKER_WINDOW_TABLE_H */
