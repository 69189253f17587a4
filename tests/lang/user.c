// SPDX-License-Identifier: BSD-2-Clause
/*
 * A C11 program that uses libtickmark as its header says, and writes a file at its argument. The same
 * events as user.cc and user.rs make; test_lang.py compares the files. Says "ok" when every call gave
 * what it should.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <tickmark/tickmark.h>

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

/* A static constant that nobody uses is no reason for a warning. */
TMK_SITE(unused, "", "");
TMK_SITE(many, "operation:train:M::f:1", "add", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10",
	 "11", "12", "13", "14", "15", "16");
TMK_SITE(plain, "operation:train:M::f:2", "matmul");

/* What other languages call, and what C calls where a function's address is taken. */
static int (*const enabled_in_library)(void) = tmk_enabled;

static void enabled_is(int want)
{
	CHECK(tmk_enabled() == want);
	CHECK(enabled_in_library() == want);
}

static int leaves_early(struct tmk_session *s, int early)
{
	TMK_OP_SCOPE(s, &plain);

	if (early)
		return 1;
	abort();
}

static void events_make(struct tmk_session *s)
{
	TMK_SITE(inner, "operation:train:M::f:3", "relu", "x");
	const char *inputs[] = { "r1", "r2" };
	struct tmk_op op = tmk_op_begin(s, &many);
	uint64_t ns = 0;

	CHECK(tmk_op_end(s, op, "out") == 0);
	CHECK(tmk_op_end(s, op, "out") == -ENOENT);
	CHECK(tmk_edge_record(s, "tensor:a", "operation:b", 7) == 0);
	tmk_session_set_step(s, 1);
	CHECK(leaves_early(s, 1) == 1);
	op = tmk_op_begin_inputs(s, &plain, inputs, 2);
	CHECK(tmk_op_end_timed(s, op, "\xc3\xa9", &ns) == 0);
	{
		TMK_OP_SCOPE(s, &inner);
	}
}

static int leaves_window_early(struct tmk_session *s, int early)
{
	TMK_WINDOW_GUARD(guard, s, "guarded");

	if (early)
		return 1;
	return tmk_window_guard_end(&guard, NULL);
}

static void windows_make(struct tmk_session *s)
{
	const struct tmk_window_options options = { .flush = 1 };
	struct tmk_window w;

	{
		TMK_STREAM_SCOPE(3);
		CHECK(tmk_window_start(s, "outer", &w) == 0 && w.id && w.opened_on == 3);
	}
	CHECK(leaves_window_early(s, 1) == 1);
	CHECK(tmk_window_end(s, w, &options) == 0);
	CHECK(tmk_window_end(s, w, &options) == -ENOENT);
	CHECK(tmk_window_start(s, "unwound", &w) == 0);
	tmk_window_abandon(s, w);
}

int main(int argc, char **argv)
{
	struct tmk_config config = tmk_config_train("M::f");
	struct tmk_session *s = NULL, *marks = NULL;
	struct tmk_window w;

	CHECK(argc == 2);
	enabled_is(0);
	CHECK(tmk_op_begin(NULL, &plain).token == 0);
	CHECK(tmk_window_start(NULL, "none", &w) == 0 && w.id == 0);
	CHECK(tmk_session_open(&marks, NULL, &config) == 0);
	enabled_is(0);
	CHECK(tmk_op_begin(marks, &plain).token == 0);
	CHECK(tmk_session_open(&s, argv[1], &config) == 0);
	enabled_is(1);
	events_make(s);
	windows_make(s);
	CHECK(tmk_op_begin(marks, &plain).token == 0); /* of two sessions only one listens */
	CHECK(tmk_session_finish(s) == 0);
	enabled_is(0);
	CHECK(tmk_session_finish(marks) == 0);
	CHECK(tmk_session_open(&s, "/", &config) < 0 && tmk_last_error()[0]);
	puts("ok");
	return 0;
}
