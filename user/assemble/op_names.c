// SPDX-License-Identifier: BSD-2-Clause
/*
 * A table of names that only grows. See op_names.h.
 */
#include "assemble/op_names.h"

void tmk_op_names_init(struct tmk_op_names *t, struct tmk_budget *budget,
		       const struct tmk_seed *seed)
{
	memset(t, 0, sizeof(*t));
	t->budget = budget;
	t->seed = *seed;
}

void tmk_op_names_free(struct tmk_op_names *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free((char *)t->names[i].data);
	free(t->names);
	tmk_index_free(&t->index);
	memset(t, 0, sizeof(*t));
}

static bool names_grow(struct tmk_op_names *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 64;
	struct tmk_str *names = realloc(t->names, cap * sizeof(*names));

	if (!names)
		return false;
	t->names = names;
	t->cap = cap;
	return true;
}

/* Names are the less important part of a capture: without memory they are summed up together. */
static uint32_t name_add(struct tmk_op_names *t, struct tmk_str name, uint32_t hash)
{
	char *kept;

	if (t->n == TMK_OP_NAMES_MAX || (t->n == t->cap && !names_grow(t)) ||
	    !tmk_budget_take(t->budget, name.len + 1))
		return TMK_STREAM_OTHERS;
	kept = malloc(name.len + 1);
	if (!kept || tmk_index_insert(&t->index, hash, t->n)) {
		free(kept);
		tmk_budget_give(t->budget, name.len + 1);
		return TMK_STREAM_OTHERS;
	}
	if (name.len)
		memcpy(kept, name.data, name.len);
	t->names[t->n].data = kept;
	t->names[t->n].len = name.len;
	return t->n++;
}

uint32_t tmk_op_names_number(struct tmk_op_names *t, struct tmk_str name)
{
	uint32_t hash = tmk_hash_bytes(&t->seed, name.data, name.len), pos, slot;

	TMK_INDEX_FOR_EACH(&t->index, hash, pos, slot)
	{
		if (t->names[slot].len == name.len &&
		    !memcmp(t->names[slot].data, name.data, name.len))
			return slot;
	}
	return name_add(t, name, hash);
}

struct tmk_str tmk_op_names_get(const struct tmk_op_names *t, uint32_t number)
{
	return number < t->n ? t->names[number] : (struct tmk_str){ NULL, 0 };
}
