// SPDX-License-Identifier: BSD-2-Clause
/*
 * Time ordering. Input is nearly sorted: each ring is, but for neighbours that overtook one another,
 * and the rings are read one after the other. So a record is put in its place from the tail while that
 * is near, and starts a new run otherwise; at a tide the runs, as many as there are rings, are merged.
 * Sorted input costs one comparison a record; hostile input n log n.
 */
#include "assemble/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How far from the tail a record is put in its place before a new run is the cheaper way. */
#define ORDER_NEAR 16
/* How many records ahead of the one that is released the next ones are fetched from memory. */
#define ORDER_AHEAD 4

static int order_grow(struct tmk_order *o)
{
	size_t cap = o->cap ? o->cap * 2 : 1024;
	struct tmk_order_key *keys;
	uint32_t *scratch;
	char *slots;

	/* Each is safe to have grown when a later one fails: `cap` is what counts. */
	keys = realloc(o->keys, cap * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	o->keys = keys;
	keys = realloc(o->spare, cap * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	o->spare = keys;
	scratch = realloc(o->scratch, cap * sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	o->scratch = scratch;
	slots = realloc(o->slots, cap * TMK_ORDER_RECORD_MAX);
	if (!slots)
		return -ENOMEM;
	o->slots = slots;
	o->cap = cap;
	return 0;
}

static size_t run_end(const struct tmk_order_key *k, size_t i, size_t n)
{
	for (i++; i < n && k[i - 1].time <= k[i].time; i++)
		;
	return i;
}

static void runs_merge(struct tmk_order_key *out, const struct tmk_order_key *k, size_t a, size_t b,
		       size_t c)
{
	size_t i = a, j = b;

	for (size_t to = a; to < c; to++)
		out[to] = j == c || (i < b && k[i].time <= k[j].time) ? k[i++] : k[j++];
}

/* Merges neighbouring runs until one is left. Ties keep their order: the left run came first. */
static void order_sort(struct tmk_order *o)
{
	while (o->run_start > o->head) {
		size_t runs = 0;

		for (size_t a = o->head; a < o->n; runs++) {
			size_t b = run_end(o->keys, a, o->n);
			size_t c = b < o->n ? run_end(o->keys, b, o->n) : b;

			runs_merge(o->spare, o->keys, a, b, c);
			a = c;
		}
		struct tmk_order_key *keys = o->spare;

		o->spare = o->keys;
		o->keys = keys;
		if (runs == 1)
			o->run_start = o->head;
	}
}

static char *slot_at(const struct tmk_order *o, size_t slot)
{
	return o->slots + slot * TMK_ORDER_RECORD_MAX;
}

/*
 * Moves what is held into the first slots, so that slots are always filled one after the other: a list
 * of free ones would turn into a random walk through memory. The held keys begin at 0.
 */
static void slots_compact(struct tmk_order *o)
{
	size_t hole = 0;

	memset(o->scratch, 0, o->n * sizeof(*o->scratch));
	for (size_t i = 0; i < o->n; i++)
		if (o->keys[i].slot < o->n)
			o->scratch[o->keys[i].slot] = 1;
	for (size_t i = 0; i < o->n; i++) {
		if (o->keys[i].slot < o->n)
			continue;
		while (o->scratch[hole])
			hole++;
		memcpy(slot_at(o, hole), slot_at(o, o->keys[i].slot), TMK_ORDER_RECORD_MAX);
		o->keys[i].slot = (uint32_t)hole++;
	}
}

static void order_compact(struct tmk_order *o)
{
	size_t held = o->n - o->head;

	if (!o->head)
		return;
	memmove(o->keys, o->keys + o->head, held * sizeof(*o->keys));
	o->run_start -= o->head;
	o->n = held;
	o->head = 0;
	slots_compact(o);
}

/* Releases sorted keys from the head, up to `n` of them, as long as their time is <= `time`. */
static int order_release(struct tmk_order *o, size_t n, uint64_t time, tmk_order_fn fn, void *ctx)
{
	const struct tmk_order_key *k, *end;
	int err = 0;

	order_sort(o);
	k = o->keys + o->head;
	end = o->keys + (o->n - o->head < n ? o->n : o->head + n);
	while (k < end && k->time <= time && !err) {
		__builtin_prefetch(slot_at(o, k[k + ORDER_AHEAD < end ? ORDER_AHEAD : 0].slot));
		err = fn(ctx, (const struct tmk_rec *)slot_at(o, k->slot));
		k++;
	}
	if (k > o->keys + o->head && k[-1].time > o->floor)
		o->floor = k[-1].time;
	o->head = o->run_start = (size_t)(k - o->keys);
	/* In steps that are large enough to cost nothing a record. */
	if (o->head >= o->n - o->head)
		order_compact(o);
	return err;
}

/* Records have few sizes; a copy of a known size is a few instructions, of an unknown one a call. */
static void record_copy(char *to, const struct tmk_rec *rec)
{
	switch (rec->bytes) {
	case 64:
		memcpy(to, rec, 64);
		break;
	case 56:
		memcpy(to, rec, 56);
		break;
	default:
		memcpy(to, rec, rec->bytes);
	}
}

int tmk_order_put(struct tmk_order *o, const struct tmk_rec *rec, tmk_order_fn fn, void *ctx)
{
	uint64_t time = rec->time;
	size_t i;
	int err = 0;

	if (o->n - o->head == TMK_ORDER_HELD_MAX)
		err = order_release(o, TMK_ORDER_HELD_MAX / 2, UINT64_MAX, fn, ctx);
	if (err)
		return err;
	if (o->n == TMK_ORDER_HELD_MAX)
		order_compact(o);
	if (o->n == o->cap)
		err = order_grow(o);
	if (err)
		return err;
	if (time < o->floor)
		o->late++;
	record_copy(slot_at(o, o->n), rec);

	for (i = o->n; i > o->run_start && o->keys[i - 1].time > time; i--)
		if (o->n - i == ORDER_NEAR)
			break;
	if (i > o->run_start && o->keys[i - 1].time > time)
		i = o->run_start = o->n;
	else if (i < o->n)
		memmove(o->keys + i + 1, o->keys + i, (o->n - i) * sizeof(*o->keys));
	o->keys[i] = (struct tmk_order_key){ time, (uint32_t)o->n };
	o->n++;
	return 0;
}

int tmk_order_tide(struct tmk_order *o, uint64_t time, tmk_order_fn fn, void *ctx)
{
	if (time > o->tide)
		o->tide = time;
	/* The tide itself is delivered too: what comes later with its very time is late. */
	if (o->floor <= o->tide)
		o->floor = o->tide + (o->tide != UINT64_MAX);
	return order_release(o, o->n, o->tide, fn, ctx);
}

int tmk_order_drain(struct tmk_order *o, tmk_order_fn fn, void *ctx)
{
	int err = 0;

	do
		err = order_release(o, o->n, UINT64_MAX, fn, ctx);
	while (!err && o->head < o->n);
	return err;
}

void tmk_order_free(struct tmk_order *o)
{
	free(o->keys);
	free(o->spare);
	free(o->scratch);
	free(o->slots);
	memset(o, 0, sizeof(*o));
}
