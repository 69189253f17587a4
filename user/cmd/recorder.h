/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run of a recording: attach, read until it is over, detach. Which outputs there are, and what the
 * person at the terminal asked for, is record.c's.
 */
#ifndef TICKMARK_CMD_RECORDER_H
#define TICKMARK_CMD_RECORDER_H

#include <signal.h>
#include <stdbool.h>

#include "attach/spawn.h"
#include "attach/target.h"
#include "capture/capture.h"
#include "cmd/live.h"

struct tmk_recorder {
	struct tmk_bpf bpf;
	struct tmk_method method;
	struct tmk_capture capture;
	struct tmk_target *targets;
	size_t n_targets;
	struct tmk_spawn spawn; /* spawn.pid 0: none */
	const char *command;	/* its name, for messages */
	struct tmk_live live;
	sigset_t old_mask;
	int epoll, signals;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0 = none */
	bool stop;
	enum tmk_capture_status status;
	struct tmk_exec {
		uint32_t tgid, incarnation;
	} * execs; /* seen in the rings, not handled yet */
	size_t n_execs;
};

/* All print one line themselves when they fail, and then return an enum tmk_exit other than 0. */

/* Blocks the signals that end a recording and prepares to wait for them. */
int tmk_recorder_init(struct tmk_recorder *r);
/* Adds a running process: it must be there and carry markers. */
int tmk_recorder_add(struct tmk_recorder *r, pid_t pid);
/* Loads BPF and finds out how to attach. */
int tmk_recorder_load(struct tmk_recorder *r);
/* Attaches to every added process. */
int tmk_recorder_attach(struct tmk_recorder *r);
/* Starts a command under trace. */
int tmk_recorder_spawn(struct tmk_recorder *r, char **argv);
/* Reads until the deadline, a signal, or the end of every target; then detaches and ends the capture. */
int tmk_recorder_run(struct tmk_recorder *r, uint64_t duration_ns, bool quiet);
void tmk_recorder_free(struct tmk_recorder *r);

#endif /* TICKMARK_CMD_RECORDER_H */
