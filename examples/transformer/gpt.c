// SPDX-License-Identifier: BSD-2-Clause
/*
 * The network of one phase: its buffers and layers, and the graph Gpt::forward. The way back is in
 * gpt_backward.c.
 */
#include <stdio.h>

#include "gpt.h"

#define FORWARD_NODES(layers) (5 + 12 * (layers))

/* The most rows that a buffer ever holds. */
static size_t max_rows(const struct gpt *gpt)
{
	return gpt->max_batch * gpt->parameters->size.context;
}

static real *rows_of(struct gpt *gpt, size_t width)
{
	return arena_reals(&gpt->arena, max_rows(gpt) * width);
}

static struct layer_norm make_norm(struct gpt *gpt, const real *x, const real *gain,
				   const real *bias)
{
	const size_t dim = gpt->parameters->size.dim;

	return (struct layer_norm){
		.shape = &gpt->shape,
		.dim = dim,
		.x = x,
		.gain = gain,
		.bias = bias,
		.y = rows_of(gpt, dim),
		.mean = rows_of(gpt, 1),
		.inverse = rows_of(gpt, 1),
	};
}

static struct matmul make_matmul(struct gpt *gpt, const real *x, const real *w, const real *bias,
				 size_t n_in, size_t n_out)
{
	return (struct matmul){
		.shape = &gpt->shape,
		.n_in = n_in,
		.n_out = n_out,
		.x = x,
		.w = w,
		.bias = bias,
		.y = rows_of(gpt, n_out),
	};
}

static struct attention make_attention(struct gpt *gpt, const real *qkv)
{
	const struct model_size *size = &gpt->parameters->size;
	const size_t squares = gpt->max_batch * size->heads * size->context * size->context;

	return (struct attention){
		.shape = &gpt->shape,
		.heads = size->heads,
		.head_dim = size->dim / size->heads,
		.qkv = qkv,
		.scores = arena_reals(&gpt->arena, squares),
		.weights = arena_reals(&gpt->arena, squares),
		.mix = rows_of(gpt, size->dim),
	};
}

static struct add make_add(struct gpt *gpt, const real *a, const real *b)
{
	const size_t dim = gpt->parameters->size.dim;

	return (struct add){ .width = dim, .a = a, .b = b, .y = rows_of(gpt, dim) };
}

/* Returns the buffer with the block's result. */
static const real *make_block(struct gpt *gpt, struct block *b, const struct block_weights *w,
			      const real *x)
{
	const size_t dim = gpt->parameters->size.dim, hidden = MLP_FACTOR * dim;

	b->norm1 = make_norm(gpt, x, w->norm1_gain, w->norm1_bias);
	b->qkv = make_matmul(gpt, b->norm1.y, w->qkv_w, w->qkv_b, dim, 3 * dim);
	b->attention = make_attention(gpt, b->qkv.y);
	b->proj = make_matmul(gpt, b->attention.mix, w->proj_w, w->proj_b, dim, dim);
	b->residual1 = make_add(gpt, x, b->proj.y);

	b->norm2 = make_norm(gpt, b->residual1.y, w->norm2_gain, w->norm2_bias);
	b->fc = make_matmul(gpt, b->norm2.y, w->fc_w, w->fc_b, dim, hidden);
	b->gelu = (struct gelu){ .width = hidden, .x = b->fc.y, .y = rows_of(gpt, hidden) };
	b->out = make_matmul(gpt, b->gelu.y, w->out_w, w->out_b, hidden, dim);
	b->residual2 = make_add(gpt, b->residual1.y, b->out.y);
	return b->residual2.y;
}

static void make_layers(struct gpt *gpt)
{
	const struct model_size *size = &gpt->parameters->size;
	const struct weights *w = &gpt->parameters->weights;
	const real *x;

	gpt->tokens = arena_take(&gpt->arena, max_rows(gpt), sizeof(*gpt->tokens));
	gpt->blocks = arena_take(&gpt->arena, size->layers, sizeof(*gpt->blocks));
	if (gpt->arena.err)
		return;

	gpt->embedding = (struct embedding){
		.shape = &gpt->shape,
		.dim = size->dim,
		.vocab = size->vocab,
		.context = size->context,
		.tokens = gpt->tokens,
		.token_table = w->token_table,
		.position_table = w->position_table,
		.y = rows_of(gpt, size->dim),
	};
	x = gpt->embedding.y;
	for (size_t i = 0; i < size->layers; i++)
		x = make_block(gpt, &gpt->blocks[i], &w->blocks[i], x);
	gpt->norm = make_norm(gpt, x, w->norm_gain, w->norm_bias);
	gpt->head = make_matmul(gpt, gpt->norm.y, w->head_w, w->head_b, size->dim, size->vocab);
}

static void make_loss(struct gpt *gpt)
{
	const size_t vocab = gpt->parameters->size.vocab;

	gpt->targets = arena_take(&gpt->arena, max_rows(gpt), sizeof(*gpt->targets));
	gpt->loss = (struct cross_entropy){
		.shape = &gpt->shape,
		.vocab = vocab,
		.logits = gpt->head.y,
		.targets = gpt->targets,
		.probabilities = rows_of(gpt, vocab),
		.losses = rows_of(gpt, 1),
	};
}

static const struct tensor *add_norm(struct gpt *gpt, const struct layer_norm *norm,
				     const struct tensor *x, const char *output, const char *gain,
				     const char *bias)
{
	const struct node_spec spec = {
		.op = "layer_norm",
		.kernel = layer_norm_forward,
		.layer = norm,
		.output = output,
		GRAPH_INPUTS(x),
		.weights = { gain, bias },
	};

	return graph_add(&gpt->forward, &spec);
}

static const struct tensor *add_matmul(struct gpt *gpt, const struct matmul *m,
				       const struct tensor *x, const char *output, const char *w,
				       const char *bias)
{
	const struct node_spec spec = {
		.op = "matmul",
		.kernel = matmul_forward,
		.layer = m,
		.output = output,
		GRAPH_INPUTS(x),
		.weights = { w, bias },
	};

	return graph_add(&gpt->forward, &spec);
}

static const struct tensor *add_residual(struct gpt *gpt, const struct add *add,
					 const struct tensor *a, const struct tensor *b,
					 const char *output)
{
	const struct node_spec spec = {
		.op = "residual_add",
		.kernel = add_forward,
		.layer = add,
		.output = output,
		GRAPH_INPUTS(a, b),
	};

	return graph_add(&gpt->forward, &spec);
}

/* The three operations of attention differ in kernel, names and inputs only. */
static const struct tensor *add_heads(struct gpt *gpt, const struct attention *attention,
				      const char *op, kernel_fn *kernel, const char *output,
				      const struct tensor *a, const struct tensor *b)
{
	const struct tensor *const inputs[] = { a, b };
	const struct node_spec spec = {
		.op = op,
		.kernel = kernel,
		.layer = attention,
		.split = SPLIT_HEADS,
		.n = attention->heads,
		.output = output,
		.inputs = inputs,
		.n_inputs = b ? 2 : 1,
	};

	return graph_add(&gpt->forward, &spec);
}

static void add_attention(struct gpt *gpt, struct block *b)
{
	const struct attention *a = &b->attention;
	const struct tensor *scores;

	scores = add_heads(gpt, a, "attention_scores", attention_scores, "scores", b->t_qkv, NULL);
	b->t_weights = add_heads(gpt, a, "softmax", attention_softmax, "attention", scores, NULL);
	b->t_mix = add_heads(gpt, a, "attention_mix", attention_mix, "mix", b->t_weights, b->t_qkv);
}

static const struct tensor *add_gelu(struct gpt *gpt, const struct gelu *gelu,
				     const struct tensor *x)
{
	const struct node_spec spec = {
		.op = "gelu",
		.kernel = gelu_forward,
		.layer = gelu,
		.output = "gelu",
		GRAPH_INPUTS(x),
	};

	return graph_add(&gpt->forward, &spec);
}

static const struct tensor *add_block(struct gpt *gpt, struct block *b, const struct tensor *x)
{
	const struct tensor *proj, *out;

	b->t_in = x;
	b->t_norm1 = add_norm(gpt, &b->norm1, x, "norm1", "norm1_gain", "norm1_bias");
	b->t_qkv = add_matmul(gpt, &b->qkv, b->t_norm1, "qkv", "qkv_w", "qkv_b");
	add_attention(gpt, b);
	proj = add_matmul(gpt, &b->proj, b->t_mix, "proj", "proj_w", "proj_b");
	b->t_middle = add_residual(gpt, &b->residual1, x, proj, "middle");

	b->t_norm2 = add_norm(gpt, &b->norm2, b->t_middle, "norm2", "norm2_gain", "norm2_bias");
	b->t_fc = add_matmul(gpt, &b->fc, b->t_norm2, "fc", "fc_w", "fc_b");
	b->t_gelu = add_gelu(gpt, &b->gelu, b->t_fc);
	out = add_matmul(gpt, &b->out, b->t_gelu, "out", "out_w", "out_b");
	return add_residual(gpt, &b->residual2, b->t_middle, out, "x");
}

static const struct tensor *add_embedding(struct gpt *gpt)
{
	const struct node_spec spec = {
		.op = "embedding",
		.kernel = embedding_forward,
		.layer = &gpt->embedding,
		.output = "x",
		GRAPH_INPUTS(&gpt->source),
		.weights = { "token_table", "position_table" },
	};

	return graph_add(&gpt->forward, &spec);
}

static void add_all_blocks(struct gpt *gpt)
{
	const struct tensor *x = add_embedding(gpt);

	for (size_t i = 0; i < gpt->parameters->size.layers; i++) {
		graph_scope_block(&gpt->forward, i);
		x = add_block(gpt, &gpt->blocks[i], x);
	}
	graph_scope_none(&gpt->forward);
	gpt->t_x = x;
	gpt->t_norm = add_norm(gpt, &gpt->norm, x, "norm", "norm_gain", "norm_bias");
	gpt->t_logits = add_matmul(gpt, &gpt->head, gpt->t_norm, "logits", "head_w", "head_b");
}

static void add_loss(struct gpt *gpt)
{
	const struct node_spec softmax = {
		.op = "softmax",
		.kernel = cross_entropy_softmax,
		.layer = &gpt->loss,
		.output = "probabilities",
		GRAPH_INPUTS(gpt->t_logits),
	};
	const struct tensor *probabilities = graph_add(&gpt->forward, &softmax);
	const struct node_spec loss = {
		.op = "cross_entropy",
		.kernel = cross_entropy_loss,
		.layer = &gpt->loss,
		.output = "loss",
		GRAPH_INPUTS(probabilities, &gpt->source),
	};

	graph_add(&gpt->forward, &loss);
	gpt->t_probabilities = probabilities;
}

/* To train: loss and way back as well. */
static int build_training(struct gpt *gpt, const struct marks *marks)
{
	make_loss(gpt);
	if (gpt->arena.err)
		return gpt->arena.err;
	add_loss(gpt);
	if (gpt->forward.err)
		return gpt->forward.err;
	return gpt_add_backward(gpt, marks);
}

static int build(struct gpt *gpt, const struct marks *marks, enum tmk_phase phase)
{
	int err;

	make_layers(gpt);
	if (gpt->arena.err)
		return gpt->arena.err;
	err = graph_open(&gpt->forward, "Gpt::forward", phase, marks,
			 FORWARD_NODES(gpt->parameters->size.layers));
	if (err)
		return err;
	add_all_blocks(gpt);
	if (gpt->forward.err)
		return gpt->forward.err;
	return phase == TMK_PHASE_TRAIN ? build_training(gpt, marks) : 0;
}

int gpt_open(struct gpt *gpt, const struct parameters *parameters, const struct marks *marks,
	     enum tmk_phase phase, size_t batch, const char *source_id)
{
	int err;

	*gpt = (struct gpt){
		.parameters = parameters,
		.shape = { .batch = batch, .time = parameters->size.context },
		.max_batch = batch,
	};
	snprintf(gpt->source.id, sizeof(gpt->source.id), "%s", source_id);
	snprintf(gpt->source.name, sizeof(gpt->source.name), "tokens");
	err = build(gpt, marks, phase);
	if (err)
		gpt_close(gpt);
	return err;
}

void gpt_close(struct gpt *gpt)
{
	graph_close(&gpt->backward);
	graph_close(&gpt->forward);
	arena_free(&gpt->arena);
}

double gpt_loss(const struct gpt *gpt)
{
	const size_t rows = gpt->shape.batch * gpt->shape.time;
	double sum = 0;

	for (size_t r = 0; r < rows; r++)
		sum += (double)gpt->loss.losses[r];
	return sum / (double)rows;
}
