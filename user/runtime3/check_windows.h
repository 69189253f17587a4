/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether what a file says of windows is true of its own lines. The importer looks at none of it, so
 * this is no part of its verdict (check.h), and only files that show themselves as tickmark's are held
 * to it: their last line is a capture line with a `source`. Of those, it is about lines whose `window`
 * is an object with a whole `id` and `opened_on`.
 *
 * The rules, by the names that reports show, are in docs/output.md.
 */
#ifndef TICKMARK_RUNTIME3_CHECK_WINDOWS_H
#define TICKMARK_RUNTIME3_CHECK_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime3/check.h"

/*
 * Returns how often a rule is broken, of which the first `max_reports` are reported in the order of
 * lines, each as "window: RULE: what"; or -ENOMEM. `counts` are tmk_check_memory()'s of the same bytes,
 * which may change meanwhile as there. Memory for every operation (window_facts.h), but only of files
 * that have windows. Thread-safe.
 */
int64_t tmk_check_windows(const char *data, size_t len, const struct tmk_check_counts *counts,
			  tmk_check_report_fn report, void *ctx, uint64_t max_reports);

#endif /* TICKMARK_RUNTIME3_CHECK_WINDOWS_H */
