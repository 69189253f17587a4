// SPDX-License-Identifier: BSD-2-Clause
/*
 * The intern table of intern.h: open addressing, read without a lock and filled under one.
 *
 * Readers may hold a table while it is replaced by a larger one, and nobody knows for how long; so old
 * tables are kept. Each is half as large as the next, which bounds all of them by the size of the last.
 */
#include "marker/intern.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "marker/desc.h"
#include "marker/identity.h"
#include "tickmark/tickmark.h"

#define TABLE_MIN 256u
/* Sites that still get in when TMK_INTERN_MAX is reached, without inputs: their times stay apart. */
#define INTERN_RESERVE 8192u

struct table {
	size_t mask, used;
	struct table *previous;
	const struct tmk_desc *slots[]; /* atomic; NULL = free, and then never taken back */
};

static struct table *current; /* atomic */
static pthread_mutex_t insert_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tmk_seed seed; /* set before the first table is published */

void tmk_intern_lock(void)
{
	pthread_mutex_lock(&insert_lock);
}

void tmk_intern_unlock(void)
{
	pthread_mutex_unlock(&insert_lock);
}

static uint32_t desc_hash(const struct tmk_desc *desc)
{
	return tmk_hash_bytes(&seed, desc, tmk_desc_size(desc));
}

/* The slot that holds an equal descriptor, or the free one where it would go. */
static size_t slot_find(const struct table *t, const struct tmk_desc *desc, uint32_t hash)
{
	size_t i = hash & t->mask;

	for (;; i = (i + 1) & t->mask) {
		const struct tmk_desc *there = __atomic_load_n(&t->slots[i], __ATOMIC_ACQUIRE);

		if (!there ||
		    (there->bytes == desc->bytes && !memcmp(there, desc, tmk_desc_size(desc))))
			return i;
	}
}

static const struct tmk_desc *find(const struct tmk_desc *desc)
{
	struct table *t = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

	return t ? __atomic_load_n(&t->slots[slot_find(t, desc, desc_hash(desc))], __ATOMIC_ACQUIRE)
		 : NULL;
}

/* A table with room for one more, at most half full; NULL without memory. Under the lock. */
static struct table *table_with_room(void)
{
	struct table *old = current, *t;
	size_t n = old ? (old->mask + 1) * 2 : TABLE_MIN;

	if (old && (old->used + 1) * 2 <= old->mask + 1)
		return old;
	if (!old)
		tmk_seed_init(&seed);
	t = calloc(1, sizeof(*t) + n * sizeof(t->slots[0]));
	if (!t)
		return NULL;
	t->mask = n - 1;
	t->previous = old;
	for (size_t i = 0; old && i <= old->mask; i++) {
		const struct tmk_desc *desc = old->slots[i];

		if (desc)
			t->slots[slot_find(t, desc, desc_hash(desc))] = desc;
	}
	t->used = old ? old->used : 0;
	__atomic_store_n(&current, t, __ATOMIC_RELEASE);
	return t;
}

/* NULL when it is new and there is no room or no memory for it. Under the lock. */
static const struct tmk_desc *insert(const struct tmk_desc *desc, size_t max)
{
	struct table *t = table_with_room();
	struct tmk_desc *copy;
	size_t i;

	if (!t)
		return NULL;
	i = slot_find(t, desc, desc_hash(desc));
	if (t->slots[i])
		return t->slots[i]; /* somebody was faster */
	if (t->used >= max)
		return NULL;
	copy = malloc(tmk_desc_size(desc));
	if (!copy)
		return NULL;
	memcpy(copy, desc, tmk_desc_size(desc));
	__atomic_store_n(&t->slots[i], copy, __ATOMIC_RELEASE);
	t->used++;
	return copy;
}

static const struct tmk_desc *intern(const struct tmk_desc *desc, size_t max)
{
	const struct tmk_desc *found = find(desc);

	if (found)
		return found;
	tmk_fork_watch();
	tmk_intern_lock();
	found = insert(desc, max);
	tmk_intern_unlock();
	return found;
}

/* What stands for all those that found no room. */
static const struct tmk_desc cut_site = {
	TMK_DESC_MAGIC,
	TMK_DESC_SITE,
	TMK_DESC_CUT_STATIC_ID | TMK_DESC_CUT_OP | TMK_DESC_CUT_INPUTS,
	2,
	2,
	0,
	{ "\0" },
};
static const struct tmk_desc cut_edge = {
	TMK_DESC_MAGIC, TMK_DESC_EDGE, TMK_DESC_CUT_STATIC_ID, 2, 2, 0, { "\0" },
};
static const struct tmk_desc cut_name = {
	TMK_DESC_MAGIC, TMK_DESC_NAME, TMK_DESC_CUT_NAME, 1, 1, 0, { "" },
};

const struct tmk_desc *tmk_intern_site(const char *static_id, const char *op,
				       const char *const *inputs, size_t n_inputs)
{
	union tmk_desc_draft draft;
	const struct tmk_desc *site;

	tmk_desc_begin(&draft, TMK_DESC_SITE);
	tmk_desc_add(&draft, static_id, 1, TMK_DESC_CUT_STATIC_ID);
	tmk_desc_add(&draft, op, 0, TMK_DESC_CUT_OP);
	for (size_t i = 0; inputs && i < n_inputs; i++) {
		if (!tmk_desc_add_item(&draft, inputs[i], TMK_DESC_CUT_INPUTS))
			break;
	}
	site = intern(&draft.desc, TMK_INTERN_MAX);
	if (!site) {
		tmk_desc_begin(&draft, TMK_DESC_SITE);
		tmk_desc_add(&draft, static_id, 1, TMK_DESC_CUT_STATIC_ID);
		tmk_desc_add(&draft, op, 0, TMK_DESC_CUT_OP);
		draft.desc.flags |= TMK_DESC_CUT_INPUTS;
		site = intern(&draft.desc, TMK_INTERN_MAX + INTERN_RESERVE);
	}
	return site ? site : &cut_site;
}

const struct tmk_desc *tmk_intern_edge(const char *from, const char *to)
{
	union tmk_desc_draft draft;
	const struct tmk_desc *edge;

	tmk_desc_begin(&draft, TMK_DESC_EDGE);
	tmk_desc_add(&draft, from, 1, TMK_DESC_CUT_STATIC_ID);
	tmk_desc_add(&draft, to, 0, TMK_DESC_CUT_STATIC_ID);
	edge = intern(&draft.desc, TMK_INTERN_MAX);
	return edge ? edge : &cut_edge;
}

/*
 * Names come again and again, mostly from the same addresses. What such an address named last is
 * remembered, as a hint: the text has to be equal all the same.
 */
#define HINTS 64u

static const struct tmk_desc *hints[HINTS]; /* atomic */

static const struct tmk_desc **hint_of(const char *name)
{
	return &hints[((uintptr_t)name ^ (uintptr_t)name >> 6) % HINTS];
}

const struct tmk_desc *tmk_intern_name(const char *name)
{
	const struct tmk_desc **hint = hint_of(name), *desc;
	union tmk_desc_draft draft;

	desc = __atomic_load_n(hint, __ATOMIC_ACQUIRE);
	if (desc && name && !desc->flags && !strcmp(desc->strings, name))
		return desc;
	tmk_desc_begin(&draft, TMK_DESC_NAME);
	tmk_desc_add(&draft, name, 0, TMK_DESC_CUT_NAME);
	desc = intern(&draft.desc, TMK_INTERN_MAX);
	if (!desc)
		return &cut_name;
	__atomic_store_n(hint, desc, __ATOMIC_RELEASE);
	return desc;
}
