/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Training: batches, forward, backward, optimizer, step after step.
 */
#ifndef TRANSFORMER_TRAIN_H
#define TRANSFORMER_TRAIN_H

#include "adamw.h"
#include "text.h"

struct trainer {
	const struct text *text;
	const struct marks *marks;
	struct executor executor;
	struct gpt gpt;
	struct adamw adamw;
	struct rng rng;
	struct mark_site load_batch;
	uint64_t step; /* done so far */
};

/* The trainer must stay where it is. Returns 0, -ENOMEM, or -EFBIG. */
int trainer_open(struct trainer *t, const struct parameters *parameters, const struct text *text,
		 struct pool *pool, const struct marks *marks, size_t batch, uint64_t seed);
void trainer_close(struct trainer *t);

/* One step; returns its loss, before the parameters changed. */
double trainer_step(struct trainer *t);

#endif
