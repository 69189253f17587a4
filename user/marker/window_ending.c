// SPDX-License-Identifier: BSD-2-Clause
/*
 * What follows from how a window ended. See window_ending.h.
 */
#include "marker/window_ending.h"

#include "marker/desc.h"
#include "marker/duration.h"
#include "marker/identity.h"

void tmk_window_ending_decide(const struct tmk_window_entry *e,
			      const struct tmk_window_found *found, int err,
			      struct tmk_window_ending *end)
{
	uint64_t ns;

	if (found->failed)
		err = found->failed;
	if (!e->start.backend)
		end->duration = (struct tmk_duration){
			.state = TMK_DURATION_MEASURED,
			.method = TMK_METHOD_SYSTEM,
			.ticks = { found->start_ns, found->end_ns, 0 },
		};
	if (err) {
		end->outcome = TMK_WINDOW_FAILED;
		end->err = err;
		end->duration.state = TMK_DURATION_FAILED;
		end->duration.error = err;
	} else if (end->duration.state == TMK_DURATION_PENDING) {
		end->outcome = TMK_WINDOW_PENDING;
	} else if (end->duration.state == TMK_DURATION_MEASURED &&
		   tmk_ticks_ns(&end->duration.ticks, &ns)) {
		end->outcome = TMK_WINDOW_CLOSED;
	} else {
		end->outcome = TMK_WINDOW_NOT_MEASURED;
		end->reason = e->start.backend ? "backend" : "no_time";
		end->duration.state = TMK_DURATION_NOT_MEASURED;
	}
}

uint64_t tmk_window_how(const struct tmk_window_ending *end, const struct tmk_backend *backend)
{
	uint64_t how = end->outcome;

	if (end->flush)
		how |= TMK_HOW_FLUSH;
	if (backend)
		how |= TMK_HOW_DEVICE;
	if (end->outcome == TMK_WINDOW_FAILED)
		how |= (uint64_t)(-end->err & 0xffff) << TMK_HOW_ERROR_SHIFT;
	return how;
}

void tmk_window_line_fill(struct tmk_window_entry *e, const struct tmk_window_found *found,
			  bool flush)
{
	struct tmk_r3_window *line = &e->line;

	*line = (struct tmk_r3_window){
		.n = e->start.n,
		.step = e->start.step,
		.id = e->start.token.id,
		.opened_on = e->start.token.opened_on,
		.tid = e->start.tid,
		.end_tid = tmk_thread_id(),
		.stream = e->start.stream.number,
		.has_stream = true,
		.named = e->start.stream.named,
		.has_start = true,
		.has_end = true,
		.start_ns = found->start_ns,
		.end_ns = found->end_ns,
		.device = e->start.backend != NULL,
		.flush = flush,
		.has_place = true,
		.depth = found->inside.depth,
		.overlaps = found->inside.overlaps,
		.has_parent = found->inside.parent != NULL,
		.parent = found->parent_id,
		.has_operations = true,
		.has_idle = true,
		.operations = found->inside.operations,
		.idle_ns = found->inside.idle_ns,
		.cut = e->start.name->flags & TMK_DESC_CUT_NAME,
	};
	tmk_desc_strings(e->start.name, &line->name, 1);
}

void tmk_window_line_result(struct tmk_r3_window *line, const struct tmk_window_ending *end)
{
	line->reason = end->reason;
	line->has_duration = false;
	line->error = 0;
	switch (end->outcome) {
	case TMK_WINDOW_CLOSED:
		line->status = "closed";
		line->has_duration = tmk_ticks_ns(&end->duration.ticks, &line->duration_ns);
		break;
	case TMK_WINDOW_FAILED:
		line->status = "failed";
		line->error = (uint32_t)-end->err;
		break;
	case TMK_WINDOW_ABANDONED:
	case TMK_WINDOW_LIMIT:
		line->status = "abandoned";
		break;
	default:
		line->status = "not_measured";
		break;
	}
}
