/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers for operation names: many sites of many processes share a few. For sums by name.
 */
#ifndef TICKMARK_ASSEMBLE_OP_NAMES_H
#define TICKMARK_ASSEMBLE_OP_NAMES_H

#include "assemble/budget.h"
#include "base/hash.h"
#include "runtime3/runtime3.h"
#include "stream/totals.h"

/* Different names that are told apart in a capture. */
#define TMK_OP_NAMES_MAX 4096u

struct tmk_op_names {
	struct tmk_seed seed;
	struct tmk_index index;
	struct tmk_budget *budget;
	struct tmk_str *names;
	uint32_t n, cap;
};

void tmk_op_names_init(struct tmk_op_names *t, struct tmk_budget *budget,
		       const struct tmk_seed *seed);
void tmk_op_names_free(struct tmk_op_names *t);

/* The number of a name; TMK_STREAM_OTHERS where there is no room for it. */
uint32_t tmk_op_names_number(struct tmk_op_names *t, struct tmk_str name);

/* The name of a number, until the table is freed; data NULL for TMK_STREAM_OTHERS. */
struct tmk_str tmk_op_names_get(const struct tmk_op_names *t, uint32_t number);

#endif /* TICKMARK_ASSEMBLE_OP_NAMES_H */
