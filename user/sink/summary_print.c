// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lays the summary out. Every string from a target passes tmk_safe().
 */
#include "base/marker_name.h"
#include "sink/summary_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/format.h"
#include "base/report.h"

#define ROWS_MAX 40
#define SESSIONS_MAX 20
#define COLUMNS 8

static int name_compare(const void *a, const void *b)
{
	const struct tmk_summary_name *const *x = a, *const *y = b;
	const struct tmk_histogram *p = &(*x)->durations, *q = &(*y)->durations;
	size_t common = (*x)->len < (*y)->len ? (*x)->len : (*y)->len;
	int order;

	if (p->total != q->total)
		return p->total < q->total ? 1 : -1;
	if (p->count != q->count)
		return p->count < q->count ? 1 : -1;
	order = common ? memcmp((*x)->name, (*y)->name, common) : 0;
	return order ? order : ((*x)->len > (*y)->len) - ((*x)->len < (*y)->len);
}

static void row_fill(struct tmk_table_row *r, const struct tmk_summary_name *n, double all)
{
	const struct tmk_histogram *h = &n->durations;

	if (n->name)
		tmk_table_name(r->cell[0], n->name, n->len, TMK_TABLE_NAME);
	else
		strcpy(r->cell[0], "(others)");
	tmk_format_count(r->cell[1], h->count);
	tmk_format_ns(r->cell[2], h->total);
	tmk_table_share(r->cell[3], (double)h->total, all > 0 ? all : 1);
	tmk_format_ns(r->cell[4], h->total / h->count);
	tmk_table_quantile(r->cell[5], h, 0.5);
	tmk_table_quantile(r->cell[6], h, 0.99);
	tmk_format_ns(r->cell[7], h->max);
}

static void operations_print(struct tmk_summary *sum)
{
	static const struct tmk_table_row heading = { { "operation", "count", "total", "share",
							"mean", "p50", "p99", "max" } };
	const struct tmk_summary_name **sorted = calloc(sum->n_names, sizeof(*sorted));
	struct tmk_table_row *rows = calloc(ROWS_MAX + 1, sizeof(*rows));
	size_t n = 0, shown;
	double all = 0;

	if (!sorted || !rows) {
		fputs("(no memory for the table of operations)\n", sum->out);
		goto cleanup;
	}
	for (uint32_t i = 0; i < sum->n_names; i++) {
		if (!sum->names[i].durations.count)
			continue;
		all += (double)sum->names[i].durations.total;
		sorted[n++] = &sum->names[i];
	}
	if (!n)
		goto cleanup;
	qsort(sorted, n, sizeof(*sorted), name_compare);
	shown = n < ROWS_MAX ? n : ROWS_MAX;
	rows[0] = heading;
	for (size_t i = 0; i < shown; i++)
		row_fill(&rows[i + 1], sorted[i], all);
	tmk_table_write(sum->out, rows, shown + 1, COLUMNS, false);
	if (n > shown)
		fprintf(sum->out, "… and %zu more\n", n - shown);
	fputs("share: of the operations' summed time (nested ones count twice); p50, p99: within 1.6 %\n\n",
	      sum->out);
cleanup:
	free(sorted);
	free(rows);
}

static void exit_print(FILE *out, const struct tmk_session_totals *t)
{
	int status = (int)t->exit_status;

	if (!t->exit_known)
		return;
	if (WIFSIGNALED(status))
		fprintf(out, ", killed by signal %d", WTERMSIG(status));
	else if (WIFEXITED(status))
		fprintf(out, ", exited with status %d", WEXITSTATUS(status));
}

static uint64_t windows_of(const struct tmk_session_totals *t)
{
	const struct tmk_window_counts *w = &t->windows;

	return w->closed + w->abandoned + w->not_measured + w->failed + w->open;
}

static void session_print(FILE *out, const struct tmk_session_view *s,
			  const struct tmk_session_totals *t)
{
	char comm[64], entry[TMK_TABLE_CELL], phase[64], a[TMK_FORMAT_MAX];

	tmk_safe(comm, sizeof(comm), s->comm, strlen(s->comm));
	tmk_safe(phase, sizeof(phase), s->meta.phase.data, s->meta.phase.len);
	tmk_table_name(entry, s->meta.entrypoint.data, s->meta.entrypoint.len, TMK_TABLE_NAME);
	fprintf(out, "session %" PRIu32 ": %s (pid %" PRIu32 "), %s, %s: %s", s->index + 1,
		*comm ? comm : "?", s->pid, entry, phase, t->status);
	exit_print(out, t);
	fprintf(out, "; %s operations", tmk_format_count(a, t->operations));
	if (t->edges)
		fprintf(out, ", %s edges", tmk_format_count(a, t->edges));
	if (windows_of(t))
		fprintf(out, ", %s windows", tmk_format_count(a, windows_of(t)));
	if (t->unfinished)
		fprintf(out, ", %s unfinished", tmk_format_count(a, t->unfinished));
	if (t->truncated)
		fprintf(out, ", %s with cut strings", tmk_format_count(a, t->truncated));
	fputc('\n', out);
}

static void sessions_print(FILE *out, const struct tmk_finish_view *f)
{
	size_t shown = f->n_sessions < SESSIONS_MAX ? f->n_sessions : SESSIONS_MAX;

	for (size_t i = 0; i < shown; i++)
		session_print(out, f->sessions[i], &f->totals[i]);
	if (f->n_sessions > shown)
		fprintf(out, "… and %zu more sessions\n", f->n_sessions - shown);
	if (!f->n_sessions)
		fputs("no session was seen\n", out);
}

static void unfinished_print(const struct tmk_summary *sum, const struct tmk_finish_view *f)
{
	size_t shown = sum->n_unfinished < TMK_SUMMARY_UNFINISHED ? sum->n_unfinished
								  : TMK_SUMMARY_UNFINISHED;
	char a[TMK_FORMAT_MAX];

	for (size_t i = 0; i < shown; i++) {
		const struct tmk_summary_unfinished *u = &sum->unfinished[i];

		fprintf(sum->out, "unfinished: %s (pid %" PRIu32 ", thread %" PRIu32 ")", u->name,
			u->pid, u->tid);
		if (f->end_ns >= u->start_ns)
			fprintf(sum->out, ", begun %s before the end",
				tmk_format_ns(a, f->end_ns - u->start_ns));
		fprintf(sum->out, ": %s\n", u->reason);
	}
	if (sum->n_unfinished > shown)
		fprintf(sum->out, "… and %" PRIu64 " more unfinished\n", sum->n_unfinished - shown);
}

/* "name count", after ", " unless it is the first; nothing for a zero. */
static void item_print(FILE *out, bool *first, const char *name, uint64_t n)
{
	char a[TMK_FORMAT_MAX];

	if (!n)
		return;
	fprintf(out, "%s%s %s", *first ? "" : ", ", name, tmk_format_count(a, n));
	*first = false;
}

static void unpaired_print(FILE *out, const struct tmk_finish_view *f)
{
	const struct tmk_unpaired *u = &f->unpaired;
	bool first = true;

	if (u->end_without_begin || u->repeated_end || u->begin_reused || u->open_overflow ||
	    u->no_session || u->window_start_reused || u->window_repeated_end ||
	    u->resolve_unknown || u->ended_after_flush) {
		fputs("unpaired: ", out);
		item_print(out, &first, "end_without_begin", u->end_without_begin);
		item_print(out, &first, "repeated_end", u->repeated_end);
		item_print(out, &first, "begin_reused", u->begin_reused);
		item_print(out, &first, "open_overflow", u->open_overflow);
		item_print(out, &first, "no_session", u->no_session);
		item_print(out, &first, "window_start_reused", u->window_start_reused);
		item_print(out, &first, "window_repeated_end", u->window_repeated_end);
		item_print(out, &first, "resolve_unknown", u->resolve_unknown);
		item_print(out, &first, "ended_after_flush", u->ended_after_flush);
		fputc('\n', out);
	}
	first = true;
	if (f->late || f->malformed || f->undescribed || f->names_dropped) {
		fputs("odd: ", out);
		item_print(out, &first, "late records", f->late);
		item_print(out, &first, "malformed records", f->malformed);
		item_print(out, &first, "lines with an unknown name", f->undescribed);
		item_print(out, &first, "descriptions without room", f->names_dropped);
		fputc('\n', out);
	}
}

static void losses_print(FILE *out, const struct tmk_rec_end *end)
{
	static const char *const names[TMK_LOST_CAUSES] = { "ring full", "recursion", "invalid",
							    "other" };
	bool first = true;

	fputs("LOST: ", out);
	for (int cause = 0; cause < TMK_LOST_CAUSES; cause++) {
		uint64_t sum = 0;

		for (int kind = 0; kind < TMK_REC_MARKERS; kind++)
			sum += end->lost[kind][cause];
		item_print(out, &first, names[cause], sum);
	}
	fputs("; an operation that lost a mark is missing or unfinished, never wrong\n", out);
}

static void disagreement_print(FILE *out, const struct tmk_rec_end *end)
{
	fputs("THE COUNTERS DISAGREE, this capture cannot be trusted; please report it:\n", out);
	for (unsigned int kind = 0; kind < TMK_REC_MARKERS; kind++) {
		const char *name = tmk_marker_name(kind);
		uint64_t lost = 0;

		for (int cause = 0; cause < TMK_LOST_CAUSES; cause++)
			lost += end->lost[kind][cause];
		if (end->hits[kind] != end->delivered[kind] + lost)
			fprintf(out,
				"  %s: %" PRIu64 " hits, but %" PRIu64 " delivered and %" PRIu64
				" lost\n",
				name ? name : "other", end->hits[kind], end->delivered[kind], lost);
	}
}

static void overhead_print(FILE *out, const struct tmk_finish_view *f)
{
	char a[TMK_FORMAT_MAX], b[TMK_FORMAT_MAX];
	uint64_t cost = f->end->hit_cost_ns, total;

	if (!cost)
		return;
	if (__builtin_mul_overflow(f->hits, cost, &total))
		total = UINT64_MAX;
	fprintf(out, "own cost: about %s a hit, %s in all", tmk_format_ns(a, cost),
		tmk_format_ns(b, total));
	if (f->end_ns > f->start_ns)
		fprintf(out, " in %s", tmk_format_ns(a, f->end_ns - f->start_ns));
	fputc('\n', out);
}

static void capture_print(FILE *out, const struct tmk_finish_view *f)
{
	char a[TMK_FORMAT_MAX], b[TMK_FORMAT_MAX], c[TMK_FORMAT_MAX];

	unpaired_print(out, f);
	if (!f->end) {
		fputs("CUT SHORT: the capture has no end; how much is missing is not known\n", out);
		return;
	}
	fprintf(out, "hits %s = delivered %s + lost %s\n", tmk_format_count(a, f->hits),
		tmk_format_count(b, f->delivered), tmk_format_count(c, f->lost));
	if (f->lost)
		losses_print(out, f->end);
	if (!f->conserved)
		disagreement_print(out, f->end);
	overhead_print(out, f);
}

void tmk_summary_print(struct tmk_summary *sum, const struct tmk_finish_view *f)
{
	operations_print(sum);
	tmk_summary_windows_print(&sum->windows, f, sum->out);
	sessions_print(sum->out, f);
	unfinished_print(sum, f);
	capture_print(sum->out, f);
}
