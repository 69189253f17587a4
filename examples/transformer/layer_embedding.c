// SPDX-License-Identifier: BSD-2-Clause
/*
 * The embedding of token and position, and the gradients of both tables.
 */
#include "layers.h"

void embedding_forward(const void *layer, struct range rows)
{
	const struct embedding *e = layer;

	for (size_t r = rows.from; r < rows.to; r++) {
		const real *restrict token = e->token_table + (size_t)e->tokens[r] * e->dim;
		const real *restrict position = e->position_table + r % e->shape->time * e->dim;
		real *restrict y = e->y + r * e->dim;

		for (size_t i = 0; i < e->dim; i++)
			y[i] = token[i] + position[i];
	}
}

static void clear_channels(real *table, size_t n_rows, size_t dim, struct range channels)
{
	for (size_t r = 0; r < n_rows; r++) {
		for (size_t i = channels.from; i < channels.to; i++)
			table[r * dim + i] = 0;
	}
}

/* Many rows share a token, so the tables are split by channel: no two workers meet in a number. */
void embedding_weight_grad(const void *layer, struct range channels)
{
	const struct embedding *e = layer;
	const size_t rows = e->shape->batch * e->shape->time;

	clear_channels(e->d_token_table, e->vocab, e->dim, channels);
	clear_channels(e->d_position_table, e->context, e->dim, channels);
	for (size_t r = 0; r < rows; r++) {
		const real *restrict dy = e->dy + r * e->dim;
		real *restrict d_token = e->d_token_table + (size_t)e->tokens[r] * e->dim;
		real *restrict d_position = e->d_position_table + r % e->shape->time * e->dim;

		for (size_t i = channels.from; i < channels.to; i++) {
			d_token[i] += dy[i];
			d_position[i] += dy[i];
		}
	}
}
