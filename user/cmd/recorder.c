// SPDX-License-Identifier: BSD-2-Clause
/*
 * Attaches, reads, detaches. See recorder.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/privilege.h"
#include "attach/selftest.h"
#include "base/report.h"
#include "cmd/recorder.h"

/*
 * How long the rings are left alone: reading them takes cache and memory bandwidth from the traced job, and
 * a ring that fills faster wakes us.
 */
#define POLL_MS 100

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int watch(struct tmk_recorder *r, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	ev.data.fd = fd;
	return epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* During a read of the rings: only noted, for the reading must not be interrupted by attaching. */
static void exec_note(void *ctx, uint32_t tgid, uint32_t incarnation)
{
	struct tmk_recorder *r = ctx;
	struct tmk_exec *grown = reallocarray(r->execs, r->n_execs + 1, sizeof(*grown));

	if (!grown)
		return;
	r->execs = grown;
	r->execs[r->n_execs].tgid = tgid;
	r->execs[r->n_execs++].incarnation = incarnation;
}

int tmk_recorder_init(struct tmk_recorder *r)
{
	sigset_t set;

	memset(r, 0, sizeof(*r));
	r->epoll = r->signals = -1;
	r->capture.on_exec = exec_note;
	r->capture.ctx = r;
	/* A closed pipe is an error of that output, not the end of the recording. */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->epoll < 0 || r->signals < 0 || watch(r, r->signals)) {
		tmk_error("cannot wait for events: %s", strerror(errno));
		return TMK_EXIT_FAILED;
	}
	return TMK_EXIT_OK;
}

static struct tmk_target *target_new(struct tmk_recorder *r)
{
	struct tmk_target *grown = reallocarray(r->targets, r->n_targets + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	r->targets = grown;
	memset(&grown[r->n_targets], 0, sizeof(*grown));
	grown[r->n_targets].pidfd = -1;
	return &grown[r->n_targets++];
}

/* The process that thread `tid` belongs to, or 0. */
static int thread_owner(pid_t tid)
{
	char path[64], line[128];
	int owner = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (!owner && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Tgid: %d", &owner) != 1)
			owner = 0;
	}
	fclose(f);
	return owner;
}

static void open_failure(pid_t pid, int err)
{
	int owner = thread_owner(pid);

	if (owner && owner != pid)
		tmk_error("%d is a thread of process %d; use -p %d", pid, owner, owner);
	else if (err == -ESRCH || err == -EINVAL)
		tmk_error("process %d: no such process; 'tickmark list' shows what can be traced",
			  pid);
	else
		tmk_error("process %d: %s", pid, strerror(-err));
}

int tmk_recorder_add(struct tmk_recorder *r, pid_t pid)
{
	struct tmk_target *t;
	int n;

	for (size_t i = 0; i < r->n_targets; i++) {
		if (r->targets[i].process.pid == pid)
			return TMK_EXIT_OK;
	}
	t = target_new(r);
	if (!t) {
		tmk_error("process %d: out of memory", pid);
		return TMK_EXIT_FAILED;
	}
	n = tmk_target_open(t, pid, tmk_target_incarnation(r->n_targets - 1));
	if (n) {
		open_failure(pid, n);
		return TMK_EXIT_FAILED;
	}
	n = tmk_process_scan(&t->process);
	if (n < 0) {
		tmk_error("process %d (%s): cannot read what it maps: %s", pid, t->process.comm,
			  strerror(-n));
		return TMK_EXIT_FAILED;
	}
	if (!n) {
		tmk_error(
			"process %d (%s): no tickmark markers in its executable %s or in any of the %zu "
			"files it has mapped; link it with libtickmark",
			pid, t->process.comm, t->process.exe, t->process.n_searched);
		return TMK_EXIT_FAILED;
	}
	return TMK_EXIT_OK;
}

int tmk_recorder_load(struct tmk_recorder *r)
{
	char why[512];
	unsigned int n_rings;
	size_t ring_bytes;
	int err;

	tmk_bpf_default_rings(&n_rings, &ring_bytes);
	err = tmk_selftest(&r->bpf, &r->method, n_rings, ring_bytes);
	if (!err)
		err = tmk_bpf_exec_watch(&r->bpf);
	if (!err)
		err = tmk_rings_new(&r->capture.rings, &r->bpf, tmk_capture_record, &r->capture);
	if (!err)
		err = tmk_rings_watch(r->capture.rings, r->epoll);
	if (!err)
		return TMK_EXIT_OK;
	tmk_privilege_explain(err, why, sizeof(why));
	tmk_error("the BPF programs cannot be used: %s", why);
	return TMK_EXIT_FAILED;
}

/* What a failure returns that has been told to the person already. */
#define SAID (-ECANCELED)

static int failure(const struct tmk_recorder *r, int err)
{
	/* An output that failed has said so itself, with its name, or will when it is closed. */
	if (err != SAID && (err != r->capture.err || err == -ENOMEM))
		tmk_error("the recording was cut short: %s; what was written so far is whole",
			  strerror(-err));
	return TMK_EXIT_FAILED;
}

/* Attaches to what the target maps now. Returns the number of new objects, SAID, or -errno. */
static int target_attach(struct tmk_recorder *r, struct tmk_target *t)
{
	char why[512];
	int n, err;

	err = tmk_capture_process(&r->capture, t);
	if (err)
		return err;
	n = tmk_target_attach(t, &r->bpf, &r->method, why, sizeof(why));
	/* A process that has ended meanwhile is reported as such, not as a fault. */
	if (n == -ESRCH && tmk_target_ended(t))
		return 0;
	if (n < 0) {
		tmk_error("%s", why);
		return SAID;
	}
	err = n ? tmk_capture_sessions(&r->capture, t) : 0;
	return err ? err : n;
}

int tmk_recorder_attach(struct tmk_recorder *r)
{
	for (size_t i = 0; i < r->n_targets; i++) {
		int n = target_attach(r, &r->targets[i]);

		if (!n && tmk_target_ended(&r->targets[i])) {
			tmk_error("process %d (%s) ended before it could be attached to",
				  r->targets[i].process.pid, r->targets[i].process.comm);
			return TMK_EXIT_FAILED;
		}
		if (n >= 0)
			n = watch(r, r->targets[i].pidfd);
		if (n < 0)
			return failure(r, n);
	}
	tmk_capture_start(&r->capture);
	return TMK_EXIT_OK;
}

/* The spawned process is held here: whatever is attached now misses nothing. */
static int spawn_mapped(void *ctx, pid_t pid, bool exec)
{
	struct tmk_recorder *r = ctx;
	struct tmk_target *t = r->n_targets ? &r->targets[0] : NULL;
	int err;

	if (!t) {
		t = target_new(r);
		if (!t)
			return -ENOMEM;
		err = tmk_target_open(t, pid, tmk_target_incarnation(0));
		if (!err)
			err = watch(r, t->pidfd);
		if (err)
			return err;
	} else if (exec) {
		tmk_target_exec(t, t->incarnation);
	}
	return target_attach(r, t);
}

int tmk_recorder_spawn(struct tmk_recorder *r, char **argv)
{
	int err;

	r->command = argv[0];
	tmk_capture_start(&r->capture);
	err = tmk_spawn_start(&r->spawn, argv, &r->old_mask, spawn_mapped, r);
	if (err == SAID)
		return TMK_EXIT_FAILED;
	if (err) {
		tmk_error("%s: cannot be run: %s%s", argv[0], strerror(-err),
			  err == -ENOENT ? "; give its path, or a name that is on PATH" : "");
		return TMK_EXIT_FAILED;
	}
	return TMK_EXIT_OK;
}

static void stop(struct tmk_recorder *r, enum tmk_capture_status status)
{
	if (!r->stop)
		r->status = status;
	r->stop = true;
}

/* Reads until everything that happened before this call has been delivered. */
static int read_all(struct tmk_recorder *r)
{
	int err = tmk_capture_read(&r->capture);

	return err ? err : tmk_capture_read(&r->capture);
}

static int target_end(struct tmk_recorder *r, struct tmk_target *t)
{
	bool ours = r->spawn.pid == t->process.pid;
	int err = read_all(r);

	epoll_ctl(r->epoll, EPOLL_CTL_DEL, t->pidfd, NULL);
	t->gone = true;
	tmk_target_detach(t, &r->bpf);
	if (!err)
		err = tmk_capture_gone(&r->capture, t, ours && r->spawn.state == TMK_SPAWN_ENDED,
				       r->spawn.status);
	for (size_t i = 0; i < r->n_targets; i++) {
		if (!r->targets[i].gone)
			return err;
	}
	stop(r, TMK_CAPTURE_TARGET_GONE);
	return err;
}

static int spawn_step(struct tmk_recorder *r)
{
	if (!r->spawn.pid || r->spawn.state == TMK_SPAWN_ENDED)
		return 0;
	return tmk_spawn_step(&r->spawn);
}

static int signals_handle(struct tmk_recorder *r)
{
	struct signalfd_siginfo si;
	int err = 0;

	while (read(r->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			err = spawn_step(r);
		else
			stop(r, TMK_CAPTURE_STOPPED);
	}
	return err;
}

static int events_handle(struct tmk_recorder *r, const struct epoll_event *events, int n)
{
	int err = 0;

	/* The signals first: they bring the exit status of a process whose pidfd is ready as well. */
	for (int i = 0; i < n && !err; i++) {
		if (events[i].data.fd == r->signals)
			err = signals_handle(r);
	}
	for (int i = 0; i < n && !err; i++) {
		for (size_t k = 0; k < r->n_targets && !err; k++) {
			if (r->targets[k].pidfd != events[i].data.fd || r->targets[k].gone)
				continue;
			err = spawn_step(r);
			if (!err)
				err = target_end(r, &r->targets[k]);
		}
	}
	return err;
}

/* A process that we did not start has a new image: attach to what it maps now. */
static int execs_handle(struct tmk_recorder *r)
{
	int err = 0;

	for (size_t i = 0; i < r->n_execs && !err; i++) {
		for (size_t k = 0; k < r->n_targets; k++) {
			struct tmk_target *t = &r->targets[k];

			if ((uint32_t)t->process.pid != r->execs[i].tgid || t->gone)
				continue;
			tmk_target_exec(t, r->execs[i].incarnation);
			/* What cannot be attached to has been told; the other targets go on. */
			err = target_attach(r, t);
			if (err > 0 || err == SAID)
				err = 0;
		}
	}
	r->n_execs = 0;
	return err;
}

static int loop(struct tmk_recorder *r)
{
	struct epoll_event events[16];
	int err = spawn_step(r);

	while (!err && !r->stop) {
		struct tmk_assembler_stats st;
		uint64_t now = now_ns();
		int timeout = POLL_MS, n;

		if (r->deadline_ns && now >= r->deadline_ns) {
			stop(r, TMK_CAPTURE_DETACHED);
			break;
		}
		if (r->deadline_ns && (r->deadline_ns - now) / 1000000 < POLL_MS)
			timeout = (r->deadline_ns - now) / 1000000 + 1;
		n = epoll_wait(r->epoll, events, sizeof(events) / sizeof(events[0]), timeout);
		if (n < 0 && errno != EINTR)
			return -errno;
		err = events_handle(r, events, n);
		if (!err)
			err = tmk_capture_read(&r->capture);
		if (!err)
			err = execs_handle(r);
		tmk_assembler_stats(r->capture.assembler, &st);
		tmk_live_update(&r->live, now_ns(), &st, tmk_rings_lost(r->capture.rings));
	}
	return err;
}

static void command_report(const struct tmk_recorder *r)
{
	if (!r->spawn.pid)
		return;
	if (r->spawn.state != TMK_SPAWN_ENDED)
		tmk_note("%s (process %d) goes on, untraced", r->command, r->spawn.pid);
	else if (WIFSIGNALED(r->spawn.status))
		tmk_note("%s was killed by signal %d (%s)", r->command, WTERMSIG(r->spawn.status),
			 strsignal(WTERMSIG(r->spawn.status)));
	else
		tmk_note("%s exited with status %d", r->command, WEXITSTATUS(r->spawn.status));
}

static int markers_missing(const struct tmk_recorder *r)
{
	for (size_t i = 0; i < r->n_targets; i++) {
		if (r->targets[i].n_attached)
			return TMK_EXIT_OK;
	}
	tmk_error(
		"%s: no tickmark markers in it or in the libraries it loaded at its start; link it with "
		"libtickmark (children that it starts are not followed)",
		r->command);
	return TMK_EXIT_FAILED;
}

int tmk_recorder_run(struct tmk_recorder *r, uint64_t duration_ns, bool quiet)
{
	uint64_t start = now_ns();
	int err, finish_err;

	if (duration_ns)
		r->deadline_ns = start + duration_ns;
	tmk_live_start(&r->live, quiet, start);
	err = loop(r);
	tmk_live_clear(&r->live);
	/* The filter first: from here on no hit counts, and begins and ends stop at one moment. */
	for (size_t i = 0; i < r->n_targets; i++)
		tmk_bpf_target_drop(&r->bpf, r->targets[i].process.pid);
	tmk_capture_stop(&r->capture);
	for (size_t i = 0; i < r->n_targets; i++)
		tmk_target_detach(&r->targets[i], &r->bpf);
	if (err)
		r->status = TMK_CAPTURE_FAILED;
	finish_err = tmk_capture_finish(&r->capture, r->status, r->method.hit_ns);
	command_report(r);
	if (!err)
		err = finish_err;
	if (err == -EPROTO) {
		tmk_error(
			"the capture's books do not balance (hits = delivered + lost); please report it");
		return TMK_EXIT_FAILED;
	}
	if (err)
		return failure(r, err);
	return r->spawn.pid ? markers_missing(r) : TMK_EXIT_OK;
}

void tmk_recorder_free(struct tmk_recorder *r)
{
	tmk_spawn_free(&r->spawn);
	for (size_t i = 0; i < r->n_targets; i++)
		tmk_target_close(&r->targets[i]);
	free(r->targets);
	free(r->execs);
	tmk_rings_free(r->capture.rings);
	tmk_bpf_unload(&r->bpf);
	if (r->epoll >= 0)
		close(r->epoll);
	if (r->signals >= 0)
		close(r->signals);
}
