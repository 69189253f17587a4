/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runtime/3 file that a session writes by itself, in its own process, with no tracer: clocks its
 * operations, remembers those in flight, and writes whole lines. Numbering events, keeping the step and
 * firing markers is the session's.
 *
 * Thread-safe but for open and close. After a fork() the child's copy is dead: nothing but
 * tmk_session_file_abandon() may be called for it.
 */
#ifndef TICKMARK_MARKER_SESSION_FILE_H
#define TICKMARK_MARKER_SESSION_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "marker/op_table.h"
#include "tickmark/marker_abi.h"

struct tmk_session_file;

/*
 * `session` describes the session and must stay until the file is closed. Returns 0 or -errno, with the
 * reason noted for tmk_last_error().
 */
int tmk_session_file_open(struct tmk_session_file **out, const char *path,
			  const struct tmk_desc *session, bool strict);

/*
 * Prepares an operation; NULL without memory, which is counted. It begins, and its time runs, with
 * tmk_session_file_start(), after which the slot is no longer the caller's.
 */
struct tmk_op_slot *tmk_session_file_prepare(struct tmk_session_file *f,
					     const struct tmk_desc *site, uint64_t step,
					     uint64_t stream, bool named);

/* `windows`: where it counts on its stream; NULL: it does not. */
void tmk_session_file_start(const struct tmk_session_file *f, struct tmk_op_slot *slot,
			    uint64_t token, struct tmk_window_table *windows);

/* The clock that durations are measured with. */
uint64_t tmk_session_file_now(void);

struct tmk_op_end {
	uint64_t token, index1; /* of the slot; with TMK_TOKEN_NAMED */
	uint64_t now, step;
	uint64_t last_token; /* the last one that the session handed out */
	const char *output;  /* or NULL */
};

/* Returns 0 and the duration, or -ENOENT, which is counted. */
int tmk_session_file_end(struct tmk_session_file *f, const struct tmk_op_end *end,
			 uint64_t *duration_ns);

struct tmk_edge_event {
	uint64_t token, step, duration_ns;
	const char *from, *to;
};

/* Writes a window's line; the rest of it, the phase and the pid, is filled in here. */
void tmk_session_file_window(struct tmk_session_file *f, struct tmk_r3_window *w);

void tmk_session_file_edge(struct tmk_session_file *f, const struct tmk_edge_event *edge);

/* Returns 0 or the first write error, noted for tmk_last_error(). */
int tmk_session_file_flush(struct tmk_session_file *f);

/* Writes the closing line and frees. Returns as flush does. */
int tmk_session_file_close(struct tmk_session_file *f);

/* Lets go of a parent's file in a forked child. */
void tmk_session_file_abandon(struct tmk_session_file *f);

/* Keep opening and closing out, for fork(); and forget, in a child, what was open. */
void tmk_session_files_lock(void);
void tmk_session_files_unlock(void);
void tmk_session_files_forget(void);

#endif /* TICKMARK_MARKER_SESSION_FILE_H */
