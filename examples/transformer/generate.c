// SPDX-License-Identifier: BSD-2-Clause
/*
 * Generating. Every token runs the whole context through the model again: positions are learned, so
 * once the context slides, nothing that was computed for the old positions could be kept.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "generate.h"
#include "stop.h"
#include "wide_window.h"

/* The device's stamps are read after every so many tokens. */
#define RESOLVE_EVERY 4u

/* Below 1: rather the likely tokens. */
#define TEMPERATURE 0.8

#define ENCODE_ID "infer:Text::encode:0"
#define COPY_ID "infer:Gpt::sample:0"
#define SAMPLE_ID "infer:Gpt::sample:1"

TMK_SITE(encode, "operation:" ENCODE_ID, "encode", "prompt");
TMK_SITE(copy, "operation:" COPY_ID, "copy_logits", "logits");
TMK_SITE(sample, "operation:" SAMPLE_ID, "sample", "last_logits");

/* Everything that lies in the arena of gpt. */
static int take_buffers(struct generator *g, size_t vocab)
{
	g->logits = arena_reals(&g->gpt.arena, vocab);
	g->chances = arena_take(&g->gpt.arena, vocab, sizeof(*g->chances));
	return g->gpt.arena.err;
}

int generator_open(struct generator *g, const struct parameters *parameters,
		   const struct text *text, struct pool *pool, const struct marks *marks,
		   uint64_t seed, uint64_t cancel_every)
{
	int err;

	*g = (struct generator){
		.text = text,
		.marks = marks,
		.executor = { .pool = pool, .marks = marks, .shape = &g->gpt.shape },
		.rng = rng_stream(seed, 2),
		.encode = mark_site(marks, &encode),
		.copy = mark_site(marks, &copy),
		.sample = mark_site(marks, &sample),
		.row = { .id = "tensor:" COPY_ID, .name = "last_logits" },
		.cancel_every = cancel_every,
	};
	err = gpt_open(&g->gpt, parameters, marks, TMK_PHASE_INFER, 1, "tensor:" SAMPLE_ID);
	if (err)
		return err;
	err = take_buffers(g, parameters->size.vocab);
	if (!err)
		err = device_queue_open(&g->device);
	if (err)
		gpt_close(&g->gpt);
	return err;
}

void generator_close(struct generator *g)
{
	device_queue_close(g->device);
	gpt_close(&g->gpt);
}

/* What is older than the context falls out at its front. */
static void context_add(struct generator *g, int token)
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
static void encode_prompt(struct generator *g, const char *text)
{
	struct self_clock_span span = { 0 };

	g->gpt.shape.time = 0;
	self_clock_before_begin(g->marks->clock, &span);
	{
		TMK_OP_SCOPE(g->marks->session, g->encode.desc);

		self_clock_after_begin(g->marks->clock, &span);
		for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
			if (g->text->token_of[*c] >= 0)
				context_add(g, g->text->token_of[*c]);
		}
		/* The model continues something: without a prompt, the beginning of its text. */
		if (g->gpt.shape.time == 0)
			context_add(g, g->text->tokens[0]);
		self_clock_before_end(g->marks->clock, &span);
	}
	self_clock_after_end(g->marks->clock, g->encode.clock_row, &span);
	tensor_ready(&g->gpt.source);
}

/* A prompt on its way to a worker, with its window: from when it came until the model can begin. */
struct prompt {
	struct job job;
	struct generator *generator;
	const char *text;
	struct window window;
};

/* On a worker, which closes the window that another thread opened, on that one's stream. */
static void prompt_run(struct job *job, unsigned int piece)
{
	struct prompt *prompt = (struct prompt *)job;

	(void)piece;
	encode_prompt(prompt->generator, prompt->text);
	window_end(prompt->generator->marks, &prompt->window, NULL);
}

static void prompt_accept(struct generator *g, const char *text)
{
	struct prompt prompt = {
		.job = { .run = prompt_run, .pieces = 1 },
		.generator = g,
		.text = text,
		.window = window_start(g->marks, "prompt"),
	};

	pool_submit(g->executor.pool, &prompt.job);
	pool_wait(g->executor.pool, &prompt.job);
}

static int draw_token(struct generator *g)
{
	const size_t vocab = g->gpt.parameters->size.vocab;
	const real *logits = g->logits;
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

/* On the device's thread: what it was given began on another. */
static void copy_done(void *arg)
{
	struct generator *g = arg;

	tensor_ready(&g->row);
	mark_end(g->marks, &g->copy, &g->copying, g->row.name);
}

/* The row of logits of the last token. On the stream of the device, which the caller has entered. */
static void copy_logits(struct generator *g)
{
	const size_t vocab = g->gpt.parameters->size.vocab;
	const struct device_copy row = {
		.to = g->logits,
		.from = g->gpt.head.y + (g->gpt.shape.time - 1) * vocab,
		.n = vocab * sizeof(*g->logits),
		.done = copy_done,
		.arg = g,
	};

	mark_edges(g->marks, &g->gpt.t_logits, 1, "operation:" COPY_ID);
	g->copying = mark_begin(g->marks, &g->copy);
	device_queue_copy(g->device, &row);
	device_queue_sync(g->device);
}

/* A window that the device measures. It holds its copy in any case; to ask for a flush is to be sure. */
static void fetch_logits(struct generator *g, bool cancelled)
{
	const struct tmk_window_options flushed = { .flush = 1 };
	const unsigned int before = stream_enter(STREAM_OF_DEVICE);
	struct window window = device_window_start(g->device, g->marks, "logits");

	copy_logits(g);
	if (cancelled)
		window_abandon(g->marks, &window);
	else
		window_end(g->marks, &window, &flushed);
	stream_leave(before);
}

static int sample_token(struct generator *g)
{
	const struct tensor *row = &g->row;
	struct mark mark;
	int token;

	mark_edges(g->marks, &row, 1, "operation:" SAMPLE_ID);
	mark = mark_begin(g->marks, &g->sample);
	token = draw_token(g);
	mark_end(g->marks, &g->sample, &mark, g->gpt.source.name);
	tensor_ready(&g->gpt.source);
	return token;
}

/* -1: the prompt was cancelled before the token was there. What it opened is given up. */
static int next_token(struct generator *g, bool cancelled)
{
	struct wide_window window;
	int token = -1;

	tmk_session_set_step(g->marks->session, ++g->step);
	wide_window_start(&window, g->marks, g->executor.pool, "token", "share");
	graph_run(&g->gpt.forward, &g->executor);
	fetch_logits(g, cancelled);
	if (cancelled) {
		wide_window_abandon(&window, g->marks, g->executor.pool);
	} else {
		token = sample_token(g);
		wide_window_end(&window, g->marks, g->executor.pool);
	}
	if (g->step % RESOLVE_EVERY == 0)
		device_queue_resolve(g->device);
	return token;
}

/* Nobody is there to cancel a prompt: every so many, it is as if somebody had. */
static bool to_be_cancelled(const struct generator *g)
{
	return g->cancel_every && g->prompts % g->cancel_every == 0;
}

int generator_answer(struct generator *g, const char *prompt, size_t tokens, FILE *out,
		     bool one_line)
{
	bool cancel;

	g->prompts++;
	cancel = to_be_cancelled(g);
	prompt_accept(g, prompt);
	for (size_t i = 0; i < tokens && !stop_requested(); i++) {
		const int token = next_token(g, cancel && i == tokens / 2);
		unsigned char byte;

		if (token < 0)
			return 0;
		byte = g->text->byte_of[token];
		context_add(g, token);
		if (putc(one_line && (byte == '\n' || byte == '\r') ? ' ' : byte, out) == EOF)
			return -EIO;
	}
	return 0;
}
