/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text: reading it, the vocabulary of the bytes that occur in it, and random windows of it.
 */
#ifndef TRANSFORMER_TEXT_H
#define TRANSFORMER_TEXT_H

#include <stddef.h>

#include "rng.h"

#define TEXT_MAX ((size_t)32 << 20) /* bytes; of a longer text the beginning is used */

struct text {
	unsigned char *tokens; /* the text, as indices into the vocabulary */
	size_t n;
	size_t vocab;
	int token_of[256]; /* -1: a byte that the text never used */
	unsigned char byte_of[256];
};

/* Returns 0 or a negative errno; -ENODATA for an empty text. */
int text_load(struct text *text, const char *path);

/* As text_load(), from memory. */
int text_from_bytes(struct text *text, const unsigned char *bytes, size_t n);

void text_free(struct text *text);

/*
 * Draws `batch` windows of `time` tokens; the targets are the tokens that follow each. The text must be
 * longer than `time`.
 */
void text_batch(const struct text *text, struct rng *rng, size_t batch, size_t time, int *tokens,
		int *targets);

#endif
