/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations in flight of one session that writes a file: what must be remembered from begin to end.
 *
 * Lock-free, so that a begin never waits for a thread that is writing to a disk, and in constant time: an
 * operation knows its slot. The token says whether it is still that operation's. Memory grows with the
 * largest number of operations that were open at once.
 */
#ifndef TICKMARK_MARKER_OP_TABLE_H
#define TICKMARK_MARKER_OP_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime3/runtime3.h"

struct tmk_window_table;

struct tmk_open_op {
	const struct tmk_r3_site *site;
	uint64_t step, start_ns, stream;
	struct tmk_window_table *windows; /* where it counts on its stream; NULL: nowhere */
	uint32_t tid;
	bool named; /* the program chose the stream's number */
};

struct tmk_op_slot {
	uint64_t token; /* atomic; 0 while no operation is in flight here */
	struct tmk_open_op op;
	uint32_t index1; /* this slot's index plus one */
	uint32_t next1;	 /* atomic; the next free slot's, 0 = none */
} __attribute__((aligned(64)));

#define TMK_OP_CHUNKS 24u /* each as large as all before it together, the first has 128 */

struct tmk_op_table {
	struct tmk_op_slot *chunks[TMK_OP_CHUNKS]; /* atomic */
	uint64_t free_list; /* atomic; low half: index1 of the first; high half: counts changes */
	uint32_t used;	    /* atomic; slots that were ever handed out */
};

/* A free slot, the caller's alone until it is started; NULL without memory. */
struct tmk_op_slot *tmk_op_table_take(struct tmk_op_table *t);

/* Puts the operation in flight as `token`. */
static inline void tmk_op_slot_start(struct tmk_op_slot *slot, uint64_t token)
{
	__atomic_store_n(&slot->token, token, __ATOMIC_RELEASE);
}

/*
 * Ends the operation `token` in slot `index1` and moves what was remembered of it to *op. False when
 * there is no such operation, or when it was ended before. Any numbers may be asked for.
 */
bool tmk_op_table_end(struct tmk_op_table *t, uint64_t index1, uint64_t token,
		      struct tmk_open_op *op);

/* How many operations are in flight. Exact when nobody begins or ends one meanwhile. */
uint64_t tmk_op_table_count(struct tmk_op_table *t);

/* Only when no other thread uses the table any more. */
void tmk_op_table_free(struct tmk_op_table *t);

#endif /* TICKMARK_MARKER_OP_TABLE_H */
