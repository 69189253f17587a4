// SPDX-License-Identifier: BSD-2-Clause
/*
 * Thread ids and forks. See identity.h.
 *
 * fork() copies one thread only. Locks that the others held would stay locked in the child for ever, so
 * those that a child still needs are held across the fork; a session's own locks are left alone, because
 * a child never takes them again (tmk_fork_depth() tells it so).
 */
#include "marker/identity.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "marker/intern.h"
#include "marker/session_file.h"
#include "marker/switch.h"

__thread uint32_t tmk_thread_id_known;
uint32_t tmk_fork_count;

static void fork_prepare(void)
{
	tmk_session_files_lock();
	tmk_intern_lock();
}

static void fork_in_parent(void)
{
	tmk_intern_unlock();
	tmk_session_files_unlock();
}

static void fork_in_child(void)
{
	tmk_session_files_forget();
	fork_in_parent();
	tmk_thread_id_known = 0;
	__atomic_store_n(&tmk_fork_count, tmk_fork_count + 1, __ATOMIC_RELAXED);
	/* The sessions that it counted are the parent's. */
	__atomic_store_n(&tmk_switch.in_process, 0, __ATOMIC_RELAXED);
}

static void fork_watch(void)
{
	pthread_atfork(fork_prepare, fork_in_parent, fork_in_child);
}

void tmk_fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fork_watch);
}

#define NONCE_BITS 20

uint64_t tmk_process_nonce(void)
{
	static uint64_t known; /* atomic: depth + 1 above, nonce below */
	uint64_t now = __atomic_load_n(&known, __ATOMIC_RELAXED), made;
	uint64_t depth1 = tmk_fork_depth() + 1ull;
	struct tmk_seed seed;

	if (now >> 32 != depth1) {
		tmk_seed_init(&seed);
		made = depth1 << 32 | (seed.a & ((1u << NONCE_BITS) - 1));
		/* Whoever is first decides for all threads. */
		if (__atomic_compare_exchange_n(&known, &now, made, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			now = made;
	}
	return now & ((1u << NONCE_BITS) - 1);
}

uint32_t tmk_thread_id_ask(void)
{
	tmk_thread_id_known = (uint32_t)syscall(SYS_gettid);
	return tmk_thread_id_known;
}
