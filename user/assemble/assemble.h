/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The assembler: capture records in, sessions, operations and edges out, in the order of time.
 *
 * Pairs by (incarnation, session_id, token), never by thread. Records may arrive in any order between
 * two tides (TMK_REC_TIDE); a tide releases everything up to its time. All input is hostile: lengths,
 * pointers, tokens and strings are believed only as far as they are checked. Memory is bounded: see
 * TMK_ASSEMBLE_STRINGS_MAX and the TMK_*_MAX of order.h, names.h, sessions.h and pair.h; what does not
 * fit is counted, never guessed.
 *
 * Not thread-safe: one assembler, one thread.
 */
#ifndef TICKMARK_ASSEMBLE_H
#define TICKMARK_ASSEMBLE_H

#include <stdint.h>

#include "capture_abi.h"
#include "sink/sink.h"

struct tmk_assembler;

/* `sinks` are borrowed and must outlive the assembler. Returns 0 or -ENOMEM. */
int tmk_assembler_new(struct tmk_assembler **out, const struct tmk_sink *sinks, size_t n_sinks);

/* Bytes of all strings and rendered sites that are kept at a time. */
#define TMK_ASSEMBLE_STRINGS_MAX (16u << 20)

/*
 * Takes one record; `len` is the bytes that really lie at `rec`. Returns 0, -EINVAL for a record that
 * is malformed (it is dropped; the caller counts it as TMK_LOST_INVALID), -ENOMEM, or the first sink's
 * error, which is sticky: the record was taken all the same, for the other sinks.
 * TMK_REC_END closes every session and calls on_finish; whatever is fed after it is malformed.
 */
int tmk_assembler_feed(struct tmk_assembler *a, const struct tmk_rec *rec, size_t len);

/*
 * Ends a capture that has no end record: as TMK_REC_END would with status failed, but without
 * counters. The anchor pair may be 0, 0: none is known.
 */
int tmk_assembler_cut_short(struct tmk_assembler *a, uint64_t mono_ns, uint64_t real_ns);

/* What on_finish was given; NULL before the end. */
const struct tmk_finish_view *tmk_assembler_result(const struct tmk_assembler *a);

/*
 * The exit status that a capture deserves: TMK_EXIT_FAILED when its counters contradict one another,
 * TMK_EXIT_LOSS when something was lost: a hit, a name that lines need, an operation for want of room
 * or of a session, or the end of the capture itself. Operations that were in flight when the capture
 * began or ended are no loss.
 */
int tmk_finish_exit(const struct tmk_finish_view *f);

/*
 * Says so on stderr, in one line that begins with `object`, also under -q; nothing when all is well.
 */
void tmk_finish_tell(const struct tmk_finish_view *f, const char *object);

struct tmk_assembler_stats {
	uint64_t operations, edges, open, sessions;
};
void tmk_assembler_stats(const struct tmk_assembler *a, struct tmk_assembler_stats *st);

void tmk_assembler_free(struct tmk_assembler *a); /* NULL is fine */

#endif /* TICKMARK_ASSEMBLE_H */
