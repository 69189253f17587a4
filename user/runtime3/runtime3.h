/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output format, candle-graph/runtime/3 JSONL: how its lines are written.
 *
 * Used by the marker library (a session's own file) and by the runtime/3 sink of the tracer, so that
 * both write the same bytes. Base fields come first, exactly as serde prints them; tickmark's own
 * fields follow them on the same line and are left out in strict mode. Depends on libc only. What the
 * importer accepts is in check.h; what each own field means is in docs/output.md.
 *
 * All functions append to a struct tmk_buf and never fail for any content: bytes that are not UTF-8
 * come out as U+FFFD. Only memory can run out, which the buffer remembers (buf.h).
 */
#ifndef TICKMARK_RUNTIME3_H
#define TICKMARK_RUNTIME3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tickmark/marker_abi.h"

#define TMK_RUNTIME3_SCHEMA "candle-graph/runtime/3"

/* A string that may hold any bytes, also NUL. Not owned. data NULL: absent. */
struct tmk_str {
	const char *data;
	size_t len;
};

struct tmk_r3_meta {
	struct tmk_str entrypoint, phase, profile;
	struct tmk_str analysis_id, build_id; /* data NULL: left out */
	const struct tmk_str *cargo_features;
	size_t n_cargo_features;
	uint16_t cut; /* not 0: a string was cut, which the line then says in a field of its own */
};

/*
 * The parts of an operation that only depend on its site, rendered once: `op` and `static_id` members
 * and `inputs`. Owned by the caller who made it; valid until tmk_r3_site_free().
 */
struct tmk_r3_site {
	char *json; /* "op":…,"static_id":…,"inputs":[…] */
	size_t len;
	uint16_t cut; /* enum tmk_desc_flags TMK_DESC_CUT_* */
};

struct tmk_r3_op {
	struct tmk_str phase;
	const struct tmk_r3_site *site;
	struct tmk_str output; /* data NULL: left out */
	uint64_t n;	       /* the session's counter */
	uint64_t begin_step, end_step;
	uint64_t start_ns, duration_ns;
	uint32_t pid, tid, end_tid; /* end_tid is printed where it differs from tid */
	uint64_t stream;
	bool named;   /* the program named the stream; else it is the thread's own */
	uint16_t cut; /* more TMK_DESC_CUT_* flags: TMK_DESC_CUT_NAME is the output's */
};

struct tmk_r3_edge {
	struct tmk_str phase, from, to;
	uint64_t n, step, duration_ns;
	uint16_t cut;
	uint32_t pid, tid;
	uint64_t start_ns; /* when it was recorded */
};

/* An operation that never ended. `step` printed is the begin's. */
struct tmk_r3_unfinished {
	struct tmk_str phase;
	const struct tmk_r3_site *site;
	uint64_t n, begin_step, start_ns;
	uint32_t pid, tid;
	uint64_t stream;
	bool named;
	const char
		*reason; /* plain ASCII: "target_gone", "detached", "stopped", "exec", "finished" */
};

/*
 * A window. What was not measured is left out, and a `has_` says what was. In strict mode there are no
 * such lines.
 */
struct tmk_r3_window {
	struct tmk_str phase, name;
	uint64_t n, step; /* the session's n-th window, and the step at its start: the event id */
	uint64_t id, opened_on;	    /* as the program's token has them */
	uint32_t pid, tid, end_tid; /* tid 0: not known; end_tid where not 0 and not tid */
	uint64_t stream;	    /* as operations on it print it */
	bool has_stream, named;
	bool has_start, has_end, has_duration;
	uint64_t start_ns, end_ns; /* host clock, also of a device window */
	uint64_t duration_ns; /* of the host's clock or of the device's own, as `device` says */
	bool device;
	const char *status; /* "closed", "abandoned", "open", "not_measured", "failed" */
	const char *reason; /* plain ASCII; NULL: left out */
	uint32_t error;	    /* errno of a failure; 0: left out */
	bool flush;
	bool has_place; /* the following three are known */
	uint32_t depth; /* windows of the stream that hold this one whole */
	uint32_t
		overlaps; /* windows of the stream that it overlaps without either holding the other */
	bool has_parent;
	uint64_t parent; /* id of the innermost of those that hold it */
	bool has_operations, has_idle;
	uint64_t operations; /* that ended on its stream while it was open */
	uint64_t
		idle_ns; /* of its time on the host's clock, what no operation of the stream covers */
	bool incomplete; /* hits were lost meanwhile */
	uint16_t cut;	 /* TMK_DESC_CUT_NAME */
};

/* A named counter of the capture record, e.g. {"op_begin", 12}. */
struct tmk_r3_count {
	const char *name;
	uint64_t value;
};

/* The closing line. Every group is printed in the order given; an empty group is left out. */
struct tmk_r3_capture {
	const char *status; /* "complete", "detached", "target_gone", "stopped", "failed" */
	const char *source; /* "traced" or "in_process" */
	uint64_t start_ns, end_ns;
	struct {
		uint64_t mono_ns, real_ns;
	} anchors[2];
	size_t n_anchors;
	const struct tmk_r3_count *windows; /* by status */
	const struct tmk_r3_count *hits, *delivered, *lost, *unpaired, *overhead;
	size_t n_windows, n_hits, n_delivered, n_lost, n_unpaired, n_overhead;
	uint64_t operations, edges, unfinished, truncated; /* of this session, as written */
	uint32_t pid;
	struct tmk_str comm;  /* data NULL: left out */
	bool exit_known;      /* print the process's exit status */
	uint32_t exit_status; /* as waitpid(2) gives it: printed as {"code":N} or {"signal":N} */
};

void tmk_r3_escape(struct tmk_buf *b, struct tmk_str s); /* with the quotes */

/* `dual`: the one-line form of an empty session, importable on its own (strict mode, no events). */
void tmk_r3_meta_line(struct tmk_buf *b, const struct tmk_r3_meta *m, bool dual);
void tmk_r3_op_line(struct tmk_buf *b, const struct tmk_r3_op *op, bool strict);

/*
 * The same line into memory of the caller's, for whom a buffer is too slow: at least
 * tmk_r3_op_line_max() bytes. Returns the place behind the line.
 */
size_t tmk_r3_op_line_max(const struct tmk_r3_op *op);
char *tmk_r3_op_line_put(char *p, const struct tmk_r3_op *op, bool strict);

void tmk_r3_edge_line(struct tmk_buf *b, const struct tmk_r3_edge *e, bool strict);
void tmk_r3_unfinished_line(struct tmk_buf *b, const struct tmk_r3_unfinished *u);
void tmk_r3_window_line(struct tmk_buf *b, const struct tmk_r3_window *w);

/* Windows by how they ended, as their lines say. */
struct tmk_window_counts {
	uint64_t closed, abandoned, not_measured, failed, open;
};

/* Counts one by the status of its line. */
void tmk_r3_window_count(struct tmk_window_counts *c, const char *status);

/* For a capture line. Returns how many: none where there was no window. */
#define TMK_R3_WINDOW_COUNTS 5
size_t tmk_r3_window_counts_list(const struct tmk_window_counts *c,
				 struct tmk_r3_count list[TMK_R3_WINDOW_COUNTS]);

void tmk_r3_capture_line(struct tmk_buf *b, const struct tmk_r3_capture *c);

/* Renders a site from its strings. Returns 0 or -ENOMEM. */
int tmk_r3_site_render(struct tmk_r3_site *site, struct tmk_str static_id, struct tmk_str op,
		       const struct tmk_str *inputs, size_t n_inputs, uint16_t cut);
void tmk_r3_site_free(struct tmk_r3_site *site);

#endif /* TICKMARK_RUNTIME3_H */
