// SPDX-License-Identifier: BSD-2-Clause
/*
 * The histogram behind the summary's quantiles.
 */
#include "sink/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Octave 0 holds 0..31, octave k > 0 holds 32 << (k-1) up to 64 << (k-1), in steps of 1 << (k-1). */
static unsigned int octave_of(uint64_t value)
{
	return value < TMK_HISTOGRAM_STEPS ? 0 : 59u - (unsigned int)__builtin_clzll(value);
}

static unsigned int step_of(uint64_t value, unsigned int octave)
{
	return octave ? (unsigned int)(value >> (octave - 1)) - TMK_HISTOGRAM_STEPS
		      : (unsigned int)value;
}

static uint64_t step_middle(unsigned int octave, unsigned int step)
{
	uint64_t width;

	if (!octave)
		return step;
	width = 1ull << (octave - 1);
	return (TMK_HISTOGRAM_STEPS + step) * width + width / 2;
}

static uint64_t *octave_new(struct tmk_histogram_pool *pool)
{
	uint64_t *octave;

	if (pool->used == pool->max)
		return NULL;
	octave = calloc(TMK_HISTOGRAM_STEPS, sizeof(*octave));
	pool->used += octave != NULL;
	return octave;
}

void tmk_histogram_add(struct tmk_histogram *h, struct tmk_histogram_pool *pool, uint64_t value)
{
	unsigned int octave = octave_of(value);

	if (!h->count || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->total = h->total + value < h->total ? UINT64_MAX : h->total + value;
	if (!h->octaves[octave])
		h->octaves[octave] = octave_new(pool);
	if (!h->octaves[octave]) {
		h->incomplete = true;
		return;
	}
	h->octaves[octave][step_of(value, octave)]++;
}

bool tmk_histogram_quantile(const struct tmk_histogram *h, double q, uint64_t *value)
{
	uint64_t rank, seen = 0;

	if (!h->count || h->incomplete)
		return false;
	rank = (uint64_t)ceil(q * (double)h->count);
	if (rank < 1)
		rank = 1;
	for (unsigned int o = 0; o < TMK_HISTOGRAM_OCTAVES; o++) {
		for (unsigned int s = 0; h->octaves[o] && s < TMK_HISTOGRAM_STEPS; s++) {
			seen += h->octaves[o][s];
			if (seen < rank)
				continue;
			*value = step_middle(o, s);
			/* Never outside of what was seen. */
			if (*value < h->min)
				*value = h->min;
			if (*value > h->max)
				*value = h->max;
			return true;
		}
	}
	*value = h->max;
	return true;
}

void tmk_histogram_free(struct tmk_histogram *h, struct tmk_histogram_pool *pool)
{
	for (unsigned int o = 0; o < TMK_HISTOGRAM_OCTAVES; o++) {
		pool->used -= h->octaves[o] != NULL;
		free(h->octaves[o]);
	}
	memset(h, 0, sizeof(*h));
}
