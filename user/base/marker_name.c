// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of the markers. See marker_name.h.
 */
#include <stddef.h>

#include "base/marker_name.h"
#include "capture_abi.h"

const char *tmk_marker_name(unsigned int kind)
{
	static const char *const names[TMK_REC_MARKERS] = {
		[TMK_REC_SESSION_OPEN] = "session_open",
		[TMK_REC_SESSION_FINISH] = "session_finish",
		[TMK_REC_OP_BEGIN] = "op_begin",
		[TMK_REC_OP_END] = "op_end",
		[TMK_REC_EDGE] = "edge",
		[TMK_REC_WINDOW_START] = "window_start",
		[TMK_REC_WINDOW_END] = "window_end",
		[TMK_REC_WINDOW_RESOLVE] = "window_resolve",
	};

	return kind < TMK_REC_MARKERS ? names[kind] : NULL;
}
