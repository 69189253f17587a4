// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps processes and sessions. When they begin and end is assemble.c's to say.
 */
#include "assemble/sessions.h"

#include <errno.h>

void tmk_sessions_init(struct tmk_sessions *t, struct tmk_budget *budget,
		       const struct tmk_seed *seed)
{
	memset(t, 0, sizeof(*t));
	t->budget = budget;
	t->seed = *seed;
}

void tmk_sessions_free(struct tmk_sessions *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		free(t->entries[i]->features);
		free(t->entries[i]);
	}
	free(t->entries);
	free(t->processes);
	tmk_index_free(&t->by_incarnation);
	tmk_index_free(&t->by_tgid);
	tmk_index_free(&t->by_id);
	memset(t, 0, sizeof(*t));
}

static uint32_t incarnation_hash(const struct tmk_sessions *t, uint32_t incarnation)
{
	return tmk_hash2(&t->seed, incarnation, 1);
}

static uint32_t tgid_hash(const struct tmk_sessions *t, uint32_t tgid)
{
	return tmk_hash2(&t->seed, tgid, 2);
}

static uint32_t session_hash(const struct tmk_sessions *t, uint32_t incarnation,
			     uint64_t session_id)
{
	return tmk_hash2(&t->seed, session_id, (uint64_t)incarnation << 32 | 3);
}

struct tmk_process *tmk_process_find(struct tmk_sessions *t, uint32_t incarnation)
{
	uint32_t hash = incarnation_hash(t, incarnation), pos, slot;

	TMK_INDEX_FOR_EACH(&t->by_incarnation, hash, pos, slot)
	{
		if (t->processes[slot].incarnation == incarnation)
			return &t->processes[slot];
	}
	return NULL;
}

static void index_remove_slot(struct tmk_index *ix, uint32_t hash, uint32_t wanted)
{
	uint32_t pos, slot;

	TMK_INDEX_FOR_EACH(ix, hash, pos, slot)
	{
		if (slot == wanted) {
			tmk_index_remove(ix, pos);
			return;
		}
	}
}

static int processes_slot(struct tmk_sessions *t, uint32_t *slot)
{
	if (t->free_process) {
		*slot = t->free_process - 1;
		return 0;
	}
	if (t->n_processes == t->cap_processes) {
		uint32_t cap = t->cap_processes ? t->cap_processes * 2 : 64;
		struct tmk_process *p = realloc(t->processes, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->processes = p;
		t->cap_processes = cap;
	}
	*slot = t->n_processes;
	return 0;
}

int tmk_process_get(struct tmk_sessions *t, uint32_t incarnation, uint32_t tgid,
		    struct tmk_process **out)
{
	struct tmk_process *p = tmk_process_find(t, incarnation);
	uint32_t slot;
	int err;

	*out = p;
	if (p)
		return 0;
	if (t->n_live_processes == TMK_PROCESSES_MAX)
		return -ENOSPC;
	err = processes_slot(t, &slot);
	if (err)
		return err;
	err = tmk_index_insert(&t->by_incarnation, incarnation_hash(t, incarnation), slot);
	if (err)
		return err;
	err = tmk_index_insert(&t->by_tgid, tgid_hash(t, tgid), slot);
	if (err) {
		index_remove_slot(&t->by_incarnation, incarnation_hash(t, incarnation), slot);
		return err;
	}
	p = &t->processes[slot];
	if (t->free_process)
		t->free_process = p->names; /* links the free slots */
	else
		t->n_processes++;
	t->n_live_processes++;
	*p = (struct tmk_process){
		.incarnation = incarnation, .tgid = tgid, .ns_pid = tgid, .age = t->next_age++
	};
	*out = p;
	return 0;
}

struct tmk_process *tmk_process_older(struct tmk_sessions *t, uint32_t tgid,
				      const struct tmk_process *newer)
{
	uint32_t hash = tgid_hash(t, tgid), pos, slot;

	TMK_INDEX_FOR_EACH(&t->by_tgid, hash, pos, slot)
	{
		struct tmk_process *p = &t->processes[slot];

		if (p->tgid == tgid && p != newer && (!newer || (int32_t)(p->age - newer->age) < 0))
			return p;
	}
	return NULL;
}

void tmk_process_drop(struct tmk_sessions *t, struct tmk_process *p)
{
	uint32_t slot = (uint32_t)(p - t->processes);

	for (uint32_t i = p->sessions; i; i = t->entries[i - 1]->next) {
		struct tmk_session_entry *s = t->entries[i - 1];

		index_remove_slot(&t->by_id, session_hash(t, s->incarnation, s->view.session_id),
				  i - 1);
	}
	t->last = NULL;
	index_remove_slot(&t->by_incarnation, incarnation_hash(t, p->incarnation), slot);
	index_remove_slot(&t->by_tgid, tgid_hash(t, p->tgid), slot);
	memset(p, 0, sizeof(*p));
	p->names = t->free_process;
	t->free_process = slot + 1;
	t->n_live_processes--;
}

struct tmk_session_entry *tmk_session_find(struct tmk_sessions *t, uint32_t incarnation,
					   uint64_t session_id)
{
	uint32_t hash, pos, slot;

	if (t->last && t->last->incarnation == incarnation &&
	    t->last->view.session_id == session_id)
		return t->last;
	hash = session_hash(t, incarnation, session_id);
	TMK_INDEX_FOR_EACH(&t->by_id, hash, pos, slot)
	{
		struct tmk_session_entry *s = t->entries[slot];

		if (s->incarnation == incarnation && s->view.session_id == session_id)
			return t->last = s;
	}
	return NULL;
}

static struct tmk_str str_keep(char **to, struct tmk_str s)
{
	struct tmk_str kept = { *to, s.len };

	memcpy(*to, s.data, s.len);
	*to += s.len;
	return kept;
}

/* Strings in the order of TMK_DESC_SESSION. */
static void meta_keep(struct tmk_session_entry *s, const struct tmk_desc_view *d)
{
	struct tmk_r3_meta *m = &s->view.meta;
	char *to = s->strings;
	uint32_t i = 0;

	m->entrypoint = str_keep(&to, d->strings[i++]);
	m->phase = str_keep(&to, d->strings[i++]);
	m->profile = str_keep(&to, d->strings[i++]);
	if (d->flags & TMK_DESC_HAS_ANALYSIS_ID)
		m->analysis_id = str_keep(&to, d->strings[i++]);
	if (d->flags & TMK_DESC_HAS_BUILD_ID)
		m->build_id = str_keep(&to, d->strings[i++]);
	m->n_cargo_features = d->count - i;
	m->cargo_features = s->features;
	for (uint32_t k = 0; i < d->count; i++, k++)
		s->features[k] = str_keep(&to, d->strings[i]);
}

static int session_new(struct tmk_sessions *t, const struct tmk_desc_view *d,
		       struct tmk_session_entry **out)
{
	size_t bytes = 0, cost;
	struct tmk_session_entry *s;

	for (uint32_t i = 0; i < d->count; i++)
		bytes += d->strings[i].len;
	cost = sizeof(*s) + bytes + (d->count + 1ul) * sizeof(*s->features);
	if (!tmk_budget_take(t->budget, cost))
		return -ENOSPC;
	s = calloc(1, sizeof(*s) + bytes);
	if (s)
		s->features = calloc(d->count + 1ul, sizeof(*s->features));
	if (!s || !s->features) {
		free(s);
		tmk_budget_give(t->budget, cost);
		return -ENOMEM;
	}
	meta_keep(s, d);
	*out = s;
	return 0;
}

int tmk_session_add(struct tmk_sessions *t, struct tmk_process *p, uint64_t session_id,
		    const struct tmk_desc_view *d)
{
	struct tmk_session_entry *s;
	int err;

	if (tmk_session_find(t, p->incarnation, session_id))
		return 0;
	if (t->n == TMK_SESSIONS_MAX)
		return -ENOSPC;
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 16;
		struct tmk_session_entry **entries = realloc(t->entries, cap * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		t->entries = entries;
		t->cap = cap;
	}
	err = session_new(t, d, &s);
	if (err)
		return err;
	err = tmk_index_insert(&t->by_id, session_hash(t, p->incarnation, session_id), t->n);
	if (err) {
		free(s->features);
		free(s);
		return err; /* -ENOMEM, which ends the capture: its budget matters no more */
	}
	s->incarnation = p->incarnation;
	s->pairs.id = t->n;
	s->windows.id = t->n;
	s->view.index = t->n;
	s->view.session_id = session_id;
	s->view.cut = d->flags & 0xff;
	s->view.comm = s->comm;
	s->view.pid = p->tgid;
	s->next = p->sessions;
	p->sessions = t->n + 1;
	t->entries[t->n++] = s;
	return 0;
}
