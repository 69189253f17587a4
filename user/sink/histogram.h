/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A log-linear histogram of 64-bit values: exact below 64, 32 buckets an octave above. A quantile is
 * the middle of its bucket, so it is wrong by at most 1/64 (1.6 %) of the value. Octaves take memory
 * only where values fall, from a pool that many histograms share.
 */
#ifndef TICKMARK_SINK_HISTOGRAM_H
#define TICKMARK_SINK_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TMK_HISTOGRAM_STEPS 32u
#define TMK_HISTOGRAM_OCTAVES 60u /* 0..31, then one for each power of two from 32 on */

struct tmk_histogram_pool {
	size_t used, max; /* octaves */
};

struct tmk_histogram {
	uint64_t count, total; /* total saturates */
	uint64_t min, max;     /* exact */
	bool incomplete;       /* the pool was empty: quantiles are not known */
	uint64_t *octaves[TMK_HISTOGRAM_OCTAVES];
};

void tmk_histogram_add(struct tmk_histogram *h, struct tmk_histogram_pool *pool, uint64_t value);

/* The value at quantile q (0..1, nearest rank); false where there is none or it is not known. */
bool tmk_histogram_quantile(const struct tmk_histogram *h, double q, uint64_t *value);

void tmk_histogram_free(struct tmk_histogram *h, struct tmk_histogram_pool *pool);

#endif /* TICKMARK_SINK_HISTOGRAM_H */
