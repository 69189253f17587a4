/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-random numbers that are the same everywhere for the same seed. Not for secrets.
 */
#ifndef TRANSFORMER_RNG_H
#define TRANSFORMER_RNG_H

#include <stdint.h>

struct rng {
	uint64_t state;
};

/* Streams of one seed are independent, so that drawing more from one leaves the others alone. */
struct rng rng_stream(uint64_t seed, uint64_t stream);

uint64_t rng_next(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t n); /* 0 <= result < n; n is not 0 */
double rng_uniform(struct rng *rng);		 /* 0 <= result < 1 */
double rng_normal(struct rng *rng);		 /* mean 0, deviation 1 */

#endif
