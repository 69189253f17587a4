/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generating: a prompt goes in, the model's continuation comes out, token by token. The numbers that a
 * token is drawn from come from the model by way of a device (device_queue.h).
 */
#ifndef TRANSFORMER_GENERATE_H
#define TRANSFORMER_GENERATE_H

#include <stdio.h>

#include "device_queue.h"
#include "gpt.h"
#include "text.h"

struct generator {
	const struct text *text;
	const struct marks *marks;
	struct executor executor;
	struct gpt gpt; /* its tokens are the end of what was said so far */
	struct device_queue *device;
	struct rng rng;
	struct mark_site encode, copy, sample;
	struct mark copying;   /* what the device is at */
	struct tensor row;     /* the copy, as the edges see it */
	real *logits;	       /* the copy; in the arena of gpt, like `chances` */
	double *chances;       /* of each token of the vocabulary */
	uint64_t step;	       /* tokens so far, over all prompts */
	uint64_t prompts;      /* so far */
	uint64_t cancel_every; /* 0: none is cancelled */
};

/* The generator must stay where it is. Returns 0, -EFBIG for the model, or another negative errno. */
int generator_open(struct generator *g, const struct parameters *parameters,
		   const struct text *text, struct pool *pool, const struct marks *marks,
		   uint64_t seed, uint64_t cancel_every);
void generator_close(struct generator *g);

/*
 * Writes up to `tokens` bytes that continue `prompt`, each as soon as it is known; with `one_line`,
 * line ends become spaces. Bytes of the prompt that the text never used are left out. Ends early when
 * stop_requested(), and half way where the prompt is one that is cancelled. Returns 0, or -EIO when writing failed.
 */
int generator_answer(struct generator *g, const char *prompt, size_t tokens, FILE *out,
		     bool one_line);

#endif
