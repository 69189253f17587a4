// SPDX-License-Identifier: BSD-2-Clause
/*
 * Windows at the level of the marks, as no library would number them: equal ids on several streams, and
 * every kind of token that is a lie. Has tickmark's markers, but not its library. Prints "ready", waits
 * for a tracer, fires, and ends.
 *
 *	forged equal		equal ids on two numbered streams and a thread's own, interleaved
 *	forged lies		unknown, repeated, reused, stale and absurd tokens; resolves of all sorts
 *	forged deep N		N windows inside one another
 *	forged leak N		N windows that stay open
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "marker/marker_asm.h"
#include "tickmark/marker_abi.h"

__attribute__((section(".probes"))) struct tmk_switch forged_switch = {
	.registry_magic = TMK_REGISTRY_MAGIC,
};

TMK_MARKER(forged_session_finish, session_finish, forged_switch, TMK_MARKER_ARGS_2);
TMK_MARKER(forged_op_begin, op_begin, forged_switch, TMK_MARKER_ARGS_6);
TMK_MARKER(forged_op_end, op_end, forged_switch, TMK_MARKER_ARGS_5);
TMK_MARKER(forged_window_start, window_start, forged_switch, TMK_MARKER_ARGS_6);
TMK_MARKER(forged_window_end, window_end, forged_switch, TMK_MARKER_ARGS_6);
TMK_MARKER(forged_window_resolve, window_resolve, forged_switch, TMK_MARKER_ARGS_6);

#define DESC(name, kind, count, strings)                                            \
	static const struct tmk_desc name = {                                       \
		TMK_DESC_MAGIC, kind, 0, sizeof(strings) - 1, count, 1, { strings } \
	}

DESC(session_desc, TMK_DESC_SESSION, 3, "Forged\0infer\0release\0");
DESC(site_desc, TMK_DESC_SITE, 2, "id\0work\0");
DESC(name_desc, TMK_DESC_NAME, 1, "window\0");
DESC(rude_desc, TMK_DESC_NAME, 1, "\033[2J\xff\r\n\0");

#define SESSION (uintptr_t) & session_desc
#define NAME (uintptr_t) & name_desc

static void window_start(uint64_t id, uint64_t opened_on)
{
	forged_window_start(1, SESSION, NAME, id, opened_on, 7);
}

static void window_end(uint64_t id, uint64_t opened_on, uint64_t how)
{
	forged_window_end(1, SESSION, NAME, id, opened_on, how);
}

static void resolve(uint64_t id, uint64_t opened_on, uint64_t duration, uint64_t how)
{
	forged_window_resolve(1, SESSION, id, opened_on, duration, how);
}

/* An operation on a numbered stream, or on the thread's own. */
static void op_run(uint64_t token, uint64_t stream)
{
	forged_op_begin(1, SESSION, (uintptr_t)&site_desc, token, 7, stream);
	forged_op_end(1, SESSION, token, 7, 0, 0);
}

static void equal_run(void)
{
	const uint64_t id = TMK_WINDOW_NAMED | 1;

	window_start(id, 1);
	window_start(id, 2);
	window_start(1, 1); /* the thread's own, whatever number it claims */
	for (uint64_t i = 1; i <= 9; i++)
		op_run(i | TMK_TOKEN_NAMED, i <= 3 ? 1 : 2);
	op_run(10, 1);
	window_end(id, 2, TMK_WINDOW_CLOSED);
	usleep(20000);
	op_run(11 | TMK_TOKEN_NAMED, 2); /* where no window is open any more */
	window_end(id, 1, TMK_WINDOW_CLOSED);
	window_end(1, 1, TMK_WINDOW_CLOSED);
}

static void lies_run(void)
{
	static const uint64_t wild[] = { 0,	     1,		 UINT64_MAX,
					 1ull << 63, 1ull << 52, 0xffffffff81000000ull };
	const unsigned int n = sizeof(wild) / sizeof(wild[0]);

	window_start(500, 1); /* the honest one, open all the while */
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int k = 0; k < n; k++) {
			window_end(wild[i], wild[k], TMK_WINDOW_CLOSED);
			window_start(wild[i], wild[k]);
			window_start(wild[i], wild[k]);
			window_end(wild[i], wild[k], wild[(i + k) % n]);
			window_end(wild[i], wild[k], TMK_WINDOW_CLOSED);
			resolve(wild[i], wild[k], wild[k], TMK_WINDOW_CLOSED);
		}
		forged_window_start(1, SESSION, wild[i], 600 + i, 1, 0);
		forged_window_end(1, SESSION, (uintptr_t)&rude_desc, 600 + i, 1, TMK_WINDOW_CLOSED);
		forged_window_start(2 + i, wild[i], NAME, 1, 1, 0); /* of no session */
	}
	/* Resolved twice, before the end, never, and as nothing. */
	window_start(700, 1);
	resolve(700, 1, 5, TMK_WINDOW_CLOSED);
	window_end(700, 1, TMK_WINDOW_PENDING | TMK_HOW_DEVICE);
	resolve(700, 1, 7000, TMK_WINDOW_CLOSED);
	resolve(700, 1, 8000, TMK_WINDOW_CLOSED);
	window_start(701, 1);
	window_end(701, 1, TMK_WINDOW_PENDING | TMK_HOW_DEVICE);
	window_start(702, 1);
	window_end(702, 1, TMK_WINDOW_PENDING | TMK_HOW_DEVICE);
	resolve(702, 1, 0, TMK_WINDOW_CLOSED);
	window_start(703, 1);
	window_end(703, 1, TMK_WINDOW_PENDING | TMK_HOW_DEVICE);
	resolve(703, 1, UINT64_MAX, TMK_WINDOW_FAILED | (uint64_t)EIO << TMK_HOW_ERROR_SHIFT);
	window_end(500, 1, TMK_WINDOW_CLOSED);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;

	puts("ready");
	fflush(stdout);
	while (!__atomic_load_n(&forged_switch.direct, __ATOMIC_RELAXED))
		usleep(1000);
	usleep(500000);
	if (!strcmp(what, "equal"))
		equal_run();
	else if (!strcmp(what, "lies"))
		lies_run();
	else if (strcmp(what, "deep") && strcmp(what, "leak"))
		return 2;
	for (uint64_t i = 1; i <= n; i++)
		window_start(i, 1);
	if (!strcmp(what, "deep"))
		for (uint64_t i = n; i; i--)
			window_end(i, 1, TMK_WINDOW_CLOSED);
	forged_session_finish(1, SESSION, 0, 0, 0, 0);
	return 0;
}
