// SPDX-License-Identifier: BSD-2-Clause
/*
 * A marked program that live tests trace. What it does is its first argument:
 *
 *	once			one operation, then the end: nothing of it may be missed
 *	session			the calls behind tests/data/profile_session.jsonl, once somebody attached
 *	clocked N		N operations once somebody attached, each also timed by its own clock
 *	service			operations without end, paced, until SIGTERM
 *	threads N		N threads: each operation begins on one and ends on the next
 *	reexec			one operation, exec of itself, and one more, once somebody attached
 *	hang			one operation that never ends
 *	idle			a session and two threads in which nothing happens, until SIGTERM
 *
 * Prints "ready" when it can be attached to, and what it did by its own account.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tickmark/tickmark.h"

TMK_SITE(work, "operation:train:Model::forward:0", "matmul", "x", "w");
TMK_SITE(inner, "operation:train:Model::forward:1", "softmax", "scores");

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

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&ts, NULL);
}

/*
 * Waits until a tracer is attached, all of it: probe operations are begun and ended until their markers
 * can be relied on. The semaphore rises before the last breakpoint is in place.
 */
static void attach_await(void)
{
	while (!tmk_enabled())
		sleep_ns(1000000);
	sleep_ns(300000000);
}

static struct tmk_session *session_new(struct tmk_config config)
{
	struct tmk_session *s;

	if (tmk_session_open(&s, NULL, &config)) {
		fprintf(stderr, "marked: %s\n", tmk_last_error());
		exit(1);
	}
	return s;
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static int once_run(void)
{
	struct tmk_session *s = session_new(tmk_config_train("Model::forward"));
	struct tmk_op op = tmk_op_begin(s, &work);

	tmk_op_end(s, op, "out");
	tmk_session_finish(s);
	return 7;
}

static int session_run(void)
{
	const char *features[] = { "cuda", "a\"b" };
	const char *inputs[] = { "x", "y\x01\t\x7f\xe2\x80\xa8\xc3\xa9\xf0\x9f\x98\x80/\\\"" };
	struct tmk_config config = tmk_config_train("Model::forward");
	struct tmk_session *s;
	struct tmk_op first, second;

	config.cargo_features = features;
	config.n_cargo_features = 2;
	config.analysis_id = "analysis:test";
	config.build_id = "candle-graph/build/1:0123456789abcdef";
	s = session_new(config);
	ready();
	attach_await();
	first = tmk_op_begin(
		s, tmk_site_intern("operation:train:Model::forward:0", "matmul", inputs, 2));
	tmk_edge_record(s, "tensor:a", "operation:b", UINT64_MAX);
	tmk_session_set_step(s, 4);
	second = tmk_op_begin(s, tmk_site_intern("", "", NULL, 0));
	tmk_op_end(s, first, "out");
	tmk_op_end(s, second, NULL);
	return tmk_session_finish(s);
}

/* Sums of what the program's clock saw: right inside the marks, and right outside of them. */
static int clocked_run(unsigned int n)
{
	struct tmk_session *s = session_new(tmk_config_train("Model::forward"));

	ready();
	attach_await();
	for (unsigned int i = 0; i < n; i++) {
		uint64_t before, begun, ending, ended;
		struct tmk_op op;

		before = now_ns();
		op = tmk_op_begin(s, &work);
		begun = now_ns();
		spin(2000 + i % 7 * 1000);
		ending = now_ns();
		tmk_op_end(s, op, NULL);
		ended = now_ns();
		printf("%" PRIu64 " %" PRIu64 "\n", ending - begun, ended - before);
	}
	fflush(stdout);
	return tmk_session_finish(s);
}

static int service_run(void)
{
	struct tmk_session *s = session_new(tmk_config_infer("Model::forward"));
	uint64_t n = 0;

	ready();
	while (!told_to_stop) {
		struct tmk_op outer = tmk_op_begin(s, &work), nested;

		nested = tmk_op_begin(s, &inner);
		spin(20000);
		tmk_op_end(s, nested, "weights");
		tmk_op_end(s, outer, "y");
		tmk_session_set_step(s, ++n / 100);
		if (n % 10 == 0)
			sleep_ns(1000000);
	}
	printf("made %" PRIu64 "\n", 2 * n);
	return tmk_session_finish(s);
}

struct baton {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct tmk_session *s;
	struct tmk_op op;
	unsigned int turn, turns, n_threads;
};

struct runner {
	struct baton *baton;
	unsigned int index;
};

/* Whoever's turn it is ends the operation that the one before began, and begins the next. */
static void *runner_run(void *arg)
{
	struct runner *r = arg;
	struct baton *b = r->baton;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		while (b->turn < b->turns && b->turn % b->n_threads != r->index)
			pthread_cond_wait(&b->changed, &b->lock);
		if (b->turn == b->turns)
			break;
		if (b->turn)
			tmk_op_end(b->s, b->op, NULL);
		b->op = tmk_op_begin(b->s, &work);
		b->turn++;
		pthread_cond_broadcast(&b->changed);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static int threads_run(unsigned int n)
{
	struct baton b = {
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, { 0 }, 0, 1000, n
	};
	struct runner runners[64];
	pthread_t threads[64];

	if (!n || n > 64)
		return 2;
	b.s = session_new(tmk_config_train("Model::forward"));
	ready();
	attach_await();
	for (unsigned int i = 0; i < n; i++) {
		runners[i] = (struct runner){ &b, i };
		if (pthread_create(&threads[i], NULL, runner_run, &runners[i]))
			return 1;
	}
	for (unsigned int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	tmk_op_end(b.s, b.op, NULL);
	printf("made %u\n", b.turns);
	return tmk_session_finish(b.s);
}

static int reexec_run(char **argv)
{
	bool again = argv[2] && !strcmp(argv[2], "again");
	struct tmk_session *s = session_new(tmk_config_train(again ? "Second" : "First"));
	struct tmk_op op;

	if (!again) {
		ready();
		attach_await();
	}
	op = tmk_op_begin(s, &work);
	if (!again) {
		/* Left open: the exec ends it. */
		execl("/proc/self/exe", argv[0], "reexec", "again", NULL);
		return 1;
	}
	tmk_op_end(s, op, NULL);
	return tmk_session_finish(s);
}

static int hang_run(void)
{
	struct tmk_session *s = session_new(tmk_config_infer("Model::forward"));
	struct tmk_op outer, nested;

	ready();
	attach_await();
	outer = tmk_op_begin(s, &inner);
	nested = tmk_op_begin(s, &work);
	puts("hanging");
	fflush(stdout);
	while (!told_to_stop)
		sleep_ns(10000000);
	return tmk_op_end(s, nested, NULL) || tmk_op_end(s, outer, NULL);
}

static void *idler_run(void *arg)
{
	while (!told_to_stop)
		sleep_ns(10000000);
	return arg;
}

static int idle_run(void)
{
	struct tmk_session *s = session_new(tmk_config_infer("Model::forward"));
	pthread_t thread;

	if (pthread_create(&thread, NULL, idler_run, NULL))
		return 1;
	ready();
	pthread_join(thread, NULL);
	return tmk_session_finish(s);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned int n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	signal(SIGTERM, on_term);
	if (!strcmp(what, "once"))
		return once_run();
	if (!strcmp(what, "session"))
		return session_run();
	if (!strcmp(what, "clocked"))
		return clocked_run(n);
	if (!strcmp(what, "service"))
		return service_run();
	if (!strcmp(what, "threads"))
		return threads_run(n);
	if (!strcmp(what, "reexec"))
		return reexec_run(argv);
	if (!strcmp(what, "hang"))
		return hang_run();
	if (!strcmp(what, "idle"))
		return idle_run();
	fprintf(stderr, "marked: unknown scenario '%s'\n", what);
	return 2;
}
