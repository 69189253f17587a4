// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a listener is told: which markers fire, when, and with which arguments; and that nothing happens
 * while nobody listens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "unit/marker_hook.h"

TMK_SITE(qkv, "operation:infer:Gpt::forward:3", "matmul", "x", "w_qkv");

static struct tmk_session *session_new(void)
{
	struct tmk_config config = tmk_config_infer("Gpt::forward");
	struct tmk_session *s;

	assert_int_equal(tmk_session_open(&s, NULL, &config), 0);
	return s;
}

static int listening_teardown(void **state)
{
	(void)state;
	listen_stop();
	hit_watcher = NULL;
	return 0;
}

static void assert_hit(unsigned int i, unsigned int kind)
{
	assert_true(i < n_hits);
	assert_int_equal(hits[i].kind, kind);
}

/* The descriptor at an address has this kind and exactly these strings, written with \0 between them. */
static void assert_desc(uint64_t address, unsigned int kind, const char *strings, size_t bytes)
{
	const struct tmk_desc *desc = desc_at(address);

	assert_non_null(desc);
	assert_int_equal(desc->magic, TMK_DESC_MAGIC);
	assert_int_equal(desc->kind, kind);
	assert_int_equal(desc->bytes, bytes);
	assert_memory_equal(desc->strings, strings, bytes);
}

#define ASSERT_DESC(address, kind, literal) assert_desc(address, kind, literal, sizeof(literal))

static void nothing_is_marked_while_nobody_listens(void **state)
{
	struct tmk_session *s;
	struct tmk_op op;
	uint64_t ns = 7;

	(void)state;
	listen_start();
	listen_stop();
	assert_false(tmk_enabled());
	s = session_new();
	for (int i = 0; i < 10; i++) {
		op = tmk_op_begin(s, &qkv);
		assert_int_equal(op.token, 0);
		assert_int_equal(tmk_op_end(s, op, "out"), 0);
		assert_int_equal(tmk_op_end_timed(s, op, "out", &ns), -ENODATA);
		op = tmk_op_begin_inputs(s, &qkv, NULL, 0);
		assert_int_equal(op.token, 0);
		assert_int_equal(tmk_edge_record(s, "a", "b", 1), 0);
	}
	assert_int_equal(ns, 7);
	tmk_session_finish(s);
	assert_int_equal(n_hits, 0);

	/* And no number was used up. */
	s = session_new();
	listen_start();
	assert_true(tmk_enabled());
	assert_int_equal(tmk_op_begin(s, &qkv).token, 1);
	tmk_session_finish(s);
}

static void marks_carry_what_the_abi_says(void **state)
{
	struct tmk_session *s;
	struct tmk_op op;
	uint64_t id, desc, tid = (uint64_t)syscall(SYS_gettid);

	(void)state;
	listen_start();
	s = session_new();
	tmk_session_set_step(s, 5);
	op = tmk_op_begin(s, &qkv);
	tmk_session_set_step(s, 6);
	assert_int_equal(tmk_op_end(s, op, "q_k_v"), 0);
	assert_int_equal(tmk_op_end(s, op, NULL), 0);
	assert_int_equal(tmk_edge_record(s, "tensor:x", "operation:y", UINT64_MAX), 0);
	tmk_session_finish(s);
	assert_int_equal(n_hits, 6);

	assert_hit(0, TMK_REC_SESSION_OPEN);
	id = hits[0].arg[0];
	desc = hits[0].arg[1];
	assert_int_not_equal(id, 0);

	assert_hit(1, TMK_REC_OP_BEGIN);
	assert_int_equal(hits[1].arg[0], id);
	assert_int_equal(hits[1].arg[1], desc);
	assert_int_equal(hits[1].arg[2], (uintptr_t)&qkv);
	assert_int_equal(hits[1].arg[3], op.token);
	assert_int_equal(hits[1].arg[4], 5);
	assert_int_equal(hits[1].arg[5], tid); /* a thread's own stream */

	assert_hit(2, TMK_REC_OP_END);
	assert_int_equal(hits[2].arg[0], id);
	assert_int_equal(hits[2].arg[1], desc);
	assert_int_equal(hits[2].arg[2], op.token);
	assert_int_equal(hits[2].arg[3], 6);
	ASSERT_DESC(hits[2].arg[4], TMK_DESC_NAME, "q_k_v");

	/* A second end of the same operation is for the listener to find. */
	assert_hit(3, TMK_REC_OP_END);
	assert_int_equal(hits[3].arg[4], 0);

	assert_hit(4, TMK_REC_EDGE);
	assert_int_equal(hits[4].arg[0], id);
	assert_int_equal(hits[4].arg[1], desc);
	ASSERT_DESC(hits[4].arg[2], TMK_DESC_EDGE, "tensor:x\0operation:y");
	assert_int_equal(hits[4].arg[3], op.token + 1);
	assert_int_equal(hits[4].arg[4], 6);
	assert_int_equal(hits[4].arg[5], UINT64_MAX);

	assert_hit(5, TMK_REC_SESSION_FINISH);
	assert_int_equal(hits[5].arg[0], id);
	assert_int_equal(hits[5].arg[1], desc);
}

static const char *const features[] = { "cuda", "a\"b" };

static void session_descriptor_holds_the_config(void **state)
{
	struct tmk_config config = tmk_config_train("Model::forward");
	struct tmk_session *s, *later;
	const struct tmk_desc *desc;

	(void)state;
	config.cargo_features = features;
	config.n_cargo_features = 2;
	config.build_id = "candle-graph/build/1:00";
	listen_start();
	assert_int_equal(tmk_session_open(&s, NULL, &config), 0);
	config.analysis_id = "analysis:test";
	config.build_id = NULL;
	config.profile = NULL;
	assert_int_equal(tmk_session_open(&later, NULL, &config), 0);
	assert_true(hits[1].arg[0] > hits[0].arg[0]);

	desc = desc_at(hits[0].arg[1]);
	ASSERT_DESC(hits[0].arg[1], TMK_DESC_SESSION,
		    "Model::forward\0train\0release\0candle-graph/build/1:00\0cuda\0a\"b");
	assert_int_equal(desc->serial, hits[0].arg[0]);
	assert_int_equal(desc->count, 6);
	assert_int_equal(desc->flags, TMK_DESC_HAS_BUILD_ID);
	ASSERT_DESC(hits[1].arg[1], TMK_DESC_SESSION,
		    "Model::forward\0train\0release\0analysis:test\0cuda\0a\"b");
	assert_int_equal(desc_at(hits[1].arg[1])->flags, TMK_DESC_HAS_ANALYSIS_ID);
	tmk_session_finish(later);
	tmk_session_finish(s);
}

static bool is_registered(uint64_t desc)
{
	for (unsigned int i = 0; i < TMK_REGISTRY_SESSIONS; i++) {
		if (the_switch()->sessions[i] == desc)
			return true;
	}
	return false;
}

static void registry_holds_the_open_sessions(void **state)
{
	enum { MORE = TMK_REGISTRY_SESSIONS + 8 };
	struct tmk_session *sessions[MORE];

	(void)state;
	assert_int_equal(the_switch()->registry_magic, TMK_REGISTRY_MAGIC);
	listen_start();
	for (unsigned int i = 0; i < MORE; i++)
		sessions[i] = session_new();
	for (unsigned int i = 0; i < MORE; i++) {
		assert_hit(i, TMK_REC_SESSION_OPEN);
		/* A full registry refuses nobody. */
		assert_int_equal(is_registered(hits[i].arg[1]), i < TMK_REGISTRY_SESSIONS);
	}
	tmk_session_finish(sessions[10]);
	assert_false(is_registered(hits[10].arg[1]));
	sessions[10] = session_new();
	assert_true(is_registered(hits[n_hits - 1].arg[1]));
	for (unsigned int i = 0; i < MORE; i++)
		tmk_session_finish(sessions[i]);
	for (unsigned int i = 0; i < TMK_REGISTRY_SESSIONS; i++)
		assert_int_equal(the_switch()->sessions[i], 0);
}

static void conf04_one_counter_for_operations_and_edges(void **state)
{
	struct tmk_session *s = session_new(), *other = session_new();

	(void)state;
	listen_start();
	assert_int_equal(tmk_op_begin(s, &qkv).token, 1);
	assert_int_equal(tmk_edge_record(s, "a", "b", 0), 0);
	assert_int_equal(hits[1].arg[3], 2);
	assert_int_equal(tmk_op_begin(s, &qkv).token, 3);
	/* conf05: the step has nothing to do with it. conf21: another session counts for itself. */
	tmk_session_set_step(s, 100);
	assert_int_equal(tmk_op_begin(other, &qkv).token, 1);
	assert_int_equal(tmk_op_begin(s, &qkv).token, 4);
	assert_int_equal(tmk_session_step(s), 100);
	assert_int_equal(tmk_session_step(other), 0);
	tmk_session_finish(other);
	tmk_session_finish(s);
}

static void listener_that_comes_or_goes_never_sees_half(void **state)
{
	struct tmk_session *s = session_new();
	struct tmk_op before = tmk_op_begin(s, &qkv), during;

	(void)state;
	listen_start();
	assert_int_equal(tmk_op_end(s, before, "out"), 0);
	assert_int_equal(n_hits, 0); /* begun unseen: not ended either */
	during = tmk_op_begin(s, &qkv);
	listen_stop();
	assert_int_equal(tmk_op_end(s, during, "out"), 0);
	assert_int_equal(n_hits, 1);
	tmk_session_finish(s);
}

static void nonsense_is_not_marked(void **state)
{
	static const struct tmk_desc name = { TMK_DESC_MAGIC, TMK_DESC_NAME, 0, 2, 2, 0, { "a" } };
	static const struct tmk_desc empty = { TMK_DESC_MAGIC, TMK_DESC_SITE, 0, 0, 0, 0, { "" } };
	struct tmk_session *s = session_new();
	struct tmk_op stray = { 12345, 1 };

	(void)state;
	listen_start();
	assert_int_equal(tmk_op_begin(NULL, &qkv).token, 0);
	assert_int_equal(tmk_op_begin(s, NULL).token, 0);
	assert_int_equal(tmk_op_begin(s, &name).token, 0);
	assert_int_equal(tmk_op_begin(s, &empty).token, 0);
	assert_int_equal(tmk_op_begin_inputs(s, NULL, NULL, 0).token, 0);
	assert_int_equal(tmk_op_begin_inputs(s, &empty, NULL, 0).token, 0);
	assert_int_equal(tmk_op_end(NULL, stray, "x"), 0);
	assert_int_equal(tmk_edge_record(NULL, "a", "b", 1), 0);
	assert_int_equal(n_hits, 0);

	assert_int_equal(tmk_edge_record(s, NULL, NULL, 1), 0);
	ASSERT_DESC(hits[0].arg[2], TMK_DESC_EDGE, "\0");
	tmk_session_finish(s);

	assert_int_equal(tmk_session_finish(NULL), 0);
	assert_int_equal(tmk_session_flush(NULL), 0);
	tmk_session_set_step(NULL, 1);
	assert_int_equal(tmk_session_step(NULL), 0);
	assert_int_equal(tmk_session_phase(NULL), TMK_PHASE_TRAIN);
}

static void inputs_that_are_only_known_now(void **state)
{
	const char *inputs[] = { "a", "b" }, *none[] = { NULL };
	struct tmk_session *s = session_new();

	(void)state;
	listen_start();
	tmk_op_end(s, tmk_op_begin_inputs(s, &qkv, inputs, 2), NULL);
	tmk_op_end(s, tmk_op_begin_inputs(s, &qkv, inputs, 2), NULL);
	tmk_op_end(s, tmk_op_begin_inputs(s, &qkv, NULL, 0), NULL);
	tmk_op_end(s, tmk_op_begin_inputs(s, &qkv, none, 1), NULL);
	tmk_session_finish(s);
	ASSERT_DESC(hits[0].arg[2], TMK_DESC_SITE, "operation:infer:Gpt::forward:3\0matmul\0a\0b");
	assert_int_equal(hits[2].arg[2], hits[0].arg[2]);
	ASSERT_DESC(hits[4].arg[2], TMK_DESC_SITE, "operation:infer:Gpt::forward:3\0matmul");
	ASSERT_DESC(hits[6].arg[2], TMK_DESC_SITE, "operation:infer:Gpt::forward:3\0matmul\0");
}

/* --- scopes */

static int scope_leave(struct tmk_session *s, int way)
{
	for (int i = 0; i < 3; i++) {
		TMK_OP_SCOPE(s, &qkv);
		if (way == 0)
			return 1;
		if (way == 1)
			break;
		if (way == 2)
			goto out;
		if (way == 3)
			continue;
		{
			TMK_OP_SCOPE(s, &qkv);
			return 2;
		}
	}
out:
	return 0;
}

static void conf17_scope_ends_on_every_way_out(void **state)
{
	static const unsigned int operations[] = { 1, 1, 1, 3, 2 };
	struct tmk_session *s = session_new();

	(void)state;
	for (int way = 0; way < 5; way++) {
		listen_start();
		scope_leave(s, way);
		assert_int_equal(n_hits, 2 * operations[way]);
	}
	/* Nested: the inner one ended first; and without an output. */
	assert_hit(2, TMK_REC_OP_END);
	assert_int_equal(hits[2].arg[2], hits[1].arg[3]);
	assert_int_equal(hits[3].arg[2], hits[0].arg[3]);
	assert_int_equal(hits[2].arg[4], 0);
	tmk_session_finish(s);
}

/* --- threads, signals, fork */

struct relay {
	struct tmk_session *s;
	struct tmk_op op;
};

static void *relay_end(void *arg)
{
	struct relay *r = arg;

	tmk_op_end(r->s, r->op, "out");
	r->op = tmk_op_begin(r->s, &qkv);
	return NULL;
}

static void conf13_token_goes_across_threads(void **state)
{
	struct relay r = { session_new(), { 0, 0 } };
	pthread_t thread;

	(void)state;
	listen_start();
	r.op = tmk_op_begin(r.s, &qkv);
	assert_int_equal(pthread_create(&thread, NULL, relay_end, &r), 0);
	pthread_join(thread, NULL);
	tmk_op_end(r.s, r.op, NULL);
	tmk_session_finish(r.s);
	assert_int_equal(hits[1].arg[2], hits[0].arg[3]);
	assert_int_equal(hits[3].arg[2], hits[2].arg[3]);
	assert_int_not_equal(hits[2].arg[5], hits[0].arg[5]); /* its thread's stream */
}

static struct tmk_session *signal_session;
static volatile sig_atomic_t n_signals;

static void signal_mark(int signal)
{
	(void)signal;
	tmk_op_end(signal_session, tmk_op_begin(signal_session, &qkv), NULL);
	n_signals++;
}

static void signal_handlers_may_mark(void **state)
{
	struct sigaction act = { .sa_handler = signal_mark };
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
	char name[32];

	(void)state;
	signal_session = session_new();
	sigaction(SIGALRM, &act, NULL);
	listen_start();
	setitimer(ITIMER_REAL, &often, NULL);
	/* Interrupts what takes a lock and memory: a handler that did so too would hang, or worse. */
	for (int i = 0; n_signals < 500; i++) {
		snprintf(name, sizeof(name), "signal-%d", i % 20000);
		tmk_op_end(signal_session, tmk_op_begin(signal_session, &qkv), name);
		free(malloc((size_t)i % 5000));
	}
	setitimer(ITIMER_REAL, &never, NULL);
	listen_stop();
	tmk_session_finish(signal_session);
}

static void child_of_a_fork_goes_on_marking(void **state)
{
	struct tmk_session *s;
	int status;
	pid_t child;

	(void)state;
	listen_start();
	s = session_new();
	tmk_op_end(s, tmk_op_begin(s, &qkv), "before");
	child = fork();
	if (!child) {
		unsigned int before = n_hits;
		struct tmk_op op = tmk_op_begin(s, &qkv);
		bool right = op.token == 2 && hits[before].arg[5] == (uint64_t)syscall(SYS_gettid);

		tmk_op_end(s, op, "in the child");
		right = right && n_hits == before + 2;
		tmk_session_finish(s);
		_exit(right && n_hits == before + 3 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(tmk_op_begin(s, &qkv).token, 2);
	tmk_session_finish(s);
}

/* --- descriptors in memory that nobody has touched */

static char *guarded; /* two pages; the second may not be read until somebody tries */
static volatile sig_atomic_t guard_touched, guard_touched_before_hit;
static long page_size;

static void guard_open(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if ((char *)info->si_addr < guarded + page_size ||
	    (char *)info->si_addr >= guarded + 2 * page_size)
		_exit(99);
	guard_touched = 1;
	mprotect(guarded + page_size, (size_t)page_size, PROT_READ);
}

static void guard_look(void)
{
	guard_touched_before_hit = guard_touched;
}

static void descriptors_are_touched_before_the_mark(void **state)
{
	struct sigaction act = { .sa_sigaction = guard_open, .sa_flags = SA_SIGINFO }, old;
	struct tmk_session *s = session_new();
	struct tmk_desc *site;

	(void)state;
	page_size = sysconf(_SC_PAGESIZE);
	guarded = mmap(NULL, 2 * (size_t)page_size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(guarded != MAP_FAILED);
	/* Its last eight bytes lie in the second page. */
	site = (struct tmk_desc *)(guarded + page_size - (long)sizeof(*site) - 8);
	*site = (struct tmk_desc){ TMK_DESC_MAGIC, TMK_DESC_SITE, 0, 16, 2, 0 };
	memcpy(site->strings, "operation:1\0mul", 16);
	assert_int_equal(mprotect(guarded + page_size, (size_t)page_size, PROT_NONE), 0);

	sigaction(SIGSEGV, &act, &old);
	hit_watcher = guard_look;
	listen_start();
	tmk_op_end(s, tmk_op_begin(s, site), NULL);
	sigaction(SIGSEGV, &old, NULL);
	assert_true(guard_touched_before_hit);
	tmk_session_finish(s);
	munmap(guarded, 2 * (size_t)page_size);
}

#define TEST(f) cmocka_unit_test_teardown(f, listening_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_marked_while_nobody_listens),
		TEST(marks_carry_what_the_abi_says),
		TEST(session_descriptor_holds_the_config),
		TEST(registry_holds_the_open_sessions),
		TEST(conf04_one_counter_for_operations_and_edges),
		TEST(conf13_token_goes_across_threads),
		TEST(conf17_scope_ends_on_every_way_out),
		TEST(listener_that_comes_or_goes_never_sees_half),
		TEST(nonsense_is_not_marked),
		TEST(inputs_that_are_only_known_now),
		TEST(signal_handlers_may_mark),
		TEST(child_of_a_fork_goes_on_marking),
		TEST(descriptors_are_touched_before_the_mark),
	};

	return cmocka_run_group_tests(tests, hooks_install, NULL);
}
