// SPDX-License-Identifier: BSD-2-Clause
/*
 * Training, one step at a time.
 */
#include "train.h"
#include "wide_window.h"

#define BATCH_ID "train:Text::batch:0"

TMK_SITE(load_batch, "operation:" BATCH_ID, "load_batch", "text");

int trainer_open(struct trainer *t, const struct parameters *parameters, const struct text *text,
		 struct pool *pool, const struct marks *marks, size_t batch, uint64_t seed)
{
	int err;

	*t = (struct trainer){
		.text = text,
		.marks = marks,
		.executor = { .pool = pool, .marks = marks, .shape = &t->gpt.shape },
		.rng = rng_stream(seed, 1),
		.load_batch = mark_site(marks, &load_batch),
	};
	err = gpt_open(&t->gpt, parameters, marks, TMK_PHASE_TRAIN, batch, "tensor:" BATCH_ID);
	if (err)
		return err;
	err = adamw_open(&t->adamw, &t->gpt, marks, &adamw_default_rates);
	if (err)
		gpt_close(&t->gpt);
	return err;
}

void trainer_close(struct trainer *t)
{
	adamw_close(&t->adamw);
	gpt_close(&t->gpt);
}

static void draw_batch(struct trainer *t)
{
	struct mark mark = mark_begin(t->marks, &t->load_batch);

	text_batch(t->text, &t->rng, t->gpt.shape.batch, t->gpt.shape.time, t->gpt.tokens,
		   t->gpt.targets);
	mark_end(t->marks, &t->load_batch, &mark, t->gpt.source.name);
	tensor_ready(&t->gpt.source);
}

double trainer_step(struct trainer *t)
{
	struct wide_window window;

	tmk_session_set_step(t->marks->session, ++t->step);
	wide_window_start(&window, t->marks, t->executor.pool, "train_step", "share");
	draw_batch(t);
	graph_run(&t->gpt.forward, &t->executor);
	graph_run(&t->gpt.backward, &t->executor);
	adamw_run(&t->adamw, &t->executor);
	wide_window_end(&window, t->marks, t->executor.pool);
	return gpt_loss(&t->gpt);
}
