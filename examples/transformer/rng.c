// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pseudo-random numbers: a 64-bit counter with a mixing function (splitmix64).
 */
#include <math.h>

#include "rng.h"

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

struct rng rng_stream(uint64_t seed, uint64_t stream)
{
	return (struct rng){ .state = mix(mix(seed) + stream) };
}

uint64_t rng_next(struct rng *rng)
{
	rng->state += 0x9e3779b97f4a7c15u;
	return mix(rng->state);
}

/* The bias of the remainder is below n / 2^64. */
uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return rng_next(rng) % n;
}

double rng_uniform(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *rng)
{
	const double radius = sqrt(-2 * log(1 - rng_uniform(rng)));

	return radius * cos(6.283185307179586 * rng_uniform(rng));
}
