/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verdict of candle-graph's importer on a runtime/3 file, without candle-graph.
 *
 * Same acceptance as `candle_graph::runtime::parse` of crate candle-graph 0.3.0 (feature runtime, with
 * serde 1.0.229 and serde_json 1.0.154) on the file's text, but with the line and the reason of every
 * violation, where the importer stops at its first. Reads in constant memory but for the set of event
 * ids, and any bytes at all.
 */
#ifndef TICKMARK_RUNTIME3_CHECK_H
#define TICKMARK_RUNTIME3_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_check_counts {
	uint64_t lines; /* of the text, blank ones too */
	uint64_t edges, tensors, values, gradients;
	/*
	 * The importer's operations, sorted by tickmark's own fields: plain ones, those with "window",
	 * "unfinished" and "capture".
	 */
	uint64_t operations, windows, unfinished, captures;
	bool document;	  /* one JSON document and not JSON lines */
	bool has_capture; /* JSON lines, and the last one is a closing capture line */
};

/* Called once a violation; `line` counts from 1, 0 = the file as a whole. `text` is safe to print. */
typedef void (*tmk_check_report_fn)(void *ctx, uint64_t line, const char *text);

/*
 * Checks `len` bytes at `data`. Returns the number of violations (0: the importer accepts), of which
 * the first `max_reports` are reported, in order, through `report` (may be NULL); or -ENOMEM, or -EFBIG
 * for an event id of 4 GiB. The bytes may change meanwhile: the verdict is then about nothing, but
 * nothing worse happens. Thread-safe.
 */
int64_t tmk_check_memory(const char *data, size_t len, tmk_check_report_fn report, void *ctx,
			 uint64_t max_reports, struct tmk_check_counts *counts);

#endif /* TICKMARK_RUNTIME3_CHECK_H */
