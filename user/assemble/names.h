/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The described objects of all live processes: sites, edges and output names, found by (incarnation,
 * address, kind). The first description of an object counts; a later one says the same or lies.
 */
#ifndef TICKMARK_ASSEMBLE_NAMES_H
#define TICKMARK_ASSEMBLE_NAMES_H

#include "assemble/budget.h"
#include "assemble/desc.h"
#include "assemble/op_names.h"
#include "base/hash.h"
#include "base/slots.h"

#define TMK_NAMES_MAX 65536u
#define TMK_NAMES_RECENT 256u /* power of two */

struct tmk_named {
	uint64_t object;
	uint32_t incarnation;
	uint16_t kind;		 /* enum tmk_desc_kind */
	uint16_t cut;		 /* TMK_DESC_CUT_* */
	uint32_t index;		 /* counts up from 1 over the capture, never used again */
	uint32_t next;		 /* of the same process: slot + 1, 0 ends the list */
	size_t cost;		 /* what it takes of the budget */
	struct tmk_r3_site site; /* TMK_DESC_SITE; its text lies in `strings` */
	uint32_t op_number;	 /* SITE: of its name, cf. op_names.h */
	struct tmk_str a, b;	 /* SITE: a = op; EDGE: a = from, b = to; NAME: a = the name */
	char strings[];
};

struct tmk_names {
	struct tmk_seed seed;
	struct tmk_index index;
	struct tmk_budget *budget;
	struct tmk_op_names op_names;
	struct tmk_slots slots; /* struct tmk_named */
	uint32_t next_index;
	/* Found lately, by address: few objects are hot, and those are looked up twice an operation. */
	const struct tmk_named *recent[TMK_NAMES_RECENT];
};

/* `budget` is shared and outlives the names. */
void tmk_names_init(struct tmk_names *t, struct tmk_budget *budget, const struct tmk_seed *seed);

/*
 * Keeps an object and puts it at the head of its process's list. Returns 0 (also for one that is known
 * already), -ENOSPC when a bound is reached, or -ENOMEM.
 */
int tmk_names_add(struct tmk_names *t, uint32_t incarnation, uint64_t object,
		  const struct tmk_desc_view *d, uint32_t *list);

/* NULL where it was never described. Valid until its process's list is dropped. */
const struct tmk_named *tmk_names_find(struct tmk_names *t, uint32_t incarnation, uint64_t object,
				       uint16_t kind);

/* Forgets all objects of a process. */
void tmk_names_drop(struct tmk_names *t, uint32_t *list);

void tmk_names_free(struct tmk_names *t);

#endif /* TICKMARK_ASSEMBLE_NAMES_H */
