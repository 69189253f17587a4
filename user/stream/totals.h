/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running sums of the operations that ended on a stream, by name, and snapshots of them: what lies between
 * a snapshot and now is what a window held.
 */
#ifndef TICKMARK_STREAM_TOTALS_H
#define TICKMARK_STREAM_TOTALS_H

#include <stddef.h>
#include <stdint.h>

/* Sums of one name, by the caller's number for it. */
struct tmk_stream_total {
	uint32_t name; /* TMK_STREAM_OTHERS: all those for which there was no room */
	uint64_t count, total_ns;
};

/* Names that are told apart on one stream; further ones are summed up together. */
#define TMK_STREAM_NAMES 64u
#define TMK_STREAM_OTHERS UINT32_MAX

/* What all sums and snapshots of a table of streams may take together. */
#define TMK_STREAM_TOTALS_MAX (32u << 20)

/* In the order in which the names came; [0] is the others. */
struct tmk_totals {
	struct tmk_stream_total *at;
	uint32_t n, cap;
	unsigned char recent[256]; /* place in `at` by the low bits of a name */
};

struct tmk_totals_snapshot; /* never changed once it is taken */

/* `used` is what the caller's totals take so far. Adding never fails: it sums up with the others. */
void tmk_totals_add(struct tmk_totals *t, size_t *used, uint32_t name, uint64_t duration_ns);

/* Forgets all names; only while there is no snapshot. */
void tmk_totals_reset(struct tmk_totals *t);
void tmk_totals_free(struct tmk_totals *t, size_t *used);

/* NULL where there is no room for one. */
struct tmk_totals_snapshot *tmk_totals_snapshot(const struct tmk_totals *t, size_t *used);
void tmk_totals_snapshot_free(struct tmk_totals_snapshot *s, size_t *used);

/* What came since the snapshot, of names that did: at most TMK_STREAM_NAMES + 1. Returns how many. */
size_t tmk_totals_since(const struct tmk_totals *t, const struct tmk_totals_snapshot *s,
			struct tmk_stream_total *out);

#endif /* TICKMARK_STREAM_TOTALS_H */
