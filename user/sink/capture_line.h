/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The closing capture line of a traced session, from the reckoning of the whole capture.
 */
#ifndef TICKMARK_SINK_CAPTURE_LINE_H
#define TICKMARK_SINK_CAPTURE_LINE_H

#include "sink/sink.h"

/* Appends the line of session number `i`. */
void tmk_capture_line(struct tmk_buf *b, const struct tmk_finish_view *f, size_t i);

#endif /* TICKMARK_SINK_CAPTURE_LINE_H */
