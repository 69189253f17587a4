// SPDX-License-Identifier: BSD-2-Clause
/*
 * The id set: open addressing with linear probing, copies in an arena. Which ids are legal is decided
 * in check.c.
 */
#include "runtime3/event_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024u
#define CHUNK_BYTES 65536u

struct tmk_event_id_slot {
	const char *id; /* NULL: free */
	uint32_t len, hash;
};

struct tmk_event_id_chunk {
	struct tmk_event_id_chunk *next;
	size_t used, cap;
	char bytes[];
};

void tmk_event_ids_init(struct tmk_event_ids *ids)
{
	memset(ids, 0, sizeof(*ids));
	tmk_seed_init(&ids->seed);
}

void tmk_event_ids_free(struct tmk_event_ids *ids)
{
	if (!ids)
		return;
	while (ids->chunks) {
		struct tmk_event_id_chunk *next = ids->chunks->next;

		free(ids->chunks);
		ids->chunks = next;
	}
	free(ids->slots);
	memset(ids, 0, sizeof(*ids));
}

/* The slot that holds this id, or the free one where it belongs. */
static struct tmk_event_id_slot *slot_find(const struct tmk_event_ids *ids, const char *id,
					   uint32_t len, uint32_t hash)
{
	size_t mask = ids->capacity - 1, i = hash & mask;

	for (;; i = (i + 1) & mask) {
		struct tmk_event_id_slot *s = &ids->slots[i];

		if (!s->id || (s->hash == hash && s->len == len && !memcmp(s->id, id, len)))
			return s;
	}
}

static int table_grow(struct tmk_event_ids *ids)
{
	struct tmk_event_id_slot *old = ids->slots;
	size_t n = ids->capacity, capacity = n ? n * 2 : FIRST_CAPACITY, mask = capacity - 1;
	struct tmk_event_id_slot *slots = calloc(capacity, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t at = old[i].hash & mask;

		if (!old[i].id)
			continue;
		while (slots[at].id)
			at = (at + 1) & mask;
		slots[at] = old[i];
	}
	free(old);
	ids->slots = slots;
	ids->capacity = capacity;
	return 0;
}

static const char *arena_copy(struct tmk_event_ids *ids, const char *id, size_t len)
{
	struct tmk_event_id_chunk *c = ids->chunks;
	char *copy;

	if (!c || c->cap - c->used < len) {
		size_t cap = len > CHUNK_BYTES ? len : CHUNK_BYTES;

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		c->next = ids->chunks;
		c->used = 0;
		c->cap = cap;
		ids->chunks = c;
	}
	copy = c->bytes + c->used;
	memcpy(copy, id, len);
	c->used += len;
	return copy;
}

int tmk_event_ids_add(struct tmk_event_ids *ids, const char *id, size_t len, bool stays)
{
	struct tmk_event_id_slot *slot;
	uint32_t hash;
	int err;

	if (len > UINT32_MAX)
		return -EFBIG;
	/* At most 3/4 full, so that a probe always finds a free slot soon. */
	if (ids->count >= ids->capacity / 4 * 3) {
		err = table_grow(ids);
		if (err)
			return err;
	}
	hash = tmk_hash_bytes(&ids->seed, id, len);
	slot = slot_find(ids, id, (uint32_t)len, hash);
	if (slot->id)
		return 0;
	id = stays ? id : arena_copy(ids, id, len);
	if (!id)
		return -ENOMEM;
	*slot = (struct tmk_event_id_slot){ .id = id, .len = (uint32_t)len, .hash = hash };
	ids->count++;
	return 1;
}
