/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaching the marker programs to one object of one process, and letting go again.
 */
#ifndef TICKMARK_ATTACH_PROBES_H
#define TICKMARK_ATTACH_PROBES_H

#include <sys/types.h>

#include "attach/bpf.h"
#include "attach/process.h"

/* How to attach on this kernel, found out by the self-test. */
struct tmk_method {
	bool multi;	  /* uprobe_multi links; else one perf event a place */
	bool pid_filter;  /* the kernel filters by process rightly; else BPF alone does */
	unsigned int nop; /* which nop of the marker body, as an offset into it */
	uint64_t hit_ns;  /* what one hit of the real program costs there */
};

/*
 * The order in which markers are attached. Ends before begins: an operation whose begin was seen cannot
 * lose its end to a probe that is not there yet. Detaching knows no order: it comes after the filter by
 * process was cleared, when no hit counts any more.
 */
extern const unsigned char tmk_attach_order[];
extern const unsigned int tmk_n_attach_order;

struct tmk_links {
	struct bpf_link **links;
	size_t n;
};

/* Attaches `prog` at file offset `offset` of `path`; semaphore 0 = none. The link or NULL with errno. */
struct bpf_link *tmk_probe_attach(const struct tmk_method *m, struct bpf_program *prog, pid_t pid,
				  const char *path, const uint64_t *offsets, size_t n,
				  uint64_t semaphore);

/*
 * Attaches every marker of `o` in process `pid`. Returns 0 or -errno; on failure nothing of this object
 * stays attached, and *failed is the kind that was refused.
 */
int tmk_links_attach(struct tmk_links *l, const struct tmk_bpf *b, const struct tmk_method *m,
		     pid_t pid, const struct tmk_object *o, unsigned int *failed);

/* Lets go of everything. When it returns no program runs any more for these probes. */
void tmk_links_detach(struct tmk_links *l);

#endif /* TICKMARK_ATTACH_PROBES_H */
