/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layers of the transformer: what each needs, and its kernels. A kernel computes some units of
 * one operation and knows nothing of threads, of marks, or of other layers; graph.h runs them.
 *
 * Two rules make it all the same which thread computes what, and when. A kernel writes only to outputs
 * that belong to its own units, and each output is one sum taken in one order. That is why the
 * gradients of parameters are split by channel and not by row.
 *
 * Matrices are row-major. A row is one token of one sequence: row = sequence * time + position.
 * Kernels overwrite their outputs, so nothing has to be cleared between steps.
 */
#ifndef TRANSFORMER_LAYERS_H
#define TRANSFORMER_LAYERS_H

#include "real.h"

/* How much of the buffers the present step uses. One is shared by all the layers of a network. */
struct shape {
	size_t batch; /* sequences */
	size_t time;  /* tokens in each */
};

typedef void kernel_fn(const void *layer, struct range units);

/* y = token_table[token] + position_table[position] */
struct embedding {
	const struct shape *shape;
	size_t dim;
	size_t vocab;
	const int *tokens;	    /* a row each */
	const real *token_table;    /* [vocab][dim] */
	const real *position_table; /* [context][dim] */
	real *y;
	const real *dy;
	real *d_token_table;
	real *d_position_table;
	size_t context;
};

kernel_fn embedding_forward;	 /* by row */
kernel_fn embedding_weight_grad; /* by channel of dim */

/* y = gain * (x - mean) / deviation + bias, over each row */
struct layer_norm {
	const struct shape *shape;
	size_t dim;
	const real *x;
	const real *gain;
	const real *bias;
	real *y;
	real *mean;    /* a row each, kept for the way back */
	real *inverse; /* 1 / deviation, likewise */
	const real *dy;
	real *dx;
	real *d_gain;
	real *d_bias;
};

kernel_fn layer_norm_forward;	  /* by row */
kernel_fn layer_norm_backward;	  /* by row */
kernel_fn layer_norm_weight_grad; /* by channel of dim */

/* y = x w + bias, with w as [n_in][n_out] */
struct matmul {
	const struct shape *shape;
	size_t n_in;
	size_t n_out;
	const real *x;
	const real *w;
	const real *bias;
	real *y;
	const real *dy;
	real *dx;
	real *d_w;
	real *d_bias;
};

kernel_fn matmul_forward;     /* by row */
kernel_fn matmul_backward;    /* by row */
kernel_fn matmul_weight_grad; /* by channel of n_in */

/*
 * Causal self-attention of several heads, in three operations with a buffer between each. `qkv` holds
 * query, key and value of a row side by side. The [time][time] squares of a head hold the past of
 * each position; what lies above the diagonal is neither written nor read.
 */
struct attention {
	const struct shape *shape;
	size_t heads;
	size_t head_dim;
	const real *qkv;
	real *scores;
	real *weights;
	real *mix;
	const real *d_mix;
	real *d_weights;
	real *d_scores;
	real *d_qkv;
};

/* All by head: unit = sequence * heads + head. */
kernel_fn attention_scores;	  /* query . key / sqrt(head_dim) */
kernel_fn attention_softmax;	  /* over the past of each position */
kernel_fn attention_mix;	  /* sum of weight * value */
kernel_fn attention_mix_backward; /* to d_weights, and the values of d_qkv */
kernel_fn attention_softmax_backward;
kernel_fn attention_scores_backward; /* to the queries and keys of d_qkv */

/* y = x * Phi(x), with Phi in its usual tanh form */
struct gelu {
	size_t width; /* of a row */
	const real *x;
	real *y;
	const real *dy;
	real *dx;
};

kernel_fn gelu_forward;	 /* by row */
kernel_fn gelu_backward; /* by row */

/* y = a + b: a residual on the way forward, two gradients that meet on the way back */
struct add {
	size_t width; /* of a row */
	const real *a;
	const real *b;
	real *y;
};

kernel_fn add_forward; /* by row */

/* Softmax and cross-entropy of each row; the loss of a step is the mean over its rows. */
struct cross_entropy {
	const struct shape *shape;
	size_t vocab;
	const real *logits;
	const int *targets; /* a row each */
	real *probabilities;
	real *losses;	/* a row each */
	real *d_logits; /* of the mean */
};

kernel_fn cross_entropy_softmax;  /* by row */
kernel_fn cross_entropy_loss;	  /* by row */
kernel_fn cross_entropy_backward; /* by row */

#endif
