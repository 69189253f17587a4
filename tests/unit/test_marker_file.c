// SPDX-License-Identifier: BSD-2-Clause
/*
 * The runtime/3 file that a session writes by itself: the conformance statements that need no tracer,
 * each test named after its statement, and what threads, forks and full disks do to it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime3/check.h"
#include "tickmark/tickmark.h"

TMK_SITE(qkv, "operation:infer:Gpt::forward:3", "matmul", "x", "w_qkv");
TMK_SITE(bare, "", "");

static char dir[] = "/tmp/tickmark-test-XXXXXX";
static char path[sizeof(dir) + 64];

static int dir_make(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int dir_remove(void **state)
{
	char command[sizeof(dir) + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command); /* NOLINT: a name that mkdtemp made */
}

/* A session that writes to `name` in the test's folder. */
static struct tmk_session *session_at(const char *name, struct tmk_config *config)
{
	struct tmk_session *s;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(tmk_session_open(&s, path, config), 0);
	assert_non_null(s);
	return s;
}

static struct tmk_session *session_new(bool strict)
{
	struct tmk_config config = tmk_config_train("Gpt::forward");

	config.strict = strict;
	return session_at("session.jsonl", &config);
}

/* The file's text, ended by a NUL; the caller frees it. */
static char *text_read(const char *file, size_t *len)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	text = malloc((size_t)st.st_size + 1);
	assert_non_null(text);
	*len = 0;
	while (*len < (size_t)st.st_size) {
		ssize_t n = read(fd, text + *len, (size_t)st.st_size - *len);

		assert_true(n > 0);
		*len += (size_t)n;
	}
	text[*len] = '\0';
	close(fd);
	return text;
}

static char *lines_read(size_t *n)
{
	size_t len;
	char *text = text_read(path, &len);

	*n = 0;
	for (size_t i = 0; i < len; i++)
		*n += text[i] == '\n';
	/* conf09, conf33: whatever happened, whole lines only. */
	assert_true(!len || text[len - 1] == '\n');
	return text;
}

static void assert_accepted(const char *file, struct tmk_check_counts *counts)
{
	size_t len;
	char *text = text_read(file, &len);

	memset(counts, 0, sizeof(*counts));
	assert_int_equal(tmk_check_memory(text, len, NULL, NULL, 0, counts), 0);
	free(text);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in\n%s", part, text);
}

static void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("%s in\n%s", part, text);
}

/* The number after `key`, e.g. "\"start_ns\":", the first time it stands in `text`. */
static uint64_t number_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	assert_non_null(at);
	return strtoull(at + strlen(key), NULL, 10);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void spin_ns(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

/* --- session */

static void conf01_open_makes_parents_and_truncates(void **state)
{
	struct tmk_config config = tmk_config_train("E");
	struct tmk_session *s = session_at("a/b//c/session.jsonl", &config);
	char file[sizeof(dir) + 64];
	size_t n;

	(void)state;
	for (int i = 0; i < 1000; i++)
		tmk_op_end(s, tmk_op_begin(s, &qkv), NULL);
	assert_int_equal(tmk_session_finish(s), 0);
	s = session_at("a/b//c/session.jsonl", &config);
	assert_int_equal(tmk_session_finish(s), 0);
	free(lines_read(&n));
	assert_int_equal(n, 2);

	/* A path that is a folder, one below a file, and "-", which is a name like any other. */
	assert_int_equal(tmk_session_open(&s, dir, &config), -EISDIR);
	assert_null(s);
	assert_has(tmk_last_error(), dir);
	assert_has(tmk_last_error(), "directory");
	snprintf(file, sizeof(file), "%s/a/b/c/session.jsonl/below/x", dir);
	assert_int_equal(tmk_session_open(&s, file, &config), -ENOTDIR);
	assert_has(tmk_last_error(), file);
	assert_int_equal(tmk_session_open(&s, "", &config), -ENOENT);
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(tmk_session_open(&s, "-", &config), 0);
	assert_int_equal(tmk_session_finish(s), 0);
	assert_int_equal(access("-", F_OK), 0);
	/* Nothing of what failed still counts as a listener. */
	assert_int_equal(tmk_enabled(), 0);
}

static void conf02_conf03_meta_is_the_first_line(void **state)
{
	struct tmk_config config = tmk_config_infer("Model::forward");
	struct tmk_session *s;
	char *text;
	size_t n;

	(void)state;
	s = session_at("meta.jsonl", &config);
	assert_int_equal(tmk_session_flush(s), 0);
	text = lines_read(&n);
	assert_string_equal(
		text, "{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":"
		      "\"Model::forward\",\"profile\":\"release\",\"cargo_features\":[],"
		      "\"cfg\":[],\"phase\":\"infer\"}\n");
	free(text);
	assert_int_equal(tmk_session_phase(s), TMK_PHASE_INFER);
	assert_int_equal(tmk_session_finish(s), 0);
}

static void config_is_checked(void **state)
{
	struct {
		struct tmk_config config;
		char newer[16];
	} large = { tmk_config_train("E"), { 0 } };
	struct tmk_config config = tmk_config_train("E");
	struct tmk_session *s = (struct tmk_session *)dir;

	(void)state;
	assert_int_equal(tmk_session_open(NULL, NULL, &config), -EINVAL);
	assert_int_equal(tmk_session_open(&s, NULL, NULL), -EINVAL);
	assert_null(s);
	for (size_t size = 0; size < sizeof(config); size++) {
		config.size = size;
		assert_int_equal(tmk_session_open(&s, NULL, &config), -EINVAL);
		assert_int_equal(tmk_config_init(&config, size, TMK_PHASE_TRAIN, "E"), -EINVAL);
	}
	config = tmk_config_train(NULL);
	assert_int_equal(tmk_session_open(&s, NULL, &config), -EINVAL);
	assert_has(tmk_last_error(), "entrypoint");
	config = tmk_config_train("E");
	config.phase = (enum tmk_phase)2;
	assert_int_equal(tmk_session_open(&s, NULL, &config), -EINVAL);
	config = tmk_config_train("E");
	config.n_cargo_features = 1;
	assert_int_equal(tmk_session_open(&s, NULL, &config), -EINVAL);

	/* A program newer than the library: fine while it uses nothing that is new. */
	large.config.size = sizeof(large);
	assert_int_equal(tmk_session_open(&s, NULL, &large.config), 0);
	assert_int_equal(tmk_session_finish(s), 0);
	large.newer[15] = 1;
	assert_int_equal(tmk_session_open(&s, NULL, &large.config), -EINVAL);

	memset(&large, 0xff, sizeof(large));
	assert_int_equal(tmk_config_init(&large.config, sizeof(large.config), TMK_PHASE_INFER, "F"),
			 0);
	assert_int_equal(large.newer[0], -1);
	assert_int_equal(tmk_config_init(&large.config, sizeof(large), TMK_PHASE_INFER, "F"), 0);
	assert_int_equal(large.newer[0], 0);
	assert_int_equal(large.config.phase, TMK_PHASE_INFER);
	assert_string_equal(large.config.profile, "release");
	assert_int_equal(tmk_config_init(NULL, 72, TMK_PHASE_INFER, "F"), -EINVAL);
}

static void conf04_conf05_conf06_numbers_and_steps(void **state)
{
	struct tmk_session *s = session_new(true);
	struct tmk_op first, third;
	char *text;
	size_t n;

	(void)state;
	tmk_session_set_step(s, 3);
	first = tmk_op_begin(s, &qkv);
	tmk_edge_record(s, "a", "b", 1);
	tmk_session_set_step(s, 4);
	third = tmk_op_begin(s, &qkv);
	assert_int_equal(tmk_op_end(s, first, NULL), 0);
	assert_int_equal(tmk_op_end(s, third, NULL), 0);
	assert_int_equal(tmk_session_finish(s), 0);
	text = lines_read(&n);
	assert_int_equal(n, 4);
	assert_has(text, "\"event_id\":\"train-op-3-1\"");
	assert_has(text, "\"event_id\":\"train-edge-3-2\"");
	assert_has(text, "\"event_id\":\"train-op-4-3\"");
	/* The record's step is the one at the end. */
	assert_int_equal(number_of(strstr(text, "train-op-3-1"), "\"step\":"), 4);
	assert_int_equal(number_of(strstr(text, "train-edge-3-2"), "\"step\":"), 3);
	free(text);
}

static void conf07_flush_makes_lines_readable(void **state)
{
	struct tmk_session *s = session_new(false);
	size_t n;

	(void)state;
	free(lines_read(&n));
	assert_int_equal(n, 0); /* buffered */
	for (int i = 1; i <= 3; i++) {
		tmk_op_end(s, tmk_op_begin(s, &qkv), NULL);
		assert_int_equal(tmk_session_flush(s), 0);
		free(lines_read(&n));
		assert_int_equal(n, 1 + i);
	}
	/* And what gathers is written without being asked. */
	for (int i = 0; i < 5000; i++)
		tmk_op_end(s, tmk_op_begin(s, &qkv), NULL);
	free(lines_read(&n));
	assert_true(n > 4000);
	assert_int_equal(tmk_session_finish(s), 0);
	free(lines_read(&n));
	assert_int_equal(n, 1 + 3 + 5000 + 1);
}

static void conf08_session_without_events(void **state)
{
	struct tmk_check_counts counts;
	struct tmk_session *s;
	char *text;
	size_t n;

	(void)state;
	for (int flushed = 0; flushed < 2; flushed++) {
		s = session_new(false);
		if (flushed)
			tmk_session_flush(s);
		assert_int_equal(tmk_session_finish(s), 0);
		assert_accepted(path, &counts);
		assert_int_equal(counts.has_capture, 1);

		s = session_new(true);
		if (flushed)
			tmk_session_flush(s);
		(void)tmk_op_begin(s, &qkv); /* conf15: never ended, so no event */
		assert_int_equal(tmk_session_finish(s), 0);
		assert_accepted(path, &counts);
		assert_int_equal(counts.operations, 0);
		text = lines_read(&n);
		assert_int_equal(n, 1);
		assert_has(text, "\"phase\":\"train\",\"run\":{\"entrypoint\":\"Gpt::forward\"");
		free(text);
	}
}

/* --- operations */

static void conf10_conf12_lines_come_in_end_order(void **state)
{
	struct tmk_session *s = session_new(true);
	struct tmk_op outer, inner, late;
	uint64_t outer_ns, inner_ns, late_ns;
	char *text;
	size_t n;

	(void)state;
	outer = tmk_op_begin(s, &qkv);
	spin_ns(100000);
	inner = tmk_op_begin(s, &bare);
	spin_ns(100000);
	late = tmk_op_begin(s, &qkv);
	assert_int_equal(tmk_op_end_timed(s, inner, "i", &inner_ns), 0);
	spin_ns(100000);
	assert_int_equal(tmk_op_end_timed(s, outer, "o", &outer_ns), 0);
	spin_ns(100000);
	assert_int_equal(tmk_op_end_timed(s, late, "l", &late_ns), 0);
	assert_int_equal(tmk_session_finish(s), 0);
	/* conf11: each its own begin to its own end. */
	assert_true(inner_ns >= 100000 && outer_ns >= 300000 && late_ns >= 200000);
	assert_true(inner_ns < outer_ns);

	text = lines_read(&n);
	assert_int_equal(n, 4);
	assert_true(strstr(text, "op-0-2") < strstr(text, "op-0-1"));
	assert_true(strstr(text, "op-0-1") < strstr(text, "op-0-3"));
	assert_int_equal(number_of(strstr(text, "op-0-1"), "\"duration_ns\":"), outer_ns);
	assert_int_equal(number_of(strstr(text, "op-0-2"), "\"duration_ns\":"), inner_ns);
	assert_int_equal(number_of(strstr(text, "op-0-3"), "\"duration_ns\":"), late_ns);
	free(text);
}

struct relay {
	struct tmk_session *s;
	struct tmk_op op;
	int err;
	long tid;
};

static void *relay_end(void *arg)
{
	struct relay *r = arg;

	r->tid = syscall(SYS_gettid);
	r->err = tmk_op_end(r->s, r->op, "out");
	return NULL;
}

static void conf13_another_thread_may_end(void **state)
{
	struct relay r = { .s = session_new(false) };
	pthread_t thread;
	char *text;
	size_t n;

	(void)state;
	r.op = tmk_op_begin(r.s, &qkv);
	assert_int_equal(pthread_create(&thread, NULL, relay_end, &r), 0);
	pthread_join(thread, NULL);
	assert_int_equal(r.err, 0);
	assert_int_equal(tmk_session_finish(r.s), 0);
	text = lines_read(&n);
	assert_int_equal(number_of(text, "\"pid\":"), getpid());
	assert_int_equal(number_of(text, "\"tid\":"), syscall(SYS_gettid));
	assert_int_equal(number_of(text, "\"stream\":"), syscall(SYS_gettid));
	assert_int_equal(number_of(text, "\"end_tid\":"), r.tid);
	free(text);
}

static void conf14_unknown_and_repeated_ends(void **state)
{
	struct tmk_session *s = session_new(false), *other;
	struct tmk_config config = tmk_config_train("other");
	struct tmk_op op = tmk_op_begin(s, &qkv), wrong;
	const uint64_t slots[] = { 0, 1, 2, 127, 128, 129, 1ull << 31, 1ull << 32, UINT64_MAX - 1 };
	uint64_t ns = 7;
	char *text;
	size_t n;

	(void)state;
	assert_int_equal(tmk_op_end(s, op, NULL), 0);
	assert_int_equal(tmk_op_end(s, op, NULL), -ENOENT);
	assert_int_equal(tmk_op_end_timed(s, op, NULL, &ns), -ENOENT);
	assert_int_equal(ns, 7);
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		wrong = (struct tmk_op){ 1000 + i, slots[i] };
		assert_int_equal(tmk_op_end(s, wrong, NULL), -ENOENT);
	}
	/* Its slot was used again since: the token tells. */
	wrong = tmk_op_begin(s, &qkv);
	assert_int_equal(wrong.slot, op.slot);
	assert_int_equal(tmk_op_end(s, op, NULL), -ENOENT);
	assert_int_equal(tmk_op_end(s, wrong, "still"), 0);

	snprintf(path, sizeof(path), "%s/other.jsonl", dir);
	assert_int_equal(tmk_session_open(&other, path, &config), 0);
	op = tmk_op_begin(s, &qkv);
	assert_int_equal(tmk_op_end(other, op, NULL), -ENOENT);
	assert_int_equal(tmk_session_finish(other), 0);
	assert_int_equal(tmk_op_end(s, op, NULL), 0);
	snprintf(path, sizeof(path), "%s/session.jsonl", dir);
	assert_int_equal(tmk_session_finish(s), 0);
	text = lines_read(&n);
	assert_int_equal(n, 1 + 3 + 1);
	assert_has(text, "\"unpaired\":{\"end_without_begin\":9,\"repeated_end\":3}");
	free(text);
}

static void conf15_unended_operations_are_counted(void **state)
{
	struct tmk_session *s = session_new(false);
	char *text;
	size_t n;

	(void)state;
	for (int i = 0; i < 300; i++)
		(void)tmk_op_begin(s, &qkv);
	tmk_op_end(s, tmk_op_begin(s, &qkv), NULL);
	assert_int_equal(tmk_session_finish(s), 0);
	text = lines_read(&n);
	assert_int_equal(n, 3);
	assert_has(text, "\"operations\":1,\"edges\":0,\"unfinished\":300,");
	free(text);
}

static int scope_leave(struct tmk_session *s)
{
	TMK_OP_SCOPE(s, &qkv);
	return tmk_enabled();
}

static void conf17_scope_guard(void **state)
{
	struct tmk_session *s = session_new(true);
	char *text;
	size_t n;

	(void)state;
	scope_leave(s);
	assert_int_equal(tmk_session_finish(s), 0);
	text = lines_read(&n);
	assert_int_equal(n, 2);
	/* conf16: static_id and inputs always, source never, output only where there is one. */
	assert_has(
		text,
		"{\"kind\":\"operation\",\"event_id\":\"train-op-0-1\",\"op\":\"matmul\",\"static_id\":"
		"\"operation:infer:Gpt::forward:3\",\"inputs\":[\"x\",\"w_qkv\"],\"step\":0,"
		"\"duration_ns\":");
	free(text);
}

static void conf19_long_strings_are_cut_and_say_so(void **state)
{
	struct tmk_session *s = session_new(false);
	char output[TMK_STRING_MAX + 3], *text;
	const struct tmk_desc *site;
	size_t n;

	(void)state;
	memset(output, 'o', sizeof(output));
	memcpy(output + TMK_STRING_MAX - 1, "\xc3\xa9", 3); /* é, half of it beyond the bound */
	site = tmk_site_intern(output, "op", NULL, 0);
	assert_int_equal(tmk_op_end(s, tmk_op_begin(s, site), output), 0);
	assert_int_equal(tmk_op_end(s, tmk_op_begin(s, &qkv), output + 1), 0); /* just fits */
	tmk_edge_record(s, output, "b", 1);
	assert_int_equal(tmk_session_finish(s), 0);
	text = lines_read(&n);
	assert_has(text, "\"truncated\":[\"static_id\",\"output\"]}\n");
	assert_has(text, "o\xc3\xa9\",\"step\":0");
	assert_has(text, "o\",\"to_static_id\":\"b\"");
	assert_has(text, "\"truncated\":[\"static_id\"]}\n");
	assert_has(text, "\"truncated\":2,");
	free(text);
}

static void conf19_long_config_is_cut_and_says_so(void **state)
{
	struct tmk_config config;
	struct tmk_session *s;
	char *big = malloc(5000), *text;
	const char *features[] = { "kept", big, "dropped" };
	struct tmk_check_counts counts;
	size_t n;

	(void)state;
	assert_non_null(big);
	memset(big, 'e', 4999);
	big[4999] = '\0';
	config = tmk_config_train(big);
	config.profile = config.analysis_id = config.build_id = big;
	config.cargo_features = features;
	config.n_cargo_features = 3;
	s = session_at("long.jsonl", &config);
	assert_int_equal(tmk_session_finish(s), 0);
	assert_accepted(path, &counts);
	text = lines_read(&n);
	assert_has(text, "\"build_id\":\"ee");
	assert_has(text, "\"truncated\":[\"session\"]}\n");
	free(text);
	config.strict = 1;
	s = session_at("long.jsonl", &config);
	assert_int_equal(tmk_session_finish(s), 0);
	text = lines_read(&n);
	assert_has_not(text, "truncated");
	free(text);
	free(big);
}

static void conf20_conf26_strings_of_any_bytes(void **state)
{
	struct tmk_session *s = session_new(false);
	struct tmk_check_counts counts;
	char bytes[256], *text;
	size_t n;

	(void)state;
	for (int i = 0; i < 255; i++)
		bytes[i] = (char)(i + 1);
	bytes[255] = '\0';
	tmk_op_end(s, tmk_op_begin(s, tmk_site_intern(bytes, bytes, NULL, 0)), bytes);
	tmk_edge_record(s, bytes, bytes, 1);
	assert_int_equal(tmk_session_finish(s), 0);
	assert_accepted(path, &counts); /* which looks at the UTF-8, too */
	assert_int_equal(counts.edges, 1);
	text = lines_read(&n);
	assert_has(text, "\\u001f !\\\"#$");
	assert_has(text, "[\\\\]^");
	assert_has(text, "~\x7f\xef\xbf\xbd");
	free(text);
}

static void another_site_at_the_same_address(void **state)
{
	struct tmk_desc *place = malloc(sizeof(*place) + 64);
	struct tmk_session *s = session_new(true);
	struct tmk_op op;
	char *text;
	size_t n;

	(void)state;
	assert_non_null(place);
	*place = (struct tmk_desc){ TMK_DESC_MAGIC, TMK_DESC_SITE, 0, 8, 2, 0 };
	memcpy(place->strings, "id1\0op1", 8);
	op = tmk_op_begin(s, place);
	tmk_op_end(s, tmk_op_begin(s, place), NULL);
	/* As when a plugin is unloaded and another takes its place. */
	memcpy(place->strings, "id2\0op2", 8);
	tmk_op_end(s, tmk_op_begin(s, place), NULL);
	memset(place, 0xff, sizeof(*place) + 64);
	assert_int_equal(tmk_op_end(s, op, NULL), 0);
	assert_int_equal(tmk_session_finish(s), 0);
	free(place);
	text = lines_read(&n);
	assert_has(text, "op-0-2\",\"op\":\"op1\",\"static_id\":\"id1\"");
	assert_has(text, "op-0-3\",\"op\":\"op2\",\"static_id\":\"id2\"");
	assert_has(text, "op-0-1\",\"op\":\"op1\",\"static_id\":\"id1\"");
	free(text);
}

/* More sites than the first tables hold. */
static void thousands_of_sites(void **state)
{
	struct tmk_session *s = session_new(true);
	struct tmk_check_counts counts;
	char id[32], *text;
	size_t n;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3000; i++) {
			snprintf(id, sizeof(id), "site-%d", i);
			tmk_op_end(s, tmk_op_begin(s, tmk_site_intern(id, id, NULL, 0)), id);
		}
	}
	assert_int_equal(tmk_session_finish(s), 0);
	assert_accepted(path, &counts);
	text = lines_read(&n);
	for (int i = 0; i < 3000; i += 100) {
		char want[128];

		snprintf(
			want, sizeof(want),
			"-%d\",\"op\":\"site-%d\",\"static_id\":\"site-%d\",\"inputs\":[],\"output\":\"site-%d\"",
			3001 + i, i, i, i);
		assert_has(text, want);
	}
	free(text);
}

/* --- edges */

static void conf22_conf23_edges_are_verbatim(void **state)
{
	struct tmk_session *s = session_new(true);
	char *text;
	size_t n;

	(void)state;
	assert_int_equal(tmk_edge_record(s, "", "to", 0), 0);
	assert_int_equal(tmk_edge_record(s, "from", NULL, UINT64_MAX), 0);
	assert_int_equal(tmk_session_finish(s), 0);
	text = lines_read(&n);
	assert_string_equal(
		strchr(text, '\n') + 1,
		"{\"kind\":\"edge_timing\",\"event_id\":\"train-edge-0-1\",\"from_static_id\":\"\","
		"\"to_static_id\":\"to\",\"duration_ns\":0,\"step\":0}\n"
		"{\"kind\":\"edge_timing\",\"event_id\":\"train-edge-0-2\",\"from_static_id\":"
		"\"from\",\"to_static_id\":\"\",\"duration_ns\":18446744073709551615,\"step\":0}\n");
	free(text);
}

/* --- the whole file */

/* Replaces the digits of operations' durations, which alone may differ. */
static char *durations_blanked(const char *text)
{
	char *out = malloc(strlen(text) + 1), *to = out;
	bool is_op = false;

	assert_non_null(out);
	while (*text) {
		if (!strncmp(text, "{\"kind\":", 8))
			is_op = !strncmp(text + 8, "\"operation\"", 11);
		if (is_op && !strncmp(text, "\"duration_ns\":", 14)) {
			memcpy(to, text, 14);
			to += 14;
			text += 14;
			while (*text >= '0' && *text <= '9')
				text++;
			*to++ = 'N';
			continue;
		}
		*to++ = *text++;
	}
	*to = '\0';
	return out;
}

/* conf29: removes tickmark's own fields, which stand last in their line, and its closing line. */
static void own_fields_remove(char *text)
{
	char *to = text;

	while (*text) {
		size_t len = strcspn(text, "\n") + 1;
		char *own = memmem(text, len, ",\"start_ns\":", 12);

		if (!memmem(text, len, "\"event_id\":\"capture\"", 20)) {
			memmove(to, text, len);
			to += own ? own - text : (ptrdiff_t)len;
			if (own) {
				memcpy(to, "}\n", 2);
				to += 2;
			}
		}
		text += len;
	}
	*to = '\0';
}

/* The calls that the reference file was made with. */
static void reference_session_run(bool strict)
{
	static const char *const features[] = { "cuda", "a\"b" };
	const char *inputs[] = { "x", "y\x01\t\x7f\xe2\x80\xa8\xc3\xa9\xf0\x9f\x98\x80/\\\"" };
	struct tmk_config config = tmk_config_train("Model::forward");
	struct tmk_op first, second;
	struct tmk_session *s;

	config.cargo_features = features;
	config.n_cargo_features = 2;
	config.analysis_id = "analysis:test";
	config.build_id = "candle-graph/build/1:0123456789abcdef";
	config.strict = strict;
	s = session_at("reference.jsonl", &config);
	first = tmk_op_begin(
		s, tmk_site_intern("operation:train:Model::forward:0", "matmul", inputs, 2));
	tmk_edge_record(s, "tensor:a", "operation:b", UINT64_MAX);
	tmk_session_set_step(s, 4);
	second = tmk_op_begin(s, &bare);
	assert_int_equal(tmk_op_end(s, first, "out"), 0);
	assert_int_equal(tmk_op_end(s, second, NULL), 0);
	assert_int_equal(tmk_session_finish(s), 0);
}

static char *data_read(const char *name)
{
	char file[4096];
	const char *last = strrchr(__FILE__, '/');
	size_t len;

	/* Tests are built from the top folder and may be run from anywhere. */
	snprintf(file, sizeof(file), "%.*s/../data/%s", (int)(last - __FILE__), __FILE__, name);
	return text_read(file, &len);
}

static char *reference; /* the file that the real ProfileSession wrote */

static int reference_read(void **state)
{
	reference = data_read("profile_session.jsonl");
	return dir_make(state);
}

static int reference_free(void **state)
{
	free(reference);
	return dir_remove(state);
}

static void conf16_conf25_same_bytes_as_profile_session(void **state)
{
	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		struct tmk_check_counts counts;
		char *text, *got, *want;
		size_t n;

		reference_session_run(strict);
		assert_accepted(path, &counts);
		text = lines_read(&n);
		assert_int_equal(n, strict ? 4 : 5);
		if (!strict)
			own_fields_remove(text);
		got = durations_blanked(text);
		want = durations_blanked(reference);
		assert_string_equal(got, want);
		free(want);
		free(got);
		free(text);
	}
}

static void conf30_strict_has_no_own_field(void **state)
{
	char *text;
	size_t n;

	(void)state;
	reference_session_run(true);
	text = lines_read(&n);
	assert_has_not(text, "start_ns");
	assert_has_not(text, "\"pid\"");
	assert_has_not(text, "capture");
	free(text);
}

static void conf18_conf28_a_million_unique_ids(void **state)
{
	struct tmk_session *s = session_new(true);
	struct tmk_check_counts counts;

	(void)state;
	for (int i = 0; i < 500000; i++) {
		tmk_op_end(s, tmk_op_begin(s, &qkv), NULL);
		tmk_edge_record(s, "a", "b", 1);
	}
	assert_int_equal(tmk_session_finish(s), 0);
	assert_accepted(path, &counts); /* a repeated id would be refused */
	assert_int_equal(counts.operations, 500000);
	assert_int_equal(counts.edges, 500000);
}

static void closing_line_tells_the_clock(void **state)
{
	struct tmk_session *s;
	struct timespec real;
	uint64_t before = now_ns(), start, end;
	char *text, *capture;
	size_t n;

	(void)state;
	s = session_new(false);
	assert_int_equal(tmk_session_finish(s), 0);
	clock_gettime(CLOCK_REALTIME, &real);
	text = lines_read(&n);
	capture = strstr(
		text,
		"{\"kind\":\"operation\",\"event_id\":\"capture\",\"op\":\"capture\",\"inputs\":[],"
		"\"capture\":{\"status\":\"complete\",\"source\":\"in_process\",\"start_ns\":");
	assert_non_null(capture);
	start = number_of(capture, "\"start_ns\":");
	end = number_of(capture, "\"end_ns\":");
	assert_true(before <= start && start <= end && end <= now_ns());
	assert_int_equal(number_of(capture, "\"monotonic_ns\":"), start);
	assert_true(number_of(capture, "\"realtime_ns\":") / 1000000000u + 100 >
		    (uint64_t)real.tv_sec);
	assert_has(capture, "\"lost\":{\"memory\":0}");
	free(text);
}

/* --- threads */

enum { THREADS = 8, ROUNDS = 5000 };

static void *thread_work(void *arg)
{
	struct tmk_session *s = arg;
	struct tmk_op ops[5];

	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 5; k++)
			ops[k] = tmk_op_begin(s, k % 2 ? &qkv : &bare);
		for (int k = 4; k >= 0; k--)
			assert_int_equal(tmk_op_end(s, ops[k], k ? "out" : NULL), 0);
		tmk_edge_record(s, "from", "to", (uint64_t)i);
	}
	return NULL;
}

static void many_threads_share_a_session(void **state)
{
	struct tmk_session *s = session_new(false);
	struct tmk_check_counts counts;
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_work, s), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(tmk_session_flush(s), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(tmk_session_finish(s), 0);
	assert_accepted(path, &counts);
	assert_int_equal(counts.operations, THREADS * ROUNDS * 5);
	assert_int_equal(counts.edges, THREADS * ROUNDS);
}

struct contest {
	struct tmk_session *s;
	struct tmk_op op[1000];
	unsigned int won; /* atomic */
	pthread_barrier_t start;
};

static void *contest_end(void *arg)
{
	struct contest *c = arg;

	pthread_barrier_wait(&c->start);
	for (int i = 0; i < 1000; i++) {
		if (!tmk_op_end(c->s, c->op[i], NULL))
			__atomic_add_fetch(&c->won, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void conf14_of_many_ends_one_wins(void **state)
{
	struct contest c = { .s = session_new(true) };
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 1000; i++)
		c.op[i] = tmk_op_begin(c.s, &qkv);
	pthread_barrier_init(&c.start, NULL, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, contest_end, &c), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&c.start);
	assert_int_equal(c.won, 1000);
	assert_int_equal(tmk_session_finish(c.s), 0);
}

static void *cancelled_work(void *arg)
{
	for (;;) {
		tmk_op_end(arg, tmk_op_begin(arg, &qkv), NULL);
		tmk_session_flush(arg);
		pthread_testcancel();
	}
	return NULL;
}

static void cancelled_threads_leave_no_lock(void **state)
{
	struct tmk_session *s = session_new(false);
	struct tmk_check_counts counts;

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct timespec wait = { 0, 200000 };
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, cancelled_work, s), 0);
		nanosleep(&wait, NULL);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	assert_int_equal(tmk_session_finish(s), 0);
	assert_accepted(path, &counts);
}

/* --- processes */

static int child_status(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void conf21_child_never_writes_the_parents_file(void **state)
{
	struct tmk_session *s = session_new(true);
	struct tmk_op op;
	char *text;
	size_t n;

	(void)state;
	tmk_op_end(s, tmk_op_begin(s, &qkv), "first");
	op = tmk_op_begin(s, &qkv);
	/* By fork(), with its buffer full of the parent's lines, and past the library's own watch. */
	for (int raw = 0; raw < 2; raw++) {
		pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();

		if (!child) {
			bool ok = true;

			for (int i = 0; i < 3000; i++)
				tmk_op_end(s, tmk_op_begin(s, &qkv), "child");
			tmk_op_end(s, op, "child");
			ok = !tmk_session_flush(s) && !tmk_session_finish(s);
			ok = ok && (raw || !tmk_enabled());
			if (raw)
				_exit(ok ? 0 : 1);
			exit(ok ? 0 : 1);
		}
		assert_int_equal(child_status(child), 0);
	}
	assert_int_equal(tmk_enabled(), 1);
	assert_int_equal(tmk_op_end(s, op, "second"), 0);
	tmk_op_end(s, tmk_op_begin(s, &qkv), "third");
	assert_int_equal(tmk_session_finish(s), 0);
	text = lines_read(&n);
	assert_int_equal(n, 4);
	assert_has_not(text, "child");
	assert_has(text, "op-0-3");
	assert_has_not(text, "op-0-4");
	free(text);
}

static void child_may_have_a_session_of_its_own(void **state)
{
	struct tmk_session *s = session_new(false);
	struct tmk_check_counts counts;
	pid_t child = fork();

	(void)state;
	if (!child) {
		struct tmk_config config = tmk_config_train("child");
		struct tmk_session *own = session_at("child.jsonl", &config);
		bool ok = tmk_enabled();

		tmk_op_end(own, tmk_op_begin(own, &qkv), NULL);
		ok = ok && !tmk_session_finish(own) && !tmk_enabled();
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(child_status(child), 0);
	assert_int_equal(tmk_session_finish(s), 0);
	snprintf(path, sizeof(path), "%s/child.jsonl", dir);
	assert_accepted(path, &counts);
	assert_int_equal(counts.operations, 1);
}

struct forking {
	struct tmk_session *s;
	bool stop;
};

static void *busy_work(void *arg)
{
	struct forking *f = arg;
	char name[32];

	for (unsigned int i = 0; !__atomic_load_n(&f->stop, __ATOMIC_RELAXED); i++) {
		struct tmk_config config = tmk_config_train("E");
		struct tmk_session *s;

		snprintf(name, sizeof(name), "op-%u", i % 10000);
		tmk_op_end(f->s, tmk_op_begin(f->s, tmk_site_intern(name, name, NULL, 0)), NULL);
		if (!tmk_session_open(&s, "/dev/null", &config))
			tmk_session_finish(s);
	}
	return NULL;
}

/* A lock that some other thread held at the fork would stop the child for ever. */
static void forks_amid_busy_threads(void **state)
{
	struct forking f = { session_new(false), false };
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, busy_work, &f), 0);
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();

		if (!child) {
			char name[32];

			alarm(20);
			snprintf(name, sizeof(name), "child-%d", i);
			tmk_op_end(f.s, tmk_op_begin(f.s, tmk_site_intern(name, name, NULL, 0)),
				   NULL);
			_exit(tmk_session_finish(f.s) ? 1 : 0);
		}
		assert_int_equal(child_status(child), 0);
	}
	__atomic_store_n(&f.stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(tmk_session_finish(f.s), 0);
}

static void exit_writes_what_is_buffered(void **state)
{
	pid_t child;
	char *text;
	size_t n;

	(void)state;
	child = fork();
	if (!child) {
		static struct tmk_session *s; /* not forgotten, only not finished */

		s = session_new(false);
		tmk_op_end(s, tmk_op_begin(s, &qkv), "last");
		exit(0);
	}
	assert_int_equal(child_status(child), 0);
	snprintf(path, sizeof(path), "%s/session.jsonl", dir);
	text = lines_read(&n);
	assert_int_equal(n, 2);
	assert_has(text, "\"output\":\"last\"");
	free(text);
}

static void conf09_killed_program_leaves_whole_lines(void **state)
{
	struct tmk_check_counts counts = { 0 };
	struct stat st = { 0 };
	char *text, *end;
	pid_t child;
	size_t n;

	(void)state;
	snprintf(path, sizeof(path), "%s/session.jsonl", dir);
	unlink(path);
	child = fork();
	if (!child) {
		struct tmk_session *s;

		alarm(60);
		s = session_new(false);
		for (;;)
			tmk_op_end(s, tmk_op_begin(s, &qkv), "q_k_v");
	}
	while (st.st_size < 1000000 && (stat(path, &st) || st.st_size < 1000000))
		usleep(1000);
	kill(child, SIGKILL);
	assert_int_equal(child_status(child), SIGKILL);
	text = text_read(path, &n);
	/* The kernel may cut a write() short for a SIGKILL; nothing else leaves a cut line. */
	end = memrchr(text, '\n', n);
	assert_non_null(end);
	assert_int_equal(tmk_check_memory(text, (size_t)(end + 1 - text), NULL, NULL, 0, &counts),
			 0);
	assert_true(counts.operations > 1000);
	free(text);
}

static void descriptor_closed_behind_our_back(void **state)
{
	struct tmk_session *s = session_new(true);
	char other[sizeof(dir) + 64], *text;
	size_t n;
	int fd;

	(void)state;
	tmk_op_end(s, tmk_op_begin(s, &qkv), "first");
	assert_int_equal(tmk_session_flush(s), 0);
	/* As a program does that becomes a daemon: all closed, and the numbers used again. */
	for (fd = 3; fd < 64; fd++)
		close(fd);
	snprintf(other, sizeof(other), "%s/other.txt", dir);
	for (fd = 0; fd < 32;)
		fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	tmk_op_end(s, tmk_op_begin(s, &qkv), "second");
	assert_int_equal(tmk_session_finish(s), 0);
	for (; fd >= 3; fd--)
		assert_int_equal(close(fd), 0); /* the other file's were left alone */
	text = lines_read(&n);
	assert_int_equal(n, 3);
	assert_has(text, "second");
	free(text);
	text = text_read(other, &n);
	assert_int_equal(n, 0);
	free(text);
}

/* --- errors */

static void conf33_first_write_fails(void **state)
{
	struct tmk_config config = tmk_config_train("E");
	struct tmk_session *s;

	(void)state;
	assert_int_equal(tmk_session_open(&s, "/dev/full", &config), 0);
	assert_int_equal(tmk_op_end(s, tmk_op_begin(s, &qkv), NULL), 0);
	assert_int_equal(tmk_session_flush(s), -ENOSPC);
	assert_has(tmk_last_error(), "/dev/full");
	assert_has(tmk_last_error(), "No space");
	assert_int_equal(tmk_op_end(s, tmk_op_begin(s, &qkv), NULL), 0);
	assert_int_equal(tmk_edge_record(s, "a", "b", 1), 0);
	assert_int_equal(tmk_session_flush(s), -ENOSPC);
	assert_int_equal(tmk_session_finish(s), -ENOSPC);

	assert_int_equal(tmk_session_open(&s, "/dev/full", &config), 0);
	assert_int_equal(tmk_session_finish(s), -ENOSPC);
	assert_int_equal(tmk_enabled(), 0);
}

static void conf33_later_write_fails(void **state)
{
	struct rlimit limit, old;
	struct tmk_session *s;
	char *text;
	size_t n, n_later;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	s = session_new(false);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 100001;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(tmk_op_end(s, tmk_op_begin(s, &qkv), "q_k_v"), 0);
	assert_int_equal(tmk_session_flush(s), -EFBIG);
	text = lines_read(&n); /* cut back to whole lines */
	assert_true(n > 100 && strlen(text) <= 100001);
	free(text);
	/* Sticky: also when there is room again. */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	tmk_op_end(s, tmk_op_begin(s, &qkv), "q_k_v");
	assert_int_equal(tmk_session_flush(s), -EFBIG);
	assert_int_equal(tmk_session_finish(s), -EFBIG);
	free(lines_read(&n_later));
	assert_int_equal(n_later, n);
	signal(SIGXFSZ, SIG_DFL);
}

static void conf33_full_file_system(void **state)
{
	struct tmk_config config = tmk_config_train("E");
	char mount[sizeof(dir) + 128], full[sizeof(dir) + 16];
	struct tmk_session *s;
	int err;

	(void)state;
	snprintf(full, sizeof(full), "%s/full", dir);
	mkdir(full, 0777);
	snprintf(mount, sizeof(mount), "mount -t tmpfs -o size=200k tmpfs %s 2>/dev/null", full);
	if (geteuid() || system(mount)) /* NOLINT: a name that mkdtemp made */
		skip();
	snprintf(path, sizeof(path), "%s/session.jsonl", full);
	err = tmk_session_open(&s, path, &config);
	if (!err) {
		size_t n = 0;

		for (int i = 0; i < 5000; i++)
			tmk_op_end(s, tmk_op_begin(s, &qkv), "q_k_v");
		err = tmk_session_finish(s);
		free(lines_read(&n));
		assert_true(n > 100);
	}
	snprintf(mount, sizeof(mount), "umount %s", full);
	assert_int_equal(system(mount), 0); /* NOLINT */
	assert_int_equal(err, -ENOSPC);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#define HAS_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define HAS_SANITIZER 0
#endif

static void memory_runs_out(void **state)
{
	struct tmk_config config = tmk_config_train("E");
	struct tmk_session *s;
	char *text;
	size_t n;
	pid_t child;

	(void)state;
	if (HAS_SANITIZER)
		skip(); /* it needs the address space itself */
	child = fork();
	if (!child) {
		struct rlimit limit = { 64u << 20, 64u << 20 };
		struct tmk_op op = { 0, 0 };
		int err = 0;

		s = session_at("memory.jsonl", &config);
		setrlimit(RLIMIT_AS, &limit);
		for (int i = 0; i < 4000000 && op.slot != UINT64_MAX; i++)
			op = tmk_op_begin(s, &qkv);
		err = tmk_op_end(s, op, NULL);
		_exit(err == -ENOMEM && !tmk_session_finish(s) ? 0 : 1);
	}
	assert_int_equal(child_status(child), 0);
	snprintf(path, sizeof(path), "%s/memory.jsonl", dir);
	text = lines_read(&n);
	assert_has(text, "\"lost\":{\"memory\":1}");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf01_open_makes_parents_and_truncates),
		cmocka_unit_test(conf02_conf03_meta_is_the_first_line),
		cmocka_unit_test(config_is_checked),
		cmocka_unit_test(conf04_conf05_conf06_numbers_and_steps),
		cmocka_unit_test(conf07_flush_makes_lines_readable),
		cmocka_unit_test(conf08_session_without_events),
		cmocka_unit_test(conf09_killed_program_leaves_whole_lines),
		cmocka_unit_test(conf10_conf12_lines_come_in_end_order),
		cmocka_unit_test(conf13_another_thread_may_end),
		cmocka_unit_test(conf14_unknown_and_repeated_ends),
		cmocka_unit_test(conf14_of_many_ends_one_wins),
		cmocka_unit_test(conf15_unended_operations_are_counted),
		cmocka_unit_test(conf16_conf25_same_bytes_as_profile_session),
		cmocka_unit_test(conf17_scope_guard),
		cmocka_unit_test(conf18_conf28_a_million_unique_ids),
		cmocka_unit_test(conf19_long_strings_are_cut_and_say_so),
		cmocka_unit_test(conf19_long_config_is_cut_and_says_so),
		cmocka_unit_test(conf20_conf26_strings_of_any_bytes),
		cmocka_unit_test(another_site_at_the_same_address),
		cmocka_unit_test(thousands_of_sites),
		cmocka_unit_test(conf21_child_never_writes_the_parents_file),
		cmocka_unit_test(conf22_conf23_edges_are_verbatim),
		cmocka_unit_test(conf30_strict_has_no_own_field),
		cmocka_unit_test(conf33_first_write_fails),
		cmocka_unit_test(conf33_later_write_fails),
		cmocka_unit_test(conf33_full_file_system),
		cmocka_unit_test(closing_line_tells_the_clock),
		cmocka_unit_test(many_threads_share_a_session),
		cmocka_unit_test(cancelled_threads_leave_no_lock),
		cmocka_unit_test(child_may_have_a_session_of_its_own),
		cmocka_unit_test(forks_amid_busy_threads),
		cmocka_unit_test(exit_writes_what_is_buffered),
		cmocka_unit_test(descriptor_closed_behind_our_back),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, reference_read, reference_free);
}
