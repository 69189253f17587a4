// SPDX-License-Identifier: BSD-2-Clause
/*
 * Windows: numbers them, asks their backends, fires the markers, and hands the lines to the session's own
 * file where it writes one. What is open is window_table.c's to know.
 *
 * No lock is held here, so backends may call anything. The file's clock is read between the two markers,
 * as for operations.
 */
#define TMK_NO_INLINE /* here the functions that the header inlines are defined */
#include "marker/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "marker/desc.h"
#include "marker/duration.h"
#include "marker/error.h"
#include "marker/identity.h"
#include "marker/intern.h"
#include "marker/stream.h"
#include "marker/switch.h"
#include "marker/window_ending.h"

#define UNSUPPORTED "profiling windows are not supported by this backend; use `profile`"

/* --- the session's table */

/*
 * A parent's table in a forked child: somebody may have held its locks and been at work on it, so it is
 * not even freed. It is kept where a search for leaks finds it.
 */
static void table_leave(struct tmk_session_windows *w)
{
	static struct tmk_session_windows *left; /* atomic */

	w->next = __atomic_load_n(&left, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&left, &w->next, w, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* Made when it is first needed. In a forked child it takes the place of the parent's. */
static struct tmk_window_table *table_get(struct tmk_session *s)
{
	struct tmk_session_windows *there = __atomic_load_n(&s->windows, __ATOMIC_ACQUIRE), *made;

	if (there && there->fork_depth == tmk_fork_depth())
		return there->table;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	made->fork_depth = tmk_fork_depth();
	made->table = tmk_window_table_new(TMK_WINDOWS_MAX, tmk_session_own_file(s) != NULL);
	if (made->table && __atomic_compare_exchange_n(&s->windows, &there, made, false,
						       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		if (there)
			table_leave(there);
		return made->table;
	}
	tmk_window_table_free(made->table);
	free(made);
	/* Somebody was faster, or there is no memory. */
	there = __atomic_load_n(&s->windows, __ATOMIC_ACQUIRE);
	return there && there->fork_depth == tmk_fork_depth() ? there->table : NULL;
}

/* Without making one: nothing is registered then. */
static struct tmk_window_table *table_find(const struct tmk_session *s)
{
	const struct tmk_session_windows *there =
		s ? __atomic_load_n(&s->windows, __ATOMIC_ACQUIRE) : NULL;

	return there && there->fork_depth == tmk_fork_depth() ? there->table : NULL;
}

struct tmk_window_table *tmk_session_window_table(struct tmk_session *s)
{
	return table_get(s);
}

static struct tmk_stream_id stream_here(void)
{
	struct tmk_stream_id id = { 0 };

	id.number = tmk_thread_stream(&id.named);
	return id;
}

/* A thread takes numbers by the dozen, so that threads do not meet over each. */
#define IDS_AT_ONCE 64u

static uint64_t window_id_next(bool named)
{
	static __thread uint32_t last __attribute__((tls_model("initial-exec")));
	static uint32_t taken;

	if (last % IDS_AT_ONCE == 0)
		last = __atomic_fetch_add(&taken, IDS_AT_ONCE, __ATOMIC_RELAXED);
	return tmk_process_nonce() << 32 | ++last | (named ? TMK_WINDOW_NAMED : 0);
}

/* --- errors, as texts for people */

static int not_registered(struct tmk_window w)
{
	return tmk_error_note(-ENOENT, "it was closed before, or is of another session or process",
			      "window {%" PRIu64 ", %" PRIu64 "}: not registered", w.id,
			      w.opened_on);
}

static int window_error(const struct tmk_desc *desc, int err)
{
	struct tmk_str name = { "", 0 };
	const char *advice = "the window is closed, and has no duration";

	tmk_desc_strings(desc, &name, 1);
	if (err == -EOPNOTSUPP)
		advice = UNSUPPORTED;
	return tmk_error_note(err, advice, "window '%.*s'", (int)name.len, name.data);
}

/* --- the backend's side */

int tmk_backend_end(const struct tmk_window_way *way, const struct tmk_window_options *options,
		    struct tmk_duration *d)
{
	const struct tmk_backend *b = way->backend;
	int err = 0;

	*d = (struct tmk_duration){ .method = TMK_METHOD_DEVICE };
	if (!b->end) {
		if (b->abandon)
			b->abandon(way->device, way->handle);
		return -EOPNOTSUPP;
	}
	if (options->flush && b->flush)
		err = b->flush(way->device);
	if (err) {
		tmk_backend_abandon(way);
		return err;
	}
	err = b->end(way->device, way->handle, options, d);
	if (!err && d->state == TMK_DURATION_FAILED)
		err = d->error < 0 ? d->error : -EIO;
	return err;
}

void tmk_backend_abandon(const struct tmk_window_way *way)
{
	const struct tmk_window_options none = { 0 };
	struct tmk_duration thrown = { .method = TMK_METHOD_DEVICE };

	if (!way->backend)
		return;
	if (way->backend->abandon)
		way->backend->abandon(way->device, way->handle);
	else if (way->backend->end)
		way->backend->end(way->device, way->handle, &none, &thrown);
}

static struct tmk_window_way way_of(const struct tmk_window_entry *e)
{
	return (struct tmk_window_way){ e->start.backend, e->start.device, e->start.handle };
}

/* --- opening */

static void start_mark(const struct tmk_session *s, const struct tmk_window_opened *w)
{
	if (!tmk_switch_traced())
		return;
	tmk_desc_touch(s->desc);
	tmk_desc_touch(w->name);
	tmk_mark_window_start(s->id, (uintptr_t)s->desc, (uintptr_t)w->name, w->token.id,
			      w->token.opened_on, w->step);
}

static void end_mark(const struct tmk_session *s, const struct tmk_desc *name, struct tmk_window w,
		     uint64_t how)
{
	if (!tmk_switch_traced())
		return;
	tmk_desc_touch(s->desc);
	tmk_desc_touch(name);
	tmk_mark_window_end(s->id, (uintptr_t)s->desc, (uintptr_t)name, w.id, w.opened_on, how);
}

static void overflow_handle(struct tmk_session *s, struct tmk_window_table *t,
			    struct tmk_window added);

int tmk_window_open(struct tmk_session *s, const struct tmk_window_way *way, const char *name,
		    struct tmk_window *w)
{
	struct tmk_window_table *t = table_get(s);
	struct tmk_window_opened start = {
		.name = tmk_intern_name(name),
		.step = tmk_session_step_now(s),
		.tid = tmk_thread_id(),
		.stream = stream_here(),
		.backend = way->backend,
		.device = way->device,
		.handle = way->handle,
	};

	*w = (struct tmk_window){ 0, 0 };
	if (!t)
		return -ENOMEM;
	start.token.id = window_id_next(start.stream.named);
	start.token.opened_on = start.stream.number;
	if (tmk_session_own_file(s)) /* who else would number them */
		start.n = __atomic_add_fetch(&s->last_window, 1, __ATOMIC_RELAXED);
	start_mark(s, &start);
	start.time = tmk_session_file_now();
	if (tmk_window_table_add(t, &start)) {
		end_mark(s, start.name, start.token, TMK_WINDOW_ABANDONED);
		return -ENOMEM;
	}
	*w = start.token;
	overflow_handle(s, t, start.token);
	return 0;
}

static bool somebody_listens(const struct tmk_session *s)
{
	return s && (tmk_switch_traced() || tmk_session_own_file(s));
}

int tmk_window_start_on_slow(struct tmk_session *s, const struct tmk_backend *backend, void *device,
			     const char *name, struct tmk_window *w)
{
	struct tmk_window_way way = { backend, device, 0 };
	int err = 0;

	if (!w)
		return tmk_error_note(-EINVAL, "pass the address of one", "window: no result");
	*w = (struct tmk_window){ 0, 0 };
	if (!somebody_listens(s))
		return 0;
	if (backend)
		err = backend->start ? backend->start(device, &way.handle) : TMK_BACKEND_NO_WINDOWS;
	if (err == TMK_BACKEND_NO_WINDOWS)
		return tmk_error_note(-EOPNOTSUPP, UNSUPPORTED, "window '%s'", name ? name : "");
	if (err)
		return tmk_error_note(err, "nothing was opened", "window '%s'", name ? name : "");
	err = tmk_window_open(s, &way, name, w);
	if (!err)
		return 0;
	tmk_backend_abandon(&way);
	return tmk_error_note(err, "nothing was opened", "window '%s'", name ? name : "");
}

int tmk_window_start_slow(struct tmk_session *s, const char *name, struct tmk_window *w)
{
	return tmk_window_start_on_slow(s, NULL, NULL, name, w);
}

/* --- closing */

static void line_write(struct tmk_session *s, struct tmk_window_entry *e)
{
	struct tmk_session_file *f = tmk_session_own_file(s);

	if (f)
		tmk_session_file_window(f, &e->line);
}

static void resolve_mark(const struct tmk_session *s, struct tmk_window w,
			 const struct tmk_window_ending *end)
{
	uint64_t ns = 0, how = end->outcome | TMK_HOW_DEVICE;

	if (!tmk_switch_traced())
		return;
	if (end->outcome == TMK_WINDOW_CLOSED)
		tmk_ticks_ns(&end->duration.ticks, &ns);
	if (end->outcome == TMK_WINDOW_FAILED)
		how |= (uint64_t)(-end->err & 0xffff) << TMK_HOW_ERROR_SHIFT;
	tmk_desc_touch(s->desc);
	tmk_mark_window_resolve(s->id, (uintptr_t)s->desc, w.id, w.opened_on, ns, how);
}

/* A device's result: the end of a window that was pending. The entry is ours. */
static void pending_finish(struct tmk_session *s, struct tmk_window_entry *e,
			   struct tmk_window_ending *end)
{
	struct tmk_window_found none = { 0 };

	tmk_window_ending_decide(e, &none, end->err, end);
	resolve_mark(s, e->start.token, end);
	tmk_window_line_result(&e->line, end);
	line_write(s, e);
	if (e->pending)
		tmk_duration_set(e->pending, &end->duration);
	free(e);
}

/*
 * Marks the end of a window that is closed, and writes its line, unless it waits for its device. A
 * device's result that is there at once is told like one that comes later.
 */
static void closed_finish(struct tmk_session *s, struct tmk_window_table *t,
			  struct tmk_window_entry *e, struct tmk_window_ending *end)
{
	bool device_result = e->start.backend && end->outcome == TMK_WINDOW_CLOSED;
	struct tmk_window_ending marked = *end;

	if (device_result)
		marked.outcome = TMK_WINDOW_PENDING;
	end_mark(s, e->start.name, e->start.token, tmk_window_how(&marked, e->start.backend));
	if (device_result)
		resolve_mark(s, e->start.token, end);
	if (end->outcome == TMK_WINDOW_PENDING) {
		struct tmk_window_ending late = { 0 };

		if (tmk_window_table_release(t, e, &late.duration))
			return;
		late.err = late.duration.error;
		pending_finish(s, e, &late);
		return;
	}
	tmk_window_table_release(t, e, NULL);
	tmk_window_line_result(&e->line, end);
	line_write(s, e);
	free(e);
}

/* The error that an ending is to whoever asked for it. */
static int ending_error(const struct tmk_desc *name, const struct tmk_window_ending *end)
{
	if (end->outcome == TMK_WINDOW_FAILED)
		return window_error(name, end->err);
	return end->outcome == TMK_WINDOW_NOT_MEASURED ? window_error(name, -ENODATA) : 0;
}

/*
 * The short way, of a window that only a tracer watches: the tracer's clock measures it, and its mark is
 * all there is to do. False: it is to be closed the long way.
 */
static bool close_marked(struct tmk_session *s, struct tmk_window_table *t, struct tmk_window w,
			 const struct tmk_window_options *options, int *err)
{
	struct tmk_window_ending end = { .outcome = TMK_WINDOW_CLOSED,
					 .flush = options && options->flush };
	const struct tmk_desc *name;

	if (!tmk_window_table_drop(t, w, &name, &end.err))
		return false;
	if (end.err)
		end.outcome = TMK_WINDOW_FAILED;
	end_mark(s, name, w, tmk_window_how(&end, NULL));
	*err = ending_error(name, &end);
	return true;
}

int tmk_window_close(struct tmk_session *s, struct tmk_window w,
		     const struct tmk_window_options *options, int sync_err, struct tmk_duration *d)
{
	const struct tmk_window_options none = { 0 };
	struct tmk_window_table *t = table_find(s);
	struct tmk_window_entry *e;
	struct tmk_window_ending end = { 0 };
	struct tmk_window_found found;
	struct tmk_window_way way;
	int err = sync_err;
	uint64_t now;

	if (t && !d && !err && close_marked(s, t, w, options, &err))
		return err;
	now = tmk_session_file_now();
	e = t ? tmk_window_table_take(t, w) : NULL;
	if (d)
		tmk_duration_set(d, &end.duration);
	if (!e)
		return not_registered(w);
	options = options ? options : &none;
	end.flush = options->flush;
	way = way_of(e);
	if (way.backend) {
		err = tmk_backend_end(&way, options, &end.duration);
		now = tmk_session_file_now();
	}
	tmk_window_table_close(t, e, now, end.flush, &found);
	tmk_window_ending_decide(e, &found, err, &end);
	tmk_window_line_fill(e, &found, end.flush);
	e->pending = end.outcome == TMK_WINDOW_PENDING ? d : NULL;
	if (d)
		tmk_duration_set(d, &end.duration);
	err = ending_error(e->start.name, &end);
	closed_finish(s, t, e, &end);
	return err;
}

/* Gives up a window that was taken. */
static void entry_abandon(struct tmk_session *s, struct tmk_window_table *t,
			  struct tmk_window_entry *e, enum tmk_window_outcome outcome,
			  const char *reason)
{
	struct tmk_window_ending end = { .outcome = outcome, .reason = reason };
	struct tmk_window_way way = way_of(e);
	struct tmk_window_found found;
	uint64_t now = tmk_session_file_now();

	tmk_backend_abandon(&way);
	tmk_window_table_close(t, e, now, false, &found);
	tmk_window_line_fill(e, &found, false);
	closed_finish(s, t, e, &end);
}

static void pending_give_up(struct tmk_session *s, struct tmk_window_entry *e)
{
	struct tmk_window_ending end = { .outcome = TMK_WINDOW_NOT_MEASURED,
					 .reason = "unresolved" };

	tmk_window_line_result(&e->line, &end);
	line_write(s, e);
	if (e->pending)
		tmk_duration_set(e->pending, &end.duration);
	free(e);
}

static void overflow_handle(struct tmk_session *s, struct tmk_window_table *t,
			    struct tmk_window added)
{
	struct tmk_window_entry *e;

	while ((e = tmk_window_table_overflow(t, added))) {
		if (e->state == TMK_ENTRY_PENDING)
			pending_give_up(s, e);
		else
			entry_abandon(s, t, e, TMK_WINDOW_LIMIT, "limit");
	}
}

/* --- the rest of the calls */

int tmk_window_end_slow(struct tmk_session *s, struct tmk_window w,
			const struct tmk_window_options *options)
{
	return tmk_window_close(s, w, options, 0, NULL);
}

int tmk_window_end_timed(struct tmk_session *s, struct tmk_window w,
			 const struct tmk_window_options *options, struct tmk_duration *d)
{
	if (w.id)
		return tmk_window_close(s, w, options, 0, d);
	if (d)
		*d = (struct tmk_duration){ .state = TMK_DURATION_NOT_MEASURED };
	return -ENODATA;
}

void tmk_window_abandon_slow(struct tmk_session *s, struct tmk_window w)
{
	struct tmk_window_table *t = table_find(s);
	struct tmk_window_entry *e = t ? tmk_window_table_take(t, w) : NULL;

	if (e)
		entry_abandon(s, t, e, TMK_WINDOW_ABANDONED, "program");
}

static int resolve(struct tmk_session *s, struct tmk_window w, const struct tmk_duration *result)
{
	struct tmk_window_table *t = table_find(s);
	struct tmk_window_ending end = { .duration = *result, .err = result->error };
	struct tmk_window_entry *e;
	int err;

	if (!w.id)
		return 0;
	err = t ? tmk_window_table_resolve(t, w, result, &e) : -ENOENT;
	if (err)
		return not_registered(w);
	if (e)
		pending_finish(s, e, &end);
	return 0;
}

int tmk_window_resolve(struct tmk_session *s, struct tmk_window w, const struct tmk_ticks *ticks)
{
	struct tmk_duration result = { .method = TMK_METHOD_DEVICE };

	if (ticks) {
		result.state = TMK_DURATION_MEASURED;
		result.ticks = *ticks;
	}
	return resolve(s, w, &result);
}

int tmk_window_resolve_failed(struct tmk_session *s, struct tmk_window w, int err)
{
	struct tmk_duration result = { .state = TMK_DURATION_FAILED,
				       .method = TMK_METHOD_DEVICE,
				       .error = err < 0 ? err : -EIO };

	return resolve(s, w, &result);
}

void tmk_stream_fail(struct tmk_session *s, int err)
{
	struct tmk_window_table *t = table_find(s);
	struct tmk_stream_id id = stream_here();

	if (t)
		tmk_window_table_fail_stream(t, &id, err < 0 ? err : -EIO);
}

int tmk_window_fail(struct tmk_session *s, struct tmk_window w, int err)
{
	struct tmk_window_table *t = table_find(s);

	if (!w.id)
		return 0;
	if (!t || tmk_window_table_fail(t, w, err < 0 ? err : -EIO))
		return not_registered(w);
	return 0;
}

/*
 * No marks: the mark of the session's end says it to a tracer. And no backend: its device may be gone.
 * The newest first, so that an inner window still finds the outer one around it.
 */
void tmk_windows_finish(struct tmk_session *s)
{
	struct tmk_window_table *t = table_find(s);
	struct tmk_window_ending end = { .outcome = TMK_WINDOW_ABANDONED, .reason = "finished" };
	uint64_t now = t ? tmk_session_file_now() : 0;
	struct tmk_window_entry *e;
	struct tmk_window_found found;

	if (!t && s->windows)
		table_leave(s->windows);
	if (!t)
		return;
	while ((e = tmk_window_table_take_newest(t))) {
		if (e->state == TMK_ENTRY_PENDING) {
			pending_give_up(s, e);
			continue;
		}
		tmk_window_table_close(t, e, now, false, &found);
		tmk_window_table_release(t, e, NULL);
		tmk_window_line_fill(e, &found, false);
		e->line.end_tid = 0; /* nobody closed it */
		tmk_window_line_result(&e->line, &end);
		line_write(s, e);
		free(e);
	}
	tmk_window_table_free(t);
	free(s->windows);
	s->windows = NULL;
}

/* --- the same as the inline functions, for callers that have none */

int tmk_window_start(struct tmk_session *s, const char *name, struct tmk_window *w)
{
	return tmk_window_start_slow(s, name, w);
}

int tmk_window_start_on(struct tmk_session *s, const struct tmk_backend *backend, void *device,
			const char *name, struct tmk_window *w)
{
	return tmk_window_start_on_slow(s, backend, device, name, w);
}

int tmk_window_end(struct tmk_session *s, struct tmk_window w,
		   const struct tmk_window_options *options)
{
	return w.id ? tmk_window_end_slow(s, w, options) : 0;
}

void tmk_window_abandon(struct tmk_session *s, struct tmk_window w)
{
	if (w.id)
		tmk_window_abandon_slow(s, w);
}
