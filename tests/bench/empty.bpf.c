// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The least that a uprobe can do: nothing. What a pair of these costs is the kernel's own price of two
 * probes, against which the benchmark holds the programs of tickmark.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

SEC("uprobe.multi")
int empty_begin(void *ctx)
{
	(void)ctx;
	return 0;
}

SEC("uprobe.multi")
int empty_end(void *ctx)
{
	(void)ctx;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
