/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session, as the library's own files see it.
 */
#ifndef TICKMARK_MARKER_SESSION_H
#define TICKMARK_MARKER_SESSION_H

#include "marker/identity.h"
#include "marker/session_file.h"
#include "marker/window_table.h"
#include "tickmark/tickmark.h"

/* The session's windows, in one of the processes that a fork() made of it. */
struct tmk_session_windows {
	uint32_t fork_depth;
	struct tmk_window_table *table;
	struct tmk_session_windows *next; /* of those that were left, see window.c */
};

struct tmk_session {
	uint64_t id; /* unique in the process, never reused */
	struct tmk_desc *desc;
	struct tmk_session_file *file; /* NULL: only marks */
	uint32_t fork_depth;	       /* of the process that opened the file */
	enum tmk_phase phase;
	uint64_t step;			     /* atomic */
	struct tmk_session_windows *windows; /* atomic; NULL: none was needed yet */
	uint64_t last_window;		     /* atomic; how many windows were opened */
	/* Atomic; the last token handed out. On a line of its own: every begin of every thread writes it. */
	uint64_t last_token __attribute__((aligned(64)));
};

/* The session's file, where there is one and this process may write it. */
static inline struct tmk_session_file *tmk_session_own_file(const struct tmk_session *s)
{
	return s->fork_depth == tmk_fork_depth() ? s->file : NULL;
}

static inline uint64_t tmk_session_step_now(const struct tmk_session *s)
{
	return __atomic_load_n(&s->step, __ATOMIC_RELAXED);
}

#endif /* TICKMARK_MARKER_SESSION_H */
