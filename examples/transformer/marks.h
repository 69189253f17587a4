/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How this program marks its operations and edges, its streams and its windows. The rest of what it uses
 * of libtickmark: sessions are opened and finished in main.c, their step is set in train.c and
 * generate.c, where there is also one TMK_OP_SCOPE, graph.c interns the sites, and device_queue.c
 * measures windows by a device's clock.
 *
 * An operation is marked where it is executed, by the thread that executes it:
 *
 *	struct mark m = mark_begin(marks, &site);
 *	... the work ...
 *	mark_end(marks, &site, &m, "output");
 *
 * A `struct mark` is a plain value: the operation may end on another thread than it began on. While
 * nobody listens, each of the two costs a load and a branch.
 *
 * A window says which operations belong together, and is used in the same way: window_start(), then
 * window_end() or window_abandon(), on whatever thread. It belongs to the stream that its opener was on.
 */
#ifndef TRANSFORMER_MARKS_H
#define TRANSFORMER_MARKS_H

#include <string.h>
#include <tickmark/tickmark.h>

#include "self_clock.h"

#define TENSOR_NAME_MAX 48u
#define STATIC_ID_MAX 96u

/* Where the marks of one phase go. */
struct marks {
	struct tmk_session *session;
	struct self_clock_table *clock; /* NULL: off */
};

/* An operation of the model as the marks see it. */
struct mark_site {
	const struct tmk_desc *desc;
	unsigned int clock_row;
};

struct mark {
	struct tmk_op op;
	struct self_clock_span span;
};

/* A tensor as the edges see it: the result of an operation, and since when it has been there. */
struct tensor {
	char id[STATIC_ID_MAX]; /* e.g. "tensor:train:Gpt::forward:3" */
	char name[TENSOR_NAME_MAX];
	uint64_t ready_ns;
};

/*
 * Where work is queued. The thread that trains and answers stays on the stream that it has as a thread;
 * each worker is on a numbered one, and what the device does belongs to one more.
 */
#define STREAM_OF_WORKER(i) (1 + (unsigned int)(i))
#define STREAM_OF_DEVICE 100u

/* A window as the marks see it, and as the program's own clock does. */
struct window {
	struct tmk_window token;
	struct self_clock_window span;
};

/* As static ids name it. */
static inline const char *phase_name(enum tmk_phase phase)
{
	return phase == TMK_PHASE_TRAIN ? "train" : "infer";
}

/* Strings of a site: static id, operation, inputs. */
static inline const char *site_op(const struct tmk_desc *desc)
{
	return desc->strings + strlen(desc->strings) + 1;
}

/* At start-up, before any worker uses the clock. */
static inline struct mark_site mark_site(const struct marks *marks, const struct tmk_desc *desc)
{
	return (struct mark_site){
		.desc = desc,
		.clock_row = self_clock_row(marks->clock, site_op(desc)),
	};
}

static inline struct mark mark_begin(const struct marks *marks, const struct mark_site *site)
{
	struct mark mark = { 0 };

	self_clock_before_begin(marks->clock, &mark.span);
	mark.op = tmk_op_begin(marks->session, site->desc);
	self_clock_after_begin(marks->clock, &mark.span);
	return mark;
}

static inline void mark_end(const struct marks *marks, const struct mark_site *site,
			    struct mark *mark, const char *output)
{
	self_clock_before_end(marks->clock, &mark->span);
	/* An error to write the file is kept by the session and comes back when it is finished. */
	(void)tmk_op_end(marks->session, mark->op, output);
	self_clock_after_end(marks->clock, site->clock_row, &mark->span);
}

/* Puts the thread on a stream; returns what stream_leave() wants. Costs two stores. */
static inline unsigned int stream_enter(unsigned int number)
{
	/* Fails only where enters are nested deeply. */
	(void)tmk_stream_enter(number);
	return self_clock_enter(number);
}

static inline void stream_leave(unsigned int before)
{
	tmk_stream_leave();
	self_clock_enter(before);
}

static inline struct window window_start(const struct marks *marks, const char *name)
{
	struct window window = { 0 };

	self_clock_before_start(marks->clock, &window.span, name);
	/* Without memory there is no window; ending it is then nothing. */
	(void)tmk_window_start(marks->session, name, &window.token);
	self_clock_after_start(marks->clock, &window.span);
	return window;
}

/* What a window came to is for whoever listens: the program goes on all the same. */
static inline void window_end(const struct marks *marks, struct window *window,
			      const struct tmk_window_options *options)
{
	self_clock_before_close(marks->clock, &window->span);
	(void)tmk_window_end(marks->session, window->token, options);
	self_clock_after_close(marks->clock, &window->span, &window->token, "closed");
}

static inline void window_abandon(const struct marks *marks, struct window *window)
{
	self_clock_before_close(marks->clock, &window->span);
	tmk_window_abandon(marks->session, window->token);
	self_clock_after_close(marks->clock, &window->span, &window->token, "abandoned");
}

/* Always, or an edge that is recorded just after somebody began to listen would have no start. */
static inline void tensor_ready(struct tensor *tensor)
{
	tensor->ready_ns = clock_ns();
}

/*
 * One edge for each input: how long that tensor lay ready until `operation_id` took it. On the thread
 * that begins the operation, and as it begins.
 */
static inline void mark_edges(const struct marks *marks, const struct tensor *const *inputs,
			      size_t n, const char *operation_id)
{
	uint64_t now;

	if (!tmk_enabled())
		return;
	now = clock_ns();
	for (size_t i = 0; i < n; i++)
		(void)tmk_edge_record(marks->session, inputs[i]->id, operation_id,
				      now - inputs[i]->ready_ns);
}

#endif
