/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Talking to the person at the terminal: all talk goes to stderr, and no byte that came from a target
 * reaches a terminal raw.
 */
#ifndef TICKMARK_BASE_REPORT_H
#define TICKMARK_BASE_REPORT_H

#include <stddef.h>
#include <stdio.h>

/* Exit statuses of every subcommand. */
enum tmk_exit {
	TMK_EXIT_OK = 0,
	TMK_EXIT_FAILED = 1, /* one line said what, and what to do */
	TMK_EXIT_USAGE = 2,
	TMK_EXIT_LOSS = 3, /* the output is whole, but something was lost */
};

/*
 * One line on stderr, "tickmark: …". Begin with the object, then the reason, then what to do. The
 * formatted text is made safe for a terminal as by tmk_safe().
 */
void tmk_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tmk_note(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* silenced by -q */
void tmk_report_set_quiet(int quiet);

/*
 * Copies `len` bytes of anything into out (of `cap` bytes, always ended by a NUL), with control bytes,
 * DEL, C1 controls and invalid UTF-8 replaced by "?", cut at a character boundary. Returns out.
 */
char *tmk_safe(char *out, size_t cap, const char *data, size_t len);

/* The number of terminal columns that a safe UTF-8 string takes (code points; wide ones count 1). */
size_t tmk_safe_width(const char *s);

#endif /* TICKMARK_BASE_REPORT_H */
