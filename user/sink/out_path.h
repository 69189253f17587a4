/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where `-o` says the output goes: which file each session gets.
 *
 *  -o FILE  the first session; a later one, the k-th, gets ".k" before the extension (run.2.jsonl)
 *  -o DIR   (an existing directory, or a path that ends in "/", made if need be) a file a session,
 *           COMM-PID-SESSION.jsonl; of COMM only harmless characters are kept
 *  -o -     stdout, for the first session only
 */
#ifndef TICKMARK_SINK_OUT_PATH_H
#define TICKMARK_SINK_OUT_PATH_H

#include <stddef.h>

#include "sink/sink.h"

enum tmk_out_mode { TMK_OUT_FILE, TMK_OUT_DIR, TMK_OUT_STDOUT };

struct tmk_out_path {
	enum tmk_out_mode mode;
	char *base; /* owned */
};

/*
 * Looks at the path before anything is traced, and writes nothing (but makes DIR/). Returns 0, or
 * -errno with `why` saying what is wrong and what to do ("its directory does not exist; …").
 */
int tmk_out_path_init(struct tmk_out_path *p, const char *arg, char *why, size_t why_cap);

/*
 * The path of a session's file, to be freed by the caller; NULL when memory ran out. `attempt` 0 is
 * the plain one; 1, 2… give other names, for two sessions that would otherwise share one.
 */
char *tmk_out_path_session(const struct tmk_out_path *p, const struct tmk_session_view *s,
			   unsigned int attempt);

void tmk_out_path_free(struct tmk_out_path *p);

#endif /* TICKMARK_SINK_OUT_PATH_H */
