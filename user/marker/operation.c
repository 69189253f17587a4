// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operations and edges once somebody listens: numbers them, fires the markers, and hands them to the
 * session's own file where it writes one.
 *
 * Where both listen, the file's clock is read between the two markers, so that it does not charge an
 * operation with what the tracer costs.
 *
 * Without a file, begin and end run in signal handlers too: keep them free of locks and memory.
 */
#define TMK_NO_INLINE /* here the functions that the header inlines are defined */
#include "marker/window.h"

#include <errno.h>
#include <string.h>

#include "marker/desc.h"
#include "marker/identity.h"
#include "marker/intern.h"
#include "marker/stream.h"
#include "marker/switch.h"

/* The slot of an operation that the file had no memory for. */
#define SLOT_NO_MEMORY UINT64_MAX

static uint64_t token_next(struct tmk_session *s)
{
	return __atomic_add_fetch(&s->last_token, 1, __ATOMIC_RELAXED);
}

struct tmk_op tmk_op_begin_slow(struct tmk_session *s, const struct tmk_desc *site)
{
	struct tmk_op op = { 0, 0 };
	struct tmk_op_slot *slot = NULL;
	struct tmk_session_file *f;
	bool traced = tmk_switch_traced(), named;
	uint64_t step, stream;

	if (!s || !tmk_desc_is_site(site))
		return op;
	f = tmk_session_own_file(s);
	if (!f && !traced)
		return op;
	op.token = token_next(s);
	step = tmk_session_step_now(s);
	stream = tmk_thread_stream(&named);
	if (named)
		op.token |= TMK_TOKEN_NAMED;
	if (f) {
		slot = tmk_session_file_prepare(f, site, step, stream, named);
		op.slot = slot ? slot->index1 : SLOT_NO_MEMORY;
	}
	if (traced) {
		tmk_desc_touch(s->desc);
		tmk_desc_touch(site);
		tmk_mark_op_begin(s->id, (uintptr_t)s->desc, (uintptr_t)site, op.token, step,
				  stream);
	}
	if (slot)
		tmk_session_file_start(f, slot, op.token, tmk_session_window_table(s));
	return op;
}

struct tmk_op tmk_op_begin_inputs_slow(struct tmk_session *s, const struct tmk_desc *site,
				       const char *const *inputs, size_t n_inputs)
{
	struct tmk_str strings[2];

	if (!s || !tmk_desc_is_site(site) || tmk_desc_strings(site, strings, 2) < 2)
		return (struct tmk_op){ 0, 0 };
	return tmk_op_begin_slow(
		s, tmk_intern_site(strings[0].data, strings[1].data, inputs, n_inputs));
}

static void op_end_mark(const struct tmk_session *s, uint64_t token, uint64_t step,
			const char *output)
{
	const struct tmk_desc *name = output ? tmk_intern_name(output) : NULL;

	tmk_desc_touch(s->desc);
	if (name)
		tmk_desc_touch(name);
	tmk_mark_op_end(s->id, (uintptr_t)s->desc, token, step, (uintptr_t)name, 0);
}

/* *duration_ns is left alone where nobody here measured it. */
static int op_end(struct tmk_session *s, struct tmk_op op, const char *output,
		  uint64_t *duration_ns)
{
	struct tmk_session_file *f;
	struct tmk_op_end end;

	if (!s || !op.token)
		return -ENODATA;
	f = tmk_session_own_file(s);
	end.now = f ? tmk_session_file_now() : 0;
	end.step = tmk_session_step_now(s);
	if (tmk_switch_traced())
		op_end_mark(s, op.token, end.step, output);
	if (!f)
		return -ENODATA;
	if (op.slot == SLOT_NO_MEMORY)
		return -ENOMEM;
	end.token = op.token;
	end.index1 = op.slot;
	end.last_token = __atomic_load_n(&s->last_token, __ATOMIC_RELAXED);
	end.output = output;
	return tmk_session_file_end(f, &end, duration_ns);
}

int tmk_op_end_slow(struct tmk_session *s, struct tmk_op op, const char *output)
{
	uint64_t duration_ns;
	int err = op_end(s, op, output, &duration_ns);

	return err == -ENODATA ? 0 : err;
}

int tmk_op_end_timed(struct tmk_session *s, struct tmk_op op, const char *output,
		     uint64_t *duration_ns)
{
	uint64_t ignored;

	return op_end(s, op, output, duration_ns ? duration_ns : &ignored);
}

int tmk_edge_record_slow(struct tmk_session *s, const char *from, const char *to,
			 uint64_t duration_ns)
{
	struct tmk_edge_event e = { .from = from, .to = to, .duration_ns = duration_ns };
	struct tmk_session_file *f = s ? tmk_session_own_file(s) : NULL;
	bool traced = tmk_switch_traced();

	if (!s || (!f && !traced))
		return 0;
	e.token = token_next(s);
	e.step = tmk_session_step_now(s);
	if (traced) {
		const struct tmk_desc *edge = tmk_intern_edge(from, to);

		tmk_desc_touch(s->desc);
		tmk_desc_touch(edge);
		tmk_mark_edge(s->id, (uintptr_t)s->desc, (uintptr_t)edge, e.token, e.step,
			      duration_ns);
	}
	if (f)
		tmk_session_file_edge(f, &e);
	return 0;
}

/* --- the same as the inline functions, for callers that have none */

int tmk_enabled(void)
{
	return __atomic_load_n(tmk_switch_address(), __ATOMIC_RELAXED) != 0;
}

struct tmk_op tmk_op_begin(struct tmk_session *s, const struct tmk_desc *site)
{
	return tmk_enabled() ? tmk_op_begin_slow(s, site) : (struct tmk_op){ 0, 0 };
}

struct tmk_op tmk_op_begin_inputs(struct tmk_session *s, const struct tmk_desc *site,
				  const char *const *inputs, size_t n_inputs)
{
	return tmk_enabled() ? tmk_op_begin_inputs_slow(s, site, inputs, n_inputs)
			     : (struct tmk_op){ 0, 0 };
}

int tmk_op_end(struct tmk_session *s, struct tmk_op op, const char *output)
{
	return op.token && tmk_enabled() ? tmk_op_end_slow(s, op, output) : 0;
}

int tmk_edge_record(struct tmk_session *s, const char *from_static_id, const char *to_static_id,
		    uint64_t duration_ns)
{
	return tmk_enabled() ? tmk_edge_record_slow(s, from_static_id, to_static_id, duration_ns)
			     : 0;
}
