/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoding of descriptors that came from a traced process: believed only as far as they are checked.
 */
#ifndef TICKMARK_ASSEMBLE_DESC_H
#define TICKMARK_ASSEMBLE_DESC_H

#include "capture_abi.h"
#include "runtime3/runtime3.h"

/* No descriptor within the bounds of marker_abi.h has more strings: each takes at least its NUL. */
#define TMK_DESC_STRINGS TMK_STRINGS_MAX

struct tmk_desc_view {
	uint16_t kind;
	uint16_t flags; /* with a CUT flag added where a string had to be cut here */
	uint32_t count;
	struct tmk_str strings[TMK_DESC_STRINGS]; /* point into the record, no NUL inside */
};

/* Returns 0, or -EINVAL for a descriptor that no honest process has; `d` is then undefined. */
int tmk_desc_decode(struct tmk_desc_view *d, const struct tmk_rec_describe *rec);

#endif /* TICKMARK_ASSEMBLE_DESC_H */
