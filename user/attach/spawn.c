// SPDX-License-Identifier: BSD-2-Clause
/*
 * Starts a command and holds it while its files are mapped. See spawn.h.
 *
 * The dynamic loader maps the program's libraries, then runs their constructors. A file's code can run
 * only after the mmap that mapped it has returned, and the child is stopped there. Loading is over at
 * the first system call that is made from outside the loader's own mapping.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/spawn.h"

static void child_run(char *const argv[], const sigset_t *mask, const int go[2], int report)
{
	ssize_t n;
	char c;
	int err;

	/* The tracer seizes us first; where it died instead, its end of the pipe is gone. */
	close(go[1]);
	do {
		n = read(go[0], &c, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(126);
	/* We ignore it; whoever runs the command does not expect that. */
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	err = errno;
	if (write(report, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

static void child_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* Lets the child go as far as its exec. */
static int child_release(struct tmk_spawn *s, int go, int report)
{
	int err = 0, status;

	if (ptrace(PTRACE_SEIZE, s->pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD))
		return -errno;
	if (write(go, "g", 1) != 1)
		return -EPIPE;
	for (;;) {
		if (waitpid(s->pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (read(report, &err, sizeof(err)) != sizeof(err))
				err = ECHILD;
			s->pid = 0;
			return -err;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return 0;
		/* A signal before the exec: it belongs to the child. */
		if (ptrace(PTRACE_CONT, s->pid, 0, status >> 16 ? 0 : WSTOPSIG(status)))
			return -errno;
	}
}

/* AT_BASE says where the loader begins; its file's mappings lie side by side. */
static void loader_find(struct tmk_spawn *s)
{
	uint64_t aux[2], base = 0, start, end, ino, loader_ino = 0;
	char path[64], line[4352];
	unsigned int major, minor, loader_major = 0, loader_minor = 0;
	FILE *f;

	s->loader_start = s->loader_end = 0;
	snprintf(path, sizeof(path), "/proc/%d/auxv", s->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fread(aux, sizeof(aux), 1, f) == 1) {
		if (aux[0] == AT_BASE)
			base = aux[1];
	}
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/maps", s->pid);
	f = base ? fopen(path, "re") : NULL;
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &start, &end,
			   &major, &minor, &ino) != 5)
			continue;
		if (start == base) {
			s->loader_start = start;
			loader_ino = ino;
			loader_major = major;
			loader_minor = minor;
		}
		if (s->loader_start && ino == loader_ino && major == loader_major &&
		    minor == loader_minor)
			s->loader_end = end;
	}
	fclose(f);
}

struct syscall_stop {
	uint64_t nr, pc;
};

static int syscall_read(pid_t pid, struct syscall_stop *out)
{
#if defined(__x86_64__)
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov))
		return -errno;
	out->nr = regs.orig_rax;
	out->pc = regs.rip;
#elif defined(__aarch64__)
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov))
		return -errno;
	out->nr = regs.regs[8];
	out->pc = regs.pc;
#endif
	return 0;
}

static int mapped_tell(struct tmk_spawn *s, bool exec)
{
	int n = s->mapped(s->ctx, s->pid, exec);

	if (n > 0)
		s->found = true;
	return n < 0 ? n : 0;
}

static int exec_handle(struct tmk_spawn *s)
{
	s->state = TMK_SPAWN_LOADING;
	s->in_syscall = true; /* the next system call stop is the exit of this exec */
	s->found = false;
	loader_find(s);
	return mapped_tell(s, true);
}

/* At a system call of a child that is loading; tells whether loading is over. */
static int syscall_handle(struct tmk_spawn *s, bool *over)
{
	struct syscall_stop stop = { 0, 0 };
	int err;

	*over = false;
	s->in_syscall = !s->in_syscall;
	err = syscall_read(s->pid, &stop);
	if (err)
		return err == -ESRCH ? 0 : err;
	if (!s->in_syscall)
		return stop.nr == SYS_mmap || stop.nr == SYS_mprotect ? mapped_tell(s, false) : 0;
	*over = stop.pc < s->loader_start || stop.pc >= s->loader_end;
	return 0;
}

/* Ends ptrace where markers are attached, else goes on looking out for exec. */
static int loading_end(struct tmk_spawn *s, int sig)
{
	if (s->found) {
		s->state = TMK_SPAWN_RUNNING;
		return ptrace(PTRACE_DETACH, s->pid, 0, sig) && errno != ESRCH ? -errno : 0;
	}
	s->state = TMK_SPAWN_WAITING;
	return ptrace(PTRACE_CONT, s->pid, 0, sig) && errno != ESRCH ? -errno : 0;
}

/* One stop of the child: says what to do, and lets it go on. */
static int stop_handle(struct tmk_spawn *s, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16, deliver = 0, err = 0;
	bool over = false;

	if (event == PTRACE_EVENT_EXEC) {
		err = exec_handle(s);
	} else if (event == PTRACE_EVENT_STOP) {
		/* A group stop is the user's ^Z: leave the child stopped until SIGCONT. */
		if (sig != SIGTRAP)
			return ptrace(PTRACE_LISTEN, s->pid, 0, 0) && errno != ESRCH ? -errno : 0;
	} else if (sig == (SIGTRAP | 0x80)) {
		err = syscall_handle(s, &over);
	} else {
		deliver = sig;
	}
	if (err)
		return err;
	if (over)
		return loading_end(s, 0);
	if (ptrace(s->state == TMK_SPAWN_LOADING ? PTRACE_SYSCALL : PTRACE_CONT, s->pid, 0,
		   deliver) &&
	    errno != ESRCH)
		return -errno;
	return 0;
}

int tmk_spawn_step(struct tmk_spawn *s)
{
	while (s->state != TMK_SPAWN_ENDED) {
		int status, err;
		pid_t pid;

		pid = waitpid(s->pid, &status,
			      __WALL | (s->state == TMK_SPAWN_LOADING ? 0 : WNOHANG));
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			return pid < 0 ? -errno : 0;
		if (WIFSTOPPED(status)) {
			err = stop_handle(s, status);
			if (err)
				return err;
			continue;
		}
		s->status = status;
		s->state = TMK_SPAWN_ENDED;
	}
	return 0;
}

int tmk_spawn_start(struct tmk_spawn *s, char *const argv[], const void *mask,
		    tmk_spawn_mapped_fn mapped, void *ctx)
{
	int go[2] = { -1, -1 }, report[2] = { -1, -1 };
	int err;

	memset(s, 0, sizeof(*s));
	s->mapped = mapped;
	s->ctx = ctx;
	if (pipe2(go, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) {
		err = -errno;
		goto cleanup;
	}
	s->pid = fork();
	if (s->pid < 0) {
		err = -errno;
		goto cleanup;
	}
	if (!s->pid)
		child_run(argv, mask, go, report[1]);
	close(report[1]);
	report[1] = -1;
	err = child_release(s, go[1], report[0]);
	if (!err)
		err = exec_handle(s);
	if (!err && ptrace(PTRACE_SYSCALL, s->pid, 0, 0))
		err = -errno;
	if (err && s->pid > 0) {
		child_kill(s->pid);
		s->state = TMK_SPAWN_ENDED;
	}
cleanup:
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (report[i] >= 0)
			close(report[i]);
	}
	return err;
}

void tmk_spawn_free(struct tmk_spawn *s)
{
	if (!s || s->pid <= 0 || s->state != TMK_SPAWN_LOADING)
		return;
	child_kill(s->pid);
	s->state = TMK_SPAWN_ENDED;
}
