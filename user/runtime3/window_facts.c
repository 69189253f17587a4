// SPDX-License-Identifier: BSD-2-Clause
/*
 * Arrays that are sorted once and searched by halving. See window_facts.h.
 */
#include "runtime3/window_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tmk_facts_op {
	uint64_t end_ns;
	uint32_t stream;
};

struct tmk_facts_window {
	uint64_t id, start_ns;
	/*
	 * Its end; sealed: the latest and the second latest end of this and all earlier windows of the
	 * same stream and id.
	 */
	uint64_t latest_ns, second_ns;
	uint32_t stream;
};

/* Their numbers are kept in 32 bits, in an index that is at most half full. */
#define STREAMS_MAX ((size_t)1 << 30)

void tmk_window_facts_init(struct tmk_window_facts *f)
{
	memset(f, 0, sizeof(*f));
	tmk_seed_init(&f->seed);
}

void tmk_window_facts_free(struct tmk_window_facts *f)
{
	if (!f)
		return;
	tmk_index_free(&f->index);
	free(f->streams);
	free(f->ops);
	free(f->windows);
	free(f->ends);
	free(f->first);
	memset(f, 0, sizeof(*f));
}

/* --- filling */

/* Room for one more element of `size` bytes; NULL without memory. */
static void *array_grow(void *array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 64;

	if (n < *cap)
		return array;
	array = reallocarray(array, more, size);
	if (array)
		*cap = more;
	return array;
}

static uint32_t stream_hash(const struct tmk_window_facts *f, const struct tmk_facts_stream *stream)
{
	return tmk_hash2(&f->seed, stream->number, stream->named);
}

static bool stream_find(const struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			uint32_t *number)
{
	uint32_t hash = stream_hash(f, stream), pos, slot;

	TMK_INDEX_FOR_EACH(&f->index, hash, pos, slot)
	{
		if (f->streams[slot].number == stream->number &&
		    f->streams[slot].named == stream->named) {
			*number = slot;
			return true;
		}
	}
	return false;
}

static int stream_get(struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
		      uint32_t *number)
{
	struct tmk_facts_stream *streams;
	int err;

	if (stream_find(f, stream, number))
		return 0;
	if (f->n_streams >= STREAMS_MAX)
		return -ENOMEM;
	streams = array_grow(f->streams, f->n_streams, &f->streams_cap, sizeof(*streams));
	if (!streams)
		return -ENOMEM;
	f->streams = streams;
	*number = (uint32_t)f->n_streams;
	err = tmk_index_insert(&f->index, stream_hash(f, stream), *number);
	if (err)
		return err;
	streams[f->n_streams++] = *stream;
	return 0;
}

int tmk_window_facts_op(struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			uint64_t end_ns)
{
	struct tmk_facts_op *ops = array_grow(f->ops, f->n_ops, &f->ops_cap, sizeof(*ops));
	struct tmk_facts_op op = { .end_ns = end_ns };
	int err;

	if (!ops)
		return -ENOMEM;
	f->ops = ops;
	err = stream_get(f, stream, &op.stream);
	if (!err)
		ops[f->n_ops++] = op;
	return err;
}

int tmk_window_facts_window(struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			    uint64_t id, const struct tmk_facts_span *span)
{
	struct tmk_facts_window *windows =
		array_grow(f->windows, f->n_windows, &f->windows_cap, sizeof(*windows));
	struct tmk_facts_window w = {
		.id = id,
		.start_ns = span->start_ns,
		.latest_ns = span->end_ns,
	};
	int err;

	if (!windows)
		return -ENOMEM;
	f->windows = windows;
	err = stream_get(f, stream, &w.stream);
	if (!err)
		windows[f->n_windows++] = w;
	return err;
}

/* --- sealing */

static int u64_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* By stream, id and start. */
static int window_compare(const void *a, const void *b)
{
	const struct tmk_facts_window *x = a, *y = b;
	int by_stream = (x->stream > y->stream) - (x->stream < y->stream);
	int by_id = (x->id > y->id) - (x->id < y->id);

	if (by_stream || by_id)
		return by_stream ? by_stream : by_id;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool is_ascending(const uint64_t *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (v[i - 1] > v[i])
			return false;
	}
	return true;
}

/* Deals the ends out to their streams. Files have them in the order of time, so few need sorting. */
static int ends_seal(struct tmk_window_facts *f)
{
	size_t *first = calloc(f->n_streams + 2, sizeof(*first));
	uint64_t *ends = calloc(f->n_ops + 1, sizeof(*ends));

	f->first = first;
	f->ends = ends;
	if (!first || !ends)
		return -ENOMEM;
	/* One place further than where a stream begins, until the dealing has moved it there. */
	for (size_t i = 0; i < f->n_ops; i++)
		first[f->ops[i].stream + 2]++;
	for (size_t i = 2; i < f->n_streams + 2; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < f->n_ops; i++)
		ends[first[f->ops[i].stream + 1]++] = f->ops[i].end_ns;
	free(f->ops);
	f->ops = NULL;
	f->n_ops = f->ops_cap = 0;
	for (size_t i = 0; i < f->n_streams; i++) {
		uint64_t *of_stream = ends + first[i];
		size_t n = first[i + 1] - first[i];

		if (!is_ascending(of_stream, n))
			qsort(of_stream, n, sizeof(*of_stream), u64_compare);
	}
	return 0;
}

static void windows_seal(struct tmk_window_facts *f)
{
	struct tmk_facts_window *w = f->windows;

	if (f->n_windows > 1)
		qsort(w, f->n_windows, sizeof(*w), window_compare);
	for (size_t i = 1; i < f->n_windows; i++) {
		uint64_t end_ns = w[i].latest_ns;

		if (w[i].stream != w[i - 1].stream || w[i].id != w[i - 1].id)
			continue;
		if (end_ns >= w[i - 1].latest_ns) {
			w[i].second_ns = w[i - 1].latest_ns;
			continue;
		}
		w[i].latest_ns = w[i - 1].latest_ns;
		w[i].second_ns = end_ns > w[i - 1].second_ns ? end_ns : w[i - 1].second_ns;
	}
}

int tmk_window_facts_seal(struct tmk_window_facts *f)
{
	windows_seal(f);
	return ends_seal(f);
}

/* --- asking */

/* How many of n ascending values are below `limit`. */
static size_t below(const uint64_t *v, size_t n, uint64_t limit)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = low + (n - low) / 2;

		if (v[middle] < limit)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

static size_t not_above(const uint64_t *v, size_t n, uint64_t limit)
{
	return limit == UINT64_MAX ? n : below(v, n, limit + 1);
}

void tmk_window_facts_ended(const struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			    const struct tmk_facts_span *span, uint64_t *least, uint64_t *most)
{
	const uint64_t *ends;
	uint32_t number;
	size_t n, after_start, before_end;

	*least = *most = 0;
	if (span->end_ns < span->start_ns || !stream_find(f, stream, &number))
		return;
	ends = f->ends + f->first[number];
	n = f->first[number + 1] - f->first[number];
	after_start = not_above(ends, n, span->start_ns);
	before_end = below(ends, n, span->end_ns);
	if (before_end > after_start)
		*least = before_end - after_start;
	*most = not_above(ends, n, span->end_ns) - below(ends, n, span->start_ns);
}

bool tmk_window_facts_held(const struct tmk_window_facts *f, const struct tmk_facts_stream *stream,
			   uint64_t id, const struct tmk_facts_span *span, bool other)
{
	struct tmk_facts_window wanted = { .id = id, .start_ns = span->start_ns };
	const struct tmk_facts_window *w = f->windows;
	size_t low = 0, high = f->n_windows;
	uint64_t latest_ns;

	if (!stream_find(f, stream, &wanted.stream))
		return false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (window_compare(&w[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	w += low - 1; /* the last one of these that started no later */
	if (w->stream != wanted.stream || w->id != id)
		return false;
	latest_ns = other ? w->second_ns : w->latest_ns;
	return latest_ns && latest_ns >= span->end_ns;
}
