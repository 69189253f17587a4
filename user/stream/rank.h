/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many of the things that were added, and not removed since, were added before a given one: a Fenwick
 * tree over positions that count up. In logarithmic time.
 */
#ifndef TICKMARK_STREAM_RANK_H
#define TICKMARK_STREAM_RANK_H

#include <stdint.h>

struct tmk_rank {
	uint32_t *tree; /* cap + 1 sums */
	uint32_t n;	/* positions handed out since the last reset */
	uint32_t cap;	/* a power of two, or 0 */
	uint32_t live;
};

/* Whether the next add needs a reset first, after which the caller adds anew what it still has, in order. */
static inline int tmk_rank_full(const struct tmk_rank *r)
{
	return r->n == r->cap;
}

/* Empties it, with room for `live` things and as many again. Returns 0 or -ENOMEM (unchanged). */
int tmk_rank_reset(struct tmk_rank *r, uint32_t live);

/* Adds one, behind all others, and returns its position. Not when it is full. */
uint32_t tmk_rank_add(struct tmk_rank *r);
void tmk_rank_remove(struct tmk_rank *r, uint32_t position);

/* How many that were added before `position` are still there. */
uint32_t tmk_rank_before(const struct tmk_rank *r, uint32_t position);

void tmk_rank_free(struct tmk_rank *r);

#endif /* TICKMARK_STREAM_RANK_H */
