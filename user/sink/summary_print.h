/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the summary has collected, between the part that collects (summary.c) and the one that prints
 * (summary_print.c).
 */
#ifndef TICKMARK_SINK_SUMMARY_PRINT_H
#define TICKMARK_SINK_SUMMARY_PRINT_H

#include <stdio.h>

#include "base/hash.h"
#include "sink/histogram.h"
#include "sink/sink.h"
#include "sink/summary_table.h"
#include "sink/summary_windows.h"

/* Bounds against targets that make up names: different ones, and 256 bytes each for their quantiles. */
#define TMK_SUMMARY_NAMES_MAX 4096u
#define TMK_SUMMARY_OCTAVES_MAX 32768u

#define TMK_SUMMARY_CACHE 1024u
#define TMK_SUMMARY_UNFINISHED 8u

struct tmk_summary_name {
	char *name; /* raw bytes; NULL for "(others)" */
	size_t len;
	struct tmk_histogram durations;
};

struct tmk_summary_cache {
	uint64_t site1; /* site index + 1; 0 = empty */
	uint32_t slot;
};

struct tmk_summary_unfinished {
	char name[48]; /* safe */
	uint32_t pid, tid;
	uint64_t start_ns;
	const char *reason;
};

struct tmk_summary {
	FILE *out;
	struct tmk_seed seed;
	struct tmk_index index;
	struct tmk_summary_name *names; /* [0] is "(others)" */
	uint32_t n_names, cap;
	struct tmk_summary_cache cache[TMK_SUMMARY_CACHE];
	struct tmk_histogram_pool pool;
	struct tmk_summary_unfinished unfinished[TMK_SUMMARY_UNFINISHED];
	uint64_t n_unfinished;
	struct tmk_summary_windows windows;
};

void tmk_summary_print(struct tmk_summary *sum, const struct tmk_finish_view *f);

#endif /* TICKMARK_SINK_SUMMARY_PRINT_H */
