// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory taken piece by piece: a list of allocations.
 */
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

/* A cache line, and of which ARENA_LIMIT is a multiple: rounding up stays below it. */
#define ALIGNMENT 64u

struct arena_chunk {
	alignas(ALIGNMENT) struct arena_chunk *next;
};

void *arena_take(struct arena *arena, size_t n, size_t size)
{
	struct arena_chunk *chunk;
	size_t bytes;

	if (arena->err)
		return NULL;
	if (__builtin_mul_overflow(n, size, &bytes) || bytes > ARENA_LIMIT - arena->bytes) {
		arena->err = -EFBIG;
		return NULL;
	}
	bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	chunk = aligned_alloc(ALIGNMENT, sizeof(*chunk) + bytes);
	if (!chunk) {
		arena->err = -ENOMEM;
		return NULL;
	}
	memset(chunk + 1, 0, bytes);
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->bytes += bytes;
	return chunk + 1;
}

real *arena_reals(struct arena *arena, size_t n)
{
	return arena_take(arena, n, sizeof(real));
}

void arena_free(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		free(chunk);
	}
	*arena = (struct arena){ 0 };
}
