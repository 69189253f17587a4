/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel must let us do before anything is attached, and what to say when it does not.
 */
#ifndef TICKMARK_ATTACH_PRIVILEGE_H
#define TICKMARK_ATTACH_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The name of a capability that tracing needs and this process lacks ("CAP_BPF", …), or NULL. The set
 * is CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN (which opens /proc/PID/map_files), with CAP_SYS_PTRACE.
 */
const char *tmk_privilege_missing(void);

/*
 * Whether this process is in the initial pid namespace. BPF sees the pids of that one only, so elsewhere
 * a pid given by name would be another process's.
 */
bool tmk_privilege_initial_pids(void);

/* Writes into `out` what is likely behind `err` (negative errno) of loading or attaching BPF. */
void tmk_privilege_explain(int err, char *out, size_t cap);

#endif /* TICKMARK_ATTACH_PRIVILEGE_H */
