/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number type of the model, and the range type by which work is split. Nothing else.
 *
 * Single precision, except where the gradient checks compile the same layers in double precision: a
 * finite difference in single precision has too few correct digits to prove a derivative.
 */
#ifndef TRANSFORMER_REAL_H
#define TRANSFORMER_REAL_H

#include <stddef.h>

#ifdef REAL_IS_DOUBLE
typedef double real;
#else
typedef float real;
#endif

/* Units [from, to) of an operation: rows, heads or channels, as the kernel says. */
struct range {
	size_t from;
	size_t to;
};

#endif
