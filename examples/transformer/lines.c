// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lines from a file descriptor.
 */
#include <errno.h>
#include <unistd.h>

#include "lines.h"
#include "stop.h"

void lines_init(struct lines *lines, int fd)
{
	lines->fd = fd;
	lines->ended = false;
	lines->from = 0;
	lines->to = 0;
}

/* Returns 1, 0 at the end, or a negative errno. */
static int fill(struct lines *lines)
{
	for (;;) {
		int ready = stop_or_readable(lines->fd);
		ssize_t n;

		if (ready <= 0)
			return ready;
		n = read(lines->fd, lines->bytes, sizeof(lines->bytes));
		if (n > 0) {
			lines->from = 0;
			lines->to = (size_t)n;
		}
		if (n >= 0)
			return n > 0;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}

int lines_next(struct lines *lines)
{
	size_t n = 0;
	bool some = false;

	while (!lines->ended) {
		if (lines->from == lines->to) {
			int got = fill(lines);

			if (got < 0)
				return got;
			lines->ended = got == 0;
			continue;
		}
		some = true;
		if (lines->bytes[lines->from] == '\n') {
			lines->from++;
			break;
		}
		if (n < sizeof(lines->line) - 1)
			lines->line[n++] = lines->bytes[lines->from];
		lines->from++;
	}
	lines->line[n] = '\0';
	return some && !stop_requested();
}
