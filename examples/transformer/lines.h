/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines from a file descriptor, with a wait that a request to stop interrupts.
 */
#ifndef TRANSFORMER_LINES_H
#define TRANSFORMER_LINES_H

#include <stdbool.h>
#include <stddef.h>

#define LINE_MAX_BYTES 4096u

struct lines {
	int fd;
	bool ended;
	char bytes[LINE_MAX_BYTES];
	size_t from, to; /* what is read and not yet taken */
	char line[LINE_MAX_BYTES];
};

void lines_init(struct lines *lines, int fd);

/*
 * The next line, without its end, in `line`. What a line has above LINE_MAX_BYTES - 1 is dropped; a
 * NUL ends it. Returns 1, 0 at the end or when a stop was requested, or a negative errno.
 */
int lines_next(struct lines *lines);

#endif
