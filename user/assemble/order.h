/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts records into the order of time. Records are held until a tide says that nothing older will
 * come; equal times keep the order of arrival. Records themselves are copied and never looked into,
 * but for their time and length.
 */
#ifndef TICKMARK_ASSEMBLE_ORDER_H
#define TICKMARK_ASSEMBLE_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "capture_abi.h"

/* The longest record that is held, and how many at most: 8 MiB of records, 4.5 MiB to sort them. */
#define TMK_ORDER_RECORD_MAX 64u
#define TMK_ORDER_HELD_MAX 131072u

struct tmk_order_key {
	uint64_t time;
	uint32_t slot;
};

struct tmk_order {
	/* keys[head .. n) are held, by arrival; what begins at run_start is sorted in itself. */
	struct tmk_order_key *keys, *spare;
	size_t head, n, run_start;
	size_t cap;	   /* of all arrays */
	char *slots;	   /* the first n are in use, or were since the last compaction */
	uint32_t *scratch; /* for slots_compact() */

	uint64_t tide;	/* the highest so far */
	uint64_t floor; /* what is older than this comes late */
	uint64_t late;
};

/* Called once a released record, in order. An error stops the release; the record counts as released. */
typedef int (*tmk_order_fn)(void *ctx, const struct tmk_rec *rec);

/*
 * Takes a record of at most TMK_ORDER_RECORD_MAX bytes. When as many are held as may be, the older half
 * is released first, before its tide: what then still comes of that time counts as late. Returns 0,
 * -ENOMEM, or what `fn` returned.
 */
int tmk_order_put(struct tmk_order *o, const struct tmk_rec *rec, tmk_order_fn fn, void *ctx);

/* Releases everything up to `time`. */
int tmk_order_tide(struct tmk_order *o, uint64_t time, tmk_order_fn fn, void *ctx);

/* Releases everything. */
int tmk_order_drain(struct tmk_order *o, tmk_order_fn fn, void *ctx);

void tmk_order_free(struct tmk_order *o);

#endif /* TICKMARK_ASSEMBLE_ORDER_H */
