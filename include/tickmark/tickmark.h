/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tickmark: mark where a program's operations begin and end.
 *
 * The marks cost nothing until somebody wants them: each call here tests one word inline and returns
 * at once when it is zero. `tickmark record -p PID` then attaches from outside, with no restart; or a
 * session that is given a path writes its own candle-graph/runtime/3 file, with no tracer and no
 * privilege. Both may be on at once.
 *
 *	#include <tickmark/tickmark.h>
 *
 *	TMK_SITE(qkv, "operation:infer:Gpt::forward:3", "matmul", "x", "w_qkv");
 *
 *	struct tmk_config cfg = tmk_config_infer("Gpt::forward");
 *	struct tmk_session *s;
 *	int err = tmk_session_open(&s, NULL, &cfg);
 *
 *	struct tmk_op op = tmk_op_begin(s, &qkv);
 *	matmul(...);
 *	tmk_op_end(s, op, "q_k_v");
 *
 *	{ TMK_OP_SCOPE(s, &qkv); matmul(...); }
 *
 *	tmk_session_finish(s);
 *
 * Semantics are those of candle-graph's ProfileSession: one counter from 1 for operations and edges,
 * an event's id carries the step at its begin and its record the step at its end, lines come in end
 * order, an operation that was never ended has no line.
 *
 * Errors are negative errno values. Strings are NUL-terminated, copied by the call, and cut at a UTF-8
 * boundary above TMK_STRING_MAX bytes (the output then says so); a NULL string counts as "" where
 * nothing else is said.
 *
 * Threads. Every function may be called from any thread at any time, many threads may share a session,
 * and only tmk_session_finish() wants to be alone with it. An operation is a plain value that belongs to
 * no thread: a task that moves between threads, or a callback, may end what another thread began.
 *
 * Signal handlers may call tmk_op_begin() with a site made by TMK_SITE, and tmk_op_end() without an
 * output, in a session that only marks: these take no lock and no memory. Nothing else here is for them.
 *
 * fork(). The child's copy of a session goes on marking, for whoever traces the child; it never writes
 * to its parent's file, and finishing it leaves that file alone. Operations that were open at the fork
 * are the parent's to end.
 *
 * A tracer knows a site by its address. A site in a library that is unloaded, with another put in its
 * place, would keep its old name in a capture that goes on meanwhile: intern the sites of such plugins.
 * Several copies of this library in one process (plugins that were linked with libtickmark.a) are fine:
 * each is attached to by itself, and a session belongs to the copy that opened it.
 *
 * Works from C (C11) and C++ (C++17) with gcc and clang, on x86-64 and arm64 Linux, at every level of
 * optimisation. Other languages call the functions of the same names that the library exports; what
 * they find nothing of there is `static inline` below, and says so.
 */
#ifndef TICKMARK_H
#define TICKMARK_H

#include <stddef.h>
#include <stdint.h>

#include "marker_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TMK_API __attribute__((visibility("default"), nothrow))

struct tmk_session;

enum tmk_phase { TMK_PHASE_TRAIN = 0, TMK_PHASE_INFER = 1 };

/*
 * What a session is about. Fill it with tmk_config_train() or tmk_config_infer() and then change
 * fields. The strings are borrowed until tmk_session_open() returns.
 */
struct tmk_config {
	size_t size; /* sizeof(struct tmk_config), set by the initialisers: lets the struct grow */
	const char *entrypoint; /* e.g. "Gpt::forward" */
	enum tmk_phase phase;
	const char *profile;		   /* build profile; default (also for NULL) "release" */
	const char *const *cargo_features; /* may be NULL when n_cargo_features is 0 */
	size_t n_cargo_features;
	const char *analysis_id; /* NULL: not known, and left out of the file */
	const char *build_id;	 /* likewise */
	int strict; /* in-process file: 1 writes ProfileSession's fields only, without tickmark's own */
};

/*
 * Inline, so that `size` is the one that the program was compiled with. Other languages: see
 * tmk_config_init().
 */
static inline struct tmk_config tmk_config_train(const char *entrypoint);
static inline struct tmk_config tmk_config_infer(const char *entrypoint);

/*
 * The same for callers without C's inline functions: `size` is the number of bytes that `config` has in
 * the caller's eyes, and no more are written. Returns 0, or -EINVAL for a size that no version had.
 */
TMK_API int tmk_config_init(struct tmk_config *config, size_t size, enum tmk_phase phase,
			    const char *entrypoint);

/*
 * Opens a session. With `path` NULL it only marks; with a path it also writes the runtime/3 file
 * there: parent directories are made, an existing file is truncated, the meta line is written at once
 * (buffered). On success *out is the session, to be given to tmk_session_finish().
 *
 * A session that was given a path and is still open when the program calls exit() is flushed there, but
 * gets no closing line.
 *
 * Errors: -EINVAL (config missing, of unknown size, or without an entrypoint), -ENOMEM, or what
 * mkdir(2) and open(2) gave; *out is then NULL. tmk_last_error() names the path.
 */
TMK_API int tmk_session_open(struct tmk_session **out, const char *path,
			     const struct tmk_config *config);

/* Of a NULL session: TMK_PHASE_TRAIN, 0, and nothing to set. */
TMK_API enum tmk_phase tmk_session_phase(const struct tmk_session *s);
TMK_API uint64_t tmk_session_step(const struct tmk_session *s);

/* Sets the step that later begins, ends and edges carry. It does not touch the counter. */
TMK_API void tmk_session_set_step(struct tmk_session *s, uint64_t step);

/*
 * Writes what is buffered, as whole lines. Without a path: nothing to do, 0. A write error is sticky:
 * it is returned here, by every later flush, and by tmk_session_finish().
 */
TMK_API int tmk_session_flush(struct tmk_session *s);

/*
 * Ends the session and frees it; the file gets its closing capture line. Operations that are still
 * open are counted there and get no line. No other thread may use `s` any more. NULL is fine.
 * Returns 0 or the first write error. The path was the caller's all along.
 */
TMK_API int tmk_session_finish(struct tmk_session *s);

/*
 * A text for the calling thread's last failed tmk_session_* call, naming the object; never NULL. Valid
 * until the next such call of the thread.
 */
TMK_API const char *tmk_last_error(void);

/*
 * A site: the constant part of an operation (static id, name, inputs), described to a tracer once.
 *
 *	TMK_SITE(name, static_id, op, inputs...);
 *
 * defines `name`, a static constant whose address is a `const struct tmk_desc *`, from string literals,
 * at file or block scope, with up to 16 inputs. A site too long for the bounds of marker_abi.h, or with
 * a NUL inside a string, does not compile. (The macro itself stands at the end of this file.)
 */

/*
 * A site from strings known only at run time. The same strings give the same site; it is never freed.
 * At most TMK_INTERN_MAX different ones are kept in a process (sites, edges and output names
 * together). Past that a new site is kept without its inputs while there is some room left, and then
 * the call returns one shared site without strings; the flags of both say what was cut. Never NULL.
 * Lock-free when the site exists already. `inputs` may be NULL when n_inputs is 0.
 */
#define TMK_INTERN_MAX 65536u
TMK_API const struct tmk_desc *tmk_site_intern(const char *static_id, const char *op,
					       const char *const *inputs, size_t n_inputs);

/*
 * An operation in flight: a plain value, to be ended on any thread. The empty one (token 0) is what a
 * begin returns while nobody listens; ending it does nothing.
 */
struct tmk_op {
	uint64_t token;
	uint64_t slot; /* in-process bookkeeping */
};

/* 1 if anybody listens here and now, else 0: what each function below tests first. */
TMK_API int tmk_enabled(void);

/*
 * Begins an operation of session `s` at `site`. With NULL for either nothing is marked. The site must
 * stay as it is until the operation was ended.
 */
TMK_API struct tmk_op tmk_op_begin(struct tmk_session *s, const struct tmk_desc *site);

/*
 * The same, with inputs that are only known now: static id and operation are those of `site`. Interns
 * the site that results; see tmk_site_intern().
 */
TMK_API struct tmk_op tmk_op_begin_inputs(struct tmk_session *s, const struct tmk_desc *site,
					  const char *const *inputs, size_t n_inputs);

/*
 * Ends it. `output` is the output's name or NULL. In a session that writes a file, an operation that is
 * unknown or already ended gives -ENOENT, writes nothing, and the session goes on; a session that only
 * marks leaves that finding to the tracer. -ENOMEM: there was no memory to begin it, so that it has no
 * line. Write errors are sticky and reported by flush and finish.
 */
TMK_API int tmk_op_end(struct tmk_session *s, struct tmk_op op, const char *output);

/*
 * As tmk_op_end(); *duration_ns gets the duration (CLOCK_MONOTONIC, never negative) where this process
 * measured it, which is in a session that writes a file. Elsewhere -ENODATA, and the mark is made.
 */
TMK_API int tmk_op_end_timed(struct tmk_session *s, struct tmk_op op, const char *output,
			     uint64_t *duration_ns);

/*
 * TMK_OP_SCOPE(s, site); begins an operation that ends, without an output, on every way out of the
 * enclosing block: at its end, by return, break, goto, or in C++ an exception. Errors of the end are
 * swallowed. Scopes nest. C code that exceptions of other languages pass through must be compiled with
 * -fexceptions; longjmp() past a scope leaves its operation open.
 *
 * In C++ it makes a tickmark::op_scope, which can also be used by itself, and ended early by its
 * end("output").
 */

/*
 * Records a duration that the caller measured between two static ids, verbatim (0 and UINT64_MAX
 * included). The ids are not checked against anything. While a tracer listens the pair is interned; see
 * tmk_site_intern(). Returns 0; write errors are sticky and reported by flush and finish.
 */
TMK_API int tmk_edge_record(struct tmk_session *s, const char *from_static_id,
			    const char *to_static_id, uint64_t duration_ns);

/* The out-of-line halves: only ever called when somebody listens. Use the functions above. */
TMK_API struct tmk_op tmk_op_begin_slow(struct tmk_session *s, const struct tmk_desc *site);
TMK_API struct tmk_op tmk_op_begin_inputs_slow(struct tmk_session *s, const struct tmk_desc *site,
					       const char *const *inputs, size_t n_inputs);
TMK_API int tmk_op_end_slow(struct tmk_session *s, struct tmk_op op, const char *output);
TMK_API int tmk_edge_record_slow(struct tmk_session *s, const char *from, const char *to,
				 uint64_t duration_ns);

/* ---- Nothing below adds to what can be called; it is how the above is made inline. ---- */

static inline struct tmk_config tmk_config_of(const char *entrypoint, enum tmk_phase phase)
{
	struct tmk_config config = {
		sizeof(struct tmk_config), entrypoint, phase, "release", NULL, 0, NULL, NULL, 0
	};

	return config;
}

static inline struct tmk_config tmk_config_train(const char *entrypoint)
{
	return tmk_config_of(entrypoint, TMK_PHASE_TRAIN);
}

static inline struct tmk_config tmk_config_infer(const char *entrypoint)
{
	return tmk_config_of(entrypoint, TMK_PHASE_INFER);
}

#define TMK_INLINE extern inline __attribute__((gnu_inline, always_inline, nothrow))

typedef uint64_t __attribute__((may_alias)) tmk_switch_word;

/*
 * The first word of the library's struct tmk_switch. Its address must come out of the GOT: a plain
 * reference from an executable would make the linker copy the object into that executable, and the
 * kernel would go on raising the original. Not volatile and without inputs, so that a loop may keep
 * the address; linked statically, the load of it is relaxed away.
 */
TMK_INLINE const volatile tmk_switch_word *tmk_switch_address(void)
{
	const volatile tmk_switch_word *word;

#if defined(__x86_64__)
	__asm__("{movq tmk_switch@GOTPCREL(%%rip), %0|mov %0, QWORD PTR tmk_switch@GOTPCREL[rip]}"
		: "=r"(word));
#elif defined(__aarch64__)
	__asm__("adrp %0, :got:tmk_switch\n\tldr %0, [%0, #:got_lo12:tmk_switch]" : "=r"(word));
#else
#error "tickmark knows x86-64 and arm64"
#endif
	return word;
}

/*
 * Where these are not inlined (their address is taken, or TMK_NO_INLINE is defined), the functions of
 * the same names in the library are called, and do the same.
 */
#ifndef TMK_NO_INLINE
TMK_INLINE int tmk_enabled(void)
{
	uint64_t word = __atomic_load_n(tmk_switch_address(), __ATOMIC_RELAXED);

	return __builtin_expect(word != 0, 0) ? 1 : 0;
}

TMK_INLINE struct tmk_op tmk_op_begin(struct tmk_session *s, const struct tmk_desc *site)
{
	struct tmk_op none = { 0, 0 };

	return tmk_enabled() ? tmk_op_begin_slow(s, site) : none;
}

TMK_INLINE struct tmk_op tmk_op_begin_inputs(struct tmk_session *s, const struct tmk_desc *site,
					     const char *const *inputs, size_t n_inputs)
{
	struct tmk_op none = { 0, 0 };

	return tmk_enabled() ? tmk_op_begin_inputs_slow(s, site, inputs, n_inputs) : none;
}

TMK_INLINE int tmk_op_end(struct tmk_session *s, struct tmk_op op, const char *output)
{
	if (__builtin_expect(!op.token, 1) || !tmk_enabled())
		return 0;
	return tmk_op_end_slow(s, op, output);
}

TMK_INLINE int tmk_edge_record(struct tmk_session *s, const char *from_static_id,
			       const char *to_static_id, uint64_t duration_ns)
{
	if (!tmk_enabled())
		return 0;
	return tmk_edge_record_slow(s, from_static_id, to_static_id, duration_ns);
}
#endif /* TMK_NO_INLINE */

#ifdef __cplusplus
} /* extern "C" */

namespace tickmark
{

/* An operation that ends with the block it was begun in. Not thread-safe by itself. */
class op_scope
{
      public:
	op_scope(struct tmk_session *s, const struct tmk_desc *site) noexcept
	    : session_(s), op_(tmk_op_begin(s, site))
	{
	}

	~op_scope()
	{
		(void)end();
	}

	op_scope(const op_scope &) = delete;
	op_scope &operator=(const op_scope &) = delete;

	/* Ends the operation now, as tmk_op_end() does; the block's end then does nothing. */
	int end(const char *output = nullptr) noexcept
	{
		struct tmk_op op = op_;

		op_.token = 0;
		return tmk_op_end(session_, op, output);
	}

      private:
	struct tmk_session *session_;
	struct tmk_op op_;
};

/* What TMK_SITE makes: a descriptor with its strings right behind it. */
template <size_t N> struct site : ::tmk_desc {
	char strings[N];
};

} /* namespace tickmark */

#define TMK_OP_SCOPE(s, site) \
	const ::tickmark::op_scope TMK_PASTE_(tmk_scope_at_, __LINE__)((s), (site))
#else
struct tmk_op_scope {
	struct tmk_session *session;
	struct tmk_op op;
};

static inline struct tmk_op_scope tmk_op_scope_begin(struct tmk_session *s,
						     const struct tmk_desc *site)
{
	struct tmk_op_scope scope = { s, tmk_op_begin(s, site) };

	return scope;
}

static inline void tmk_op_scope_end(struct tmk_op_scope *scope)
{
	(void)tmk_op_end(scope->session, scope->op, NULL);
}

#define TMK_OP_SCOPE(s, site)                                        \
	struct tmk_op_scope TMK_PASTE_(tmk_scope_at_, __LINE__)      \
		__attribute__((cleanup(tmk_op_scope_end), unused)) = \
			tmk_op_scope_begin((s), (site))
#endif /* __cplusplus */

#define TMK_PASTE_(a, b) TMK_PASTE2_(a, b)
#define TMK_PASTE2_(a, b) a##b

/*
 * The strings of a site, each ended by a NUL, and whether each keeps the rules, for 1 to 17 strings (the
 * operation and its inputs).
 */
/* clang-format off */
#define TMK_COUNT_(...) \
	TMK_COUNT2_(__VA_ARGS__, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TMK_COUNT2_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, count, ...) count

#define TMK_Z1_(a) a "\0"
#define TMK_Z2_(a, ...) a "\0" TMK_Z1_(__VA_ARGS__)
#define TMK_Z3_(a, ...) a "\0" TMK_Z2_(__VA_ARGS__)
#define TMK_Z4_(a, ...) a "\0" TMK_Z3_(__VA_ARGS__)
#define TMK_Z5_(a, ...) a "\0" TMK_Z4_(__VA_ARGS__)
#define TMK_Z6_(a, ...) a "\0" TMK_Z5_(__VA_ARGS__)
#define TMK_Z7_(a, ...) a "\0" TMK_Z6_(__VA_ARGS__)
#define TMK_Z8_(a, ...) a "\0" TMK_Z7_(__VA_ARGS__)
#define TMK_Z9_(a, ...) a "\0" TMK_Z8_(__VA_ARGS__)
#define TMK_Z10_(a, ...) a "\0" TMK_Z9_(__VA_ARGS__)
#define TMK_Z11_(a, ...) a "\0" TMK_Z10_(__VA_ARGS__)
#define TMK_Z12_(a, ...) a "\0" TMK_Z11_(__VA_ARGS__)
#define TMK_Z13_(a, ...) a "\0" TMK_Z12_(__VA_ARGS__)
#define TMK_Z14_(a, ...) a "\0" TMK_Z13_(__VA_ARGS__)
#define TMK_Z15_(a, ...) a "\0" TMK_Z14_(__VA_ARGS__)
#define TMK_Z16_(a, ...) a "\0" TMK_Z15_(__VA_ARGS__)
#define TMK_Z17_(a, ...) a "\0" TMK_Z16_(__VA_ARGS__)

#define TMK_OK_(a) (sizeof(a) <= TMK_STRING_MAX + 1 && __builtin_strlen(a) == sizeof(a) - 1)
#define TMK_OK1_(a) TMK_OK_(a)
#define TMK_OK2_(a, ...) TMK_OK_(a) && TMK_OK1_(__VA_ARGS__)
#define TMK_OK3_(a, ...) TMK_OK_(a) && TMK_OK2_(__VA_ARGS__)
#define TMK_OK4_(a, ...) TMK_OK_(a) && TMK_OK3_(__VA_ARGS__)
#define TMK_OK5_(a, ...) TMK_OK_(a) && TMK_OK4_(__VA_ARGS__)
#define TMK_OK6_(a, ...) TMK_OK_(a) && TMK_OK5_(__VA_ARGS__)
#define TMK_OK7_(a, ...) TMK_OK_(a) && TMK_OK6_(__VA_ARGS__)
#define TMK_OK8_(a, ...) TMK_OK_(a) && TMK_OK7_(__VA_ARGS__)
#define TMK_OK9_(a, ...) TMK_OK_(a) && TMK_OK8_(__VA_ARGS__)
#define TMK_OK10_(a, ...) TMK_OK_(a) && TMK_OK9_(__VA_ARGS__)
#define TMK_OK11_(a, ...) TMK_OK_(a) && TMK_OK10_(__VA_ARGS__)
#define TMK_OK12_(a, ...) TMK_OK_(a) && TMK_OK11_(__VA_ARGS__)
#define TMK_OK13_(a, ...) TMK_OK_(a) && TMK_OK12_(__VA_ARGS__)
#define TMK_OK14_(a, ...) TMK_OK_(a) && TMK_OK13_(__VA_ARGS__)
#define TMK_OK15_(a, ...) TMK_OK_(a) && TMK_OK14_(__VA_ARGS__)
#define TMK_OK16_(a, ...) TMK_OK_(a) && TMK_OK15_(__VA_ARGS__)
#define TMK_OK17_(a, ...) TMK_OK_(a) && TMK_OK16_(__VA_ARGS__)
/* clang-format on */

#define TMK_STRINGS_(static_id, ...) \
	static_id "\0" TMK_PASTE_(TMK_PASTE_(TMK_Z, TMK_COUNT_(__VA_ARGS__)), _)(__VA_ARGS__)
#define TMK_STRINGS_OK_(static_id, ...) \
	(TMK_OK_(static_id) &&          \
	 TMK_PASTE_(TMK_PASTE_(TMK_OK, TMK_COUNT_(__VA_ARGS__)), _)(__VA_ARGS__))

#define TMK_SITE_HEAD_(static_id, ...)                                                      \
	TMK_DESC_MAGIC, TMK_DESC_SITE, 0, sizeof(TMK_STRINGS_(static_id, __VA_ARGS__)) - 1, \
		1 + TMK_COUNT_(__VA_ARGS__), 0
#define TMK_SITE_LONG_ "the strings of a site are longer together than TMK_STRINGS_MAX"
#define TMK_SITE_STRING_ "a string of a site is longer than TMK_STRING_MAX or has a NUL inside"

#ifdef __cplusplus
#define TMK_SITE(name, static_id, ...)                                                     \
	static const ::tickmark::site<sizeof(TMK_STRINGS_(static_id, __VA_ARGS__))> name   \
		__attribute__((unused)) = { { TMK_SITE_HEAD_(static_id, __VA_ARGS__) },    \
					    { TMK_STRINGS_(static_id, __VA_ARGS__) } };    \
	static_assert(sizeof(TMK_STRINGS_(static_id, __VA_ARGS__)) - 1 <= TMK_STRINGS_MAX, \
		      TMK_SITE_LONG_);                                                     \
	static_assert(TMK_STRINGS_OK_(static_id, __VA_ARGS__), TMK_SITE_STRING_)
#else
/* To give a value to a flexible array is an extension of both compilers. */
#define TMK_SITE(name, static_id, ...)                                                             \
	_Pragma("GCC diagnostic push")                                                             \
		_Pragma("GCC diagnostic ignored \"-Wpedantic\"") static const struct tmk_desc name \
		__attribute__((unused)) = { TMK_SITE_HEAD_(static_id, __VA_ARGS__),                \
					    { TMK_STRINGS_(static_id, __VA_ARGS__) } };            \
	_Static_assert(TMK_STRINGS_OK_(static_id, __VA_ARGS__), TMK_SITE_STRING_);                 \
	_Pragma("GCC diagnostic pop") _Static_assert(                                              \
		sizeof(TMK_STRINGS_(static_id, __VA_ARGS__)) - 1 <= TMK_STRINGS_MAX,               \
		TMK_SITE_LONG_)
#endif

#include "window.h" /* streams and windows */

#endif /* TICKMARK_H */
