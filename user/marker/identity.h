/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread this is, and whether this process is still the one that it was before a fork().
 */
#ifndef TICKMARK_MARKER_IDENTITY_H
#define TICKMARK_MARKER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/* Small enough for the static TLS block, where no access can need memory: signal handlers come here. */
extern __thread uint32_t tmk_thread_id_known __attribute__((tls_model("initial-exec")));
uint32_t tmk_thread_id_ask(void);

/* The kernel's id of the calling thread. Asks the kernel once a thread; async-signal-safe. */
static inline uint32_t tmk_thread_id(void)
{
	return tmk_thread_id_known ? tmk_thread_id_known : tmk_thread_id_ask();
}

/* Twenty bits drawn for this process, a forked child's being others. */
uint64_t tmk_process_nonce(void);

extern uint32_t tmk_fork_count; /* atomic */

/*
 * The number of forks between the process that loaded the library and this one. What was noted in a
 * parent and differs here belongs to the parent.
 */
static inline uint32_t tmk_fork_depth(void)
{
	return __atomic_load_n(&tmk_fork_count, __ATOMIC_RELAXED);
}

/* To be called before anything that a fork must find consistent: see identity.c. Repeats are free. */
void tmk_fork_watch(void);

#endif /* TICKMARK_MARKER_IDENTITY_H */
