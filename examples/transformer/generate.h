/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generating: a prompt goes in, the model's continuation comes out, token by token.
 */
#ifndef TRANSFORMER_GENERATE_H
#define TRANSFORMER_GENERATE_H

#include <stdio.h>

#include "gpt.h"
#include "text.h"

struct generator {
	const struct text *text;
	const struct marks *marks;
	struct executor executor;
	struct gpt gpt; /* its tokens are the window on what was said so far */
	struct rng rng;
	struct mark_site encode;
	struct mark_site sample;
	double *chances; /* of each token of the vocabulary; in the arena of gpt */
	uint64_t step;	 /* tokens generated so far, over all prompts */
};

/* The generator must stay where it is. Returns 0, -ENOMEM, or -EFBIG. */
int generator_open(struct generator *g, const struct parameters *parameters,
		   const struct text *text, struct pool *pool, const struct marks *marks,
		   uint64_t seed);
void generator_close(struct generator *g);

/*
 * Writes up to `tokens` bytes that continue `prompt`, each as soon as it is known; with `one_line`,
 * line ends become spaces. Bytes of the prompt that the text never used are left out. Ends early when
 * stop_requested(). Returns 0, or -EIO when writing failed.
 */
int generator_answer(struct generator *g, const char *prompt, size_t tokens, FILE *out,
		     bool one_line);

#endif
