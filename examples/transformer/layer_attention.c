// SPDX-License-Identifier: BSD-2-Clause
/*
 * Causal self-attention: scores, softmax and mix, and the way back through each. A unit is one head
 * of one sequence, so every kernel runs over the whole [time][time] triangle of its heads.
 */
#include <string.h>

#include "layers.h"
#include "vector.h"

/* Where one head of one sequence has its parts. Rows of q, k and v are `stride` apart. */
struct head {
	size_t time;
	size_t dim;
	size_t stride; /* of query, key and value */
	size_t mix_stride;
	size_t square;		  /* offset of its [time][time] in scores and weights */
	size_t query, key, value; /* offsets in qkv */
	size_t mix;		  /* offset in mix */
};

static struct head head_of(const struct attention *a, size_t unit)
{
	const size_t sequence = unit / a->heads, head = unit % a->heads;
	const size_t time = a->shape->time, width = a->heads * a->head_dim;
	const size_t row = sequence * time;

	return (struct head){
		.time = time,
		.dim = a->head_dim,
		.stride = 3 * width,
		.mix_stride = width,
		.square = unit * time * time,
		.query = row * 3 * width + head * a->head_dim,
		.key = row * 3 * width + width + head * a->head_dim,
		.value = row * 3 * width + 2 * width + head * a->head_dim,
		.mix = row * width + head * a->head_dim,
	};
}

static void clear_rows(real *rows, size_t stride, size_t n_rows, size_t n)
{
	for (size_t r = 0; r < n_rows; r++)
		memset(rows + r * stride, 0, n * sizeof(*rows));
}

static real score_scale(const struct attention *a)
{
	return (real)1 / sqrt((real)a->head_dim);
}

void attention_scores(const void *layer, struct range heads)
{
	const struct attention *a = layer;
	const real scale = score_scale(a);

	for (size_t u = heads.from; u < heads.to; u++) {
		const struct head h = head_of(a, u);

		for (size_t t = 0; t < h.time; t++) {
			const real *query = a->qkv + h.query + t * h.stride;
			real *scores = a->scores + h.square + t * h.time;

			for (size_t past = 0; past <= t; past++)
				scores[past] =
					scale *
					vector_dot(query, a->qkv + h.key + past * h.stride, h.dim);
		}
	}
}

void attention_softmax(const void *layer, struct range heads)
{
	const struct attention *a = layer;

	for (size_t u = heads.from; u < heads.to; u++) {
		const struct head h = head_of(a, u);

		for (size_t t = 0; t < h.time; t++) {
			const size_t row = h.square + t * h.time;

			vector_softmax(a->scores + row, a->weights + row, t + 1);
		}
	}
}

void attention_mix(const void *layer, struct range heads)
{
	const struct attention *a = layer;

	for (size_t u = heads.from; u < heads.to; u++) {
		const struct head h = head_of(a, u);

		clear_rows(a->mix + h.mix, h.mix_stride, h.time, h.dim);
		for (size_t t = 0; t < h.time; t++) {
			const real *weights = a->weights + h.square + t * h.time;
			real *mix = a->mix + h.mix + t * h.mix_stride;

			for (size_t past = 0; past <= t; past++)
				vector_add_scaled(mix, weights[past],
						  a->qkv + h.value + past * h.stride, h.dim);
		}
	}
}

void attention_mix_backward(const void *layer, struct range heads)
{
	const struct attention *a = layer;

	for (size_t u = heads.from; u < heads.to; u++) {
		const struct head h = head_of(a, u);

		clear_rows(a->d_qkv + h.value, h.stride, h.time, h.dim);
		for (size_t t = 0; t < h.time; t++) {
			const size_t row = h.square + t * h.time;
			const real *d_mix = a->d_mix + h.mix + t * h.mix_stride;

			for (size_t past = 0; past <= t; past++) {
				const size_t value = h.value + past * h.stride;

				a->d_weights[row + past] = vector_dot(d_mix, a->qkv + value, h.dim);
				vector_add_scaled(a->d_qkv + value, a->weights[row + past], d_mix,
						  h.dim);
			}
		}
	}
}

void attention_softmax_backward(const void *layer, struct range heads)
{
	const struct attention *a = layer;

	for (size_t u = heads.from; u < heads.to; u++) {
		const struct head h = head_of(a, u);

		for (size_t t = 0; t < h.time; t++) {
			const size_t row = h.square + t * h.time;
			const real *restrict weights = a->weights + row;
			const real *restrict d_weights = a->d_weights + row;
			real *restrict d_scores = a->d_scores + row;
			const real mean = vector_dot(weights, d_weights, t + 1);

			for (size_t past = 0; past <= t; past++)
				d_scores[past] = weights[past] * (d_weights[past] - mean);
		}
	}
}

void attention_scores_backward(const void *layer, struct range heads)
{
	const struct attention *a = layer;
	const real scale = score_scale(a);

	for (size_t u = heads.from; u < heads.to; u++) {
		const struct head h = head_of(a, u);

		clear_rows(a->d_qkv + h.query, h.stride, h.time, h.dim);
		clear_rows(a->d_qkv + h.key, h.stride, h.time, h.dim);
		for (size_t t = 0; t < h.time; t++) {
			const real *d_scores = a->d_scores + h.square + t * h.time;
			const size_t query = h.query + t * h.stride;

			for (size_t past = 0; past <= t; past++) {
				const size_t key = h.key + past * h.stride;
				const real d = scale * d_scores[past];

				vector_add_scaled(a->d_qkv + query, d, a->qkv + key, h.dim);
				vector_add_scaled(a->d_qkv + key, d, a->qkv + query, h.dim);
			}
		}
	}
}
