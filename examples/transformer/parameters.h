/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parameters of the model: one flat array of values and one of gradients in the same order, with
 * names for the places in it. What is computed with them is the layers' affair, how they change is
 * the optimizer's.
 */
#ifndef TRANSFORMER_PARAMETERS_H
#define TRANSFORMER_PARAMETERS_H

#include <stdint.h>

#include "arena.h"

struct model_size {
	size_t layers;
	size_t dim; /* a multiple of heads */
	size_t heads;
	size_t context; /* the most tokens of a sequence */
	size_t vocab;
};

/* The width of the MLP's hidden layer, in dims. */
#define MLP_FACTOR 4u

struct block_weights {
	real *qkv_w, *proj_w, *fc_w, *out_w;
	real *norm1_gain, *norm1_bias, *norm2_gain, *norm2_bias;
	real *qkv_b, *proj_b, *fc_b, *out_b;
};

struct weights {
	real *token_table, *position_table;
	struct block_weights *blocks;
	real *head_w;
	real *norm_gain, *norm_bias, *head_b;
};

/* What the optimizer treats at once: the tables, each block, the head. Matrices come first. */
struct group {
	char name[16];
	size_t from;
	size_t n;
	size_t n_matrices;
};

struct parameters {
	struct model_size size;
	struct arena arena;
	size_t n;
	real *values;
	real *grads;
	struct weights weights;
	struct group *groups;
	size_t n_groups;
};

/* Allocates and draws the values of a fresh model. Returns 0, -ENOMEM, or -EFBIG. */
int parameters_open(struct parameters *p, const struct model_size *size, uint64_t seed);
void parameters_close(struct parameters *p);

/* Where the gradient of a parameter is. */
static inline real *parameters_grad(const struct parameters *p, const real *value)
{
	return p->grads + (value - p->values);
}

#endif
