// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collects and prints the summary's tables of windows and streams. See summary_windows.h.
 */
#include "sink/summary_windows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "sink/summary_table.h"

#define ROWS_SHOWN 20
#define STREAMS_SHOWN 16
#define INSIDE_SHOWN 2
#define WINDOW_COLUMNS 10
#define STREAM_COLUMNS 6

/* --- collecting */

/* [0] exists from the first call on; false without memory, when nothing is kept. */
static bool streams_ready(struct tmk_summary_windows *t)
{
	if (t->n_streams)
		return true;
	t->streams = calloc(16, sizeof(*t->streams));
	if (!t->streams)
		return false;
	t->cap_streams = 16;
	t->n_streams = 1;
	t->streams[0].others = true;
	return true;
}

static bool is_stream(const struct tmk_summary_stream *s, uint32_t pid, uint64_t number, bool named)
{
	return s->pid == pid && s->number == number && s->named == named && !s->others;
}

static uint32_t stream_add(struct tmk_summary_windows *t, uint32_t hash, uint32_t pid,
			   uint64_t number, bool named)
{
	struct tmk_summary_stream *s;

	if (t->n_streams == TMK_SUMMARY_STREAMS_MAX)
		return 0;
	if (t->n_streams == t->cap_streams) {
		s = realloc(t->streams, t->cap_streams * 2 * sizeof(*s));
		if (!s)
			return 0;
		t->streams = s;
		t->cap_streams *= 2;
	}
	if (tmk_index_insert(&t->by_stream, hash, t->n_streams))
		return 0;
	t->streams[t->n_streams] =
		(struct tmk_summary_stream){ .pid = pid, .number = number, .named = named };
	return t->n_streams++;
}

static struct tmk_summary_stream *stream_get(struct tmk_summary_windows *t, uint32_t pid,
					     uint64_t number, bool named)
{
	uint32_t hash, pos, slot;

	if (!streams_ready(t))
		return NULL;
	if (is_stream(&t->streams[t->last], pid, number, named))
		return &t->streams[t->last];
	t->named |= named;
	hash = tmk_hash2(&t->seed, number, (uint64_t)pid << 1 | named);
	TMK_INDEX_FOR_EACH(&t->by_stream, hash, pos, slot)
	{
		if (is_stream(&t->streams[slot], pid, number, named))
			return &t->streams[t->last = slot];
	}
	t->last = stream_add(t, hash, pid, number, named);
	return &t->streams[t->last];
}

void tmk_summary_windows_op(struct tmk_summary_windows *t, const struct tmk_op_view *op)
{
	struct tmk_summary_stream *s = stream_get(t, op->op.pid, op->op.stream, op->op.named);

	if (!s)
		return;
	s->operations++;
	s->operations_ns += (double)op->op.duration_ns;
}

static bool rows_ready(struct tmk_summary_windows *t)
{
	if (t->n_rows)
		return true;
	t->rows = calloc(16, sizeof(*t->rows));
	if (!t->rows)
		return false;
	t->cap_rows = 16;
	t->n_rows = 1;
	return true;
}

static uint32_t row_add(struct tmk_summary_windows *t, uint32_t hash, struct tmk_str name,
			bool device)
{
	struct tmk_summary_window *r;
	char *kept;

	if (t->n_rows == TMK_SUMMARY_WINDOWS_MAX)
		return 0;
	if (t->n_rows == t->cap_rows) {
		r = realloc(t->rows, t->cap_rows * 2 * sizeof(*r));
		if (!r)
			return 0;
		t->rows = r;
		t->cap_rows *= 2;
	}
	kept = malloc(name.len + 1);
	if (!kept || tmk_index_insert(&t->by_name, hash, t->n_rows)) {
		free(kept);
		return 0;
	}
	memcpy(kept, name.data, name.len);
	r = &t->rows[t->n_rows];
	memset(r, 0, sizeof(*r));
	r->name = kept;
	r->len = name.len;
	r->device = device;
	return t->n_rows++;
}

static struct tmk_summary_window *row_get(struct tmk_summary_windows *t, struct tmk_str name,
					  bool device)
{
	uint32_t hash = tmk_hash_bytes(&t->seed, name.data, name.len) ^ device, pos, slot;

	if (!rows_ready(t))
		return NULL;
	TMK_INDEX_FOR_EACH(&t->by_name, hash, pos, slot)
	{
		struct tmk_summary_window *r = &t->rows[slot];

		if (r->device == device && r->len == name.len &&
		    !memcmp(r->name, name.data, name.len))
			return r;
	}
	slot = row_add(t, hash, name, device); /* first: it may move the rows */
	return &t->rows[slot];
}

/* The first names that come are kept: in most programs these are all. */
static void inside_add(struct tmk_summary_window *r, const struct tmk_window_total *total)
{
	struct tmk_summary_inside *in;

	r->inside_ns += (double)total->total_ns;
	if (!total->op_name.data)
		return;
	for (uint32_t i = 0; i < r->n_inside; i++) {
		in = &r->inside[i];
		if (in->len == total->op_name.len &&
		    !memcmp(in->name, total->op_name.data, in->len)) {
			if (__builtin_add_overflow(in->total_ns, total->total_ns, &in->total_ns))
				in->total_ns = UINT64_MAX;
			return;
		}
	}
	if (r->n_inside == TMK_SUMMARY_INSIDE)
		return;
	in = &r->inside[r->n_inside];
	in->name = malloc(total->op_name.len + 1);
	if (!in->name)
		return;
	memcpy(in->name, total->op_name.data, total->op_name.len);
	in->len = total->op_name.len;
	in->total_ns = total->total_ns;
	r->n_inside++;
}

static void status_count(struct tmk_summary_window *r, const char *status)
{
	r->abandoned += status[0] == 'a';
	r->not_measured += status[0] == 'n';
	r->failed += status[0] == 'f';
	r->open += status[0] == 'o';
}

static void stream_window(struct tmk_summary_windows *t, const struct tmk_r3_window *w)
{
	struct tmk_summary_stream *s;

	if (!w->has_stream)
		return;
	s = stream_get(t, w->pid, w->stream, w->named);
	if (!s)
		return;
	s->windows++;
	if (!w->has_start || !w->has_end || w->depth)
		return;
	s->windows_ns += (double)(w->end_ns - w->start_ns);
	if (w->has_idle) {
		s->idle_ns += (double)w->idle_ns;
		s->idle_of_ns += (double)(w->end_ns - w->start_ns);
	}
}

void tmk_summary_windows_window(struct tmk_summary_windows *t, struct tmk_histogram_pool *pool,
				const struct tmk_window_view *view)
{
	const struct tmk_r3_window *w = &view->w;
	struct tmk_summary_window *r = row_get(t, w->name, w->device);

	t->n_windows++;
	stream_window(t, w);
	if (!r)
		return;
	status_count(r, w->status);
	if (w->has_duration)
		tmk_histogram_add(&r->durations, pool, w->duration_ns);
	if (w->has_idle && w->has_start && w->has_end) {
		r->idle_ns += (double)w->idle_ns;
		r->idle_of_ns += (double)(w->end_ns - w->start_ns);
	}
	for (size_t i = 0; i < view->n_totals; i++)
		inside_add(r, &view->totals[i]);
}

void tmk_summary_windows_free(struct tmk_summary_windows *t, struct tmk_histogram_pool *pool)
{
	for (uint32_t i = 0; i < t->n_rows; i++) {
		struct tmk_summary_window *r = &t->rows[i];

		for (uint32_t k = 0; k < r->n_inside; k++)
			free(r->inside[k].name);
		tmk_histogram_free(&r->durations, pool);
		free(r->name);
	}
	free(t->rows);
	free(t->streams);
	tmk_index_free(&t->by_name);
	tmk_index_free(&t->by_stream);
}

/* --- printing */

static int row_compare(const void *a, const void *b)
{
	const struct tmk_summary_window *const *x = a, *const *y = b;
	const struct tmk_histogram *p = &(*x)->durations, *q = &(*y)->durations;
	size_t common = (*x)->len < (*y)->len ? (*x)->len : (*y)->len;
	int order;

	if (p->total != q->total)
		return p->total < q->total ? 1 : -1;
	order = common ? memcmp((*x)->name, (*y)->name, common) : 0;
	if (!order)
		order = ((*x)->len > (*y)->len) - ((*x)->len < (*y)->len);
	return order ? order : (*x)->device - (*y)->device;
}

static int inside_compare(const void *a, const void *b)
{
	const struct tmk_summary_inside *x = a, *y = b;

	return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

/* "matmul 61 %, softmax 12 %" */
static void inside_cell(char out[TMK_TABLE_CELL], const struct tmk_summary_window *r)
{
	struct tmk_summary_inside sorted[TMK_SUMMARY_INSIDE];
	size_t len = 0;

	memcpy(sorted, r->inside, sizeof(sorted));
	qsort(sorted, r->n_inside, sizeof(sorted[0]), inside_compare);
	strcpy(out, r->n_inside ? "" : "-");
	for (uint32_t i = 0; i < r->n_inside && i < INSIDE_SHOWN; i++) {
		char name[TMK_TABLE_CELL];

		tmk_table_name(name, sorted[i].name, sorted[i].len, 14);
		len += (size_t)snprintf(
			out + len, TMK_TABLE_CELL - len, "%s%s %.0f %%", len ? ", " : "", name,
			r->inside_ns > 0 ? 100 * (double)sorted[i].total_ns / r->inside_ns : 0);
	}
}

static void window_row(struct tmk_table_row *row, const struct tmk_summary_window *r)
{
	const struct tmk_histogram *h = &r->durations;

	if (r->name)
		tmk_table_name(row->cell[0], r->name, r->len, 24);
	else
		strcpy(row->cell[0], "(others)");
	if (r->device)
		strcat(row->cell[0], " (device)"); /* 24 characters of 4 bytes leave room */
	tmk_format_count(row->cell[1], h->count);
	if (h->count) {
		tmk_format_ns(row->cell[2], h->total / h->count);
		tmk_format_ns(row->cell[5], h->max);
	} else {
		strcpy(row->cell[2], "-");
		strcpy(row->cell[5], "-");
	}
	tmk_table_quantile(row->cell[3], h, 0.5);
	tmk_table_quantile(row->cell[4], h, 0.99);
	tmk_format_count(row->cell[6], r->abandoned);
	tmk_format_count(row->cell[7], r->not_measured + r->failed);
	tmk_table_share(row->cell[8], r->idle_ns, r->idle_of_ns);
	inside_cell(row->cell[9], r);
}

static bool row_is_empty(const struct tmk_summary_window *r)
{
	return !r->durations.count && !r->abandoned && !r->not_measured && !r->failed && !r->open;
}

static void windows_table(const struct tmk_summary_windows *t, FILE *out)
{
	static const struct tmk_table_row heading = { { "window", "count", "mean", "p50", "p99",
							"max", "abandoned", "unmeasured", "idle",
							"inside" } };
	const struct tmk_summary_window **sorted = calloc(t->n_rows + 1, sizeof(*sorted));
	struct tmk_table_row *rows = calloc(ROWS_SHOWN + 1, sizeof(*rows));
	size_t n = 0, shown;

	if (!sorted || !rows) {
		fputs("(no memory for the table of windows)\n", out);
		goto cleanup;
	}
	for (uint32_t i = 0; i < t->n_rows; i++)
		if (!row_is_empty(&t->rows[i]))
			sorted[n++] = &t->rows[i];
	qsort(sorted, n, sizeof(*sorted), row_compare);
	shown = n < ROWS_SHOWN ? n : ROWS_SHOWN;
	rows[0] = heading;
	for (size_t i = 0; i < shown; i++)
		window_row(&rows[i + 1], sorted[i]);
	tmk_table_write(out, rows, shown + 1, WINDOW_COLUMNS, true);
	if (n > shown)
		fprintf(out, "… and %zu more\n", n - shown);
cleanup:
	free(sorted);
	free(rows);
}

static void counts_print(const struct tmk_finish_view *f, FILE *out)
{
	const struct tmk_window_counts *c = &f->windows;
	char a[TMK_FORMAT_MAX], b[TMK_FORMAT_MAX], d[TMK_FORMAT_MAX];

	fprintf(out, "windows: %s closed, %s abandoned, %s not measured",
		tmk_format_count(a, c->closed), tmk_format_count(b, c->abandoned),
		tmk_format_count(d, c->not_measured));
	if (c->failed)
		fprintf(out, ", %s failed", tmk_format_count(a, c->failed));
	if (c->open)
		fprintf(out, ", %s still open", tmk_format_count(a, c->open));
	if (f->windows_limit)
		fprintf(out, "; %s of them given up for want of room",
			tmk_format_count(a, f->windows_limit));
	fputs("\nidle: of their time on the stream, what no operation covers; inside: of the time of the "
	      "operations in them\n\n",
	      out);
}

/* Sums of many, some of which may be lies. */
static uint64_t ns_of(double ns)
{
	return ns < 18e18 ? (uint64_t)ns : UINT64_MAX;
}

static int stream_compare(const void *a, const void *b)
{
	const struct tmk_summary_stream *const *x = a, *const *y = b;
	double p = (*x)->operations_ns, q = (*y)->operations_ns;

	if (p != q)
		return p < q ? 1 : -1;
	if ((*x)->named != (*y)->named)
		return (*x)->named ? -1 : 1;
	return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

static void stream_row(struct tmk_table_row *row, const struct tmk_summary_stream *s)
{
	if (s->others)
		strcpy(row->cell[0], "(others)");
	else
		snprintf(row->cell[0], TMK_TABLE_CELL,
			 s->named ? "%" PRIu64 " (pid %" PRIu32 ")"
				  : "of thread %" PRIu64 " (pid %" PRIu32 ")",
			 s->number, s->pid);
	tmk_format_count(row->cell[1], s->operations);
	tmk_format_ns(row->cell[2], ns_of(s->operations_ns));
	tmk_format_count(row->cell[3], s->windows);
	tmk_format_ns(row->cell[4], ns_of(s->windows_ns));
	tmk_table_share(row->cell[5], s->idle_ns, s->idle_of_ns);
}

static void streams_table(const struct tmk_summary_windows *t, FILE *out)
{
	static const struct tmk_table_row heading = { { "stream", "operations", "total", "windows",
							"in windows", "idle" } };
	const struct tmk_summary_stream **sorted = calloc(t->n_streams + 1, sizeof(*sorted));
	struct tmk_table_row *rows = calloc(STREAMS_SHOWN + 1, sizeof(*rows));
	size_t n = 0, shown;

	if (!sorted || !rows) {
		fputs("(no memory for the table of streams)\n", out);
		goto cleanup;
	}
	for (uint32_t i = 0; i < t->n_streams; i++)
		if (t->streams[i].operations || t->streams[i].windows)
			sorted[n++] = &t->streams[i];
	qsort(sorted, n, sizeof(*sorted), stream_compare);
	shown = n < STREAMS_SHOWN ? n : STREAMS_SHOWN;
	rows[0] = heading;
	for (size_t i = 0; i < shown; i++)
		stream_row(&rows[i + 1], sorted[i]);
	tmk_table_write(out, rows, shown + 1, STREAM_COLUMNS, false);
	if (n > shown)
		fprintf(out, "… and %zu more\n", n - shown);
	fputs("in windows: of those that lie in no other one\n\n", out);
cleanup:
	free(sorted);
	free(rows);
}

void tmk_summary_windows_print(const struct tmk_summary_windows *t, const struct tmk_finish_view *f,
			       FILE *out)
{
	if (t->n_windows) {
		windows_table(t, out);
		counts_print(f, out);
	}
	if (t->n_windows || t->named)
		streams_table(t, out);
}
