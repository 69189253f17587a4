/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line.
 */
#ifndef TRANSFORMER_OPTIONS_H
#define TRANSFORMER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options {
	const char *text;
	uint64_t steps;
	unsigned int threads;
	const char **prompts; /* strings of argv; freed by options_free() */
	size_t n_prompts;
	size_t tokens;
	bool serve;
	uint64_t answer_every;	/* 0: not while training */
	uint64_t cancel_every;	/* 0: never */
	const char *trace;	/* or NULL */
	const char *self_clock; /* or NULL */
	uint64_t seed;
	size_t layers, dim, heads, context, batch;
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_BAD };

/* Help goes to stdout; what is bad is said in one line on stderr. */
enum options_result options_parse(struct options *o, int argc, char **argv);
void options_free(struct options *o);

#endif
