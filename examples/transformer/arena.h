/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is taken piece by piece and given back all at once. It has a limit, so that a model of
 * a careless size is refused instead of filling the machine.
 */
#ifndef TRANSFORMER_ARENA_H
#define TRANSFORMER_ARENA_H

#include <stddef.h>

#include "real.h"

#define ARENA_LIMIT ((size_t)1 << 30) /* bytes */

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	size_t bytes;
	int err; /* the first failure; sticky, so that only the end of a build has to look */
};

/* `n` objects of `size` bytes, cleared, aligned to 64 bytes. NULL after a failure; see `err`. */
void *arena_take(struct arena *arena, size_t n, size_t size);

real *arena_reals(struct arena *arena, size_t n);

/* Gives everything back and leaves an empty arena. */
void arena_free(struct arena *arena);

#endif
