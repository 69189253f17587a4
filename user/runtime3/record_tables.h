/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The importer's structs as tables: member names, what each record is made of, and the order that the
 * array form goes by. How values are fitted to them is record.c's.
 */
#ifndef TICKMARK_RUNTIME3_RECORD_TABLES_H
#define TICKMARK_RUNTIME3_RECORD_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime3/record.h"

enum tmk_member_type {
	TMK_M_STRING,
	TMK_M_STRING_OR_NULL,
	TMK_M_U64,
	TMK_M_U64_OR_NULL,
	TMK_M_F64,
	TMK_M_F64_OR_NULL,
	TMK_M_BOOL,
	TMK_M_STRINGS,
	TMK_M_USIZES,
	TMK_M_STATE,
	TMK_M_RECORD,  /* judged on its own, as TMK_RECORD_RUN */
	TMK_M_RECORDS, /* an array of such */
};

struct tmk_member {
	unsigned char field; /* enum tmk_field */
	unsigned char type;  /* enum tmk_member_type */
	bool required;
};

struct tmk_shape {
	const char *name, *phrase;	  /* "operation", "an operation" */
	const struct tmk_member *members; /* in the order of the importer's struct */
	size_t n;
};

extern const struct tmk_shape tmk_shapes[];	  /* by enum tmk_record_kind */
extern const char *const tmk_member_type_texts[]; /* "a string", by enum tmk_member_type */

#endif /* TICKMARK_RUNTIME3_RECORD_TABLES_H */
