// SPDX-License-Identifier: BSD-2-Clause
/*
 * Layer norm over each row, and its gradients.
 */
#include <string.h>
#include <tgmath.h>

#include "layers.h"

/* Keeps a row of equal numbers from dividing by zero. */
#define EPSILON ((real)1e-5)

void layer_norm_forward(const void *layer, struct range rows)
{
	const struct layer_norm *ln = layer;
	const size_t n = ln->dim;

	for (size_t r = rows.from; r < rows.to; r++) {
		const real *restrict x = ln->x + r * n;
		real *restrict y = ln->y + r * n;
		real mean = 0, variance = 0, inverse;

		for (size_t i = 0; i < n; i++)
			mean += x[i];
		mean /= (real)n;
		for (size_t i = 0; i < n; i++)
			variance += (x[i] - mean) * (x[i] - mean);
		inverse = (real)1 / sqrt(variance / (real)n + EPSILON);

		for (size_t i = 0; i < n; i++)
			y[i] = (x[i] - mean) * inverse * ln->gain[i] + ln->bias[i];
		ln->mean[r] = mean;
		ln->inverse[r] = inverse;
	}
}

/*
 * With n = (x - mean) * inverse and dn = dy * gain:
 * dx = inverse * (dn - mean(dn) - n * mean(dn * n)); the two means are the ways by which x[i] also
 * moves the mean and the deviation of its row.
 */
void layer_norm_backward(const void *layer, struct range rows)
{
	const struct layer_norm *ln = layer;
	const size_t n = ln->dim;

	for (size_t r = rows.from; r < rows.to; r++) {
		const real *restrict x = ln->x + r * n;
		const real *restrict dy = ln->dy + r * n;
		const real *restrict gain = ln->gain;
		const real mean = ln->mean[r], inverse = ln->inverse[r];
		real *restrict dx = ln->dx + r * n;
		real mean_dn = 0, mean_dn_n = 0;

		for (size_t i = 0; i < n; i++) {
			mean_dn += dy[i] * gain[i];
			mean_dn_n += dy[i] * gain[i] * (x[i] - mean) * inverse;
		}
		mean_dn /= (real)n;
		mean_dn_n /= (real)n;

		for (size_t i = 0; i < n; i++)
			dx[i] = inverse *
				(dy[i] * gain[i] - mean_dn - (x[i] - mean) * inverse * mean_dn_n);
	}
}

void layer_norm_weight_grad(const void *layer, struct range channels)
{
	const struct layer_norm *ln = layer;
	const size_t rows = ln->shape->batch * ln->shape->time;
	real *restrict d_gain = ln->d_gain;
	real *restrict d_bias = ln->d_bias;

	memset(d_gain + channels.from, 0, (channels.to - channels.from) * sizeof(*d_gain));
	memset(d_bias + channels.from, 0, (channels.to - channels.from) * sizeof(*d_bias));
	for (size_t r = 0; r < rows; r++) {
		const real *restrict x = ln->x + r * ln->dim;
		const real *restrict dy = ln->dy + r * ln->dim;
		const real mean = ln->mean[r], inverse = ln->inverse[r];

		for (size_t i = channels.from; i < channels.to; i++) {
			d_gain[i] += dy[i] * (x[i] - mean) * inverse;
			d_bias[i] += dy[i];
		}
	}
}
