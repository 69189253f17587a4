/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The switch that says who listens, and the marker functions themselves. What their arguments are, and
 * what the switch holds, is in marker_abi.h; when to fire is the callers'.
 */
#ifndef TICKMARK_MARKER_SWITCH_H
#define TICKMARK_MARKER_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "marker/marker_asm.h"
#include "tickmark/marker_abi.h"

/*
 * Protected: every module that the library is linked into has its own markers, and these go with their
 * own switch. It also makes a linker refuse to copy the object into an executable.
 */
extern struct tmk_switch tmk_switch __attribute__((visibility("protected")));

/* Arguments that a marker does not have are 0. */
TMK_MARKER_DECLARE(tmk_mark_session_open);
TMK_MARKER_DECLARE(tmk_mark_session_finish);
TMK_MARKER_DECLARE(tmk_mark_op_begin);
TMK_MARKER_DECLARE(tmk_mark_op_end);
TMK_MARKER_DECLARE(tmk_mark_edge);
TMK_MARKER_DECLARE(tmk_mark_window_start);
TMK_MARKER_DECLARE(tmk_mark_window_end);
TMK_MARKER_DECLARE(tmk_mark_window_resolve);

/* Whether a tracer is attached to the direct markers. The kernel writes the word, whenever it likes. */
static inline bool tmk_switch_traced(void)
{
	return __atomic_load_n(&tmk_switch.direct, __ATOMIC_RELAXED);
}

/* Counts the sessions of this process that write a file. */
static inline void tmk_switch_in_process(int change)
{
	__atomic_add_fetch(&tmk_switch.in_process, (tmk_u32)change, __ATOMIC_RELAXED);
}

/*
 * Enters an open session in the registry, or takes it out. A full registry is fine: a session that is not
 * in it is still described to a tracer by its marks.
 */
void tmk_switch_register(const struct tmk_desc *session);
void tmk_switch_unregister(const struct tmk_desc *session);

#endif /* TICKMARK_MARKER_SWITCH_H */
