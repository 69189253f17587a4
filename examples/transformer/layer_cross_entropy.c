// SPDX-License-Identifier: BSD-2-Clause
/*
 * The loss: softmax over the vocabulary, cross-entropy of the target, and the gradient of their mean.
 */
#include "layers.h"
#include "vector.h"

/* A target of no probability at all costs this much instead of infinity. */
#define SMALLEST ((real)1e-30)

void cross_entropy_softmax(const void *layer, struct range rows)
{
	const struct cross_entropy *ce = layer;
	const size_t n = ce->vocab;

	for (size_t r = rows.from; r < rows.to; r++)
		vector_softmax(ce->logits + r * n, ce->probabilities + r * n, n);
}

void cross_entropy_loss(const void *layer, struct range rows)
{
	const struct cross_entropy *ce = layer;

	for (size_t r = rows.from; r < rows.to; r++) {
		const real p = ce->probabilities[r * ce->vocab + (size_t)ce->targets[r]];

		ce->losses[r] = -log(p > SMALLEST ? p : SMALLEST);
	}
}

void cross_entropy_backward(const void *layer, struct range rows)
{
	const struct cross_entropy *ce = layer;
	const real share = (real)1 / (real)(ce->shape->batch * ce->shape->time);

	for (size_t r = rows.from; r < rows.to; r++) {
		const real *restrict p = ce->probabilities + r * ce->vocab;
		real *restrict d = ce->d_logits + r * ce->vocab;

		for (size_t i = 0; i < ce->vocab; i++)
			d[i] = p[i] * share;
		d[ce->targets[r]] -= share;
	}
}
