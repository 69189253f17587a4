// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parameters: where each has its place, and with what it begins.
 */
#include <math.h>
#include <stdio.h>

#include "parameters.h"
#include "rng.h"

/* Of the first weights, for a width of 1: rows keep about their size on the way through a matrix. */
#define INITIAL_DEVIATION 0.8

/* Hands out places from the front of the values. */
struct layout {
	struct parameters *p;
	size_t used;
	struct group *group;
};

static real *take(struct layout *l, size_t n)
{
	real *place = l->p->values + l->used;

	l->used += n;
	l->group->n += n;
	return place;
}

static real *take_matrix(struct layout *l, size_t n)
{
	l->group->n_matrices += n;
	return take(l, n);
}

static void group_start(struct layout *l, const char *name)
{
	l->group = &l->p->groups[l->p->n_groups++];
	l->group->from = l->used;
	snprintf(l->group->name, sizeof(l->group->name), "%s", name);
}

static void layout_block(struct layout *l, struct block_weights *w)
{
	const size_t dim = l->p->size.dim, hidden = MLP_FACTOR * dim;

	w->qkv_w = take_matrix(l, dim * 3 * dim);
	w->proj_w = take_matrix(l, dim * dim);
	w->fc_w = take_matrix(l, dim * hidden);
	w->out_w = take_matrix(l, hidden * dim);
	w->norm1_gain = take(l, dim);
	w->norm1_bias = take(l, dim);
	w->norm2_gain = take(l, dim);
	w->norm2_bias = take(l, dim);
	w->qkv_b = take(l, 3 * dim);
	w->proj_b = take(l, dim);
	w->fc_b = take(l, hidden);
	w->out_b = take(l, dim);
}

static void layout_all(struct parameters *p)
{
	const struct model_size *s = &p->size;
	struct weights *w = &p->weights;
	struct layout l = { .p = p };

	group_start(&l, "embedding");
	w->token_table = take_matrix(&l, s->vocab * s->dim);
	w->position_table = take_matrix(&l, s->context * s->dim);
	for (size_t i = 0; i < s->layers; i++) {
		char name[sizeof(l.group->name)];

		snprintf(name, sizeof(name), "block%u", (unsigned int)i);
		group_start(&l, name);
		layout_block(&l, &w->blocks[i]);
	}
	group_start(&l, "head");
	w->head_w = take_matrix(&l, s->dim * s->vocab);
	w->norm_gain = take(&l, s->dim);
	w->norm_bias = take(&l, s->dim);
	w->head_b = take(&l, s->vocab);
}

static size_t count_all(const struct model_size *s)
{
	const size_t block = (4 + 2 * MLP_FACTOR) * s->dim * s->dim + (9 + MLP_FACTOR) * s->dim;

	return (s->vocab + s->context) * s->dim + s->layers * block + s->dim * s->vocab +
	       2 * s->dim + s->vocab;
}

static void draw(real *values, size_t n, double deviation, struct rng *rng)
{
	for (size_t i = 0; i < n; i++)
		values[i] = (real)(deviation * rng_normal(rng));
}

static void fill(real *values, size_t n, real value)
{
	for (size_t i = 0; i < n; i++)
		values[i] = value;
}

static void draw_all(struct parameters *p, uint64_t seed)
{
	const struct model_size *s = &p->size;
	struct weights *w = &p->weights;
	struct rng rng = rng_stream(seed, 0);
	const double deviation = INITIAL_DEVIATION / sqrt((double)s->dim);
	/* Each block adds two results to the residual: kept small, their sum does not grow with depth. */
	const double residual = deviation / sqrt(2.0 * (double)s->layers);

	draw(w->token_table, s->vocab * s->dim, deviation, &rng);
	draw(w->position_table, s->context * s->dim, deviation, &rng);
	for (size_t i = 0; i < s->layers; i++) {
		struct block_weights *b = &w->blocks[i];

		draw(b->qkv_w, s->dim * 3 * s->dim, deviation, &rng);
		draw(b->proj_w, s->dim * s->dim, residual, &rng);
		draw(b->fc_w, s->dim * MLP_FACTOR * s->dim, deviation, &rng);
		draw(b->out_w, s->dim * MLP_FACTOR * s->dim, residual, &rng);
		fill(b->norm1_gain, s->dim, 1);
		fill(b->norm2_gain, s->dim, 1);
	}
	draw(w->head_w, s->dim * s->vocab, deviation, &rng);
	fill(w->norm_gain, s->dim, 1);
}

int parameters_open(struct parameters *p, const struct model_size *size, uint64_t seed)
{
	int err;

	*p = (struct parameters){ .size = *size, .n = count_all(size) };
	p->values = arena_reals(&p->arena, p->n);
	p->grads = arena_reals(&p->arena, p->n);
	p->weights.blocks = arena_take(&p->arena, size->layers, sizeof(*p->weights.blocks));
	p->groups = arena_take(&p->arena, size->layers + 2, sizeof(*p->groups));
	if (p->arena.err) {
		err = p->arena.err;
		parameters_close(p);
		return err;
	}
	layout_all(p);
	draw_all(p, seed);
	return 0;
}

void parameters_close(struct parameters *p)
{
	arena_free(&p->arena);
}
