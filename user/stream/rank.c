// SPDX-License-Identifier: BSD-2-Clause
/*
 * A Fenwick tree. See rank.h.
 */
#include "stream/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAP_MIN 16u

int tmk_rank_reset(struct tmk_rank *r, uint32_t live)
{
	uint32_t cap = CAP_MIN;
	uint32_t *tree = r->tree;

	while (cap < 2ull * (live + 1ull))
		cap *= 2;
	if (cap != r->cap) {
		tree = realloc(tree, (cap + 1ul) * sizeof(*tree));
		if (!tree)
			return -ENOMEM;
	}
	memset(tree, 0, (cap + 1ul) * sizeof(*tree));
	*r = (struct tmk_rank){ .tree = tree, .cap = cap };
	return 0;
}

static void sums_add(struct tmk_rank *r, uint32_t position, uint32_t change)
{
	for (uint32_t i = position + 1; i <= r->cap; i += i & -i)
		r->tree[i] += change;
}

uint32_t tmk_rank_add(struct tmk_rank *r)
{
	sums_add(r, r->n, 1);
	r->live++;
	return r->n++;
}

void tmk_rank_remove(struct tmk_rank *r, uint32_t position)
{
	sums_add(r, position, UINT32_MAX);
	r->live--;
	/* What is added and removed like a stack never fills it up. */
	if (position + 1 == r->n)
		r->n--;
}

uint32_t tmk_rank_before(const struct tmk_rank *r, uint32_t position)
{
	uint32_t sum = 0;

	for (uint32_t i = position; i; i &= i - 1)
		sum += r->tree[i];
	return sum;
}

void tmk_rank_free(struct tmk_rank *r)
{
	free(r->tree);
	memset(r, 0, sizeof(*r));
}
