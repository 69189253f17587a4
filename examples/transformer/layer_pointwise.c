// SPDX-License-Identifier: BSD-2-Clause
/*
 * The operations that treat each number on its own: GELU with its gradient, and the sum of two
 * tensors.
 */
#include <tgmath.h>

#include "layers.h"

/* sqrt(2 / pi), and the cubic term of the tanh form */
#define GELU_A ((real)0.7978845608028654)
#define GELU_B ((real)0.044715)

/*
 * (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)): exp has a vector form everywhere, tanh has not. Below the
 * clamp the result is zero in every precision, and exp stays finite.
 */
static inline real gate(real x)
{
	const real v = -2 * GELU_A * (x + GELU_B * x * x * x);

	return 1 / (1 + exp(v < 80 ? v : 80));
}

void gelu_forward(const void *layer, struct range rows)
{
	const struct gelu *g = layer;
	const real *restrict x = g->x;
	real *restrict y = g->y;

	for (size_t i = rows.from * g->width; i < rows.to * g->width; i++)
		y[i] = x[i] * gate(x[i]);
}

void gelu_backward(const void *layer, struct range rows)
{
	const struct gelu *g = layer;
	const real *restrict x = g->x;
	const real *restrict dy = g->dy;
	real *restrict dx = g->dx;

	for (size_t i = rows.from * g->width; i < rows.to * g->width; i++) {
		const real s = gate(x[i]);
		const real slope = 2 * GELU_A * (1 + 3 * GELU_B * x[i] * x[i]);

		dx[i] = dy[i] * (s + x[i] * s * (1 - s) * slope);
	}
}

void add_forward(const void *layer, struct range rows)
{
	const struct add *add = layer;
	const real *restrict a = add->a;
	const real *restrict b = add->b;
	real *restrict y = add->y;

	for (size_t i = rows.from * add->width; i < rows.to * add->width; i++)
		y[i] = a[i] + b[i];
}
