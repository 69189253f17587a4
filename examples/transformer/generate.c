// SPDX-License-Identifier: BSD-2-Clause
/*
 * Generating. Every token runs the whole window through the model again: positions are learned, so
 * once the window slides, nothing that was computed for the old positions could be kept.
 */
#include <errno.h>
#include <math.h>

#include "generate.h"
#include "stop.h"

/* Below 1: rather the likely tokens. */
#define TEMPERATURE 0.8

#define ENCODE_ID "infer:Text::encode:0"
#define SAMPLE_ID "infer:Gpt::sample:0"

TMK_SITE(encode, "operation:" ENCODE_ID, "encode", "prompt");
TMK_SITE(sample, "operation:" SAMPLE_ID, "sample", "logits");

int generator_open(struct generator *g, const struct parameters *parameters,
		   const struct text *text, struct pool *pool, const struct marks *marks,
		   uint64_t seed)
{
	int err;

	*g = (struct generator){
		.text = text,
		.marks = marks,
		.executor = { .pool = pool, .marks = marks, .shape = &g->gpt.shape },
		.rng = rng_stream(seed, 2),
		.encode = mark_site(marks, &encode),
		.sample = mark_site(marks, &sample),
	};
	err = gpt_open(&g->gpt, parameters, marks, TMK_PHASE_INFER, 1, "tensor:" SAMPLE_ID);
	if (err)
		return err;
	g->chances = arena_take(&g->gpt.arena, parameters->size.vocab, sizeof(*g->chances));
	if (!g->chances) {
		err = g->gpt.arena.err;
		gpt_close(&g->gpt);
	}
	return err;
}

void generator_close(struct generator *g)
{
	gpt_close(&g->gpt);
}

/* Appends to the window; what is older than the context falls out at its front. */
static void window_add(struct generator *g, int token)
{
	struct shape *shape = &g->gpt.shape;
	int *tokens = g->gpt.tokens;

	if (shape->time == g->gpt.parameters->size.context) {
		for (size_t i = 1; i < shape->time; i++)
			tokens[i - 1] = tokens[i];
		shape->time--;
	}
	tokens[shape->time++] = token;
}

/* The guard ends the operation on every way out; it has no name for an output. */
static void window_start(struct generator *g, const char *prompt)
{
	struct self_clock_span span = { 0 };

	g->gpt.shape.time = 0;
	self_clock_before_begin(g->marks->clock, &span);
	{
		TMK_OP_SCOPE(g->marks->session, g->encode.desc);

		self_clock_after_begin(g->marks->clock, &span);
		for (const unsigned char *c = (const unsigned char *)prompt; *c; c++) {
			if (g->text->token_of[*c] >= 0)
				window_add(g, g->text->token_of[*c]);
		}
		/* The model continues something: without a prompt, the beginning of its text. */
		if (g->gpt.shape.time == 0)
			window_add(g, g->text->tokens[0]);
		self_clock_before_end(g->marks->clock, &span);
	}
	self_clock_after_end(g->marks->clock, g->encode.clock_row, &span);
	tensor_ready(&g->gpt.source);
}

static int draw_token(struct generator *g)
{
	const size_t vocab = g->gpt.parameters->size.vocab;
	const real *logits = g->gpt.head.y + (g->gpt.shape.time - 1) * vocab;
	double max = (double)logits[0], sum = 0, left;

	for (size_t i = 1; i < vocab; i++)
		max = fmax(max, (double)logits[i]);
	for (size_t i = 0; i < vocab; i++) {
		g->chances[i] = exp(((double)logits[i] - max) / TEMPERATURE);
		sum += g->chances[i];
	}
	left = rng_uniform(&g->rng) * sum;
	for (size_t i = 0; i + 1 < vocab; i++) {
		left -= g->chances[i];
		if (left < 0)
			return (int)i;
	}
	return (int)vocab - 1;
}

static int next_token(struct generator *g)
{
	struct mark mark;
	int token;

	tmk_session_set_step(g->marks->session, ++g->step);
	graph_run(&g->gpt.forward, &g->executor);

	mark_edges(g->marks, &g->gpt.t_logits, 1, "operation:" SAMPLE_ID);
	mark = mark_begin(g->marks, &g->sample);
	token = draw_token(g);
	mark_end(g->marks, &g->sample, &mark, g->gpt.source.name);
	tensor_ready(&g->gpt.source);
	return token;
}

int generator_answer(struct generator *g, const char *prompt, size_t tokens, FILE *out,
		     bool one_line)
{
	window_start(g, prompt);
	for (size_t i = 0; i < tokens && !stop_requested(); i++) {
		const int token = next_token(g);
		const unsigned char byte = g->text->byte_of[token];

		window_add(g, token);
		if (putc(one_line && (byte == '\n' || byte == '\r') ? ' ' : byte, out) == EOF)
			return -EIO;
	}
	return 0;
}
