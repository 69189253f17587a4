/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGTERM and SIGINT: a request to end after the present step, with every file whole.
 */
#ifndef TRANSFORMER_STOP_H
#define TRANSFORMER_STOP_H

#include <stdbool.h>

/* From now on the two signals only raise the request. For the main thread. */
void stop_install(void);

bool stop_requested(void);

/* Waits until `fd` can be read. Returns 1, 0 when a stop was requested, or a negative errno. */
int stop_or_readable(int fd);

#endif
