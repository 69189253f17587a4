// SPDX-License-Identifier: BSD-2-Clause
/*
 * The reader of the ring buffers. See rings.h.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/rings.h"

struct tmk_rings {
	struct tmk_bpf *bpf;
	struct ring_buffer *rb;
	tmk_rings_record_fn fn;
	void *ctx;
	int err; /* what stopped the reading */
	uint64_t *reserved; /* producer positions of one round, one a ring */
	uint64_t delivered[TMK_REC_MARKERS];
	uint64_t invalid[TMK_REC_MARKERS];
};

static int sample_take(void *ctx, void *data, size_t len)
{
	struct tmk_rings *r = ctx;
	const struct tmk_rec *rec = data;
	int err;

	/* The header was written by our own programs: a short one would be a fault of ours. */
	if (len < sizeof(*rec) || rec->bytes > len)
		return 0;
	err = r->fn(r->ctx, rec, rec->bytes);
	if (rec->kind < TMK_REC_MARKERS) {
		if (err == -EINVAL)
			r->invalid[rec->kind]++;
		else
			r->delivered[rec->kind]++;
	}
	if (err && err != -EINVAL)
		r->err = err;
	return r->err;
}

int tmk_rings_new(struct tmk_rings **out, struct tmk_bpf *b, tmk_rings_record_fn fn, void *ctx)
{
	struct tmk_rings *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->bpf = b;
	r->fn = fn;
	r->ctx = ctx;
	r->reserved = calloc(b->n_rings, sizeof(*r->reserved));
	if (!r->reserved) {
		err = -ENOMEM;
		goto cleanup;
	}
	r->rb = ring_buffer__new(b->ring_fds[0], sample_take, r, NULL);
	if (!r->rb) {
		err = -errno;
		goto cleanup;
	}
	for (unsigned int i = 1; i < b->n_rings; i++) {
		err = ring_buffer__add(r->rb, b->ring_fds[i], sample_take, r);
		if (err)
			goto cleanup;
	}
	*out = r;
	return 0;
cleanup:
	tmk_rings_free(r);
	return err;
}

void tmk_rings_free(struct tmk_rings *r)
{
	if (!r)
		return;
	ring_buffer__free(r->rb);
	free(r->reserved);
	free(r);
}

int tmk_rings_epoll_fd(const struct tmk_rings *r)
{
	return ring_buffer__epoll_fd(r->rb);
}

/* Stores become visible to another CPU a little after the clock moved on; far less than this. */
#define TIDE_SLACK_NS 100000

/*
 * A program reads the clock after it reserved its place, so what is stamped before `ts` was reserved
 * before the producer positions were read below. Once the consumer has passed those, it was delivered.
 */
int tmk_rings_consume(struct tmk_rings *r, uint64_t *tide)
{
	struct timespec ts;
	int n;

	*tide = 0;
	if (r->err)
		return r->err;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	for (unsigned int i = 0; i < r->bpf->n_rings; i++)
		r->reserved[i] = ring__producer_pos(ring_buffer__ring(r->rb, i));
	n = ring_buffer__consume(r->rb);
	if (r->err)
		return r->err;
	if (n < 0)
		return n;
	for (unsigned int i = 0; i < r->bpf->n_rings; i++) {
		if (ring__consumer_pos(ring_buffer__ring(r->rb, i)) < r->reserved[i])
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
			end->lost[kind][TMK_LOST_RING_FULL] += r->bpf->counters[cpu].ring_full[kind];
		}
		if (end->hits[kind] != missed + end->lost[kind][TMK_LOST_RING_FULL] +
					       r->invalid[kind] + r->delivered[kind])
			whole = false;
	}
	return whole;
}
