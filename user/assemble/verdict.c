// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the reckoning of a capture means for whoever ran it: the exit status, and the line that explains
 * it. The numbers are finish.c's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "assemble/assemble.h"
#include "base/report.h"

int tmk_finish_exit(const struct tmk_finish_view *f)
{
	if (f->end && !f->conserved)
		return TMK_EXIT_FAILED;
	if (!f->end || f->lost || f->malformed || f->undescribed || f->names_dropped ||
	    f->unpaired.begin_reused || f->unpaired.open_overflow || f->unpaired.no_session ||
	    f->unpaired.window_start_reused || f->windows_limit)
		return TMK_EXIT_LOSS;
	return TMK_EXIT_OK;
}

/* "…, 12 hits of an unknown session" */
static void part_add(char *text, size_t cap, uint64_t n, const char *what)
{
	size_t len = strlen(text);

	if (n)
		snprintf(text + len, cap - len, "%s%" PRIu64 " %s", len ? ", " : "", n, what);
}

void tmk_finish_tell(const struct tmk_finish_view *f, const char *object)
{
	char lost[64], text[512] = "";

	if (f->end && !f->conserved) {
		tmk_error(
			"%s: its counters contradict one another (hits are not delivered + lost); do "
			"not rely on it, and please report it",
			object);
		return;
	}
	if (tmk_finish_exit(f) == TMK_EXIT_OK)
		return;
	snprintf(lost, sizeof(lost), "of %" PRIu64 " hits", f->hits);
	part_add(text, sizeof(text), f->lost, lost);
	part_add(text, sizeof(text), f->malformed, "malformed records");
	part_add(text, sizeof(text), f->unpaired.no_session, "hits of unknown sessions");
	part_add(text, sizeof(text), f->unpaired.begin_reused, "begins of tokens in use");
	part_add(text, sizeof(text), f->unpaired.open_overflow, "begins too many at a time");
	part_add(text, sizeof(text), f->unpaired.window_start_reused, "starts of windows in use");
	part_add(text, sizeof(text), f->windows_limit, "windows too many at a time");
	part_add(text, sizeof(text), f->undescribed, "lines with a name unknown");
	part_add(text, sizeof(text), f->names_dropped, "names too many");
	if (f->end)
		tmk_error("%s: incomplete, lost: %s; what is there is right", object, text);
	else
		tmk_error("%s: incomplete, cut short%s%s; what is there is right", object,
			  *text ? ", and lost: " : "", text);
}
