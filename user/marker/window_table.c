// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of a session's windows. See window_table.h.
 *
 * A window lies in the shard of its stream, which its token names, so every call but the search for the
 * oldest or newest takes one lock. A stream's poison, its windows and its operations are under that same
 * lock: "open when the failure was recorded" is exact.
 */
#include "marker/window_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/slots.h"

#define SHARDS 16u /* power of two */

#define SPARE 32u /* entries that a shard keeps for its next windows */

struct shard {
	pthread_mutex_t lock;
	struct tmk_streams streams; /* only of a table that says what lies inside */
	struct tmk_index index;	    /* by token */
	struct tmk_slots slots;
	uint32_t n; /* entries; atomic, written under the lock */
	struct tmk_window_entry *oldest, *newest;
	struct tmk_window_entry *spare; /* linked by `newer` */
	uint32_t n_spare;
} __attribute__((aligned(64)));

struct tmk_window_table {
	struct tmk_seed seed;
	bool inside;
	uint32_t n_max;
	struct shard shards[SHARDS];
};

struct tmk_window_table *tmk_window_table_new(uint32_t n_max, bool inside)
{
	struct tmk_window_table *t = aligned_alloc(__alignof__(*t), sizeof(*t));

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	tmk_seed_init(&t->seed);
	t->inside = inside;
	t->n_max = n_max;
	for (unsigned int i = 0; i < SHARDS; i++) {
		pthread_mutex_init(&t->shards[i].lock, NULL);
		tmk_streams_init(&t->shards[i].streams, &t->seed, false);
	}
	return t;
}

static void entries_free(struct tmk_window_entry *e)
{
	for (struct tmk_window_entry *next; e; e = next) {
		next = e->newer;
		free(e);
	}
}

void tmk_window_table_free(struct tmk_window_table *t)
{
	if (!t)
		return;
	for (unsigned int i = 0; i < SHARDS; i++) {
		struct shard *s = &t->shards[i];

		/* Before the windows, which its streams refer to. */
		tmk_streams_free(&s->streams);
		entries_free(s->oldest);
		entries_free(s->spare);
		tmk_index_free(&s->index);
		tmk_slots_free(&s->slots);
		pthread_mutex_destroy(&s->lock);
	}
	free(t);
}

static struct shard *shard_of(struct tmk_window_table *t, uint64_t number, bool named)
{
	uint64_t mixed = (number + named) * 0x9e3779b97f4a7c15ull;

	return &t->shards[mixed >> 60 & (SHARDS - 1)];
}

static struct shard *shard_lock(struct tmk_window_table *t, uint64_t number, bool named)
{
	struct shard *s = shard_of(t, number, named);

	pthread_mutex_lock(&s->lock);
	return s;
}

static struct shard *shard_lock_of(struct tmk_window_table *t, struct tmk_window w)
{
	return shard_lock(t, w.opened_on, w.id & TMK_WINDOW_NAMED);
}

static void shard_unlock(struct shard *s)
{
	pthread_mutex_unlock(&s->lock);
}

/* --- operations */

bool tmk_window_table_op_begin(struct tmk_window_table *t, const struct tmk_stream_id *id,
			       uint64_t *time)
{
	struct shard *s = shard_lock(t, id->number, id->named);
	int err = tmk_streams_op_begin(&s->streams, id, time);

	shard_unlock(s);
	return !err;
}

bool tmk_window_table_op_end(struct tmk_window_table *t, const struct tmk_stream_id *id,
			     uint64_t begin_ns, uint64_t *time)
{
	struct tmk_stream_op op = { begin_ns, 0 };
	struct shard *s = shard_lock(t, id->number, id->named);
	bool after_flush = tmk_streams_op_end(&s->streams, id, &op, time);

	shard_unlock(s);
	return after_flush;
}

/* --- entries; all under the shard's lock */

static uint32_t token_hash(const struct tmk_window_table *t, struct tmk_window w)
{
	return tmk_hash2(&t->seed, w.id, w.opened_on);
}

static struct tmk_window_entry *entry_find(struct tmk_window_table *t, struct shard *s,
					   struct tmk_window w)
{
	uint32_t hash = token_hash(t, w), pos, slot;

	TMK_INDEX_FOR_EACH(&s->index, hash, pos, slot)
	{
		struct tmk_window_entry *e = s->slots.at[slot];

		if (e->start.token.id == w.id && e->start.token.opened_on == w.opened_on)
			return e;
	}
	return NULL;
}

static int entry_insert(struct tmk_window_table *t, struct shard *s, struct tmk_window_entry *e)
{
	int err = tmk_slots_next(&s->slots, &e->slot);

	e->hash = token_hash(t, e->start.token);
	if (!err)
		err = tmk_index_insert(&s->index, e->hash, e->slot);
	if (err)
		return err;
	tmk_slots_take(&s->slots, e);
	e->older = s->newest;
	e->newer = NULL;
	if (s->newest)
		s->newest->newer = e;
	else
		s->oldest = e;
	s->newest = e;
	__atomic_store_n(&s->n, s->n + 1, __ATOMIC_RELAXED);
	return 0;
}

static void entry_remove(struct shard *s, struct tmk_window_entry *e)
{
	tmk_index_remove_slot(&s->index, e->hash, e->slot);
	tmk_slots_give(&s->slots, e->slot);
	if (e->older)
		e->older->newer = e->newer;
	else
		s->oldest = e->newer;
	if (e->newer)
		e->newer->older = e->older;
	else
		s->newest = e->older;
	__atomic_store_n(&s->n, s->n - 1, __ATOMIC_RELAXED);
}

/* --- windows */

static struct tmk_window_entry *entry_new(const struct tmk_window_table *t, struct shard *s,
					  const struct tmk_window_opened *start)
{
	struct tmk_window_entry *e = s->spare;

	if (e) {
		s->spare = e->newer;
		s->n_spare--;
	} else {
		e = malloc(sizeof(*e));
		if (!e)
			return NULL;
	}
	if (t->inside)
		memset(&e->inside, 0, sizeof(e->inside));
	e->start = *start;
	e->state = TMK_ENTRY_OPEN;
	e->failed = 0;
	e->closed = e->resolved = false;
	e->pending = NULL;
	return e;
}

static void entry_recycle(struct shard *s, struct tmk_window_entry *e)
{
	if (s->n_spare == SPARE) {
		free(e);
		return;
	}
	e->newer = s->spare;
	s->spare = e;
	s->n_spare++;
}

int tmk_window_table_add(struct tmk_window_table *t, const struct tmk_window_opened *start)
{
	struct shard *s = shard_lock_of(t, start->token);
	struct tmk_window_entry *e = entry_new(t, s, start);
	uint64_t time = start->time;
	int err = e ? entry_insert(t, s, e) : -ENOMEM;

	if (!err && t->inside) {
		err = tmk_streams_window_start(&s->streams, &start->stream, &e->inside, &time);
		if (err)
			entry_remove(s, e);
	}
	if (err)
		free(e);
	shard_unlock(s);
	return err;
}

bool tmk_window_table_drop(struct tmk_window_table *t, struct tmk_window w,
			   const struct tmk_desc **name, int *failed)
{
	struct shard *s = t->inside ? NULL : shard_lock_of(t, w);
	struct tmk_window_entry *e = s ? entry_find(t, s, w) : NULL;
	bool mine = e && e->state == TMK_ENTRY_OPEN && !e->start.backend;

	if (mine) {
		*name = e->start.name;
		*failed = e->failed;
		entry_remove(s, e);
		entry_recycle(s, e);
	}
	if (s)
		shard_unlock(s);
	return mine;
}

struct tmk_window_entry *tmk_window_table_take(struct tmk_window_table *t, struct tmk_window w)
{
	struct shard *s = shard_lock_of(t, w);
	struct tmk_window_entry *e = entry_find(t, s, w);

	if (e && e->state != TMK_ENTRY_OPEN)
		e = NULL;
	if (e)
		e->state = TMK_ENTRY_CLOSING;
	shard_unlock(s);
	return e;
}

void tmk_window_table_close(struct tmk_window_table *t, struct tmk_window_entry *e, uint64_t time,
			    bool flush, struct tmk_window_found *found)
{
	struct shard *s = shard_lock_of(t, e->start.token);
	const struct tmk_stream_window *parent;

	memset(&found->inside, 0, sizeof(found->inside));
	found->start_ns = e->start.time;
	if (t->inside) {
		found->start_ns = e->inside.start_ns;
		tmk_streams_window_end(&s->streams, &e->inside, &time, flush, &found->inside);
	}
	e->closed = true;
	parent = found->inside.parent;
	found->parent_id = parent ? ((const struct tmk_window_entry *)parent)->start.token.id : 0;
	found->end_ns = time;
	found->failed = e->failed;
	shard_unlock(s);
}

bool tmk_window_table_release(struct tmk_window_table *t, struct tmk_window_entry *e,
			      struct tmk_duration *result)
{
	struct shard *s = shard_lock_of(t, e->start.token);
	bool wait = result && !e->resolved;

	if (wait) {
		e->state = TMK_ENTRY_PENDING;
	} else {
		if (result)
			*result = e->result;
		entry_remove(s, e);
	}
	shard_unlock(s);
	return wait;
}

int tmk_window_table_resolve(struct tmk_window_table *t, struct tmk_window w,
			     const struct tmk_duration *result, struct tmk_window_entry **out)
{
	struct shard *s = shard_lock_of(t, w);
	struct tmk_window_entry *e = entry_find(t, s, w);
	int err = 0;

	*out = NULL;
	if (e && e->state == TMK_ENTRY_PENDING) {
		entry_remove(s, e);
		*out = e;
	} else if (e && e->state == TMK_ENTRY_CLOSING && e->start.backend && !e->resolved) {
		e->resolved = true;
		e->result = *result;
	} else {
		err = -ENOENT;
	}
	shard_unlock(s);
	return err;
}

static bool stream_equal(const struct tmk_stream_id *a, const struct tmk_stream_id *b)
{
	return a->number == b->number && a->named == b->named;
}

void tmk_window_table_fail_stream(struct tmk_window_table *t, const struct tmk_stream_id *id,
				  int err)
{
	struct shard *s = shard_lock(t, id->number, id->named);

	for (struct tmk_window_entry *e = s->oldest; e; e = e->newer) {
		if (!e->closed && !e->failed && stream_equal(&e->start.stream, id))
			e->failed = err;
	}
	shard_unlock(s);
}

int tmk_window_table_fail(struct tmk_window_table *t, struct tmk_window w, int err)
{
	struct shard *s = shard_lock_of(t, w);
	struct tmk_window_entry *e = entry_find(t, s, w);
	struct tmk_stream_id id = { 0 };

	if (e && e->state == TMK_ENTRY_OPEN)
		id = e->start.stream;
	else
		e = NULL;
	shard_unlock(s);
	if (!e)
		return -ENOENT;
	tmk_window_table_fail_stream(t, &id, err);
	return 0;
}

/* --- the oldest and the newest of all */

/*
 * The shard whose first entry that nobody is closing came first, or last. Others
 * may be faster; the caller looks again under the lock.
 */
static struct tmk_window_entry *end_find(struct shard *s, bool newest)
{
	struct tmk_window_entry *e = newest ? s->newest : s->oldest;

	while (e && e->state == TMK_ENTRY_CLOSING)
		e = newest ? e->older : e->newer;
	return e;
}

static struct tmk_window_entry *end_take(struct tmk_window_table *t, bool newest)
{
	struct tmk_window_entry *e = NULL;
	struct shard *best = NULL;
	uint64_t best_time = 0;

	for (unsigned int i = 0; i < SHARDS; i++) {
		struct shard *s = &t->shards[i];

		pthread_mutex_lock(&s->lock);
		e = end_find(s, newest);
		if (e &&
		    (!best || (newest ? e->start.time > best_time : e->start.time < best_time))) {
			best = s;
			best_time = e->start.time;
		}
		shard_unlock(s);
	}
	if (!best)
		return NULL;
	pthread_mutex_lock(&best->lock);
	e = end_find(best, newest);
	if (e && e->state == TMK_ENTRY_PENDING)
		entry_remove(best, e);
	else if (e)
		e->state = TMK_ENTRY_CLOSING;
	shard_unlock(best);
	return e;
}

struct tmk_window_entry *tmk_window_table_overflow(struct tmk_window_table *t, struct tmk_window w)
{
	const struct shard *s = shard_of(t, w.opened_on, w.id & TMK_WINDOW_NAMED);
	uint32_t n = 0;

	/* Where all have less than their share, so have all together. */
	if (__atomic_load_n(&s->n, __ATOMIC_RELAXED) <= t->n_max / SHARDS)
		return NULL;
	for (unsigned int i = 0; i < SHARDS; i++)
		n += __atomic_load_n(&t->shards[i].n, __ATOMIC_RELAXED);
	return n > t->n_max ? end_take(t, false) : NULL;
}

struct tmk_window_entry *tmk_window_table_take_newest(struct tmk_window_table *t)
{
	return end_take(t, true);
}
