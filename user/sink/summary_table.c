// SPDX-License-Identifier: BSD-2-Clause
/*
 * Laying out tables. See summary_table.h. Every string from a target passes tmk_safe().
 */
#include "sink/summary_table.h"

#include <string.h>

#include "base/format.h"
#include "base/report.h"
#include "tickmark/marker_abi.h"

void tmk_table_name(char out[TMK_TABLE_CELL], const char *name, size_t len, size_t max)
{
	char safe[TMK_STRING_MAX + 1];
	size_t width = 0, i;
	bool whole;

	tmk_safe(safe, sizeof(safe), name, len);
	whole = tmk_safe_width(safe) <= max;
	for (i = 0; safe[i]; i++) {
		width += ((unsigned char)safe[i] & 0xc0) != 0x80;
		if (!whole && width == max)
			break;
	}
	snprintf(out, TMK_TABLE_CELL, "%.*s%s", (int)i, safe, whole ? "" : "…");
}

void tmk_table_quantile(char out[TMK_TABLE_CELL], const struct tmk_histogram *h, double q)
{
	uint64_t value;

	if (tmk_histogram_quantile(h, q, &value))
		tmk_format_ns(out, value);
	else
		strcpy(out, "-");
}

void tmk_table_share(char out[TMK_TABLE_CELL], double part, double whole)
{
	if (whole > 0)
		snprintf(out, TMK_TABLE_CELL, "%.1f %%", 100 * part / whole);
	else
		strcpy(out, "-");
}

void tmk_table_write(FILE *out, const struct tmk_table_row *rows, size_t n, int columns,
		     bool text_last)
{
	size_t width[TMK_TABLE_COLUMNS] = { 0 };

	for (size_t i = 0; i < n; i++)
		for (int c = 0; c < columns; c++)
			if (tmk_safe_width(rows[i].cell[c]) > width[c])
				width[c] = tmk_safe_width(rows[i].cell[c]);
	for (size_t i = 0; i < n; i++) {
		for (int c = 0; c < columns; c++) {
			/* printf counts bytes, the terminal columns. */
			int pad = (int)(width[c] - tmk_safe_width(rows[i].cell[c]));
			bool text = !c || (text_last && c == columns - 1);

			fprintf(out, "%s%*s%s", c ? "  " : "", text ? 0 : pad, "", rows[i].cell[c]);
			if (text && c < columns - 1)
				fprintf(out, "%*s", pad, "");
		}
		fputc('\n', out);
	}
}
