// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sums by name and their snapshots. See totals.h.
 */
#include "stream/totals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct tmk_totals_snapshot {
	uint32_t n;
	struct {
		uint64_t count, total_ns;
	} at[];
};

static bool room_take(size_t *used, size_t bytes)
{
	if (bytes > TMK_STREAM_TOTALS_MAX - *used)
		return false;
	*used += bytes;
	return true;
}

static bool totals_grow(struct tmk_totals *t, size_t *used)
{
	uint32_t cap = t->cap ? t->cap * 2 : 8;
	size_t more;
	struct tmk_stream_total *at;

	if (cap > TMK_STREAM_NAMES + 1)
		cap = TMK_STREAM_NAMES + 1;
	more = (cap - t->cap) * sizeof(*at);
	if (cap == t->cap || !room_take(used, more))
		return false;
	at = realloc(t->at, cap * sizeof(*at));
	if (!at) {
		*used -= more;
		return false;
	}
	t->at = at;
	t->cap = cap;
	return true;
}

static bool totals_append(struct tmk_totals *t, size_t *used, uint32_t name)
{
	if (t->n == t->cap && !totals_grow(t, used))
		return false;
	t->at[t->n] = (struct tmk_stream_total){ .name = name };
	t->recent[name & 255] = (unsigned char)t->n++;
	return true;
}

/* NULL: there is not even room for the others. */
static struct tmk_stream_total *total_find(struct tmk_totals *t, size_t *used, uint32_t name)
{
	uint32_t place = t->recent[name & 255];

	if (place < t->n && t->at[place].name == name)
		return &t->at[place];
	for (place = 1; place < t->n; place++) {
		if (t->at[place].name != name)
			continue;
		t->recent[name & 255] = (unsigned char)place;
		return &t->at[place];
	}
	if (!t->n && !totals_append(t, used, TMK_STREAM_OTHERS))
		return NULL;
	if (name != TMK_STREAM_OTHERS && totals_append(t, used, name))
		return &t->at[t->n - 1];
	return &t->at[0];
}

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

void tmk_totals_add(struct tmk_totals *t, size_t *used, uint32_t name, uint64_t duration_ns)
{
	struct tmk_stream_total *total = total_find(t, used, name);

	if (!total)
		return;
	total->count++;
	total->total_ns = add_sat(total->total_ns, duration_ns);
}

void tmk_totals_reset(struct tmk_totals *t)
{
	t->n = 0;
}

void tmk_totals_free(struct tmk_totals *t, size_t *used)
{
	*used -= t->cap * sizeof(*t->at);
	free(t->at);
	t->at = NULL;
	t->n = t->cap = 0;
}

static size_t snapshot_bytes(uint32_t n)
{
	return sizeof(struct tmk_totals_snapshot) +
	       n * sizeof(((struct tmk_totals_snapshot *)NULL)->at[0]);
}

struct tmk_totals_snapshot *tmk_totals_snapshot(const struct tmk_totals *t, size_t *used)
{
	struct tmk_totals_snapshot *s;

	if (!room_take(used, snapshot_bytes(t->n)))
		return NULL;
	s = malloc(snapshot_bytes(t->n));
	if (!s) {
		*used -= snapshot_bytes(t->n);
		return NULL;
	}
	s->n = t->n;
	for (uint32_t i = 0; i < t->n; i++) {
		s->at[i].count = t->at[i].count;
		s->at[i].total_ns = t->at[i].total_ns;
	}
	return s;
}

void tmk_totals_snapshot_free(struct tmk_totals_snapshot *s, size_t *used)
{
	if (!s)
		return;
	*used -= snapshot_bytes(s->n);
	free(s);
}

size_t tmk_totals_since(const struct tmk_totals *t, const struct tmk_totals_snapshot *s,
			struct tmk_stream_total *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		struct tmk_stream_total total = t->at[i];

		if (i < s->n) {
			total.count -= s->at[i].count;
			total.total_ns -= s->at[i].total_ns;
		}
		if (total.count)
			out[n++] = total;
	}
	return n;
}
