// SPDX-License-Identifier: BSD-2-Clause
/*
 * The example's simulated device: order and completion of what it is given, and windows that it measures
 * by its own clock.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../examples/transformer/device_queue.h"

/* What a copy takes at least: see COPY_TICKS. */
#define COPY_NS 20000u

struct rig {
	char path[64];
	struct marks marks; /* of a session that writes a file: somebody listens */
	struct device_queue *queue;
};

static void rig_open(struct rig *rig)
{
	const struct tmk_config config = tmk_config_infer("Gpt::forward");
	int fd;

	snprintf(rig->path, sizeof(rig->path), "/tmp/test_transformer_device.XXXXXX");
	fd = mkstemp(rig->path);
	assert_true(fd >= 0);
	close(fd);
	rig->marks = (struct marks){ 0 };
	assert_int_equal(tmk_session_open(&rig->marks.session, rig->path, &config), 0);
	assert_int_equal(device_queue_open(&rig->queue), 0);
}

static void rig_close(struct rig *rig)
{
	device_queue_close(rig->queue);
	assert_int_equal(tmk_session_finish(rig->marks.session), 0);
	unlink(rig->path);
}

/* A copy of a few bytes, on whose order nothing is said here. */
static void copy_something(struct rig *rig)
{
	static char from[256], to[256];
	const struct device_copy copy = { .to = to, .from = from, .n = sizeof(from) };

	device_queue_copy(rig->queue, &copy);
}

static struct window start(struct rig *rig)
{
	struct window window = device_window_start(rig->queue, &rig->marks, "copy");

	assert_true(window.token.id != 0);
	return window;
}

static void end(struct rig *rig, struct window *window, struct tmk_duration *d)
{
	assert_int_equal(tmk_window_end_timed(rig->marks.session, window->token, NULL, d), 0);
}

/* --- copies */

struct ordered {
	atomic_uint *clock;
	unsigned int at;
};

static void note_order(void *arg)
{
	struct ordered *o = arg;

	o->at = atomic_fetch_add(o->clock, 1);
}

/* More than the ring holds: whoever queues them hands them over when it is full. */
static void copies_are_done_in_order(void **state)
{
	enum { N = 150 };
	int from[N], to[N] = { 0 };
	struct ordered ordered[N];
	atomic_uint clock = 0;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (int i = 0; i < N; i++) {
		const struct device_copy copy = { &to[i], &from[i], sizeof(to[i]), note_order,
						  &ordered[i] };

		from[i] = i + 1;
		ordered[i].clock = &clock;
		device_queue_copy(rig.queue, &copy);
	}
	device_queue_sync(rig.queue);
	assert_int_equal(atomic_load(&clock), N);
	assert_memory_equal(from, to, sizeof(from));
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(ordered[i].at, i);
	rig_close(&rig);
}

static void nothing_is_done_before_it_is_flushed(void **state)
{
	struct ordered ordered;
	atomic_uint clock = 0;
	struct rig rig;
	char byte = 1, copied = 0;
	const struct device_copy copy = { &copied, &byte, 1, note_order, &ordered };

	(void)state;
	rig_open(&rig);
	ordered.clock = &clock;
	device_queue_copy(rig.queue, &copy);
	usleep(20000);
	assert_int_equal(atomic_load(&clock), 0);
	device_queue_flush(rig.queue);
	for (int i = 0; i < 5000 && !atomic_load(&clock); i++)
		usleep(1000);
	assert_int_equal(atomic_load(&clock), 1);
	rig_close(&rig);
	assert_int_equal(copied, 1);
}

/* --- windows */

static void a_window_waits_for_the_device_and_has_its_ticks(void **state)
{
	struct tmk_duration one, three;
	struct window window;
	struct rig rig;
	uint64_t one_ns, three_ns = 7;

	(void)state;
	rig_open(&rig);
	window = start(&rig);
	copy_something(&rig);
	end(&rig, &window, &one);
	window = start(&rig);
	for (int i = 0; i < 3; i++)
		copy_something(&rig);
	end(&rig, &window, &three);
	device_queue_sync(rig.queue);
	assert_int_equal(tmk_duration_ns(&three, &three_ns), -EAGAIN);
	assert_int_equal(three_ns, 7);

	device_queue_resolve(rig.queue);
	assert_int_equal(tmk_duration_ns(&one, &one_ns), 0);
	assert_int_equal(tmk_duration_ns(&three, &three_ns), 0);
	assert_int_equal(three.method, TMK_METHOD_DEVICE);
	assert_int_equal(three.ticks.per_second, DEVICE_TICKS_PER_SECOND);
	assert_int_equal(three_ns, (three.ticks.end - three.ticks.start) * 1000 /
					   (DEVICE_TICKS_PER_SECOND / 1000000));
	assert_true(one.ticks.end <= three.ticks.start);
	assert_true(one_ns >= COPY_NS && three_ns >= 3 * COPY_NS);
	rig_close(&rig);
}

/* Its end is that of the last copy before it, however late the device comes to know of the end. */
static void a_window_does_not_hold_the_time_after_its_last_copy(void **state)
{
	const uint64_t pause_ticks = 50000u * (DEVICE_TICKS_PER_SECOND / 1000000);
	struct tmk_duration before, after;
	struct window window;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	window = start(&rig);
	copy_something(&rig);
	device_queue_sync(rig.queue);
	usleep(50000);
	end(&rig, &window, &before);
	window = start(&rig);
	copy_something(&rig);
	end(&rig, &window, &after);
	device_queue_sync(rig.queue);
	device_queue_resolve(rig.queue);
	assert_int_equal(before.state, TMK_DURATION_MEASURED);
	assert_int_equal(after.state, TMK_DURATION_MEASURED);
	assert_true(after.ticks.start - before.ticks.start > pause_ticks);
	assert_true(after.ticks.start - before.ticks.end > pause_ticks);
	rig_close(&rig);
}

static void an_empty_window_is_not_measured(void **state)
{
	struct tmk_duration d;
	struct window window;
	struct rig rig;
	uint64_t ns;

	(void)state;
	rig_open(&rig);
	copy_something(&rig);
	window = start(&rig);
	end(&rig, &window, &d);
	device_queue_sync(rig.queue);
	device_queue_resolve(rig.queue);
	assert_int_equal(tmk_duration_ns(&d, &ns), -ENODATA);
	rig_close(&rig);
}

static void abandoned_windows_give_their_places_back(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (unsigned int i = 0; i < 3 * DEVICE_WINDOWS; i++) {
		struct window window = start(&rig);

		window_abandon(&rig.marks, &window);
		device_queue_sync(rig.queue);
	}
	rig_close(&rig);
}

static void windows_beyond_its_places_are_not_measured(void **state)
{
	struct window windows[DEVICE_WINDOWS], beyond;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (unsigned int i = 0; i < DEVICE_WINDOWS; i++)
		windows[i] = start(&rig);
	beyond = device_window_start(rig.queue, &rig.marks, "copy");
	assert_int_equal(beyond.token.id, 0);
	window_end(&rig.marks, &beyond, NULL);
	for (unsigned int i = 0; i < DEVICE_WINDOWS; i++)
		window_end(&rig.marks, &windows[i], NULL);
	device_queue_sync(rig.queue);
	device_queue_resolve(rig.queue);
	windows[0] = start(&rig);
	window_end(&rig.marks, &windows[0], NULL);
	rig_close(&rig);
}

static void closing_reads_the_last_stamps(void **state)
{
	struct tmk_duration d;
	struct window window;
	struct rig rig;

	(void)state;
	rig_open(&rig);
	window = start(&rig);
	copy_something(&rig);
	end(&rig, &window, &d);
	rig_close(&rig);
	assert_int_equal(d.state, TMK_DURATION_MEASURED);
}

static void while_nobody_listens_the_device_has_no_windows(void **state)
{
	const struct tmk_config config = tmk_config_infer("Gpt::forward");
	struct marks marks = { 0 };
	struct device_queue *queue;
	struct window window;

	(void)state;
	assert_int_equal(tmk_session_open(&marks.session, NULL, &config), 0);
	assert_int_equal(device_queue_open(&queue), 0);
	for (unsigned int i = 0; i < 2 * DEVICE_WINDOWS; i++) {
		window = device_window_start(queue, &marks, "copy");
		assert_int_equal(window.token.id, 0);
		window_end(&marks, &window, NULL);
	}
	device_queue_close(queue);
	assert_int_equal(tmk_session_finish(marks.session), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_done_in_order),
		cmocka_unit_test(nothing_is_done_before_it_is_flushed),
		cmocka_unit_test(a_window_waits_for_the_device_and_has_its_ticks),
		cmocka_unit_test(a_window_does_not_hold_the_time_after_its_last_copy),
		cmocka_unit_test(an_empty_window_is_not_measured),
		cmocka_unit_test(abandoned_windows_give_their_places_back),
		cmocka_unit_test(windows_beyond_its_places_are_not_measured),
		cmocka_unit_test(closing_reads_the_last_stamps),
		cmocka_unit_test(while_nobody_listens_the_device_has_no_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
