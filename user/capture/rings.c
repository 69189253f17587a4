// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads all ring buffers, moves the tide, keeps the books. See rings.h.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "capture/ring.h"
#include "capture/rings.h"

struct tmk_rings {
	struct tmk_bpf *bpf;
	tmk_rings_record_fn fn;
	void *ctx;
	struct ring_state {
		struct tmk_ring ring;
		unsigned long reserved; /* producer position of this round */
		uint64_t last;		/* time of the last record read */
		bool done;
	} * state; /* one a ring */
	struct ring_state *reading;
	uint64_t delivered[TMK_REC_MARKERS];
	uint64_t invalid[TMK_REC_MARKERS];
};

static int record_take(void *ctx, const void *data, size_t len)
{
	struct tmk_rings *r = ctx;
	const struct tmk_rec *rec = data;
	int err;

	/* The header was written by our own programs: a short one would be a fault of ours. */
	if (len < sizeof(*rec) || rec->bytes > len)
		return 0;
	r->reading->last = rec->time;
	err = r->fn(r->ctx, rec, rec->bytes);
	if (rec->kind < TMK_REC_MARKERS) {
		if (err == -EINVAL)
			r->invalid[rec->kind]++;
		else
			r->delivered[rec->kind]++;
	}
	return err == -EINVAL ? 0 : err;
}

int tmk_rings_new(struct tmk_rings **out, struct tmk_bpf *b, tmk_rings_record_fn fn, void *ctx)
{
	struct tmk_rings *r = calloc(1, sizeof(*r));
	int err = 0;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->bpf = b;
	r->fn = fn;
	r->ctx = ctx;
	r->state = calloc(b->n_rings, sizeof(*r->state));
	if (!r->state)
		err = -ENOMEM;
	for (unsigned int i = 0; i < b->n_rings && !err; i++)
		err = tmk_ring_open(&r->state[i].ring, b->ring_fds[i], b->ring_bytes);
	if (err) {
		tmk_rings_free(r);
		return err;
	}
	*out = r;
	return 0;
}

void tmk_rings_free(struct tmk_rings *r)
{
	if (!r)
		return;
	for (unsigned int i = 0; r->state && i < r->bpf->n_rings; i++)
		tmk_ring_close(&r->state[i].ring);
	free(r->state);
	free(r);
}

int tmk_rings_watch(const struct tmk_rings *r, int epoll)
{
	/* By the edge: a ring is readable by level whenever it holds anything, and we would never sleep. */
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.fd = -1 };

	for (unsigned int i = 0; i < r->bpf->n_rings; i++) {
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, r->bpf->ring_fds[i], &ev))
			return -errno;
	}
	return 0;
}

/* Stores become visible to another CPU a little after the clock moved on; far less than this. */
#define TIDE_SLACK_NS 100000

/* Records of one slice of every ring together. */
#define SLICES_TOTAL 32768u

/*
 * A program reads the clock after it reserved its place, so what is stamped before `ts` was reserved
 * before the producer positions were read below. Once the consumer has passed those, it was delivered.
 */
/* The ring that is furthest behind in time, of those not read to the end of this round. */
static struct ring_state *ring_choose(struct tmk_rings *r)
{
	struct ring_state *best = NULL;

	for (unsigned int i = 0; i < r->bpf->n_rings; i++) {
		struct ring_state *s = &r->state[i];

		if (!s->done && (!best || s->last < best->last))
			best = s;
	}
	return best;
}

static int slice_consume(struct tmk_rings *r, struct ring_state *s)
{
	/* All slices together stay far below what the assembler holds to put it in order. */
	unsigned int max = SLICES_TOTAL / r->bpf->n_rings;
	int n;

	r->reading = s;
	n = tmk_ring_read(&s->ring, s->reserved, max, record_take, r);
	if (n < 0)
		return n;
	/* Short of its share: it met its end, or a record that is being written. */
	s->done = (unsigned int)n < max;
	return 0;
}

int tmk_rings_consume(struct tmk_rings *r, uint64_t *tide)
{
	struct ring_state *s;
	struct timespec ts;
	int err;

	*tide = 0;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	for (unsigned int i = 0; i < r->bpf->n_rings; i++) {
		r->state[i].reserved = tmk_ring_produced(&r->state[i].ring);
		r->state[i].done = false;
	}
	/* In slices, the ring behind first: a backlog then comes nearly in order, however long it is. */
	while ((s = ring_choose(r))) {
		err = slice_consume(r, s);
		if (err)
			return err;
	}
	for (unsigned int i = 0; i < r->bpf->n_rings; i++) {
		if (tmk_ring_consumed(&r->state[i].ring) < r->state[i].reserved)
			return 0;
	}
	*tide = ts.tv_sec * 1000000000ull + ts.tv_nsec - TIDE_SLACK_NS;
	return 0;
}

uint64_t tmk_rings_lost(const struct tmk_rings *r)
{
	uint64_t lost = 0;

	for (unsigned int kind = 0; kind < TMK_REC_MARKERS; kind++) {
		lost += r->invalid[kind];
		for (unsigned int cpu = 0; cpu < r->bpf->n_cpus; cpu++)
			lost += __atomic_load_n(&r->bpf->counters[cpu].ring_full[kind],
						__ATOMIC_RELAXED);
	}
	return lost;
}

/* Hits for which the kernel did not run the program at all; they were never counted by it. */
static uint64_t recursion_misses(const struct tmk_bpf *b, unsigned int kind)
{
	struct bpf_program *prog = tmk_bpf_program(b, kind);
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	if (!prog || bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		return 0;
	return info.recursion_misses;
}

bool tmk_rings_account(const struct tmk_rings *r, struct tmk_rec_end *end)
{
	bool whole = true;

	end->describe_failed = end->describe_lost = 0;
	for (unsigned int cpu = 0; cpu < r->bpf->n_cpus; cpu++) {
		end->describe_failed += r->bpf->counters[cpu].describe_failed;
		end->describe_lost += r->bpf->counters[cpu].describe_lost;
	}
	for (unsigned int kind = 0; kind < TMK_REC_MARKERS; kind++) {
		uint64_t missed = recursion_misses(r->bpf, kind);

		end->hits[kind] = missed;
		memset(end->lost[kind], 0, sizeof(end->lost[kind]));
		end->lost[kind][TMK_LOST_RECURSION] = missed;
		end->lost[kind][TMK_LOST_INVALID] = r->invalid[kind];
		end->delivered[kind] = r->delivered[kind];
		for (unsigned int cpu = 0; cpu < r->bpf->n_cpus; cpu++) {
			end->hits[kind] += r->bpf->counters[cpu].hits[kind];
			end->lost[kind][TMK_LOST_RING_FULL] +=
				r->bpf->counters[cpu].ring_full[kind];
		}
		if (end->hits[kind] != missed + end->lost[kind][TMK_LOST_RING_FULL] +
					       r->invalid[kind] + r->delivered[kind])
			whole = false;
	}
	return whole;
}
