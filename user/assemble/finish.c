// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sums up a capture: statuses and conservation of hits. What follows from it is verdict.c's, printing
 * it the sinks'.
 */
#include "assemble/finish.h"

#include <errno.h>

const char *tmk_capture_status_name(uint32_t status)
{
	static const char *const names[] = {
		[TMK_CAPTURE_COMPLETE] = "complete",	   [TMK_CAPTURE_DETACHED] = "detached",
		[TMK_CAPTURE_TARGET_GONE] = "target_gone", [TMK_CAPTURE_STOPPED] = "stopped",
		[TMK_CAPTURE_FAILED] = "failed",
	};

	return status && status < sizeof(names) / sizeof(names[0]) ? names[status] : "failed";
}

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* The counters may come from a file that lies: sums saturate instead of wrapping into agreement. */
static void counters_sum(struct tmk_finish_view *v, const struct tmk_rec_end *end)
{
	v->conserved = true;
	for (int kind = 0; kind < TMK_REC_MARKERS; kind++) {
		uint64_t lost = 0;

		for (int cause = 0; cause < TMK_LOST_CAUSES; cause++)
			lost = add_sat(lost, end->lost[kind][cause]);
		if (end->hits[kind] != add_sat(end->delivered[kind], lost))
			v->conserved = false;
		v->hits = add_sat(v->hits, end->hits[kind]);
		v->delivered = add_sat(v->delivered, end->delivered[kind]);
		v->lost = add_sat(v->lost, lost);
	}
}

static const char *session_status(const struct tmk_session_entry *s,
				  const struct tmk_finish_view *v)
{
	/* With counters that contradict one another no file may claim to be whole. */
	if (v->end && !v->conserved)
		return "failed";
	if (s->state == TMK_SESSION_FINISHED)
		return "complete";
	if (s->state == TMK_SESSION_GONE)
		return "target_gone";
	/* A capture cannot be complete for a session that was never finished. */
	if (v->end && v->end->status == TMK_CAPTURE_COMPLETE)
		return "detached";
	return v->status;
}

static void unpaired_add(struct tmk_unpaired *sum, const struct tmk_unpaired *u)
{
	sum->end_without_begin += u->end_without_begin;
	sum->repeated_end += u->repeated_end;
	sum->begin_reused += u->begin_reused;
	sum->open_overflow += u->open_overflow;
	sum->no_session += u->no_session;
	sum->window_start_reused += u->window_start_reused;
	sum->window_repeated_end += u->window_repeated_end;
	sum->resolve_unknown += u->resolve_unknown;
	sum->ended_after_flush += u->ended_after_flush;
}

static void windows_add(struct tmk_window_counts *sum, const struct tmk_window_counts *c)
{
	sum->closed += c->closed;
	sum->abandoned += c->abandoned;
	sum->not_measured += c->not_measured;
	sum->failed += c->failed;
	sum->open += c->open;
}

static void session_windows(struct tmk_session_totals *t, const struct tmk_window_owner *o)
{
	t->windows = o->counts;
	t->unpaired.window_start_reused = o->start_reused;
	t->unpaired.window_repeated_end = o->repeated_end;
	t->unpaired.resolve_unknown = o->resolve_unknown;
	t->unpaired.ended_after_flush = o->after_flush;
}

int tmk_finish_fill(struct tmk_finish *f, const struct tmk_rec_end *end,
		    const struct tmk_sessions *sessions)
{
	struct tmk_finish_view *v = &f->view;

	f->sessions = calloc(sessions->n + 1, sizeof(*f->sessions));
	f->totals = calloc(sessions->n + 1, sizeof(*f->totals));
	if (!f->sessions || !f->totals)
		return -ENOMEM;
	if (end) {
		f->end = *end;
		v->end = &f->end;
		v->status = tmk_capture_status_name(end->status);
		v->start_ns = end->start_ns;
		v->end_ns = end->h.time;
		counters_sum(v, end);
		v->anchors[0].mono_ns = end->start_ns;
		v->anchors[0].real_ns = end->real_start_ns;
		v->anchors[1].mono_ns = end->mono_end_ns;
		v->anchors[1].real_ns = end->real_end_ns;
		v->n_anchors = 2;
	} else {
		v->status = "failed";
	}
	for (uint32_t i = 0; i < sessions->n; i++) {
		const struct tmk_session_entry *s = sessions->entries[i];

		f->sessions[i] = &s->view;
		f->totals[i] = s->totals;
		f->totals[i].status = session_status(s, v);
		f->totals[i].unpaired = s->pairs.unpaired;
		session_windows(&f->totals[i], &s->windows);
		unpaired_add(&v->unpaired, &f->totals[i].unpaired);
		windows_add(&v->windows, &f->totals[i].windows);
	}
	v->sessions = f->sessions;
	v->totals = f->totals;
	v->n_sessions = sessions->n;
	return 0;
}

void tmk_finish_free(struct tmk_finish *f)
{
	free(f->sessions);
	free(f->totals);
}
