// SPDX-License-Identifier: BSD-2-Clause
/*
 * The assembler's windows against a model of them, on random schedules: threads, streams of their own and
 * named ones, nesting, overlap, windows closed from other threads and by devices, lies, lost records, and
 * processes that end. The model keeps everything and looks through all of it for each answer.
 *
 * A schedule that fails prints its number; TMK_SEED=NUMBER runs that one alone.
 */
#include "unit/feed.h"

#include <inttypes.h>
#include <sys/random.h>

#include "stream/streams.h"

#define SCHEDULES 12000u
#define EVENTS_MAX 400u
#define SESSIONS 3u
#define NEVER UINT32_MAX

enum { SITE_MATMUL = 0x10, SITE_ADD = 0x20, WINDOW_NAME = 0x30 };
static const char *const site_names[] = { "matmul", "add" };

/* --- random numbers, the same everywhere */

struct random {
	uint64_t state;
};

static uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint32_t below(struct random *r, uint32_t n)
{
	return (uint32_t)(random_next(r) % n);
}

static bool percent(struct random *r, uint32_t p)
{
	return below(r, 100) < p;
}

/* --- a schedule: what a program does, in the order of time */

enum event_kind { OP_BEGIN, OP_END, START, END, RESOLVE, FINISH, GONE, TIDE };

struct stream {
	uint64_t number;
	bool named;
};

struct event {
	enum event_kind kind;
	uint64_t time;
	uint32_t session, tid;
	uint64_t token, site;
	struct stream stream; /* OP_BEGIN */
	struct feed_key key;
	uint64_t how, duration;
	bool lost;
	bool told_early; /* the tide before already counts the loss */
	uint32_t segment;
};

struct schedule {
	struct random random;
	struct event events[EVENTS_MAX];
	uint32_t n;
	uint64_t now;
	enum tmk_capture_status status;
	uint64_t lost;
	uint32_t segments;
};

/* What the generator believes to be open, to make mostly sensible choices. */
struct belief {
	struct {
		uint32_t session;
		uint64_t token;
	} ops[EVENTS_MAX];
	struct {
		uint32_t session;
		struct feed_key key;
	} open[EVENTS_MAX], pending[EVENTS_MAX];
	uint32_t n_ops, n_open, n_pending;
	uint64_t next_token, next_id;
	uint32_t flushes;
	bool gone[2], finished[SESSIONS];
	uint32_t loss_percent, lie_percent, named_percent;
};

/* Sessions 0 and 1 are of process 0, session 2 of process 1. */
static uint32_t process_of(uint32_t session)
{
	return session / 2;
}

static struct feed_who who_of(uint32_t session, uint32_t tid)
{
	uint32_t process = process_of(session);

	return (struct feed_who){ process + 1, 100 * (process + 1), tid };
}

static struct event *event_add(struct schedule *s, enum event_kind kind, uint32_t session)
{
	struct event *e = &s->events[s->n++];

	/* Sometimes two things happen at once. */
	s->now += percent(&s->random, 10) ? 0 : 1 + below(&s->random, 4);
	*e = (struct event){ .kind = kind, .time = s->now, .session = session };
	e->tid = 100 * (process_of(session) + 1) + 1 + below(&s->random, 3);
	return e;
}

static struct stream stream_choose(struct schedule *s, const struct belief *b, uint32_t tid)
{
	/* One of them has the number of a thread. */
	static const uint64_t numbers[] = { 7, 8, 101, UINT64_MAX };

	if (percent(&s->random, b->named_percent))
		return (struct stream){ numbers[below(&s->random, 4)], true };
	return (struct stream){ tid, false };
}

static void op_begin_add(struct schedule *s, struct belief *b, uint32_t session)
{
	struct event *e = event_add(s, OP_BEGIN, session);

	e->stream = stream_choose(s, b, e->tid);
	e->token = ++b->next_token | (e->stream.named ? TMK_TOKEN_NAMED : 0);
	e->site = percent(&s->random, 50) ? SITE_MATMUL : SITE_ADD;
	if (b->n_ops && percent(&s->random, b->lie_percent)) {
		/* A token that is in use; the bit of the name decides what its stream is. */
		e->token = b->ops[below(&s->random, b->n_ops)].token;
		e->stream = e->token & TMK_TOKEN_NAMED ? (struct stream){ 7, true }
						       : (struct stream){ e->tid, false };
	}
	b->ops[b->n_ops].session = session;
	b->ops[b->n_ops++].token = e->token;
}

static void op_end_add(struct schedule *s, struct belief *b)
{
	uint32_t i = below(&s->random, b->n_ops), session = b->ops[i].session;
	struct event *e = event_add(s, OP_END, session);

	e->token = b->ops[i].token;
	b->ops[i] = b->ops[--b->n_ops];
}

static void start_add(struct schedule *s, struct belief *b, uint32_t session)
{
	struct event *e = event_add(s, START, session);
	struct stream on = stream_choose(s, b, e->tid);

	e->key.opened_on = on.number;
	/* Equal ids on several streams, and a lie now and then: a key that is in use. */
	if (!b->next_id || percent(&s->random, 70))
		b->next_id++;
	e->key.id = b->next_id | (on.named ? TMK_WINDOW_NAMED : 0);
	if (b->n_open && percent(&s->random, b->lie_percent))
		e->key = b->open[below(&s->random, b->n_open)].key;
	b->open[b->n_open].session = session;
	b->open[b->n_open++].key = e->key;
}

static uint64_t how_choose(struct schedule *s, struct belief *b)
{
	static const uint64_t hows[] = {
		TMK_WINDOW_CLOSED,
		TMK_WINDOW_CLOSED,
		TMK_WINDOW_CLOSED,
		TMK_WINDOW_PENDING | TMK_HOW_DEVICE,
		TMK_WINDOW_PENDING | TMK_HOW_DEVICE,
		TMK_WINDOW_ABANDONED,
		TMK_WINDOW_NOT_MEASURED,
		TMK_WINDOW_NOT_MEASURED | TMK_HOW_DEVICE,
		TMK_WINDOW_FAILED | (uint64_t)5 << TMK_HOW_ERROR_SHIFT,
		TMK_WINDOW_CLOSED | TMK_HOW_DEVICE, /* contradicts itself */
		0,
	};
	uint64_t how = hows[below(&s->random, sizeof(hows) / sizeof(hows[0]))];

	/* As many as are remembered. */
	if (b->flushes < TMK_STREAM_FLUSHES && percent(&s->random, 20)) {
		b->flushes++;
		how |= TMK_HOW_FLUSH;
	}
	return how;
}

static void end_add(struct schedule *s, struct belief *b)
{
	/* Mostly the newest, so that windows nest. */
	uint32_t i = percent(&s->random, 60) ? b->n_open - 1 : below(&s->random, b->n_open);
	struct event *e = event_add(s, END, b->open[i].session);

	e->key = b->open[i].key;
	e->how = how_choose(s, b);
	if ((e->how & TMK_HOW_OUTCOME) == TMK_WINDOW_PENDING)
		b->pending[b->n_pending++] = b->open[i];
	b->open[i] = b->open[--b->n_open];
	if (percent(&s->random, b->lie_percent)) { /* and once more, by somebody else */
		struct event *again = event_add(s, END, e->session);

		again->key = e->key;
		again->how = how_choose(s, b);
	}
}

/* An end, or a result, of what was never opened, or not there. */
static void end_unknown_add(struct schedule *s, struct belief *b, uint32_t session)
{
	struct event *e = event_add(s, percent(&s->random, 50) ? END : RESOLVE, session);

	e->key = (struct feed_key){ 1000000 + ++b->next_id, below(&s->random, 2) ? 7 : e->tid };
	e->how = how_choose(s, b);
	e->duration = below(&s->random, 10);
}

static void resolve_add(struct schedule *s, struct belief *b)
{
	uint32_t i = below(&s->random, b->n_pending);
	struct event *e = event_add(s, RESOLVE, b->pending[i].session);

	e->key = b->pending[i].key;
	e->how = percent(&s->random, 80) ? TMK_WINDOW_CLOSED : how_choose(s, b);
	e->duration = percent(&s->random, 90) ? 1 + below(&s->random, 1000) : 0;
	if (!percent(&s->random, b->lie_percent)) /* else there will be another one */
		b->pending[i] = b->pending[--b->n_pending];
}

/* What was of a process is gone with it. */
static void belief_forget(struct belief *b, uint32_t process)
{
	uint32_t n = 0;

	b->gone[process] = true;
	for (uint32_t i = 0; i < b->n_ops; i++)
		if (process_of(b->ops[i].session) != process)
			b->ops[n++] = b->ops[i];
	b->n_ops = n;
	n = 0;
	for (uint32_t i = 0; i < b->n_open; i++)
		if (process_of(b->open[i].session) != process)
			b->open[n++] = b->open[i];
	b->n_open = n;
	n = 0;
	for (uint32_t i = 0; i < b->n_pending; i++)
		if (process_of(b->pending[i].session) != process)
			b->pending[n++] = b->pending[i];
	b->n_pending = n;
}

static void event_choose(struct schedule *s, struct belief *b)
{
	uint32_t session = percent(&s->random, 60) ? 0 : below(&s->random, SESSIONS);
	uint32_t dice = below(&s->random, 100);

	if (b->gone[process_of(session)])
		return;
	if (dice < 25)
		op_begin_add(s, b, session);
	else if (dice < 48 && b->n_ops)
		op_end_add(s, b);
	else if (dice < 68)
		start_add(s, b, session);
	else if (dice < 86 && b->n_open)
		end_add(s, b);
	else if (dice < 92 && b->n_pending)
		resolve_add(s, b);
	else if (dice < 92 && percent(&s->random, b->lie_percent))
		end_unknown_add(s, b, session);
	else if (dice == 92 && percent(&s->random, 20))
		event_add(s, FINISH, session);
	else if (dice == 93 && percent(&s->random, 20)) {
		event_add(s, GONE, session);
		belief_forget(b, process_of(session));
	} else if (dice > 93) {
		event_add(s, TIDE, 0);
		s->now++; /* nothing of its own time comes after it */
	}
}

static void losses_choose(struct schedule *s, const struct belief *b)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct event *e = &s->events[i];

		e->segment = s->segments;
		s->segments += e->kind == TIDE;
		if (e->kind >= FINISH || !percent(&s->random, b->loss_percent))
			continue;
		e->lost = true;
		e->told_early = e->segment && percent(&s->random, 30);
		s->lost++;
	}
}

static void schedule_make(struct schedule *s, uint64_t seed)
{
	static struct belief b; /* large */
	uint32_t steps;

	memset(&b, 0, sizeof(b));
	memset(s, 0, sizeof(*s));
	s->random.state = seed;
	s->now = 10;
	steps = 10 + below(&s->random, 150);
	b.loss_percent = percent(&s->random, 50) ? 0 : 1 + below(&s->random, 10);
	b.lie_percent = percent(&s->random, 50) ? 0 : 1 + below(&s->random, 20);
	b.named_percent = below(&s->random, 101);
	while (steps-- && s->n < EVENTS_MAX - 2)
		event_choose(s, &b);
	s->status = (enum tmk_capture_status)(TMK_CAPTURE_COMPLETE + below(&s->random, 5));
	losses_choose(s, &b);
}

/* --- the schedule as the assembler gets it */

static int event_feed(struct feed *f, const struct schedule *s, const struct event *e)
{
	struct feed_who who = who_of(e->session, e->tid);
	uint64_t id = e->session + 1, lost = 0;

	switch (e->kind) {
	case OP_BEGIN:
		if (e->stream.named)
			return feed_op_begin_on(f, who, id, e->token, e->site, e->stream.number,
						e->time);
		return feed_begin(f, who, id, e->token, e->site, 0, e->time);
	case OP_END:
		return feed_end(f, who, id, e->token, 0, 0, e->time);
	case START:
		return feed_window_start(f, who, id, WINDOW_NAME, e->key, 0, e->time);
	case END:
		return feed_window_end(f, who, id, WINDOW_NAME, e->key, e->how, e->time);
	case RESOLVE:
		return feed_window_resolve(f, who, id, e->key, e->duration, e->how, e->time);
	case FINISH:
		return feed_marker(f, who, TMK_REC_SESSION_FINISH, id, e->time);
	case GONE:
		return feed_gone(f, who, e->time, false, 0);
	default:
		for (uint32_t i = 0; i < s->n; i++)
			lost += s->events[i].lost &&
				s->events[i].segment <= e->segment + s->events[i].told_early;
		return feed_tide(f, e->time, lost);
	}
}

/* Between two tides records arrive in any order, but for those of one time, whose order is what it is. */
static void arrival_mix(struct random *r, const struct event **events, uint32_t n)
{
	for (uint32_t round = 0; n > 1 && round < 4 * n; round++) {
		uint32_t i = below(r, n - 1);
		const struct event *e = events[i];

		if (e->time == events[i + 1]->time)
			continue;
		events[i] = events[i + 1];
		events[i + 1] = e;
	}
}

static void schedule_feed(struct feed *f, struct schedule *s)
{
	const struct event *events[EVENTS_MAX];
	struct tmk_rec_end end = feed_end_record(s->status, s->now + 100);
	uint32_t n = 0;

	for (uint32_t session = 0; session < SESSIONS; session++) {
		struct feed_who who = who_of(session, 1);

		feed_session(f, who, session + 1);
		feed_site(f, who, SITE_MATMUL, "s:1\nmatmul\n");
		feed_site(f, who, SITE_ADD, "s:2\nadd\n");
		feed_name(f, who, WINDOW_NAME, "w\n");
	}
	for (uint32_t i = 0; i <= s->n; i++) {
		bool over = i == s->n || s->events[i].kind == TIDE;

		if (over) {
			arrival_mix(&s->random, events, n);
			for (uint32_t j = 0; j < n; j++)
				assert_int_equal(event_feed(f, s, events[j]), 0);
			n = 0;
		}
		if (i < s->n && over)
			assert_int_equal(event_feed(f, s, &s->events[i]), 0);
		else if (!over && !s->events[i].lost)
			events[n++] = &s->events[i];
	}
	end.hits[TMK_REC_OP_BEGIN] = end.lost[TMK_REC_OP_BEGIN][TMK_LOST_RING_FULL] = s->lost;
	assert_int_equal(feed_rec(f, &end), 0);
}

/* --- the model. Moments are numbers of events; what happens at the end of a session comes one by one. */

struct model_op {
	uint32_t session;
	uint64_t token;
	struct stream stream;
	uint64_t site;
	uint32_t begin, over; /* moments */
	uint64_t begin_time, over_time;
	bool ended; /* by its end */
	bool void_; /* its token was begun twice */
};

struct model_window {
	uint32_t session;
	struct feed_key key;
	struct stream stream;
	uint64_t n;
	uint32_t tid;
	uint32_t start, over; /* moments */
	uint64_t start_time, over_time;
	uint32_t start_segment;
	bool reused, flush;
	bool pending; /* over, but not told */
	struct feed_window found;
};

struct model {
	const struct schedule *s;
	struct model_op ops[EVENTS_MAX];
	struct model_window windows[EVENTS_MAX];
	struct feed_window told[EVENTS_MAX];
	uint32_t n_ops, n_windows, n_told, moment;
	uint64_t last_time;
	uint32_t segment;
	uint64_t numbers[SESSIONS]; /* of windows */
	bool finished[SESSIONS], gone[2];
	struct feed_key known[EVENTS_MAX]; /* that were told of */
	uint32_t known_session[EVENTS_MAX], n_known;
	struct tmk_unpaired unpaired;
	uint64_t n_lines; /* of operations */
};

static bool streams_equal(struct stream a, struct stream b)
{
	return a.number == b.number && a.named == b.named;
}

static bool keys_equal(struct feed_key a, struct feed_key b)
{
	return a.id == b.id && a.opened_on == b.opened_on;
}

/* Whether hits may have been lost in a segment: the tide after it, or the one after the next before, says more. */
static uint64_t lost_at_tide(const struct model *m, uint32_t segment)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < m->s->n; i++) {
		const struct event *e = &m->s->events[i];

		lost += e->lost &&
			(segment == m->s->segments || e->segment <= segment + e->told_early);
	}
	return lost;
}

static bool tide_tells(const struct model *m, uint32_t segment)
{
	return lost_at_tide(m, segment) > (segment ? lost_at_tide(m, segment - 1) : 0);
}

static bool segment_losing(const struct model *m, uint32_t segment)
{
	return tide_tells(m, segment) || (segment && tide_tells(m, segment - 1));
}

static bool any_losing(const struct model *m, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i <= to; i++)
		if (segment_losing(m, i))
			return true;
	return false;
}

/* --- what lies in a window, by looking at everything there is */

static uint64_t idle_count(const struct model *m, const struct model_window *w)
{
	uint64_t idle = 0;

	for (uint64_t t = w->start_time; t < w->over_time; t++) {
		bool covered = false;

		for (uint32_t i = 0; i < m->n_ops; i++) {
			const struct model_op *o = &m->ops[i];

			covered |= o->session == w->session &&
				   streams_equal(o->stream, w->stream) && o->begin_time <= t &&
				   t < o->over_time;
		}
		idle += !covered;
	}
	return idle;
}

static void totals_count(const struct model *m, const struct model_window *w,
			 struct feed_window *found)
{
	memset(found->totals, 0, sizeof(found->totals));
	for (uint32_t i = 0; i < m->n_ops; i++) {
		const struct model_op *o = &m->ops[i];
		uint32_t name = o->site == SITE_ADD;

		if (!o->ended || o->session != w->session || !streams_equal(o->stream, w->stream) ||
		    o->over < w->start || o->over > w->over)
			continue;
		found->w.operations++;
		found->totals[name].count++;
		found->totals[name].total_ns += o->over_time - o->begin_time;
	}
}

static void place_find(const struct model *m, const struct model_window *w,
		       struct feed_window *found)
{
	uint32_t innermost = 0;

	for (uint32_t i = 0; i < m->n_windows; i++) {
		const struct model_window *v = &m->windows[i];
		bool older = v->start<w->start, outlives = v->over> w->over;

		if (v == w || v->session != w->session || !streams_equal(v->stream, w->stream) ||
		    v->over < w->start || v->start > w->over)
			continue;
		if (older && outlives) {
			found->w.depth++;
			if (!found->w.has_parent || v->start > innermost) {
				found->w.has_parent = true;
				found->w.parent = v->key.id;
				innermost = v->start;
			}
		} else if (older || outlives) {
			found->w.overlaps++;
		}
	}
}

static void told_add(struct model *m, const struct feed_window *w, uint32_t session,
		     struct feed_key key)
{
	m->told[m->n_told++] = *w;
	m->known_session[m->n_known] = session;
	m->known[m->n_known++] = key;
}

static void window_tell(struct model *m, struct model_window *w, const char *status,
			const char *reason)
{
	snprintf(w->found.status, sizeof(w->found.status), "%s", status);
	snprintf(w->found.reason, sizeof(w->found.reason), "%s", reason);
	w->pending = false;
	told_add(m, &w->found, w->session, w->key);
}

/* Takes a window off its stream, now. */
static void window_over(struct model *m, struct model_window *w, bool has_end)
{
	struct tmk_r3_window *r = &w->found.w;

	w->over = m->moment++;
	w->over_time = m->last_time;
	w->found.session = w->session;
	*r = (struct tmk_r3_window){ .n = w->n,
				     .id = w->key.id,
				     .opened_on = w->key.opened_on,
				     .tid = w->tid,
				     .stream = w->stream.number,
				     .named = w->stream.named,
				     .has_start = true,
				     .start_ns = w->start_time,
				     .has_end = has_end,
				     .end_ns = w->over_time,
				     .flush = w->flush };
	r->incomplete = any_losing(m, w->start_segment, m->segment);
	r->has_idle = has_end && !r->incomplete;
	r->idle_ns = idle_count(m, w);
	totals_count(m, w, &w->found);
	place_find(m, w, &w->found);
}

/* --- the events */

static struct model_window *window_find(struct model *m, uint32_t session, struct feed_key key)
{
	for (uint32_t i = 0; i < m->n_windows; i++) {
		struct model_window *w = &m->windows[i];

		if (w->session == session && keys_equal(w->key, key) &&
		    (w->over == NEVER || w->pending))
			return w;
	}
	return NULL;
}

static void model_start(struct model *m, const struct event *e)
{
	struct model_window *w = window_find(m, e->session, e->key);
	bool named = e->key.id & TMK_WINDOW_NAMED;

	if (w) {
		w->reused = true;
		m->unpaired.window_start_reused++;
		return;
	}
	m->windows[m->n_windows++] = (struct model_window){
		.session = e->session,
		.key = e->key,
		.stream = { named ? e->key.opened_on : e->tid, named },
		.n = ++m->numbers[e->session],
		.tid = e->tid,
		.start = m->moment++,
		.start_time = e->time,
		.start_segment = m->segment,
		.over = NEVER,
	};
}

static void model_end_unknown(struct model *m, const struct event *e)
{
	uint64_t outcome = e->how & TMK_HOW_OUTCOME;
	bool named = e->key.id & TMK_WINDOW_NAMED;
	struct feed_window told = {
		.session = e->session,
		.w = { .n = ++m->numbers[e->session],
		       .id = e->key.id,
		       .opened_on = e->key.opened_on,
		       .end_tid = e->tid,
		       .stream = e->key.opened_on,
		       .named = named,
		       .has_end = true,
		       .end_ns = e->time,
		       .device = e->how & TMK_HOW_DEVICE,
		       .flush = e->how & TMK_HOW_FLUSH,
		       .incomplete = segment_losing(m, m->segment) },
	};
	bool gave_up = outcome == TMK_WINDOW_ABANDONED;

	strcpy(told.status, gave_up ? "abandoned" : "not_measured");
	strcpy(told.reason, gave_up			   ? "program"
			    : any_losing(m, 0, m->segment) ? "start_unknown"
							   : "opened_before_capture");
	told_add(m, &told, e->session, e->key);
}

static void model_end(struct model *m, const struct event *e)
{
	struct model_window *w = window_find(m, e->session, e->key);
	uint64_t outcome = e->how & TMK_HOW_OUTCOME;
	bool device = e->how & TMK_HOW_DEVICE, known = w;

	for (uint32_t i = 0; i < m->n_known; i++)
		known |= m->known_session[i] == e->session && keys_equal(m->known[i], e->key);
	if (!w && !known) {
		model_end_unknown(m, e);
		return;
	}
	if (!w || w->pending) {
		m->unpaired.window_repeated_end++;
		return;
	}
	w->flush = e->how & TMK_HOW_FLUSH;
	window_over(m, w, true);
	w->found.w.end_tid = e->tid;
	w->found.w.device = device;
	if (outcome == TMK_WINDOW_ABANDONED) {
		window_tell(m, w, "abandoned", "program");
	} else if (outcome == TMK_WINDOW_FAILED) {
		w->found.w.error = 5;
		window_tell(m, w, "failed", "");
	} else if (w->reused) {
		window_tell(m, w, "not_measured", "reused");
	} else if (outcome == TMK_WINDOW_PENDING) {
		w->pending = true;
	} else if (device || (outcome != TMK_WINDOW_CLOSED && outcome != TMK_WINDOW_NOT_MEASURED)) {
		window_tell(m, w, "not_measured", "backend");
	} else if (outcome == TMK_WINDOW_NOT_MEASURED || w->over_time == w->start_time) {
		window_tell(m, w, "not_measured", "no_time");
	} else {
		w->found.w.has_duration = true;
		w->found.w.duration_ns = w->over_time - w->start_time;
		window_tell(m, w, "closed", "");
	}
}

static void model_resolve(struct model *m, const struct event *e)
{
	struct model_window *w = window_find(m, e->session, e->key);
	uint64_t outcome = e->how & TMK_HOW_OUTCOME;

	if (!w || !w->pending) {
		m->unpaired.resolve_unknown++;
	} else if (outcome == TMK_WINDOW_FAILED) {
		w->found.w.error = 5;
		window_tell(m, w, "failed", "");
	} else if (outcome == TMK_WINDOW_CLOSED && e->duration) {
		w->found.w.has_duration = true;
		w->found.w.duration_ns = e->duration;
		window_tell(m, w, "closed", "");
	} else {
		window_tell(m, w, "not_measured", "backend");
	}
}

static struct model_op *op_find(struct model *m, uint32_t session, uint64_t token)
{
	for (uint32_t i = m->n_ops; i-- > 0;)
		if (m->ops[i].session == session && m->ops[i].token == token &&
		    (m->ops[i].over == NEVER || m->ops[i].void_))
			return &m->ops[i];
	return NULL;
}

static void op_over(struct model *m, struct model_op *o, bool ended)
{
	o->over = m->moment++;
	o->over_time = m->last_time;
	o->ended = ended;
}

static void model_op_begin(struct model *m, const struct event *e)
{
	struct model_op *o = op_find(m, e->session, e->token);

	if (o) {
		m->unpaired.begin_reused += 1 + !o->void_;
		if (!o->void_)
			op_over(m, o, false);
		o->void_ = true;
		return;
	}
	m->ops[m->n_ops++] = (struct model_op){
		.session = e->session,
		.token = e->token,
		.stream = e->stream,
		.site = e->site,
		.begin = m->moment++,
		.begin_time = e->time,
		.over = NEVER,
		.over_time = UINT64_MAX,
	};
}

/* Whether a window that it was begun in was flushed before it ended. */
static bool flush_missed(const struct model *m, const struct model_op *o)
{
	for (uint32_t i = 0; i < m->n_windows; i++) {
		const struct model_window *w = &m->windows[i];

		if (w->flush && w->over != NEVER && w->session == o->session &&
		    streams_equal(w->stream, o->stream) && w->start_time <= o->begin_time &&
		    o->begin_time < w->over_time && w->over_time < o->over_time)
			return true;
	}
	return false;
}

static void model_op_end(struct model *m, const struct event *e)
{
	struct model_op *o = op_find(m, e->session, e->token);

	if (!o || o->void_)
		return; /* counted as an end without a begin; test_assemble.c's */
	op_over(m, o, true);
	m->n_lines++;
	m->unpaired.ended_after_flush += flush_missed(m, o);
}

/* What is open in a session when it ends: windows from the newest to the oldest, then operations. */
static void session_over(struct model *m, uint32_t session, const char *reason)
{
	bool finished = !strcmp(reason, "finished");
	bool gone = finished || !strcmp(reason, "target_gone");

	for (uint32_t i = m->n_windows; i-- > 0;) {
		struct model_window *w = &m->windows[i];

		if (w->session != session)
			continue;
		if (w->pending) {
			window_tell(m, w, "not_measured", "unresolved");
		} else if (w->over == NEVER) {
			window_over(m, w, finished);
			window_tell(m, w, gone ? "abandoned" : "open", reason);
		}
	}
	for (uint32_t i = 0; i < m->n_ops; i++)
		if (m->ops[i].session == session && m->ops[i].over == NEVER)
			op_over(m, &m->ops[i], false);
}

static void session_close(struct model *m, uint32_t session, const char *reason)
{
	session_over(m, session, m->finished[session] ? "finished" : reason);
	for (uint32_t i = 0; i < m->n_ops; i++)
		m->ops[i].void_ &= m->ops[i].session != session;
}

static void model_event(struct model *m, const struct event *e)
{
	m->segment = e->segment;
	if (e->kind == TIDE)
		return;
	m->last_time = e->time;
	switch (e->kind) {
	case OP_BEGIN:
		model_op_begin(m, e);
		break;
	case OP_END:
		model_op_end(m, e);
		break;
	case START:
		model_start(m, e);
		break;
	case END:
		model_end(m, e);
		break;
	case RESOLVE:
		model_resolve(m, e);
		break;
	case FINISH:
		m->finished[e->session] = true;
		session_over(m, e->session, "finished");
		break;
	default:
		for (uint32_t i = 0; i < SESSIONS; i++)
			if (process_of(i) == process_of(e->session))
				session_close(m, i, "target_gone");
		m->gone[process_of(e->session)] = true;
		break;
	}
}

static void model_run(struct model *m, const struct schedule *s)
{
	static const char *const reasons[] = { "",	  "detached", "detached", "target_gone",
					       "stopped", "failed" };

	memset(m, 0, sizeof(*m));
	m->s = s;
	for (uint32_t i = 0; i < s->n; i++)
		if (!s->events[i].lost)
			model_event(m, &s->events[i]);
	m->segment = s->segments;
	for (uint32_t i = 0; i < SESSIONS; i++)
		session_close(m, i, reasons[s->status]);
}

/* --- the comparison */

#define SAME(field)                                                                              \
	do {                                                                                     \
		if (a->w.field != b->w.field) {                                                  \
			print_message("window %" PRIu64 " of session %u: " #field " is %" PRIu64 \
				      ", not %" PRIu64 "\n",                                     \
				      (uint64_t)b->w.n, b->session, (uint64_t)a->w.field,        \
				      (uint64_t)b->w.field);                                     \
			same = false;                                                            \
		}                                                                                \
	} while (0)

static bool totals_same(const struct feed_window *a, const struct feed_window *b)
{
	size_t n = 0;

	for (int name = 0; name < 2; name++) {
		if (!b->totals[name].count)
			continue;
		n++;
		for (size_t i = 0; i < a->n_totals; i++)
			if (!strcmp(a->totals[i].name, site_names[name]) &&
			    (a->totals[i].count != b->totals[name].count ||
			     a->totals[i].total_ns != b->totals[name].total_ns))
				return false;
	}
	return n == a->n_totals;
}

static bool windows_same(const struct feed_window *a, const struct feed_window *b)
{
	bool same = true;

	SAME(n);
	SAME(id);
	SAME(opened_on);
	SAME(tid);
	SAME(end_tid);
	SAME(stream);
	SAME(named);
	SAME(has_start);
	SAME(has_end);
	SAME(has_duration);
	SAME(duration_ns);
	SAME(device);
	SAME(error);
	SAME(flush);
	SAME(depth);
	SAME(overlaps);
	SAME(has_parent);
	SAME(parent);
	SAME(operations);
	SAME(has_idle);
	SAME(incomplete);
	if (b->w.has_start)
		SAME(start_ns);
	if (b->w.has_end)
		SAME(end_ns);
	if (b->w.has_idle)
		SAME(idle_ns);
	if (strcmp(a->status, b->status) || strcmp(a->reason, b->reason)) {
		print_message("window %" PRIu64 " of session %u is %s (%s), not %s (%s)\n", b->w.n,
			      b->session, a->status, a->reason, b->status, b->reason);
		same = false;
	}
	if (!totals_same(a, b)) {
		print_message("window %" PRIu64 " of session %u: totals\n", b->w.n, b->session);
		same = false;
	}
	return same;
}

static const struct feed_window *next_of(const struct feed_window *list, size_t n, size_t *at,
					 uint32_t session)
{
	while (*at < n && list[*at].session != session)
		++*at;
	return *at < n ? &list[(*at)++] : NULL;
}

/* Sessions are told of one after the other, in an order of the assembler's own. */
static bool lists_same(const struct feed *f, const struct model *m)
{
	for (uint32_t session = 0; session < SESSIONS; session++) {
		size_t i = 0, j = 0;

		for (;;) {
			const struct feed_window *a =
				next_of(f->windows, f->n_windows, &i, session);
			const struct feed_window *b = next_of(m->told, m->n_told, &j, session);

			if (!a && !b)
				break;
			if (!a || !b) {
				print_message("session %u: %zu windows, not %u, of all\n", session,
					      f->n_windows, m->n_told);
				return false;
			}
			if (!windows_same(a, b))
				return false;
		}
	}
	return true;
}

static bool counts_same(const struct feed *f, const struct model *m)
{
	const struct tmk_unpaired *a = &f->finish.unpaired, *b = &m->unpaired;
	struct tmk_window_counts c = { 0 };

	for (uint32_t i = 0; i < m->n_told; i++) {
		c.closed += !strcmp(m->told[i].status, "closed");
		c.abandoned += !strcmp(m->told[i].status, "abandoned");
		c.not_measured += !strcmp(m->told[i].status, "not_measured");
		c.failed += !strcmp(m->told[i].status, "failed");
		c.open += !strcmp(m->told[i].status, "open");
	}
	if (a->window_start_reused == b->window_start_reused &&
	    a->window_repeated_end == b->window_repeated_end &&
	    a->resolve_unknown == b->resolve_unknown && a->begin_reused == b->begin_reused &&
	    a->ended_after_flush == b->ended_after_flush && !a->no_session && !f->finish.late &&
	    f->n_ops == m->n_lines && !memcmp(&f->finish.windows, &c, sizeof(c)))
		return true;
	print_message("counts: reused %" PRIu64 "/%" PRIu64 ", repeated %" PRIu64 "/%" PRIu64
		      ", resolve %" PRIu64 "/%" PRIu64 ", begins %" PRIu64 "/%" PRIu64
		      ", after a flush %" PRIu64 "/%" PRIu64 ", operations %zu/%" PRIu64 "\n",
		      a->window_start_reused, b->window_start_reused, a->window_repeated_end,
		      b->window_repeated_end, a->resolve_unknown, b->resolve_unknown,
		      a->begin_reused, b->begin_reused, a->ended_after_flush, b->ended_after_flush,
		      f->n_ops, m->n_lines);
	return false;
}

/* What the schedules held, so that a generator gone quiet is noticed. */
static struct {
	uint64_t closed, device, abandoned, open, deep, overlapping, other_thread, owed, incomplete,
		after_flush, reused;
} seen;

static void seen_add(const struct model *m)
{
	for (uint32_t i = 0; i < m->n_told; i++) {
		const struct feed_window *w = &m->told[i];

		seen.closed += !strcmp(w->status, "closed");
		seen.device += w->w.device && w->w.has_duration;
		seen.abandoned += !strcmp(w->status, "abandoned");
		seen.open += !strcmp(w->status, "open");
		seen.deep += w->w.depth > 2;
		seen.overlapping += w->w.overlaps > 0;
		seen.other_thread += w->w.tid && w->w.end_tid && w->w.end_tid != w->w.tid;
		seen.owed += w->w.operations > 0;
		seen.incomplete += w->w.incomplete;
		seen.reused += !strcmp(w->reason, "reused");
	}
	seen.after_flush += m->unpaired.ended_after_flush;
}

static bool schedule_holds(uint64_t seed)
{
	static struct schedule s;
	static struct model m;
	struct feed *f = feed_new();
	bool holds;

	schedule_make(&s, seed);
	model_run(&m, &s);
	schedule_feed(f, &s);
	holds = lists_same(f, &m) && counts_same(f, &m);
	feed_free(f);
	seen_add(&m);
	if (!holds)
		print_message("that was TMK_SEED=%" PRIu64 "\n", seed);
	return holds;
}

static void conf34_48_random_schedules(void **state)
{
	const char *only = getenv("TMK_SEED");
	uint64_t fresh = 0, failed = 0;

	(void)state;
	if (only) {
		assert_true(schedule_holds(strtoull(only, NULL, 0)));
		return;
	}
	/* The same ones each time, and some that nobody has seen before. */
	assert_int_equal(getrandom(&fresh, sizeof(fresh), 0), sizeof(fresh));
	for (uint64_t i = 0; i < SCHEDULES && failed < 5; i++)
		failed += !schedule_holds(i < SCHEDULES - 2000 ? i : fresh + i);
	assert_int_equal(failed, 0);
	assert_true(seen.closed > SCHEDULES && seen.device > 1000 && seen.abandoned > 1000);
	assert_true(seen.open > 1000 && seen.deep > 1000 && seen.overlapping > 1000);
	assert_true(seen.other_thread > 1000 && seen.owed > 1000 && seen.incomplete > 1000);
	assert_true(seen.after_flush > 100 && seen.reused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf34_48_random_schedules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
