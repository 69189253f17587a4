// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps described objects. Decoding them is desc.c's; which process they belong to is sessions.c's.
 */
#include "assemble/names.h"

#include <errno.h>

/* What the allocator adds to each object, so that many small ones are not cheaper than they are. */
#define ALLOCATION_OVERHEAD 16

void tmk_names_init(struct tmk_names *t, struct tmk_budget *budget, const struct tmk_seed *seed)
{
	memset(t, 0, sizeof(*t));
	t->budget = budget;
	t->seed = *seed;
	tmk_op_names_init(&t->op_names, budget, seed);
}

static uint32_t name_hash(const struct tmk_names *t, uint32_t incarnation, uint64_t object,
			  uint16_t kind)
{
	return tmk_hash2(&t->seed, object, (uint64_t)kind << 32 | incarnation);
}

static struct tmk_named *name_find(const struct tmk_names *t, uint32_t hash, uint32_t incarnation,
				   uint64_t object, uint16_t kind)
{
	uint32_t slot, pos;

	TMK_INDEX_FOR_EACH(&t->index, hash, pos, slot)
	{
		struct tmk_named *n = t->slots.at[slot];

		if (n->object == object && n->incarnation == incarnation && n->kind == kind)
			return n;
	}
	return NULL;
}

const struct tmk_named *tmk_names_find(struct tmk_names *t, uint32_t incarnation, uint64_t object,
				       uint16_t kind)
{
	/* Descriptors are at least 24 bytes long; those of one kind lie side by side. */
	const struct tmk_named **recent =
		&t->recent[((object >> 4) + kind * 37) % TMK_NAMES_RECENT];
	const struct tmk_named *n = *recent;

	if (n && n->object == object && n->incarnation == incarnation && n->kind == kind)
		return n;
	n = name_find(t, name_hash(t, incarnation, object, kind), incarnation, object, kind);
	if (n)
		*recent = n;
	return n;
}

static struct tmk_str str_keep(char **to, struct tmk_str s)
{
	struct tmk_str kept = { *to, s.len };

	memcpy(*to, s.data, s.len);
	*to += s.len;
	return kept;
}

/* One allocation holds it all; a rendered site is copied into it, since its own has room to spare. */
static int named_new(const struct tmk_desc_view *d, struct tmk_named **out)
{
	bool is_site = d->kind == TMK_DESC_SITE, is_edge = d->kind == TMK_DESC_EDGE;
	const struct tmk_str *a = &d->strings[is_site ? 1 : 0];
	size_t bytes = a->len + (is_edge ? d->strings[1].len : 0);
	struct tmk_r3_site site = { 0 };
	struct tmk_named *n;
	char *to;

	if (is_site && tmk_r3_site_render(&site, d->strings[0], d->strings[1], d->strings + 2,
					  d->count - 2, d->flags & 0xff))
		return -ENOMEM;
	bytes += sizeof(*n) + site.len;
	n = calloc(1, bytes);
	if (n) {
		n->kind = d->kind;
		n->cut = d->flags & 0xff;
		n->cost = bytes + ALLOCATION_OVERHEAD;
		to = n->strings;
		n->a = str_keep(&to, *a);
		if (is_edge)
			n->b = str_keep(&to, d->strings[1]);
		if (is_site) {
			n->site = site;
			n->site.json = to;
			memcpy(to, site.json, site.len);
		}
	}
	tmk_r3_site_free(&site);
	*out = n;
	return n ? 0 : -ENOMEM;
}

int tmk_names_add(struct tmk_names *t, uint32_t incarnation, uint64_t object,
		  const struct tmk_desc_view *d, uint32_t *list)
{
	uint32_t hash = name_hash(t, incarnation, object, d->kind), slot;
	struct tmk_named *n;
	int err;

	if (name_find(t, hash, incarnation, object, d->kind))
		return 0;
	if (tmk_slots_used(&t->slots) == TMK_NAMES_MAX)
		return -ENOSPC;
	err = named_new(d, &n);
	if (err)
		return err;
	if (!tmk_budget_take(t->budget, n->cost)) {
		free(n);
		return -ENOSPC;
	}
	err = tmk_slots_next(&t->slots, &slot);
	if (!err)
		err = tmk_index_insert(&t->index, hash, slot);
	if (err)
		goto cleanup;
	tmk_slots_take(&t->slots, n);
	n->object = object;
	n->incarnation = incarnation;
	n->index = ++t->next_index;
	if (n->kind == TMK_DESC_SITE)
		n->op_number = tmk_op_names_number(&t->op_names, n->a);
	n->next = *list;
	*list = slot + 1;
	return 0;
cleanup:
	tmk_budget_give(t->budget, n->cost);
	free(n);
	return err;
}

void tmk_names_drop(struct tmk_names *t, uint32_t *list)
{
	memset(t->recent, 0, sizeof(t->recent));
	while (*list) {
		uint32_t slot = *list - 1;
		struct tmk_named *n = t->slots.at[slot];

		*list = n->next;
		tmk_index_remove_slot(&t->index, name_hash(t, n->incarnation, n->object, n->kind),
				      slot);
		t->slots.at[slot] = NULL;
		tmk_slots_give(&t->slots, slot);
		tmk_budget_give(t->budget, n->cost);
		free(n);
	}
}

void tmk_names_free(struct tmk_names *t)
{
	for (uint32_t i = 0; i < t->slots.n; i++)
		free(t->slots.at[i]);
	tmk_slots_free(&t->slots);
	tmk_op_names_free(&t->op_names);
	tmk_index_free(&t->index);
	memset(t, 0, sizeof(*t));
}
