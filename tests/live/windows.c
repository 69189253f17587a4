// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program with profiling windows, for whoever watches it: a tracer, its own file, or both.
 *
 *	windows statements [FILE]	one step a conformance statement, numbered like it; checks what the
 *					calls return itself
 *	windows die			opens windows, and dies with them
 *	windows hold			opens one, says so, and closes it when it is told by a line on stdin
 *	windows clocked N		N windows, each also timed by its own clock
 *	windows leak N			N windows that are never closed
 *	windows busy			windows and operations on several streams without end, until SIGTERM
 *
 * Waits for a tracer before it begins, but for `statements` with TMK_TEST_ALONE in its environment.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tickmark/tickmark.h"

TMK_SITE(work, "operation:infer:Model::forward:0", "matmul", "x");
TMK_SITE(queued, "operation:infer:Model::forward:1", "softmax", "x");

static struct tmk_session *session;
static volatile sig_atomic_t told_to_stop;

static void on_term(int signo)
{
	(void)signo;
	told_to_stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void spin(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

#define EXPECT(what, value)                                                                 \
	do {                                                                                \
		long long got_ = (what), want_ = (value);                                   \
                                                                                            \
		if (got_ != want_) {                                                        \
			fprintf(stderr, "windows: line %d: %s is %lld and not %lld (%s)\n", \
				__LINE__, #what, got_, want_, tmk_last_error());            \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

static struct tmk_window start(const char *name)
{
	struct tmk_window w;

	EXPECT(tmk_window_start(session, name, &w), 0);
	if (session)
		EXPECT(w.id != 0, 1);
	return w;
}

static void op_run(uint64_t ns)
{
	struct tmk_op op = tmk_op_begin(session, &work);

	spin(ns);
	tmk_op_end(session, op, NULL);
}

static void in_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, run, arg), 0);
	EXPECT(pthread_join(thread, NULL), 0);
}

/* --- a device: a clock of its own, and callbacks that fail where they are told to */

struct device {
	uint64_t ticks; /* 12 to the microsecond */
	int sync_calls, fail_sync_at;
	int fail_start, fail_end, fail_flush, no_windows, pending, no_stamps;
	uint64_t handles;
	int open, abandoned;
};

static int device_sync(void *arg)
{
	struct device *d = arg;

	return ++d->sync_calls == d->fail_sync_at ? -EIO : 0;
}

static int device_flush(void *arg)
{
	return ((struct device *)arg)->fail_flush;
}

static int device_start(void *arg, uint64_t *handle)
{
	struct device *d = arg;

	if (d->no_windows)
		return TMK_BACKEND_NO_WINDOWS;
	if (d->fail_start)
		return d->fail_start;
	*handle = ++d->handles;
	d->open++;
	return 0;
}

static int device_end(void *arg, uint64_t handle, const struct tmk_window_options *options,
		      struct tmk_duration *result)
{
	struct device *d = arg;

	(void)options;
	d->open--;
	if (d->fail_end)
		return d->fail_end;
	if (d->pending) {
		result->state = TMK_DURATION_PENDING;
		return 0;
	}
	if (d->no_stamps)
		return 0;
	result->state = TMK_DURATION_MEASURED;
	result->ticks = (struct tmk_ticks){ 1000, 1000 + 12 * handle, 12000000 };
	return 0;
}

static void device_abandon(void *arg, uint64_t handle)
{
	struct device *d = arg;

	(void)handle;
	d->open--;
	d->abandoned++;
}

static const struct tmk_backend device_backend = {
	sizeof(struct tmk_backend),
	device_sync,
	device_flush,
	device_start,
	device_end,
	device_abandon,
};

/* --- the statements */

static void s34_keys(void)
{
	struct tmk_window a, b, crossed;

	tmk_stream_enter(1);
	a = start("s34_one");
	tmk_stream_leave();
	tmk_stream_enter(2);
	b = start("s34_two");
	tmk_stream_leave();
	EXPECT(a.opened_on, 1);
	EXPECT(b.opened_on, 2);
	EXPECT(a.id == b.id, 0);
	crossed = (struct tmk_window){ a.id, b.opened_on };
	EXPECT(tmk_window_end(session, crossed, NULL), -ENOENT);
	EXPECT(tmk_window_end(session, a, NULL), 0);
	EXPECT(tmk_window_end(session, b, NULL), 0);
}

static void *s35_closer(void *arg)
{
	struct tmk_window *w = arg;

	tmk_stream_enter(20);
	op_run(20000);
	EXPECT(tmk_window_end(session, *w, NULL), 0);
	tmk_stream_leave();
	return NULL;
}

static void s35_closed_elsewhere(void)
{
	struct tmk_window w, other;

	tmk_stream_enter(10);
	w = start("s35");
	op_run(20000);
	tmk_stream_leave();
	tmk_stream_enter(20);
	other = start("s35_closers");
	tmk_stream_leave();
	in_thread(s35_closer, &w);
	EXPECT(tmk_window_end(session, other, NULL), 0);
}

static void s36_nested(void)
{
	struct tmk_window outer = start("s36_outer"), inner;

	op_run(10000);
	inner = start("s36_inner");
	op_run(10000);
	EXPECT(tmk_window_end(session, inner, NULL), 0);
	EXPECT(tmk_window_end(session, outer, NULL), 0);
}

static void s37_overlapping(void)
{
	struct tmk_window a = start("s37_a"), b;

	spin(20000);
	b = start("s37_b");
	spin(20000);
	EXPECT(tmk_window_end(session, a, NULL), 0);
	spin(20000);
	EXPECT(tmk_window_end(session, b, NULL), 0);
}

static void s38_double(void)
{
	struct tmk_window a = start("s38"), b = start("s38_intact");
	struct tmk_window forged[] = { { 1, 0 },
				       { UINT64_MAX, UINT64_MAX },
				       { a.id + 100, a.opened_on },
				       { a.id, a.opened_on + 1 },
				       { a.id ^ TMK_WINDOW_NAMED, a.opened_on } };

	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		EXPECT(tmk_window_end(session, forged[i], NULL), -ENOENT);
		tmk_window_abandon(session, forged[i]);
	}
	EXPECT(tmk_window_end(session, a, NULL), 0);
	EXPECT(tmk_window_end(session, a, NULL), -ENOENT);
	EXPECT(tmk_window_end(session, b, NULL), 0);
}

static void s39_abandoned(void)
{
	struct tmk_window w = start("s39");

	tmk_window_abandon(session, w);
	tmk_window_abandon(session, w);
	EXPECT(tmk_window_end(session, w, NULL), -ENOENT);
	w = start("s39_next");
	EXPECT(tmk_window_end(session, w, NULL), 0);
}

static void s41_not_measured(void)
{
	struct device d = { .no_stamps = 1 };
	struct tmk_duration duration;
	struct tmk_ticks backwards = { 100, 99, 0 }, missing = { 0, 5, 0 },
			 wild = { 1, UINT64_MAX, 1 };
	struct tmk_ticks *stamps[] = { &backwards, &missing, &wild, NULL };
	struct tmk_window w;
	uint64_t ns;

	EXPECT(tmk_window_start_on(session, &device_backend, &d, "s41_none", &w), 0);
	EXPECT(tmk_window_end_timed(session, w, NULL, &duration), -ENODATA);
	EXPECT(tmk_duration_ns(&duration, &ns), -ENODATA);
	d.pending = 1;
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
		EXPECT(tmk_window_start_on(session, &device_backend, &d, "s41_stamps", &w), 0);
		EXPECT(tmk_window_end_timed(session, w, NULL, &duration), 0);
		EXPECT(tmk_duration_ns(&duration, &ns), -EAGAIN);
		EXPECT(tmk_window_resolve(session, w, stamps[i]), 0);
		EXPECT(tmk_duration_ns(&duration, &ns), -ENODATA);
	}
	EXPECT(d.open, 0);
}

static void *body(void *arg)
{
	++*(int *)arg;
	op_run(10000);
	return arg;
}

static void s42_system_time(void)
{
	struct device d = { 0 };
	struct tmk_profile p = { session, "s42", &device_backend, &d, { 0 } };
	struct tmk_duration duration;
	int ran = 0;
	uint64_t ns;
	void *out;

	EXPECT(tmk_profile_system_time(&p, body, &ran, &out, &duration), 0);
	EXPECT(out == &ran && ran == 1 && d.sync_calls == 2, 1);
	EXPECT(duration.method, TMK_METHOD_SYSTEM);
	EXPECT(tmk_duration_ns(&duration, &ns) == 0 && ns >= 10000, 1);
	d = (struct device){ .fail_sync_at = 1 };
	p.name = "s42_first";
	EXPECT(tmk_profile_system_time(&p, body, &ran, &out, &duration), -EIO);
	EXPECT(ran == 1 && !out, 1);
	d = (struct device){ .fail_sync_at = 2 };
	p.name = "s42_second";
	EXPECT(tmk_profile_system_time(&p, body, &ran, &out, &duration), -EIO);
	EXPECT(ran == 2 && !out, 1);
	EXPECT(tmk_duration_ns(&duration, &ns), -EIO);
}

static void s43_fallbacks(void)
{
	struct device d = { .fail_start = -EBUSY };
	struct tmk_profile p = { session, "s43_failed", &device_backend, &d, { 0 } };
	struct tmk_duration duration;
	int ran = 0;
	void *out;

	EXPECT(tmk_profile_with_tokens(&p, body, &ran, &out, &duration, NULL), -EBUSY);
	EXPECT(ran == 1 && !out, 1);
	d = (struct device){ .no_windows = 1 };
	p.name = "s43_system";
	EXPECT(tmk_profile_with_tokens(&p, body, &ran, &out, &duration, NULL), 0);
	EXPECT(out == &ran && ran == 2 && d.sync_calls == 2, 1);
	EXPECT(duration.method, TMK_METHOD_SYSTEM);
	d = (struct device){ .fail_end = -ENODEV };
	p.name = "s43_end";
	EXPECT(tmk_profile_with_tokens(&p, body, &ran, &out, &duration, NULL), -ENODEV);
	EXPECT(ran == 3 && !out, 1);
	d = (struct device){ 0 };
	p.name = "s43_device";
	EXPECT(tmk_profile_with_tokens(&p, body, &ran, &out, &duration, NULL), 0);
	EXPECT(out == &ran && duration.method == TMK_METHOD_DEVICE, 1);
}

static void *leaving_body(void *arg)
{
	(void)arg;
	pthread_exit(NULL);
}

static void *s44_leaver(void *arg)
{
	struct tmk_profile p = { session, "s44_exit", &device_backend, arg, { 0 } };

	tmk_profile_with_tokens(&p, leaving_body, NULL, NULL, NULL, NULL);
	return NULL;
}

static void *sleeping_body(void *arg)
{
	*(volatile int *)arg = 1;
	while (!told_to_stop)
		usleep(1000);
	return NULL;
}

struct s44_cancelled {
	struct device *device;
	volatile int in_body;
};

static void *s44_sleeper(void *arg)
{
	struct s44_cancelled *c = arg;
	struct tmk_profile p = { session, "s44_cancel", &device_backend, c->device, { 0 } };

	tmk_profile_with_tokens(&p, sleeping_body, (void *)&c->in_body, NULL, NULL, NULL);
	return NULL;
}

static int s44_guarded(int leave)
{
	TMK_WINDOW_GUARD(guard, session, "s44_guard");

	if (leave)
		return 0;
	return tmk_window_guard_end(&guard, NULL);
}

static void s44_unwound(void)
{
	struct device d = { 0 };
	struct s44_cancelled c = { &d, 0 };
	pthread_t thread;

	in_thread(s44_leaver, &d);
	EXPECT(d.abandoned, 1);
	EXPECT(pthread_create(&thread, NULL, s44_sleeper, &c), 0);
	while (!c.in_body)
		usleep(1000);
	EXPECT(pthread_cancel(thread), 0);
	EXPECT(pthread_join(thread, NULL), 0);
	EXPECT(d.abandoned, 2);
	EXPECT(d.open, 0);
	EXPECT(s44_guarded(1), 0);
	EXPECT(s44_guarded(0), 0);
}

static void s45_poisoned(void)
{
	struct tmk_window a, b, other, later;

	tmk_stream_enter(45);
	a = start("s45_a");
	b = start("s45_b");
	tmk_stream_leave();
	other = start("s45_other_stream");
	tmk_stream_enter(45);
	tmk_stream_fail(session, -EIO);
	later = start("s45_later");
	EXPECT(tmk_window_end(session, a, NULL), -EIO);
	EXPECT(tmk_window_end(session, b, NULL), -EIO);
	EXPECT(tmk_window_end(session, later, NULL), 0);
	tmk_stream_leave();
	EXPECT(tmk_window_end(session, other, NULL), 0);
	EXPECT(tmk_window_end(session, a, NULL), -ENOENT);
}

static void s46_membership(void)
{
	struct tmk_op owed, open, foreign;
	struct tmk_window w;

	tmk_stream_enter(461);
	owed = tmk_op_begin(session, &work);
	tmk_stream_leave();
	tmk_stream_enter(462);
	foreign = tmk_op_begin(session, &work);
	tmk_stream_leave();
	tmk_stream_enter(461);
	w = start("s46");
	tmk_op_end(session, owed, NULL);
	tmk_op_end(session, foreign, NULL);
	op_run(5000);
	spin(50000); /* idle */
	open = tmk_op_begin(session, &queued);
	EXPECT(tmk_window_end(session, w, NULL), 0);
	tmk_op_end(session, open, NULL);
	tmk_stream_leave();
}

static void s47_flush(void)
{
	struct tmk_window_options flush = { .flush = 1 };
	struct tmk_op late;
	struct tmk_window w;

	tmk_stream_enter(47);
	w = start("s47");
	late = tmk_op_begin(session, &queued);
	EXPECT(tmk_window_end(session, w, &flush), 0);
	spin(1000);
	tmk_op_end(session, late, NULL);
	tmk_stream_leave();
}

static void s48_device(void)
{
	struct device d = { .pending = 1 };
	struct tmk_duration duration[2];
	struct tmk_ticks first = { 500, 500 + 12 * 1000, 12000000 },
			 second = { 9, 9 + 24000, 12000000 };
	struct tmk_window w[2];
	uint64_t ns;

	EXPECT(tmk_window_start_on(session, &device_backend, &d, "s48_first", &w[0]), 0);
	EXPECT(tmk_window_start_on(session, &device_backend, &d, "s48_second", &w[1]), 0);
	EXPECT(tmk_window_resolve(session, w[0], &first), -ENOENT); /* still open */
	EXPECT(tmk_window_end_timed(session, w[0], NULL, &duration[0]), 0);
	EXPECT(tmk_window_end_timed(session, w[1], NULL, &duration[1]), 0);
	EXPECT(tmk_window_resolve(session, w[1], &second), 0);
	EXPECT(tmk_window_resolve(session, w[0], &first), 0);
	EXPECT(tmk_window_resolve(session, w[0], &first), -ENOENT);
	EXPECT(tmk_duration_ns(&duration[0], &ns) == 0 && ns == 1000000, 1);
	EXPECT(tmk_duration_ns(&duration[1], &ns) == 0 && ns == 2000000, 1);
	EXPECT(tmk_window_start_on(session, &device_backend, &d, "s48_failed", &w[0]), 0);
	EXPECT(tmk_window_end(session, w[0], NULL), 0);
	EXPECT(tmk_window_resolve_failed(session, w[0], -EIO), 0);
	EXPECT(tmk_window_start_on(session, &device_backend, &d, "s48_never", &w[0]), 0);
	EXPECT(tmk_window_end(session, w[0], NULL), 0);
}

static void *s50_closer(void *arg)
{
	struct tmk_window w;

	EXPECT(tmk_window_parse(arg, &w), 0);
	EXPECT(tmk_window_end(session, w, NULL), 0);
	return NULL;
}

static void s50_text(void)
{
	char text[TMK_WINDOW_TEXT_MAX];
	struct tmk_window w;

	tmk_stream_enter(UINT64_MAX);
	w = start("s50");
	tmk_stream_leave();
	EXPECT(tmk_window_format(w, text, sizeof(text)) > 0, 1);
	in_thread(s50_closer, text);
	EXPECT(tmk_window_parse("{\"id\":5}", &w), 0);
	EXPECT(w.id == 5 && w.opened_on == 0, 1);
	EXPECT(tmk_window_end(session, w, NULL), -ENOENT);
}

static const struct {
	uint64_t number;
	void (*run)(void);
} statements[] = {
	{ 34, s34_keys },	  { 35, s35_closed_elsewhere }, { 36, s36_nested },
	{ 37, s37_overlapping },  { 38, s38_double },		{ 39, s39_abandoned },
	{ 41, s41_not_measured }, { 42, s42_system_time },	{ 43, s43_fallbacks },
	{ 44, s44_unwound },	  { 45, s45_poisoned },		{ 46, s46_membership },
	{ 47, s47_flush },	  { 48, s48_device },		{ 50, s50_text },
};

static int statements_run(void)
{
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		tmk_session_set_step(session, statements[i].number);
		statements[i].run();
	}
	start("s40_finished"); /* never closed */
	return tmk_session_finish(session);
}

/* --- the other scenarios */

static int die_run(void)
{
	start("outer");
	start("inner");
	usleep(200000); /* for the tracer to see them */
	return kill(getpid(), SIGKILL);
}

static int hold_run(void)
{
	struct tmk_window w = start("held");
	char line[16];

	puts("held");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	EXPECT(tmk_window_end(session, w, NULL), 0);
	/* Perhaps nobody listens any more. */
	EXPECT(tmk_window_start(session, "after", &w), 0);
	EXPECT(tmk_window_end(session, w, NULL), 0);
	return tmk_session_finish(session);
}

static int clocked_run(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint64_t before = now_ns(), begun, ending, ended;
		struct tmk_window w = start("clocked");

		begun = now_ns();
		op_run(2000 + i % 7 * 1000);
		ending = now_ns();
		EXPECT(tmk_window_end(session, w, NULL), 0);
		ended = now_ns();
		printf("%" PRIu64 " %" PRIu64 "\n", ending - begun, ended - before);
	}
	fflush(stdout);
	return tmk_session_finish(session);
}

static int leak_run(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		start("leaked");
	return tmk_session_finish(session);
}

static void *busy_thread(void *arg)
{
	uint64_t n = 0;

	tmk_stream_enter((uintptr_t)arg);
	while (!told_to_stop) {
		struct tmk_window outer = start("outer"), inner = start("inner");

		op_run(2000);
		tmk_window_end(session, inner, NULL);
		op_run(2000);
		tmk_window_end(session, outer, NULL);
		if (++n % 10 == 0)
			usleep(1000);
	}
	tmk_stream_leave();
	return (void *)(uintptr_t)n;
}

static int busy_run(void)
{
	pthread_t threads[4];
	uint64_t n = 0;
	void *made;

	for (uintptr_t i = 0; i < 4; i++)
		EXPECT(pthread_create(&threads[i], NULL, busy_thread, (void *)(i / 2)), 0);
	for (int i = 0; i < 4; i++) {
		EXPECT(pthread_join(threads[i], &made), 0);
		n += (uintptr_t)made;
	}
	printf("made %" PRIu64 "\n", 2 * n);
	return tmk_session_finish(session);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *path = !strcmp(what, "statements") && argc > 2 ? argv[2] : NULL;
	unsigned int n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct tmk_config config = tmk_config_infer("Model::forward");

	signal(SIGTERM, on_term);
	puts("ready");
	fflush(stdout);
	while (!getenv("TMK_TEST_ALONE") && !tmk_enabled() && !told_to_stop)
		usleep(1000);
	if (!getenv("TMK_TEST_ALONE"))
		usleep(500000); /* the semaphore rises before the last probe is in place */
	if (tmk_session_open(&session, path, &config)) {
		fprintf(stderr, "windows: %s\n", tmk_last_error());
		return 1;
	}
	if (!strcmp(what, "statements"))
		return statements_run();
	if (!strcmp(what, "die"))
		return die_run();
	if (!strcmp(what, "hold"))
		return hold_run();
	if (!strcmp(what, "clocked"))
		return clocked_run(n);
	if (!strcmp(what, "leak"))
		return leak_run(n);
	if (!strcmp(what, "busy"))
		return busy_run();
	fprintf(stderr, "windows: unknown scenario '%s'\n", what);
	return 2;
}
