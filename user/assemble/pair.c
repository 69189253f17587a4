// SPDX-License-Identifier: BSD-2-Clause
/*
 * The open-operation table. Who numbers operations, what names them, and who writes them is elsewhere.
 */
#include "assemble/pair.h"

enum entry_state {
	ENTRY_FREE = 0,
	ENTRY_OPEN,	 /* begun */
	ENTRY_EARLY,	 /* ended, but not yet begun */
	ENTRY_AMBIGUOUS, /* begun twice: nothing pairs with it any more */
};

struct tmk_pair_entry {
	struct tmk_pair_owner *owner;
	uint64_t token;
	uint64_t object; /* OPEN: site; EARLY: output */
	uint64_t step, time, n;
	union {
		uint64_t stream; /* OPEN */
		struct {
			uint32_t prev, next;
		} early; /* EARLY: neighbours among all held ends, slot + 1 */
	};
	uint32_t tid;
	unsigned char state;
	bool named, counted; /* OPEN */
	uint32_t prev, next; /* neighbours in the session, slot + 1; `next` also links free slots */
};

struct tmk_pair_recent {
	uint64_t token;
	uint64_t owner1; /* id + 1, 0 = empty */
};

int tmk_pairs_init(struct tmk_pairs *p, const struct tmk_seed *seed)
{
	memset(p, 0, sizeof(*p));
	p->seed = *seed;
	p->recent = calloc(TMK_PAIR_RECENT, sizeof(*p->recent));
	return p->recent ? 0 : -ENOMEM;
}

void tmk_pairs_free(struct tmk_pairs *p)
{
	free(p->slots);
	free(p->recent);
	tmk_index_free(&p->index);
	memset(p, 0, sizeof(*p));
}

static uint32_t entry_hash(const struct tmk_pairs *p, const struct tmk_pair_owner *o,
			   uint64_t token)
{
	return tmk_hash2(&p->seed, token, o->id);
}

static struct tmk_pair_entry *entry_find(const struct tmk_pairs *p, const struct tmk_pair_owner *o,
					 uint64_t token, uint32_t hash, uint32_t *pos)
{
	uint32_t slot;

	TMK_INDEX_FOR_EACH(&p->index, hash, *pos, slot)
	{
		struct tmk_pair_entry *e = &p->slots[slot];

		if (e->token == token && e->owner == o)
			return e;
	}
	return NULL;
}

/* NULL and *err = 0 when the table is full. */
static struct tmk_pair_entry *entry_new(struct tmk_pairs *p, struct tmk_pair_owner *o,
					uint64_t token, uint32_t hash, int *err)
{
	struct tmk_pair_entry *e;
	uint32_t slot1;

	*err = 0;
	if (p->n_live == TMK_PAIR_OPEN_MAX)
		return NULL;
	if (!p->free_head && p->n_slots == p->cap) {
		uint32_t cap = p->cap ? p->cap * 2 : 256;

		e = realloc(p->slots, cap * sizeof(*e));
		if (!e) {
			*err = -ENOMEM;
			return NULL;
		}
		p->slots = e;
		p->cap = cap;
	}
	slot1 = p->free_head ? p->free_head : p->n_slots + 1;
	*err = tmk_index_insert(&p->index, hash, slot1 - 1);
	if (*err)
		return NULL;
	e = &p->slots[slot1 - 1];
	if (p->free_head)
		p->free_head = e->next;
	else
		p->n_slots++;
	p->n_live++;
	e->owner = o;
	e->token = token;
	e->prev = o->tail;
	e->next = 0;
	if (o->tail)
		p->slots[o->tail - 1].next = slot1;
	else
		o->head = slot1;
	o->tail = slot1;
	return e;
}

static void early_link(struct tmk_pairs *p, struct tmk_pair_entry *e)
{
	uint32_t slot1 = (uint32_t)(e - p->slots) + 1;

	e->early.prev = p->early_tail;
	e->early.next = 0;
	if (p->early_tail)
		p->slots[p->early_tail - 1].early.next = slot1;
	else
		p->early_head = slot1;
	p->early_tail = slot1;
	p->n_early++;
}

static void early_unlink(struct tmk_pairs *p, struct tmk_pair_entry *e)
{
	if (e->early.prev)
		p->slots[e->early.prev - 1].early.next = e->early.next;
	else
		p->early_head = e->early.next;
	if (e->early.next)
		p->slots[e->early.next - 1].early.prev = e->early.prev;
	else
		p->early_tail = e->early.prev;
	p->n_early--;
}

static void entry_remove_at(struct tmk_pairs *p, struct tmk_pair_entry *e, uint32_t pos)
{
	struct tmk_pair_owner *o = e->owner;

	if (e->state == ENTRY_EARLY)
		early_unlink(p, e);
	else if (e->state == ENTRY_OPEN)
		p->n_open--;
	tmk_index_remove(&p->index, pos);
	if (e->prev)
		p->slots[e->prev - 1].next = e->next;
	else
		o->head = e->next;
	if (e->next)
		p->slots[e->next - 1].prev = e->prev;
	else
		o->tail = e->prev;
	e->state = ENTRY_FREE;
	e->next = p->free_head;
	p->free_head = (uint32_t)(e - p->slots) + 1;
	p->n_live--;
}

static void entry_remove(struct tmk_pairs *p, struct tmk_pair_entry *e)
{
	uint32_t pos;

	if (entry_find(p, e->owner, e->token, entry_hash(p, e->owner, e->token), &pos))
		entry_remove_at(p, e, pos);
}

/* Not hashed: tokens that count up fill the table evenly, and one after the other. */
static struct tmk_pair_recent *recent_place(const struct tmk_pairs *p,
					    const struct tmk_pair_owner *o, uint64_t token)
{
	return &p->recent[(token + o->id * 0x9e3779b1u) & (TMK_PAIR_RECENT - 1)];
}

static void recent_remember(struct tmk_pairs *p, const struct tmk_pair_owner *o, uint64_t token)
{
	*recent_place(p, o, token) = (struct tmk_pair_recent){ token, o->id + 1ull };
}

static bool recent_knows(const struct tmk_pairs *p, const struct tmk_pair_owner *o, uint64_t token)
{
	const struct tmk_pair_recent *r = recent_place(p, o, token);

	return r->token == token && r->owner1 == o->id + 1ull;
}

static struct tmk_begin begin_of(const struct tmk_pair_entry *e)
{
	return (struct tmk_begin){ e->object, e->step, e->stream, e->time,
				   e->n,      e->tid,  e->named,  e->counted };
}

int tmk_pairs_begin(struct tmk_pairs *p, struct tmk_pair_owner *o, uint64_t token,
		    const struct tmk_begin *begin, struct tmk_end *end, struct tmk_begin *first)
{
	uint32_t hash = entry_hash(p, o, token), pos;
	struct tmk_pair_entry *e = entry_find(p, o, token, hash, &pos);
	int err;

	if (e && e->state == ENTRY_EARLY) {
		bool fits = e->time >= begin->time;

		*end = (struct tmk_end){ e->object, e->step, e->time, e->tid };
		entry_remove_at(p, e, pos);
		if (fits) {
			recent_remember(p, o, token);
			return TMK_PAIR_MADE;
		}
		o->unpaired.end_without_begin++;
	} else if (e) {
		o->unpaired.begin_reused++;
		if (e->state != ENTRY_OPEN)
			return TMK_PAIR_NONE;
		e->state = ENTRY_AMBIGUOUS;
		p->n_open--;
		o->unpaired.begin_reused++;
		*first = begin_of(e);
		return TMK_PAIR_AMBIGUOUS;
	}
	e = entry_new(p, o, token, hash, &err);
	if (!e) {
		o->unpaired.open_overflow += !err;
		return err;
	}
	e->object = begin->site;
	e->step = begin->step;
	e->time = begin->time;
	e->n = begin->n;
	e->stream = begin->stream;
	e->tid = begin->tid;
	e->named = begin->named;
	e->counted = begin->counted;
	e->state = ENTRY_OPEN;
	p->n_open++;
	return TMK_PAIR_OPEN;
}

/* Holds an end whose begin may still come. */
static int end_hold(struct tmk_pairs *p, struct tmk_pair_owner *o, uint64_t token, uint32_t hash,
		    const struct tmk_end *end)
{
	struct tmk_pair_entry *e;
	int err;

	if (p->n_early == TMK_PAIR_EARLY_MAX) {
		struct tmk_pair_entry *oldest = &p->slots[p->early_head - 1];

		oldest->owner->unpaired.end_without_begin++;
		entry_remove(p, oldest);
	}
	e = entry_new(p, o, token, hash, &err);
	if (!e) {
		o->unpaired.end_without_begin += !err;
		return err;
	}
	e->object = end->output;
	e->step = end->step;
	e->time = end->time;
	e->n = 0;
	e->tid = end->tid;
	e->state = ENTRY_EARLY;
	early_link(p, e);
	return 0;
}

int tmk_pairs_end(struct tmk_pairs *p, struct tmk_pair_owner *o, uint64_t token,
		  const struct tmk_end *end, struct tmk_begin *begin)
{
	uint32_t hash = entry_hash(p, o, token), pos;
	struct tmk_pair_entry *e = entry_find(p, o, token, hash, &pos);

	if (!e && recent_knows(p, o, token)) {
		o->unpaired.repeated_end++;
		return 0;
	}
	if (!e)
		return end_hold(p, o, token, hash, end);
	if (e->state == ENTRY_EARLY) {
		o->unpaired.repeated_end++;
		return 0;
	}
	if (e->state == ENTRY_AMBIGUOUS || e->time > end->time) {
		o->unpaired.end_without_begin++;
		return 0;
	}
	*begin = begin_of(e);
	entry_remove_at(p, e, pos);
	recent_remember(p, o, token);
	return TMK_PAIR_MADE;
}

bool tmk_pairs_take_open(struct tmk_pairs *p, struct tmk_pair_owner *o, uint32_t *cursor,
			 struct tmk_begin *begin)
{
	uint32_t slot1 = *cursor ? *cursor : o->head;

	while (slot1) {
		struct tmk_pair_entry *e = &p->slots[slot1 - 1];

		slot1 = e->next;
		if (e->state != ENTRY_OPEN)
			continue;
		*begin = begin_of(e);
		entry_remove(p, e);
		*cursor = slot1;
		return true;
	}
	return false;
}

void tmk_pairs_drop(struct tmk_pairs *p, struct tmk_pair_owner *o)
{
	while (o->head) {
		struct tmk_pair_entry *e = &p->slots[o->head - 1];

		o->unpaired.end_without_begin += e->state == ENTRY_EARLY;
		entry_remove(p, e);
	}
}
