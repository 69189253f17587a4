// SPDX-License-Identifier: BSD-2-Clause
/*
 * The matrix product with bias, and its two gradients. Nearly all the time of a step goes here.
 *
 * Each loop takes four inputs (or rows) at a time: the sums it adds to are then loaded and stored a
 * quarter as often, and the innermost loop runs over consecutive memory, which the compiler turns
 * into vector instructions.
 */
#include <string.h>

#include "layers.h"
#include "vector.h"

static void row_forward(const struct matmul *m, const real *restrict x, real *restrict y)
{
	const size_t n = m->n_out;
	const real *w = m->w;
	size_t i = 0;

	memcpy(y, m->bias, n * sizeof(*y));
	for (; i + 4 <= m->n_in; i += 4, w += 4 * n) {
		const real x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];

		for (size_t o = 0; o < n; o++)
			y[o] += x0 * w[o] + x1 * w[n + o] + x2 * w[2 * n + o] + x3 * w[3 * n + o];
	}
	for (; i < m->n_in; i++, w += n) {
		for (size_t o = 0; o < n; o++)
			y[o] += x[i] * w[o];
	}
}

void matmul_forward(const void *layer, struct range rows)
{
	const struct matmul *m = layer;

	for (size_t r = rows.from; r < rows.to; r++)
		row_forward(m, m->x + r * m->n_in, m->y + r * m->n_out);
}

static void row_backward(const struct matmul *m, const real *restrict dy, real *restrict dx)
{
	const size_t n = m->n_out;
	const real *restrict w = m->w;
	size_t i = 0;

	for (; i + 4 <= m->n_in; i += 4, w += 4 * n) {
		real d0 = 0, d1 = 0, d2 = 0, d3 = 0;

		for (size_t o = 0; o < n; o++) {
			d0 += dy[o] * w[o];
			d1 += dy[o] * w[n + o];
			d2 += dy[o] * w[2 * n + o];
			d3 += dy[o] * w[3 * n + o];
		}
		dx[i] = d0;
		dx[i + 1] = d1;
		dx[i + 2] = d2;
		dx[i + 3] = d3;
	}
	for (; i < m->n_in; i++, w += n)
		dx[i] = vector_dot(dy, w, n);
}

void matmul_backward(const void *layer, struct range rows)
{
	const struct matmul *m = layer;

	for (size_t r = rows.from; r < rows.to; r++)
		row_backward(m, m->dy + r * m->n_out, m->dx + r * m->n_in);
}

static void bias_grad(const struct matmul *m, size_t rows)
{
	memset(m->d_bias, 0, m->n_out * sizeof(*m->d_bias));
	for (size_t r = 0; r < rows; r++) {
		const real *restrict dy = m->dy + r * m->n_out;
		real *restrict d_bias = m->d_bias;

		for (size_t o = 0; o < m->n_out; o++)
			d_bias[o] += dy[o];
	}
}

/* Adds what four rows, or fewer at the end of the batch, contribute to the weights of one input. */
static void weight_grad_rows(const struct matmul *m, size_t input, size_t row, size_t n_rows)
{
	const size_t n = m->n_out;
	const real *x = m->x + row * m->n_in + input;
	const real *restrict dy = m->dy + row * n;
	real *restrict d_w = m->d_w + input * n;

	if (n_rows == 4) {
		const real x0 = x[0], x1 = x[m->n_in], x2 = x[2 * m->n_in], x3 = x[3 * m->n_in];

		for (size_t o = 0; o < n; o++)
			d_w[o] += x0 * dy[o] + x1 * dy[n + o] + x2 * dy[2 * n + o] +
				  x3 * dy[3 * n + o];
		return;
	}
	for (size_t r = 0; r < n_rows; r++) {
		for (size_t o = 0; o < n; o++)
			d_w[o] += x[r * m->n_in] * dy[r * n + o];
	}
}

void matmul_weight_grad(const void *layer, struct range inputs)
{
	const struct matmul *m = layer;
	const size_t rows = m->shape->batch * m->shape->time;

	/* There is one bias and there may be many pieces: the one with the first input takes it. */
	if (inputs.from == 0)
		bias_grad(m, rows);

	memset(m->d_w + inputs.from * m->n_out, 0,
	       (inputs.to - inputs.from) * m->n_out * sizeof(*m->d_w));
	for (size_t r = 0; r < rows; r += 4) {
		const size_t n_rows = rows - r < 4 ? rows - r : 4;

		for (size_t i = inputs.from; i < inputs.to; i++)
			weight_grad_rows(m, i, r, n_rows);
	}
}
