/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capture ABI: the records that BPF puts in the ring buffers, and that a raw capture file holds.
 *
 * Both are one format, so that a raw file replays through the very pipeline that reads the rings. All
 * fields are in the byte order of the machine that recorded; a raw file begins with struct
 * tmk_raw_header, which says which. Kind numbers are append-only. Records are 8-byte aligned.
 *
 * Kinds below 32 are marker hits, 32..63 are made by BPF besides the hits, 64 and up are made by the
 * loader so that a replay knows all that the live pipeline knew.
 */
#ifndef TICKMARK_CAPTURE_ABI_H
#define TICKMARK_CAPTURE_ABI_H

#include "tickmark/marker_abi.h"

enum tmk_rec_kind {
	TMK_REC_SESSION_OPEN = 1,
	TMK_REC_SESSION_FINISH = 2,
	TMK_REC_OP_BEGIN = 3,
	TMK_REC_OP_END = 4,
	TMK_REC_EDGE = 5,
	TMK_REC_WINDOW_START = 6,
	TMK_REC_WINDOW_END = 7,
	TMK_REC_WINDOW_RESOLVE = 8,
	TMK_REC_MARKERS = 16, /* size of the per-kind counter arrays: every marker kind is below */

	TMK_REC_DESCRIBE = 32, /* the content of a descriptor, before the first hit that names it */
	TMK_REC_EXEC = 33,     /* the process replaced its image: nothing older is valid */

	TMK_REC_PROCESS = 64, /* a process incarnation, before its first record */
	TMK_REC_GONE = 65,    /* the process ended; nothing of this incarnation follows */
	TMK_REC_TIDE = 66,    /* everything up to `time` has been delivered */
	TMK_REC_END = 67,     /* the last record: how the capture ended, and its counters */
};

/* Where a record comes from: what names its objects and what pairs its begins and ends. */
enum tmk_source {
	TMK_SOURCE_MARKER = 0, /* libtickmark: descriptors name, (session_id, token) pairs */
};

struct tmk_rec {
	tmk_u16 bytes;	      /* of the whole record, this header included */
	unsigned char kind;   /* enum tmk_rec_kind */
	unsigned char source; /* enum tmk_source */
	tmk_u32 incarnation;  /* which image of which process; unique in a capture, never 0 */
	tmk_u32 tgid;	      /* in the initial pid namespace */
	tmk_u32 tid;
	tmk_u64 time; /* CLOCK_MONOTONIC, ns */
};

struct tmk_rec_session { /* SESSION_OPEN, SESSION_FINISH */
	struct tmk_rec h;
	tmk_u64 session_id;
};

struct tmk_rec_op_begin {
	struct tmk_rec h;
	tmk_u64 session_id;
	tmk_u64 site;  /* address, names a TMK_DESC_SITE of this incarnation */
	tmk_u64 token; /* with TMK_TOKEN_NAMED */
	tmk_u64 step;
	tmk_u64 stream;
};

struct tmk_rec_op_end {
	struct tmk_rec h;
	tmk_u64 session_id;
	tmk_u64 token;
	tmk_u64 step;
	tmk_u64 output; /* address of a TMK_DESC_NAME, 0 for none */
};

struct tmk_rec_edge {
	struct tmk_rec h;
	tmk_u64 session_id;
	tmk_u64 site; /* address of a TMK_DESC_EDGE */
	tmk_u64 token;
	tmk_u64 step;
	tmk_u64 duration_ns;
};

struct tmk_rec_window { /* WINDOW_START, WINDOW_END */
	struct tmk_rec h;
	tmk_u64 session_id;
	tmk_u64 name; /* address of a TMK_DESC_NAME */
	tmk_u64 id;   /* with TMK_WINDOW_NAMED */
	tmk_u64 opened_on;
	tmk_u64 detail; /* START: the step; END: how, TMK_HOW_* */
};

struct tmk_rec_window_resolve {
	struct tmk_rec h;
	tmk_u64 session_id;
	tmk_u64 id;
	tmk_u64 opened_on;
	tmk_u64 duration_ns;
	tmk_u64 how;
};

/* Keyed by (incarnation, object) for sites and names, by (incarnation, session_id) for sessions. */
struct tmk_rec_describe {
	struct tmk_rec h;
	tmk_u64 object;	    /* address of the descriptor in the process */
	tmk_u64 session_id; /* of the marker that named it; for a session, its key */
	/* struct tmk_desc follows, with desc.bytes bytes of strings; all of it may be a lie */
};

struct tmk_rec_process {
	struct tmk_rec h;    /* time: when the loader met it */
	tmk_u64 start_ticks; /* field 22 of /proc/PID/stat */
	tmk_u32 ns_pid;	     /* the pid that the process itself sees */
	tmk_u32 pad;
	char comm[16];
	char exe[256]; /* ended by a NUL, cut if longer */
};

struct tmk_rec_gone {
	struct tmk_rec h;
	tmk_u32 known;	/* 1: status is meaningful (the process was our child) */
	tmk_u32 status; /* as waitpid(2) gives it */
};

struct tmk_rec_tide {
	struct tmk_rec h; /* time: the tide; incarnation, tgid, tid are 0 */
	tmk_u64 lost;	  /* hits lost so far, all causes */
};

enum tmk_capture_status {
	TMK_CAPTURE_COMPLETE = 1,    /* every session was finished by its program */
	TMK_CAPTURE_DETACHED = 2,    /* the tracer left when its time was up */
	TMK_CAPTURE_TARGET_GONE = 3, /* a process ended with its session unfinished */
	TMK_CAPTURE_STOPPED = 4,     /* the tracer was told to stop */
	TMK_CAPTURE_FAILED = 5,
};

/* Why a hit was not delivered. */
enum tmk_loss_cause {
	TMK_LOST_RING_FULL = 0,
	TMK_LOST_RECURSION = 1, /* the kernel skipped the program, counted in recursion_misses */
	TMK_LOST_INVALID = 2,	/* delivered, but refused by the decoder */
	TMK_LOST_CAUSES = 4,
};

struct tmk_rec_end {
	struct tmk_rec
		h; /* time: from then on no hit counted; the rings were read to their end after it */
	tmk_u32 status; /* enum tmk_capture_status, as the loader knows it */
	tmk_u32 pad;
	tmk_u64 start_ns; /* CLOCK_MONOTONIC when every probe was attached */
	tmk_u64 hits[TMK_REC_MARKERS];
	tmk_u64 delivered[TMK_REC_MARKERS];
	tmk_u64 lost[TMK_REC_MARKERS][TMK_LOST_CAUSES];
	tmk_u64 describe_failed; /* descriptor reads that gave nothing usable */
	tmk_u64 describe_lost;	 /* descriptor records that did not fit the ring */
	tmk_u64 real_start_ns;	 /* CLOCK_REALTIME at start_ns */
	tmk_u64 mono_end_ns;	 /* a second anchor pair, at the end */
	tmk_u64 real_end_ns;
	tmk_u64 hit_cost_ns; /* what one marker hit cost in the start-up self-test; 0 = not measured */
};

#define TMK_RAW_MAGIC "TICKMARK"
#define TMK_RAW_BYTE_ORDER 0x01020304u
#define TMK_RAW_VERSION 1u

/* First bytes of a raw capture file; records follow at header_bytes, back to back. */
struct tmk_raw_header {
	char magic[8];
	tmk_u32 byte_order;
	tmk_u32 version;
	tmk_u32 header_bytes;
	tmk_u32 pad;
	tmk_u64 mono_ns; /* an anchor pair, taken when the file was opened */
	tmk_u64 real_ns;
	char host[64];
	char kernel[64];
	char options[256]; /* the command line of the recorder, for people */
};

/* Slots of the loader's shortcut into the filter by process; a power of two. */
#define TMK_TARGET_SLOTS 1024u

/* What BPF counts, one a CPU. Hits and losses are counted with atomic adds: a program may be preempted. */
struct tmk_cpu_counters {
	tmk_u64 hits[TMK_REC_MARKERS];
	tmk_u64 ring_full[TMK_REC_MARKERS];
	tmk_u64 describe_failed;
	tmk_u64 describe_lost;
};

#define TMK_ASSERT_SIZE(type, n) _Static_assert(sizeof(struct type) == (n), #type)
TMK_ASSERT_SIZE(tmk_rec, 24);
TMK_ASSERT_SIZE(tmk_rec_session, 32);
TMK_ASSERT_SIZE(tmk_rec_op_begin, 64);
TMK_ASSERT_SIZE(tmk_rec_op_end, 56);
TMK_ASSERT_SIZE(tmk_rec_edge, 64);
TMK_ASSERT_SIZE(tmk_rec_window, 64);
TMK_ASSERT_SIZE(tmk_rec_window_resolve, 64);
TMK_ASSERT_SIZE(tmk_rec_describe, 40);
TMK_ASSERT_SIZE(tmk_desc, 24);

#endif /* TICKMARK_CAPTURE_ABI_H */
