// SPDX-License-Identifier: BSD-2-Clause
/*
 * The assembler under records that no honest target makes: random, mutated, cut and reordered, from a
 * fixed seed. Nothing crashes (run it under the sanitizers), and nothing is lost or invented: every
 * begin and end that was taken is in a line or in a counter.
 */
#include "unit/feed.h"

#include <errno.h>
#include <time.h>

static uint64_t rng_state;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static uint64_t below(uint64_t n)
{
	return rng() % n;
}

/* Mostly small, so that records meet; at times absurd. */
static uint64_t some(uint64_t n)
{
	static const uint64_t odd[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, 1ull << 63, UINT32_MAX };

	return below(50) ? below(n) : odd[below(6)];
}

/* What all runs together came to: each way out must have been taken. */
static struct {
	uint64_t ops, windows, measured, unfinished, edges, refused, late, undescribed;
	struct tmk_unpaired unpaired;
} seen;

struct tally {
	uint64_t begins, ends, edges, others, windows, resolves; /* that were taken */
};

static struct feed_who someone(void)
{
	uint32_t incarnation = 1 + (uint32_t)below(4);

	return (struct feed_who){ incarnation, 100 + incarnation % 3, (uint32_t)below(4) };
}

static size_t describe_random(char *to)
{
	static const uint16_t kinds[] = { TMK_DESC_SESSION, TMK_DESC_SITE, TMK_DESC_EDGE,
					  TMK_DESC_NAME };
	char strings[512];
	uint32_t n = 0, count = 1 + (uint32_t)below(8);
	uint16_t kind = below(30) ? kinds[below(4)] : (uint16_t)rng();

	for (uint32_t i = 0; i < count; i++) {
		for (uint64_t len = below(20); len; len--)
			strings[n++] = below(3) ? (char)('a' + below(26)) : (char)rng();
		strings[n++] = '\0';
	}
	return feed_describe_build(to, someone(), 0x1000 + below(16), 1 + below(5), kind,
				   below(5) ? 0 : (uint16_t)rng(), strings, n, count);
}

/* Half of each on streams that the program named; the same one is mostly of one kind. */
static uint64_t token(void)
{
	uint64_t n = some(300);

	return n | ((n & 1) ^ !below(20) ? TMK_TOKEN_NAMED : 0);
}

static uint64_t window_id(void)
{
	uint64_t n = some(20);

	return n | ((n & 1) ^ !below(20) ? TMK_WINDOW_NAMED : 0);
}

/* A record that is well formed, at least at first; returns its length. */
static size_t record_random(char *to, uint64_t now)
{
	struct feed_who w = someone();
	uint64_t time = below(20) ? now - below(200) : some(now + 1);
	union {
		struct tmk_rec h;
		struct tmk_rec_session session;
		struct tmk_rec_op_begin begin;
		struct tmk_rec_op_end end;
		struct tmk_rec_edge edge;
		struct tmk_rec_window window;
		struct tmk_rec_window_resolve resolve;
		struct tmk_rec_process process;
		struct tmk_rec_gone gone;
		struct tmk_rec_tide tide;
	} r;
	uint64_t dice = below(1000);
	struct tmk_rec h;

	memset(&r, 0, sizeof(r));
	if (dice < 150) {
		h = feed_head(below(2) ? TMK_REC_WINDOW_START : TMK_REC_WINDOW_END,
			      sizeof(r.window), w, time);
		r.h = h;
		r.window.session_id = 1 + some(5);
		r.window.name = 0x1000 + some(16);
		r.window.id = window_id();
		r.window.opened_on = some(2);
		r.window.detail = below(8) | (below(4) ? 0 : rng() << 8);
	} else if (dice < 180) {
		h = feed_head(TMK_REC_WINDOW_RESOLVE, sizeof(r.resolve), w, time);
		r.h = h;
		r.resolve.session_id = 1 + some(5);
		r.resolve.id = window_id();
		r.resolve.opened_on = some(2);
		r.resolve.duration_ns = below(3) ? rng() : 0;
		r.resolve.how = below(8) | rng() << 16;
	} else if (dice < 490) {
		h = feed_head(TMK_REC_OP_BEGIN, sizeof(r.begin), w, time);
		r.h = h;
		r.begin.session_id = 1 + some(5);
		r.begin.site = 0x1000 + some(16);
		r.begin.token = token();
		r.begin.step = rng();
		r.begin.stream = some(3);
	} else if (dice < 800) {
		h = feed_head(TMK_REC_OP_END, sizeof(r.end), w, time);
		r.h = h;
		r.end.session_id = 1 + some(5);
		r.end.token = token();
		r.end.step = rng();
		r.end.output = below(2) ? 0x1000 + some(16) : 0;
	} else if (dice < 850) {
		h = feed_head(TMK_REC_EDGE, sizeof(r.edge), w, time);
		r.h = h;
		r.edge.session_id = 1 + some(5);
		r.edge.site = 0x1000 + some(16);
		r.edge.duration_ns = rng();
	} else if (dice < 900) {
		return describe_random(to);
	} else if (dice < 905) {
		h = feed_head(TMK_REC_SESSION_FINISH, sizeof(r.session), w, time);
		r.h = h;
		r.session.session_id = 1 + some(5);
	} else if (dice < 915) {
		h = feed_head(TMK_REC_SESSION_OPEN, sizeof(r.session), w, time);
		r.h = h;
		r.session.session_id = 1 + some(5);
	} else if (dice < 918) {
		h = feed_head(TMK_REC_GONE, sizeof(r.gone), w, time);
		r.h = h;
		r.gone.known = (uint32_t)below(2);
		r.gone.status = (uint32_t)rng();
	} else if (dice < 921) {
		h = feed_head(TMK_REC_EXEC, sizeof(r.h), w, time);
		r.h = h;
	} else if (dice < 930) {
		h = feed_head(TMK_REC_PROCESS, sizeof(r.process), w, time);
		r.h = h;
		for (size_t i = 0; i < sizeof(r.process.comm); i++)
			r.process.comm[i] = (char)rng();
	} else {
		h = feed_head(TMK_REC_TIDE, sizeof(r.tide), w, time);
		r.h = h;
		r.tide.lost = rng();
	}
	memcpy(to, &r, r.h.bytes);
	return r.h.bytes;
}

static void mutate(char *rec, size_t *len)
{
	switch (below(4)) {
	case 0: /* a few bits anywhere */
		for (uint64_t n = 1 + below(4); n; n--)
			rec[below(*len)] ^= (char)(1 << below(8));
		break;
	case 1: /* less than it says */
		*len = below(*len + 1);
		break;
	case 2: /* another length */
		((struct tmk_rec *)rec)->bytes = (uint16_t)rng();
		break;
	default: /* noise from somewhere on */
		for (size_t i = below(*len); i < *len; i++)
			rec[i] = (char)rng();
	}
}

static void count_taken(struct tally *t, uint8_t kind)
{
	t->begins += kind == TMK_REC_OP_BEGIN;
	t->ends += kind == TMK_REC_OP_END;
	t->edges += kind == TMK_REC_EDGE;
	t->others += kind == TMK_REC_SESSION_OPEN || kind == TMK_REC_SESSION_FINISH;
	t->windows += kind == TMK_REC_WINDOW_START || kind == TMK_REC_WINDOW_END;
	t->resolves += kind == TMK_REC_WINDOW_RESOLVE;
}

/* A line takes a start, an end, or both; what takes none is counted. */
static void windows_balance(const struct feed *f, const struct tally *t)
{
	const struct tmk_unpaired *u = &f->finish.unpaired;
	const struct tmk_window_counts *c = &f->finish.windows;
	uint64_t lines = c->closed + c->abandoned + c->not_measured + c->failed + c->open;
	uint64_t counted = u->window_start_reused + u->window_repeated_end;

	assert_true(lines + counted <= t->windows);
	assert_true(t->windows <= 2 * lines + counted + u->no_session);
	assert_true(u->resolve_unknown <= t->resolves);
}

static void books_balance(const struct feed *f, const struct tally *t)
{
	const struct tmk_unpaired *u = &f->finish.unpaired;
	uint64_t pairs = f->n_ops;
	uint64_t begins = pairs + f->n_unfinished + u->begin_reused + u->open_overflow;
	uint64_t ends = pairs + u->end_without_begin + u->repeated_end;
	uint64_t in_lines = begins + ends + f->n_edges;
	uint64_t taken = t->begins + t->ends + t->edges;

	/* Each kind alone: what is missing was of an unknown session. */
	assert_true(begins <= t->begins && ends <= t->ends && f->n_edges <= t->edges);
	assert_true(taken - in_lines <= u->no_session);
	assert_true(u->no_session <= taken - in_lines + t->others + t->windows + t->resolves);
	windows_balance(f, t);
	for (size_t i = 0; i < f->n_ops && i < FEED_LOG; i++)
		assert_true(f->ops[i].op.start_ns + f->ops[i].op.duration_ns >=
			    f->ops[i].op.start_ns);
}

static void one_run(uint64_t seed, uint64_t n_records, bool with_end)
{
	struct feed *f = feed_new();
	struct tally t = { 0 };
	uint64_t now = 1000000;
	_Alignas(8) char rec[8192];

	rng_state = seed * 0x9e3779b97f4a7c15ull + 1;
	for (uint64_t i = 0; i < n_records; i++) {
		size_t len = record_random(rec, now += below(20));
		int err;

		if (!below(20))
			mutate(rec, &len);
		if (len > 8 && ((struct tmk_rec *)rec)->kind == TMK_REC_END)
			continue; /* made by a mutation; it would end the run */
		/* Exactly as long as it is, so that a sanitizer sees a read behind it. */
		char *exact = malloc(len ? len : 1);

		assert_non_null(exact);
		memcpy(exact, rec, len);
		err = tmk_assembler_feed(f->a, (struct tmk_rec *)exact, len);
		free(exact);
		assert_true(err == 0 || err == -EINVAL);
		seen.refused += err == -EINVAL;
		if (!err)
			count_taken(&t, ((struct tmk_rec *)rec)->kind);
	}
	if (with_end) {
		struct tmk_rec_end end = feed_end_record((uint32_t)rng(), now);

		for (size_t i = sizeof(end.h); i < sizeof(end); i++)
			((char *)&end)[i] = (char)rng();
		assert_int_equal(feed_rec(f, &end), 0);
	} else {
		assert_int_equal(tmk_assembler_cut_short(f->a, rng(), rng()), 0);
	}
	assert_int_equal(f->n_finishes, 1);
	books_balance(f, &t);
	seen.ops += f->n_ops;
	seen.unfinished += f->n_unfinished;
	seen.edges += f->n_edges;
	seen.windows += f->n_windows;
	seen.measured += f->finish.windows.closed;
	seen.late += f->finish.late;
	seen.undescribed += f->finish.undescribed;
	seen.unpaired.end_without_begin += f->finish.unpaired.end_without_begin;
	seen.unpaired.repeated_end += f->finish.unpaired.repeated_end;
	seen.unpaired.begin_reused += f->finish.unpaired.begin_reused;
	seen.unpaired.no_session += f->finish.unpaired.no_session;
	feed_free(f);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* As many runs as fit into two seconds, but at least those that always do. */
static void hostile_records(void **state)
{
	double until = seconds() + 2;

	(void)state;
	for (uint64_t seed = 1; seed <= 400 || (seed < 4000 && seconds() < until); seed++)
		one_run(seed, 200 + seed % 10 * 300, seed % 2);
	assert_in_range(seen.ops, 200, UINT64_MAX);
	assert_in_range(seen.windows, 1000, UINT64_MAX);
	assert_in_range(seen.measured, 10, UINT64_MAX);
	assert_in_range(seen.unfinished, 1000, UINT64_MAX);
	assert_in_range(seen.edges, 100, UINT64_MAX);
	assert_in_range(seen.refused, 100, UINT64_MAX);
	assert_in_range(seen.late, 100, UINT64_MAX);
	assert_in_range(seen.undescribed, 100, UINT64_MAX);
	assert_in_range(seen.unpaired.end_without_begin, 1000, UINT64_MAX);
	assert_in_range(seen.unpaired.repeated_end, 100, UINT64_MAX);
	assert_in_range(seen.unpaired.begin_reused, 100, UINT64_MAX);
	assert_in_range(seen.unpaired.no_session, 1000, UINT64_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
