/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts a command so that nothing it marks is missed: it is held (with ptrace) each time the loader has
 * mapped a new file and before any code of that file runs, until the marked files are known and the
 * caller has attached; then it is let go and ptrace is out of the way.
 *
 * Follows exec of the same process, so a shell or a wrapper that execs the marked program works.
 */
#ifndef TICKMARK_ATTACH_SPAWN_H
#define TICKMARK_ATTACH_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Called while the process is held and its mappings may have changed: `exec` says that its image was
 * replaced since the last call. Returns 1 when markers are attached, 0 when there are none yet, or a
 * negative errno, which ends the spawn (the process is then killed by tmk_spawn_free()).
 */
typedef int (*tmk_spawn_mapped_fn)(void *ctx, pid_t pid, bool exec);

enum tmk_spawn_state {
	TMK_SPAWN_LOADING, /* held and stepped until its files are mapped */
	TMK_SPAWN_WAITING, /* runs unmarked; an exec may still bring markers */
	TMK_SPAWN_RUNNING, /* marked, attached, and no longer under ptrace */
	TMK_SPAWN_ENDED,   /* see status */
};

struct tmk_spawn {
	pid_t pid;
	enum tmk_spawn_state state;
	int status; /* as waitpid(2) gives it; valid in TMK_SPAWN_ENDED */
	tmk_spawn_mapped_fn mapped;
	void *ctx;
	bool in_syscall;
	bool found;
	unsigned long loader_start, loader_end; /* where the dynamic loader is mapped; 0 = none */
};

/*
 * Starts argv (looked up in PATH as a shell would). The child gets the signal mask `mask`. Returns 0 or
 * the errno of exec, negative; then nothing is left running. The caller then calls tmk_spawn_step() on
 * each SIGCHLD, and at once.
 */
int tmk_spawn_start(struct tmk_spawn *s, char *const argv[], const void *mask,
		    tmk_spawn_mapped_fn mapped, void *ctx);

/*
 * Handles what the child has reported, without waiting, but stays with a child that is loading until it
 * runs. Returns 0 or the error of `mapped`.
 */
int tmk_spawn_step(struct tmk_spawn *s);

/* Kills a child that is still held; one that runs goes on, and the kernel ends ptrace with us. */
void tmk_spawn_free(struct tmk_spawn *s);

#endif /* TICKMARK_ATTACH_SPAWN_H */
