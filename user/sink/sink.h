/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sink is one output of a capture: one struct of callbacks that the assembler calls in the order of
 * time. A new output is a new file with such a struct, and one line in the subcommand that offers it.
 *
 * Every callback may be absent. It returns 0 or a negative errno; an error is sticky (the assembler
 * calls that sink no more, but for `on_finish`) and fails the run. The sink itself tells people of its
 * error, once, by tmk_error(): only it knows the object. The views are only valid during the call, but
 * for `struct tmk_session_view`, whose address and content are stable from on_session until the
 * assembler is freed. `free` is called by whoever made the sink.
 */
#ifndef TICKMARK_SINK_H
#define TICKMARK_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "capture_abi.h"
#include "runtime3/runtime3.h"

struct tmk_session_view {
	uint32_t index; /* 0, 1, 2… in the order of appearance in this capture */
	uint32_t pid, ns_pid;
	uint64_t session_id; /* in its process */
	const char *comm;    /* raw bytes from the target, ended by a NUL */
	struct tmk_r3_meta meta;
	uint16_t cut; /* TMK_DESC_CUT_SESSION if one of its strings was cut */
};

/*
 * What was never described is called "?" (an operation with an empty static id, an edge from "?" to
 * "?", an output "?"), and counted in the finish view.
 */
struct tmk_op_view {
	const struct tmk_session_view *session;
	const struct tmk_r3_site *site;
	struct tmk_str op_name; /* raw bytes */
	uint32_t site_index; /* counts up over the capture, never used again; 0: never described */
	struct tmk_r3_op op;
};

struct tmk_edge_view {
	const struct tmk_session_view *session;
	struct tmk_r3_edge edge;
};

struct tmk_unfinished_view {
	const struct tmk_session_view *session;
	struct tmk_str op_name;
	struct tmk_r3_unfinished u;
};

/* What operations of one name came to inside a window. */
struct tmk_window_total {
	struct tmk_str op_name; /* raw bytes; data NULL: all others */
	uint64_t count, total_ns;
};

struct tmk_window_view {
	const struct tmk_session_view *session;
	struct tmk_r3_window w; /* its name: raw bytes */
	const struct tmk_window_total
		*totals; /* the operations counted in w.operations; any order */
	size_t n_totals; /* 0 also where there was no room to keep them */
};

/* What could not be paired, and why: counted, never guessed. */
struct tmk_unpaired {
	uint64_t end_without_begin; /* begun before the capture, or its begin was lost */
	uint64_t repeated_end;
	uint64_t begin_reused;	/* begins of a token that was open already: a target that lies */
	uint64_t open_overflow; /* begins beyond the open operations that the assembler keeps */
	uint64_t no_session;	/* records of sessions never described, or whose process is gone */
	uint64_t window_start_reused; /* starts of a window that was open already: likewise */
	uint64_t window_repeated_end;
	uint64_t resolve_unknown; /* of a window that waits for none, a second one too */
	uint64_t
		ended_after_flush; /* operations begun in a window that a flush should have drained */
};

struct tmk_session_totals {
	const char *status; /* of this session: "complete", "detached", … */
	uint64_t operations, edges, unfinished, truncated;
	struct tmk_window_counts windows;
	struct tmk_unpaired unpaired;
	bool exit_known;
	uint32_t exit_status;
};

struct tmk_finish_view {
	/* Counters of the whole capture. NULL: it was cut short, and nothing is known of them. */
	const struct tmk_rec_end *end;
	const char *status; /* of the capture */
	bool conserved;	    /* hits = delivered + lost for every marker; false without `end` */
	uint64_t hits, delivered, lost; /* sums over the markers, 0 without `end` */
	uint64_t start_ns, end_ns;	/* without `end`: of the first and the last record */
	struct {
		uint64_t mono_ns, real_ns;
	} anchors[2];
	size_t n_anchors;
	const struct tmk_session_view *const *sessions;
	const struct tmk_session_totals *totals; /* one a session, same order */
	size_t n_sessions;
	struct tmk_window_counts windows; /* of the whole capture */
	struct tmk_unpaired unpaired;	  /* likewise */
	uint64_t windows_limit;		  /* of those abandoned: because too many were open */
	uint64_t late;	      /* records that came after their place in time was already written */
	uint64_t malformed;   /* records that were refused */
	uint64_t undescribed; /* lines on which a "?" stands for what was never described */
	uint64_t names_dropped; /* descriptions beyond what the assembler keeps */
};

struct tmk_sink_ops {
	const char *name;
	int (*on_session)(void *self, const struct tmk_session_view *s);
	int (*on_op)(void *self, const struct tmk_op_view *op);
	int (*on_edge)(void *self, const struct tmk_edge_view *e);
	int (*on_unfinished)(void *self, const struct tmk_unfinished_view *u);
	int (*on_window)(void *self, const struct tmk_window_view *w); /* when it is all known */
	int (*on_loss)(void *self, uint64_t lost_total); /* when the count has grown */
	int (*on_tide)(
		void *self); /* all that is known so far has been handed over: a time to flush */
	int (*on_finish)(void *self, const struct tmk_finish_view *f);
	void (*free)(void *self);
};

struct tmk_sink {
	const struct tmk_sink_ops *ops;
	void *self;
};

#endif /* TICKMARK_SINK_H */
