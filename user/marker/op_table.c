// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of operations in flight. See op_table.h.
 *
 * Free slots form a list that threads push to and pop from with one compare-and-swap. The upper half of
 * the list's head changes with every push and pop, so a head that was read before others took and
 * returned the same slot does not pass for the present one. Slots are never given back to the system
 * before the table is, so it is safe to read the link of one that somebody else just took.
 */
#include "marker/op_table.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_FIRST 128u
#define CHUNK_FIRST_BITS 7

/* The chunk that slot `index` lies in, and the index that the chunk begins with. */
static unsigned int chunk_of(uint32_t index, uint32_t *begin)
{
	unsigned int chunk;

	if (index < CHUNK_FIRST) {
		*begin = 0;
		return 0;
	}
	chunk = 32 - (unsigned int)__builtin_clz(index) - CHUNK_FIRST_BITS;
	*begin = CHUNK_FIRST << (chunk - 1);
	return chunk;
}

static uint32_t chunk_size(unsigned int chunk)
{
	return chunk ? CHUNK_FIRST << (chunk - 1) : CHUNK_FIRST;
}

/* The slot, or NULL when none was ever handed out there. */
static struct tmk_op_slot *slot_at(struct tmk_op_table *t, uint64_t index1)
{
	struct tmk_op_slot *slots;
	uint32_t begin;
	unsigned int chunk;

	if (!index1 || index1 > UINT32_MAX)
		return NULL;
	chunk = chunk_of((uint32_t)(index1 - 1), &begin);
	if (chunk >= TMK_OP_CHUNKS)
		return NULL;
	slots = __atomic_load_n(&t->chunks[chunk], __ATOMIC_ACQUIRE);
	return slots ? slots + (index1 - 1 - begin) : NULL;
}

static struct tmk_op_slot *chunk_ensure(struct tmk_op_table *t, unsigned int chunk)
{
	size_t bytes = chunk_size(chunk) * sizeof(struct tmk_op_slot);
	struct tmk_op_slot *there = __atomic_load_n(&t->chunks[chunk], __ATOMIC_ACQUIRE);
	struct tmk_op_slot *made;

	if (there)
		return there;
	made = aligned_alloc(__alignof__(struct tmk_op_slot), bytes);
	if (!made)
		return NULL;
	memset(made, 0, bytes);
	if (__atomic_compare_exchange_n(&t->chunks[chunk], &there, made, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return made;
	free(made); /* somebody was faster */
	return there;
}

/* A slot that was never used. */
static struct tmk_op_slot *slot_new(struct tmk_op_table *t)
{
	uint32_t index = __atomic_load_n(&t->used, __ATOMIC_RELAXED);
	struct tmk_op_slot *slots, *slot;
	uint32_t begin;
	unsigned int chunk;

	do {
		chunk = chunk_of(index, &begin);
		/* Before the index is taken, so that a failure leaves no hole. */
		slots = chunk < TMK_OP_CHUNKS ? chunk_ensure(t, chunk) : NULL;
		if (!slots)
			return NULL;
	} while (!__atomic_compare_exchange_n(&t->used, &index, index + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	slot = slots + (index - begin);
	slot->index1 = index + 1;
	return slot;
}

static uint64_t head_changed(uint64_t head, uint32_t index1)
{
	return ((head >> 32) + 1) << 32 | index1;
}

struct tmk_op_slot *tmk_op_table_take(struct tmk_op_table *t)
{
	uint64_t head = __atomic_load_n(&t->free_list, __ATOMIC_ACQUIRE), next;
	struct tmk_op_slot *slot;

	do {
		slot = slot_at(t, (uint32_t)head);
		if (!slot)
			return slot_new(t);
		next = head_changed(head, __atomic_load_n(&slot->next1, __ATOMIC_RELAXED));
	} while (!__atomic_compare_exchange_n(&t->free_list, &head, next, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_ACQUIRE));
	return slot;
}

static void slot_give_back(struct tmk_op_table *t, struct tmk_op_slot *slot)
{
	uint64_t head = __atomic_load_n(&t->free_list, __ATOMIC_RELAXED);

	do {
		__atomic_store_n(&slot->next1, (uint32_t)head, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&t->free_list, &head,
					      head_changed(head, slot->index1), true,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

bool tmk_op_table_end(struct tmk_op_table *t, uint64_t index1, uint64_t token,
		      struct tmk_open_op *op)
{
	struct tmk_op_slot *slot = slot_at(t, index1);

	/* Whoever turns the token into 0 has the slot for himself. */
	if (!slot || !token ||
	    !__atomic_compare_exchange_n(&slot->token, &token, 0, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	*op = slot->op;
	slot_give_back(t, slot);
	return true;
}

uint64_t tmk_op_table_count(struct tmk_op_table *t)
{
	uint32_t used = __atomic_load_n(&t->used, __ATOMIC_ACQUIRE);
	uint64_t n = 0;

	for (uint32_t i = 0; i < used; i++)
		n += __atomic_load_n(&slot_at(t, i + 1ull)->token, __ATOMIC_RELAXED) != 0;
	return n;
}

void tmk_op_table_free(struct tmk_op_table *t)
{
	for (unsigned int i = 0; i < TMK_OP_CHUNKS; i++)
		free(t->chunks[i]);
	memset(t, 0, sizeof(*t));
}
