// SPDX-License-Identifier: BSD-2-Clause
/*
 * tmk_check_memory() behind the same protocol as `importer batch`, for fuzz.py to compare the two: a
 * decimal length, a newline and that many bytes in; "1", or "0" and the first reason, out. Each text
 * lies in a block of its very size, so that a sanitizer sees the first byte read past its end.
 * tmk_check_windows() reads it as well, but has no say in the answer: its rules are not the importer's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime3/check.h"
#include "runtime3/check_windows.h"

struct first {
	uint64_t line;
	char text[512];
};

static void reason_keep(void *ctx, uint64_t line, const char *text)
{
	struct first *f = ctx;

	f->line = line;
	snprintf(f->text, sizeof(f->text), "%s", text);
}

static int case_check(size_t len)
{
	struct tmk_check_counts counts;
	struct first first = { 0 }, broken = { 0 };
	char *text = malloc(len ? len : 1);
	int64_t n, rules;

	if (!text || fread(text, 1, len, stdin) != len) {
		free(text);
		return -1;
	}
	n = tmk_check_memory(text, len, reason_keep, &first, 1, &counts);
	rules = tmk_check_windows(text, len, &counts, reason_keep, &broken, 1);
	free(text);
	if (n < 0 || rules < 0)
		return -1;
	if (n == 0)
		puts("1");
	else
		printf("0 %" PRIu64 ": %s\n", first.line, first.text);
	return 0;
}

int main(void)
{
	size_t len;

	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	while (scanf("%zu", &len) == 1) {
		if (getchar() != '\n' || case_check(len)) {
			fputs("batch: cannot check a case\n", stderr);
			return 1;
		}
	}
	return 0;
}
