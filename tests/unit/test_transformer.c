// SPDX-License-Identifier: BSD-2-Clause
/*
 * The example's parts: workers, text, graph, optimizer, and that the whole learns and gives the same
 * numbers for any number of workers. Gradients are test_transformer_gradients.c's, what the program
 * says and writes is for the tests that run it.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../examples/transformer/lines.h"
#include "../../examples/transformer/train.h"

/* --- workers */

struct counted_job {
	struct job job;
	atomic_uint runs[64];
	atomic_uint done;
	atomic_uint *order; /* shared by the jobs of a test */
	unsigned int started_at;
	unsigned int runs_before_done;
};

static void count_piece(struct job *job, unsigned int piece)
{
	struct counted_job *own = (struct counted_job *)job;

	if (own->order && piece == 0)
		own->started_at = atomic_fetch_add(own->order, 1);
	atomic_fetch_add(&own->runs[piece], 1);
}

/* All pieces must have run by now. */
static void count_done(struct job *job)
{
	struct counted_job *own = (struct counted_job *)job;

	for (unsigned int i = 0; i < job->pieces; i++)
		own->runs_before_done += atomic_load(&own->runs[i]);
	atomic_fetch_add(&own->done, 1);
}

static void pool_runs_every_piece_once(void **state)
{
	struct counted_job jobs[8] = { 0 };
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_open(&pool, 3), 0);
	for (unsigned int round = 0; round < 200; round++) {
		for (unsigned int i = 0; i < 8; i++) {
			struct counted_job *own = &jobs[i];

			memset(own->runs, 0, sizeof(own->runs));
			own->runs_before_done = 0;
			own->job.run = count_piece;
			own->job.done = count_done;
			own->job.pieces = 1 + (round * 7 + i * 13) % 64;
			pool_submit(pool, &own->job);
		}
		for (unsigned int i = 8; i-- > 0;)
			pool_wait(pool, &jobs[i].job);
		for (unsigned int i = 0; i < 8; i++) {
			assert_int_equal(atomic_load(&jobs[i].done), round + 1);
			assert_int_equal(jobs[i].runs_before_done, jobs[i].job.pieces);
			for (unsigned int piece = 0; piece < 64; piece++)
				assert_int_equal(atomic_load(&jobs[i].runs[piece]),
						 piece < jobs[i].job.pieces);
		}
	}
	pool_close(pool);
}

struct meeting {
	struct job job;
	pthread_barrier_t barrier;
	pthread_t ids[3];
	unsigned int streams[3];
};

/* Returns only once all three pieces run at the same time. */
static void meet(struct job *job, unsigned int piece)
{
	struct meeting *m = (struct meeting *)job;

	m->ids[piece] = pthread_self();
	m->streams[piece] = self_clock_here;
	pthread_barrier_wait(&m->barrier);
}

static void pool_runs_pieces_at_the_same_time_on_streams_of_their_own(void **state)
{
	struct meeting m = { .job = { .run = meet, .pieces = 3 } };
	struct pool *pool;

	(void)state;
	pthread_barrier_init(&m.barrier, NULL, 3);
	assert_int_equal(pool_open(&pool, 3), 0);
	assert_int_equal(pool_threads(pool), 3);
	pool_submit(pool, &m.job);
	pool_wait(pool, &m.job);
	for (int i = 0; i < 3; i++) {
		assert_false(pthread_equal(m.ids[i], pthread_self()));
		assert_false(pthread_equal(m.ids[i], m.ids[(i + 1) % 3]));
		assert_in_range(m.streams[i], STREAM_OF_WORKER(0), STREAM_OF_WORKER(2));
		assert_int_not_equal(m.streams[i], m.streams[(i + 1) % 3]);
	}
	pool_close(pool);
	pthread_barrier_destroy(&m.barrier);
}

struct gate {
	struct job job;
	atomic_bool open;
};

static void wait_for_gate(struct job *job, unsigned int piece)
{
	struct gate *gate = (struct gate *)job;

	(void)piece;
	while (!atomic_load(&gate->open))
		usleep(100);
}

static void pool_starts_jobs_in_their_order(void **state)
{
	struct gate gate = { .job = { .run = wait_for_gate, .pieces = 1 } };
	struct counted_job jobs[3] = { 0 };
	atomic_uint order = 0;
	struct pool *pool;

	(void)state;
	assert_int_equal(pool_open(&pool, 1), 0);
	pool_submit(pool, &gate.job);
	for (unsigned int i = 0; i < 3; i++) {
		jobs[i].order = &order;
		jobs[i].job.run = count_piece;
		jobs[i].job.pieces = 2;
		pool_submit(pool, &jobs[i].job);
	}
	assert_int_equal(atomic_load(&order), 0);
	atomic_store(&gate.open, true);
	for (unsigned int i = 0; i < 3; i++) {
		pool_wait(pool, &jobs[i].job);
		assert_int_equal(jobs[i].started_at, i);
	}
	pool_close(pool);
}

/* --- text */

static void text_has_the_vocabulary_of_its_bytes(void **state)
{
	const unsigned char bytes[] = { 'b', 0, 'a', 255, 'b', '\n' };
	const unsigned char vocabulary[] = { 0, '\n', 'a', 'b', 255 };
	struct text text;

	(void)state;
	assert_int_equal(text_from_bytes(&text, bytes, sizeof(bytes)), 0);
	assert_int_equal(text.n, sizeof(bytes));
	assert_int_equal(text.vocab, sizeof(vocabulary));
	assert_memory_equal(text.byte_of, vocabulary, sizeof(vocabulary));
	for (size_t i = 0; i < text.n; i++)
		assert_int_equal(text.byte_of[text.tokens[i]], bytes[i]);
	assert_int_equal(text.token_of['c'], -1);
	text_free(&text);

	assert_int_equal(text_from_bytes(&text, bytes, 0), -ENODATA);
	text_free(&text);
}

static void text_batches_are_windows_and_what_follows(void **state)
{
	enum { N = 40, TIME = 7, BATCH = 5 };
	unsigned char bytes[N];
	int tokens[BATCH * TIME], targets[BATCH * TIME];
	struct rng rng = rng_stream(3, 0);
	bool first = false, last = false;
	struct text text;

	(void)state;
	for (int i = 0; i < N; i++)
		bytes[i] = (unsigned char)(i + 1);
	assert_int_equal(text_from_bytes(&text, bytes, N), 0);
	for (int round = 0; round < 200; round++) {
		text_batch(&text, &rng, BATCH, TIME, tokens, targets);
		for (int i = 0; i < BATCH * TIME; i++) {
			assert_in_range(targets[i], 1, N - 1);
			assert_int_equal(targets[i], tokens[i] + 1);
			assert_true(i % TIME == 0 || tokens[i] == targets[i - 1]);
			first |= tokens[i] == 0;
			last |= targets[i] == N - 1;
		}
	}
	/* Every place of the text can be drawn, its ends too. */
	assert_true(first && last);
	text_free(&text);
}

static void text_load_says_why_not(void **state)
{
	struct text text;

	(void)state;
	assert_int_equal(text_load(&text, "/nonexistent"), -ENOENT);
	assert_int_equal(text_load(&text, "/"), -EISDIR);
	assert_int_equal(text_load(&text, "/dev/null"), -ENODATA);
}

static void lines_are_cut_at_line_ends(void **state)
{
	static char longer[3 * LINE_MAX_BYTES];
	struct lines lines;
	int fds[2];

	(void)state;
	memset(longer, 'x', sizeof(longer));
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "one\n\ntw", 7), 7);
	lines_init(&lines, fds[0]);
	assert_int_equal(lines_next(&lines), 1);
	assert_string_equal(lines.line, "one");
	assert_int_equal(lines_next(&lines), 1);
	assert_string_equal(lines.line, "");
	assert_int_equal(write(fds[1], "o\n", 2), 2);
	assert_int_equal(lines_next(&lines), 1);
	assert_string_equal(lines.line, "two");
	assert_int_equal(write(fds[1], longer, sizeof(longer)), sizeof(longer));
	assert_int_equal(write(fds[1], "\nlast", 5), 5);
	close(fds[1]);
	assert_int_equal(lines_next(&lines), 1);
	assert_int_equal(strlen(lines.line), LINE_MAX_BYTES - 1);
	assert_int_equal(lines_next(&lines), 1);
	assert_string_equal(lines.line, "last");
	assert_int_equal(lines_next(&lines), 0);
	close(fds[0]);
}

/* --- the network */

static const unsigned char rhyme[] = "the cat that ate the hat sat on the mat; "
				     "the rat that sat on the cat ate that. ";
static const struct model_size small = { 2, 16, 4, 12, 0 };
static const struct marks no_marks;

struct rig {
	struct text text;
	struct parameters parameters;
	struct pool *pool;
	struct trainer trainer;
};

static void rig_open(struct rig *rig, unsigned int threads, uint64_t seed)
{
	struct model_size size = small;

	assert_int_equal(text_from_bytes(&rig->text, rhyme, sizeof(rhyme) - 1), 0);
	size.vocab = rig->text.vocab;
	assert_int_equal(parameters_open(&rig->parameters, &size, seed), 0);
	assert_int_equal(pool_open(&rig->pool, threads), 0);
	assert_int_equal(trainer_open(&rig->trainer, &rig->parameters, &rig->text, rig->pool,
				      &no_marks, 6, seed),
			 0);
}

static void rig_close(struct rig *rig)
{
	trainer_close(&rig->trainer);
	pool_close(rig->pool);
	parameters_close(&rig->parameters);
	text_free(&rig->text);
}

static void parameters_are_laid_out_without_gap(void **state)
{
	struct rig rig;
	size_t at = 0;

	(void)state;
	rig_open(&rig, 1, 1);
	assert_int_equal(rig.parameters.n_groups, small.layers + 2);
	for (size_t g = 0; g < rig.parameters.n_groups; g++) {
		const struct group *group = &rig.parameters.groups[g];

		assert_int_equal(group->from, at);
		assert_in_range(group->n_matrices, 1, group->n);
		at += group->n;
	}
	assert_int_equal(at, rig.parameters.n);
	rig_close(&rig);
}

/* Later tokens must not change what the model says at earlier places. */
static void attention_sees_only_the_past(void **state)
{
	struct rig rig;
	struct gpt *gpt = &rig.trainer.gpt;
	const size_t changed = 7;
	size_t vocab, before;
	real *logits;

	(void)state;
	rig_open(&rig, 2, 1);
	vocab = rig.text.vocab;
	before = changed * vocab;
	logits = calloc(small.context * vocab, sizeof(*logits));
	assert_non_null(logits);
	gpt->shape.batch = 1;
	for (size_t i = 0; i < small.context; i++)
		gpt->tokens[i] = (int)(i % vocab);
	graph_run(&gpt->forward, &rig.trainer.executor);
	memcpy(logits, gpt->head.y, small.context * vocab * sizeof(*logits));

	gpt->tokens[changed] = (int)((changed + 1) % vocab);
	graph_run(&gpt->forward, &rig.trainer.executor);
	assert_memory_equal(logits, gpt->head.y, before * sizeof(*logits));
	for (size_t t = changed; t < small.context; t++)
		assert_memory_not_equal(logits + t * vocab, gpt->head.y + t * vocab,
					vocab * sizeof(*logits));
	free(logits);
	rig_close(&rig);
}

/* A network that answers is the one that was trained: same parameters, same logits. */
static void both_phases_compute_the_same(void **state)
{
	struct rig rig;
	struct gpt infer;
	struct executor executor = { .marks = &no_marks, .shape = &infer.shape };

	(void)state;
	rig_open(&rig, 2, 1);
	for (int i = 0; i < 3; i++)
		trainer_step(&rig.trainer);
	graph_run(&rig.trainer.gpt.forward, &rig.trainer.executor);
	assert_int_equal(gpt_open(&infer, &rig.parameters, &no_marks, TMK_PHASE_INFER, 1, "t"), 0);
	assert_int_equal(infer.backward.n_nodes, 0);
	executor.pool = rig.pool;
	memcpy(infer.tokens, rig.trainer.gpt.tokens, small.context * sizeof(*infer.tokens));
	graph_run(&infer.forward, &executor);
	for (size_t i = 0; i < small.context * rig.text.vocab; i++)
		assert_true(fabs((double)infer.head.y[i] - (double)rig.trainer.gpt.head.y[i]) <
			    1e-4);
	gpt_close(&infer);
	rig_close(&rig);
}

static void results_do_not_depend_on_threads(void **state)
{
	struct rig one, many;

	(void)state;
	rig_open(&one, 1, 9);
	for (unsigned int threads = 2; threads <= 5; threads++) {
		rig_open(&many, threads, 9);
		if (threads == 2) {
			for (int step = 0; step < 12; step++)
				trainer_step(&one.trainer);
		}
		for (int step = 0; step < 12; step++)
			trainer_step(&many.trainer);
		assert_memory_equal(one.parameters.values, many.parameters.values,
				    one.parameters.n * sizeof(real));
		rig_close(&many);
	}

	rig_open(&many, 2, 10);
	assert_memory_not_equal(one.parameters.values, many.parameters.values,
				one.parameters.n * sizeof(real));
	rig_close(&many);
	rig_close(&one);
}

static void it_learns_a_rhyme_by_heart(void **state)
{
	struct rig rig;
	double first, loss = 0;

	(void)state;
	rig_open(&rig, 2, 1);
	first = trainer_step(&rig.trainer);
	/* Knowing nothing costs about log(vocab). */
	assert_true(fabs(first - log((double)rig.text.vocab)) < 0.5);
	for (int step = 0; step < 600; step++) {
		const double now = trainer_step(&rig.trainer);

		loss = step ? 0.95 * loss + 0.05 * now : now;
	}
	/* What is left is the beginning of each window, which nothing foretells. */
	if (loss > 0.6)
		fail_msg("the loss went from %f only to %f", first, loss);
	rig_close(&rig);
}

/* --- graph and optimizer */

static void check_ids(const struct graph *graph, const char *phase, const char *function)
{
	char id[STATIC_ID_MAX];

	assert_true(graph->n_nodes > 0);
	assert_int_equal(graph->n_nodes, graph->capacity);
	for (size_t i = 0; i < graph->n_nodes; i++) {
		const struct node *node = &graph->nodes[i];

		snprintf(id, sizeof(id), "operation:%s:%s:%zu", phase, function, i);
		assert_string_equal(node->operation_id, id);
		assert_string_equal(node->site.desc->strings, id);
		snprintf(id, sizeof(id), "tensor:%s:%s:%zu", phase, function, i);
		assert_string_equal(node->output.id, id);
		assert_true(node->n_inputs > 0);
		assert_true(node->site.desc->count > 2);
		assert_true(strlen(node->output.name) > 0);
	}
}

static void operations_have_ids_inputs_and_outputs(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, 1, 1);
	check_ids(&rig.trainer.gpt.forward, "train", "Gpt::forward");
	check_ids(&rig.trainer.gpt.backward, "train", "Gpt::backward");
	check_ids(&rig.trainer.adamw.graph, "train", "AdamW::step");
	rig_close(&rig);
}

/* Every gradient that the way back makes is an input of the optimizer, in its group. */
static void every_parameter_is_updated(void **state)
{
	struct rig rig;
	real *before;

	(void)state;
	rig_open(&rig, 2, 1);
	before = calloc(rig.parameters.n, sizeof(*before));
	assert_non_null(before);
	memcpy(before, rig.parameters.values, rig.parameters.n * sizeof(*before));
	trainer_step(&rig.trainer);
	trainer_step(&rig.trainer);
	for (size_t g = 0; g < rig.parameters.n_groups; g++) {
		const struct group *group = &rig.parameters.groups[g];
		size_t same = 0;

		for (size_t i = group->from; i < group->from + group->n; i++)
			same += before[i] == rig.parameters.values[i];
		/* A key's bias moves no score against another: its gradient is next to nothing. */
		assert_true(same <= group->n / 20);
	}
	free(before);
	rig_close(&rig);
}

/* The textbook's formulas, in double precision, one parameter at a time. */
static void adamw_follows_the_textbook(void **state)
{
	const struct adamw_rates r = adamw_default_rates;
	struct rig rig;
	double *value, *first, *second;
	size_t n;

	(void)state;
	rig_open(&rig, 2, 4);
	n = rig.parameters.n;
	value = calloc(3 * n, sizeof(*value));
	assert_non_null(value);
	first = value + n;
	second = first + n;
	for (size_t i = 0; i < n; i++)
		value[i] = (double)rig.parameters.values[i];

	for (int step = 1; step <= 3; step++) {
		const double rate = r.learning * step / (double)r.warm_up;
		double norm = 0, scale;

		trainer_step(&rig.trainer);
		for (size_t i = 0; i < n; i++)
			norm += pow((double)rig.parameters.grads[i], 2);
		scale = fmin(1, r.norm_limit / sqrt(norm));
		for (size_t g = 0; g < rig.parameters.n_groups; g++) {
			const struct group *group = &rig.parameters.groups[g];

			for (size_t k = 0; k < group->n; k++) {
				const size_t i = group->from + k;
				const double d = (double)rig.parameters.grads[i] * scale;
				double m, v;

				first[i] = r.beta1 * first[i] + (1 - r.beta1) * d;
				second[i] = r.beta2 * second[i] + (1 - r.beta2) * d * d;
				m = first[i] / (1 - pow(r.beta1, step));
				v = second[i] / (1 - pow(r.beta2, step));
				if (k < group->n_matrices)
					value[i] -= rate * r.decay * value[i];
				value[i] -= rate * m / (sqrt(v) + r.epsilon);
			}
		}
	}
	for (size_t i = 0; i < n; i++) {
		/* Where the gradient is as small as epsilon, single precision decides its sign. */
		if (sqrt(second[i]) < 1e-6)
			continue;
		assert_true(fabs(value[i] - (double)rig.parameters.values[i]) < 2e-6);
	}
	free(value);
	rig_close(&rig);
}

static void models_above_the_limit_are_refused(void **state)
{
	const struct model_size huge = { 64, 4096, 256, 4096, 256 };
	const struct model_size wide = { 1, 64, 4, 4096, 16 };
	struct parameters p;
	struct gpt gpt;

	(void)state;
	assert_int_equal(parameters_open(&p, &huge, 1), -EFBIG);
	assert_int_equal(parameters_open(&p, &wide, 1), 0);
	assert_int_equal(gpt_open(&gpt, &p, &no_marks, TMK_PHASE_TRAIN, 64, "t"), -EFBIG);
	parameters_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool_runs_every_piece_once),
		cmocka_unit_test(pool_runs_pieces_at_the_same_time_on_streams_of_their_own),
		cmocka_unit_test(pool_starts_jobs_in_their_order),
		cmocka_unit_test(text_has_the_vocabulary_of_its_bytes),
		cmocka_unit_test(text_batches_are_windows_and_what_follows),
		cmocka_unit_test(text_load_says_why_not),
		cmocka_unit_test(lines_are_cut_at_line_ends),
		cmocka_unit_test(parameters_are_laid_out_without_gap),
		cmocka_unit_test(attention_sees_only_the_past),
		cmocka_unit_test(both_phases_compute_the_same),
		cmocka_unit_test(results_do_not_depend_on_threads),
		cmocka_unit_test(it_learns_a_rhyme_by_heart),
		cmocka_unit_test(operations_have_ids_inputs_and_outputs),
		cmocka_unit_test(every_parameter_is_updated),
		cmocka_unit_test(adamw_follows_the_textbook),
		cmocka_unit_test(models_above_the_limit_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
