/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers for people: durations with a fitting unit, counts with grouped digits.
 */
#ifndef TICKMARK_BASE_FORMAT_H
#define TICKMARK_BASE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define TMK_FORMAT_MAX 32 /* bytes that hold any of these, NUL included */

/* Three significant digits: "812 ns", "1.24 µs", "97.0 ms", "3.50 s"; whole seconds above 1000 s. */
char *tmk_format_ns(char out[TMK_FORMAT_MAX], uint64_t ns);

/* "12,345,678" */
char *tmk_format_count(char out[TMK_FORMAT_MAX], uint64_t n);

#endif /* TICKMARK_BASE_FORMAT_H */
