/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one line claims of its window, read out of its record, and whether the claims go together.
 * What other lines must say to them is check_windows.c's.
 */
#ifndef TICKMARK_RUNTIME3_WINDOW_CLAIMS_H
#define TICKMARK_RUNTIME3_WINDOW_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime3/record.h"
#include "runtime3/window_facts.h"

/* Members of "window". */
enum tmk_window_member {
	TMK_W_ID,
	TMK_W_OPENED_ON,
	TMK_W_START_NS,
	TMK_W_END_NS,
	TMK_W_DURATION_NS,
	TMK_W_METHOD,
	TMK_W_STATUS,
	TMK_W_REASON,
	TMK_W_ERROR,
	TMK_W_DEPTH,
	TMK_W_PARENT,
	TMK_W_OVERLAPS,
	TMK_W_FLUSH,
	TMK_W_OPERATIONS,
	TMK_W_IDLE_NS,
	TMK_W_INCOMPLETE,
	TMK_W_MEMBERS
};

enum tmk_window_status {
	TMK_W_CLOSED,
	TMK_W_ABANDONED,
	TMK_W_NOT_MEASURED,
	TMK_W_FAILED,
	TMK_W_OPEN,
	TMK_W_STATUSES
};

extern const char *const tmk_window_status_names[TMK_W_STATUSES];

struct tmk_window_claims {
	uint32_t seen, repeated;		    /* bits 1 << enum tmk_window_member */
	struct tmk_json_value value[TMK_W_MEMBERS]; /* valid where seen */
	uint64_t number[TMK_W_MEMBERS];		    /* likewise; 0 where it is not a whole one */
	enum tmk_window_status status;		    /* TMK_W_STATUSES: none that is known */
	bool has_stream;
	struct tmk_facts_stream stream;
};

static inline bool tmk_window_claims_has(const struct tmk_window_claims *c,
					 enum tmk_window_member m)
{
	return c->seen >> m & 1;
}

/* Whether a record is of a window such as tickmark writes; then *c is what it says. */
bool tmk_window_claims_read(const struct tmk_record *r, struct tmk_window_claims *c);

/* Called for each rule that is broken; both texts are safe to print. */
typedef void (*tmk_window_complain_fn)(void *ctx, const char *rule, const char *what);

/*
 * Judges types and values, and what holds within one line. Returns whether the types are good: if they
 * are not, nothing else was judged, and nothing else needs to be.
 */
bool tmk_window_claims_judge(const struct tmk_record *r, const struct tmk_window_claims *c,
			     tmk_window_complain_fn complain, void *ctx);

/* The stream that a line names at its top; false if it names none. */
bool tmk_record_stream(const struct tmk_record *r, struct tmk_facts_stream *stream);

#endif /* TICKMARK_RUNTIME3_WINDOW_CLAIMS_H */
