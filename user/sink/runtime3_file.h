/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sink that writes candle-graph/runtime/3 files, one a session. The lines are runtime3.h's, the
 * names of the files out_path.h's.
 *
 * A file always holds whole lines, and is brought up to date at the tides, at most every 100 ms. Its
 * capture line is written when the capture ends; a file without one was cut short. In strict mode
 * there is none, and the meta line waits for the first event: a session without any gets the form of
 * it that can be imported on its own.
 */
#ifndef TICKMARK_SINK_RUNTIME3_FILE_H
#define TICKMARK_SINK_RUNTIME3_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "sink/out_path.h"
#include "sink/sink.h"

struct tmk_runtime3_file_options {
	bool strict;	/* base fields only */
	bool live;	/* a recording, which may be killed: leave whole lines even then */
	bool has_avoid; /* a file that must not be overwritten: the input */
	dev_t avoid_dev;
	ino_t avoid_ino;
};

/* `path` is borrowed until the sink is freed. `options` may be NULL. Returns 0 or -ENOMEM. */
int tmk_runtime3_file_new(struct tmk_sink *out, const struct tmk_out_path *path,
			  const struct tmk_runtime3_file_options *options);

/* Sessions that no file was written for, since stdout holds only one. */
uint64_t tmk_runtime3_file_skipped(const struct tmk_sink *sink);

/* Removes the files that this sink made or overwrote, for a run that failed and can be repeated. */
void tmk_runtime3_file_discard(const struct tmk_sink *sink);

#endif /* TICKMARK_SINK_RUNTIME3_FILE_H */
