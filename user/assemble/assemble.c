// SPDX-License-Identifier: BSD-2-Clause
/*
 * The dispatcher: checks each record's shape, applies descriptions at once and everything else in the
 * order of time, and calls the sinks. The tables it works on are order.c, names.c, sessions.c and
 * pair.c and windows.c; the reckoning at the end is finish.c's.
 */
#include "assemble/assemble.h"

#include <errno.h>

#include "assemble/finish.h"
#include "assemble/names.h"
#include "assemble/order.h"
#include "assemble/pair.h"
#include "assemble/sessions.h"
#include "assemble/windows.h"

struct tmk_assembler {
	const struct tmk_sink *sinks;
	int *sink_errs;
	size_t n_sinks;
	int sink_err; /* the first one */

	struct tmk_budget strings;
	struct tmk_order order;
	struct tmk_names names;
	struct tmk_sessions sessions;
	struct tmk_pairs pairs;
	struct tmk_windows windows;
	struct tmk_window_total totals[TMK_STREAM_NAMES + 1]; /* scratch, of the window told last */
	unsigned int lossy_tides; /* further ones before which hits may have been lost */
	uint32_t announced;	  /* sessions that the sinks know */

	uint64_t operations, edges, no_session, malformed, undescribed, names_dropped, lost;
	uint64_t first_time, last_time;
	struct tmk_named *unknown; /* stands for what was never described */
	struct tmk_finish finish;
	bool ended;
	struct tmk_desc_view desc; /* scratch, too large for a stack */
};

static const struct tmk_str question_mark = { "?", 1 };

static void window_emit(void *ctx, struct tmk_window_owner *o, struct tmk_window_told *told);

int tmk_assembler_new(struct tmk_assembler **out, const struct tmk_sink *sinks, size_t n_sinks)
{
	struct tmk_assembler *a = calloc(1, sizeof(*a));
	struct tmk_seed seed;
	int err = -ENOMEM;

	*out = NULL;
	if (!a)
		return -ENOMEM;
	tmk_seed_init(&seed);
	a->sinks = sinks;
	a->n_sinks = n_sinks;
	a->first_time = UINT64_MAX;
	a->strings.max = TMK_ASSEMBLE_STRINGS_MAX;
	tmk_names_init(&a->names, &a->strings, &seed);
	tmk_sessions_init(&a->sessions, &a->strings, &seed);
	a->sink_errs = calloc(n_sinks + 1, sizeof(*a->sink_errs));
	if (!a->sink_errs)
		goto cleanup;
	err = tmk_pairs_init(&a->pairs, &seed);
	if (!err)
		err = tmk_windows_init(&a->windows, &seed, window_emit, a);
	if (err)
		goto cleanup;
	err = -ENOMEM;
	a->unknown = calloc(1, sizeof(*a->unknown));
	if (!a->unknown)
		goto cleanup;
	a->unknown->a = a->unknown->b = question_mark;
	a->unknown->op_number = tmk_op_names_number(&a->names.op_names, question_mark);
	err = tmk_r3_site_render(&a->unknown->site, (struct tmk_str){ "", 0 }, question_mark, NULL,
				 0, 0);
	if (err)
		goto cleanup;
	*out = a;
	return 0;
cleanup:
	tmk_assembler_free(a);
	return err;
}

void tmk_assembler_free(struct tmk_assembler *a)
{
	if (!a)
		return;
	if (a->unknown)
		tmk_r3_site_free(&a->unknown->site);
	free(a->unknown);
	tmk_finish_free(&a->finish);
	tmk_windows_free(&a->windows);
	tmk_pairs_free(&a->pairs);
	tmk_sessions_free(&a->sessions);
	tmk_names_free(&a->names);
	tmk_order_free(&a->order);
	free(a->sink_errs);
	free(a);
}

/* A sink's -EINVAL must not pass for a malformed record. */
static void sink_failed(struct tmk_assembler *a, size_t i, int err)
{
	a->sink_errs[i] = err == -EINVAL ? -EIO : err;
	if (!a->sink_err)
		a->sink_err = a->sink_errs[i];
}

#define SINKS_CALL(a, callback, ...)                                             \
	for (size_t i_ = 0; i_ < (a)->n_sinks; i_++) {                           \
		const struct tmk_sink *sink_ = &(a)->sinks[i_];                  \
		int err_ = 0;                                                    \
                                                                                 \
		if (sink_->ops->callback && !(a)->sink_errs[i_])                 \
			err_ = sink_->ops->callback(sink_->self, ##__VA_ARGS__); \
		if (err_)                                                        \
			sink_failed(a, i_, err_);                                \
	}

/*
 * Sessions are known from the arrival of their descriptor on, but are announced only in the order of
 * time: by then the record that names their process has come as well.
 */
static void sessions_announce(struct tmk_assembler *a)
{
	while (a->announced < a->sessions.n) {
		struct tmk_session_entry *s = a->sessions.entries[a->announced++];
		const struct tmk_process *p = tmk_process_find(&a->sessions, s->incarnation);

		if (p) {
			memcpy(s->comm, p->comm, sizeof(s->comm));
			s->view.ns_pid = p->ns_pid;
		}
		s->totals.truncated += s->view.cut != 0;
		SINKS_CALL(a, on_session, &s->view);
	}
}

/* Names are looked up where they are printed: their descriptors have the longest time to come. */
static const struct tmk_named *named_find(struct tmk_assembler *a,
					  const struct tmk_session_entry *s, uint64_t object,
					  uint16_t kind, bool *unknown)
{
	const struct tmk_named *n = tmk_names_find(&a->names, s->incarnation, object, kind);

	*unknown |= !n;
	return n ? n : a->unknown;
}

static struct tmk_stream_id stream_of(const struct tmk_session_entry *s, const struct tmk_begin *b)
{
	return (struct tmk_stream_id){ s->windows.id, b->stream, b->named };
}

/* An operation that was counted on its stream, and of which no end will be known. */
static void stream_forget(struct tmk_assembler *a, const struct tmk_session_entry *s,
			  const struct tmk_begin *b, uint64_t time)
{
	const struct tmk_stream_id stream = stream_of(s, b);

	if (b->counted)
		tmk_streams_op_drop(&a->windows.streams, &stream, time);
}

static void op_emit(struct tmk_assembler *a, struct tmk_session_entry *s, const struct tmk_begin *b,
		    const struct tmk_end *e)
{
	bool unknown = false;
	const struct tmk_named *site = named_find(a, s, b->site, TMK_DESC_SITE, &unknown);
	struct tmk_op_view v = {
		.session = &s->view,
		.site = &site->site,
		.op_name = site->a,
		.site_index = site->index,
		.op = {
			.phase = s->view.meta.phase,
			.site = &site->site,
			.n = b->n,
			.begin_step = b->step,
			.end_step = e->step,
			.start_ns = b->time,
			.duration_ns = e->time - b->time,
			.pid = s->view.pid,
			.tid = b->tid,
			.end_tid = e->tid,
			.stream = b->stream,
			.named = b->named,
		},
	};

	if (b->counted) {
		const struct tmk_stream_id stream = stream_of(s, b);
		const struct tmk_stream_op counted = { b->time, site->op_number };
		uint64_t time = e->time;

		s->windows.after_flush +=
			tmk_streams_op_end(&a->windows.streams, &stream, &counted, &time);
	}
	if (e->output) {
		const struct tmk_named *name = named_find(a, s, e->output, TMK_DESC_NAME, &unknown);

		v.op.output = name->a;
		v.op.cut = name->cut;
	}
	a->operations++;
	a->undescribed += unknown;
	s->totals.operations++;
	s->totals.truncated += (site->site.cut | v.op.cut) != 0;
	SINKS_CALL(a, on_op, &v);
}

static void unfinished_emit(struct tmk_assembler *a, struct tmk_session_entry *s,
			    const char *reason)
{
	struct tmk_begin b;
	uint32_t cursor = 0;

	while (tmk_pairs_take_open(&a->pairs, &s->pairs, &cursor, &b)) {
		bool unknown = false;
		const struct tmk_named *site = named_find(a, s, b.site, TMK_DESC_SITE, &unknown);
		struct tmk_unfinished_view v = {
			.session = &s->view,
			.op_name = site->a,
			.u = {
				.phase = s->view.meta.phase,
				.site = &site->site,
				.n = b.n,
				.begin_step = b.step,
				.start_ns = b.time,
				.pid = s->view.pid,
				.tid = b.tid,
				.stream = b.stream,
				.named = b.named,
				.reason = reason,
			},
		};

		stream_forget(a, s, &b, a->last_time);
		a->undescribed += unknown;
		s->totals.unfinished++;
		s->totals.truncated += site->site.cut != 0;
		SINKS_CALL(a, on_unfinished, &v);
	}
}

/* The windows first: what goes on inside of them covers their time. */
static void still_open_emit(struct tmk_assembler *a, struct tmk_session_entry *s,
			    const char *reason)
{
	tmk_windows_close(&a->windows, &s->windows, reason, a->last_time);
	unfinished_emit(a, s, reason);
}

static int begin_handle(struct tmk_assembler *a, struct tmk_session_entry *s,
			const struct tmk_rec_op_begin *r)
{
	bool named = r->token & TMK_TOKEN_NAMED;
	struct tmk_begin b = {
		.site = r->site,
		.step = r->step,
		/* A thread's own stream goes by the number that we have of the thread. */
		.stream = named ? r->stream : r->h.tid,
		.time = r->h.time,
		.n = ++s->n,
		.tid = r->h.tid,
		.named = named,
	};
	const struct tmk_stream_id stream = stream_of(s, &b);
	uint64_t time = r->h.time;
	struct tmk_begin first;
	struct tmk_end e;
	int got;

	b.counted = !tmk_streams_op_begin(&a->windows.streams, &stream, &time);
	got = tmk_pairs_begin(&a->pairs, &s->pairs, r->token, &b, &e, &first);
	if (got == TMK_PAIR_MADE)
		op_emit(a, s, &b, &e);
	else if (got != TMK_PAIR_OPEN)
		stream_forget(a, s, &b, time);
	if (got == TMK_PAIR_AMBIGUOUS)
		stream_forget(a, s, &first, time);
	return got < 0 ? got : 0;
}

static int end_handle(struct tmk_assembler *a, struct tmk_session_entry *s,
		      const struct tmk_rec_op_end *r)
{
	struct tmk_end e = { r->output, r->step, r->h.time, r->h.tid };
	struct tmk_begin b;
	int got = tmk_pairs_end(&a->pairs, &s->pairs, r->token, &e, &b);

	if (got == TMK_PAIR_MADE)
		op_emit(a, s, &b, &e);
	return got < 0 ? got : 0;
}

static void edge_handle(struct tmk_assembler *a, struct tmk_session_entry *s,
			const struct tmk_rec_edge *r)
{
	bool unknown = false;
	const struct tmk_named *site = named_find(a, s, r->site, TMK_DESC_EDGE, &unknown);
	struct tmk_edge_view v = {
		.session = &s->view,
		.edge = {
			.phase = s->view.meta.phase,
			.from = site->a,
			.to = site->b,
			.n = ++s->n,
			.step = r->step,
			.duration_ns = r->duration_ns,
			.cut = site->cut,
			.pid = s->view.pid,
			.tid = r->h.tid,
			.start_ns = r->h.time,
		},
	};

	a->edges++;
	a->undescribed += unknown;
	s->totals.edges++;
	s->totals.truncated += site->cut != 0;
	SINKS_CALL(a, on_edge, &v);
}

static struct tmk_session_entry *session_of(struct tmk_window_owner *o)
{
	return (struct tmk_session_entry *)((char *)o -
					    offsetof(struct tmk_session_entry, windows));
}

static size_t totals_name(struct tmk_assembler *a, const struct tmk_window_told *told)
{
	for (size_t i = 0; i < told->n_totals; i++) {
		const struct tmk_stream_total *t = &told->totals[i];

		a->totals[i] =
			(struct tmk_window_total){ tmk_op_names_get(&a->names.op_names, t->name),
						   t->count, t->total_ns };
	}
	return told->n_totals;
}

static void window_emit(void *ctx, struct tmk_window_owner *o, struct tmk_window_told *told)
{
	struct tmk_assembler *a = ctx;
	struct tmk_session_entry *s = session_of(o);
	bool unknown = false;
	const struct tmk_named *name = named_find(a, s, told->name, TMK_DESC_NAME, &unknown);
	struct tmk_window_view v = { .session = &s->view, .w = told->w, .totals = a->totals };

	v.w.phase = s->view.meta.phase;
	v.w.name = name->a;
	v.w.cut = name->cut;
	v.w.pid = s->view.pid;
	v.n_totals = totals_name(a, told);
	a->undescribed += unknown;
	s->totals.truncated += v.w.cut != 0;
	SINKS_CALL(a, on_window, &v);
}

static int session_record_handle(struct tmk_assembler *a, const struct tmk_rec *rec)
{
	/* Every marker's record carries the session at the same place, cf. the asserts below. */
	const struct tmk_rec_session *r = (const struct tmk_rec_session *)rec;
	struct tmk_session_entry *s =
		tmk_session_find(&a->sessions, rec->incarnation, r->session_id);

	if (!s) {
		a->no_session++;
		return 0;
	}
	switch (rec->kind) {
	case TMK_REC_OP_BEGIN:
		return begin_handle(a, s, (const struct tmk_rec_op_begin *)rec);
	case TMK_REC_OP_END:
		return end_handle(a, s, (const struct tmk_rec_op_end *)rec);
	case TMK_REC_EDGE:
		edge_handle(a, s, (const struct tmk_rec_edge *)rec);
		return 0;
	case TMK_REC_WINDOW_START:
		return tmk_windows_start(&a->windows, &s->windows,
					 (const struct tmk_rec_window *)rec);
	case TMK_REC_WINDOW_END:
		return tmk_windows_end(&a->windows, &s->windows,
				       (const struct tmk_rec_window *)rec);
	case TMK_REC_WINDOW_RESOLVE:
		tmk_windows_resolve(&a->windows, &s->windows,
				    (const struct tmk_rec_window_resolve *)rec);
		return 0;
	case TMK_REC_SESSION_FINISH:
		s->state = TMK_SESSION_FINISHED;
		still_open_emit(a, s, "finished");
		return 0;
	default:
		return 0;
	}
}

_Static_assert(offsetof(struct tmk_rec_op_begin, session_id) ==
			       offsetof(struct tmk_rec_session, session_id) &&
		       offsetof(struct tmk_rec_op_end, session_id) ==
			       offsetof(struct tmk_rec_session, session_id) &&
		       offsetof(struct tmk_rec_edge, session_id) ==
			       offsetof(struct tmk_rec_session, session_id) &&
		       offsetof(struct tmk_rec_window, session_id) ==
			       offsetof(struct tmk_rec_session, session_id) &&
		       offsetof(struct tmk_rec_window_resolve, session_id) ==
			       offsetof(struct tmk_rec_session, session_id),
	       "session_id must lie at one place in every marker's record");

/* A session is over for good: what is still open in it never ends. */
static void session_close(struct tmk_assembler *a, struct tmk_session_entry *s, const char *reason)
{
	still_open_emit(a, s, s->state == TMK_SESSION_FINISHED ? "finished" : reason);
	tmk_pairs_drop(&a->pairs, &s->pairs);
}

static void process_end(struct tmk_assembler *a, struct tmk_process *p, const char *reason,
			const struct tmk_rec_gone *gone)
{
	for (uint32_t i = p->sessions; i; i = a->sessions.entries[i - 1]->next) {
		struct tmk_session_entry *s = a->sessions.entries[i - 1];

		session_close(a, s, reason);
		if (s->state == TMK_SESSION_RUNNING)
			s->state = TMK_SESSION_GONE;
		if (gone && gone->known) {
			s->totals.exit_known = true;
			s->totals.exit_status = gone->status;
		}
	}
	tmk_names_drop(&a->names, &p->names);
	tmk_process_drop(&a->sessions, p);
}

/* An older image that an exec replaced; its own record may have been lost. */
static void images_before_end(struct tmk_assembler *a, const struct tmk_process *newer)
{
	struct tmk_process *old;

	while ((old = tmk_process_older(&a->sessions, newer->tgid, newer)))
		process_end(a, old, "exec", NULL);
}

static int record_handle(void *ctx, const struct tmk_rec *rec)
{
	struct tmk_assembler *a = ctx;
	struct tmk_process *p;

	if (a->announced < a->sessions.n)
		sessions_announce(a);
	if (rec->time < a->first_time)
		a->first_time = rec->time;
	if (rec->time > a->last_time)
		a->last_time = rec->time;
	if (rec->kind < TMK_REC_MARKERS)
		return session_record_handle(a, rec);

	p = tmk_process_find(&a->sessions, rec->incarnation);
	if (!p)
		return 0;
	images_before_end(a, p);
	if (rec->kind == TMK_REC_GONE)
		process_end(a, p, "target_gone", (const struct tmk_rec_gone *)rec);
	return 0;
}

/* No room for it: its operations will be called "?", or be counted as no_session. */
static int drop_if_full(struct tmk_assembler *a, int err)
{
	if (err != -ENOSPC)
		return err;
	a->names_dropped++;
	return 0;
}

static int describe_apply(struct tmk_assembler *a, const struct tmk_rec_describe *rec)
{
	struct tmk_process *p;
	int err = tmk_desc_decode(&a->desc, rec);

	if (err)
		return err;
	err = tmk_process_get(&a->sessions, rec->h.incarnation, rec->h.tgid, &p);
	if (!err && a->desc.kind == TMK_DESC_SESSION)
		err = tmk_session_add(&a->sessions, p, rec->session_id, &a->desc);
	else if (!err)
		err = tmk_names_add(&a->names, rec->h.incarnation, rec->object, &a->desc,
				    &p->names);
	return drop_if_full(a, err);
}

static int process_apply(struct tmk_assembler *a, const struct tmk_rec_process *rec)
{
	struct tmk_process *p;
	int err = tmk_process_get(&a->sessions, rec->h.incarnation, rec->h.tgid, &p);

	if (err)
		return drop_if_full(a, err);
	p->ns_pid = rec->ns_pid;
	memcpy(p->comm, rec->comm, sizeof(rec->comm));
	return 0;
}

/* An exec is applied in its time, but the new image takes its place in the row of images at once. */
static int exec_take(struct tmk_assembler *a, const struct tmk_rec *rec)
{
	struct tmk_process *p;
	int err = tmk_process_get(&a->sessions, rec->incarnation, rec->tgid, &p);

	if (err)
		return drop_if_full(a, err);
	return tmk_order_put(&a->order, rec, record_handle, a);
}

/*
 * The count of losses was read after the tide's time: what it tells of was lost after the tide before,
 * and before the one to come.
 */
#define LOSSY_TIDES 2

static void losses_spread(struct tmk_assembler *a, bool grew)
{
	if (grew)
		a->lossy_tides = LOSSY_TIDES;
	else if (a->lossy_tides)
		a->lossy_tides--;
	tmk_windows_losing(&a->windows, a->lossy_tides != 0);
}

static int tide_apply(struct tmk_assembler *a, const struct tmk_rec_tide *rec)
{
	int err;

	sessions_announce(a);
	losses_spread(a, rec->lost > a->lost);
	if (rec->lost > a->lost) {
		a->lost = rec->lost;
		SINKS_CALL(a, on_loss, rec->lost);
	}
	err = tmk_order_tide(&a->order, rec->h.time, record_handle, a);
	SINKS_CALL(a, on_tide);
	return err;
}

static void sinks_finish(struct tmk_assembler *a)
{
	/* Also those that failed: they have files to close. */
	for (size_t i = 0; i < a->n_sinks; i++) {
		const struct tmk_sink *sink = &a->sinks[i];
		int err = 0;

		if (sink->ops->on_finish)
			err = sink->ops->on_finish(sink->self, &a->finish.view);
		if (err)
			sink_failed(a, i, err);
	}
}

static uint64_t lost_sum(const struct tmk_rec_end *end)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < TMK_REC_MARKERS; kind++)
		for (int cause = 0; cause < TMK_LOST_CAUSES; cause++)
			if (__builtin_add_overflow(sum, end->lost[kind][cause], &sum))
				return UINT64_MAX;
	return sum;
}

static int assembler_end(struct tmk_assembler *a, const struct tmk_rec_end *end, uint64_t mono_ns,
			 uint64_t real_ns)
{
	struct tmk_finish_view *v = &a->finish.view;
	const char *reason = tmk_capture_status_name(end ? end->status : TMK_CAPTURE_FAILED);
	int err;

	sessions_announce(a);
	losses_spread(a, end && lost_sum(end) > a->lost);
	err = tmk_order_drain(&a->order, record_handle, a);
	if (err)
		return err;
	if (end && end->status == TMK_CAPTURE_COMPLETE)
		reason = "detached"; /* nothing complete has operations that are still open */
	for (uint32_t i = 0; i < a->sessions.n; i++)
		session_close(a, a->sessions.entries[i], reason);
	err = tmk_finish_fill(&a->finish, end, &a->sessions);
	if (err)
		return err;
	if (!end) {
		v->start_ns = a->first_time <= a->last_time ? a->first_time : 0;
		v->end_ns = a->last_time;
		v->anchors[0].mono_ns = mono_ns;
		v->anchors[0].real_ns = real_ns;
		v->n_anchors = mono_ns || real_ns;
	}
	v->windows_limit = a->windows.given_up;
	v->unpaired.no_session = a->no_session;
	v->late = a->order.late;
	v->malformed = a->malformed;
	v->undescribed = a->undescribed;
	v->names_dropped = a->names_dropped;
	a->ended = true;
	sinks_finish(a);
	return 0;
}

/* The size of a kind's records, where they all have the same; 0 for kinds that do not exist. */
static const uint16_t record_sizes[UINT8_MAX + 1] = {
	[TMK_REC_SESSION_OPEN] = sizeof(struct tmk_rec_session),
	[TMK_REC_SESSION_FINISH] = sizeof(struct tmk_rec_session),
	[TMK_REC_OP_BEGIN] = sizeof(struct tmk_rec_op_begin),
	[TMK_REC_OP_END] = sizeof(struct tmk_rec_op_end),
	[TMK_REC_EDGE] = sizeof(struct tmk_rec_edge),
	[TMK_REC_WINDOW_START] = sizeof(struct tmk_rec_window),
	[TMK_REC_WINDOW_END] = sizeof(struct tmk_rec_window),
	[TMK_REC_WINDOW_RESOLVE] = sizeof(struct tmk_rec_window_resolve),
	[TMK_REC_EXEC] = sizeof(struct tmk_rec),
	[TMK_REC_PROCESS] = sizeof(struct tmk_rec_process),
	[TMK_REC_GONE] = sizeof(struct tmk_rec_gone),
	[TMK_REC_TIDE] = sizeof(struct tmk_rec_tide),
	[TMK_REC_END] = sizeof(struct tmk_rec_end),
};

static bool record_well_formed(const struct tmk_rec *rec, size_t len)
{
	if (len < sizeof(*rec) || rec->bytes > len || rec->source != TMK_SOURCE_MARKER)
		return false;
	if (!rec->incarnation && rec->kind != TMK_REC_TIDE && rec->kind != TMK_REC_END)
		return false;
	if (rec->kind == TMK_REC_DESCRIBE)
		return rec->bytes >= sizeof(struct tmk_rec_describe);
	return rec->bytes && rec->bytes == record_sizes[rec->kind];
}

static int record_take(struct tmk_assembler *a, const struct tmk_rec *rec)
{
	switch (rec->kind) {
	case TMK_REC_DESCRIBE:
		return describe_apply(a, (const struct tmk_rec_describe *)rec);
	case TMK_REC_PROCESS:
		return process_apply(a, (const struct tmk_rec_process *)rec);
	case TMK_REC_EXEC:
		return exec_take(a, rec);
	case TMK_REC_TIDE:
		return tide_apply(a, (const struct tmk_rec_tide *)rec);
	case TMK_REC_END:
		return assembler_end(a, (const struct tmk_rec_end *)rec, 0, 0);
	default:
		return tmk_order_put(&a->order, rec, record_handle, a);
	}
}

int tmk_assembler_feed(struct tmk_assembler *a, const struct tmk_rec *rec, size_t len)
{
	int err = -EINVAL;

	if (!a->ended && record_well_formed(rec, len))
		err = record_take(a, rec);
	a->malformed += err == -EINVAL;
	return err ? err : a->sink_err;
}

int tmk_assembler_cut_short(struct tmk_assembler *a, uint64_t mono_ns, uint64_t real_ns)
{
	int err = a->ended ? 0 : assembler_end(a, NULL, mono_ns, real_ns);

	return err ? err : a->sink_err;
}

const struct tmk_finish_view *tmk_assembler_result(const struct tmk_assembler *a)
{
	return a->ended ? &a->finish.view : NULL;
}

void tmk_assembler_stats(const struct tmk_assembler *a, struct tmk_assembler_stats *st)
{
	st->operations = a->operations;
	st->edges = a->edges;
	st->open = a->pairs.n_open;
	st->sessions = a->sessions.n;
}
