/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of operations in flight: pairs an end with its begin by (session, token), never by thread.
 *
 * What becomes of each delivered begin and end:
 *  - an end pairs with the begin of the same token, if that is not later than the end;
 *  - an end whose begin has not come is held: the begin may still come late. When the session is over,
 *    or when more than TMK_PAIR_EARLY_MAX are held (the oldest goes first), it counts as
 *    `end_without_begin`; so does an end that is older than the begin of its token, since no
 *    operation ends before it begins;
 *  - a second end of a token is a `repeated_end`, as long as the first is remembered: at least until
 *    TMK_PAIR_RECENT further operations of the session have ended (where tokens count up, which
 *    libtickmark's do; otherwise, and beyond that, it counts as `end_without_begin`);
 *  - a begin of a token that is in flight makes that token ambiguous: a wrong pair is worse than a
 *    missing one, so both begins and every later begin of it count as `begin_reused`, and its ends as
 *    `end_without_begin`;
 *  - a begin for which there is no room counts as `open_overflow`.
 */
#ifndef TICKMARK_ASSEMBLE_PAIR_H
#define TICKMARK_ASSEMBLE_PAIR_H

#include <stdbool.h>

#include "base/hash.h"
#include "capture_abi.h"
#include "sink/sink.h"

#define TMK_PAIR_OPEN_MAX 262144u /* begins and ends held, together */
#define TMK_PAIR_EARLY_MAX 65536u /* of them ends */
#define TMK_PAIR_RECENT 16384u	  /* power of two */

/* What the table needs to know of a session; embedded there. Zeroed, but for `id`, to begin with. */
struct tmk_pair_owner {
	uint32_t id;
	uint32_t head, tail; /* its entries by arrival: slot + 1, 0 = none */
	struct tmk_unpaired unpaired;
};

struct tmk_begin {
	uint64_t site, step, stream, time, n;
	uint32_t tid;
	bool named;   /* the program chose the stream's number */
	bool counted; /* the caller's to remember: it counts on its stream */
};

struct tmk_end {
	uint64_t output, step, time;
	uint32_t tid;
};

struct tmk_pairs {
	struct tmk_seed seed;
	struct tmk_index index;
	struct tmk_pair_entry *slots;
	uint32_t n_slots, cap;
	uint32_t free_head; /* slot + 1 */
	uint32_t n_live, n_open, n_early;
	uint32_t early_head, early_tail; /* all held ends by arrival, slot + 1 */
	struct tmk_pair_recent *recent;
};

int tmk_pairs_init(struct tmk_pairs *p, const struct tmk_seed *seed);
void tmk_pairs_free(struct tmk_pairs *p);

enum tmk_pair_result {
	TMK_PAIR_NONE = 0,
	TMK_PAIR_MADE,	    /* the other half is filled in */
	TMK_PAIR_OPEN,	    /* of a begin: it is held, for its end */
	TMK_PAIR_AMBIGUOUS, /* of a begin: it made the one that was held lose its meaning: *first */
};

/* Both return one of these, or -ENOMEM. */
int tmk_pairs_begin(struct tmk_pairs *p, struct tmk_pair_owner *o, uint64_t token,
		    const struct tmk_begin *begin, struct tmk_end *end, struct tmk_begin *first);
int tmk_pairs_end(struct tmk_pairs *p, struct tmk_pair_owner *o, uint64_t token,
		  const struct tmk_end *end, struct tmk_begin *begin);

/*
 * Takes the begins of a session that are still open, the oldest first: true and *begin, false when
 * there is none left. *cursor is 0 for the first call of a walk, in which nothing else may be called.
 */
bool tmk_pairs_take_open(struct tmk_pairs *p, struct tmk_pair_owner *o, uint32_t *cursor,
			 struct tmk_begin *begin);

/* Forgets all that a session has in the table, and counts the ends among it. */
void tmk_pairs_drop(struct tmk_pairs *p, struct tmk_pair_owner *o);

#endif /* TICKMARK_ASSEMBLE_PAIR_H */
