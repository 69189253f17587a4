// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads the BPF object and sizes its maps for this machine. See bpf.h.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/bpf.h"
#include "tickmark.skel.h"

/* All rings together, and the least that one may have. */
#define RINGS_TOTAL (32u << 20)
#define RING_MIN (1u << 20)
#define RINGS_MAX 64u

static char last_message[256];

static int message_keep(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char line[sizeof(last_message)];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, args);
	line[strcspn(line, "\n")] = 0;
	if (line[0])
		memcpy(last_message, line, sizeof(line));
	return 0;
}

const char *tmk_bpf_last_message(void)
{
	return last_message;
}

void tmk_bpf_default_rings(unsigned int *n_rings, size_t *ring_bytes)
{
	int cpus = libbpf_num_possible_cpus();
	unsigned int n = 1;
	size_t bytes;

	while ((int)n < cpus && n < RINGS_MAX)
		n *= 2;
	bytes = RINGS_TOTAL / n;
	*n_rings = n;
	*ring_bytes = bytes < RING_MIN ? RING_MIN : bytes;
}

static int rings_create(struct tmk_bpf *b)
{
	int outer = bpf_map__fd(b->skel->maps.rings);

	b->ring_fds = malloc(b->n_rings * sizeof(*b->ring_fds));
	if (!b->ring_fds)
		return -ENOMEM;
	for (unsigned int i = 0; i < b->n_rings; i++)
		b->ring_fds[i] = -1;
	for (unsigned int i = 0; i < b->n_rings; i++) {
		int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "tickmark_ring", 0, 0, b->ring_bytes,
					NULL);

		if (fd < 0)
			return -errno;
		b->ring_fds[i] = fd;
		if (bpf_map_update_elem(outer, &i, &fd, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int counters_map(struct tmk_bpf *b)
{
	size_t bytes = b->n_cpus * sizeof(*b->counters);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(b->skel->maps.counters), 0);

	if (at == MAP_FAILED)
		return -errno;
	b->counters = at;
	return 0;
}

int tmk_bpf_load(struct tmk_bpf *b, bool multi, unsigned int n_rings, size_t ring_bytes)
{
	int cpus = libbpf_num_possible_cpus();
	int err;

	memset(b, 0, sizeof(*b));
	if (cpus < 0)
		return cpus;
	libbpf_set_print(message_keep);
	last_message[0] = 0;
	b->multi = multi;
	b->n_rings = n_rings;
	b->ring_bytes = ring_bytes;
	b->n_cpus = cpus;
	b->skel = tickmark_bpf__open();
	if (!b->skel)
		return -errno;
	b->skel->rodata->ring_mask = n_rings - 1;
	b->skel->rodata->wake_bytes = ring_bytes / 4;
	bpf_map__set_max_entries(b->skel->maps.rings, n_rings);
	bpf_map__set_max_entries(b->skel->maps.counters, cpus);
	for (unsigned int kind = 0; kind < TMK_REC_MARKERS; kind++) {
		struct bpf_program *prog = tmk_bpf_program(b, kind);

		if (prog && !multi)
			bpf_program__set_expected_attach_type(prog, 0);
	}
	err = tickmark_bpf__load(b->skel);
	if (!err)
		err = rings_create(b);
	if (!err)
		err = counters_map(b);
	if (err)
		tmk_bpf_unload(b);
	return err;
}

int tmk_bpf_exec_watch(struct tmk_bpf *b)
{
	b->exec_link = bpf_program__attach(b->skel->progs.process_exec);
	return b->exec_link ? 0 : -errno;
}

void tmk_bpf_unload(struct tmk_bpf *b)
{
	bpf_link__destroy(b->exec_link);
	b->exec_link = NULL;
	if (b->counters)
		munmap(b->counters, b->n_cpus * sizeof(*b->counters));
	for (unsigned int i = 0; b->ring_fds && i < b->n_rings; i++) {
		if (b->ring_fds[i] >= 0)
			close(b->ring_fds[i]);
	}
	free(b->ring_fds);
	tickmark_bpf__destroy(b->skel);
	b->counters = NULL;
	b->ring_fds = NULL;
	b->skel = NULL;
}

struct bpf_program *tmk_bpf_program(const struct tmk_bpf *b, unsigned int kind)
{
	switch (kind) {
	case TMK_REC_SESSION_OPEN:
		return b->skel->progs.session_open;
	case TMK_REC_SESSION_FINISH:
		return b->skel->progs.session_finish;
	case TMK_REC_OP_BEGIN:
		return b->skel->progs.op_begin;
	case TMK_REC_OP_END:
		return b->skel->progs.op_end;
	case TMK_REC_EDGE:
		return b->skel->progs.edge;
	case TMK_REC_WINDOW_START:
		return b->skel->progs.window_start;
	case TMK_REC_WINDOW_END:
		return b->skel->progs.window_end;
	case TMK_REC_WINDOW_RESOLVE:
		return b->skel->progs.window_resolve;
	default:
		return NULL;
	}
}

/* A value that no tgid matches: several targets share the slot, so BPF asks the hash. */
#define SLOT_SHARED (~0ull)

static int slot_write(struct tmk_bpf *b, uint32_t tgid, uint64_t value)
{
	uint32_t slot = tgid & (TMK_TARGET_SLOTS - 1);

	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.target_slots), &slot, &value, BPF_ANY)
		       ? -errno
		       : 0;
}

int tmk_bpf_target_set(struct tmk_bpf *b, uint32_t tgid, uint32_t incarnation)
{
	unsigned short *use = &b->slot_use[tgid & (TMK_TARGET_SLOTS - 1)];
	int err;

	if (bpf_map_update_elem(bpf_map__fd(b->skel->maps.targets), &tgid, &incarnation,
				BPF_NOEXIST))
		return -errno;
	err = slot_write(b, tgid, *use ? SLOT_SHARED : (uint64_t)tgid << 32 | incarnation);
	if (err)
		bpf_map_delete_elem(bpf_map__fd(b->skel->maps.targets), &tgid);
	else
		++*use;
	return err;
}

void tmk_bpf_target_drop(struct tmk_bpf *b, uint32_t tgid)
{
	unsigned short *use = &b->slot_use[tgid & (TMK_TARGET_SLOTS - 1)];

	if (bpf_map_delete_elem(bpf_map__fd(b->skel->maps.targets), &tgid))
		return;
	/* A slot that was shared stays so until it is empty: the hash tells right either way. */
	if (!--*use)
		slot_write(b, tgid, 0);
	else
		slot_write(b, tgid, SLOT_SHARED);
}
