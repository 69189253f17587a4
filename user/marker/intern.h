/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's table of descriptors that were made from strings known only at run time: sites, edges
 * and output names. What was interned is never freed, so that a marker may carry its address.
 *
 * Nothing here fails: past the bounds (see TMK_INTERN_MAX), or without memory, the answer is a
 * descriptor whose flags say that it was cut. Thread-safe; a descriptor that exists already is found
 * without a lock.
 */
#ifndef TICKMARK_MARKER_INTERN_H
#define TICKMARK_MARKER_INTERN_H

#include <stddef.h>

#include "tickmark/marker_abi.h"

const struct tmk_desc *tmk_intern_site(const char *static_id, const char *op,
				       const char *const *inputs, size_t n_inputs);
const struct tmk_desc *tmk_intern_edge(const char *from, const char *to);
const struct tmk_desc *tmk_intern_name(const char *name);

/* Keep insertions out, for fork(). */
void tmk_intern_lock(void);
void tmk_intern_unlock(void);

#endif /* TICKMARK_MARKER_INTERN_H */
