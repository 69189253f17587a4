// SPDX-License-Identifier: BSD-2-Clause
/*
 * Building a graph, and running it on the pool with every operation and every edge marked.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph.h"
#include "wide_window.h"

#define INPUT_NAMES_MAX 256u

int graph_open(struct graph *graph, const char *function, enum tmk_phase phase,
	       const struct marks *marks, size_t capacity)
{
	*graph = (struct graph){
		.function = function,
		.phase = phase,
		.marks = marks,
		.capacity = capacity,
	};
	graph->nodes = calloc(capacity, sizeof(*graph->nodes));
	return graph->nodes ? 0 : -ENOMEM;
}

void graph_close(struct graph *graph)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		free(graph->nodes[i].inputs);
	free(graph->nodes);
	graph->nodes = NULL;
	graph->n_nodes = 0;
}

void graph_scope_block(struct graph *graph, size_t block)
{
	snprintf(graph->scope, sizeof(graph->scope), "block%zu.", block);
	graph->layer_number = block + 1;
}

void graph_scope_none(struct graph *graph)
{
	graph->scope[0] = '\0';
	graph->layer_number = 0;
}

/* Ids as the static graph has them: kind, phase, function, number of the node. */
static void node_name(struct graph *graph, struct node *node, const char *output)
{
	const size_t number = graph->n_nodes;

	snprintf(node->operation_id, sizeof(node->operation_id), "operation:%s:%s:%zu",
		 phase_name(graph->phase), graph->function, number);
	snprintf(node->output.id, sizeof(node->output.id), "tensor:%s:%s:%zu",
		 phase_name(graph->phase), graph->function, number);
	snprintf(node->output.name, sizeof(node->output.name), "%s%s", graph->scope, output);
}

/*
 * The site's strings are known only now that the model has its size, so it is interned. That happens
 * once an operation and not once a mark.
 */
static struct mark_site node_site(struct graph *graph, const struct node *node,
				  const struct node_spec *spec)
{
	const char *names[INPUT_NAMES_MAX];
	char weights[3][TENSOR_NAME_MAX];
	size_t n = 0;

	for (size_t i = 0; i < node->n_inputs && n < INPUT_NAMES_MAX - 3; i++)
		names[n++] = node->inputs[i]->name;
	for (size_t i = 0; i < 3 && spec->weights[i]; i++) {
		snprintf(weights[i], sizeof(weights[i]), "%s%s", graph->scope, spec->weights[i]);
		names[n++] = weights[i];
	}
	return mark_site(graph->marks, tmk_site_intern(node->operation_id, spec->op, names, n));
}

static size_t node_units(const struct node *node, const struct shape *shape)
{
	switch (node->split) {
	case SPLIT_ROWS:
		return shape->batch * shape->time;
	case SPLIT_HEADS:
		return shape->batch * node->n;
	case SPLIT_CHANNELS:
		break;
	}
	return node->n;
}

/* A job is the first member of its node. */
static struct node *node_of(struct job *job)
{
	return (struct node *)job;
}

static void node_run_queued_piece(const struct node *node, struct range units)
{
	const struct marks *marks = node->executor->marks;
	struct window window = window_start(marks, "piece");

	node->kernel(node->layer, units);
	window_end(marks, &window, NULL);
}

/* On a worker. */
static void node_run_piece(struct job *job, unsigned int piece)
{
	struct node *node = node_of(job);
	const struct marks *marks = node->executor->marks;
	const struct range units = {
		.from = node->units * piece / job->pieces,
		.to = node->units * (piece + 1) / job->pieces,
	};
	struct mark mark;

	if (piece == 0)
		mark_edges(marks, node->inputs, node->n_inputs, node->operation_id);
	if (node->queued) {
		node_run_queued_piece(node, units);
		return;
	}
	mark = mark_begin(marks, &node->site);
	node->kernel(node->layer, units);
	mark_end(marks, &node->site, &mark, node->output.name);
}

/* On the worker that ran the last piece. */
static void node_done(struct job *job)
{
	struct node *node = node_of(job);

	tensor_ready(&node->output);
	if (node->queued)
		mark_end(node->executor->marks, &node->site, &node->whole, node->output.name);
}

const struct tensor *graph_add(struct graph *graph, const struct node_spec *spec)
{
	struct node *node;

	assert(graph->n_nodes < graph->capacity);
	node = &graph->nodes[graph->n_nodes];
	*node = (struct node){
		.job = { .run = node_run_piece, .done = node_done },
		.kernel = spec->kernel,
		.layer = spec->layer,
		.split = spec->split,
		.n = spec->n,
		.queued = spec->queued,
		.layer_number = graph->layer_number,
		.n_inputs = spec->n_inputs,
	};
	node->inputs = calloc(spec->n_inputs + 1, sizeof(*node->inputs));
	if (!node->inputs) {
		graph->err = -ENOMEM;
		return &node->output;
	}
	for (size_t i = 0; i < spec->n_inputs; i++)
		node->inputs[i] = spec->inputs[i];

	node_name(graph, node, spec->output);
	node->site = node_site(graph, node, spec);
	graph->n_nodes++;
	return &node->output;
}

static void node_submit(struct node *node, const struct executor *executor)
{
	node->executor = executor;
	node->units = node_units(node, executor->shape);
	node->job.pieces = node->units < GRAPH_PIECES ? (unsigned int)node->units : GRAPH_PIECES;
	if (node->queued)
		node->whole = mark_begin(executor->marks, &node->site);
	pool_submit(executor->pool, &node->job);
}

/* Closes the window of the layer that was and opens that of the one that comes. */
static void layer_change(struct wide_window *window, const struct executor *executor, size_t from,
			 size_t to)
{
	if (from == to)
		return;
	if (from)
		wide_window_end(window, executor->marks, executor->pool);
	if (to)
		wide_window_start(window, executor->marks, executor->pool, "layer", "layer");
}

/*
 * A layer's window may close while gradients that were queued in it are still being computed: those
 * belong to the windows that they end in.
 */
void graph_run(struct graph *graph, const struct executor *executor)
{
	struct wide_window layer;
	size_t layer_number = 0;

	for (size_t i = 0; i < graph->n_nodes; i++) {
		struct node *node = &graph->nodes[i];

		layer_change(&layer, executor, layer_number, node->layer_number);
		layer_number = node->layer_number;
		node_submit(node, executor);
		if (!node->queued)
			pool_wait(executor->pool, &node->job);
	}
	layer_change(&layer, executor, layer_number, 0);
	for (size_t i = 0; i < graph->n_nodes; i++)
		pool_wait(executor->pool, &graph->nodes[i].job);
}
