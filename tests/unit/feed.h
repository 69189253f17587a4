/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of the assembler: builds capture records field by field, feeds them, and collects what a
 * sink is told, as copies.
 */
#ifndef TICKMARK_TEST_FEED_H
#define TICKMARK_TEST_FEED_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "assemble/assemble.h"

#define FEED_LOG 4096

struct feed_op {
	uint32_t session;
	char name[32], output[32];
	bool has_output;
	char site[256]; /* the rendered members */
	uint32_t site_index;
	struct tmk_r3_op op; /* pointers in it are dead */
};

struct feed_edge {
	uint32_t session;
	char from[32], to[32];
	struct tmk_r3_edge edge;
};

struct feed_unfinished {
	uint32_t session;
	char name[32], reason[16];
	struct tmk_r3_unfinished u;
};

struct feed_window {
	uint32_t session;
	char name[32], status[16], reason[24]; /* reason "": none */
	struct tmk_r3_window w;		       /* pointers in it are dead */
	struct {
		char name[32]; /* "": all others */
		uint64_t count, total_ns;
	} totals[8];
	size_t n_totals; /* may exceed the 8 that are kept */
};

struct feed {
	struct tmk_assembler *a;
	struct tmk_sink sinks[2];
	struct feed_op ops[FEED_LOG];
	struct feed_edge edges[FEED_LOG];
	struct feed_unfinished unfinished[FEED_LOG];
	struct feed_window windows[FEED_LOG];
	size_t n_ops, n_edges, n_unfinished,
		n_windows; /* may exceed FEED_LOG; only the first are kept */
	size_t n_sessions, n_tides, n_losses, n_finishes;
	const struct tmk_session_view *sessions[64];
	uint64_t loss;
	struct tmk_finish_view finish; /* valid until feed_free() */
	int fail_op_with;	       /* what on_op returns */
};

static inline void feed_text(char *to, size_t cap, struct tmk_str s)
{
	size_t n = s.len < cap - 1 ? s.len : cap - 1;

	if (n)
		memcpy(to, s.data, n);
	to[n] = '\0';
}

static inline int feed_on_session(void *self, const struct tmk_session_view *s)
{
	struct feed *f = self;

	assert_int_equal(s->index, f->n_sessions);
	if (f->n_sessions < 64)
		f->sessions[f->n_sessions] = s;
	f->n_sessions++;
	return 0;
}

static inline int feed_on_op(void *self, const struct tmk_op_view *v)
{
	struct feed *f = self;

	assert_true(v->session->index < f->n_sessions); /* announced before */
	if (f->n_ops < FEED_LOG) {
		struct feed_op *o = &f->ops[f->n_ops];

		o->session = v->session->index;
		o->op = v->op;
		o->site_index = v->site_index;
		o->has_output = v->op.output.data != NULL;
		feed_text(o->name, sizeof(o->name), v->op_name);
		feed_text(o->output, sizeof(o->output), v->op.output);
		feed_text(o->site, sizeof(o->site),
			  (struct tmk_str){ v->site->json, v->site->len });
	}
	f->n_ops++;
	return f->fail_op_with;
}

static inline int feed_on_edge(void *self, const struct tmk_edge_view *v)
{
	struct feed *f = self;

	assert_true(v->session->index < f->n_sessions); /* announced before */
	if (f->n_edges < FEED_LOG) {
		struct feed_edge *e = &f->edges[f->n_edges];

		e->session = v->session->index;
		e->edge = v->edge;
		feed_text(e->from, sizeof(e->from), v->edge.from);
		feed_text(e->to, sizeof(e->to), v->edge.to);
	}
	f->n_edges++;
	return 0;
}

static inline int feed_on_unfinished(void *self, const struct tmk_unfinished_view *v)
{
	struct feed *f = self;

	assert_true(v->session->index < f->n_sessions); /* announced before */
	if (f->n_unfinished < FEED_LOG) {
		struct feed_unfinished *u = &f->unfinished[f->n_unfinished];

		u->session = v->session->index;
		u->u = v->u;
		feed_text(u->name, sizeof(u->name), v->op_name);
		snprintf(u->reason, sizeof(u->reason), "%s", v->u.reason);
	}
	f->n_unfinished++;
	return 0;
}

static inline int feed_on_window(void *self, const struct tmk_window_view *v)
{
	struct feed *f = self;

	assert_true(v->session->index < f->n_sessions); /* announced before */
	if (f->n_windows < FEED_LOG) {
		struct feed_window *w = &f->windows[f->n_windows];

		w->session = v->session->index;
		w->w = v->w;
		feed_text(w->name, sizeof(w->name), v->w.name);
		snprintf(w->status, sizeof(w->status), "%s", v->w.status);
		snprintf(w->reason, sizeof(w->reason), "%s", v->w.reason ? v->w.reason : "");
		w->n_totals = v->n_totals;
		for (size_t i = 0; i < v->n_totals && i < 8; i++) {
			feed_text(w->totals[i].name, sizeof(w->totals[i].name),
				  v->totals[i].op_name);
			w->totals[i].count = v->totals[i].count;
			w->totals[i].total_ns = v->totals[i].total_ns;
		}
	}
	f->n_windows++;
	return 0;
}

static inline int feed_on_loss(void *self, uint64_t lost)
{
	struct feed *f = self;

	f->n_losses++;
	f->loss = lost;
	return 0;
}

static inline int feed_on_tide(void *self)
{
	((struct feed *)self)->n_tides++;
	return 0;
}

static inline int feed_on_finish(void *self, const struct tmk_finish_view *v)
{
	struct feed *f = self;

	f->n_finishes++;
	f->finish = *v;
	return 0;
}

static const struct tmk_sink_ops feed_ops = {
	.name = "feed",
	.on_session = feed_on_session,
	.on_op = feed_on_op,
	.on_edge = feed_on_edge,
	.on_unfinished = feed_on_unfinished,
	.on_window = feed_on_window,
	.on_loss = feed_on_loss,
	.on_tide = feed_on_tide,
	.on_finish = feed_on_finish,
};

/* `sink`: one more besides the collecting one, or NULL. */
static inline struct feed *feed_new_with(const struct tmk_sink *sink)
{
	struct feed *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->sinks[0] = (struct tmk_sink){ &feed_ops, f };
	if (sink)
		f->sinks[1] = *sink;
	assert_int_equal(tmk_assembler_new(&f->a, f->sinks, sink ? 2 : 1), 0);
	return f;
}

static inline struct feed *feed_new(void)
{
	return feed_new_with(NULL);
}

static inline void feed_free(struct feed *f)
{
	tmk_assembler_free(f->a);
	free(f);
}

/* A process and a thread that records are of. */
struct feed_who {
	uint32_t incarnation, tgid, tid;
};

static inline struct tmk_rec feed_head(uint8_t kind, size_t bytes, struct feed_who w, uint64_t time)
{
	return (struct tmk_rec){ .bytes = (uint16_t)bytes,
				 .kind = kind,
				 .source = TMK_SOURCE_MARKER,
				 .incarnation = w.incarnation,
				 .tgid = w.tgid,
				 .tid = w.tid,
				 .time = time };
}

static inline int feed_rec(struct feed *f, const void *rec)
{
	return tmk_assembler_feed(f->a, rec, ((const struct tmk_rec *)rec)->bytes);
}

/*
 * Builds a describe record in `to` (of 8 KiB); `strings` is `bytes` bytes that hold `count` strings.
 * Returns its length.
 */
static inline size_t feed_describe_build(char *to, struct feed_who w, uint64_t object,
					 uint64_t session_id, uint16_t kind, uint16_t flags,
					 const char *strings, uint32_t bytes, uint32_t count)
{
	size_t len = (sizeof(struct tmk_rec_describe) + sizeof(struct tmk_desc) + bytes + 7) & ~7ul;
	struct tmk_rec_describe r = {
		.h = feed_head(TMK_REC_DESCRIBE, len, w, 1),
		.object = object,
		.session_id = session_id,
	};
	struct tmk_desc d = {
		.magic = TMK_DESC_MAGIC,
		.kind = kind,
		.flags = flags,
		.bytes = bytes,
		.count = count,
		.serial = kind == TMK_DESC_SESSION ? session_id : 0,
	};

	memset(to, 0, len);
	memcpy(to, &r, sizeof(r));
	memcpy(to + sizeof(r), &d, sizeof(d));
	memcpy(to + sizeof(r) + sizeof(d), strings, bytes);
	return len;
}

static inline int feed_describe(struct feed *f, struct feed_who w, uint64_t object,
				uint64_t session_id, uint16_t kind, uint16_t flags,
				const char *strings, uint32_t bytes, uint32_t count)
{
	_Alignas(8) char rec[8192];

	feed_describe_build(rec, w, object, session_id, kind, flags, strings, bytes, count);
	return feed_rec(f, rec);
}

/* `strings`: each followed by '\n', so that they are easy to write down. */
static inline int feed_describe_text(struct feed *f, struct feed_who w, uint64_t object,
				     uint64_t session_id, uint16_t kind, uint16_t flags,
				     const char *strings)
{
	char blob[4096];
	size_t n = strlen(strings);
	uint32_t count = 0;

	assert_true(n <= sizeof(blob));
	for (size_t i = 0; i < n; i++) {
		blob[i] = strings[i] == '\n' ? '\0' : strings[i];
		count += strings[i] == '\n';
	}
	return feed_describe(f, w, object, session_id, kind, flags, blob, (uint32_t)n, count);
}

static inline void feed_session(struct feed *f, struct feed_who w, uint64_t session_id)
{
	assert_int_equal(feed_describe_text(f, w, 0x1000 + session_id, session_id, TMK_DESC_SESSION,
					    0, "Model::forward\ntrain\nrelease\n"),
			 0);
}

static inline void feed_site(struct feed *f, struct feed_who w, uint64_t site, const char *strings)
{
	assert_int_equal(feed_describe_text(f, w, site, 1, TMK_DESC_SITE, 0, strings), 0);
}

static inline void feed_name(struct feed *f, struct feed_who w, uint64_t object, const char *name)
{
	assert_int_equal(feed_describe_text(f, w, object, 1, TMK_DESC_NAME, 0, name), 0);
}

static inline void feed_edge_site(struct feed *f, struct feed_who w, uint64_t site,
				  const char *strings)
{
	assert_int_equal(feed_describe_text(f, w, site, 1, TMK_DESC_EDGE, 0, strings), 0);
}

static inline int feed_begin(struct feed *f, struct feed_who w, uint64_t session_id, uint64_t token,
			     uint64_t site, uint64_t step, uint64_t time)
{
	struct tmk_rec_op_begin r = {
		.h = feed_head(TMK_REC_OP_BEGIN, sizeof(r), w, time),
		.session_id = session_id,
		.site = site,
		.token = token,
		.step = step,
		.stream = 7,
	};

	return feed_rec(f, &r);
}

static inline int feed_end(struct feed *f, struct feed_who w, uint64_t session_id, uint64_t token,
			   uint64_t output, uint64_t step, uint64_t time)
{
	struct tmk_rec_op_end r = {
		.h = feed_head(TMK_REC_OP_END, sizeof(r), w, time),
		.session_id = session_id,
		.token = token,
		.step = step,
		.output = output,
	};

	return feed_rec(f, &r);
}

static inline int feed_edge(struct feed *f, struct feed_who w, uint64_t session_id, uint64_t site,
			    uint64_t step, uint64_t duration, uint64_t time)
{
	struct tmk_rec_edge r = {
		.h = feed_head(TMK_REC_EDGE, sizeof(r), w, time),
		.session_id = session_id,
		.site = site,
		.token = 1,
		.step = step,
		.duration_ns = duration,
	};

	return feed_rec(f, &r);
}

static inline int feed_op_begin_on(struct feed *f, struct feed_who w, uint64_t session_id,
				   uint64_t token, uint64_t site, uint64_t stream, uint64_t time)
{
	struct tmk_rec_op_begin r = {
		.h = feed_head(TMK_REC_OP_BEGIN, sizeof(r), w, time),
		.session_id = session_id,
		.site = site,
		.token = token | TMK_TOKEN_NAMED,
		.stream = stream,
	};

	return feed_rec(f, &r);
}

/* What a window is known by in its process and session. */
struct feed_key {
	uint64_t id, opened_on;
};

static inline int feed_window_start(struct feed *f, struct feed_who w, uint64_t session_id,
				    uint64_t name, struct feed_key key, uint64_t step,
				    uint64_t time)
{
	struct tmk_rec_window r = {
		.h = feed_head(TMK_REC_WINDOW_START, sizeof(r), w, time),
		.session_id = session_id,
		.name = name,
		.id = key.id,
		.opened_on = key.opened_on,
		.detail = step,
	};

	return feed_rec(f, &r);
}

static inline int feed_window_end(struct feed *f, struct feed_who w, uint64_t session_id,
				  uint64_t name, struct feed_key key, uint64_t how, uint64_t time)
{
	struct tmk_rec_window r = {
		.h = feed_head(TMK_REC_WINDOW_END, sizeof(r), w, time),
		.session_id = session_id,
		.name = name,
		.id = key.id,
		.opened_on = key.opened_on,
		.detail = how,
	};

	return feed_rec(f, &r);
}

static inline int feed_window_resolve(struct feed *f, struct feed_who w, uint64_t session_id,
				      struct feed_key key, uint64_t duration, uint64_t how,
				      uint64_t time)
{
	struct tmk_rec_window_resolve r = {
		.h = feed_head(TMK_REC_WINDOW_RESOLVE, sizeof(r), w, time),
		.session_id = session_id,
		.id = key.id,
		.opened_on = key.opened_on,
		.duration_ns = duration,
		.how = how,
	};

	return feed_rec(f, &r);
}

static inline int feed_marker(struct feed *f, struct feed_who w, uint8_t kind, uint64_t session_id,
			      uint64_t time)
{
	struct tmk_rec_session r = {
		.h = feed_head(kind, sizeof(r), w, time),
		.session_id = session_id,
	};

	return feed_rec(f, &r);
}

static inline int feed_process(struct feed *f, struct feed_who w, uint32_t ns_pid, const char *comm)
{
	struct tmk_rec_process r = {
		.h = feed_head(TMK_REC_PROCESS, sizeof(r), w, 1),
		.ns_pid = ns_pid,
	};

	for (size_t i = 0; i < sizeof(r.comm) && comm[i]; i++)
		r.comm[i] = comm[i];
	return feed_rec(f, &r);
}

static inline int feed_gone(struct feed *f, struct feed_who w, uint64_t time, bool known,
			    uint32_t status)
{
	struct tmk_rec_gone r = {
		.h = feed_head(TMK_REC_GONE, sizeof(r), w, time),
		.known = known,
		.status = status,
	};

	return feed_rec(f, &r);
}

static inline int feed_exec(struct feed *f, struct feed_who w, uint64_t time)
{
	struct tmk_rec r = feed_head(TMK_REC_EXEC, sizeof(r), w, time);

	return feed_rec(f, &r);
}

static inline int feed_tide(struct feed *f, uint64_t time, uint64_t lost)
{
	struct tmk_rec_tide r = {
		.h = feed_head(TMK_REC_TIDE, sizeof(r), (struct feed_who){ 0 }, time),
		.lost = lost,
	};

	return feed_rec(f, &r);
}

static inline struct tmk_rec_end feed_end_record(enum tmk_capture_status status, uint64_t time)
{
	return (struct tmk_rec_end){
		.h = feed_head(TMK_REC_END, sizeof(struct tmk_rec_end), (struct feed_who){ 0 },
			       time),
		.status = status,
	};
}

static inline int feed_capture_end(struct feed *f, enum tmk_capture_status status, uint64_t time)
{
	struct tmk_rec_end r = feed_end_record(status, time);

	return feed_rec(f, &r);
}

#endif /* TICKMARK_TEST_FEED_H */
