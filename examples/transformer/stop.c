// SPDX-License-Identifier: BSD-2-Clause
/*
 * The request to stop, and a wait that it interrupts.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>

#include "stop.h"

static volatile sig_atomic_t requested;

static void on_signal(int number)
{
	(void)number;
	requested = 1;
}

void stop_install(void)
{
	/* No SA_RESTART: a read or write that blocks must return. */
	struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	/* A reader who went away shows as an error of writing, with a message. */
	signal(SIGPIPE, SIG_IGN);
}

bool stop_requested(void)
{
	return requested;
}

/*
 * The signals are blocked while the request is looked at and let in by ppoll() itself: one that comes
 * in between is not missed.
 */
int stop_or_readable(int fd)
{
	struct pollfd poll = { .fd = fd, .events = POLLIN };
	sigset_t signals, before;
	int ready = 0, err = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, &before);
	while (!requested && !ready && !err) {
		ready = ppoll(&poll, 1, NULL, &before);
		if (ready < 0) {
			err = errno == EINTR ? 0 : -errno;
			ready = 0;
		}
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err ? err : ready;
}
