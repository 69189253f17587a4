// SPDX-License-Identifier: BSD-2-Clause
/*
 * The library's markers, and the switch that their notes name as their semaphore. See switch.h.
 */
#include "marker/switch.h"

/* Not in .bss: the kernel finds a semaphore by the file offset of its first byte. */
struct tmk_switch tmk_switch __attribute__((used, section(".probes"))) = {
	.registry_magic = TMK_REGISTRY_MAGIC,
};

TMK_MARKER(tmk_mark_session_open, session_open, tmk_switch, TMK_MARKER_ARGS_2);
TMK_MARKER(tmk_mark_session_finish, session_finish, tmk_switch, TMK_MARKER_ARGS_2);
TMK_MARKER(tmk_mark_op_begin, op_begin, tmk_switch, TMK_MARKER_ARGS_6);
TMK_MARKER(tmk_mark_op_end, op_end, tmk_switch, TMK_MARKER_ARGS_5);
TMK_MARKER(tmk_mark_edge, edge, tmk_switch, TMK_MARKER_ARGS_6);
TMK_MARKER(tmk_mark_window_start, window_start, tmk_switch, TMK_MARKER_ARGS_6);
TMK_MARKER(tmk_mark_window_end, window_end, tmk_switch, TMK_MARKER_ARGS_6);
TMK_MARKER(tmk_mark_window_resolve, window_resolve, tmk_switch, TMK_MARKER_ARGS_6);

static bool entry_swap(unsigned int i, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&tmk_switch.sessions[i], &from, to, false,
					   __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void tmk_switch_register(const struct tmk_desc *session)
{
	for (unsigned int i = 0; i < TMK_REGISTRY_SESSIONS; i++) {
		if (entry_swap(i, 0, (uintptr_t)session))
			return;
	}
}

void tmk_switch_unregister(const struct tmk_desc *session)
{
	for (unsigned int i = 0; i < TMK_REGISTRY_SESSIONS; i++) {
		if (entry_swap(i, (uintptr_t)session, 0))
			return;
	}
}
