// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measuring a body: by a window of its device, or by the host's clock between two syncs. Works whether
 * anybody listens or not; with a session, the window stands in it.
 *
 * The body may leave by an exception, by pthread_exit() or by cancellation. What must then be given up
 * hangs on a local variable with a cleanup, for which this file is compiled with -fexceptions.
 */
#define TMK_NO_INLINE
#include <errno.h>
#include <stdlib.h>

#include "marker/duration.h"
#include "marker/error.h"
#include "marker/window.h"

static const struct tmk_backend no_backend = {
	sizeof(struct tmk_backend), NULL, NULL, NULL, NULL, NULL
};

/* What is open while the body runs. */
struct open_window {
	struct tmk_session *session; /* NULL: `way` alone is open */
	struct tmk_window window;
	struct tmk_window_way way;
};

static void open_window_leave(struct open_window **o)
{
	if (!*o)
		return;
	if ((*o)->session)
		tmk_window_abandon((*o)->session, (*o)->window);
	else
		tmk_backend_abandon(&(*o)->way);
}

static int sync_device(const struct tmk_profile *p)
{
	const struct tmk_backend *b = p->backend ? p->backend : &no_backend;

	return b->sync ? b->sync(p->device) : 0;
}

static int failed_note(const struct tmk_profile *p, int err, const char *advice)
{
	return tmk_error_note(err, advice, "profile '%s'", p->name ? p->name : "");
}

static void duration_none(struct tmk_duration *d)
{
	if (d)
		*d = (struct tmk_duration){ .state = TMK_DURATION_NOT_MEASURED };
}

/* Without a session. */
static int host_duration(uint64_t start, int sync_err, struct tmk_duration *d)
{
	struct tmk_duration value = {
		.state = sync_err ? TMK_DURATION_FAILED : TMK_DURATION_MEASURED,
		.method = TMK_METHOD_SYSTEM,
		.ticks = { start, tmk_session_file_now(), 0 },
		.error = sync_err,
	};

	if (d)
		tmk_duration_set(d, &value);
	return sync_err;
}

static void *body_run(tmk_body_fn body, void *arg, struct open_window *open)
{
	struct open_window *guard __attribute__((cleanup(open_window_leave))) = open;
	void *result = body(arg);

	guard = NULL;
	return result;
}

int tmk_profile_system_time(const struct tmk_profile *p, tmk_body_fn body, void *arg, void **output,
			    struct tmk_duration *d)
{
	struct open_window open = { 0 };
	uint64_t start;
	void *result;
	int err;

	if (output)
		*output = NULL;
	duration_none(d);
	err = sync_device(p);
	if (err)
		return failed_note(p, err, "the device could not be synced, so nothing was run");
	/* Without memory for a window, the body is measured all the same. */
	if (p->session && !tmk_window_open(p->session, &open.way, p->name, &open.window))
		open.session = p->session;
	start = tmk_session_file_now();
	result = body_run(body, arg, &open);
	err = sync_device(p);
	if (open.session)
		err = tmk_window_close(p->session, open.window, &p->options, err, d);
	else
		err = host_duration(start, err, d);
	if (output && (!err || err == -ENODATA))
		*output = result;
	return err && err != -ENODATA ? failed_note(p, err, "the measurement is lost") : err;
}

/* The session's window, or where there is none the backend's own, which writes *d itself. */
static int open_window_end(struct open_window *o, const struct tmk_profile *p,
			   struct tmk_duration *d)
{
	struct tmk_duration here = { .state = TMK_DURATION_NOT_MEASURED };
	uint64_t ns;
	int err;

	if (o->session)
		return tmk_window_close(o->session, o->window, &p->options, 0, d);
	d = d ? d : &here;
	err = tmk_backend_end(&o->way, &p->options, d);
	if (err) {
		d->state = TMK_DURATION_FAILED;
		d->error = err;
		return failed_note(p, err, "the measurement is lost");
	}
	err = tmk_duration_ns(d, &ns);
	return err == -EAGAIN ? 0 : err;
}

int tmk_profile_with_tokens(const struct tmk_profile *p, tmk_body_fn body, void *arg, void **output,
			    struct tmk_duration *d, struct tmk_window *w)
{
	struct open_window open = { .way = { p->backend, p->device, 0 } };
	void *result;
	int err = TMK_BACKEND_NO_WINDOWS;

	if (output)
		*output = NULL;
	if (w)
		*w = (struct tmk_window){ 0, 0 };
	duration_none(d);
	if (p->backend && p->backend->start)
		err = p->backend->start(p->device, &open.way.handle);
	if (err == TMK_BACKEND_NO_WINDOWS)
		return tmk_profile_system_time(p, body, arg, output, d);
	if (!err && p->session) {
		err = tmk_window_open(p->session, &open.way, p->name, &open.window);
		if (err)
			tmk_backend_abandon(&open.way);
		open.session = p->session;
	}
	if (err) {
		body(arg); /* the caller asked for work to be done; only the measurement is lost */
		return failed_note(p, err, "the window could not be opened; the body was run");
	}
	if (w)
		*w = open.window;
	result = body_run(body, arg, &open);
	err = open_window_end(&open, p, d);
	if (output && (!err || err == -ENODATA))
		*output = result;
	return err;
}
