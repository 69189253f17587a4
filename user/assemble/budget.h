/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limit on memory that grows with what a target says.
 */
#ifndef TICKMARK_ASSEMBLE_BUDGET_H
#define TICKMARK_ASSEMBLE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

struct tmk_budget {
	size_t used, max;
};

static inline bool tmk_budget_take(struct tmk_budget *b, size_t bytes)
{
	if (bytes > b->max - b->used)
		return false;
	b->used += bytes;
	return true;
}

static inline void tmk_budget_give(struct tmk_budget *b, size_t bytes)
{
	b->used -= bytes;
}

#endif /* TICKMARK_ASSEMBLE_BUDGET_H */
