// SPDX-License-Identifier: BSD-2-Clause
/*
 * A window's token as text, for other threads, processes and machines.
 */
#define TMK_NO_INLINE
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "marker/error.h"
#include "runtime3/json.h"
#include "tickmark/window.h"

int tmk_window_format(struct tmk_window w, char *text, size_t size)
{
	return snprintf(text, size, "{\"id\":%" PRIu64 ",\"opened_on\":%" PRIu64 "}", w.id,
			w.opened_on);
}

static bool number_take(const struct tmk_json_value *v, uint64_t *to)
{
	uint64_t n = 0;

	if (v->type != TMK_JSON_UNSIGNED)
		return false;
	for (size_t i = 0; i < v->len; i++)
		n = n * 10 + (uint64_t)(v->text[i] - '0'); /* fits, the reader says */
	*to = n;
	return true;
}

/* Members that are not ours are skipped, as whoever sends a token may know more. */
static bool members_take(struct tmk_json *j, struct tmk_window *w)
{
	bool has_id = false, has_stream = false;
	struct tmk_json_value key, value;
	int got;

	for (bool first = true; (got = tmk_json_next(j, first)) == 1; first = false) {
		if (tmk_json_key(j, &key) || tmk_json_value(j, &value))
			return false;
		if (tmk_json_equals(&key, "id", 2)) {
			if (has_id || !number_take(&value, &w->id))
				return false;
			has_id = true;
		} else if (tmk_json_equals(&key, "opened_on", 9)) {
			if (has_stream || !number_take(&value, &w->opened_on))
				return false;
			has_stream = true;
		}
	}
	return got == 0 && has_id && tmk_json_end(j) == 0;
}

int tmk_window_parse(const char *text, struct tmk_window *w)
{
	struct tmk_window parsed = { 0, 0 };
	struct tmk_json j;
	bool good = false;

	tmk_json_init(&j);
	if (text) {
		tmk_json_set(&j, text, strlen(text));
		good = tmk_json_peek(&j) == '{' && !tmk_json_enter(&j) && members_take(&j, &parsed);
	}
	tmk_json_free(&j);
	if (!good)
		return tmk_error_note(-EINVAL, "it looks like {\"id\":5,\"opened_on\":7}",
				      "window: text that is none: %.64s", text ? text : "(null)");
	*w = parsed;
	return 0;
}
