// SPDX-License-Identifier: BSD-2-Clause
/*
 * Benchmark yardstick: attaches an empty program to the op_begin and op_end markers of a process, by the
 * method, at the nop and with the semaphore that `tickmark record` would use there, and stays until its
 * standard input ends.
 *
 *	empty_uprobe PID
 *
 * Prints "attached nop N multi M" once both are in place.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/bpf.h"
#include "attach/probes.h"
#include "attach/process.h"
#include "attach/selftest.h"
#include "empty.skel.h"

static int method_find(struct tmk_method *m)
{
	struct tmk_bpf real = { 0 };
	unsigned int n_rings;
	size_t ring_bytes;
	int err;

	tmk_bpf_default_rings(&n_rings, &ring_bytes);
	err = tmk_selftest(&real, m, n_rings, ring_bytes);
	if (!err)
		tmk_bpf_unload(&real);
	return err;
}

static int empty_load(struct empty_bpf **out, const struct tmk_method *m)
{
	struct empty_bpf *skel = empty_bpf__open();
	int err;

	*out = skel;
	if (!skel)
		return -errno;
	if (!m->multi) {
		bpf_program__set_expected_attach_type(skel->progs.empty_begin, 0);
		bpf_program__set_expected_attach_type(skel->progs.empty_end, 0);
	}
	err = empty_bpf__load(skel);
	return err;
}

static int marker_attach(struct tmk_links *l, const struct tmk_method *m, struct bpf_program *prog,
			 pid_t pid, const struct tmk_object *o, unsigned int kind)
{
	uint64_t offset = o->notes.kind[kind].offset[0] + m->nop;
	struct bpf_link *link;

	if (o->notes.kind[kind].n != 1)
		return -ENOTSUP;
	link = tmk_probe_attach(m, prog, pid, o->open_path, &offset, 1, o->notes.semaphore_offset);
	if (!link)
		return -errno;
	l->links[l->n++] = link;
	return 0;
}

static void wait_for_eof(void)
{
	char buf[64];
	ssize_t got;

	do
		got = read(STDIN_FILENO, buf, sizeof(buf));
	while (got > 0 || (got < 0 && errno == EINTR));
}

static int run(pid_t pid)
{
	struct tmk_links links = { .links = calloc(2, sizeof(*links.links)) };
	struct empty_bpf *skel = NULL;
	struct tmk_process process;
	struct tmk_method method;
	int err;

	err = tmk_process_init(&process, pid);
	if (!err && !links.links)
		err = -ENOMEM;
	if (!err)
		err = tmk_process_scan(&process);
	if (err >= 0)
		err = process.n_objects == 1 ? 0 : -ENOENT;
	if (!err)
		err = method_find(&method);
	if (!err)
		err = empty_load(&skel, &method);
	if (!err)
		err = marker_attach(&links, &method, skel->progs.empty_end, pid, process.objects,
				    TMK_REC_OP_END);
	if (!err)
		err = marker_attach(&links, &method, skel->progs.empty_begin, pid, process.objects,
				    TMK_REC_OP_BEGIN);
	if (!err) {
		printf("attached nop %u multi %d\n", method.nop, method.multi);
		fflush(stdout);
		wait_for_eof();
	}
	tmk_links_detach(&links);
	empty_bpf__destroy(skel);
	tmk_process_free(&process);
	return err;
}

int main(int argc, char **argv)
{
	char *end;
	long pid;
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: empty_uprobe PID\n");
		return 2;
	}
	pid = strtol(argv[1], &end, 10);
	if (*end || pid <= 0) {
		fprintf(stderr, "empty_uprobe: '%s' is not a pid\n", argv[1]);
		return 2;
	}
	err = run(pid);
	if (err) {
		fprintf(stderr, "empty_uprobe: process %ld: %s\n", pid, strerror(-err));
		return 1;
	}
	return 0;
}
