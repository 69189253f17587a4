/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process is, as far as a tracer needs to know: who it is, which mapped files carry markers, and
 * what it has in memory where those markers' switch lies. Reads /proc only; attaches nothing.
 *
 * Everything here may change or vanish while it is read, and may be made up by a hostile process.
 */
#ifndef TICKMARK_ATTACH_PROCESS_H
#define TICKMARK_ATTACH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/elf_notes.h"

struct tmk_object {
	dev_t dev;
	ino_t ino;
	char *path;	    /* as the process's maps name it: for people only */
	char open_path[80]; /* /proc/PID/map_files/…: opens that very file, deleted or not */
	uint64_t bias;	    /* run-time address = link-time address + bias */
	struct tmk_marker_notes notes;
};

struct tmk_process {
	pid_t pid;
	pid_t ns_pid; /* as the process sees itself */
	uid_t uid;
	uint64_t start_ticks;
	char comm[16];
	char exe[256];		    /* "" if it cannot be read */
	struct tmk_object *objects; /* those with markers */
	size_t n_objects;
	size_t n_searched; /* mapped executable files looked at, with or without markers */
	struct tmk_file_id {
		dev_t dev;
		ino_t ino;
	} * searched;
};

/*
 * Fills in who `pid` is; no objects yet. Returns 0, -ESRCH, or -errno. `p` needs tmk_process_free()
 * whatever came back.
 */
int tmk_process_init(struct tmk_process *p, pid_t pid);

/*
 * Looks at every mapped executable file not looked at before and adds those with markers to
 * p->objects. Returns how many were added, or -errno (-ESRCH: the process is gone).
 */
int tmk_process_scan(struct tmk_process *p);

void tmk_process_free(struct tmk_process *p);

/* Reads the switch (semaphores and registry of sessions) of one object. 0 or -errno. */
int tmk_process_read_switch(const struct tmk_process *p, const struct tmk_object *o,
			    struct tmk_switch *out);

/*
 * Reads a descriptor at `address` whole, into a new block that the caller frees. -EINVAL where what
 * lies there is no descriptor.
 */
int tmk_process_read_desc(const struct tmk_process *p, uint64_t address, struct tmk_desc **out);

#endif /* TICKMARK_ATTACH_PROCESS_H */
