/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transformer: which layer reads what, forward and backward. It lays out one network for one
 * phase: the buffers, the layers, and the graphs Gpt::forward and (to train) Gpt::backward. Parameters
 * are shared by the networks of both phases.
 *
 *	x = embedding
 *	for each block: x = x + proj(attention(norm1(x)));  x = x + out(gelu(fc(norm2(x))))
 *	logits = head(norm(x))
 */
#ifndef TRANSFORMER_GPT_H
#define TRANSFORMER_GPT_H

#include "arena.h"
#include "graph.h"
#include "parameters.h"

/* A block's layers, and the tensors that its operations make. */
struct block {
	struct layer_norm norm1, norm2;
	struct matmul qkv, proj, fc, out;
	struct attention attention;
	struct gelu gelu;
	struct add residual1, residual2;
	struct add meet1, meet2; /* of the gradients, on the way back */

	const struct tensor *t_in, *t_norm1, *t_qkv, *t_weights, *t_mix, *t_middle, *t_norm2;
	const struct tensor *t_fc, *t_gelu;
};

/* A gradient of parameters, and the group of parameters.h that it belongs to. */
struct gradient {
	const struct tensor *tensor;
	size_t group;
};

struct gpt {
	const struct parameters *parameters;
	struct shape shape; /* set before each run; never above what gpt_open() was given */
	size_t max_batch;
	struct arena arena;

	int *tokens;	      /* a row each, filled by the caller before a run */
	int *targets;	      /* likewise, to train */
	struct tensor source; /* where the tokens come from, for the edge into the embedding */

	struct embedding embedding;
	struct block *blocks;
	struct layer_norm norm;
	struct matmul head;
	struct cross_entropy loss;
	const struct tensor *t_x, *t_norm, *t_logits, *t_probabilities;

	struct gradient *gradients; /* in the order in which the way back makes them */
	size_t n_gradients;

	struct graph forward;
	struct graph backward; /* empty to infer */
};

/*
 * Only a network to train has targets, loss and a way back. `source_id` is the static id of the tensor
 * of tokens. The network must stay where it is: its layers point into it. Returns 0, -ENOMEM, or
 * -EFBIG for a model above ARENA_LIMIT.
 */
int gpt_open(struct gpt *gpt, const struct parameters *parameters, const struct marks *marks,
	     enum tmk_phase phase, size_t batch, const char *source_id);
void gpt_close(struct gpt *gpt);

/* The mean over the rows of the last forward run. */
double gpt_loss(const struct gpt *gpt);

/* For gpt_open(), once the way forward is there: adds the way back. */
int gpt_add_backward(struct gpt *gpt, const struct marks *marks);

#endif
