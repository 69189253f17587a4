/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of the summary: cells of text, in columns as wide as their widest.
 */
#ifndef TICKMARK_SINK_SUMMARY_TABLE_H
#define TICKMARK_SINK_SUMMARY_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "sink/histogram.h"

#define TMK_TABLE_COLUMNS 10
#define TMK_TABLE_NAME 40 /* columns on the screen of a name */
#define TMK_TABLE_CELL (TMK_TABLE_NAME * 4 + 8)

struct tmk_table_row {
	char cell[TMK_TABLE_COLUMNS][TMK_TABLE_CELL];
};

/* The first column is text, the others are numbers, but for the last one with `text_last`. */
void tmk_table_write(FILE *out, const struct tmk_table_row *rows, size_t n, int columns,
		     bool text_last);

/* A name of raw bytes as a cell: safe, and with an ellipsis where it was too long. */
void tmk_table_name(char out[TMK_TABLE_CELL], const char *name, size_t len, size_t width);

/* "-" where it is not known. */
void tmk_table_quantile(char out[TMK_TABLE_CELL], const struct tmk_histogram *h, double q);

/* A part of a whole, in percent; "-" of nothing. */
void tmk_table_share(char out[TMK_TABLE_CELL], double part, double whole);

#endif /* TICKMARK_SINK_SUMMARY_TABLE_H */
