/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sink that prints the summary table when a capture has ended: per operation name count, total,
 * share, mean, median, 99th percentile and maximum; then the sessions, what was still running, hits,
 * losses and the tracer's own cost. For people; the layout may change.
 */
#ifndef TICKMARK_SINK_SUMMARY_H
#define TICKMARK_SINK_SUMMARY_H

#include <stdio.h>

#include "sink/sink.h"

/* `out` is borrowed until the sink is freed. Returns 0 or -ENOMEM. */
int tmk_summary_new(struct tmk_sink *sink, FILE *out);

#endif /* TICKMARK_SINK_SUMMARY_H */
