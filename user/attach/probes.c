// SPDX-License-Identifier: BSD-2-Clause
/*
 * Attaches marker programs as uprobes, by uprobe_multi where the kernel has it and by perf events
 * elsewhere. See probes.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "attach/probes.h"

#define LINKS_AT_ONCE 16

const unsigned char tmk_attach_order[] = {
	TMK_REC_SESSION_FINISH, TMK_REC_WINDOW_RESOLVE, TMK_REC_WINDOW_END,   TMK_REC_OP_END,
	TMK_REC_EDGE,		TMK_REC_SESSION_OPEN,	TMK_REC_WINDOW_START, TMK_REC_OP_BEGIN,
};
const unsigned int tmk_n_attach_order = sizeof(tmk_attach_order);

static struct bpf_link *multi_attach(struct bpf_program *prog, pid_t pid, const char *path,
				     const uint64_t *offsets, size_t n, uint64_t semaphore)
{
	unsigned long where[TMK_MARKER_SITES_MAX], semaphores[TMK_MARKER_SITES_MAX];
	LIBBPF_OPTS(bpf_uprobe_multi_opts, opts, .offsets = where, .cnt = n);

	for (size_t i = 0; i < n; i++) {
		where[i] = offsets[i];
		semaphores[i] = semaphore;
	}
	if (semaphore)
		opts.ref_ctr_offsets = semaphores;
	return bpf_program__attach_uprobe_multi(prog, pid, path, NULL, &opts);
}

static struct bpf_link *perf_attach(struct bpf_program *prog, pid_t pid, const char *path,
				    uint64_t offset, uint64_t semaphore)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = semaphore);

	return bpf_program__attach_uprobe_opts(prog, pid, path, offset, &opts);
}

struct bpf_link *tmk_probe_attach(const struct tmk_method *m, struct bpf_program *prog, pid_t pid,
				  const char *path, const uint64_t *offsets, size_t n,
				  uint64_t semaphore)
{
	if (!m->pid_filter)
		pid = -1;
	if (m->multi)
		return multi_attach(prog, pid, path, offsets, n, semaphore);
	return perf_attach(prog, pid, path, offsets[0], semaphore);
}

static int link_add(struct tmk_links *l, struct bpf_link *link)
{
	struct bpf_link **grown;

	if (!link)
		return -errno;
	grown = reallocarray(l->links, l->n + 1, sizeof(*grown));
	if (!grown) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	l->links = grown;
	l->links[l->n++] = link;
	return 0;
}

static void *link_cut(void *link)
{
	bpf_link__destroy(link);
	return NULL;
}

/*
 * Closing a link waits for grace periods, some 25 ms, during which the kernel could as well end the
 * others': each has a thread of its own while there are any.
 */
static void links_cut(struct tmk_links *l, size_t keep)
{
	pthread_t threads[LINKS_AT_ONCE];

	while (l->n > keep) {
		size_t n = 0;

		while (n < LINKS_AT_ONCE && l->n > keep + 1 &&
		       !pthread_create(&threads[n], NULL, link_cut, l->links[l->n - 1])) {
			l->n--;
			n++;
		}
		bpf_link__destroy(l->links[--l->n]);
		while (n)
			pthread_join(threads[--n], NULL);
	}
}

static int kind_attach(struct tmk_links *l, const struct tmk_bpf *b, const struct tmk_method *m,
		       pid_t pid, const struct tmk_object *o, unsigned int kind)
{
	struct bpf_program *prog = tmk_bpf_program(b, kind);
	uint64_t offsets[TMK_MARKER_SITES_MAX];
	size_t n = o->notes.kind[kind].n;
	int err = 0;

	for (size_t i = 0; i < n; i++)
		offsets[i] = o->notes.kind[kind].offset[i] + m->nop;
	if (!n)
		return 0;
	if (m->multi)
		return link_add(l, tmk_probe_attach(m, prog, pid, o->open_path, offsets, n,
						    o->notes.semaphore_offset));
	for (size_t i = 0; i < n && !err; i++)
		err = link_add(l, tmk_probe_attach(m, prog, pid, o->open_path, &offsets[i], 1,
						   o->notes.semaphore_offset));
	return err;
}

int tmk_links_attach(struct tmk_links *l, const struct tmk_bpf *b, const struct tmk_method *m,
		     pid_t pid, const struct tmk_object *o, unsigned int *failed)
{
	size_t before = l->n;

	for (unsigned int i = 0; i < tmk_n_attach_order; i++) {
		int err = kind_attach(l, b, m, pid, o, tmk_attach_order[i]);

		if (err) {
			*failed = tmk_attach_order[i];
			links_cut(l, before);
			return err;
		}
	}
	return 0;
}

void tmk_links_detach(struct tmk_links *l)
{
	links_cut(l, 0);
	free(l->links);
	l->links = NULL;
}
