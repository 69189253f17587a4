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
#define NAME_WIDTH 40
#define COLUMNS 8

/* A row of the table, as it is printed; the first column is text, the others are numbers. */
struct row {
	char cell[COLUMNS][NAME_WIDTH * 4 + 8];
};

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

/* At most NAME_WIDTH columns, with an ellipsis where something was left out. */
static void name_fit(char *out, size_t cap, const char *name, size_t len)
{
	char safe[TMK_STRING_MAX + 1];
	size_t width = 0, i;
	bool whole;

	tmk_safe(safe, sizeof(safe), name, len);
	whole = tmk_safe_width(safe) <= NAME_WIDTH;
	for (i = 0; safe[i]; i++) {
		width += ((unsigned char)safe[i] & 0xc0) != 0x80;
		if (!whole && width == NAME_WIDTH)
			break;
	}
	snprintf(out, cap, "%.*s%s", (int)i, safe, whole ? "" : "…");
}

static void quantile_cell(char out[TMK_FORMAT_MAX], const struct tmk_histogram *h, double q)
{
	uint64_t value;

	if (tmk_histogram_quantile(h, q, &value))
		tmk_format_ns(out, value);
	else
		strcpy(out, "-");
}

static void row_fill(struct row *r, const struct tmk_summary_name *n, double all)
{
	const struct tmk_histogram *h = &n->durations;

	if (n->name)
		name_fit(r->cell[0], sizeof(r->cell[0]), n->name, n->len);
	else
		strcpy(r->cell[0], "(others)");
	tmk_format_count(r->cell[1], h->count);
	tmk_format_ns(r->cell[2], h->total);
	snprintf(r->cell[3], sizeof(r->cell[3]), "%.1f %%", all ? 100 * (double)h->total / all : 0);
	tmk_format_ns(r->cell[4], h->total / h->count);
	quantile_cell(r->cell[5], h, 0.5);
	quantile_cell(r->cell[6], h, 0.99);
	tmk_format_ns(r->cell[7], h->max);
}

static void table_write(FILE *out, const struct row *rows, size_t n)
{
	size_t width[COLUMNS] = { 0 };

	for (size_t i = 0; i < n; i++)
		for (int c = 0; c < COLUMNS; c++)
			if (tmk_safe_width(rows[i].cell[c]) > width[c])
				width[c] = tmk_safe_width(rows[i].cell[c]);
	for (size_t i = 0; i < n; i++) {
		for (int c = 0; c < COLUMNS; c++) {
			int pad = (int)(width[c] - tmk_safe_width(rows[i].cell[c]));

			/* printf counts bytes, the terminal columns. */
			if (c)
				fprintf(out, "  %*s%s", pad, "", rows[i].cell[c]);
			else
				fprintf(out, "%s%*s", rows[i].cell[c], pad, "");
		}
		fputc('\n', out);
	}
}

static void operations_print(struct tmk_summary *sum)
{
	static const struct row heading = { { "operation", "count", "total", "share", "mean", "p50",
					      "p99", "max" } };
	const struct tmk_summary_name **sorted = calloc(sum->n_names, sizeof(*sorted));
	struct row *rows = calloc(ROWS_MAX + 1, sizeof(*rows));
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
	table_write(sum->out, rows, shown + 1);
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

static void session_print(FILE *out, const struct tmk_session_view *s,
			  const struct tmk_session_totals *t)
{
	char comm[64], entry[NAME_WIDTH * 4 + 8], phase[64], a[TMK_FORMAT_MAX];

	tmk_safe(comm, sizeof(comm), s->comm, strlen(s->comm));
	tmk_safe(phase, sizeof(phase), s->meta.phase.data, s->meta.phase.len);
	name_fit(entry, sizeof(entry), s->meta.entrypoint.data, s->meta.entrypoint.len);
	fprintf(out, "session %" PRIu32 ": %s (pid %" PRIu32 "), %s, %s: %s", s->index + 1,
		*comm ? comm : "?", s->pid, entry, phase, t->status);
	exit_print(out, t);
	fprintf(out, "; %s operations", tmk_format_count(a, t->operations));
	if (t->edges)
		fprintf(out, ", %s edges", tmk_format_count(a, t->edges));
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
	    u->no_session) {
		fputs("unpaired: ", out);
		item_print(out, &first, "end_without_begin", u->end_without_begin);
		item_print(out, &first, "repeated_end", u->repeated_end);
		item_print(out, &first, "begin_reused", u->begin_reused);
		item_print(out, &first, "open_overflow", u->open_overflow);
		item_print(out, &first, "no_session", u->no_session);
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
	sessions_print(sum->out, f);
	unfinished_print(sum, f);
	capture_print(sum->out, f);
}
