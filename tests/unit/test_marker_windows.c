// SPDX-License-Identifier: BSD-2-Clause
/*
 * The library's windows, in the file that a session writes by itself and in the markers: burn's own test
 * cases over a simulated device, a device that fails at each point, tokens that are lies, and what
 * threads, forks and leaks do. The statements one by one are in tests/live/windows.c, which runs traced
 * and alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "runtime3/check.h"
#include "tickmark/tickmark.h"
#include "unit/marker_hook.h"

TMK_SITE(matmul, "operation:infer:Model::forward:0", "matmul", "x");

static char dir[] = "/tmp/tickmark-test-XXXXXX";
static char path[sizeof(dir) + 64];

static int group_setup(void **state)
{
	return mkdtemp(dir) ? hooks_install(state) : -1;
}

static int group_teardown(void **state)
{
	char command[sizeof(dir) + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command); /* NOLINT: a name that mkdtemp made */
}

/* A session with a file of its own: somebody listens. */
static struct tmk_session *session_new(void)
{
	struct tmk_config config = tmk_config_train("Model::forward");
	struct tmk_session *s;

	snprintf(path, sizeof(path), "%s/session.jsonl", dir);
	assert_int_equal(tmk_session_open(&s, path, &config), 0);
	return s;
}

/* Finishes it, and returns its file's text, which check accepts with all its rules; the caller frees it. */
static char *session_finish(struct tmk_session *s)
{
	struct tmk_check_counts counts = { 0 };
	struct stat st = { 0 };
	char *text;
	int fd;

	assert_int_equal(tmk_session_finish(s), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
	close(fd);
	assert_int_equal(tmk_check_memory(text, (size_t)st.st_size, NULL, NULL, 0, &counts), 0);
	return text;
}

/* How many lines hold all of these. */
#define lines_with(text, ...) lines_with_all(text, (const char *const[]){ __VA_ARGS__, NULL })

static size_t lines_with_all(const char *text, const char *const *parts)
{
	const char *line = text, *stop = text + strlen(text), *end;
	size_t n = 0;

	for (; line < stop && (end = memchr(line, '\n', (size_t)(stop - line))); line = end + 1) {
		bool all = true;

		for (size_t i = 0; all && parts[i]; i++)
			all = memmem(line, (size_t)(end - line), parts[i], strlen(parts[i])) !=
			      NULL;
		n += all;
	}
	return n;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void spin(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

/*
 * A device with a clock of its own. Work takes as many ticks as it is large; a lazy device queues it
 * until it is flushed or synced.
 */
struct device {
	uint64_t clock, queued, stamps[64];
	uint64_t n_windows;
	bool lazy, no_windows, empty_is_unmeasured, pending;
	int sync_calls, fail_sync_at;
	int fail_flush, fail_start, fail_end; /* what they return */
	uint32_t flushes, ends, abandons;
};

static void device_run(struct device *d)
{
	d->clock += d->queued;
	d->queued = 0;
}

static void device_work(struct device *d, uint64_t ticks)
{
	d->queued += ticks;
	if (!d->lazy)
		device_run(d);
}

static int device_sync(void *arg)
{
	struct device *d = arg;

	device_run(d);
	return ++d->sync_calls == d->fail_sync_at ? -EIO : 0;
}

static int device_flush(void *arg)
{
	struct device *d = arg;

	d->flushes++;
	device_run(d);
	return d->fail_flush;
}

static int device_start(void *arg, uint64_t *handle)
{
	struct device *d = arg;

	if (d->no_windows)
		return TMK_BACKEND_NO_WINDOWS;
	if (d->fail_start)
		return d->fail_start;
	*handle = d->n_windows++ % 64;
	d->stamps[*handle] = d->clock;
	return 0;
}

static int device_end(void *arg, uint64_t handle, const struct tmk_window_options *options,
		      struct tmk_duration *result)
{
	struct device *d = arg;

	(void)options;
	d->ends++;
	if (d->fail_end)
		return d->fail_end;
	result->state = d->pending ? TMK_DURATION_PENDING : TMK_DURATION_MEASURED;
	/* Its clock began at 1, for 0 is no stamp. */
	result->ticks = (struct tmk_ticks){ d->stamps[handle] + 1, d->clock + 1, 1000000 };
	return 0;
}

static void device_abandon(void *arg, uint64_t handle)
{
	(void)handle;
	((struct device *)arg)->abandons++;
}

static const struct tmk_backend backend = {
	sizeof(struct tmk_backend),
	device_sync,
	device_flush,
	device_start,
	device_end,
	device_abandon,
};

/* --- burn's test cases. `measured`: microseconds of the device, or what else tmk_duration_ns() says. */

struct job {
	struct device *device;
	uint64_t ticks;
	struct tmk_profile *inner; /* what is measured inside, or NULL */
	uint64_t inner_us, times;
};

static uint64_t measured(const struct tmk_duration *d)
{
	uint64_t ns;

	assert_int_equal(tmk_duration_ns(d, &ns), 0);
	return ns / 1000;
}

static void *job_run(void *arg)
{
	struct job *j = arg;
	struct tmk_duration d;
	void *out;

	j->times++;
	device_work(j->device, j->ticks);
	if (j->inner) {
		struct job inner = { j->device, 30, NULL, 0, 0 };

		assert_int_equal(tmk_profile_with_tokens(j->inner, job_run, &inner, &out, &d, NULL),
				 0);
		j->inner_us = measured(&d);
	}
	return j;
}

static void burn_work_inside_a_window_is_measured(void **state)
{
	for (int with_session = 0; with_session < 2; with_session++) {
		struct tmk_session *s = with_session ? session_new() : NULL;
		struct device device = { 0 };
		struct tmk_profile p = { s, "read", &backend, &device, { 0 } };
		struct job j = { &device, 50, NULL, 0, 0 };
		struct tmk_duration d;
		void *out;

		assert_int_equal(tmk_profile_with_tokens(&p, job_run, &j, &out, &d, NULL), 0);
		assert_ptr_equal(out, &j); /* success returns the value */
		assert_int_equal(d.method, TMK_METHOD_DEVICE);
		assert_int_equal(measured(&d), 50);
		if (s)
			free(session_finish(s));
	}
	(void)state;
}

static void burn_inner_is_within_outer(void **state)
{
	struct tmk_session *s = session_new();
	struct device device = { 0 };
	struct tmk_profile p = { s, "outer", &backend, &device, { 0 } },
			   inner = { s, "inner", &backend, &device, { 0 } };
	struct job j = { &device, 50, &inner, 0, 0 };
	struct tmk_duration d;
	char *text;

	(void)state;
	assert_int_equal(tmk_profile_with_tokens(&p, job_run, &j, NULL, &d, NULL), 0);
	assert_int_equal(j.inner_us, 30);
	assert_int_equal(measured(&d), 80);
	assert_int_equal(device.sync_calls, 0); /* conf36: nobody waited for it */
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"inner\"", "\"depth\":1", "\"parent\":"), 1);
	assert_int_equal(lines_with(text, "\"outer\"", "\"depth\":0"), 1);
	free(text);
}

static void burn_later_work_stays_out(void **state)
{
	struct tmk_session *s = session_new();
	struct device device = { 0 };
	struct tmk_window small, large;
	struct tmk_duration small_d, large_d;

	(void)state;
	assert_int_equal(tmk_window_start_on(s, &backend, &device, "small", &small), 0);
	assert_int_equal(tmk_window_start_on(s, &backend, &device, "large", &large), 0);
	device_work(&device, 10);
	assert_int_equal(tmk_window_end_timed(s, small, NULL, &small_d), 0);
	device_work(&device, 1000);
	assert_int_equal(tmk_window_end_timed(s, large, NULL, &large_d), 0);
	assert_int_equal(measured(&small_d), 10);
	assert_int_equal(measured(&large_d), 1010);
	free(session_finish(s));
}

static void burn_flush_moves_the_queue_into_its_window(void **state)
{
	struct tmk_session *s = session_new();
	struct device device = { .lazy = true };
	struct tmk_window lazy, flushed;
	struct tmk_duration lazy_d, flushed_d;
	const struct tmk_window_options flush = { .flush = 1 };
	char *text;

	(void)state;
	assert_int_equal(tmk_window_start_on(s, &backend, &device, "lazy", &lazy), 0);
	device_work(&device, 500);
	/* Nothing ran in it: an empty window has no duration, and that is no failure. */
	assert_int_equal(tmk_window_end_timed(s, lazy, NULL, &lazy_d), -ENODATA);
	assert_int_equal(lazy_d.state, TMK_DURATION_NOT_MEASURED);
	assert_int_equal(device.flushes, 0);
	assert_int_equal(tmk_window_start_on(s, &backend, &device, "flushed", &flushed), 0);
	device_work(&device, 500);
	assert_int_equal(tmk_window_end_timed(s, flushed, &flush, &flushed_d), 0);
	assert_int_equal(device.flushes, 1);
	assert_int_equal(measured(&flushed_d), 1000);
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"flushed\"", "\"flush\":true"), 1);
	assert_int_equal(lines_with(text, "\"lazy\"", "\"flush\":true"), 0);
	free(text);
}

static void *job_run_elsewhere(void *arg)
{
	pthread_t thread;
	void *out;

	assert_int_equal(pthread_create(&thread, NULL, job_run, arg), 0);
	assert_int_equal(pthread_join(thread, &out), 0);
	return out;
}

/* Would deadlock if anything were held meanwhile. */
static void burn_a_body_may_wait_for_another_thread(void **state)
{
	struct tmk_session *s = session_new();
	struct device device = { 0 };
	struct tmk_profile p = { s, "outer", &backend, &device, { 0 } },
			   inner = { s, "inner", &backend, &device, { 0 } };
	struct job j = { &device, 50, &inner, 0, 0 };
	struct tmk_duration d;
	void *out;

	(void)state;
	assert_int_equal(tmk_profile_with_tokens(&p, job_run_elsewhere, &j, &out, &d, NULL), 0);
	assert_ptr_equal(out, &j);
	assert_int_equal(measured(&d), 80);
	free(session_finish(s));
}

static void burn_system_time_of_the_default_device(void **state)
{
	struct tmk_session *s = session_new();
	struct tmk_profile p = { s, "system", NULL, NULL, { 0 } };
	struct device none = { 0 };
	struct job j = { &none, 0, NULL, 0, 0 };
	struct tmk_duration d;
	uint64_t ns;
	void *out;

	(void)state;
	for (int i = 0; i < 2; i++) {
		p.session = i ? NULL : s;
		assert_int_equal(tmk_profile_with_tokens(&p, job_run, &j, &out, &d, NULL), 0);
		assert_ptr_equal(out, &j);
		assert_int_equal(d.method, TMK_METHOD_SYSTEM);
		assert_int_equal(tmk_duration_ns(&d, &ns), 0);
		assert_true(ns > 0);
	}
	free(session_finish(s));
}

static void *job_unwind(void *arg)
{
	job_run(arg);
	pthread_exit(arg);
}

static void *profile_in_thread(void *arg)
{
	struct tmk_profile *p = arg;
	struct job j = { p->device, 10, NULL, 0, 0 };

	tmk_profile_with_tokens(p, job_unwind, &j, NULL, NULL, NULL);
	return NULL; /* not reached */
}

static void *system_time_in_thread(void *arg)
{
	struct tmk_profile *p = arg;
	struct job j = { p->device, 10, NULL, 0, 0 };

	tmk_profile_system_time(p, job_unwind, &j, NULL, NULL);
	return NULL; /* not reached */
}

static void *job_wait_for_ever(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

static void *cancelled_in_thread(void *arg)
{
	tmk_profile_with_tokens(arg, job_wait_for_ever, NULL, NULL, NULL, NULL);
	return NULL;
}

static void thread_run(void *(*run)(void *), void *arg, bool cancel)
{
	pthread_t thread;
	void *out;

	assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
	if (cancel)
		assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &out), 0);
	assert_true(out != NULL); /* it left by the unwinding, not by the return behind */
	if (cancel)
		assert_ptr_equal(out, PTHREAD_CANCELED);
}

static void burn_an_unwinding_body_abandons_and_the_next_measures(void **state)
{
	for (int with_session = 0; with_session < 2; with_session++) {
		struct tmk_session *s = with_session ? session_new() : NULL;
		struct device device = { 0 };
		struct tmk_profile p = { s, "unwound", &backend, &device, { 0 } };
		struct job j = { &device, 50, NULL, 0, 0 };
		struct tmk_duration d;
		char *text;

		thread_run(profile_in_thread, &p, false);
		thread_run(cancelled_in_thread, &p, true);
		assert_int_equal(device.abandons, 2);
		assert_int_equal(device.ends, 0);
		thread_run(system_time_in_thread, &p, false);
		p.name = "next";
		assert_int_equal(tmk_profile_with_tokens(&p, job_run, &j, NULL, &d, NULL), 0);
		assert_int_equal(measured(&d), 50);
		if (!s)
			continue;
		text = session_finish(s);
		assert_int_equal(lines_with(text, "\"unwound\"", "\"abandoned\""), 3);
		assert_int_equal(lines_with(text, "\"next\"", "\"closed\""), 1);
		free(text);
	}
	(void)state;
}

/* --- a device that fails at each point */

enum way { WITH_TOKENS, SYSTEM_TIME, WAYS };

struct fault {
	const char *where;
	struct device device;
	bool flush;
	enum way way;
	int err;
	bool body, output; /* the body ran; its output came through */
	enum tmk_duration_state state;
	const char *status; /* of the window's line; NULL: there is none */
	uint32_t abandons;
};

static const struct fault faults[] = {
	{ "nowhere", { 0 }, true, WITH_TOKENS, 0, true, true, TMK_DURATION_MEASURED, "closed", 0 },
	{ "the first sync",
	  { .fail_sync_at = 1 },
	  false,
	  SYSTEM_TIME,
	  -EIO,
	  false,
	  false,
	  TMK_DURATION_NOT_MEASURED,
	  NULL,
	  0 },
	{ "the second sync",
	  { .fail_sync_at = 2 },
	  false,
	  SYSTEM_TIME,
	  -EIO,
	  true,
	  false,
	  TMK_DURATION_FAILED,
	  "failed",
	  0 },
	{ "the first sync of one without windows",
	  { .no_windows = true, .fail_sync_at = 1 },
	  false,
	  WITH_TOKENS,
	  -EIO,
	  false,
	  false,
	  TMK_DURATION_NOT_MEASURED,
	  NULL,
	  0 },
	{ "the second sync of one without windows",
	  { .no_windows = true, .fail_sync_at = 2 },
	  false,
	  WITH_TOKENS,
	  -EIO,
	  true,
	  false,
	  TMK_DURATION_FAILED,
	  "failed",
	  0 },
	{ "start",
	  { .fail_start = -EBUSY },
	  false,
	  WITH_TOKENS,
	  -EBUSY,
	  true,
	  false,
	  TMK_DURATION_NOT_MEASURED,
	  NULL,
	  0 },
	{ "end",
	  { .fail_end = -ENODEV },
	  false,
	  WITH_TOKENS,
	  -ENODEV,
	  true,
	  false,
	  TMK_DURATION_FAILED,
	  "failed",
	  0 },
	{ "flush",
	  { .fail_flush = -ENOSPC },
	  true,
	  WITH_TOKENS,
	  -ENOSPC,
	  true,
	  false,
	  TMK_DURATION_FAILED,
	  "failed",
	  1 },
	{ "flush, of which nobody asked",
	  { .fail_flush = -ENOSPC },
	  false,
	  WITH_TOKENS,
	  0,
	  true,
	  true,
	  TMK_DURATION_MEASURED,
	  "closed",
	  0 },
};

static void callbacks_that_fail_at_each_point(void **state)
{
	for (size_t i = 0; i < 2 * sizeof(faults) / sizeof(faults[0]); i++) {
		const struct fault *fault = &faults[i / 2];
		struct tmk_session *s = i % 2 ? session_new() : NULL;
		struct device device = fault->device;
		struct tmk_profile p = { s, "w", &backend, &device, { fault->flush } };
		struct job j = { &device, 50, NULL, 0, 0 };
		struct tmk_duration d;
		void *out = &d;
		char *text;
		int err;

		print_message("%s fails, %s a session\n", fault->where, s ? "with" : "without");
		if (fault->way == WITH_TOKENS)
			err = tmk_profile_with_tokens(&p, job_run, &j, &out, &d, NULL);
		else
			err = tmk_profile_system_time(&p, job_run, &j, &out, &d);
		assert_int_equal(err, fault->err);
		assert_int_equal(j.times, fault->body);
		assert_ptr_equal(out, fault->output ? &j : NULL);
		assert_int_equal(d.state, fault->state);
		assert_int_equal(device.abandons, fault->abandons);
		if (err) {
			assert_non_null(strstr(tmk_last_error(), "'w'"));
			assert_non_null(strstr(tmk_last_error(), strerror(-err)));
		}
		if (!s)
			continue;
		text = session_finish(s);
		assert_int_equal(lines_with(text, "\"window\":"), fault->status != NULL);
		if (fault->status)
			assert_int_equal(lines_with(text, "\"window\":", fault->status), 1);
		free(text);
	}
	(void)state;
}

/* What a backend need not have. */
static void callbacks_that_are_not_there(void **state)
{
	struct tmk_session *s = session_new();
	struct device device = { 0 };
	struct tmk_backend no_end = { sizeof(no_end), .start = device_start,
				      .abandon = device_abandon };
	struct tmk_backend no_abandon = { sizeof(no_abandon), .start = device_start,
					  .end = device_end };
	struct tmk_backend no_start = { sizeof(no_start), .end = device_end };
	struct tmk_window w;
	char *text;

	(void)state;
	assert_int_equal(tmk_window_start_on(s, &no_end, &device, "no_end", &w), 0);
	assert_int_equal(tmk_window_end(s, w, NULL), -EOPNOTSUPP);
	assert_non_null(strstr(tmk_last_error(), "profiling windows are not supported by this "
						 "backend; use `profile`"));
	assert_int_equal(device.abandons, 1);
	assert_int_equal(tmk_window_end(s, w, NULL), -ENOENT); /* gone all the same */
	assert_int_equal(tmk_window_start_on(s, &no_abandon, &device, "no_abandon", &w), 0);
	tmk_window_abandon(s, w);
	assert_int_equal(device.ends, 1); /* closed, and thrown away */
	assert_int_equal(tmk_window_start_on(s, &no_start, &device, "no_start", &w), -EOPNOTSUPP);
	assert_non_null(strstr(tmk_last_error(), "not supported by this backend"));
	assert_true(!w.id && !w.opened_on);
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"no_end\"", "\"failed\""), 1);
	assert_int_equal(lines_with(text, "\"no_abandon\"", "\"abandoned\""), 1);
	assert_int_equal(lines_with(text, "\"no_start\""), 0);
	free(text);
}

/* --- what the device says, and when */

static void conf48_results_come_late_and_in_any_order(void **state)
{
	struct tmk_session *s = session_new();
	struct device device = { .pending = true };
	struct tmk_window w[4];
	struct tmk_duration d[4];
	const struct tmk_ticks ticks = { 1000, 1007, 1000000 }, back = { 9, 8, 0 };
	uint64_t ns;
	char *text;

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(tmk_window_start_on(s, &backend, &device, "late", &w[i]), 0);
		assert_int_equal(tmk_window_resolve(s, w[i], &ticks), -ENOENT); /* still open */
		assert_int_equal(tmk_window_end_timed(s, w[i], NULL, &d[i]), 0);
		assert_int_equal(tmk_duration_ns(&d[i], &ns), -EAGAIN);
	}
	assert_int_equal(tmk_window_resolve(s, w[2], &ticks), 0);
	assert_int_equal(tmk_window_resolve(s, w[2], &ticks), -ENOENT); /* twice */
	assert_int_equal(tmk_window_resolve(s, w[0], &back), 0);
	assert_int_equal(tmk_window_resolve_failed(s, w[1], -EIO), 0);
	assert_int_equal(measured(&d[2]), 7);
	assert_int_equal(tmk_duration_ns(&d[0], &ns), -ENODATA);
	assert_int_equal(tmk_duration_ns(&d[1], &ns), -EIO);
	assert_int_equal(tmk_duration_ns(&d[3], &ns), -EAGAIN);
	text = session_finish(s);
	assert_int_equal(tmk_duration_ns(&d[3], &ns), -ENODATA); /* never */
	assert_int_equal(lines_with(text, "\"late\"", "\"device\"", "\"duration_ns\":7000"), 1);
	assert_int_equal(lines_with(text, "\"late\"", "\"backend\""), 1);
	assert_int_equal(lines_with(text, "\"late\"", "\"failed\""), 1);
	assert_int_equal(lines_with(text, "\"late\"", "\"unresolved\""), 1);
	free(text);
}

static void ticks_to_nanoseconds(void **state)
{
	static const struct {
		struct tmk_ticks ticks;
		int err;
		uint64_t ns;
	} cases[] = {
		{ { 1, 2, 0 }, 0, 1 },
		{ { 10, 35, 1000000000 }, 0, 25 },
		{ { 1, 2, 1 }, 0, 1000000000 },
		{ { 1, 2, UINT64_MAX }, 0, 1 }, /* rounded down, but never to 0 */
		{ { 1, UINT64_MAX, UINT64_MAX }, 0, 999999999 },
		{ { 1, UINT64_MAX, 0 }, 0, UINT64_MAX - 1 },
		{ { 1, UINT64_MAX, 999999999 }, -ENODATA, 0 }, /* too large */
		{ { 1, UINT64_MAX, 1 }, -ENODATA, 0 },
		{ { 5, 5, 0 }, -ENODATA, 0 },
		{ { 5, 4, 0 }, -ENODATA, 0 },
		{ { UINT64_MAX, 1, 0 }, -ENODATA, 0 },
		{ { 0, 4, 0 }, -ENODATA, 0 },
		{ { 4, 0, 0 }, -ENODATA, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tmk_duration d = { TMK_DURATION_MEASURED, TMK_METHOD_DEVICE, cases[i].ticks,
					  0 };
		uint64_t ns = 77;

		assert_int_equal(tmk_duration_ns(&d, &ns), cases[i].err);
		assert_int_equal(ns, cases[i].err ? 77 : cases[i].ns);
	}
}

/* --- tokens */

static void conf50_tokens_as_text(void **state)
{
	static const struct tmk_window windows[] = {
		{ 0, 0 },
		{ 5, 7 },
		{ UINT64_MAX, UINT64_MAX },
		{ 1ull << 52, 0 },
	};
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		"5",
		"{\"id\":}",
		"{\"id\":-1,\"opened_on\":1}",
		"{\"id\":1.5}",
		"{\"id\":\"1\"}",
		"{\"id\":18446744073709551616}",
		"{\"id\":1,\"opened_on\":18446744073709551616}",
		"{\"id\":1,\"opened_on\":null}",
		"{\"id\":1} x",
		"{\"opened_on\":1}",
		"[1,2]",
	};
	struct tmk_window w;
	char text[TMK_WINDOW_TEXT_MAX], small[8];

	(void)state;
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		int n = tmk_window_format(windows[i], text, sizeof(text));

		assert_true(n > 0 && (size_t)n == strlen(text) && (size_t)n < sizeof(text));
		assert_int_equal(tmk_window_format(windows[i], small, sizeof(small)), n);
		assert_int_equal(strlen(small), sizeof(small) - 1);
		assert_int_equal(tmk_window_parse(text, &w), 0);
		assert_memory_equal(&w, &windows[i], sizeof(w));
	}
	assert_int_equal(tmk_window_parse("{\"id\":9}", &w), 0);
	assert_true(w.id == 9 && w.opened_on == 0);
	assert_int_equal(tmk_window_parse(" { \"opened_on\" : 3 , \"id\" : 9 } ", &w), 0);
	assert_true(w.id == 9 && w.opened_on == 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		w = (struct tmk_window){ 70, 71 };
		if (tmk_window_parse(bad[i], &w) != -EINVAL)
			fail_msg("%s is taken for a window", bad[i]);
		assert_true(w.id == 70 && w.opened_on == 71);
	}
}

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	return z ^ z >> 31;
}

static void forged_tokens_touch_nothing(void **state)
{
	struct tmk_session *s = session_new(), *other;
	struct tmk_config config = tmk_config_train("Model::forward");
	struct tmk_window real, elsewhere;
	uint64_t random = 1;
	char *text;

	(void)state;
	assert_int_equal(tmk_session_open(&other, NULL, &config), 0);
	assert_int_equal(tmk_window_start(s, "real", &real), 0);
	assert_int_equal(tmk_window_start(s, "elsewhere", &elsewhere), 0);
	for (int i = 0; i < 20000; i++) {
		struct tmk_window w = { random_next(&random), random_next(&random) };

		if (i % 3 == 0)
			w.id = real.id + 1 + random_next(&random) % 100 + 1;
		if (i % 3 == 1)
			w = (struct tmk_window){ real.id, real.opened_on + 1 + w.opened_on % 1000 };
		assert_int_equal(tmk_window_end(s, w, NULL), -ENOENT);
		assert_int_equal(tmk_window_resolve(s, w, NULL), -ENOENT);
		assert_int_equal(tmk_window_resolve_failed(s, w, -EIO), -ENOENT);
		assert_int_equal(tmk_window_fail(s, w, -EIO), -ENOENT);
		tmk_window_abandon(s, w);
	}
	/* A session's windows are its own. */
	assert_int_equal(tmk_window_end(other, elsewhere, NULL), -ENOENT);
	assert_int_equal(tmk_window_end(NULL, elsewhere, NULL), -ENOENT);
	assert_int_equal(tmk_window_end(s, elsewhere, NULL), 0);
	assert_int_equal(tmk_window_end(s, real, NULL), 0);
	assert_int_equal(tmk_session_finish(other), 0);
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"window\":"), 2);
	assert_int_equal(lines_with(text, "\"window\":", "\"closed\""), 2);
	free(text);
}

static void no_window_is_fine(void **state)
{
	struct tmk_session *s = session_new();
	const struct tmk_window none = { 0, 0 };
	struct tmk_duration d;
	char *text;

	(void)state;
	assert_int_equal(tmk_window_end(s, none, NULL), 0);
	assert_int_equal(tmk_window_end_timed(s, none, NULL, &d), -ENODATA);
	assert_int_equal(d.state, TMK_DURATION_NOT_MEASURED);
	tmk_window_abandon(s, none);
	assert_int_equal(tmk_window_resolve(s, none, NULL), 0);
	assert_int_equal(tmk_window_resolve_failed(s, none, -EIO), 0);
	assert_int_equal(tmk_window_fail(s, none, -EIO), 0);
	assert_int_equal(tmk_window_start(s, "x", NULL), -EINVAL);
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"window\":"), 0);
	free(text);
}

/* --- failures */

static void conf45_poison(void **state)
{
	struct tmk_session *s = session_new();
	struct tmk_window before, elsewhere, after;
	char *text;

	(void)state;
	assert_int_equal(tmk_window_start(s, "before", &before), 0);
	tmk_stream_enter(5);
	assert_int_equal(tmk_window_start(s, "elsewhere", &elsewhere), 0);
	tmk_stream_leave();
	tmk_stream_fail(s, -EIO);
	tmk_stream_fail(s, -EPERM); /* the first one counts */
	assert_int_equal(tmk_window_start(s, "after", &after), 0);
	assert_int_equal(tmk_window_end(s, after, NULL), 0);
	assert_int_equal(tmk_window_end(s, elsewhere, NULL), 0);
	assert_int_equal(tmk_window_end(s, before, NULL), -EIO);
	assert_int_equal(tmk_window_end(s, before, NULL), -ENOENT); /* consumed */
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"before\"", "\"failed\"", "\"EIO\"") +
				 lines_with(text, "\"before\"", "\"failed\"", "\"error\":5"),
			 1);
	assert_int_equal(lines_with(text, "\"window\":", "\"closed\""), 2);
	free(text);
}

/* --- fork */

static void a_child_has_none_of_its_parents_windows(void **state)
{
	struct tmk_session *s = session_new();
	struct tmk_window w, childs;
	int status;
	char *text;
	pid_t pid;

	(void)state;
	assert_int_equal(tmk_window_start(s, "parents", &w), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int bad = tmk_window_end(s, w, NULL) != -ENOENT;

		tmk_window_abandon(s, w);
		bad |= tmk_window_start(s, "childs", &childs) != 0;
		bad |= childs.id && (childs.id == w.id || tmk_window_end(s, childs, NULL));
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_int_equal(tmk_window_end(s, w, NULL), 0);
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"window\":"), 1);
	assert_int_equal(lines_with(text, "\"parents\"", "\"closed\""), 1);
	free(text);
}

/* A child whose parent's other thread was at work on windows in the moment of the fork. */
static void *windows_without_end(void *arg)
{
	bool *stop = arg;
	struct tmk_session *s;
	struct tmk_config config = tmk_config_train("Model::forward");
	struct tmk_window w;
	char file[sizeof(dir) + 64];

	snprintf(file, sizeof(file), "%s/busy.jsonl", dir);
	assert_int_equal(tmk_session_open(&s, file, &config), 0);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		tmk_window_start(s, "busy", &w);
		tmk_window_end(s, w, NULL);
	}
	assert_int_equal(tmk_session_finish(s), 0);
	return NULL;
}

static void fork_while_others_open_windows(void **state)
{
	struct tmk_session *s = session_new();
	bool stop = false;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, windows_without_end, &stop), 0);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (!pid) {
			struct tmk_window w;

			alarm(20); /* instead of a deadlock */
			tmk_window_start(s, "childs", &w);
			tmk_window_end(s, w, NULL);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	free(session_finish(s));
}

/* --- bounds */

/* Opens more than there may be, on several streams: the oldest are gone, and no others. */
static void leak(struct tmk_session *s, uint32_t n)
{
	struct tmk_window *w = calloc(n, sizeof(*w));

	assert_non_null(w);
	for (uint32_t i = 0; i < n; i++) {
		if (i % 2)
			tmk_stream_enter(i % 7);
		assert_int_equal(tmk_window_start(s, "leaked", &w[i]), 0);
		if (i % 2)
			tmk_stream_leave();
	}
	for (uint32_t i = 0; i < n; i += 97)
		assert_int_equal(tmk_window_end(s, w[i], NULL),
				 i < n - TMK_WINDOWS_MAX ? -ENOENT : 0);
	free(w);
}

static void a_leak_is_bounded(void **state)
{
	const uint32_t n = TMK_WINDOWS_MAX + 5000;
	struct tmk_config config = tmk_config_train("Model::forward");
	struct tmk_session *s = session_new();
	size_t closed = 0;
	char *text;

	(void)state;
	for (uint32_t i = 0; i < n; i += 97)
		closed += i >= n - TMK_WINDOWS_MAX;
	leak(s, n);
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"leaked\"", "\"limit\""), n - TMK_WINDOWS_MAX);
	assert_int_equal(lines_with(text, "\"leaked\"", "\"closed\""), closed);
	assert_int_equal(lines_with(text, "\"leaked\"", "\"finished\""), TMK_WINDOWS_MAX - closed);
	free(text);

	/* And where only a tracer watches. */
	assert_int_equal(tmk_session_open(&s, NULL, &config), 0);
	listen_start();
	leak(s, n);
	listen_stop();
	assert_int_equal(n_hits, n + n - TMK_WINDOWS_MAX + closed);
	assert_int_equal(tmk_session_finish(s), 0);
}

/* --- threads: whoever closes, resolves and abandons, each window ends once */

#define THREADS 4
#define ROUNDS 4000

struct racer {
	struct tmk_session *s;
	struct tmk_window *shared; /* of all racers; atomic, but not both at once */
	uint32_t number;
	uint64_t started, ended, missed;
};

static int racing_end(void *arg, uint64_t handle, const struct tmk_window_options *options,
		      struct tmk_duration *result)
{
	(void)arg;
	(void)handle;
	(void)options;
	result->state = TMK_DURATION_PENDING;
	return 0;
}

static void *race(void *arg)
{
	static const struct tmk_backend device = { sizeof(device), .start = device_start,
						   .end = racing_end };
	struct racer *r = arg;
	struct device here = { 0 };
	uint64_t random = r->number;

	for (int i = 0; i < ROUNDS; i++) {
		const struct tmk_ticks ticks = { 1, 2 + (uint64_t)i, 0 };
		struct tmk_window w;
		struct tmk_op op;
		int err;

		tmk_stream_enter(random_next(&random) % 3);
		op = tmk_op_begin(r->s, &matmul);
		if (i % 2)
			err = tmk_window_start(r->s, "host", &w);
		else
			err = tmk_window_start_on(r->s, &device, &here, "device", &w);
		assert_int_equal(err, 0);
		r->started++;
		/* Another racer may already be at it, by the copy in the shared place. */
		__atomic_store_n(&r->shared[r->number].opened_on, w.opened_on, __ATOMIC_RELAXED);
		__atomic_store_n(&r->shared[r->number].id, w.id, __ATOMIC_RELEASE);
		tmk_op_end(r->s, op, NULL);
		tmk_stream_leave();
		for (uint32_t k = 0; k < THREADS; k++) {
			struct tmk_window theirs;

			theirs.id = __atomic_load_n(&r->shared[k].id, __ATOMIC_ACQUIRE);
			theirs.opened_on =
				__atomic_load_n(&r->shared[k].opened_on, __ATOMIC_RELAXED);
			if (!theirs.id)
				continue;
			if (random_next(&random) % 8 == 0)
				tmk_window_abandon(r->s, theirs);
			else if (tmk_window_end(r->s, theirs, NULL))
				r->missed++;
			else
				r->ended++;
			if (random_next(&random) % 2)
				tmk_window_resolve(r->s, theirs, &ticks);
		}
	}
	return NULL;
}

static void threads_race_for_windows(void **state)
{
	struct tmk_session *s = session_new();
	struct tmk_window shared[THREADS] = { 0 };
	struct racer racers[THREADS];
	pthread_t threads[THREADS];
	uint64_t started = 0, ended = 0;
	char *text;

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){ s, shared, i, 0, 0, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		started += racers[i].started;
		ended += racers[i].ended;
	}
	text = session_finish(s);
	/* One line for each, and as many of them are ends as calls said that they ended one. */
	assert_int_equal(lines_with(text, "\"window\":"), started);
	assert_int_equal(started, (uint64_t)THREADS * ROUNDS);
	assert_int_equal(lines_with(text, "\"window\":", "\"closed\"") +
				 lines_with(text, "\"window\":", "\"not_measured\""),
			 ended);
	assert_int_equal(lines_with(text, "\"host\"", "\"unresolved\""), 0);
	free(text);
}

/* --- guards and streams */

static void guarded(struct tmk_session *s, int how)
{
	TMK_WINDOW_GUARD(guard, s, "guarded");
	TMK_STREAM_SCOPE(9);

	if (how == 0)
		return;
	if (how == 1)
		pthread_exit(s);
	assert_int_equal(tmk_window_guard_end(&guard, NULL), 0);
}

static void *guarded_in_thread(void *arg)
{
	guarded(arg, 1);
	return NULL;
}

static void conf44_guards(void **state)
{
	struct tmk_session *s = session_new();
	struct tmk_window w;
	char *text;

	(void)state;
	guarded(s, 0);
	guarded(s, 2);
	thread_run(guarded_in_thread, s, false);
	/* The scope was left: the thread is on its own stream again. */
	assert_int_equal(tmk_window_start(s, "own", &w), 0);
	assert_false(w.id & TMK_WINDOW_NAMED);
	assert_int_equal(tmk_window_end(s, w, NULL), 0);
	text = session_finish(s);
	assert_int_equal(lines_with(text, "\"guarded\"", "\"abandoned\""), 2);
	assert_int_equal(lines_with(text, "\"guarded\"", "\"closed\""), 1);
	free(text);
}

static void streams_nest_to_a_depth(void **state)
{
	struct tmk_session *s = session_new();
	struct tmk_window w;

	(void)state;
	tmk_stream_leave(); /* without an enter: nothing */
	for (uint64_t i = 0; i < TMK_STREAM_DEPTH; i++)
		assert_int_equal(tmk_stream_enter(UINT64_MAX - i), 0);
	assert_int_equal(tmk_stream_enter(1), -ENOSPC);
	assert_int_equal(tmk_stream_enter(2), -ENOSPC);
	for (uint64_t i = 0; i < TMK_STREAM_DEPTH + 2; i++) {
		uint64_t inner =
			i < 2 ? 0 : i - 2; /* the two that changed nothing are left first */

		assert_int_equal(tmk_window_start(s, "w", &w), 0);
		assert_int_equal(w.opened_on, UINT64_MAX - (TMK_STREAM_DEPTH - 1 - inner));
		assert_true(w.id & TMK_WINDOW_NAMED);
		tmk_window_abandon(s, w);
		tmk_stream_leave();
	}
	assert_int_equal(tmk_window_start(s, "w", &w), 0);
	assert_false(w.id & TMK_WINDOW_NAMED);
	tmk_window_abandon(s, w);
	free(session_finish(s));
}

/* --- markers */

static void the_markers_of_a_window(void **state)
{
	struct tmk_config config = tmk_config_train("Model::forward");
	const struct tmk_window_options flush = { .flush = 1 };
	const struct tmk_ticks ticks = { 1, 10, 0 };
	struct device device = { .pending = true };
	struct tmk_session *s;
	struct tmk_window w;
	struct hit *h;

	(void)state;
	assert_int_equal(tmk_session_open(&s, NULL, &config), 0);
	assert_int_equal(tmk_window_start_on(s, &backend, &device, "unheard", &w), 0);
	assert_true(!w.id && !w.opened_on && !device.n_windows); /* nobody listens */
	listen_start();
	tmk_stream_enter(42);
	assert_int_equal(tmk_window_start_on(s, &backend, &device, "heard", &w), 0);
	tmk_stream_leave();
	assert_int_equal(tmk_window_end(s, w, &flush), 0);
	assert_int_equal(tmk_window_resolve(s, w, &ticks), 0);
	listen_stop();
	assert_int_equal(n_hits, 3);
	h = &hits[0];
	assert_int_equal(h->kind, TMK_REC_WINDOW_START);
	assert_int_equal(desc_at(h->arg[2])->kind, TMK_DESC_NAME);
	assert_string_equal(desc_at(h->arg[2])->strings, "heard");
	assert_int_equal(h->arg[3], w.id);
	assert_int_equal(h->arg[4], 42);
	h = &hits[1];
	assert_int_equal(h->kind, TMK_REC_WINDOW_END);
	assert_int_equal(h->arg[0], hits[0].arg[0]);
	assert_int_equal(h->arg[2], hits[0].arg[2]);
	assert_int_equal(h->arg[3], w.id);
	assert_int_equal(h->arg[4], 42);
	assert_int_equal(h->arg[5], TMK_WINDOW_PENDING | TMK_HOW_FLUSH | TMK_HOW_DEVICE);
	h = &hits[2];
	assert_int_equal(h->kind, TMK_REC_WINDOW_RESOLVE);
	assert_int_equal(h->arg[2], w.id);
	assert_int_equal(h->arg[3], 42);
	assert_int_equal(h->arg[4], 9);
	assert_int_equal(h->arg[5] & TMK_HOW_OUTCOME, TMK_WINDOW_CLOSED);
	assert_int_equal(tmk_session_finish(s), 0);
}

/* A window that was opened while somebody listened is closed also when nobody does any more. */
static void the_listener_leaves_in_between(void **state)
{
	struct tmk_config config = tmk_config_train("Model::forward");
	struct tmk_session *s;
	struct tmk_window w;

	(void)state;
	assert_int_equal(tmk_session_open(&s, NULL, &config), 0);
	listen_start();
	assert_int_equal(tmk_window_start(s, "w", &w), 0);
	listen_stop();
	spin(1000);
	assert_int_equal(tmk_window_end(s, w, NULL), 0);
	assert_int_equal(tmk_window_end(s, w, NULL), -ENOENT);
	assert_int_equal(n_hits, 1);
	assert_int_equal(tmk_session_finish(s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(burn_work_inside_a_window_is_measured),
		cmocka_unit_test(burn_inner_is_within_outer),
		cmocka_unit_test(burn_later_work_stays_out),
		cmocka_unit_test(burn_flush_moves_the_queue_into_its_window),
		cmocka_unit_test(burn_a_body_may_wait_for_another_thread),
		cmocka_unit_test(burn_system_time_of_the_default_device),
		cmocka_unit_test(burn_an_unwinding_body_abandons_and_the_next_measures),
		cmocka_unit_test(callbacks_that_fail_at_each_point),
		cmocka_unit_test(callbacks_that_are_not_there),
		cmocka_unit_test(conf48_results_come_late_and_in_any_order),
		cmocka_unit_test(ticks_to_nanoseconds),
		cmocka_unit_test(conf50_tokens_as_text),
		cmocka_unit_test(forged_tokens_touch_nothing),
		cmocka_unit_test(no_window_is_fine),
		cmocka_unit_test(conf45_poison),
		cmocka_unit_test(a_child_has_none_of_its_parents_windows),
		cmocka_unit_test(fork_while_others_open_windows),
		cmocka_unit_test(a_leak_is_bounded),
		cmocka_unit_test(threads_race_for_windows),
		cmocka_unit_test(conf44_guards),
		cmocka_unit_test(streams_nest_to_a_depth),
		cmocka_unit_test(the_markers_of_a_window),
		cmocka_unit_test(the_listener_leaves_in_between),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
