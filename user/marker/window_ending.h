/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a window ended, and what its mark and its line say of that.
 */
#ifndef TICKMARK_MARKER_WINDOW_ENDING_H
#define TICKMARK_MARKER_WINDOW_ENDING_H

#include "marker/window_table.h"

struct tmk_window_ending {
	enum tmk_window_outcome outcome;
	const char *reason; /* of the line */
	int err;	    /* FAILED: negative errno */
	bool flush;
	struct tmk_duration duration;
};

/* From what the clocks say; `err` is what went wrong before. */
void tmk_window_ending_decide(const struct tmk_window_entry *e,
			      const struct tmk_window_found *found, int err,
			      struct tmk_window_ending *end);

/* `how` of the window_end marker. */
uint64_t tmk_window_how(const struct tmk_window_ending *end, const struct tmk_backend *backend);

/* The entry's line: but for its result, and the part that the result decides. */
void tmk_window_line_fill(struct tmk_window_entry *e, const struct tmk_window_found *found,
			  bool flush);
void tmk_window_line_result(struct tmk_r3_window *line, const struct tmk_window_ending *end);

#endif /* TICKMARK_MARKER_WINDOW_ENDING_H */
