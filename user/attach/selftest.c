// SPDX-License-Identifier: BSD-2-Clause
/*
 * The start-up self-test: which link, which nop, at what cost. See selftest.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/selftest.h"
#include "marker/marker_asm.h"

#define BATCHES 25
#define BATCH_HITS 16
#define HITS_TIMED (BATCHES * BATCH_HITS)
#define HITS_WARM 50
#define HITS_THREAD 20
#define SELF_INCARNATION 1 /* below every target's */

TMK_MARKER_PRIVATE(tmk_selftest_marker);

/* What the private marker carries: a real descriptor, so that the real path is timed. */
static const struct tmk_desc self_session = {
	TMK_DESC_MAGIC, TMK_DESC_SESSION, 0, 1, 1, 0, { "" }
};

static void self_hit(uint64_t token)
{
	tmk_selftest_marker(0, (uintptr_t)&self_session, token, 0, 0, 0);
}

static void *thread_hits(void *arg)
{
	for (int i = 0; i < HITS_THREAD; i++)
		self_hit(i + 1);
	return arg;
}

/* The file offset of an address in this executable. */
static int self_offset(const void *address, uint64_t *offset)
{
	uint64_t start, end, at, want = (uintptr_t)address;
	char line[512];
	int err = -ENOENT;
	FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps)
		return -errno;
	while (err && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &at) != 3 ||
		    want < start || want >= end)
			continue;
		*offset = at + (want - start);
		err = 0;
	}
	fclose(maps);
	return err;
}

static int sample_count(void *ctx, void *data, size_t len)
{
	const struct tmk_rec *r = data;

	if (len >= sizeof(*r) && r->kind == TMK_REC_OP_END)
		++*(uint64_t *)ctx;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int cost_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The median of short batches: this thread may be preempted for many times what all hits cost, and that
 * must neither choose the nop nor pass for a cost of ours.
 */
static uint64_t hit_cost(void)
{
	uint64_t spent[BATCHES];

	for (int batch = 0; batch < BATCHES; batch++) {
		uint64_t start = now_ns();

		for (int i = 0; i < BATCH_HITS; i++)
			self_hit(i + 1);
		spent[batch] = now_ns() - start;
	}
	qsort(spent, BATCHES, sizeof(spent[0]), cost_compare);
	return spent[BATCHES / 2] / BATCH_HITS + 1;
}

/* Fires the marker and says what a hit cost, or 0 when not every hit arrived. */
static int method_run(struct tmk_bpf *b, struct ring_buffer *rb, uint64_t *delivered,
		      uint64_t *cost)
{
	pthread_t thread;
	uint64_t hit_ns;

	*delivered = 0;
	*cost = 0;
	for (int i = 0; i < HITS_WARM; i++)
		self_hit(i + 1);
	hit_ns = hit_cost();
	if (pthread_create(&thread, NULL, thread_hits, NULL))
		return -EAGAIN;
	pthread_join(thread, NULL);
	ring_buffer__consume(rb);
	if (*delivered == HITS_WARM + HITS_TIMED + HITS_THREAD)
		*cost = hit_ns;
	memset(b->counters, 0, b->n_cpus * sizeof(*b->counters));
	return 0;
}

static int method_try(struct tmk_bpf *b, struct tmk_method *m, struct ring_buffer *rb,
		      uint64_t *delivered)
{
	struct bpf_program *prog = tmk_bpf_program(b, TMK_REC_OP_END);
	uint64_t offset;
	struct bpf_link *link;
	int err = self_offset((const void *)tmk_selftest_marker, &offset);

	if (err)
		return err;
	offset += m->nop;
	link = tmk_probe_attach(m, prog, getpid(), "/proc/self/exe", &offset, 1, 0);
	if (!link)
		return -errno;
	err = method_run(b, rb, delivered, &m->hit_ns);
	bpf_link__destroy(link);
	return err;
}

/* Tries every nop with one kind of link; keeps in *best the cheapest that delivers everything. */
static void methods_compare(struct tmk_bpf *b, struct tmk_method *best, struct ring_buffer *rb,
			    uint64_t *delivered)
{
	static const unsigned int nops[] = TMK_MARKER_NOPS;

	for (int filter = 1; filter >= 0 && !best->hit_ns; filter--) {
		for (size_t i = 0; i < sizeof(nops) / sizeof(nops[0]); i++) {
			struct tmk_method m = { b->multi, filter, nops[i], 0 };

			if (method_try(b, &m, rb, delivered) || !m.hit_ns)
				continue;
			if (!best->hit_ns || m.hit_ns < best->hit_ns)
				*best = m;
		}
	}
}

static int selftest_loaded(struct tmk_bpf *b, struct tmk_method *m)
{
	struct ring_buffer *rb;
	uint64_t delivered;
	int err;

	rb = ring_buffer__new(b->ring_fds[0], sample_count, &delivered, NULL);
	if (!rb)
		return -errno;
	for (unsigned int i = 1; i < b->n_rings; i++) {
		err = ring_buffer__add(rb, b->ring_fds[i], sample_count, &delivered);
		if (err)
			goto cleanup;
	}
	err = tmk_bpf_target_set(b, getpid(), SELF_INCARNATION);
	if (err)
		goto cleanup;
	methods_compare(b, m, rb, &delivered);
	tmk_bpf_target_drop(b, getpid());
	err = m->hit_ns ? 0 : -ENOTSUP;
cleanup:
	ring_buffer__free(rb);
	return err;
}

int tmk_selftest(struct tmk_bpf *b, struct tmk_method *m, unsigned int n_rings, size_t ring_bytes)
{
	int err = 0;

	for (int multi = 1; multi >= 0; multi--) {
		memset(m, 0, sizeof(*m));
		err = tmk_bpf_load(b, multi, n_rings, ring_bytes);
		if (err)
			continue;
		err = selftest_loaded(b, m);
		if (!err)
			return 0;
		tmk_bpf_unload(b);
	}
	return err;
}
