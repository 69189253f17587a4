/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set of event ids that a file has used: the one thing that `tickmark check` must remember.
 *
 * Exact (ids are compared byte by byte, hashes only find the place) and sparing: 16 bytes a slot, and
 * an id that the text holds as such stays there. Hashes are seeded at random, so that no file can be
 * made to collide. Not thread-safe.
 */
#ifndef TICKMARK_RUNTIME3_EVENT_IDS_H
#define TICKMARK_RUNTIME3_EVENT_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct tmk_event_id_slot;
struct tmk_event_id_chunk;

struct tmk_event_ids {
	struct tmk_event_id_slot *slots;
	size_t capacity, count; /* capacity: 0 or a power of two */
	struct tmk_event_id_chunk *chunks;
	struct tmk_seed seed;
};

void tmk_event_ids_init(struct tmk_event_ids *ids);

/*
 * 1: new, and remembered from now on; 0: was there already; -ENOMEM; -EFBIG for an id of 4 GiB.
 * `stays` says that the bytes outlive the set; otherwise it keeps a copy.
 */
int tmk_event_ids_add(struct tmk_event_ids *ids, const char *id, size_t len, bool stays);

void tmk_event_ids_free(struct tmk_event_ids *ids); /* NULL is fine */

#endif /* TICKMARK_RUNTIME3_EVENT_IDS_H */
