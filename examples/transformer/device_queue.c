// SPDX-License-Identifier: BSD-2-Clause
/*
 * The simulated device: a ring of commands behind one lock, and the thread that executes them; and the
 * callbacks by which tickmark has its windows measured.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "device_queue.h"
#include "thread.h"

#define COMMANDS 64u
/* Of each copy: about 20 us. The rest of its time goes by its size. */
#define COPY_TICKS 240u
#define BYTES_A_TICK 64u
/* Where this device's clock happens to stand when it is opened. */
#define FIRST_TICK 0x1d0c5a7e91u

enum command_kind {
	COMMAND_COPY,
	COMMAND_OPEN,	/* a window's first stamp */
	COMMAND_CLOSE,	/* its last one */
	COMMAND_FORGET, /* it was given up */
};

/* A place for the stamps of one window. */
struct device_window {
	struct device_queue *queue;
	const struct marks *marks;
	struct tmk_window token;    /* as tickmark knows it */
	bool opened;		    /* tickmark had it opened here */
	struct tmk_ticks ticks;	    /* the device's, until it is among the results */
	struct device_window *next; /* among the free ones, or the results */
};

struct command {
	enum command_kind kind;
	struct device_copy copy;
	struct device_window *window;
};

/* The counters never go back: done <= handed <= queued <= done + COMMANDS. */
struct device_queue {
	pthread_mutex_t lock;
	pthread_cond_t work; /* something was handed over, or closing */
	pthread_cond_t progress;
	uint64_t queued, handed, done;
	struct command ring[COMMANDS];
	struct device_window windows[DEVICE_WINDOWS];
	struct device_window *free;
	struct device_window *results; /* the newest first */
	bool closing;
	pthread_t thread;
	uint64_t opened_ns;
	uint64_t last_done; /* tick; the device's */
};

/* --- the device's side */

/* Not the clock that marks are timed by: that one is adjusted, this one runs as it likes. */
static uint64_t raw_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t device_ticks(const struct device_queue *queue)
{
	return FIRST_TICK +
	       (raw_ns() - queue->opened_ns) * (DEVICE_TICKS_PER_SECOND / 1000) / 1000000;
}

/* Takes as long as it would on the bus of a real device. */
static void execute_copy(struct device_queue *queue, const struct device_copy *copy)
{
	const uint64_t end = device_ticks(queue) + COPY_TICKS + copy->n / BYTES_A_TICK;

	memcpy(copy->to, copy->from, copy->n);
	do
		queue->last_done = device_ticks(queue);
	while (queue->last_done < end);
	if (copy->done)
		copy->done(copy->arg);
}

static void window_push(struct device_queue *queue, struct device_window **list,
			struct device_window *window)
{
	pthread_mutex_lock(&queue->lock);
	window->next = *list;
	*list = window;
	pthread_mutex_unlock(&queue->lock);
}

static void execute(struct device_queue *queue, const struct command *command)
{
	struct device_window *window = command->window;

	switch (command->kind) {
	case COMMAND_COPY:
		execute_copy(queue, &command->copy);
		break;
	case COMMAND_OPEN:
		window->ticks.start = device_ticks(queue);
		break;
	case COMMAND_CLOSE:
		window->ticks.end = queue->last_done;
		window_push(queue, &queue->results, window);
		break;
	case COMMAND_FORGET:
		window_push(queue, &queue->free, window);
		break;
	}
}

static void *device(void *arg)
{
	struct device_queue *queue = arg;

	pthread_mutex_lock(&queue->lock);
	for (;;) {
		struct command command;

		while (queue->done == queue->handed && !queue->closing)
			pthread_cond_wait(&queue->work, &queue->lock);
		if (queue->done == queue->handed)
			break;
		command = queue->ring[queue->done % COMMANDS];
		pthread_mutex_unlock(&queue->lock);
		execute(queue, &command);
		pthread_mutex_lock(&queue->lock);
		queue->done++;
		pthread_cond_broadcast(&queue->progress);
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

/* --- the host's side */

/* The lock is held. */
static void hand_over(struct device_queue *queue)
{
	queue->handed = queue->queued;
	pthread_cond_signal(&queue->work);
}

static void enqueue(struct device_queue *queue, const struct command *command)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->queued - queue->done == COMMANDS) {
		hand_over(queue);
		pthread_cond_wait(&queue->progress, &queue->lock);
	}
	queue->ring[queue->queued++ % COMMANDS] = *command;
	pthread_mutex_unlock(&queue->lock);
}

void device_queue_copy(struct device_queue *queue, const struct device_copy *copy)
{
	enqueue(queue, &(struct command){ .kind = COMMAND_COPY, .copy = *copy });
}

void device_queue_flush(struct device_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	hand_over(queue);
	pthread_mutex_unlock(&queue->lock);
}

void device_queue_sync(struct device_queue *queue)
{
	uint64_t target;

	pthread_mutex_lock(&queue->lock);
	hand_over(queue);
	target = queue->handed;
	while (queue->done < target)
		pthread_cond_wait(&queue->progress, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
}

int device_queue_open(struct device_queue **out)
{
	struct device_queue *queue = calloc(1, sizeof(*queue));
	int err;

	*out = NULL;
	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->work, NULL);
	pthread_cond_init(&queue->progress, NULL);
	queue->opened_ns = raw_ns();
	for (unsigned int i = 0; i < DEVICE_WINDOWS; i++)
		window_push(queue, &queue->free, &queue->windows[i]);
	err = thread_start(&queue->thread, device, queue);
	if (!err) {
		*out = queue;
		return 0;
	}
	pthread_cond_destroy(&queue->progress);
	pthread_cond_destroy(&queue->work);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
	return err;
}

void device_queue_close(struct device_queue *queue)
{
	if (!queue)
		return;
	device_queue_sync(queue);
	device_queue_resolve(queue);
	pthread_mutex_lock(&queue->lock);
	queue->closing = true;
	pthread_cond_signal(&queue->work);
	pthread_mutex_unlock(&queue->lock);
	pthread_join(queue->thread, NULL);
	pthread_cond_destroy(&queue->progress);
	pthread_cond_destroy(&queue->work);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

/* --- windows: what tickmark calls. `arg` is the place of the window, which needs no other handle. */

static int backend_sync(void *arg)
{
	device_queue_sync(((struct device_window *)arg)->queue);
	return 0;
}

static int backend_flush(void *arg)
{
	device_queue_flush(((struct device_window *)arg)->queue);
	return 0;
}

static int backend_start(void *arg, uint64_t *handle)
{
	struct device_window *window = arg;

	*handle = 0;
	window->opened = true;
	enqueue(window->queue, &(struct command){ .kind = COMMAND_OPEN, .window = window });
	return 0;
}

/*
 * The last stamp is that of the copies before it, so it does no harm that it may reach the device only
 * with the next ones.
 */
static int backend_end(void *arg, uint64_t handle, const struct tmk_window_options *options,
		       struct tmk_duration *d)
{
	struct device_window *window = arg;

	(void)handle;
	(void)options;
	enqueue(window->queue, &(struct command){ .kind = COMMAND_CLOSE, .window = window });
	d->state = TMK_DURATION_PENDING;
	return 0;
}

static void backend_abandon(void *arg, uint64_t handle)
{
	struct device_window *window = arg;

	(void)handle;
	enqueue(window->queue, &(struct command){ .kind = COMMAND_FORGET, .window = window });
}

static const struct tmk_backend backend = {
	.size = sizeof(backend),
	.sync = backend_sync,
	.flush = backend_flush,
	.start = backend_start,
	.end = backend_end,
	.abandon = backend_abandon,
};

/* NULL: all places are taken. */
static struct device_window *place_take(struct device_queue *queue, const struct marks *marks)
{
	struct device_window *place;

	pthread_mutex_lock(&queue->lock);
	place = queue->free;
	if (place)
		queue->free = place->next;
	pthread_mutex_unlock(&queue->lock);
	if (place)
		*place = (struct device_window){
			.queue = queue,
			.marks = marks,
			.ticks = { .per_second = DEVICE_TICKS_PER_SECOND },
		};
	return place;
}

struct window device_window_start(struct device_queue *queue, const struct marks *marks,
				  const char *name)
{
	struct window window = { 0 };
	struct device_window *place = tmk_enabled() ? place_take(queue, marks) : NULL;

	if (!place)
		return window;
	self_clock_before_start(marks->clock, &window.span, name);
	(void)tmk_window_start_on(marks->session, &backend, place, name, &place->token);
	self_clock_after_start(marks->clock, &window.span);
	window.token = place->token;
	/* Once it was opened, the place comes back by way of the device. */
	if (!place->opened)
		window_push(queue, &queue->free, place);
	return window;
}

void device_queue_resolve(struct device_queue *queue)
{
	struct device_window *window, *next;

	pthread_mutex_lock(&queue->lock);
	window = queue->results;
	queue->results = NULL;
	pthread_mutex_unlock(&queue->lock);
	for (; window; window = next) {
		next = window->next;
		/* A window that was given up meanwhile waits for nothing any more. */
		if (!tmk_window_resolve(window->marks->session, window->token, &window->ticks))
			self_clock_device(window->marks->clock, &window->token, &window->ticks);
		window_push(queue, &queue->free, window);
	}
}
