/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reckoning at the end of a capture, from what the parts of the assembler have counted.
 */
#ifndef TICKMARK_ASSEMBLE_FINISH_H
#define TICKMARK_ASSEMBLE_FINISH_H

#include "assemble/sessions.h"
#include "sink/sink.h"

struct tmk_finish {
	struct tmk_finish_view view; /* points into what follows */
	struct tmk_rec_end end;
	const struct tmk_session_view **sessions;
	struct tmk_session_totals *totals;
};

/* The status of a capture as it is printed; "failed" for a number that is none. */
const char *tmk_capture_status_name(uint32_t status);

/*
 * Fills everything that follows from the end record (NULL: cut short) and the sessions. The caller
 * sets the counters of the capture as a whole that are not in these. Returns 0 or -ENOMEM.
 */
int tmk_finish_fill(struct tmk_finish *f, const struct tmk_rec_end *end,
		    const struct tmk_sessions *sessions);
void tmk_finish_free(struct tmk_finish *f);

#endif /* TICKMARK_ASSEMBLE_FINISH_H */
