/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing windows, whoever asks for it: the calls of the public header, and profile.c's.
 */
#ifndef TICKMARK_MARKER_WINDOW_H
#define TICKMARK_MARKER_WINDOW_H

#include "marker/session.h"

/* The session's table of windows, made where there is none; NULL without memory. */
struct tmk_window_table *tmk_session_window_table(struct tmk_session *s);

/* What a window is measured with. */
struct tmk_window_way {
	const struct tmk_backend *backend; /* NULL: the host's clock alone */
	void *device;
	uint64_t handle; /* the backend's, which has opened it */
};

/* Opens a window, whether anybody listens or not. Returns 0, or -ENOMEM: nothing is open then. */
int tmk_window_open(struct tmk_session *s, const struct tmk_window_way *way, const char *name,
		    struct tmk_window *w);

/*
 * Closes it; `d` may be NULL. `sync_err`: the host's measurement failed, for this reason; 0: it did not.
 */
int tmk_window_close(struct tmk_session *s, struct tmk_window w,
		     const struct tmk_window_options *options, int sync_err,
		     struct tmk_duration *d);

/* Gives up one of the backend's own. */
void tmk_backend_abandon(const struct tmk_window_way *way);

/* Flushes, where that was asked for, and closes one of the backend's own. Returns 0 or what failed. */
int tmk_backend_end(const struct tmk_window_way *way, const struct tmk_window_options *options,
		    struct tmk_duration *d);

/* The session ends: what is still open is abandoned, what is pending was never measured. */
void tmk_windows_finish(struct tmk_session *s);

#endif /* TICKMARK_MARKER_WINDOW_H */
