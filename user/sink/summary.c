// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collects what the summary needs, in bounded memory, however many operations there are. How it is
 * laid out is summary_print.c's.
 */
#include "sink/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "sink/summary_print.h"

static uint32_t name_slot_new(struct tmk_summary *sum, struct tmk_str name)
{
	uint32_t hash = tmk_hash_bytes(&sum->seed, name.data, name.len), pos, slot;
	struct tmk_summary_name *n;

	TMK_INDEX_FOR_EACH(&sum->index, hash, pos, slot)
	{
		n = &sum->names[slot];
		if (n->len == name.len && !memcmp(n->name, name.data, name.len))
			return slot;
	}
	/* Slot 0 is for all that come when there is no more room for names. */
	if (sum->n_names == TMK_SUMMARY_NAMES_MAX)
		return 0;
	if (sum->n_names == sum->cap) {
		n = realloc(sum->names, sum->cap * 2 * sizeof(*n));
		if (!n)
			return 0;
		sum->names = n;
		sum->cap *= 2;
	}
	n = &sum->names[sum->n_names];
	memset(n, 0, sizeof(*n));
	n->name = malloc(name.len + 1);
	if (!n->name || tmk_index_insert(&sum->index, hash, sum->n_names)) {
		free(n->name);
		return 0;
	}
	memcpy(n->name, name.data, name.len);
	n->len = name.len;
	return sum->n_names++;
}

/* Sites are few and their indices count up, so nearly every look-up ends in the cache. */
static uint32_t name_slot(struct tmk_summary *sum, const struct tmk_op_view *op)
{
	struct tmk_summary_cache *c = &sum->cache[op->site_index % TMK_SUMMARY_CACHE];

	if (c->site1 != op->site_index + 1ull) {
		c->site1 = op->site_index + 1ull;
		c->slot = name_slot_new(sum, op->op_name);
	}
	return c->slot;
}

static int summary_on_op(void *self, const struct tmk_op_view *op)
{
	struct tmk_summary *sum = self;
	uint32_t slot = name_slot(sum, op); /* first: it may move the names */

	tmk_histogram_add(&sum->names[slot].durations, &sum->pool, op->op.duration_ns);
	tmk_summary_windows_op(&sum->windows, op);
	return 0;
}

static int summary_on_unfinished(void *self, const struct tmk_unfinished_view *u)
{
	struct tmk_summary *sum = self;
	struct tmk_summary_unfinished *kept;

	if (sum->n_unfinished++ >= TMK_SUMMARY_UNFINISHED)
		return 0;
	kept = &sum->unfinished[sum->n_unfinished - 1];
	tmk_safe(kept->name, sizeof(kept->name), u->op_name.data, u->op_name.len);
	kept->pid = u->u.pid;
	kept->tid = u->u.tid;
	kept->start_ns = u->u.start_ns;
	kept->reason = u->u.reason;
	return 0;
}

static int summary_on_window(void *self, const struct tmk_window_view *w)
{
	struct tmk_summary *sum = self;

	tmk_summary_windows_window(&sum->windows, &sum->pool, w);
	return 0;
}

static int summary_on_finish(void *self, const struct tmk_finish_view *f)
{
	struct tmk_summary *sum = self;

	tmk_summary_print(sum, f);
	if (fflush(sum->out) == EOF || ferror(sum->out)) {
		int err = errno ? -errno : -EIO;

		tmk_error("the summary cannot be written: %s; give -q to do without",
			  strerror(-err));
		return err;
	}
	return 0;
}

static void summary_free(void *self)
{
	struct tmk_summary *sum = self;

	for (uint32_t i = 0; i < sum->n_names; i++) {
		free(sum->names[i].name);
		tmk_histogram_free(&sum->names[i].durations, &sum->pool);
	}
	tmk_summary_windows_free(&sum->windows, &sum->pool);
	tmk_index_free(&sum->index);
	free(sum->names);
	free(sum);
}

static const struct tmk_sink_ops summary_ops = {
	.name = "summary",
	.on_op = summary_on_op,
	.on_unfinished = summary_on_unfinished,
	.on_window = summary_on_window,
	.on_finish = summary_on_finish,
	.free = summary_free,
};

int tmk_summary_new(struct tmk_sink *sink, FILE *out)
{
	struct tmk_summary *sum = calloc(1, sizeof(*sum));

	if (!sum)
		return -ENOMEM;
	sum->cap = 64;
	sum->names = calloc(sum->cap, sizeof(*sum->names));
	if (!sum->names) {
		free(sum);
		return -ENOMEM;
	}
	sum->n_names = 1;
	sum->pool.max = TMK_SUMMARY_OCTAVES_MAX;
	sum->out = out;
	tmk_seed_init(&sum->seed);
	sum->windows.seed = sum->seed;
	*sink = (struct tmk_sink){ &summary_ops, sum };
	return 0;
}
