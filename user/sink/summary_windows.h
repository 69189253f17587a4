/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The summary's tables of windows, by name and method, and of the streams on which they were open.
 */
#ifndef TICKMARK_SINK_SUMMARY_WINDOWS_H
#define TICKMARK_SINK_SUMMARY_WINDOWS_H

#include <stdio.h>

#include "base/hash.h"
#include "sink/histogram.h"
#include "sink/sink.h"

/* Bounds against targets that make things up; what comes beyond is summed up in one row. */
#define TMK_SUMMARY_WINDOWS_MAX 1024u
#define TMK_SUMMARY_STREAMS_MAX 1024u
#define TMK_SUMMARY_INSIDE 16u /* operation names that are kept of a row */

struct tmk_summary_inside {
	char *name;
	size_t len;
	uint64_t total_ns;
};

/* Windows of one name and method. */
struct tmk_summary_window {
	char *name; /* raw bytes; NULL for "(others)" */
	size_t len;
	bool device;
	struct tmk_histogram durations;
	uint64_t abandoned, not_measured, failed, open;
	double idle_ns, idle_of_ns; /* of those that have both */
	struct tmk_summary_inside inside[TMK_SUMMARY_INSIDE];
	uint32_t n_inside;
	double inside_ns; /* of all operations, kept or not */
};

struct tmk_summary_stream {
	uint32_t pid;
	uint64_t number;
	bool named, others;
	uint64_t operations, windows;
	double operations_ns, windows_ns; /* windows_ns: of those that no other one holds */
	double idle_ns, idle_of_ns;
};

/* Zeroed, but for the seed, to begin with. */
struct tmk_summary_windows {
	struct tmk_seed seed;
	struct tmk_index by_name, by_stream;
	struct tmk_summary_window *rows; /* [0] is "(others)" */
	uint32_t n_rows, cap_rows;
	struct tmk_summary_stream *streams; /* [0] likewise */
	uint32_t n_streams, cap_streams;
	uint32_t last; /* stream found last */
	uint64_t n_windows;
	bool named; /* a stream that a program named was seen */
};

void tmk_summary_windows_op(struct tmk_summary_windows *t, const struct tmk_op_view *op);
void tmk_summary_windows_window(struct tmk_summary_windows *t, struct tmk_histogram_pool *pool,
				const struct tmk_window_view *w);

/* Nothing where there were neither windows nor named streams. */
void tmk_summary_windows_print(const struct tmk_summary_windows *t, const struct tmk_finish_view *f,
			       FILE *out);
void tmk_summary_windows_free(struct tmk_summary_windows *t, struct tmk_histogram_pool *pool);

#endif /* TICKMARK_SINK_SUMMARY_WINDOWS_H */
