// SPDX-License-Identifier: BSD-2-Clause
/*
 * Benchmark: begin+end pairs of a session that writes its own runtime/3 file, finish included, as a
 * counterpart of rust_session.
 *
 *	session FILE N
 *
 * Prints "N NANOSECONDS".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tickmark/tickmark.h"

TMK_SITE(site, "operation:train:Gpt::forward:3", "matmul", "x", "w_qkv");

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

static int run(const char *path, uint64_t n)
{
	struct tmk_config config = tmk_config_train("Gpt::forward");
	struct tmk_session *s;
	uint64_t start;
	int err;

	config.strict = 1; /* the same bytes as its counterpart */
	err = tmk_session_open(&s, path, &config);
	if (err)
		return err;
	start = now_ns();
	for (uint64_t i = 0; i < n; i++) {
		struct tmk_op op = tmk_op_begin(s, &site);

		tmk_op_end(s, op, "q_k_v");
	}
	err = tmk_session_finish(s);
	if (!err)
		printf("%" PRIu64 " %" PRIu64 "\n", n, now_ns() - start);
	return err;
}

int main(int argc, char **argv)
{
	uint64_t n;
	char *end;
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: session FILE N\n");
		return 2;
	}
	n = strtoull(argv[2], &end, 10);
	if (*end || !n) {
		fprintf(stderr, "session: '%s' is no count\n", argv[2]);
		return 2;
	}
	err = run(argv[1], n);
	if (err) {
		fprintf(stderr, "session: %s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	return 0;
}
