/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hub of a live capture: every record, whether a BPF program or the loader made it, goes to the raw
 * file (if there is one) and to the assembler, in the same order, so that a replay of the raw file is
 * the capture again.
 */
#ifndef TICKMARK_CAPTURE_CAPTURE_H
#define TICKMARK_CAPTURE_CAPTURE_H

#include "assemble/assemble.h"
#include "attach/target.h"
#include "capture/raw.h"
#include "capture/rings.h"

struct tmk_capture {
	struct tmk_assembler *assembler;
	struct tmk_raw_writer *raw; /* NULL: none */
	struct tmk_rings *rings;
	int err; /* the first failure of an output: sticky, the others go on to a whole end */
	int raw_err;
	struct tmk_rec_end end; /* start and anchors are filled in by tmk_capture_start() */
	void (*on_exec)(void *ctx, uint32_t tgid,
			uint32_t incarnation); /* during tmk_capture_read() */
	void *ctx;
};

/*
 * Takes one record; the callback of the rings. Returns 0, or -EINVAL for a record that was refused. The
 * failure of an output is kept in `err`, so that what still comes reaches the other outputs.
 */
int tmk_capture_record(void *capture, const struct tmk_rec *rec, size_t len);

/* Notes the moment from which the capture counts. */
void tmk_capture_start(struct tmk_capture *c);

/* Notes the moment from which no hit counts any more: the end that the capture states. */
void tmk_capture_stop(struct tmk_capture *c);

/* These return 0 or `err`. First: who a target is, and which sessions its registry shows. */
int tmk_capture_process(struct tmk_capture *c, const struct tmk_target *t);
int tmk_capture_sessions(struct tmk_capture *c, const struct tmk_target *t);

/* Reads the rings and moves the tide. */
int tmk_capture_read(struct tmk_capture *c);

/* The target ended; its last hits have been read. `status` as waitpid(2) gives it, where known. */
int tmk_capture_gone(struct tmk_capture *c, const struct tmk_target *t, bool known, int status);

/*
 * Reads what is left after every probe was detached, until the books balance, and ends the capture.
 * Returns 0, `err`, or -EPROTO: the books do not balance (the end record says so too).
 */
int tmk_capture_finish(struct tmk_capture *c, enum tmk_capture_status status, uint64_t hit_cost_ns);

#endif /* TICKMARK_CAPTURE_CAPTURE_H */
