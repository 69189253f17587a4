/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out how to attach on the running kernel by doing it: the real program on a private copy of a
 * marker body in this process. Never asks for a version.
 */
#ifndef TICKMARK_ATTACH_SELFTEST_H
#define TICKMARK_ATTACH_SELFTEST_H

#include "attach/bpf.h"
#include "attach/probes.h"

/*
 * Loads the programs into `b` and fills in the cheapest method by which every hit arrives, from the
 * first thread and from another. Takes some milliseconds. Leaves counters, rings and targets empty.
 * Returns 0; -ENOTSUP when no way delivers its events; or what loading gave. On failure `b` is unloaded.
 */
int tmk_selftest(struct tmk_bpf *b, struct tmk_method *m, unsigned int n_rings, size_t ring_bytes);

#endif /* TICKMARK_ATTACH_SELFTEST_H */
