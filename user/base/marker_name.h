/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each marker kind is called, in the notes of a binary and in every output.
 */
#ifndef TICKMARK_BASE_MARKER_NAME_H
#define TICKMARK_BASE_MARKER_NAME_H

/* The name of a marker kind (enum tmk_rec_kind), or NULL for a number that is none. */
const char *tmk_marker_name(unsigned int kind);

#endif /* TICKMARK_BASE_MARKER_NAME_H */
