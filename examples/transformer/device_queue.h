/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated device: copies in the order in which they were queued, on a thread of its own, with a
 * clock of its own that no other clock can be compared with. It shows what a backend of profiling
 * windows does (tickmark/window.h) for a real one.
 *
 * What is queued waits on the host's side until it is flushed. A window is measured by two stamps that
 * go through the queue like the copies: its start is when the device came to it, its end is when the
 * last copy before its end was done. Stamps stay with the device until the host reads them, some windows
 * later and the newest first.
 *
 * Calls may come from any thread, but for opening and closing the queue.
 */
#ifndef TRANSFORMER_DEVICE_QUEUE_H
#define TRANSFORMER_DEVICE_QUEUE_H

#include <stddef.h>

#include "marks.h"

#define DEVICE_TICKS_PER_SECOND 12000000u
/* Windows that are open, or closed with their stamps not yet read. More are not measured. */
#define DEVICE_WINDOWS 16u

struct device_queue;

struct device_copy {
	void *to;
	const void *from;
	size_t n;
	void (*done)(
		void *arg); /* on the device's thread; may be NULL; must not wait for the device */
	void *arg;
};

/* Returns 0 or a negative errno. */
int device_queue_open(struct device_queue **out);

/* Lets the device do what was queued, reads its last stamps, and ends it. NULL is fine. */
void device_queue_close(struct device_queue *queue);

/* Takes a copy of `copy`; both memories must stay until the device is done. */
void device_queue_copy(struct device_queue *queue, const struct device_copy *copy);

/* Hands all that is queued to the device, without waiting. */
void device_queue_flush(struct device_queue *queue);

/* The same, and waits until it is done. */
void device_queue_sync(struct device_queue *queue);

/*
 * Opens a window that the device measures, on the stream that the calling thread is on. It is closed
 * like any other; its duration is there after a later device_queue_resolve(). `marks` must stay until
 * the queue is closed.
 */
struct window device_window_start(struct device_queue *queue, const struct marks *marks,
				  const char *name);

/* Reads the stamps of the windows that the device has come to the end of. */
void device_queue_resolve(struct device_queue *queue);

#endif
