/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF side as the loader sees it: loading the object, sizing its maps, and the table that says which
 * program serves which marker. Probing which ways of attaching work is selftest.h's.
 */
#ifndef TICKMARK_ATTACH_BPF_H
#define TICKMARK_ATTACH_BPF_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture_abi.h"

struct tickmark_bpf;

struct tmk_bpf {
	struct tickmark_bpf *skel;
	bool multi; /* loaded for uprobe_multi links */
	struct bpf_link *exec_link;
	unsigned int n_rings;
	size_t ring_bytes; /* of one ring */
	int *ring_fds;
	unsigned int n_cpus;
	struct tmk_cpu_counters *counters;	   /* mapped, one a possible CPU */
	unsigned short slot_use[TMK_TARGET_SLOTS]; /* targets that share a slot of the shortcut */
};

/* The number of rings and their size for this machine: follows the CPU count, bounded in total. */
void tmk_bpf_default_rings(unsigned int *n_rings, size_t *ring_bytes);

/*
 * Opens and loads the programs for one way of attaching. Returns 0 or -errno; what libbpf said is kept
 * for tmk_bpf_last_message().
 */
int tmk_bpf_load(struct tmk_bpf *b, bool multi, unsigned int n_rings, size_t ring_bytes);
void tmk_bpf_unload(struct tmk_bpf *b); /* any state; safe to repeat */

/* The program that serves a marker kind, or NULL. */
struct bpf_program *tmk_bpf_program(const struct tmk_bpf *b, unsigned int kind);

/* From here on exec calls of targets are noticed. 0 or -errno. */
int tmk_bpf_exec_watch(struct tmk_bpf *b);

/* Lets the hits of a process through, or no longer. Not thread-safe. */
int tmk_bpf_target_set(struct tmk_bpf *b, uint32_t tgid, uint32_t incarnation);
void tmk_bpf_target_drop(struct tmk_bpf *b, uint32_t tgid);

/* The last complaint of libbpf or the verifier, one line, for error messages; "" if none. */
const char *tmk_bpf_last_message(void);

#endif /* TICKMARK_ATTACH_BPF_H */
