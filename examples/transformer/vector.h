/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What several layers do with one row of numbers. Inline, because a row is often only a head wide.
 */
#ifndef TRANSFORMER_VECTOR_H
#define TRANSFORMER_VECTOR_H

#include <tgmath.h>

#include "real.h"

static inline real vector_dot(const real *restrict a, const real *restrict b, size_t n)
{
	real sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* y += factor * x */
static inline void vector_add_scaled(real *restrict y, real factor, const real *restrict x,
				     size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += factor * x[i];
}

/* n is at least 1. The largest input is taken off first, so that exp cannot overflow. */
static inline void vector_softmax(const real *restrict x, real *restrict y, size_t n)
{
	real max = x[0], sum = 0;

	for (size_t i = 1; i < n; i++)
		max = x[i] > max ? x[i] : max;
	for (size_t i = 0; i < n; i++) {
		y[i] = exp(x[i] - max);
		sum += y[i];
	}
	for (size_t i = 0; i < n; i++)
		y[i] /= sum;
}

#endif
