// SPDX-License-Identifier: BSD-2-Clause
/*
 * Says in a session's own file how its capture went. Hits, deliveries and losses are those of the whole
 * capture, since a lost hit does not say which session it was of; unpaired records are the session's.
 */
#include "base/marker_name.h"
#include "sink/capture_line.h"

#include <string.h>

/* Every known marker and one entry for all others. */
struct counts {
	struct tmk_r3_count c[TMK_REC_MARKERS + 1];
	size_t n;
};

static void count_add(struct counts *to, const char *name, uint64_t value)
{
	to->c[to->n++] = (struct tmk_r3_count){ name, value };
}

static void count_add_some(struct counts *to, const char *name, uint64_t value)
{
	if (value)
		count_add(to, name, value);
}

static uint64_t mul_sat(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Markers that were never hit are left out: most programs use few. */
static void markers_count(struct counts *hits, struct counts *delivered,
			  const struct tmk_rec_end *end)
{
	uint64_t other_hits = 0, other_delivered = 0;

	for (unsigned int kind = 0; kind < TMK_REC_MARKERS; kind++) {
		const char *name = tmk_marker_name(kind);

		if (!end->hits[kind] && !end->delivered[kind])
			continue;
		if (name) {
			count_add(hits, name, end->hits[kind]);
			count_add(delivered, name, end->delivered[kind]);
		} else {
			other_hits += end->hits[kind];
			other_delivered += end->delivered[kind];
		}
	}
	if (other_hits || other_delivered) {
		count_add(hits, "other", other_hits);
		count_add(delivered, "other", other_delivered);
	}
}

/* Always there with every cause: a zero that was measured. */
static void losses_count(struct counts *lost, const struct tmk_rec_end *end)
{
	static const char *const names[TMK_LOST_CAUSES] = {
		[TMK_LOST_RING_FULL] = "ring_full",
		[TMK_LOST_RECURSION] = "recursion",
		[TMK_LOST_INVALID] = "invalid",
	};

	for (int cause = 0; cause < TMK_LOST_CAUSES; cause++) {
		uint64_t sum = 0;

		for (int kind = 0; kind < TMK_REC_MARKERS; kind++)
			sum += end->lost[kind][cause];
		if (names[cause] || sum)
			count_add(lost, names[cause] ? names[cause] : "other", sum);
	}
}

/* `f`: what is not of one session. */
static void unpaired_count(struct counts *to, const struct tmk_unpaired *u,
			   const struct tmk_finish_view *f)
{
	count_add(to, "end_without_begin", u->end_without_begin);
	count_add(to, "repeated_end", u->repeated_end);
	count_add(to, "begin_reused", u->begin_reused);
	count_add(to, "open_overflow", u->open_overflow);
	count_add_some(to, "no_session", f->unpaired.no_session);
	count_add_some(to, "window_start_reused", u->window_start_reused);
	count_add_some(to, "window_repeated_end", u->window_repeated_end);
	count_add_some(to, "resolve_unknown", u->resolve_unknown);
	count_add_some(to, "ended_after_flush", u->ended_after_flush);
	count_add_some(to, "late", f->late);
}

void tmk_capture_line(struct tmk_buf *b, const struct tmk_finish_view *f, size_t i)
{
	const struct tmk_session_view *s = f->sessions[i];
	const struct tmk_session_totals *t = &f->totals[i];
	struct counts hits = { 0 }, delivered = { 0 }, lost = { 0 }, unpaired = { 0 };
	struct tmk_r3_count windows[TMK_R3_WINDOW_COUNTS];
	struct counts overhead = { 0 };
	struct tmk_r3_capture c = {
		.status = t->status,
		.source = "traced",
		.start_ns = f->start_ns,
		.end_ns = f->end_ns,
		.n_anchors = f->n_anchors,
		.operations = t->operations,
		.edges = t->edges,
		.unfinished = t->unfinished,
		.truncated = t->truncated,
		.pid = s->pid,
		/* Absent where the process was gone before it could be asked. */
		.comm = { s->comm[0] ? s->comm : NULL, strlen(s->comm) },
		.exit_known = t->exit_known,
		.exit_status = t->exit_status,
	};

	for (size_t k = 0; k < f->n_anchors; k++) {
		c.anchors[k].mono_ns = f->anchors[k].mono_ns;
		c.anchors[k].real_ns = f->anchors[k].real_ns;
	}
	if (f->end) {
		markers_count(&hits, &delivered, f->end);
		losses_count(&lost, f->end);
		if (f->end->hit_cost_ns) {
			count_add(&overhead, "hit_ns", f->end->hit_cost_ns);
			count_add(&overhead, "hits_total_ns",
				  mul_sat(f->hits, f->end->hit_cost_ns));
		}
	}
	c.windows = windows;
	c.n_windows = tmk_r3_window_counts_list(&t->windows, windows);
	unpaired_count(&unpaired, &t->unpaired, f);
	c.hits = hits.c;
	c.n_hits = hits.n;
	c.delivered = delivered.c;
	c.n_delivered = delivered.n;
	c.lost = lost.c;
	c.n_lost = lost.n;
	c.unpaired = unpaired.c;
	c.n_unpaired = unpaired.n;
	c.overhead = overhead.c;
	c.n_overhead = overhead.n;
	tmk_r3_capture_line(b, &c);
}
