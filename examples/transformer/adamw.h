/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AdamW with a limit on the norm of the gradient: the graph AdamW::step, which changes the values of
 * parameters.h after the gradients of gpt.h.
 */
#ifndef TRANSFORMER_ADAMW_H
#define TRANSFORMER_ADAMW_H

#include "gpt.h"

struct adamw_rates {
	double learning;
	double beta1, beta2; /* how much of the old moments stays */
	double epsilon;
	double decay; /* of matrices only */
	double norm_limit;
	unsigned long warm_up; /* steps until `learning` is reached */
};

struct adamw {
	struct adamw_rates rates;
	const struct parameters *parameters;
	struct arena arena;
	real *first, *second; /* moments, as parameters.values */
	double *squares;      /* sum of the squared gradients of each group */

	/* Of the present step. */
	unsigned long step; /* from 1 */
	double learning;
	double correction1, correction2;

	struct adamw_group *groups;
	struct graph graph;
};

/* What the kernel of one group gets. */
struct adamw_group {
	struct adamw *adamw;
	const struct group *group;
};

extern const struct adamw_rates adamw_default_rates;

/* The optimizer must stay where it is. Returns 0, -ENOMEM, or -EFBIG. */
int adamw_open(struct adamw *adamw, const struct gpt *gpt, const struct marks *marks,
	       const struct adamw_rates *rates);
void adamw_close(struct adamw *adamw);

/* One step, with the gradients that the backward graph left. */
void adamw_run(struct adamw *adamw, const struct executor *executor);

#endif
