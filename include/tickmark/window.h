/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tickmark: streams, and the profiling windows that open and close on them. Part of tickmark.h.
 *
 *	struct tmk_window w;
 *
 *	tmk_window_start(s, "decode", &w);
 *	decode_one_token(...);
 *	tmk_window_end(s, w, NULL);
 *
 * Semantics are those of burn's backend profiling. A window measures the work of one stream between
 * where that stream stands when it opens and where it stands when it closes. Work that was owed from
 * before and ends inside is in; work that is still going on at the end is out; other streams are neither
 * excluded nor counted. Windows nest and overlap freely, and belong to the stream they were opened on,
 * whichever thread closes them. What was not measured is never 0: it says that it was not measured.
 *
 * Threads. Every function may be called from any thread at any time. None of them is for signal
 * handlers. Errors are negative errno values, of which these have a meaning of their own here:
 *
 *	-ENOENT		not registered: no such window is open (it was closed already, abandoned, given
 *			up for want of room, or it is of another session or process)
 *	-ENODATA	not measured: the window is closed, and there is no duration
 *	-EOPNOTSUPP	unsupported: "profiling windows are not supported by this backend; use `profile`"
 *	any other	failed: what a backend's callback returned, or a failure that was recorded
 *
 * tmk_last_error() has a text for each. Whatever an end returns, the window is gone afterwards.
 *
 * fork(). Windows that were open at the fork are the parent's: in the child they are not registered.
 */
#ifndef TICKMARK_WINDOW_H
#define TICKMARK_WINDOW_H

#ifndef TICKMARK_H
#include "tickmark.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* As TMK_API, for functions that call the program's own code, which may throw. */
#define TMK_API_THROWS __attribute__((visibility("default")))

/* ---- Streams: where work is queued. Operations and windows carry the one that the thread is on. ---- */

/*
 * Puts the calling thread on stream `number`, of which any 64-bit value is one. Every thread starts on a
 * stream of its own, which is different from all numbered ones. Calls nest: each leave goes back to
 * where the thread was before. A stream may be entered by many threads at once. Costs a store; no
 * matter whether anybody listens. Returns 0, or -ENOSPC below TMK_STREAM_DEPTH nested enters: the thread
 * then stays where it was, and the enter wants its leave all the same.
 */
#define TMK_STREAM_DEPTH 16u
TMK_API int tmk_stream_enter(uint64_t number);

/* Goes back to the stream before the last enter. Without one, nothing happens. */
TMK_API void tmk_stream_leave(void);

/* ---- Durations ---- */

enum tmk_method {
	TMK_METHOD_SYSTEM = 0, /* the host's clock */
	TMK_METHOD_DEVICE =
		1, /* a clock of the device's own, which no other clock is compared with */
};

enum tmk_duration_state {
	TMK_DURATION_NOT_MEASURED = 0,
	TMK_DURATION_PENDING = 1, /* the device will say */
	TMK_DURATION_MEASURED = 2,
	TMK_DURATION_FAILED = 3,
};

/* Two readings of one clock. */
struct tmk_ticks {
	uint64_t start, end; /* 0: no stamp was taken */
	uint64_t per_second; /* 0: they are nanoseconds */
};

/*
 * A measurement, perhaps one to come. Read one that may be pending by tmk_duration_ns(), which is safe
 * while another thread resolves it.
 */
struct tmk_duration {
	enum tmk_duration_state state; /* atomic: written last */
	enum tmk_method method;
	struct tmk_ticks ticks; /* MEASURED */
	int error;		/* FAILED: negative errno */
};

/*
 * Nanoseconds, rounded down but never to 0 of something measured. Returns 0; -EAGAIN while it is
 * pending; -ENODATA for what was not measured, also where a stamp is missing, where end is not after
 * start, or where the result has no room in 64 bits; or the error it failed with. *ns is only written
 * with 0.
 */
TMK_API int tmk_duration_ns(const struct tmk_duration *d, uint64_t *ns);

/* ---- Backends: who can measure what a device does ---- */

struct tmk_window_options {
	int flush; /* 1: whatever is queued is executed before the window closes */
};

/* What tmk_backend.start returns where the device opens no windows (it has no clock, say). */
#define TMK_BACKEND_NO_WINDOWS 1

/*
 * A backend is a set of callbacks, of which any may be NULL. `device` is the caller's, handed through.
 * Callbacks return 0 or a negative errno, are called without any lock of tickmark's held, in the thread
 * that called tickmark, and may themselves mark operations and open windows. The struct must stay until
 * its last window is closed.
 */
struct tmk_backend {
	size_t size; /* sizeof(struct tmk_backend) */
	/* Waits until the device has done all that was given to it. NULL: there is nothing to wait for. */
	int (*sync)(void *device);
	/* Hands all that is queued to the device, without waiting. NULL: nothing is ever queued. */
	int (*flush)(void *device);
	/*
	 * Opens a window on the device, on the calling thread's stream; *handle is the backend's own
	 * name for it. TMK_BACKEND_NO_WINDOWS: it opens none. NULL: likewise.
	 */
	int (*start)(void *device, uint64_t *handle);
	/*
	 * Closes it, on the stream that it was opened on. Fills *d: measured or not, or pending, to be
	 * resolved later by tmk_window_resolve(). *d comes as a device's that was not measured. NULL:
	 * every end gives -EOPNOTSUPP, after the window was abandoned.
	 */
	int (*end)(void *device, uint64_t handle, const struct tmk_window_options *options,
		   struct tmk_duration *d);
	/* Gives it up. NULL: end is called without flush, and what it says is thrown away. */
	void (*abandon)(void *device, uint64_t handle);
};

/* ---- Windows ---- */

/*
 * An open window: a plain value, to be copied, handed to other threads and sent elsewhere as text.
 * Dropping it leaves the window open, which costs memory: TMK_WINDOWS_MAX may be open in a session,
 * and one more abandons the oldest. An id of 0 is no window: nobody listened when it was to be opened, and
 * whatever is done to it does nothing and succeeds (tmk_window_end_timed() tells that nothing was measured).
 */
struct tmk_window {
	uint64_t id;	    /* never used again in this process, and of no other */
	uint64_t opened_on; /* the number of the stream */
};

#define TMK_WINDOWS_MAX 131072u

/*
 * Opens a window on the calling thread's stream, measured by the host's clock between these two calls.
 * While nobody listens *w becomes {0, 0}. Returns 0, -EINVAL without `w`, or -ENOMEM, in which case
 * there is no window either.
 */
TMK_API int tmk_window_start(struct tmk_session *s, const char *name, struct tmk_window *w);

/*
 * The same, measured by a device. Also returns what the backend's start did; -EOPNOTSUPP where it opens
 * no windows. While nobody listens the backend is not called.
 */
TMK_API int tmk_window_start_on(struct tmk_session *s, const struct tmk_backend *backend,
				void *device, const char *name, struct tmk_window *w);

/*
 * Closes a window, on the stream it was opened on, from any thread. `options` may be NULL. With flush
 * the backend's flush is called first; should that fail, the window fails. Returns 0 (also where the
 * device's duration is still to come), or an error, see above.
 */
TMK_API int tmk_window_end(struct tmk_session *s, struct tmk_window w,
			   const struct tmk_window_options *options);

/*
 * The same, and says what was measured. While *d is pending it must stay where it is: it is written
 * when the window is resolved, and at the latest when the session is finished (not measured).
 */
TMK_API int tmk_window_end_timed(struct tmk_session *s, struct tmk_window w,
				 const struct tmk_window_options *options, struct tmk_duration *d);

/* Closes a window without a measurement. Cannot fail; a window that is not open is left at that. */
TMK_API void tmk_window_abandon(struct tmk_session *s, struct tmk_window w);

/*
 * The duration of a device window that was closed as pending, from any thread, in any order. `ticks`
 * NULL: there is none. Stamps that are no duration (see tmk_duration_ns()) count as not measured.
 * Returns 0, or -ENOENT for a window that waits for none: unknown, still open, or resolved before.
 */
TMK_API int tmk_window_resolve(struct tmk_session *s, struct tmk_window w,
			       const struct tmk_ticks *ticks);

/* The same where the device failed; `err` is a negative errno. */
TMK_API int tmk_window_resolve_failed(struct tmk_session *s, struct tmk_window w, int err);

/*
 * Records a failure (a negative errno) on the stream that the calling thread is on, or that `w` was
 * opened on: every window that is open on it fails, and its end returns `err`. Windows opened later are
 * clean. tmk_window_fail() returns 0, or -ENOENT where `w` is not open.
 */
TMK_API void tmk_stream_fail(struct tmk_session *s, int err);
TMK_API int tmk_window_fail(struct tmk_session *s, struct tmk_window w, int err);

/*
 * A window as text, {"id":5,"opened_on":7}, and back. format returns the length, like snprintf();
 * parse returns 0 or -EINVAL, and reads a missing opened_on as 0.
 */
#define TMK_WINDOW_TEXT_MAX 64u
TMK_API int tmk_window_format(struct tmk_window w, char *text, size_t size);
TMK_API int tmk_window_parse(const char *text, struct tmk_window *w);

/* ---- Measuring a body ---- */

/* What is measured; its result goes to *output, unless the measurement failed. */
typedef void *(*tmk_body_fn)(void *arg);

struct tmk_profile {
	struct tmk_session *session;	   /* NULL: measure only, mark nothing */
	const char *name;		   /* of the window */
	const struct tmk_backend *backend; /* NULL: one without callbacks */
	void *device;
	struct tmk_window_options options;
};

/*
 * Measures `body` by the host's clock between two syncs of the device; the window stands in the session
 * like any other. Unlike a device window this waits, and the syncs of an inner one are charged to the
 * outer. Where the first sync fails `body` is not run; where the second does, the measurement and the
 * output are lost. Returns 0 or the sync's error. `output` and `d` may be NULL; with an error *output
 * is NULL. A body that unwinds abandons the window, see below.
 */
TMK_API_THROWS int tmk_profile_system_time(const struct tmk_profile *p, tmk_body_fn body, void *arg,
					   void **output, struct tmk_duration *d);

/*
 * Measures `body` by a window of the device, or by tmk_profile_system_time() where the backend opens
 * none. Works whether anybody listens or not. Where the start fails, `body` still runs, its output is
 * dropped and the error returned; where the end fails, the output is dropped. -ENODATA, not measured, is
 * no failure: there is the output, and no duration. A pending *d is resolved by tmk_window_resolve() with *w, which the caller gets (`w` may be NULL, as may `output` and `d`;
 * without a session the backend fills *d itself, later).
 *
 * A body that unwinds (a C++ exception, pthread_exit(), cancellation) abandons the window and goes on
 * unwinding; C frames in between must be compiled with -fexceptions. longjmp() out of the body runs no
 * clean-up in C: call tmk_window_abandon() yourself, with the *w that was written before the body ran.
 */
TMK_API_THROWS int tmk_profile_with_tokens(const struct tmk_profile *p, tmk_body_fn body, void *arg,
					   void **output, struct tmk_duration *d,
					   struct tmk_window *w);

/* ---- Guards ---- */

/*
 * TMK_WINDOW_GUARD(g, s, name); opens a window that is abandoned on every way out of the block (return,
 * break, goto, an exception, pthread_exit(), cancellation; not longjmp()) unless tmk_window_guard_end(&g,
 * options) closed it before. In C++ it is a tickmark::window_guard.
 *
 * TMK_STREAM_SCOPE(number); enters a stream for the rest of the block.
 */
struct tmk_window_guard {
	struct tmk_session *session;
	struct tmk_window window;
};

/* The out-of-line halves of the inline functions below. */
TMK_API int tmk_window_start_slow(struct tmk_session *s, const char *name, struct tmk_window *w);
TMK_API int tmk_window_start_on_slow(struct tmk_session *s, const struct tmk_backend *backend,
				     void *device, const char *name, struct tmk_window *w);
TMK_API int tmk_window_end_slow(struct tmk_session *s, struct tmk_window w,
				const struct tmk_window_options *options);
TMK_API void tmk_window_abandon_slow(struct tmk_session *s, struct tmk_window w);

/* ---- Nothing below adds to what can be called; it is how the above is made inline. ---- */

#ifndef TMK_NO_INLINE
TMK_INLINE int tmk_window_start(struct tmk_session *s, const char *name, struct tmk_window *w)
{
	if (__builtin_expect(w != NULL, 1) && !tmk_enabled()) {
		w->id = 0;
		w->opened_on = 0;
		return 0;
	}
	return tmk_window_start_slow(s, name, w);
}

TMK_INLINE int tmk_window_start_on(struct tmk_session *s, const struct tmk_backend *backend,
				   void *device, const char *name, struct tmk_window *w)
{
	if (__builtin_expect(w != NULL, 1) && !tmk_enabled()) {
		w->id = 0;
		w->opened_on = 0;
		return 0;
	}
	return tmk_window_start_on_slow(s, backend, device, name, w);
}

/*
 * Not gated by the switch: a window that was opened while somebody listened is closed even when nobody
 * does any more, or its memory would never come back.
 */
TMK_INLINE int tmk_window_end(struct tmk_session *s, struct tmk_window w,
			      const struct tmk_window_options *options)
{
	return __builtin_expect(!w.id, 1) ? 0 : tmk_window_end_slow(s, w, options);
}

TMK_INLINE void tmk_window_abandon(struct tmk_session *s, struct tmk_window w)
{
	if (__builtin_expect(w.id != 0, 0))
		tmk_window_abandon_slow(s, w);
}
#endif /* TMK_NO_INLINE */

static inline struct tmk_window_guard tmk_window_guard_start(struct tmk_session *s,
							     const char *name)
{
	struct tmk_window_guard guard = { s, { 0, 0 } };

	(void)tmk_window_start(s, name, &guard.window);
	return guard;
}

static inline int tmk_window_guard_end(struct tmk_window_guard *guard,
				       const struct tmk_window_options *options)
{
	struct tmk_window w = guard->window;

	guard->window.id = 0;
	return tmk_window_end(guard->session, w, options);
}

static inline void tmk_window_guard_drop(struct tmk_window_guard *guard)
{
	tmk_window_abandon(guard->session, guard->window);
}

#ifdef __cplusplus
} /* extern "C" */

namespace tickmark
{

/* A window that is abandoned with the block it was opened in, unless it was ended. */
class window_guard
{
      public:
	window_guard(struct tmk_session *s, const char *name) noexcept
	    : guard_(tmk_window_guard_start(s, name))
	{
	}

	~window_guard()
	{
		tmk_window_guard_drop(&guard_);
	}

	window_guard(const window_guard &) = delete;
	window_guard &operator=(const window_guard &) = delete;

	/* Closes the window, as tmk_window_end() does; the block's end then does nothing. */
	int end(const struct tmk_window_options *options = nullptr) noexcept
	{
		return tmk_window_guard_end(&guard_, options);
	}

	struct tmk_window window() const noexcept
	{
		return guard_.window;
	}

      private:
	struct tmk_window_guard guard_;
};

/* Puts the thread on a stream for as long as it lives. */
class stream_scope
{
      public:
	explicit stream_scope(uint64_t number) noexcept
	{
		(void)tmk_stream_enter(number);
	}

	~stream_scope()
	{
		tmk_stream_leave();
	}

	stream_scope(const stream_scope &) = delete;
	stream_scope &operator=(const stream_scope &) = delete;
};

} /* namespace tickmark */

#define TMK_WINDOW_GUARD(guard, s, name) ::tickmark::window_guard guard((s), (name))
#define TMK_STREAM_SCOPE(number) \
	const ::tickmark::stream_scope TMK_PASTE_(tmk_stream_at_, __LINE__)(number)
#else
struct tmk_stream_scope {
	char entered;
};

static inline struct tmk_stream_scope tmk_stream_scope_begin(uint64_t number)
{
	struct tmk_stream_scope scope = { 1 };

	(void)tmk_stream_enter(number);
	return scope;
}

static inline void tmk_stream_scope_end(struct tmk_stream_scope *scope)
{
	if (scope->entered)
		tmk_stream_leave();
}

#define TMK_WINDOW_GUARD(guard, s, name)                                                \
	struct tmk_window_guard guard __attribute__((cleanup(tmk_window_guard_drop))) = \
		tmk_window_guard_start((s), (name))
#define TMK_STREAM_SCOPE(number)                                         \
	struct tmk_stream_scope TMK_PASTE_(tmk_stream_at_, __LINE__)     \
		__attribute__((cleanup(tmk_stream_scope_end), unused)) = \
			tmk_stream_scope_begin(number)
#endif /* __cplusplus */

#endif /* TICKMARK_WINDOW_H */
