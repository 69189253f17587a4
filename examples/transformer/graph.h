/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A graph: the operations of one function of the model (Gpt::forward, Gpt::backward, AdamW::step), in
 * the order in which they run. It is built once, and its numbering gives each operation its static
 * id. Running it hands the kernels to the pool and marks what they do; what a kernel computes is the
 * layers' affair, what reads what is gpt.c's.
 */
#ifndef TRANSFORMER_GRAPH_H
#define TRANSFORMER_GRAPH_H

#include <stdbool.h>

#include "layers.h"
#include "marks.h"
#include "pool.h"

/*
 * The most pieces of one operation. It does not depend on the number of workers, so neither does the
 * number of marks, nor any result: a vector loop treats the end of its range in another way than the
 * middle, and thus the cuts decide the last bits.
 */
#define GRAPH_PIECES 4u

enum split {
	SPLIT_ROWS,	/* batch * time units */
	SPLIT_HEADS,	/* batch * n units */
	SPLIT_CHANNELS, /* n units */
};

/* What running needs besides the graph itself. */
struct executor {
	struct pool *pool;
	const struct marks *marks;
	const struct shape *shape;
};

/*
 * An operation. The pieces of an ordinary one are marked one by one, each on the worker that
 * executes it, and the graph goes on when all of them are done. A queued one is marked as a whole: it
 * begins on the thread that queues it and ends on the worker that finishes its last piece, while the
 * graph goes on; graph_run() waits for all of them before it returns. Its pieces are no operations, but
 * each is a window ("piece") on the stream of its worker.
 */
struct node {
	struct job job;
	kernel_fn *kernel;
	const void *layer;
	enum split split;
	size_t n;
	bool queued;
	size_t layer_number; /* 0: of no block */

	char operation_id[STATIC_ID_MAX];
	struct mark_site site;
	struct tensor output;
	const struct tensor **inputs;
	size_t n_inputs;

	/* While it runs. */
	const struct executor *executor;
	size_t units;
	struct mark whole;
};

struct graph {
	const char *function;
	enum tmk_phase phase;
	char scope[24];	     /* put before the names of what is added: "block1." */
	size_t layer_number; /* of what is added: block 1 is 2; 0: of no block */
	const struct marks *marks;
	struct node *nodes;
	size_t n_nodes;
	size_t capacity;
	int err; /* the first failure of graph_add(); sticky */
};

/* What graph_add() wants to know. Everything is copied, but the layer. */
struct node_spec {
	const char *op;
	kernel_fn *kernel;
	const void *layer;
	enum split split;
	size_t n;
	bool queued;
	const char *output;
	const struct tensor *const *inputs;
	size_t n_inputs;
	const char *weights[3]; /* names of the parameters read: they come from no operation */
};

#define GRAPH_INPUTS(...)                                        \
	.inputs = (const struct tensor *const[]){ __VA_ARGS__ }, \
	.n_inputs =                                              \
		sizeof((const struct tensor *const[]){ __VA_ARGS__ }) / sizeof(struct tensor *)

/* Room for `capacity` operations, at least 1. `function` and `marks` are borrowed. */
int graph_open(struct graph *graph, const char *function, enum tmk_phase phase,
	       const struct marks *marks, size_t capacity);
void graph_close(struct graph *graph);

/* Whether names of what is added from now on begin with their block. */
void graph_scope_block(struct graph *graph, size_t block);
void graph_scope_none(struct graph *graph);

/*
 * The tensor that the new operation makes, valid as long as the graph. Never NULL: after a failure,
 * which `err` keeps for the end of the build, it is some tensor.
 */
const struct tensor *graph_add(struct graph *graph, const struct node_spec *spec);

/* What belongs to one block, and stands together, is one window ("layer") on every stream. */
void graph_run(struct graph *graph, const struct executor *executor);

#endif
