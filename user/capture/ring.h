/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One BPF ring buffer, read in place.
 *
 * libbpf's reader chases the producer to the very last record and moves the consumer position after each
 * one. Both make the traced job's next reservation miss its cache, so this one reads up to a position that
 * the caller has seen, and gives space back a stretch at a time.
 */
#ifndef TICKMARK_CAPTURE_RING_H
#define TICKMARK_CAPTURE_RING_H

#include <stddef.h>
#include <stdint.h>

struct tmk_ring {
	unsigned long *consumer; /* shared with the kernel: how far we have read */
	const unsigned long *producer;
	const char *data; /* mapped twice, end to end: no record is in two pieces */
	size_t size;	  /* of the data area; a power of two */
	size_t page;
};

/* A record as it lies in the ring, with the bytes reserved for it. A negative return stops the reading. */
typedef int (*tmk_ring_record_fn)(void *ctx, const void *record, size_t len);

/* Maps the ring buffer map `fd` of `size` bytes. 0 or -errno. */
int tmk_ring_open(struct tmk_ring *r, int fd, size_t size);
void tmk_ring_close(struct tmk_ring *r); /* a ring that was never opened (all zero) is fine */

/* Positions only grow; their difference is what waits to be read. */
unsigned long tmk_ring_produced(const struct tmk_ring *r);
unsigned long tmk_ring_consumed(const struct tmk_ring *r);

/*
 * Hands over up to `max` records that begin before position `until`. Stops early at a record that is still
 * being written. Returns how many were handed over, or what `fn` returned (that record counts as read).
 */
int tmk_ring_read(struct tmk_ring *r, unsigned long until, unsigned int max, tmk_ring_record_fn fn,
		  void *ctx);

#endif /* TICKMARK_CAPTURE_RING_H */
