// SPDX-License-Identifier: BSD-2-Clause
/*
 * Capabilities and lockdown, read before and explained after. See privilege.h.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/bpf.h"
#include "attach/privilege.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

static const struct {
	int number;
	const char *name;
} needed[] = {
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
	{ CAP_BPF, "CAP_BPF" },
	{ CAP_PERFMON, "CAP_PERFMON" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
};

const char *tmk_privilege_missing(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &head, data))
		return NULL;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		int n = needed[i].number;

		if (!(data[n / 32].effective & 1u << n % 32))
			return needed[i].name;
	}
	return NULL;
}

bool tmk_privilege_initial_pids(void)
{
	/* PROC_PID_INIT_INO of the kernel: the one namespace whose number never changes. */
	const ino_t initial = 0xeffffffc;
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == initial;
}

/* The mode in force, e.g. "confidentiality"; "" where lockdown is off or unknown. */
static void lockdown_read(char *out, size_t cap)
{
	char text[128] = "", *open, *close;
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");

	out[0] = 0;
	if (!f)
		return;
	if (fgets(text, sizeof(text), f)) {
		open = strchr(text, '[');
		close = open ? strchr(open, ']') : NULL;
		if (close && strncmp(open, "[none]", 6))
			snprintf(out, cap, "%.*s", (int)(close - open - 1), open + 1);
	}
	fclose(f);
}

void tmk_privilege_explain(int err, char *out, size_t cap)
{
	char lockdown[32];

	lockdown_read(lockdown, sizeof(lockdown));
	if ((err == -EPERM || err == -EACCES) && lockdown[0])
		snprintf(
			out, cap,
			"%s; kernel lockdown is in mode '%s', which forbids tracing: boot without it",
			strerror(-err), lockdown);
	else if (err == -EPERM || err == -EACCES)
		snprintf(
			out, cap,
			"%s; a container or security module may forbid bpf(2): run on the host as root",
			strerror(-err));
	else if (err == -ENOSYS)
		snprintf(out, cap, "this kernel was built without BPF (CONFIG_BPF_SYSCALL)");
	else if (err == -ENOTSUP)
		snprintf(
			out, cap,
			"uprobes deliver nothing on this kernel: it needs CONFIG_UPROBE_EVENTS and "
			"Linux 5.10 or later");
	else
		snprintf(out, cap, "%s%s%s", strerror(-err), tmk_bpf_last_message()[0] ? "; " : "",
			 tmk_bpf_last_message());
}
