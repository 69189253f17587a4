/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting a thread that takes no signals: they are for the thread that trains and answers.
 */
#ifndef TRANSFORMER_THREAD_H
#define TRANSFORMER_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Returns 0 or a negative errno. */
static inline int thread_start(pthread_t *id, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(id, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

#endif
