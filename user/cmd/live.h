/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live status line of a recording: one line on the terminal, rewritten in place. Without a terminal
 * on stderr it prints nothing at all.
 */
#ifndef TICKMARK_CMD_LIVE_H
#define TICKMARK_CMD_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "assemble/assemble.h"

struct tmk_live {
	bool on;
	uint64_t start_ns, last_ns, last_operations;
};

void tmk_live_start(struct tmk_live *l, bool quiet, uint64_t now_ns);
/* Rewrites the line if half a second has passed since the last time. */
void tmk_live_update(struct tmk_live *l, uint64_t now_ns, const struct tmk_assembler_stats *st,
		     uint64_t lost);
/* Takes the line away, so that other output starts on a clean one. */
void tmk_live_clear(struct tmk_live *l);

#endif /* TICKMARK_CMD_LIVE_H */
