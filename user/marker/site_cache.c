// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rendered sites by address. See site_cache.h.
 *
 * Readers probe the table while one writer fills it. A table that grew too full is replaced, and kept
 * until the end, because a reader may still be in it.
 */
#include "marker/site_cache.h"

#include <stdlib.h>
#include <string.h>

#include "marker/desc.h"

#define TABLE_MIN 64u

struct tmk_site_entry {
	const struct tmk_desc *site;
	struct tmk_desc *copy; /* of what lay there when it was rendered */
	struct tmk_r3_site rendered;
	struct tmk_site_entry *next;
};

struct tmk_site_table {
	size_t mask, used;
	struct tmk_site_table *previous;
	struct tmk_site_entry *slots[]; /* atomic */
};

void tmk_site_cache_init(struct tmk_site_cache *c)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
}

/* The slot of that address, or the free one where it would go. */
static struct tmk_site_entry **slot_find(struct tmk_site_table *t, const struct tmk_desc *site)
{
	size_t i = ((uintptr_t)site * 0x9e3779b97f4a7c15u >> 32) & t->mask;

	for (;; i = (i + 1) & t->mask) {
		struct tmk_site_entry *e = __atomic_load_n(&t->slots[i], __ATOMIC_ACQUIRE);

		if (!e || e->site == site)
			return &t->slots[i];
	}
}

static bool is_same(const struct tmk_site_entry *e, const struct tmk_desc *site)
{
	return e->copy->bytes == site->bytes && !memcmp(e->copy, site, tmk_desc_size(e->copy));
}

static const struct tmk_site_entry *find(struct tmk_site_table *t, const struct tmk_desc *site)
{
	const struct tmk_site_entry *e;

	if (!t)
		return NULL;
	e = __atomic_load_n(slot_find(t, site), __ATOMIC_ACQUIRE);
	return e && is_same(e, site) ? e : NULL;
}

static void entry_free(struct tmk_site_entry *e)
{
	if (!e)
		return;
	tmk_r3_site_free(&e->rendered);
	free(e->copy);
	free(e);
}

static int render(struct tmk_r3_site *rendered, const struct tmk_desc *site)
{
	struct tmk_str *strings = calloc(site->count, sizeof(*strings));
	size_t n;
	int err;

	if (!strings)
		return -1;
	n = tmk_desc_strings(site, strings, site->count);
	/* A site that promises strings which it does not have has empty ones. */
	for (size_t i = n; i < 2; i++)
		strings[i] = (struct tmk_str){ "", 0 };
	err = tmk_r3_site_render(rendered, strings[0], strings[1], strings + 2, n > 2 ? n - 2 : 0,
				 site->flags);
	free(strings);
	return err;
}

static struct tmk_site_entry *entry_new(const struct tmk_desc *site)
{
	struct tmk_site_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->site = site;
	e->copy = malloc(tmk_desc_size(site));
	if (!e->copy)
		goto cleanup;
	memcpy(e->copy, site, tmk_desc_size(site));
	if (render(&e->rendered, e->copy))
		goto cleanup;
	return e;
cleanup:
	entry_free(e);
	return NULL;
}

static struct tmk_site_table *table_with_room(struct tmk_site_cache *c)
{
	struct tmk_site_table *old = c->table, *t;
	size_t n = old ? (old->mask + 1) * 2 : TABLE_MIN;

	if (old && (old->used + 1) * 2 <= old->mask + 1)
		return old;
	t = calloc(1, sizeof(*t) + n * sizeof(t->slots[0]));
	if (!t)
		return NULL;
	t->mask = n - 1;
	t->previous = old;
	for (size_t i = 0; old && i <= old->mask; i++) {
		if (old->slots[i])
			*slot_find(t, old->slots[i]->site) = old->slots[i];
	}
	t->used = old ? old->used : 0;
	__atomic_store_n(&c->table, t, __ATOMIC_RELEASE);
	return t;
}

static const struct tmk_site_entry *insert(struct tmk_site_cache *c, const struct tmk_desc *site)
{
	const struct tmk_site_entry *there = find(c->table, site);
	struct tmk_site_table *t;
	struct tmk_site_entry **slot, *e;

	if (there)
		return there; /* somebody was faster */
	t = table_with_room(c);
	e = t ? entry_new(site) : NULL;
	if (!e)
		return NULL;
	e->next = c->entries;
	c->entries = e;
	slot = slot_find(t, site);
	if (!*slot)
		t->used++;
	__atomic_store_n(slot, e, __ATOMIC_RELEASE);
	return e;
}

const struct tmk_r3_site *tmk_site_cache_get(struct tmk_site_cache *c, const struct tmk_desc *site)
{
	const struct tmk_site_entry *e = find(__atomic_load_n(&c->table, __ATOMIC_ACQUIRE), site);

	if (!e) {
		pthread_mutex_lock(&c->lock);
		e = insert(c, site);
		pthread_mutex_unlock(&c->lock);
	}
	return e ? &e->rendered : NULL;
}

void tmk_site_cache_free(struct tmk_site_cache *c)
{
	struct tmk_site_table *t = c->table, *previous;
	struct tmk_site_entry *e = c->entries, *next;

	for (; e; e = next) {
		next = e->next;
		entry_free(e);
	}
	for (; t; t = previous) {
		previous = t->previous;
		free(t);
	}
	pthread_mutex_destroy(&c->lock);
	memset(c, 0, sizeof(*c));
}
