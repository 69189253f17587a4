/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An array of pointers in which a place that is given back is used again: what an index (hash.h) maps to.
 * The places' content is the caller's, who also frees it. Not thread-safe.
 */
#ifndef TICKMARK_BASE_SLOTS_H
#define TICKMARK_BASE_SLOTS_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct tmk_slots {
	void **at;	/* the first n; NULL in one that was never taken */
	uint32_t *free; /* places among them, n_free of them, the next to be taken last */
	uint32_t n, n_free, cap;
};

static inline uint32_t tmk_slots_used(const struct tmk_slots *s)
{
	return s->n - s->n_free;
}

/* Sees that there is a place to take: *slot, which holds what was left there. Returns 0 or -ENOMEM. */
static inline int tmk_slots_next(struct tmk_slots *s, uint32_t *slot)
{
	if (!s->n_free && s->n == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 32;
		void **at = realloc(s->at, cap * sizeof(*at));
		uint32_t *free_places;

		if (!at)
			return -ENOMEM;
		s->at = at;
		free_places = realloc(s->free, cap * sizeof(*free_places));
		if (!free_places)
			return -ENOMEM;
		s->free = free_places;
		s->cap = cap;
	}
	if (!s->n_free) {
		s->at[s->n] = NULL;
		s->free[s->n_free++] = s->n++;
	}
	*slot = s->free[s->n_free - 1];
	return 0;
}

/* Takes the place that tmk_slots_next() named. */
static inline void tmk_slots_take(struct tmk_slots *s, void *content)
{
	s->at[s->free[--s->n_free]] = content;
}

/* Gives a place back, with what is in it. */
static inline void tmk_slots_give(struct tmk_slots *s, uint32_t slot)
{
	s->free[s->n_free++] = slot;
}

static inline void tmk_slots_free(struct tmk_slots *s)
{
	free(s->at);
	free(s->free);
	memset(s, 0, sizeof(*s));
}

#endif /* TICKMARK_BASE_SLOTS_H */
