// SPDX-License-Identifier: BSD-2-Clause
/*
 * The program's own clock: its tables, and the JSON file that they become.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "self_clock.h"

struct self_clock {
	FILE *file;
	struct self_clock_table train;
	struct self_clock_table infer;
};

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

/* Names of operations are words of this program: nothing in them needs escaping. */
static void table_write(FILE *file, const char *phase, const struct self_clock_table *table)
{
	fprintf(file, "\"%s\":{", phase);
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
	fputs("{", clock->file);
	table_write(clock->file, "train", &clock->train);
	fputs(",", clock->file);
	table_write(clock->file, "infer", &clock->infer);
	fputs("}\n", clock->file);
	if (fflush(clock->file) || ferror(clock->file))
		err = -EIO;
	if (fclose(clock->file) && !err)
		err = -errno;
	free(clock);
	return err;
}
