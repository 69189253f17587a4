/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The marker ABI: what a marked program hands to whoever traces it.
 *
 * This header is the only agreement between libtickmark (which fires the markers), the BPF programs
 * (which copy what the markers carry) and any other USDT tool. It holds the layout of the constant
 * descriptors that marker arguments point to, the argument order of each marker, and the switch that
 * says whether anybody listens. Numbers here are append-only.
 *
 * Markers (USDT provider "tickmark"; every argument is 64 bits wide, in the C argument registers):
 *
 *	session_open	(session_id, session)
 *	session_finish	(session_id, session)
 *	op_begin	(session_id, session, site, token, step, stream)
 *	op_end		(session_id, session, token, step, output)
 *	edge		(session_id, session, site, token, step, duration_ns)
 *	window_start	(session_id, session, name, id, opened_on, step)
 *	window_end	(session_id, session, name, id, opened_on, how)
 *	window_resolve	(session_id, session, id, opened_on, duration_ns, how)
 *
 * `session`, `site`, `output` and `name` point to a struct tmk_desc (`output` may be 0). `session_id` is
 * unique in the process and never reused, so it, and not the address, names the session. `token`
 * pairs an op_end with its op_begin inside (process, session_id); it is never 0.
 *
 * `stream` is the stream that the operation was begun on: the number that the program gave it where
 * TMK_TOKEN_NAMED is set in `token`, else the thread's own, which is numbered like the thread (in its
 * own pid namespace). `opened_on` is likewise the stream of a window, and TMK_WINDOW_NAMED in `id` says
 * which of both. (opened_on, id) names a window inside (process, session_id); both go with it as they
 * are. `how` is made of the TMK_HOW_* below. A window that is abandoned ends with a window_end, too.
 */
#ifndef TICKMARK_MARKER_ABI_H
#define TICKMARK_MARKER_ABI_H

#ifdef __bpf__
#include "vmlinux.h"
typedef __u16 tmk_u16;
typedef __u32 tmk_u32;
typedef __u64 tmk_u64;
#else
#include <stdint.h>
typedef uint16_t tmk_u16;
typedef uint32_t tmk_u32;
typedef uint64_t tmk_u64;
#endif

#define TMK_PROVIDER "tickmark"

/* In the token of an operation: its stream is one that the program named. */
#define TMK_TOKEN_NAMED (1ULL << 63)
/* In the id of a window: it was opened on a stream that the program named. Ids stay below 2^53. */
#define TMK_WINDOW_NAMED (1ULL << 52)

/* How a window ended (window_end), or what became of its measurement (window_resolve). */
enum tmk_window_outcome {
	TMK_WINDOW_CLOSED = 1,	     /* _end: measured by the host's clock; _resolve: measured */
	TMK_WINDOW_PENDING = 2,	     /* closed; its duration comes with a window_resolve */
	TMK_WINDOW_ABANDONED = 3,    /* given up; no measurement */
	TMK_WINDOW_NOT_MEASURED = 4, /* closed, but there is no duration */
	TMK_WINDOW_FAILED = 5,	     /* its measurement failed */
	TMK_WINDOW_LIMIT = 6,	     /* abandoned because too many were open */
	TMK_WINDOW_OUTCOMES
};

#define TMK_HOW_OUTCOME 0xffULL	   /* enum tmk_window_outcome */
#define TMK_HOW_FLUSH (1ULL << 8)  /* what was queued was drained before the end */
#define TMK_HOW_DEVICE (1ULL << 9) /* the duration is (to be) of a device's clock */
#define TMK_HOW_ERROR_SHIFT 16	   /* 16 bits: the errno of a failure, 0 = not known */

/* First word of every descriptor; the low byte is the version of the layout below. */
#define TMK_DESC_MAGIC 0x4b4d5401u

/* Upper bounds. A descriptor never holds more; a longer string is cut, and says so in its flags. */
#define TMK_STRING_MAX 1024u  /* bytes of one string, without its NUL */
#define TMK_STRINGS_MAX 4000u /* bytes of all strings of one descriptor, with their NULs */

enum tmk_desc_kind {
	/* entrypoint, phase, profile, [analysis_id], [build_id], features... */
	TMK_DESC_SESSION = 1,
	TMK_DESC_SITE = 2, /* static_id, op, inputs... */
	TMK_DESC_EDGE = 3, /* from_static_id, to_static_id */
	TMK_DESC_NAME = 4, /* one name: an operation's output, a window */
};

enum tmk_desc_flags {
	/* Which string was cut to fit the bounds above (a cut static_id matches no static graph). */
	TMK_DESC_CUT_STATIC_ID = 1 << 0, /* TMK_DESC_EDGE: from or to */
	TMK_DESC_CUT_OP = 1 << 1,
	TMK_DESC_CUT_INPUTS = 1 << 2, /* an input was cut, or whole inputs were left out */
	TMK_DESC_CUT_NAME = 1 << 3,   /* TMK_DESC_NAME */
	TMK_DESC_CUT_SESSION = 1 << 4,

	/* TMK_DESC_SESSION: which of the optional strings are there. */
	TMK_DESC_HAS_ANALYSIS_ID = 1 << 8,
	TMK_DESC_HAS_BUILD_ID = 1 << 9,
};

/*
 * A constant descriptor. It never changes once a marker carried its address, and its strings lie
 * right behind it, so that one bounded read takes them all. `strings` holds `count` strings, each
 * ended by a NUL, `bytes` bytes together.
 */
struct tmk_desc {
	tmk_u32 magic;	/* TMK_DESC_MAGIC */
	tmk_u16 kind;	/* enum tmk_desc_kind */
	tmk_u16 flags;	/* enum tmk_desc_flags */
	tmk_u32 bytes;	/* of `strings`; at most TMK_STRINGS_MAX */
	tmk_u32 count;	/* number of strings */
	tmk_u64 serial; /* TMK_DESC_SESSION: the session_id; otherwise 0 */
#if !defined(__bpf__) && !defined(__cplusplus)
	char strings[]; /* without a name elsewhere, but there all the same */
#endif
};

#ifndef __bpf__
/*
 * The switch: one 64-bit word that is zero while nobody wants marks, so that a detached marker costs
 * one load and one branch. `direct` and `batch` are the USDT semaphores that the kernel raises for
 * each attached probe; `in_process` counts the open sessions that write their own file.
 *
 * Behind it, in the same object, lies the registry of open sessions: how `tickmark list`, and a
 * tracer that comes late, see which sessions there are. Its address is that of the semaphore in the
 * .note.stapsdt notes. A reader must expect any content: entries change while it reads.
 */
#define TMK_REGISTRY_MAGIC 0x4b4d52454753544bULL
#define TMK_REGISTRY_SESSIONS 62u

struct tmk_switch {
	tmk_u16 direct;
	tmk_u16 batch;
	tmk_u32 in_process;
	tmk_u64 registry_magic;			 /* TMK_REGISTRY_MAGIC */
	tmk_u64 sessions[TMK_REGISTRY_SESSIONS]; /* addresses of session descriptors, 0 = free */
} __attribute__((aligned(64)));
#endif

#endif /* TICKMARK_MARKER_ABI_H */
