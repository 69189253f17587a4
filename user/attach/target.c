// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opens, attaches and lets go of one traced process. See target.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/privilege.h"
#include "attach/target.h"
#include "base/marker_name.h"

int tmk_target_open(struct tmk_target *t, pid_t pid, uint32_t incarnation)
{
	memset(t, 0, sizeof(*t));
	t->incarnation = incarnation;
	/* First the handle, then what is read by number: so the number cannot have changed hands. */
	t->pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (t->pidfd < 0)
		return -errno;
	return tmk_process_init(&t->process, pid);
}

void tmk_target_exec(struct tmk_target *t, uint32_t incarnation)
{
	struct tmk_process before = t->process;

	t->incarnation = incarnation;
	tmk_process_free(&t->process);
	if (!tmk_process_init(&t->process, before.pid))
		return;
	/* Gone again already; its end is reported in its turn. What an exec does not change is known. */
	t->process.pid = before.pid;
	t->process.ns_pid = before.ns_pid;
	t->process.uid = before.uid;
	t->process.start_ticks = before.start_ticks;
}

bool tmk_target_ended(const struct tmk_target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void refusal_explain(const struct tmk_object *o, unsigned int kind, int err, char *why,
			    size_t cap)
{
	char reason[256];

	if (err == -EINVAL)
		/* The kernel keeps one semaphore a probed address: another tool named a different one. */
		snprintf(
			reason, sizeof(reason),
			"another tool holds a probe at this address without its semaphore; detach it "
			"(bpftrace and perf must name the usdt marker, not the address)");
	else
		tmk_privilege_explain(err, reason, sizeof(reason));
	snprintf(why, cap, "%s: cannot attach to marker %s: %s", o->path, tmk_marker_name(kind),
		 reason);
}

static bool attached_already(const struct tmk_target *t, const struct tmk_object *o)
{
	for (size_t i = 0; i < t->n_attached; i++) {
		if (t->attached[i].dev == o->dev && t->attached[i].ino == o->ino)
			return true;
	}
	return false;
}

static int filter_enter(struct tmk_target *t, struct tmk_bpf *b)
{
	int err = 0;

	if (!t->filtered)
		err = tmk_bpf_target_set(b, t->process.pid, t->incarnation);
	t->filtered = !err;
	return err;
}

/* Returns 1 when probes were added, 0 when they were there, or -errno. */
static int object_attach(struct tmk_target *t, struct tmk_bpf *b, const struct tmk_method *m,
			 const struct tmk_object *o, char *why, size_t cap)
{
	struct tmk_file_id *grown;
	unsigned int kind = 0;
	int err;

	if (attached_already(t, o))
		return 0;
	grown = reallocarray(t->attached, t->n_attached + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	t->attached = grown;
	err = filter_enter(t, b);
	if (err) {
		snprintf(why, cap, "process %d: cannot be added to the filter: %s", t->process.pid,
			 strerror(-err));
		return err;
	}
	err = tmk_links_attach(&t->links, b, m, t->process.pid, o, &kind);
	if (err) {
		if (tmk_target_ended(t))
			snprintf(why, cap, "process %d (%s) ended before it could be attached to",
				 t->process.pid, t->process.comm);
		else
			refusal_explain(o, kind, err, why, cap);
		return err;
	}
	t->attached[t->n_attached].dev = o->dev;
	t->attached[t->n_attached++].ino = o->ino;
	return 1;
}

int tmk_target_attach(struct tmk_target *t, struct tmk_bpf *b, const struct tmk_method *m,
		      char *why, size_t cap)
{
	int n = 0, err;

	snprintf(why, cap, "process %d (%s): out of memory", t->process.pid, t->process.comm);
	err = tmk_process_scan(&t->process);
	if (err < 0) {
		snprintf(why, cap, "process %d (%s): cannot read its mappings: %s", t->process.pid,
			 t->process.comm, strerror(-err));
		return err;
	}
	for (size_t i = 0; i < t->process.n_objects; i++) {
		err = object_attach(t, b, m, &t->process.objects[i], why, cap);
		if (err < 0)
			return err;
		n += err;
	}
	return n;
}

void tmk_target_detach(struct tmk_target *t, struct tmk_bpf *b)
{
	tmk_bpf_target_drop(b, t->process.pid);
	t->filtered = false;
	tmk_links_detach(&t->links);
}

void tmk_target_close(struct tmk_target *t)
{
	if (!t)
		return;
	tmk_links_detach(&t->links);
	free(t->attached);
	t->attached = NULL;
	t->n_attached = 0;
	tmk_process_free(&t->process);
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
}
