// SPDX-License-Identifier: BSD-2-Clause
/*
 * The example's gradients: each layer's, and those of the whole network, against finite differences
 * in double precision. Whether it learns is test_transformer.c's question.
 *
 * Of a kernel with result y, the scalar sum(c[i] * y[i]) is taken, with random c. Its derivative by
 * each input is what the way back must give when the gradient of y is c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../examples/transformer/gpt.h"
#include "../../examples/transformer/rng.h"
#include "../../examples/transformer/text.h"

#define DELTA 1e-5
#define TOLERANCE 1e-7

#define BATCH 2u
#define TIME 5u
#define ROWS (BATCH * TIME)

static struct rng rng;

static void draw(real *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		values[i] = (real)rng_normal(&rng);
}

/* A scalar function of everything that its kernels read. */
struct scalar {
	kernel_fn *kernel;
	const void *layer;
	struct range units;
	const real *y;
	const real *c;
	size_t n;
};

static double scalar_value(const struct scalar *s)
{
	double sum = 0;

	s->kernel(s->layer, s->units);
	for (size_t i = 0; i < s->n; i++)
		sum += (double)s->c[i] * (double)s->y[i];
	return sum;
}

static void compare(const char *what, size_t i, double gradient, double difference)
{
	if (fabs(gradient - difference) <= TOLERANCE * (1 + fabs(difference)))
		return;
	fail_msg("%s[%zu]: gradient %.12g, finite difference %.12g", what, i, gradient, difference);
}

/* `x` is one of the inputs, `dx` what the way back said about it. */
static void check_gradient(const char *what, const struct scalar *s, real *x, const real *dx,
			   size_t n)
{
	size_t not_zero = 0;

	for (size_t i = 0; i < n; i++) {
		const real before = x[i];
		double up, down;

		x[i] = before + (real)DELTA;
		up = scalar_value(s);
		x[i] = before - (real)DELTA;
		down = scalar_value(s);
		x[i] = before;
		compare(what, i, (double)dx[i], (up - down) / (2 * DELTA));
		not_zero += dx[i] != 0;
	}
	assert_true(not_zero > 0);
	/* Buffers that belong to the way forward hold its result again. */
	scalar_value(s);
}

static const struct shape shape = { .batch = BATCH, .time = TIME };
static const struct range rows = { 0, ROWS };

/* Units are cut in two, as workers get them. */
static void run_in_two(kernel_fn *kernel, const void *layer, size_t units)
{
	kernel(layer, (struct range){ 0, units / 3 });
	kernel(layer, (struct range){ units / 3, units });
}

static void matmul_gradients(void **state)
{
	enum { IN = 7, OUT = 6 };
	real x[ROWS * IN], w[IN * OUT], bias[OUT], y[ROWS * OUT], c[ROWS * OUT];
	real dx[ROWS * IN], d_w[IN * OUT], d_bias[OUT];
	const struct matmul m = {
		.shape = &shape,
		.n_in = IN,
		.n_out = OUT,
		.x = x,
		.w = w,
		.bias = bias,
		.y = y,
		.dy = c,
		.dx = dx,
		.d_w = d_w,
		.d_bias = d_bias,
	};
	const struct scalar s = { matmul_forward, &m, rows, y, c, ROWS * OUT };

	(void)state;
	draw(x, ROWS * IN);
	draw(w, IN * OUT);
	draw(bias, OUT);
	draw(c, ROWS * OUT);
	run_in_two(matmul_backward, &m, ROWS);
	run_in_two(matmul_weight_grad, &m, IN);
	check_gradient("x", &s, x, dx, ROWS * IN);
	check_gradient("w", &s, w, d_w, IN * OUT);
	check_gradient("bias", &s, bias, d_bias, OUT);
}

static void layer_norm_gradients(void **state)
{
	enum { DIM = 6 };
	real x[ROWS * DIM], gain[DIM], bias[DIM], y[ROWS * DIM], c[ROWS * DIM];
	real mean[ROWS], inverse[ROWS], dx[ROWS * DIM], d_gain[DIM], d_bias[DIM];
	const struct layer_norm ln = {
		.shape = &shape,
		.dim = DIM,
		.x = x,
		.gain = gain,
		.bias = bias,
		.y = y,
		.mean = mean,
		.inverse = inverse,
		.dy = c,
		.dx = dx,
		.d_gain = d_gain,
		.d_bias = d_bias,
	};
	const struct scalar s = { layer_norm_forward, &ln, rows, y, c, ROWS * DIM };

	(void)state;
	draw(x, ROWS * DIM);
	draw(gain, DIM);
	draw(bias, DIM);
	draw(c, ROWS * DIM);
	run_in_two(layer_norm_forward, &ln, ROWS);
	run_in_two(layer_norm_backward, &ln, ROWS);
	run_in_two(layer_norm_weight_grad, &ln, DIM);
	check_gradient("x", &s, x, dx, ROWS * DIM);
	check_gradient("gain", &s, gain, d_gain, DIM);
	check_gradient("bias", &s, bias, d_bias, DIM);
}

static void embedding_gradients(void **state)
{
	enum { DIM = 4, VOCAB = 3 };
	/* Tokens repeat: their gradients must add up. */
	const int tokens[ROWS] = { 0, 1, 2, 1, 1, 2, 2, 0, 1, 0 };
	real token_table[VOCAB * DIM], position_table[TIME * DIM], y[ROWS * DIM], c[ROWS * DIM];
	real d_token[VOCAB * DIM], d_position[TIME * DIM];
	const struct embedding e = {
		.shape = &shape,
		.dim = DIM,
		.vocab = VOCAB,
		.context = TIME,
		.tokens = tokens,
		.token_table = token_table,
		.position_table = position_table,
		.y = y,
		.dy = c,
		.d_token_table = d_token,
		.d_position_table = d_position,
	};
	const struct scalar s = { embedding_forward, &e, rows, y, c, ROWS * DIM };

	(void)state;
	draw(token_table, VOCAB * DIM);
	draw(position_table, TIME * DIM);
	draw(c, ROWS * DIM);
	run_in_two(embedding_weight_grad, &e, DIM);
	check_gradient("token_table", &s, token_table, d_token, VOCAB * DIM);
	check_gradient("position_table", &s, position_table, d_position, TIME * DIM);
}

static void gelu_gradients(void **state)
{
	enum { WIDTH = 3 };
	real x[ROWS * WIDTH], y[ROWS * WIDTH], c[ROWS * WIDTH], dx[ROWS * WIDTH];
	const struct gelu g = { .width = WIDTH, .x = x, .y = y, .dy = c, .dx = dx };
	const struct scalar s = { gelu_forward, &g, rows, y, c, ROWS * WIDTH };

	(void)state;
	draw(x, ROWS * WIDTH);
	draw(c, ROWS * WIDTH);
	x[0] = 12;
	x[1] = -12;
	run_in_two(gelu_backward, &g, ROWS);
	check_gradient("x", &s, x, dx, ROWS * WIDTH);
	assert_true(fabs((double)y[0] - 12) < 1e-9);
	assert_true(fabs((double)y[1]) < 1e-9);
}

static void add_gradients(void **state)
{
	enum { WIDTH = 3 };
	real a[ROWS * WIDTH], b[ROWS * WIDTH], y[ROWS * WIDTH], c[ROWS * WIDTH];
	const struct add add = { .width = WIDTH, .a = a, .b = b, .y = y };
	const struct scalar s = { add_forward, &add, rows, y, c, ROWS * WIDTH };

	(void)state;
	draw(a, ROWS * WIDTH);
	draw(b, ROWS * WIDTH);
	draw(c, ROWS * WIDTH);
	/* The gradient of a sum is that of its result, which is why the network has no kernel for it. */
	check_gradient("a", &s, a, c, ROWS * WIDTH);
	check_gradient("b", &s, b, c, ROWS * WIDTH);
}

enum { HEADS = 2, HEAD_DIM = 3, WIDTH = HEADS * HEAD_DIM, UNITS = BATCH * HEADS };
enum { SQUARES = UNITS * TIME * TIME };

struct attention_buffers {
	real qkv[ROWS * 3 * WIDTH], scores[SQUARES], weights[SQUARES], mix[ROWS * WIDTH];
	real d_mix[ROWS * WIDTH], d_weights[SQUARES], d_scores[SQUARES], d_qkv[ROWS * 3 * WIDTH];
};

static struct attention attention_of(struct attention_buffers *b)
{
	memset(b, 0, sizeof(*b));
	draw(b->qkv, ROWS * 3 * WIDTH);
	return (struct attention){
		.shape = &shape,
		.heads = HEADS,
		.head_dim = HEAD_DIM,
		.qkv = b->qkv,
		.scores = b->scores,
		.weights = b->weights,
		.mix = b->mix,
		.d_mix = b->d_mix,
		.d_weights = b->d_weights,
		.d_scores = b->d_scores,
		.d_qkv = b->d_qkv,
	};
}

/* Only the past: what is above the diagonal has no meaning. */
static void draw_triangles(real *squares)
{
	memset(squares, 0, SQUARES * sizeof(*squares));
	for (size_t row = 0; row < UNITS * TIME; row++)
		draw(squares + row * TIME, row % TIME + 1);
}

static const struct range heads = { 0, UNITS };

static void attention_scores_gradients(void **state)
{
	struct attention_buffers b;
	const struct attention a = attention_of(&b);
	const struct scalar s = { attention_scores, &a, heads, b.scores, b.d_scores, SQUARES };

	(void)state;
	draw_triangles(b.d_scores);
	run_in_two(attention_scores_backward, &a, UNITS);
	check_gradient("qkv", &s, b.qkv, b.d_qkv, ROWS * 3 * WIDTH);
}

static void attention_softmax_gradients(void **state)
{
	struct attention_buffers b;
	const struct attention a = attention_of(&b);
	const struct scalar s = { attention_softmax, &a, heads, b.weights, b.d_weights, SQUARES };

	(void)state;
	draw_triangles(b.scores);
	draw_triangles(b.d_weights);
	run_in_two(attention_softmax, &a, UNITS);
	run_in_two(attention_softmax_backward, &a, UNITS);
	check_gradient("scores", &s, b.scores, b.d_scores, SQUARES);
}

static void attention_mix_gradients(void **state)
{
	struct attention_buffers b;
	const struct attention a = attention_of(&b);
	const struct scalar s = { attention_mix, &a, heads, b.mix, b.d_mix, ROWS * WIDTH };

	(void)state;
	draw_triangles(b.weights);
	draw(b.d_mix, ROWS * WIDTH);
	run_in_two(attention_mix_backward, &a, UNITS);
	check_gradient("weights", &s, b.weights, b.d_weights, SQUARES);
	check_gradient("qkv", &s, b.qkv, b.d_qkv, ROWS * 3 * WIDTH);
}

static void cross_entropy_both(const void *layer, struct range range)
{
	cross_entropy_softmax(layer, range);
	cross_entropy_loss(layer, range);
}

static void cross_entropy_gradients(void **state)
{
	enum { VOCAB = 5 };
	const int targets[ROWS] = { 0, 1, 2, 3, 4, 4, 3, 0, 0, 2 };
	real logits[ROWS * VOCAB], probabilities[ROWS * VOCAB], losses[ROWS], share[ROWS];
	real d_logits[ROWS * VOCAB];
	const struct cross_entropy ce = {
		.shape = &shape,
		.vocab = VOCAB,
		.logits = logits,
		.targets = targets,
		.probabilities = probabilities,
		.losses = losses,
		.d_logits = d_logits,
	};
	const struct scalar s = { cross_entropy_both, &ce, rows, losses, share, ROWS };

	(void)state;
	draw(logits, ROWS * VOCAB);
	for (size_t r = 0; r < ROWS; r++)
		share[r] = (real)1 / ROWS;
	run_in_two(cross_entropy_both, &ce, ROWS);
	run_in_two(cross_entropy_backward, &ce, ROWS);
	check_gradient("logits", &s, logits, d_logits, ROWS * VOCAB);
}

static double network_loss(struct gpt *gpt, const struct executor *executor)
{
	graph_run(&gpt->forward, executor);
	return gpt_loss(gpt);
}

/* Some parameters of every group, and of every tensor in it. */
static void check_network(struct gpt *gpt, struct parameters *p, const struct executor *executor)
{
	for (size_t i = 0; i < p->n; i += 3) {
		const real before = p->values[i];
		double up, down;

		p->values[i] = before + (real)DELTA;
		up = network_loss(gpt, executor);
		p->values[i] = before - (real)DELTA;
		down = network_loss(gpt, executor);
		p->values[i] = before;
		compare("parameter", i, (double)p->grads[i], (up - down) / (2 * DELTA));
	}
}

static void network_gradients(void **state)
{
	const struct model_size size = { 2, 6, 2, TIME, 5 };
	const unsigned char bytes[] = "the cat that ate the hat";
	const struct marks marks = { 0 };
	struct parameters p;
	struct text text;
	struct pool *pool;
	struct gpt gpt;
	struct executor executor = { .marks = &marks, .shape = &gpt.shape };

	(void)state;
	assert_int_equal(text_from_bytes(&text, bytes, sizeof(bytes) - 1), 0);
	assert_int_equal(parameters_open(&p, &size, 5), 0);
	/* Not the first values, whose biases are all zero. */
	for (size_t i = 0; i < p.n; i++)
		p.values[i] += (real)(0.3 * rng_normal(&rng));
	assert_int_equal(pool_open(&pool, 2), 0);
	executor.pool = pool;
	assert_int_equal(gpt_open(&gpt, &p, &marks, TMK_PHASE_TRAIN, BATCH, "tensor:t"), 0);
	text_batch(&text, &rng, BATCH, TIME, gpt.tokens, gpt.targets);
	for (size_t r = 0; r < ROWS; r++) {
		gpt.tokens[r] %= (int)size.vocab;
		gpt.targets[r] %= (int)size.vocab;
	}

	graph_run(&gpt.forward, &executor);
	graph_run(&gpt.backward, &executor);
	check_network(&gpt, &p, &executor);

	gpt_close(&gpt);
	pool_close(pool);
	parameters_close(&p);
	text_free(&text);
}

static int seed(void **state)
{
	(void)state;
	rng = rng_stream(20, 0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(matmul_gradients, seed),
		cmocka_unit_test_setup(layer_norm_gradients, seed),
		cmocka_unit_test_setup(embedding_gradients, seed),
		cmocka_unit_test_setup(gelu_gradients, seed),
		cmocka_unit_test_setup(add_gradients, seed),
		cmocka_unit_test_setup(attention_scores_gradients, seed),
		cmocka_unit_test_setup(attention_softmax_gradients, seed),
		cmocka_unit_test_setup(attention_mix_gradients, seed),
		cmocka_unit_test_setup(cross_entropy_gradients, seed),
		cmocka_unit_test_setup(network_gradients, seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
