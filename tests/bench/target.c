// SPDX-License-Identifier: BSD-2-Clause
/*
 * Benchmark target: a marked program that makes operations on demand and times them by its own clock.
 * It knows nothing of who traces it. Commands are lines on standard input, each answered by one line:
 *
 *	pairs N			N begin+end pairs back to back		→ pairs N NANOSECONDS
 *	windows N		N start+end pairs of windows		→ windows N NANOSECONDS
 *	paced RATE SECONDS	RATE operations a second, evenly	→ paced N NANOSECONDS
 *	listening		how many probes hold the switch up?	→ listening COUNT
 *
 * Ends with its standard input.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tickmark/tickmark.h"

/* The names that an operation of a small transformer carries. */
TMK_SITE(site, "operation:train:Gpt::forward:3", "matmul", "x", "w_qkv");

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + ts.tv_nsec;
}

static void pair(struct tmk_session *s)
{
	struct tmk_op op = tmk_op_begin(s, &site);

	tmk_op_end(s, op, NULL);
}

static uint64_t pairs_run(struct tmk_session *s, uint64_t n)
{
	uint64_t start = now_ns();

	for (uint64_t i = 0; i < n; i++)
		pair(s);
	return now_ns() - start;
}

static uint64_t windows_run(struct tmk_session *s, uint64_t n)
{
	uint64_t start = now_ns();

	for (uint64_t i = 0; i < n; i++) {
		struct tmk_window w;

		tmk_window_start(s, "decode", &w);
		tmk_window_end(s, w, NULL);
	}
	return now_ns() - start;
}

/*
 * Spins between operations, since a sleep would be longer than their distance. Time that the scheduler
 * took is made up for at once: that burst is part of what a tracer must bear.
 */
static uint64_t paced_run(struct tmk_session *s, uint64_t rate, uint64_t seconds)
{
	uint64_t start = now_ns(), n = rate * seconds;

	for (uint64_t i = 0; i < n; i++) {
		while (now_ns() - start < i * 1000000000u / rate)
			;
		pair(s);
	}
	return now_ns() - start;
}

static int listeners(void)
{
	return ((const volatile struct tmk_switch *)tmk_switch_address())->direct;
}

static int command_run(struct tmk_session *s, const char *line)
{
	uint64_t n, rate, seconds;

	if (sscanf(line, "pairs %" SCNu64, &n) == 1)
		printf("pairs %" PRIu64 " %" PRIu64 "\n", n, pairs_run(s, n));
	else if (sscanf(line, "windows %" SCNu64, &n) == 1)
		printf("windows %" PRIu64 " %" PRIu64 "\n", n, windows_run(s, n));
	else if (sscanf(line, "paced %" SCNu64 " %" SCNu64, &rate, &seconds) == 2 && rate)
		printf("paced %" PRIu64 " %" PRIu64 "\n", rate * seconds,
		       paced_run(s, rate, seconds));
	else if (!strncmp(line, "listening", 9))
		printf("listening %d\n", listeners());
	else
		return -1;
	return fflush(stdout);
}

int main(void)
{
	struct tmk_config config = tmk_config_train("Gpt::forward");
	struct tmk_session *s;
	char line[128];

	if (tmk_session_open(&s, NULL, &config)) {
		fprintf(stderr, "target: %s\n", tmk_last_error());
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (command_run(s, line)) {
			fprintf(stderr, "target: bad command: %s", line);
			return 2;
		}
	}
	return tmk_session_finish(s) ? 1 : 0;
}
