/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and reading the descriptors of marker_abi.h within their bounds. Who keeps a descriptor, and
 * for how long, is the callers'.
 */
#ifndef TICKMARK_MARKER_DESC_H
#define TICKMARK_MARKER_DESC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime3/runtime3.h"
#include "tickmark/marker_abi.h"

/* A descriptor in the making, with room for the longest. */
union tmk_desc_draft {
	struct tmk_desc desc;
	char bytes[sizeof(struct tmk_desc) + TMK_STRINGS_MAX];
};

/* The bytes of a descriptor and its strings. */
static inline size_t tmk_desc_size(const struct tmk_desc *desc)
{
	return sizeof(*desc) + desc->bytes;
}

void tmk_desc_begin(union tmk_desc_draft *draft, enum tmk_desc_kind kind);

/*
 * Appends a string (NULL: ""), cut to fit the bounds while `keep` bytes stay free for what must still
 * come. Sets `flag` where it had to cut.
 */
void tmk_desc_add(union tmk_desc_draft *draft, const char *s, size_t keep,
		  enum tmk_desc_flags flag);

/* The same for one of a list: where it does not fit it is left out whole, and false comes back. */
bool tmk_desc_add_item(union tmk_desc_draft *draft, const char *s, enum tmk_desc_flags flag);

/* Whether a site is one that a marker may carry; a stray pointer of the program's is caught here. */
static inline bool tmk_desc_is_site(const struct tmk_desc *desc)
{
	return desc && desc->magic == TMK_DESC_MAGIC && desc->kind == TMK_DESC_SITE &&
	       desc->count >= 2 && desc->count <= desc->bytes && desc->bytes <= TMK_STRINGS_MAX;
}

/*
 * Points `strings` at up to `max` strings of a descriptor and returns how many there are. The ones that
 * the descriptor promises but does not hold are not counted.
 */
size_t tmk_desc_strings(const struct tmk_desc *desc, struct tmk_str *strings, size_t max);

/*
 * Reads a byte of every page that a descriptor lies in. BPF cannot take a page fault, so it could not
 * copy what nobody has touched yet.
 */
void tmk_desc_touch(const struct tmk_desc *desc);

/* A NUL-ended string (NULL: "") cut to TMK_STRING_MAX bytes at a character boundary. */
struct tmk_str tmk_desc_cut(const char *s, bool *cut);

#endif /* TICKMARK_MARKER_DESC_H */
