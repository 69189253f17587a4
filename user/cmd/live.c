// SPDX-License-Identifier: BSD-2-Clause
/*
 * The live status line. See live.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/live.h"

#define UPDATE_NS 500000000ull

void tmk_live_start(struct tmk_live *l, bool quiet, uint64_t now_ns)
{
	const char *term = getenv("TERM");

	l->on = !quiet && isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb"));
	l->start_ns = l->last_ns = now_ns;
	l->last_operations = 0;
}

void tmk_live_update(struct tmk_live *l, uint64_t now_ns, const struct tmk_assembler_stats *st,
		     uint64_t lost)
{
	uint64_t spent = now_ns - l->last_ns;
	double rate;

	if (!l->on || spent < UPDATE_NS)
		return;
	rate = (st->operations - l->last_operations) * 1e9 / spent;
	fprintf(stderr,
		"\r\033[Ktickmark: %.1f s  %" PRIu64 " operations  %.0f/s  open %" PRIu64
		"  lost %" PRIu64 "  (^C ends)",
		(now_ns - l->start_ns) / 1e9, st->operations, rate, st->open, lost);
	fflush(stderr);
	l->last_ns = now_ns;
	l->last_operations = st->operations;
}

void tmk_live_clear(struct tmk_live *l)
{
	if (!l->on)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
}
