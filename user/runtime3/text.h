/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the importer does to a text before it looks at any JSON in it: it must be UTF-8, and lines are
 * trimmed of what Unicode calls white space, which is more than JSON's four bytes.
 */
#ifndef TICKMARK_RUNTIME3_TEXT_H
#define TICKMARK_RUNTIME3_TEXT_H

#include <stddef.h>

/* The length of the longest beginning that is valid UTF-8: `len` when all of it is. */
size_t tmk_text_valid(const char *text, size_t len);

/* Moves *begin and *end inwards over Unicode white space. */
void tmk_text_trim(const char **begin, const char **end);

#endif /* TICKMARK_RUNTIME3_TEXT_H */
