/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durations, inside the library.
 */
#ifndef TICKMARK_MARKER_DURATION_H
#define TICKMARK_MARKER_DURATION_H

#include <stdbool.h>

#include "tickmark/window.h"

/* False for stamps that are no duration; otherwise *ns is not 0. */
bool tmk_ticks_ns(const struct tmk_ticks *t, uint64_t *ns);

/* Writes *d so that a thread which reads it by tmk_duration_ns() sees all of it or nothing. */
void tmk_duration_set(struct tmk_duration *d, const struct tmk_duration *value);

#endif /* TICKMARK_MARKER_DURATION_H */
