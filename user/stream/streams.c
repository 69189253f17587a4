// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of streams, and their running sums. See streams.h.
 */
#include "stream/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tmk_stream {
	struct tmk_stream_id id;
	uint32_t slot;
	uint32_t active;  /* operations in flight */
	uint64_t last_ns; /* of the latest event */
	uint64_t busy_ns; /* covered by operations, up to busy_since or, when none is active, now */
	uint64_t busy_since; /* when an operation is active */
	uint64_t ended;	     /* operations */
	struct {
		uint64_t from_ns, at_ns;
	} flushed[TMK_STREAM_FLUSHES]; /* windows that were closed with a flush, the latest ones */
	uint64_t n_flushed;
	struct tmk_stream_window *head, *tail;
	struct tmk_rank rank;	  /* of the open windows */
	struct tmk_totals totals; /* kept while a window is open */
};

void tmk_streams_init(struct tmk_streams *t, const struct tmk_seed *seed, bool keep_totals)
{
	memset(t, 0, sizeof(*t));
	t->seed = *seed;
	t->keep_totals = keep_totals;
}

void tmk_streams_free(struct tmk_streams *t)
{
	for (uint32_t i = 0; i < t->slots.n; i++) {
		struct tmk_stream *s = t->slots.at[i];

		if (!s)
			continue;
		for (struct tmk_stream_window *w = s->head; w; w = w->next)
			tmk_totals_snapshot_free(w->totals, &t->totals_bytes);
		tmk_rank_free(&s->rank);
		tmk_totals_free(&s->totals, &t->totals_bytes);
		free(s);
	}
	tmk_slots_free(&t->slots);
	tmk_index_free(&t->index);
	memset(t, 0, sizeof(*t));
}

/* --- the table */

static bool id_equal(const struct tmk_stream_id *a, const struct tmk_stream_id *b)
{
	return a->number == b->number && a->owner == b->owner && a->named == b->named;
}

static uint32_t id_hash(const struct tmk_streams *t, const struct tmk_stream_id *id)
{
	return tmk_hash2(&t->seed, id->number, id->owner << 1 | id->named);
}

static struct tmk_stream *stream_find(struct tmk_streams *t, const struct tmk_stream_id *id)
{
	uint32_t hash, pos, slot;

	if (t->last && id_equal(&t->last->id, id))
		return t->last;
	hash = id_hash(t, id);
	TMK_INDEX_FOR_EACH(&t->index, hash, pos, slot)
	{
		struct tmk_stream *s = t->slots.at[slot];

		if (id_equal(&s->id, id))
			return t->last = s;
	}
	return NULL;
}

static int stream_get(struct tmk_streams *t, const struct tmk_stream_id *id,
		      struct tmk_stream **out)
{
	struct tmk_stream *s = stream_find(t, id);
	uint32_t slot;
	int err;

	*out = s;
	if (s)
		return 0;
	err = tmk_slots_next(&t->slots, &slot);
	if (err)
		return err;
	/* One that was used before, or a new one. */
	s = t->slots.at[slot] ? t->slots.at[slot] : calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	t->slots.at[slot] = s;
	err = tmk_index_insert(&t->index, id_hash(t, id), slot);
	if (err)
		return err;
	tmk_slots_take(&t->slots, s);
	s->slot = slot;
	s->id = *id;
	*out = t->last = s;
	return 0;
}

/* What a stream that is not in use may keep for the next one, beside itself. */
#define KEEP_RANK 16u
#define KEEP_TOTALS 8u

/* Nothing refers to the sums of a stream on which nothing is in flight. */
static void stream_release_idle(struct tmk_streams *t, struct tmk_stream *s)
{
	if (s->active || s->head)
		return;
	tmk_index_remove_slot(&t->index, id_hash(t, &s->id), s->slot);
	if (s->rank.cap > KEEP_RANK)
		tmk_rank_free(&s->rank);
	if (s->totals.cap > KEEP_TOTALS)
		tmk_totals_free(&s->totals, &t->totals_bytes);
	s->last_ns = s->busy_ns = s->busy_since = s->ended = 0;
	s->n_flushed = 0;
	tmk_slots_give(&t->slots, s->slot);
	t->last = NULL;
}

/* --- time */

static void time_move(struct tmk_stream *s, uint64_t *time)
{
	if (*time < s->last_ns)
		*time = s->last_ns;
	s->last_ns = *time;
}

static uint64_t busy_at(const struct tmk_stream *s, uint64_t time)
{
	return s->busy_ns + (s->active ? time - s->busy_since : 0);
}

static void active_less(struct tmk_stream *s, uint64_t time)
{
	if (!--s->active)
		s->busy_ns += time - s->busy_since;
}

/* --- flushes */

static void flush_note(struct tmk_stream *s, uint64_t from, uint64_t at)
{
	uint64_t i = s->n_flushed++ % TMK_STREAM_FLUSHES;

	s->flushed[i].from_ns = from;
	s->flushed[i].at_ns = at;
}

/* Whether an operation was in flight when a window was flushed that it was begun in. */
static bool flush_missed(const struct tmk_stream *s, uint64_t begin, uint64_t end)
{
	for (uint32_t i = 0; i < s->n_flushed && i < TMK_STREAM_FLUSHES; i++)
		if (begin >= s->flushed[i].from_ns && begin < s->flushed[i].at_ns &&
		    end > s->flushed[i].at_ns)
			return true;
	return false;
}

/* --- operations */

int tmk_streams_op_begin(struct tmk_streams *t, const struct tmk_stream_id *id, uint64_t *time)
{
	struct tmk_stream *s;
	int err = stream_get(t, id, &s);

	if (err)
		return err;
	time_move(s, time);
	if (!s->active++)
		s->busy_since = *time;
	return 0;
}

bool tmk_streams_op_end(struct tmk_streams *t, const struct tmk_stream_id *id,
			const struct tmk_stream_op *op, uint64_t *time)
{
	struct tmk_stream *s = stream_find(t, id);
	bool after_flush;

	if (!s || !s->active)
		return false;
	time_move(s, time);
	active_less(s, *time);
	s->ended++;
	if (t->keep_totals && s->head)
		tmk_totals_add(&s->totals, &t->totals_bytes, op->name, *time - op->begin_ns);
	after_flush = flush_missed(s, op->begin_ns, *time);
	stream_release_idle(t, s);
	return after_flush;
}

void tmk_streams_op_drop(struct tmk_streams *t, const struct tmk_stream_id *id, uint64_t time)
{
	struct tmk_stream *s = stream_find(t, id);

	if (!s || !s->active)
		return;
	time_move(s, &time);
	active_less(s, time);
	stream_release_idle(t, s);
}

/* --- windows */

static int rank_make_room(struct tmk_stream *s)
{
	int err;

	if (!tmk_rank_full(&s->rank))
		return 0;
	err = tmk_rank_reset(&s->rank, s->rank.live);
	for (struct tmk_stream_window *w = s->head; w && !err; w = w->next)
		w->position = tmk_rank_add(&s->rank);
	return err;
}

int tmk_streams_window_start(struct tmk_streams *t, const struct tmk_stream_id *id,
			     struct tmk_stream_window *w, uint64_t *time)
{
	struct tmk_stream *s;
	int err = stream_get(t, id, &s);

	if (err)
		return err;
	err = rank_make_room(s);
	if (err) {
		stream_release_idle(t, s);
		return err;
	}
	time_move(s, time);
	if (!s->head)
		tmk_totals_reset(&s->totals);
	w->start_ns = *time;
	w->stream = s;
	w->open_before = s->rank.live;
	w->position = tmk_rank_add(&s->rank);
	w->busy_ns = busy_at(s, *time);
	w->ended = s->ended;
	w->totals = t->keep_totals ? tmk_totals_snapshot(&s->totals, &t->totals_bytes) : NULL;
	w->prev = s->tail;
	w->next = NULL;
	if (s->tail)
		s->tail->next = w;
	else
		s->head = w;
	s->tail = w;
	return 0;
}

static void window_unlink(struct tmk_stream *s, struct tmk_stream_window *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		s->head = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		s->tail = w->prev;
	tmk_rank_remove(&s->rank, w->position);
	w->stream = NULL;
}

void tmk_streams_window_end(struct tmk_streams *t, struct tmk_stream_window *w, uint64_t *time,
			    bool flush, struct tmk_stream_inside *inside)
{
	struct tmk_stream *s = w->stream;
	uint32_t before, after;

	time_move(s, time);
	before = tmk_rank_before(&s->rank, w->position);
	after = s->rank.live - before - 1;
	*inside = (struct tmk_stream_inside){
		.operations = s->ended - w->ended,
		.idle_ns = *time - w->start_ns - (busy_at(s, *time) - w->busy_ns),
		.depth = before,
		.overlaps = w->open_before - before + after,
		.parent = w->prev,
	};
	if (w->totals) {
		inside->totals = t->scratch;
		inside->n_totals = tmk_totals_since(&s->totals, w->totals, t->scratch);
		tmk_totals_snapshot_free(w->totals, &t->totals_bytes);
		w->totals = NULL;
	}
	window_unlink(s, w);
	if (flush)
		flush_note(s, w->start_ns, *time);
	stream_release_idle(t, s);
}

struct tmk_stream_window *tmk_streams_windows(struct tmk_streams *t, const struct tmk_stream_id *id)
{
	struct tmk_stream *s = stream_find(t, id);

	return s ? s->head : NULL;
}
