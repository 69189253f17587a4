// SPDX-License-Identifier: BSD-2-Clause
/*
 * The way back: buffers of the gradients, and the graph Gpt::backward. Each tensor has a gradient
 * buffer of its own, so an operation that is queued beside the others finds its inputs unchanged.
 *
 * Gradients of parameters are wanted only by the optimizer: they are queued, and the chain of the other
 * gradients goes on without waiting for them.
 */
#include <errno.h>

#include "gpt.h"

#define BACKWARD_NODES(layers) (6 + 18 * (layers))
#define GRADIENTS(layers) (3 + 6 * (layers))

static real *rows_of(struct gpt *gpt, size_t width)
{
	return arena_reals(&gpt->arena, gpt->max_batch * gpt->parameters->size.context * width);
}

static real *grad_of(const struct gpt *gpt, const real *parameter)
{
	return parameters_grad(gpt->parameters, parameter);
}

/* An operation of the chain: from the gradient of a result to that of an input. */
static const struct tensor *add_chain(struct gpt *gpt, const struct node_spec *like,
				      const struct tensor *dy, const struct tensor *saved,
				      const char *weight)
{
	const struct tensor *const inputs[] = { dy, saved };
	struct node_spec spec = *like;

	spec.inputs = inputs;
	spec.n_inputs = saved ? 2 : 1;
	spec.weights[0] = weight;
	return graph_add(&gpt->backward, &spec);
}

/* The gradient of parameters in `group`, queued. */
static void add_gradient(struct gpt *gpt, const struct node_spec *like, const struct tensor *dy,
			 const struct tensor *saved, size_t group)
{
	const struct tensor *const inputs[] = { dy, saved };
	struct node_spec spec = *like;

	spec.inputs = inputs;
	spec.n_inputs = 2;
	spec.split = SPLIT_CHANNELS;
	spec.queued = true;
	gpt->gradients[gpt->n_gradients++] = (struct gradient){
		.tensor = graph_add(&gpt->backward, &spec),
		.group = group,
	};
}

/* Names of what a layer's way back makes. */
struct names {
	const char *dx;
	const char *d_weights;
	const char *weight;
};

/* `dy` is the gradient of the product, `x` what went in. Returns the gradient of `x`. */
static const struct tensor *back_matmul(struct gpt *gpt, struct matmul *m, const real *dy_buffer,
					const struct tensor *dy, const struct tensor *x,
					size_t group, struct names names)
{
	const struct node_spec chain = {
		.op = "matmul_backward",
		.kernel = matmul_backward,
		.layer = m,
		.output = names.dx,
	};
	const struct node_spec gradient = {
		.op = "matmul_weight_grad",
		.kernel = matmul_weight_grad,
		.layer = m,
		.n = m->n_in,
		.output = names.d_weights,
	};

	m->dy = dy_buffer;
	m->dx = rows_of(gpt, m->n_in);
	m->d_w = grad_of(gpt, m->w);
	m->d_bias = grad_of(gpt, m->bias);
	add_gradient(gpt, &gradient, dy, x, group);
	return add_chain(gpt, &chain, dy, NULL, names.weight);
}

static const struct tensor *back_norm(struct gpt *gpt, struct layer_norm *norm,
				      const real *dy_buffer, const struct tensor *dy,
				      const struct tensor *x, size_t group, struct names names)
{
	const struct node_spec chain = {
		.op = "layer_norm_backward",
		.kernel = layer_norm_backward,
		.layer = norm,
		.output = names.dx,
	};
	const struct node_spec gradient = {
		.op = "layer_norm_weight_grad",
		.kernel = layer_norm_weight_grad,
		.layer = norm,
		.n = norm->dim,
		.output = names.d_weights,
	};

	norm->dy = dy_buffer;
	norm->dx = rows_of(gpt, norm->dim);
	norm->d_gain = grad_of(gpt, norm->gain);
	norm->d_bias = grad_of(gpt, norm->bias);
	add_gradient(gpt, &gradient, dy, x, group);
	return add_chain(gpt, &chain, dy, x, names.weight);
}

/* Where the way forward forked into a branch and a residual, their gradients meet. */
static const struct tensor *back_fork(struct gpt *gpt, struct add *meet, const real *a_buffer,
				      const struct tensor *a, const real *b_buffer,
				      const struct tensor *b, const char *output)
{
	const struct node_spec spec = {
		.op = "gradient_add",
		.kernel = add_forward,
		.layer = meet,
		.output = output,
	};

	*meet = (struct add){
		.width = gpt->parameters->size.dim,
		.a = a_buffer,
		.b = b_buffer,
		.y = rows_of(gpt, gpt->parameters->size.dim),
	};
	return add_chain(gpt, &spec, a, b, NULL);
}

static const struct tensor *back_gelu(struct gpt *gpt, struct gelu *gelu, const real *dy_buffer,
				      const struct tensor *dy, const struct tensor *x)
{
	const struct node_spec spec = {
		.op = "gelu_backward",
		.kernel = gelu_backward,
		.layer = gelu,
		.output = "d_fc",
	};

	gelu->dy = dy_buffer;
	gelu->dx = rows_of(gpt, gelu->width);
	return add_chain(gpt, &spec, dy, x, NULL);
}

static const struct tensor *back_heads(struct gpt *gpt, const struct attention *attention,
				       const char *op, kernel_fn *kernel, const char *output,
				       const struct tensor *dy, const struct tensor *saved)
{
	const struct node_spec spec = {
		.op = op,
		.kernel = kernel,
		.layer = attention,
		.split = SPLIT_HEADS,
		.n = attention->heads,
		.output = output,
	};

	return add_chain(gpt, &spec, dy, saved, NULL);
}

/* Returns the gradient of queries, keys and values. */
static const struct tensor *back_attention(struct gpt *gpt, struct block *b, const real *dy_buffer,
					   const struct tensor *dy)
{
	const struct model_size *size = &gpt->parameters->size;
	const size_t squares = gpt->max_batch * size->heads * size->context * size->context;
	struct attention *a = &b->attention;
	const struct tensor *d;

	a->d_mix = dy_buffer;
	a->d_weights = arena_reals(&gpt->arena, squares);
	a->d_scores = arena_reals(&gpt->arena, squares);
	a->d_qkv = rows_of(gpt, 3 * size->dim);
	d = back_heads(gpt, a, "attention_mix_backward", attention_mix_backward, "d_attention", dy,
		       b->t_weights);
	d = back_heads(gpt, a, "softmax_backward", attention_softmax_backward, "d_scores", d,
		       b->t_weights);
	return back_heads(gpt, a, "attention_scores_backward", attention_scores_backward, "d_qkv",
			  d, b->t_qkv);
}

/* From the gradient of a block's result to that of its input, which is left in meet1.y. */
static const struct tensor *back_block(struct gpt *gpt, struct block *b, size_t group,
				       const real *dy_buffer, const struct tensor *dy)
{
	const struct tensor *d, *d_middle;

	d = back_matmul(gpt, &b->out, dy_buffer, dy, b->t_gelu, group,
			(struct names){ "d_gelu", "d_out_w", "out_w" });
	d = back_gelu(gpt, &b->gelu, b->out.dx, d, b->t_fc);
	d = back_matmul(gpt, &b->fc, b->gelu.dx, d, b->t_norm2, group,
			(struct names){ "d_norm2", "d_fc_w", "fc_w" });
	d = back_norm(gpt, &b->norm2, b->fc.dx, d, b->t_middle, group,
		      (struct names){ "d_norm2_x", "d_norm2_gain", "norm2_gain" });
	d_middle = back_fork(gpt, &b->meet2, dy_buffer, dy, b->norm2.dx, d, "d_middle");

	d = back_matmul(gpt, &b->proj, b->meet2.y, d_middle, b->t_mix, group,
			(struct names){ "d_mix", "d_proj_w", "proj_w" });
	d = back_attention(gpt, b, b->proj.dx, d);
	d = back_matmul(gpt, &b->qkv, b->attention.d_qkv, d, b->t_norm1, group,
			(struct names){ "d_norm1", "d_qkv_w", "qkv_w" });
	d = back_norm(gpt, &b->norm1, b->qkv.dx, d, b->t_in, group,
		      (struct names){ "d_norm1_x", "d_norm1_gain", "norm1_gain" });
	return back_fork(gpt, &b->meet1, b->meet2.y, d_middle, b->norm1.dx, d, "d_x");
}

static const struct tensor *back_loss(struct gpt *gpt)
{
	const struct node_spec spec = {
		.op = "cross_entropy_backward",
		.kernel = cross_entropy_backward,
		.layer = &gpt->loss,
		.output = "d_logits",
	};

	gpt->loss.d_logits = rows_of(gpt, gpt->loss.vocab);
	return add_chain(gpt, &spec, gpt->t_probabilities, &gpt->source, NULL);
}

static void back_embedding(struct gpt *gpt, const real *dy_buffer, const struct tensor *dy)
{
	struct embedding *e = &gpt->embedding;
	const struct node_spec spec = {
		.op = "embedding_weight_grad",
		.kernel = embedding_weight_grad,
		.layer = e,
		.n = e->dim,
		.output = "d_embedding",
	};

	e->dy = dy_buffer;
	e->d_token_table = grad_of(gpt, e->token_table);
	e->d_position_table = grad_of(gpt, e->position_table);
	add_gradient(gpt, &spec, dy, &gpt->source, 0);
}

int gpt_add_backward(struct gpt *gpt, const struct marks *marks)
{
	const size_t layers = gpt->parameters->size.layers;
	const size_t head_group = layers + 1;
	const struct tensor *d;
	const real *buffer;
	int err;

	gpt->gradients = arena_take(&gpt->arena, GRADIENTS(layers), sizeof(*gpt->gradients));
	if (gpt->arena.err)
		return gpt->arena.err;
	err = graph_open(&gpt->backward, "Gpt::backward", TMK_PHASE_TRAIN, marks,
			 BACKWARD_NODES(layers));
	if (err)
		return err;

	d = back_loss(gpt);
	d = back_matmul(gpt, &gpt->head, gpt->loss.d_logits, d, gpt->t_norm, head_group,
			(struct names){ "d_norm", "d_head_w", "head_w" });
	d = back_norm(gpt, &gpt->norm, gpt->head.dx, d, gpt->t_x, head_group,
		      (struct names){ "d_x", "d_norm_gain", "norm_gain" });
	buffer = gpt->norm.dx;
	for (size_t i = layers; i-- > 0;) {
		graph_scope_block(&gpt->backward, i);
		d = back_block(gpt, &gpt->blocks[i], i + 1, buffer, d);
		buffer = gpt->blocks[i].meet1.y;
	}
	graph_scope_none(&gpt->backward);
	back_embedding(gpt, buffer, d);
	return gpt->arena.err ? gpt->arena.err : gpt->backward.err;
}
