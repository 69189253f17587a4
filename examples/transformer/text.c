// SPDX-License-Identifier: BSD-2-Clause
/*
 * The text: from a file to tokens and batches.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "text.h"

/* Makes room for more of a file whose size nobody knows. */
static int grow(unsigned char **bytes, size_t *capacity)
{
	size_t more = *capacity ? 2 * *capacity : 1 << 16;
	unsigned char *moved;

	if (more > TEXT_MAX)
		more = TEXT_MAX;
	moved = realloc(*bytes, more);
	if (!moved)
		return -ENOMEM;
	*bytes = moved;
	*capacity = more;
	return 0;
}

/* Reads until the end or TEXT_MAX; a pipe will do. */
static int read_all(int fd, unsigned char **bytes, size_t *n)
{
	size_t capacity = 0;

	*n = 0;
	while (*n < TEXT_MAX) {
		ssize_t got;
		int err = *n == capacity ? grow(bytes, &capacity) : 0;

		if (err)
			return err;
		got = read(fd, *bytes + *n, capacity - *n);
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		*n += (size_t)got;
	}
	return 0;
}

int text_load(struct text *text, const char *path)
{
	unsigned char *bytes = NULL;
	size_t n;
	int fd, err;

	*text = (struct text){ 0 };
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = read_all(fd, &bytes, &n);
	close(fd);
	if (!err)
		err = text_from_bytes(text, bytes, n);
	free(bytes);
	return err;
}

static void make_vocabulary(struct text *text, const unsigned char *bytes, size_t n)
{
	bool used[256] = { false };

	for (size_t i = 0; i < n; i++)
		used[bytes[i]] = true;
	for (int b = 0; b < 256; b++) {
		text->token_of[b] = -1;
		if (!used[b])
			continue;
		text->token_of[b] = (int)text->vocab;
		text->byte_of[text->vocab++] = (unsigned char)b;
	}
}

int text_from_bytes(struct text *text, const unsigned char *bytes, size_t n)
{
	*text = (struct text){ .n = n };
	if (n == 0)
		return -ENODATA;
	text->tokens = calloc(n, sizeof(*text->tokens));
	if (!text->tokens)
		return -ENOMEM;
	make_vocabulary(text, bytes, n);
	for (size_t i = 0; i < n; i++)
		text->tokens[i] = (unsigned char)text->token_of[bytes[i]];
	return 0;
}

void text_free(struct text *text)
{
	free(text->tokens);
	text->tokens = NULL;
}

void text_batch(const struct text *text, struct rng *rng, size_t batch, size_t time, int *tokens,
		int *targets)
{
	for (size_t b = 0; b < batch; b++) {
		const size_t from = (size_t)rng_below(rng, text->n - time);

		for (size_t t = 0; t < time; t++) {
			tokens[b * time + t] = text->tokens[from + t];
			targets[b * time + t] = text->tokens[from + t + 1];
		}
	}
}
