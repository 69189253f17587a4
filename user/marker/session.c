// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sessions: their configuration, opening and finishing. What happens in between is operation.c's, the
 * file that a session may write session_file.c's.
 */
#include "marker/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "marker/desc.h"
#include "marker/error.h"
#include "marker/intern.h"
#include "marker/switch.h"
#include "marker/window.h"

/* The struct as it was when it was first published: no program has a smaller one. */
#define CONFIG_SIZE_MIN 72u
_Static_assert(sizeof(struct tmk_config) == CONFIG_SIZE_MIN, "struct tmk_config may only grow");

#define CONFIG_ADVICE "fill the config with tmk_config_train() or tmk_config_infer()"

/* --- configuration */

int tmk_config_init(struct tmk_config *config, size_t size, enum tmk_phase phase,
		    const char *entrypoint)
{
	struct tmk_config c = tmk_config_train(entrypoint);

	if (!config || size < CONFIG_SIZE_MIN)
		return -EINVAL;
	c.size = size;
	c.phase = phase;
	memset(config, 0, size);
	memcpy(config, &c, size < sizeof(c) ? size : sizeof(c));
	return 0;
}

static bool is_zero(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

/*
 * Brings a config of an older or newer program into our own form. A newer one may use what we do not
 * know, and then must not be half obeyed.
 */
static int config_read(struct tmk_config *c, const struct tmk_config *theirs)
{
	size_t known;

	if (!theirs)
		return tmk_error_note(-EINVAL, CONFIG_ADVICE, "session: no config");
	if (theirs->size < CONFIG_SIZE_MIN || theirs->size > 65536)
		return tmk_error_note(-EINVAL, CONFIG_ADVICE, "session: config of size %zu",
				      theirs->size);
	known = theirs->size < sizeof(*c) ? theirs->size : sizeof(*c);
	if (!is_zero((const char *)theirs + known, theirs->size - known))
		return tmk_error_note(-EINVAL, "link the libtickmark that its header belongs to",
				      "session: config with fields of a newer version");
	memset(c, 0, sizeof(*c));
	memcpy(c, theirs, known);
	if (!c->entrypoint)
		return tmk_error_note(-EINVAL, CONFIG_ADVICE,
				      "session: config without an entrypoint");
	if (c->phase != TMK_PHASE_TRAIN && c->phase != TMK_PHASE_INFER)
		return tmk_error_note(-EINVAL, "use TMK_PHASE_TRAIN or TMK_PHASE_INFER",
				      "session '%s': phase %d", c->entrypoint, (int)c->phase);
	if (c->n_cargo_features && !c->cargo_features)
		return tmk_error_note(-EINVAL, "set cargo_features, or n_cargo_features to 0",
				      "session '%s': %zu cargo features but no list", c->entrypoint,
				      c->n_cargo_features);
	return 0;
}

/* --- descriptor */

/* `keep`: one byte, for its NUL, of each string that must still come. */
static struct tmk_desc *desc_new(const struct tmk_config *c, uint64_t id)
{
	union tmk_desc_draft draft;
	size_t keep = 2 + !!c->analysis_id + !!c->build_id;
	struct tmk_desc *desc;

	tmk_desc_begin(&draft, TMK_DESC_SESSION);
	draft.desc.serial = id;
	tmk_desc_add(&draft, c->entrypoint, keep + sizeof("train"), TMK_DESC_CUT_SESSION);
	tmk_desc_add(&draft, c->phase == TMK_PHASE_TRAIN ? "train" : "infer", keep,
		     TMK_DESC_CUT_SESSION);
	tmk_desc_add(&draft, c->profile ? c->profile : "release", keep, TMK_DESC_CUT_SESSION);
	if (c->analysis_id) {
		tmk_desc_add(&draft, c->analysis_id, keep, TMK_DESC_CUT_SESSION);
		draft.desc.flags |= TMK_DESC_HAS_ANALYSIS_ID;
	}
	if (c->build_id) {
		tmk_desc_add(&draft, c->build_id, 0, TMK_DESC_CUT_SESSION);
		draft.desc.flags |= TMK_DESC_HAS_BUILD_ID;
	}
	for (size_t i = 0; i < c->n_cargo_features; i++) {
		if (!tmk_desc_add_item(&draft, c->cargo_features[i], TMK_DESC_CUT_SESSION))
			break;
	}
	desc = malloc(tmk_desc_size(&draft.desc));
	if (desc)
		memcpy(desc, &draft.desc, tmk_desc_size(&draft.desc));
	return desc;
}

/* --- sessions */

static void session_free(struct tmk_session *s)
{
	if (!s)
		return;
	free(s->desc);
	free(s);
}

/*
 * Unique in the process also where several copies of the library live in it (a plugin that was linked
 * with a copy of its own): the upper half comes from where this copy lies.
 */
static uint64_t id_next(void)
{
	static uint32_t last;
	uint64_t copy = (uintptr_t)&tmk_switch / sizeof(tmk_switch) & 0x7fffffff;

	return copy << 32 | __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static struct tmk_session *session_new(const struct tmk_config *c)
{
	struct tmk_session *s = aligned_alloc(__alignof__(*s), sizeof(*s));

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->phase = c->phase;
	s->fork_depth = tmk_fork_depth();
	s->id = id_next();
	s->desc = desc_new(c, s->id);
	if (s->desc)
		return s;
	session_free(s);
	return NULL;
}

int tmk_session_open(struct tmk_session **out, const char *path, const struct tmk_config *config)
{
	struct tmk_session *s;
	struct tmk_config c;
	int err;

	if (!out)
		return tmk_error_note(-EINVAL, "pass the address of a pointer",
				      "session: no result");
	*out = NULL;
	err = config_read(&c, config);
	if (err)
		return err;
	s = session_new(&c);
	if (!s)
		return tmk_error_note(-ENOMEM, "free some", "session '%s': no memory",
				      c.entrypoint);
	if (path) {
		err = tmk_session_file_open(&s->file, path, s->desc, c.strict);
		if (err)
			goto cleanup;
		tmk_switch_in_process(1);
	}
	tmk_switch_register(s->desc);
	if (tmk_switch_traced()) {
		tmk_desc_touch(s->desc);
		tmk_mark_session_open(s->id, (uintptr_t)s->desc, 0, 0, 0, 0);
	}
	*out = s;
	return 0;
cleanup:
	session_free(s);
	return err;
}

enum tmk_phase tmk_session_phase(const struct tmk_session *s)
{
	return s ? s->phase : TMK_PHASE_TRAIN;
}

uint64_t tmk_session_step(const struct tmk_session *s)
{
	return s ? __atomic_load_n(&s->step, __ATOMIC_RELAXED) : 0;
}

void tmk_session_set_step(struct tmk_session *s, uint64_t step)
{
	if (s)
		__atomic_store_n(&s->step, step, __ATOMIC_RELAXED);
}

int tmk_session_flush(struct tmk_session *s)
{
	struct tmk_session_file *f = s ? tmk_session_own_file(s) : NULL;

	return f ? tmk_session_file_flush(f) : 0;
}

int tmk_session_finish(struct tmk_session *s)
{
	int err = 0;

	if (!s)
		return 0;
	if (tmk_switch_traced()) {
		tmk_desc_touch(s->desc);
		tmk_mark_session_finish(s->id, (uintptr_t)s->desc, 0, 0, 0, 0);
	}
	tmk_switch_unregister(s->desc);
	tmk_windows_finish(s);
	if (tmk_session_own_file(s)) {
		tmk_switch_in_process(-1);
		err = tmk_session_file_close(s->file);
	} else if (s->file) {
		tmk_session_file_abandon(s->file);
	}
	session_free(s);
	return err;
}

const struct tmk_desc *tmk_site_intern(const char *static_id, const char *op,
				       const char *const *inputs, size_t n_inputs)
{
	return tmk_intern_site(static_id, op, inputs, n_inputs);
}
