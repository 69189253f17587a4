// SPDX-License-Identifier: BSD-2-Clause
/*
 * The program: options, the text, then a training session, then an answering session. Here the
 * sessions are opened and finished, and every failure becomes its one line.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "generate.h"
#include "lines.h"
#include "options.h"
#include "stop.h"
#include "train.h"

/* The session that answers: opened before the training's steps or after them. */
struct answering {
	bool open;
	char *path; /* of its trace, or NULL */
	struct marks marks;
	struct generator generator;
	size_t asked; /* prompts that were continued while it trained */
};

/* What both phases use. */
struct job_parts {
	const struct options *options;
	struct text text;
	struct parameters parameters;
	struct pool *pool;
	struct self_clock *clock;
	struct answering answering;
};

static const char *const default_prompts[] = { "You may ", "The licensee " };
#define N_DEFAULT_PROMPTS (sizeof(default_prompts) / sizeof(default_prompts[0]))

static int __attribute__((format(printf, 2, 3))) fail(int err, const char *format, ...)
{
	va_list args;

	fputs("transformer: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return err;
}

/* For the builders of models, whose errors are about memory. */
static int fail_model(int err)
{
	if (err == -EFBIG)
		return fail(err,
			    "model: it would take more than %zu MiB; make it smaller with "
			    "--layers, --dim, --context or --batch",
			    ARENA_LIMIT >> 20);
	return fail(err, "model: %s", strerror(-err));
}

/* "run.jsonl" becomes "run.infer.jsonl". NULL without memory. */
static char *infer_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	char *result;

	if (!dot || dot == name)
		dot = path + strlen(path);
	if (asprintf(&result, "%.*s.infer%s", (int)(dot - path), path, dot) < 0)
		return NULL;
	return result;
}

static int session_open(struct tmk_session **session, const char *path,
			const struct tmk_config *config)
{
	const int err = tmk_session_open(session, path, config);

	return err ? fail(err, "%s", tmk_last_error()) : 0;
}

static int session_finish(struct tmk_session *session, const char *path)
{
	const int err = tmk_session_finish(session);

	return err ? fail(err, "%s: the trace could not be written: %s", path, strerror(-err)) : 0;
}

static int answer(struct generator *generator, const struct options *o, const char *prompt,
		  bool one_line)
{
	int err = generator_answer(generator, prompt, o->tokens, stdout, one_line);

	if (!err && (putchar('\n') == EOF || fflush(stdout)))
		err = -EIO;
	return err ? fail(err, "stdout: cannot write: %s", strerror(errno)) : 0;
}

static int answer_prompts(struct generator *generator, const struct options *o,
			  const char *const *prompts, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err && !stop_requested(); i++) {
		printf("%s", prompts[i]);
		err = answer(generator, o, prompts[i], false);
	}
	return err;
}

/* One line in, one line out, until the end of stdin. */
static int serve(struct generator *generator, const struct options *o)
{
	struct lines lines;
	int got, err = 0;

	lines_init(&lines, STDIN_FILENO);
	while (!err && (got = lines_next(&lines)) != 0) {
		if (got < 0)
			return fail(got, "stdin: cannot read: %s", strerror(-got));
		err = answer(generator, o, lines.line, true);
	}
	return err;
}

static int answer_all(struct generator *generator, const struct options *o)
{
	const bool defaults = !o->n_prompts && !o->serve;
	int err;

	if (defaults)
		err = answer_prompts(generator, o, default_prompts, N_DEFAULT_PROMPTS);
	else
		err = answer_prompts(generator, o, o->prompts, o->n_prompts);
	return !err && o->serve ? serve(generator, o) : err;
}

/* While it trains, the prompts come round and round. */
static int answer_next(struct job_parts *job)
{
	const struct options *o = job->options;
	struct answering *a = &job->answering;
	const size_t i = a->asked++;

	if (o->n_prompts)
		return answer_prompts(&a->generator, o, &o->prompts[i % o->n_prompts], 1);
	return answer_prompts(&a->generator, o, &default_prompts[i % N_DEFAULT_PROMPTS], 1);
}

static int answering_open(struct job_parts *job)
{
	const struct options *o = job->options;
	const struct tmk_config config = tmk_config_infer("Gpt::forward");
	struct answering *a = &job->answering;
	int err;

	if (o->trace) {
		a->path = infer_path(o->trace);
		if (!a->path)
			return fail(-ENOMEM, "out of memory");
	}
	a->marks.clock = self_clock_infer(job->clock);
	err = session_open(&a->marks.session, a->path, &config);
	if (err)
		return err;
	err = generator_open(&a->generator, &job->parameters, &job->text, job->pool, &a->marks,
			     o->seed, o->cancel_every);
	if (err)
		return fail_model(err);
	a->open = true;
	return 0;
}

/* Whatever of it was opened. */
static int answering_close(struct job_parts *job)
{
	struct answering *a = &job->answering;
	int err;

	if (a->open)
		generator_close(&a->generator);
	err = session_finish(a->marks.session, a->path);
	free(a->path);
	return err;
}

/* Lines at times: the mean since the last one is smoother than any single loss. */
static int train_steps(struct job_parts *job, struct trainer *trainer)
{
	const uint64_t steps = job->options->steps, answer_every = job->options->answer_every;
	double sum = 0;
	unsigned int n = 0;
	int err;

	while (trainer->step < steps && !stop_requested()) {
		const double loss = trainer_step(trainer);

		if (!isfinite(loss))
			return fail(-EDOM,
				    "step %" PRIu64 ": the loss is not a number any more; "
				    "try another --seed or size",
				    trainer->step);
		sum += loss;
		n++;
		if (trainer->step == 1 || trainer->step % (steps > 1000 ? 20 : 10) == 0) {
			fprintf(stderr, "step %" PRIu64 " loss %.3f\n", trainer->step, sum / n);
			sum = 0;
			n = 0;
		}
		if (answer_every && trainer->step % answer_every == 0) {
			err = answer_next(job);
			if (err)
				return err;
		}
	}
	return 0;
}

static int train_phase(struct job_parts *job)
{
	const struct options *o = job->options;
	const struct tmk_config config = tmk_config_train("Gpt::forward");
	struct marks marks = { .clock = self_clock_train(job->clock) };
	struct trainer trainer;
	int err, finish_err;

	err = session_open(&marks.session, o->trace, &config);
	if (err)
		return err;
	err = trainer_open(&trainer, &job->parameters, &job->text, job->pool, &marks, o->batch,
			   o->seed);
	if (err) {
		fail_model(err);
	} else {
		if (o->answer_every)
			err = answering_open(job);
		if (!err)
			err = train_steps(job, &trainer);
		trainer_close(&trainer);
	}
	finish_err = session_finish(marks.session, o->trace);
	return err ? err : finish_err;
}

static int infer_phase(struct job_parts *job)
{
	int err = 0;

	if (!job->answering.open)
		err = answering_open(job);
	return err ? err : answer_all(&job->answering.generator, job->options);
}

static int run_phases(struct job_parts *job)
{
	int err = train_phase(job), close_err;

	if (!err && !stop_requested())
		err = infer_phase(job);
	close_err = answering_close(job);
	return err ? err : close_err;
}

static int load_text(struct job_parts *job)
{
	const struct options *o = job->options;
	int err = text_load(&job->text, o->text);

	if (err == -ENODATA)
		return fail(err, "text '%s': it is empty; give another with --text", o->text);
	if (err)
		return fail(err, "text '%s': cannot be read: %s; give another with --text", o->text,
			    strerror(-err));
	if (job->text.n <= o->context)
		return fail(-EINVAL,
			    "text '%s': %zu bytes are too few for --context %zu; give a longer one",
			    o->text, job->text.n, o->context);
	return 0;
}

static int job_open(struct job_parts *job)
{
	const struct options *o = job->options;
	struct model_size size;
	int err;

	if (o->self_clock) {
		err = self_clock_open(&job->clock, o->self_clock);
		if (err)
			return fail(err, "--self-clock '%s': cannot be created: %s", o->self_clock,
				    strerror(-err));
	}
	err = load_text(job);
	if (err)
		return err;
	size = (struct model_size){ o->layers, o->dim, o->heads, o->context, job->text.vocab };
	err = parameters_open(&job->parameters, &size, o->seed);
	if (err)
		return fail_model(err);
	err = pool_open(&job->pool, o->threads);
	return err ? fail(err, "cannot start %u threads: %s", o->threads, strerror(-err)) : 0;
}

static int job_close(struct job_parts *job)
{
	int err;

	pool_close(job->pool);
	parameters_close(&job->parameters);
	text_free(&job->text);
	err = self_clock_close(job->clock);
	return err ? fail(err, "--self-clock '%s': cannot be written: %s", job->options->self_clock,
			  strerror(-err))
		   : 0;
}

int main(int argc, char **argv)
{
	struct options options;
	struct job_parts job = { .options = &options };
	const enum options_result parsed = options_parse(&options, argc, argv);
	int err = 0, close_err;

	if (parsed == OPTIONS_RUN) {
		stop_install();
		err = job_open(&job);
		if (!err)
			err = run_phases(&job);
		close_err = job_close(&job);
		err = err ? err : close_err;
	}
	options_free(&options);
	if (parsed == OPTIONS_BAD)
		return 2;
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
