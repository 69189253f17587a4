/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the ring buffers, says how far the tide has come, and keeps the books: hits = delivered + lost.
 */
#ifndef TICKMARK_CAPTURE_RINGS_H
#define TICKMARK_CAPTURE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/bpf.h"
#include "capture_abi.h"

/*
 * Takes a record as it lies in the ring. `len` bytes are really there. Returns 0, -EINVAL for a record
 * that it refuses (counted as lost), or another negative errno, which stops the reading.
 */
typedef int (*tmk_rings_record_fn)(void *ctx, const struct tmk_rec *rec, size_t len);

struct tmk_rings;

/* Borrows `b`, which must outlive the rings. */
int tmk_rings_new(struct tmk_rings **out, struct tmk_bpf *b, tmk_rings_record_fn fn, void *ctx);
void tmk_rings_free(struct tmk_rings *r);

/*
 * Adds the rings to an epoll set, with data.fd = -1: an event says that one of them fills. Between such
 * events, poll on a timer. 0 or -errno.
 */
int tmk_rings_watch(const struct tmk_rings *r, int epoll);

/*
 * Reads all that was there at the call. *tide gets the time up to which nothing is missing any more, or 0 when a program
 * was just writing (the next call will tell). Returns 0 or the callback's error.
 */
int tmk_rings_consume(struct tmk_rings *r, uint64_t *tide);

/* Hits lost so far, all kinds and causes. */
uint64_t tmk_rings_lost(const struct tmk_rings *r);

/* Fills in the counters of the end record. True when hits = delivered + lost holds for every kind. */
bool tmk_rings_account(const struct tmk_rings *r, struct tmk_rec_end *end);

#endif /* TICKMARK_CAPTURE_RINGS_H */
