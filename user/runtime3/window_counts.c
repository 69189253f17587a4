// SPDX-License-Identifier: BSD-2-Clause
/*
 * How many windows ended how: what the capture line says of them, whoever writes the file.
 */
#include "runtime3/runtime3.h"

void tmk_r3_window_count(struct tmk_window_counts *c, const char *status)
{
	switch (status[0]) {
	case 'c':
		c->closed++;
		break;
	case 'a':
		c->abandoned++;
		break;
	case 'n':
		c->not_measured++;
		break;
	case 'f':
		c->failed++;
		break;
	default:
		c->open++;
	}
}

size_t tmk_r3_window_counts_list(const struct tmk_window_counts *c,
				 struct tmk_r3_count list[TMK_R3_WINDOW_COUNTS])
{
	if (!c->closed && !c->abandoned && !c->not_measured && !c->failed && !c->open)
		return 0;
	list[0] = (struct tmk_r3_count){ "closed", c->closed };
	list[1] = (struct tmk_r3_count){ "abandoned", c->abandoned };
	list[2] = (struct tmk_r3_count){ "not_measured", c->not_measured };
	list[3] = (struct tmk_r3_count){ "failed", c->failed };
	list[4] = (struct tmk_r3_count){ "open", c->open };
	return TMK_R3_WINDOW_COUNTS;
}
