// SPDX-License-Identifier: BSD-2-Clause
/*
 * AdamW: two kernels, the graph made of them, and the rates of each step.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "adamw.h"

const struct adamw_rates adamw_default_rates = {
	.learning = 3e-3,
	.beta1 = 0.9,
	.beta2 = 0.99,
	.epsilon = 1e-8,
	.decay = 0.1,
	.norm_limit = 1.0,
	.warm_up = 20,
};

/* Units are groups. The sum is in double precision, for it runs over all the parameters. */
static void gradient_norm(const void *layer, struct range groups)
{
	const struct adamw *a = layer;

	for (size_t g = groups.from; g < groups.to; g++) {
		const struct group *group = &a->parameters->groups[g];
		const real *grads = a->parameters->grads + group->from;
		double sum = 0;

		for (size_t i = 0; i < group->n; i++)
			sum += (double)grads[i] * (double)grads[i];
		a->squares[g] = sum;
	}
}

/* What every gradient is multiplied by, so that their norm stays within the limit. */
static double gradient_scale(const struct adamw *a)
{
	double sum = 0;

	for (size_t g = 0; g < a->parameters->n_groups; g++)
		sum += a->squares[g];
	return sum > a->rates.norm_limit * a->rates.norm_limit ? a->rates.norm_limit / sqrt(sum)
							       : 1;
}

/* Units are parameters of one group. */
static void adamw_update(const void *layer, struct range range)
{
	const struct adamw_group *own = layer;
	const struct adamw *a = own->adamw;
	const struct group *group = own->group;
	const real beta1 = (real)a->rates.beta1, beta2 = (real)a->rates.beta2;
	const real scale = (real)gradient_scale(a);
	const real rate = (real)(a->learning / a->correction1);
	const real deviation = (real)(1 / sqrt(a->correction2));
	const real epsilon = (real)a->rates.epsilon;
	real *restrict value = a->parameters->values + group->from;
	real *restrict first = a->first + group->from;
	real *restrict second = a->second + group->from;
	const real *restrict grads = a->parameters->grads + group->from;

	for (size_t i = range.from; i < range.to; i++) {
		const real g = grads[i] * scale;
		const real kept =
			i < group->n_matrices ? (real)(1 - a->learning * a->rates.decay) : (real)1;

		first[i] = beta1 * first[i] + (1 - beta1) * g;
		second[i] = beta2 * second[i] + (1 - beta2) * g * g;
		value[i] = value[i] * kept -
			   rate * first[i] / ((real)sqrt(second[i]) * deviation + epsilon);
	}
}

static const struct tensor *add_norm(struct adamw *a, const struct gpt *gpt)
{
	const struct tensor **inputs = calloc(gpt->n_gradients, sizeof(*inputs));
	const struct node_spec spec = {
		.op = "gradient_norm",
		.kernel = gradient_norm,
		.layer = a,
		.split = SPLIT_CHANNELS,
		.n = a->parameters->n_groups,
		.output = "gradient_norm",
		.inputs = inputs,
		.n_inputs = gpt->n_gradients,
	};
	const struct tensor *norm;

	if (!inputs)
		return NULL;
	for (size_t i = 0; i < gpt->n_gradients; i++)
		inputs[i] = gpt->gradients[i].tensor;
	norm = graph_add(&a->graph, &spec);
	free(inputs);
	return norm;
}

static int add_update(struct adamw *a, const struct gpt *gpt, size_t g, const struct tensor *norm)
{
	const struct tensor **inputs = calloc(gpt->n_gradients + 1, sizeof(*inputs));
	struct node_spec spec = {
		.op = "adamw",
		.kernel = adamw_update,
		.layer = &a->groups[g],
		.split = SPLIT_CHANNELS,
		.n = a->parameters->groups[g].n,
		.output = a->parameters->groups[g].name,
		.inputs = inputs,
	};

	if (!inputs)
		return -ENOMEM;
	inputs[spec.n_inputs++] = norm;
	for (size_t i = 0; i < gpt->n_gradients; i++) {
		if (gpt->gradients[i].group == g)
			inputs[spec.n_inputs++] = gpt->gradients[i].tensor;
	}
	graph_add(&a->graph, &spec);
	free(inputs);
	return 0;
}

static int build(struct adamw *a, const struct gpt *gpt, const struct marks *marks)
{
	const size_t n_groups = a->parameters->n_groups;
	const struct tensor *norm;
	int err;

	a->first = arena_reals(&a->arena, a->parameters->n);
	a->second = arena_reals(&a->arena, a->parameters->n);
	a->squares = arena_take(&a->arena, n_groups, sizeof(*a->squares));
	a->groups = arena_take(&a->arena, n_groups, sizeof(*a->groups));
	if (a->arena.err)
		return a->arena.err;
	err = graph_open(&a->graph, "AdamW::step", TMK_PHASE_TRAIN, marks, 1 + n_groups);
	if (err)
		return err;

	norm = add_norm(a, gpt);
	if (!norm)
		return -ENOMEM;
	for (size_t g = 0; g < n_groups && !err; g++) {
		a->groups[g] = (struct adamw_group){ a, &a->parameters->groups[g] };
		err = add_update(a, gpt, g, norm);
	}
	return err ? err : a->graph.err;
}

int adamw_open(struct adamw *adamw, const struct gpt *gpt, const struct marks *marks,
	       const struct adamw_rates *rates)
{
	int err;

	*adamw = (struct adamw){ .rates = *rates, .parameters = gpt->parameters };
	err = build(adamw, gpt, marks);
	if (err)
		adamw_close(adamw);
	return err;
}

void adamw_close(struct adamw *adamw)
{
	graph_close(&adamw->graph);
	arena_free(&adamw->arena);
}

void adamw_run(struct adamw *adamw, const struct executor *executor)
{
	const struct adamw_rates *r = &adamw->rates;
	const double step = (double)++adamw->step;

	adamw->learning = r->learning;
	if (adamw->step < r->warm_up)
		adamw->learning *= step / (double)r->warm_up;
	adamw->correction1 = 1 - pow(r->beta1, step);
	adamw->correction2 = 1 - pow(r->beta2, step);
	graph_run(&adamw->graph, executor);
}
