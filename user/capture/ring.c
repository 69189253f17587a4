// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads one BPF ring buffer. See ring.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/ring.h"

/* The head of a record, as the kernel lays it out: a length with two flags, and a page offset. */
#define HEAD_BYTES 8u
#define HEAD_BUSY (1u << 31)
#define HEAD_DISCARDED (1u << 30)

/* Space is given back whenever this share of the ring has been read. */
#define GIVE_BACK 16u

int tmk_ring_open(struct tmk_ring *r, int fd, size_t size)
{
	void *at;

	memset(r, 0, sizeof(*r));
	r->page = sysconf(_SC_PAGESIZE);
	r->size = size;
	at = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	r->consumer = at;
	at = mmap(NULL, r->page + 2 * size, PROT_READ, MAP_SHARED, fd, r->page);
	if (at == MAP_FAILED) {
		int err = -errno;

		tmk_ring_close(r);
		return err;
	}
	r->producer = at;
	r->data = (const char *)at + r->page;
	return 0;
}

void tmk_ring_close(struct tmk_ring *r)
{
	if (r->consumer)
		munmap(r->consumer, r->page);
	if (r->producer)
		munmap((void *)r->producer, r->page + 2 * r->size);
	memset(r, 0, sizeof(*r));
}

unsigned long tmk_ring_produced(const struct tmk_ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}

unsigned long tmk_ring_consumed(const struct tmk_ring *r)
{
	/* Nobody but us writes it. */
	return __atomic_load_n(r->consumer, __ATOMIC_RELAXED);
}

static void give_back(struct tmk_ring *r, unsigned long position)
{
	__atomic_store_n(r->consumer, position, __ATOMIC_RELEASE);
}

int tmk_ring_read(struct tmk_ring *r, unsigned long until, unsigned int max, tmk_ring_record_fn fn,
		  void *ctx)
{
	unsigned long at = tmk_ring_consumed(r), given = at;
	unsigned int n = 0;
	int err = 0;

	while (n < max && at < until && !err) {
		const char *head = r->data + (at & (r->size - 1));
		uint32_t len = __atomic_load_n((const uint32_t *)head, __ATOMIC_ACQUIRE);

		if (len & HEAD_BUSY)
			break;
		if (!(len & HEAD_DISCARDED)) {
			err = fn(ctx, head + HEAD_BYTES, len);
			n++;
		}
		len &= ~HEAD_DISCARDED;
		at += (HEAD_BYTES + len + 7) & ~7ul;
		if (at - given > r->size / GIVE_BACK) {
			give_back(r, at);
			given = at;
		}
	}
	if (at != given)
		give_back(r, at);
	return err < 0 ? err : (int)n;
}
