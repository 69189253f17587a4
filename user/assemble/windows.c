// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of windows. See windows.h.
 */
#include "assemble/windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tmk_window_entry {
	struct tmk_stream_window inside; /* first: parents are found by it */
	struct tmk_window_owner *owner;
	struct tmk_window_entry *older, *newer;		    /* of all sessions */
	struct tmk_window_entry *owner_older, *owner_newer; /* of its own */
	uint64_t id, opened_on;
	uint64_t name, step, n, start_ns;
	uint64_t losses; /* at its start */
	uint32_t tid, slot;
	bool pending; /* closed; what follows is what was found then */
	bool reused;  /* started twice */
	bool incomplete;

	bool has_parent, has_end, has_idle, flush;
	uint32_t end_tid, depth, overlaps;
	uint64_t end_ns, parent, operations, idle_ns;
	struct tmk_stream_total *totals;
	size_t n_totals;
};

struct tmk_window_recent {
	uint64_t id, opened_on;
	uint64_t owner1; /* id + 1; 0 = empty */
};

struct tmk_window_recent_set {
	struct tmk_window_recent at[TMK_WINDOWS_RECENT_WAYS];
	uint32_t next; /* the oldest, where the next one goes */
};

int tmk_windows_init(struct tmk_windows *t, const struct tmk_seed *seed, tmk_window_tell_fn tell,
		     void *ctx)
{
	memset(t, 0, sizeof(*t));
	t->seed = *seed;
	t->tell = tell;
	t->ctx = ctx;
	tmk_streams_init(&t->streams, seed, true);
	t->recent = calloc(TMK_WINDOWS_RECENT_SETS, sizeof(*t->recent));
	return t->recent ? 0 : -ENOMEM;
}

void tmk_windows_free(struct tmk_windows *t)
{
	tmk_streams_free(&t->streams); /* first: it knows the windows that are open */
	for (struct tmk_window_entry *e = t->oldest, *next; e; e = next) {
		next = e->newer;
		free(e->totals);
		free(e);
	}
	tmk_slots_free(&t->slots);
	free(t->recent);
	tmk_index_free(&t->index);
	memset(t, 0, sizeof(*t));
}

/* --- the table */

static uint32_t key_hash(const struct tmk_windows *t, const struct tmk_window_owner *o,
			 uint64_t opened_on, uint64_t id)
{
	return tmk_hash2(&t->seed, id ^ (uint64_t)o->id << 32, opened_on);
}

static struct tmk_window_entry *entry_find(const struct tmk_windows *t,
					   const struct tmk_window_owner *o, uint64_t opened_on,
					   uint64_t id)
{
	uint32_t hash = key_hash(t, o, opened_on, id), pos, slot;

	TMK_INDEX_FOR_EACH(&t->index, hash, pos, slot)
	{
		struct tmk_window_entry *e = t->slots.at[slot];

		if (e->id == id && e->opened_on == opened_on && e->owner == o)
			return e;
	}
	return NULL;
}

static void lists_add(struct tmk_windows *t, struct tmk_window_entry *e)
{
	struct tmk_window_owner *o = e->owner;

	e->older = t->newest;
	*(t->newest ? &t->newest->newer : &t->oldest) = e;
	t->newest = e;
	e->owner_older = o->newest;
	*(o->newest ? &o->newest->owner_newer : &o->oldest) = e;
	o->newest = e;
}

static void lists_remove(struct tmk_windows *t, struct tmk_window_entry *e)
{
	struct tmk_window_owner *o = e->owner;

	*(e->older ? &e->older->newer : &t->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &t->newest) = e->older;
	*(e->owner_older ? &e->owner_older->owner_newer : &o->oldest) = e->owner_newer;
	*(e->owner_newer ? &e->owner_newer->owner_older : &o->newest) = e->owner_older;
}

static int entry_insert(struct tmk_windows *t, struct tmk_window_entry *e)
{
	int err = tmk_slots_next(&t->slots, &e->slot);

	if (!err)
		err = tmk_index_insert(&t->index, key_hash(t, e->owner, e->opened_on, e->id),
				       e->slot);
	if (err)
		return err;
	tmk_slots_take(&t->slots, e);
	lists_add(t, e);
	return 0;
}

static void entry_free(struct tmk_windows *t, struct tmk_window_entry *e)
{
	tmk_index_remove_slot(&t->index, key_hash(t, e->owner, e->opened_on, e->id), e->slot);
	tmk_slots_give(&t->slots, e->slot);
	lists_remove(t, e);
	t->totals_bytes -= e->totals ? e->n_totals * sizeof(*e->totals) : 0;
	free(e->totals);
	free(e);
}

/* Ids count up in an honest program, so they fill the sets one after the other. */
static struct tmk_window_recent_set *recent_set(const struct tmk_windows *t,
						const struct tmk_window_owner *o,
						uint64_t opened_on, uint64_t id)
{
	return &t->recent[(id + (opened_on ^ o->id) * 0x9e3779b1u) & (TMK_WINDOWS_RECENT_SETS - 1)];
}

static void recent_remember(struct tmk_windows *t, const struct tmk_window_owner *o,
			    uint64_t opened_on, uint64_t id)
{
	struct tmk_window_recent_set *set = recent_set(t, o, opened_on, id);

	set->at[set->next] = (struct tmk_window_recent){ id, opened_on, o->id + 1ull };
	set->next = (set->next + 1) % TMK_WINDOWS_RECENT_WAYS;
}

static bool recent_knows(const struct tmk_windows *t, const struct tmk_window_owner *o,
			 uint64_t opened_on, uint64_t id)
{
	const struct tmk_window_recent_set *set = recent_set(t, o, opened_on, id);

	for (uint32_t i = 0; i < TMK_WINDOWS_RECENT_WAYS; i++) {
		const struct tmk_window_recent *r = &set->at[i];

		if (r->id == id && r->opened_on == opened_on && r->owner1 == o->id + 1ull)
			return true;
	}
	return false;
}

/* --- how a window ended */

struct ending {
	const char *status, *reason;
	uint32_t error;
	bool has_duration, device;
	uint64_t duration_ns;
};

static const struct ending not_measured_by_backend = { .status = "not_measured",
						       .reason = "backend" };

static void told_fill(struct tmk_window_told *told, const struct tmk_window_entry *e,
		      const struct ending *end)
{
	bool named = e->id & TMK_WINDOW_NAMED;

	*told = (struct tmk_window_told){
		.w = {
			.n = e->n,
			.step = e->step,
			.id = e->id,
			.opened_on = e->opened_on,
			.tid = e->tid,
			.end_tid = e->end_tid,
			.stream = named ? e->opened_on : e->tid,
			.has_stream = true,
			.named = named,
			.has_start = true,
			.has_end = e->has_end,
			.has_duration = end->has_duration,
			.start_ns = e->start_ns,
			.end_ns = e->end_ns,
			.duration_ns = end->duration_ns,
			.device = end->device,
			.status = end->status,
			.reason = end->reason,
			.error = end->error,
			.flush = e->flush,
			.has_place = true,
			.depth = e->depth,
			.overlaps = e->overlaps,
			.has_parent = e->has_parent,
			.parent = e->parent,
			.has_operations = true,
			.has_idle = e->has_idle,
			.operations = e->operations,
			.idle_ns = e->idle_ns,
			.incomplete = e->incomplete,
		},
		.name = e->name,
	};
}

/* Tells of a window whose place on its stream is known already, and forgets it. */
static void entry_tell(struct tmk_windows *t, struct tmk_window_entry *e, const struct ending *end,
		       const struct tmk_stream_total *totals, size_t n_totals)
{
	struct tmk_window_owner *o = e->owner;
	struct tmk_window_told told;

	told_fill(&told, e, end);
	told.totals = totals;
	told.n_totals = n_totals;
	tmk_r3_window_count(&o->counts, end->status);
	recent_remember(t, o, e->opened_on, e->id);
	t->tell(t->ctx, o, &told);
	entry_free(t, e);
}

/*
 * Takes a window off its stream. `time` is when; without `has_end` nobody knows when it was over, and
 * what it held is what it held so far.
 */
static void entry_leave(struct tmk_windows *t, struct tmk_window_entry *e, uint64_t time,
			bool has_end, struct tmk_stream_inside *in)
{
	uint64_t moved = time;

	tmk_streams_window_end(&t->streams, &e->inside, &moved, e->flush, in);
	e->incomplete |= e->losses != t->losses;
	e->has_end = has_end && time >= e->start_ns;
	e->end_ns = time;
	e->depth = in->depth;
	e->overlaps = in->overlaps;
	e->has_parent = in->parent;
	if (in->parent)
		e->parent = ((const struct tmk_window_entry *)in->parent)->id;
	e->operations = in->operations;
	e->idle_ns = in->idle_ns;
	/* A record that came late moved the stream's time away from the window's own. */
	e->has_idle = e->has_end && !e->incomplete && in->idle_ns <= time - e->start_ns;
}

static void pending_tell(struct tmk_windows *t, struct tmk_window_entry *e, struct ending end)
{
	end.device = true;
	entry_tell(t, e, &end, e->totals, e->n_totals);
}

/* Keeps the totals until the device's result is there, if there is room. */
static void pending_keep(struct tmk_windows *t, struct tmk_window_entry *e,
			 const struct tmk_stream_inside *in)
{
	size_t bytes = in->n_totals * sizeof(*in->totals);

	e->pending = true;
	if (!bytes || bytes > TMK_WINDOWS_TOTALS_MAX - t->totals_bytes)
		return;
	e->totals = malloc(bytes);
	if (!e->totals)
		return;
	memcpy(e->totals, in->totals, bytes);
	e->n_totals = in->n_totals;
	t->totals_bytes += bytes;
}

/* --- start */

static void oldest_give_up(struct tmk_windows *t, uint64_t time)
{
	static const struct ending unresolved = { .status = "not_measured",
						  .reason = "unresolved" };
	static const struct ending limit = { .status = "abandoned", .reason = "limit" };
	struct tmk_window_entry *e = t->oldest;
	struct tmk_stream_inside in;

	t->given_up++;
	if (e->pending) {
		pending_tell(t, e, unresolved);
		return;
	}
	entry_leave(t, e, time, true, &in);
	entry_tell(t, e, &limit, in.totals, in.n_totals);
}

static struct tmk_window_entry *entry_new(struct tmk_windows *t, struct tmk_window_owner *o,
					  const struct tmk_rec_window *r)
{
	struct tmk_window_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->owner = o;
	e->id = r->id;
	e->opened_on = r->opened_on;
	e->name = r->name;
	e->step = r->detail;
	e->n = ++o->n;
	e->tid = r->h.tid;
	e->start_ns = r->h.time;
	e->losses = t->losses;
	e->incomplete = t->losing;
	return e;
}

static struct tmk_stream_id stream_of(const struct tmk_window_entry *e)
{
	bool named = e->id & TMK_WINDOW_NAMED;

	return (struct tmk_stream_id){ e->owner->id, named ? e->opened_on : e->tid, named };
}

int tmk_windows_start(struct tmk_windows *t, struct tmk_window_owner *o,
		      const struct tmk_rec_window *r)
{
	struct tmk_window_entry *e = entry_find(t, o, r->opened_on, r->id);
	uint64_t time = r->h.time;
	struct tmk_stream_id stream;

	if (e) {
		e->reused = true;
		o->start_reused++;
		return 0;
	}
	if (tmk_slots_used(&t->slots) >= TMK_WINDOWS_HELD_MAX)
		oldest_give_up(t, time);
	e = entry_new(t, o, r);
	if (!e)
		return -ENOMEM;
	stream = stream_of(e);
	if (tmk_streams_window_start(&t->streams, &stream, &e->inside, &time)) {
		free(e);
		return -ENOMEM;
	}
	if (entry_insert(t, e)) {
		struct tmk_stream_inside in;

		tmk_streams_window_end(&t->streams, &e->inside, &time, false, &in);
		free(e);
		return -ENOMEM;
	}
	return 0;
}

/* --- end */

/* From the outcome that the program gave; NULL status: it waits for its device. */
static struct ending ending_of(const struct tmk_window_entry *e, uint64_t how)
{
	struct ending end = { .device = how & TMK_HOW_DEVICE };
	uint64_t outcome = how & TMK_HOW_OUTCOME;

	if (outcome == TMK_WINDOW_ABANDONED || outcome == TMK_WINDOW_LIMIT) {
		end.status = "abandoned";
		end.reason = outcome == TMK_WINDOW_LIMIT ? "limit" : "program";
	} else if (outcome == TMK_WINDOW_FAILED) {
		end.status = "failed";
		end.error = how >> TMK_HOW_ERROR_SHIFT & 0xffff;
	} else if (e->reused) {
		end.status = "not_measured";
		end.reason = "reused";
	} else if (outcome == TMK_WINDOW_PENDING) {
		end.device = true;
	} else if (outcome != TMK_WINDOW_CLOSED || end.device) {
		end.status = "not_measured";
		end.reason =
			end.device || outcome != TMK_WINDOW_NOT_MEASURED ? "backend" : "no_time";
	} else if (e->end_ns <= e->start_ns) {
		end.status = "not_measured";
		end.reason = "no_time";
	} else {
		end.status = "closed";
		end.has_duration = true;
		end.duration_ns = e->end_ns - e->start_ns;
	}
	return end;
}

/* An end of which nobody saw the start. */
static void unknown_tell(struct tmk_windows *t, struct tmk_window_owner *o,
			 const struct tmk_rec_window *r)
{
	uint64_t outcome = r->detail & TMK_HOW_OUTCOME;
	bool named = r->id & TMK_WINDOW_NAMED;
	struct tmk_window_told told = {
		.w = {
			.n = ++o->n,
			.id = r->id,
			.opened_on = r->opened_on,
			.end_tid = r->h.tid,
			.stream = r->opened_on,
			.has_stream = named,
			.named = named,
			.has_end = true,
			.end_ns = r->h.time,
			.device = r->detail & TMK_HOW_DEVICE,
			.status = "not_measured",
			.reason = t->losses ? "start_unknown" : "opened_before_capture",
			.flush = r->detail & TMK_HOW_FLUSH,
			.incomplete = t->losing,
		},
		.name = r->name,
	};

	if (outcome == TMK_WINDOW_ABANDONED || outcome == TMK_WINDOW_LIMIT) {
		told.w.status = "abandoned";
		told.w.reason = outcome == TMK_WINDOW_LIMIT ? "limit" : "program";
	}
	tmk_r3_window_count(&o->counts, told.w.status);
	recent_remember(t, o, r->opened_on, r->id);
	t->tell(t->ctx, o, &told);
}

int tmk_windows_end(struct tmk_windows *t, struct tmk_window_owner *o,
		    const struct tmk_rec_window *r)
{
	struct tmk_window_entry *e = entry_find(t, o, r->opened_on, r->id);
	struct tmk_stream_inside in;
	struct ending end;

	if (!e && !recent_knows(t, o, r->opened_on, r->id)) {
		unknown_tell(t, o, r);
		return 0;
	}
	if (!e || e->pending) {
		o->repeated_end++;
		return 0;
	}
	e->flush = r->detail & TMK_HOW_FLUSH;
	e->end_tid = r->h.tid;
	entry_leave(t, e, r->h.time, true, &in);
	end = ending_of(e, r->detail);
	if (end.status)
		entry_tell(t, e, &end, in.totals, in.n_totals);
	else
		pending_keep(t, e, &in);
	return 0;
}

/* --- what comes later */

void tmk_windows_resolve(struct tmk_windows *t, struct tmk_window_owner *o,
			 const struct tmk_rec_window_resolve *r)
{
	struct tmk_window_entry *e = entry_find(t, o, r->opened_on, r->id);
	struct ending end = not_measured_by_backend;

	if (!e || !e->pending) {
		o->resolve_unknown++;
		return;
	}
	switch (r->how & TMK_HOW_OUTCOME) {
	case TMK_WINDOW_CLOSED:
		if (!r->duration_ns)
			break;
		end = (struct ending){ .status = "closed",
				       .has_duration = true,
				       .duration_ns = r->duration_ns };
		break;
	case TMK_WINDOW_FAILED:
		end = (struct ending){ .status = "failed",
				       .error = r->how >> TMK_HOW_ERROR_SHIFT & 0xffff };
		break;
	default:
		break;
	}
	pending_tell(t, e, end);
}

/* The newest first, so that an inner window still finds the outer one around it. */
void tmk_windows_close(struct tmk_windows *t, struct tmk_window_owner *o, const char *reason,
		       uint64_t time)
{
	static const struct ending unresolved = { .status = "not_measured",
						  .reason = "unresolved" };
	bool finished = !strcmp(reason, "finished");
	bool over = finished || !strcmp(reason, "target_gone") || !strcmp(reason, "exec");
	struct ending end = { .status = over ? "abandoned" : "open", .reason = reason };
	struct tmk_stream_inside in;

	for (struct tmk_window_entry *e = o->newest, *older; e; e = older) {
		older = e->owner_older;
		if (e->pending) {
			pending_tell(t, e, unresolved);
			continue;
		}
		entry_leave(t, e, time, finished, &in);
		entry_tell(t, e, &end, in.totals, in.n_totals);
	}
}

/*
 * A hit that was lost may have been anybody's: every window that is open in such a time has lost
 * something, also one that begins or ends there.
 */
void tmk_windows_losing(struct tmk_windows *t, bool losing)
{
	t->losing = losing;
	t->losses += losing;
}
