// SPDX-License-Identifier: BSD-2-Clause
/*
 * The program's own clock: its tables, and the JSON file that they become.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "self_clock.h"

struct self_clock {
	FILE *file;
	pthread_mutex_t windows; /* writing one */
	bool some_window;
	struct self_clock_table train;
	struct self_clock_table infer;
};

_Thread_local unsigned int self_clock_here;

int self_clock_open(struct self_clock **out, const char *path)
{
	struct self_clock *clock = calloc(1, sizeof(*clock));
	int err;

	*out = NULL;
	if (!clock)
		return -ENOMEM;
	clock->file = fopen(path, "we");
	if (!clock->file) {
		err = -errno;
		free(clock);
		return err;
	}
	pthread_mutex_init(&clock->windows, NULL);
	clock->train.clock = clock->infer.clock = clock;
	clock->train.phase = "train";
	clock->infer.phase = "infer";
	fputs("{\"windows\":[", clock->file);
	*out = clock;
	return 0;
}

struct self_clock_table *self_clock_train(struct self_clock *clock)
{
	return clock ? &clock->train : NULL;
}

struct self_clock_table *self_clock_infer(struct self_clock *clock)
{
	return clock ? &clock->infer : NULL;
}

unsigned int self_clock_row(struct self_clock_table *table, const char *op)
{
	struct self_clock_row *row;

	if (!table)
		return 0;
	for (unsigned int i = 0; i < table->n; i++) {
		if (!strcmp(table->rows[i].op, op))
			return i;
	}
	if (table->n == SELF_CLOCK_ROWS)
		return SELF_CLOCK_ROWS - 1;
	row = &table->rows[table->n];
	snprintf(row->op, sizeof(row->op), "%s", op);
	return table->n++;
}

/* The counts are read outside of the times: each is then as far from the mark as it can be. */
void self_clock_window_opening(struct self_clock_table *t, struct self_clock_window *w,
			       const char *name)
{
	w->name = name;
	w->stream = self_clock_here;
	w->ended_before_start = atomic_load(&t->streams[w->stream].ended);
	w->before_start = clock_ns();
}

void self_clock_window_opened(struct self_clock_table *t, struct self_clock_window *w)
{
	w->after_start = clock_ns();
	w->ending_after_start = atomic_load(&t->streams[w->stream].ending);
}

void self_clock_window_closing(struct self_clock_table *t, struct self_clock_window *w)
{
	w->ended_before_end = atomic_load(&t->streams[w->stream].ended);
	w->before_end = clock_ns();
}

/* Begins a line of "windows", which line_end() ends. Names are words of this program, as below. */
static FILE *line_begin(struct self_clock_table *t, const struct tmk_window *token)
{
	struct self_clock *clock = t->clock;

	pthread_mutex_lock(&clock->windows);
	fprintf(clock->file, "%s\n{\"phase\":\"%s\",\"id\":%" PRIu64 ",\"opened_on\":%" PRIu64,
		clock->some_window ? "," : "", t->phase, token->id, token->opened_on);
	clock->some_window = true;
	return clock->file;
}

static void line_end(struct self_clock_table *t)
{
	fputs("}", t->clock->file);
	pthread_mutex_unlock(&t->clock->windows);
}

void self_clock_window_closed(struct self_clock_table *t, const struct self_clock_window *w,
			      const struct tmk_window *token, const char *how)
{
	const uint64_t after_end = clock_ns();
	const uint64_t ending_after_end = atomic_load(&t->streams[w->stream].ending);
	/* Operations may have ended while the window was being opened. */
	const uint64_t least = w->ended_before_end > w->ending_after_start
				       ? w->ended_before_end - w->ending_after_start
				       : 0;
	FILE *file = line_begin(t, token);

	fprintf(file,
		",\"name\":\"%s\",\"how\":\"%s\",\"start_ns\":[%" PRIu64 ",%" PRIu64
		"],\"end_ns\":[%" PRIu64 ",%" PRIu64 "],\"operations\":[%" PRIu64 ",%" PRIu64 "]",
		w->name, how, w->before_start, w->after_start, w->before_end, after_end, least,
		ending_after_end - w->ended_before_start);
	line_end(t);
}

void self_clock_device(struct self_clock_table *t, const struct tmk_window *token,
		       const struct tmk_ticks *ticks)
{
	FILE *file;

	if (!t)
		return;
	file = line_begin(t, token);
	fprintf(file, ",\"ticks\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", ticks->start, ticks->end,
		ticks->per_second);
	line_end(t);
}

/* Names of operations are words of this program: nothing in them needs escaping. */
static void table_write(FILE *file, const struct self_clock_table *table)
{
	fprintf(file, "\"%s\":{", table->phase);
	for (unsigned int i = 0; i < table->n; i++) {
		const struct self_clock_row *r = &table->rows[i];

		fprintf(file,
			"%s\"%s\":{\"count\":%" PRIuFAST64 ",\"inner_ns\":%" PRIuFAST64
			",\"outer_ns\":%" PRIuFAST64 "}",
			i ? "," : "", r->op, atomic_load(&r->count), atomic_load(&r->inner_ns),
			atomic_load(&r->outer_ns));
	}
	fputs("}", file);
}

int self_clock_close(struct self_clock *clock)
{
	int err = 0;

	if (!clock)
		return 0;
	fputs("],", clock->file);
	table_write(clock->file, &clock->train);
	fputs(",", clock->file);
	table_write(clock->file, &clock->infer);
	fputs("}\n", clock->file);
	if (fflush(clock->file) || ferror(clock->file))
		err = -EIO;
	if (fclose(clock->file) && !err)
		err = -errno;
	pthread_mutex_destroy(&clock->windows);
	free(clock);
	return err;
}
