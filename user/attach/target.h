/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process under trace: who it is, its probes, and word of its end.
 */
#ifndef TICKMARK_ATTACH_TARGET_H
#define TICKMARK_ATTACH_TARGET_H

#include "attach/bpf.h"
#include "attach/probes.h"
#include "attach/process.h"

struct tmk_target {
	struct tmk_process process;
	struct tmk_links links;
	struct tmk_file_id *attached; /* files that carry our probes for it, of older images too */
	size_t n_attached;
	int pidfd;	      /* readable once the process has ended */
	uint32_t incarnation; /* as BPF has it: the low byte counts exec calls */
	bool filtered;	      /* BPF knows the process */
	bool gone;
};

/* The incarnation of the i-th target of a capture. */
static inline uint32_t tmk_target_incarnation(size_t i)
{
	return (uint32_t)(i + 1) << 8;
}

/*
 * Opens process `pid`: 0, -ESRCH (no such process), -EINVAL (a thread, not a process), or -errno. The
 * target needs tmk_target_close() whatever came back.
 */
int tmk_target_open(struct tmk_target *t, pid_t pid, uint32_t incarnation);

/*
 * The process replaced its image; BPF numbered it `incarnation`. Forgets what was mapped. The probes
 * stay: where the same file is mapped again they serve on, elsewhere they do no harm.
 */
void tmk_target_exec(struct tmk_target *t, uint32_t incarnation);

/*
 * Looks for objects with markers not attached yet and attaches them. Returns how many were added, or
 * -errno with a text in `why` that names the object and the reason.
 */
int tmk_target_attach(struct tmk_target *t, struct tmk_bpf *b, const struct tmk_method *m,
		      char *why, size_t cap);

/* Whether the process has ended, reaped or not. */
bool tmk_target_ended(const struct tmk_target *t);

/* Detaches; no hit of this process is counted any more. */
void tmk_target_detach(struct tmk_target *t, struct tmk_bpf *b);

void tmk_target_close(struct tmk_target *t);

#endif /* TICKMARK_ATTACH_TARGET_H */
