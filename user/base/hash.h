/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hashing for tables whose keys a hostile program chooses: a seeded mixer, and an index that maps a
 * hash to slot numbers of the caller's own array. What a slot holds, and when two keys are equal, is
 * the caller's.
 */
#ifndef TICKMARK_BASE_HASH_H
#define TICKMARK_BASE_HASH_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Secret, so that nobody outside can choose keys which collide. */
struct tmk_seed {
	uint64_t a, b;
};

static inline void tmk_seed_init(struct tmk_seed *s)
{
	struct timespec now;

	if (getrandom(s, sizeof(*s), GRND_NONBLOCK) == (ssize_t)sizeof(*s))
		return;
	/* Only before the kernel's pool is ready: weaker, but never the same in two runs. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	s->a = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15ULL ^ (uintptr_t)s;
	s->b = (uint64_t)now.tv_sec * 0xd1b54a32d192ed03ULL + s->a;
}

static inline uint64_t tmk_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint32_t tmk_hash2(const struct tmk_seed *s, uint64_t x, uint64_t y)
{
	/* Twice: one product of keys in equal steps is again in equal steps, which some seeds make clumps of. */
	uint64_t h = tmk_fold(tmk_fold(x ^ s->a, y ^ s->b) ^ s->b, 0x9e3779b97f4a7c15ULL);

	return (uint32_t)(h ^ h >> 32);
}

static inline uint32_t tmk_hash_bytes(const struct tmk_seed *s, const void *data, size_t len)
{
	const char *p = data;
	/* Mixed at once: what is shorter than a word would else meet the seed where it cancels out. */
	uint64_t h = tmk_fold(s->a ^ len, s->b | 1), word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		h = tmk_fold(h ^ word, s->b | 1);
	}
	word = 0;
	memcpy(&word, p, len);
	return tmk_hash2(s, h, word);
}

/*
 * Open addressing with linear probing at no more than half full; removal shifts back, so there are no
 * tombstones and a table under steady turnover never degrades. `slot` is kept plus one: 0 is free.
 */
struct tmk_index_bucket {
	uint32_t hash, slot1;
};

struct tmk_index {
	struct tmk_index_bucket *buckets;
	uint32_t mask, used; /* mask + 1 buckets; no buckets at all before the first insertion */
};

/*
 * Walks the slots that were inserted under `hash`. `pos` (uint32_t) is what tmk_index_remove() takes;
 * leave the loop after a removal.
 */
#define TMK_INDEX_FOR_EACH(ix, h, pos, slot)                                        \
	for ((pos) = (h) & (ix)->mask; (ix)->buckets && (ix)->buckets[pos].slot1 && \
				       ((slot) = (ix)->buckets[pos].slot1 - 1, 1);  \
	     (pos) = ((pos) + 1) & (ix)->mask)                                      \
		if ((ix)->buckets[pos].hash == (h))

static inline void tmk_index_put(struct tmk_index *ix, uint32_t hash, uint32_t slot1)
{
	uint32_t pos = hash & ix->mask;

	while (ix->buckets[pos].slot1)
		pos = (pos + 1) & ix->mask;
	ix->buckets[pos] = (struct tmk_index_bucket){ hash, slot1 };
}

/* Returns 0 or -ENOMEM; the index is then unchanged. */
static inline int tmk_index_insert(struct tmk_index *ix, uint32_t hash, uint32_t slot)
{
	if (!ix->buckets || (ix->used + 1) * 2ULL > ix->mask + 1ULL) {
		struct tmk_index old = *ix;
		size_t n = old.buckets ? (old.mask + (size_t)1) * 2 : 64;

		ix->buckets = calloc(n, sizeof(*ix->buckets));
		if (!ix->buckets) {
			*ix = old;
			return -ENOMEM;
		}
		ix->mask = (uint32_t)(n - 1);
		for (size_t i = 0; old.buckets && i <= old.mask; i++)
			if (old.buckets[i].slot1)
				tmk_index_put(ix, old.buckets[i].hash, old.buckets[i].slot1);
		free(old.buckets);
	}
	tmk_index_put(ix, hash, slot + 1);
	ix->used++;
	return 0;
}

static inline void tmk_index_remove(struct tmk_index *ix, uint32_t pos)
{
	uint32_t next = pos;

	for (;;) {
		uint32_t home;

		next = (next + 1) & ix->mask;
		if (!ix->buckets[next].slot1)
			break;
		home = ix->buckets[next].hash & ix->mask;
		/* An entry may move back to `pos` unless its home lies behind it. */
		if (((next - home) & ix->mask) < ((next - pos) & ix->mask))
			continue;
		ix->buckets[pos] = ix->buckets[next];
		pos = next;
	}
	ix->buckets[pos].slot1 = 0;
	ix->used--;
}

/* Removes one of the slots that were inserted under `hash`; nothing where it is not there. */
static inline void tmk_index_remove_slot(struct tmk_index *ix, uint32_t hash, uint32_t slot)
{
	uint32_t pos, there;

	TMK_INDEX_FOR_EACH(ix, hash, pos, there)
	{
		if (there == slot) {
			tmk_index_remove(ix, pos);
			break;
		}
	}
}

static inline void tmk_index_free(struct tmk_index *ix)
{
	free(ix->buckets);
	memset(ix, 0, sizeof(*ix));
}

#endif /* TICKMARK_BASE_HASH_H */
