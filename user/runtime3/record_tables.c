// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tables of record_tables.h, and finding a name in them.
 */
#include "runtime3/record_tables.h"

#include <string.h>

/* --- names */

static const char *const field_names[TMK_FIELDS] = {
	[TMK_F_NONE] = "",
	[TMK_F_OP] = "op",
	[TMK_F_CFG] = "cfg",
	[TMK_F_MIN] = "min",
	[TMK_F_MAX] = "max",
	[TMK_F_KEY] = "key",
	[TMK_F_RUN] = "run",
	[TMK_F_KIND] = "kind",
	[TMK_F_STEP] = "step",
	[TMK_F_ROOT] = "root",
	[TMK_F_NORM] = "norm",
	[TMK_F_PHASE] = "phase",
	[TMK_F_SHAPE] = "shape",
	[TMK_F_DTYPE] = "dtype",
	[TMK_F_STATE] = "state",
	[TMK_F_SCHEMA] = "schema",
	[TMK_F_SOURCE] = "source",
	[TMK_F_INPUTS] = "inputs",
	[TMK_F_OUTPUT] = "output",
	[TMK_F_DEVICE] = "device",
	[TMK_F_VALUES] = "values",
	[TMK_F_PROFILE] = "profile",
	[TMK_F_ABS_MAX] = "abs_max",
	[TMK_F_TENSORS] = "tensors",
	[TMK_F_BUILD_ID] = "build_id",
	[TMK_F_EVENT_ID] = "event_id",
	[TMK_F_STATIC_ID] = "static_id",
	[TMK_F_GRADIENTS] = "gradients",
	[TMK_F_ENTRYPOINT] = "entrypoint",
	[TMK_F_STORAGE_ID] = "storage_id",
	[TMK_F_CONTIGUOUS] = "contiguous",
	[TMK_F_OPERATIONS] = "operations",
	[TMK_F_ANALYSIS_ID] = "analysis_id",
	[TMK_F_DURATION_NS] = "duration_ns",
	[TMK_F_TO_STATIC_ID] = "to_static_id",
	[TMK_F_EDGE_TIMINGS] = "edge_timings",
	[TMK_F_REQUIRES_GRAD] = "requires_grad",
	[TMK_F_CARGO_FEATURES] = "cargo_features",
	[TMK_F_FROM_STATIC_ID] = "from_static_id",
	[TMK_F_NONFINITE_COUNT] = "nonfinite_count",
	[TMK_F_SATURATED_COUNT] = "saturated_count",
	[TMK_F_NAMED] = "named",
	[TMK_F_STREAM] = "stream",
	[TMK_F_WINDOW] = "window",
	[TMK_F_CAPTURE] = "capture",
	[TMK_F_START_NS] = "start_ns",
	[TMK_F_UNFINISHED] = "unfinished",
};

/* The same by length, the common ones first; each list ends in TMK_F_NONE. */
#define LONGEST_NAME 15
static const unsigned char fields_by_length[LONGEST_NAME + 1][10] = {
	[2] = { TMK_F_OP },
	[3] = { TMK_F_MIN, TMK_F_MAX, TMK_F_KEY, TMK_F_CFG, TMK_F_RUN },
	[4] = { TMK_F_KIND, TMK_F_STEP, TMK_F_ROOT, TMK_F_NORM },
	[5] = { TMK_F_PHASE, TMK_F_SHAPE, TMK_F_DTYPE, TMK_F_STATE, TMK_F_NAMED },
	[6] = { TMK_F_INPUTS, TMK_F_STREAM, TMK_F_OUTPUT, TMK_F_WINDOW, TMK_F_SOURCE, TMK_F_DEVICE,
		TMK_F_SCHEMA, TMK_F_VALUES },
	[7] = { TMK_F_PROFILE, TMK_F_ABS_MAX, TMK_F_TENSORS, TMK_F_CAPTURE },
	[8] = { TMK_F_EVENT_ID, TMK_F_START_NS, TMK_F_BUILD_ID },
	[9] = { TMK_F_STATIC_ID, TMK_F_GRADIENTS },
	[10] = { TMK_F_UNFINISHED, TMK_F_ENTRYPOINT, TMK_F_STORAGE_ID, TMK_F_CONTIGUOUS,
		 TMK_F_OPERATIONS },
	[11] = { TMK_F_DURATION_NS, TMK_F_ANALYSIS_ID },
	[12] = { TMK_F_TO_STATIC_ID, TMK_F_EDGE_TIMINGS },
	[13] = { TMK_F_REQUIRES_GRAD },
	[14] = { TMK_F_FROM_STATIC_ID, TMK_F_CARGO_FEATURES },
	[15] = { TMK_F_NONFINITE_COUNT, TMK_F_SATURATED_COUNT },
};

const char *tmk_field_name(enum tmk_field f)
{
	return field_names[f];
}

enum tmk_field tmk_field_find(const struct tmk_json_value *name)
{
	char plain[LONGEST_NAME];
	const char *text = name->text;
	size_t len = name->len;

	if (name->escaped) {
		text = plain;
		len = tmk_json_unescape(name, plain, sizeof(plain));
	}
	if (len > LONGEST_NAME)
		return TMK_F_NONE;
	for (const unsigned char *f = fields_by_length[len]; *f; f++) {
		if (field_names[*f][0] == text[0] && !memcmp(field_names[*f], text, len))
			return *f;
	}
	return TMK_F_NONE;
}

/* --- what each record is made of */

const char *const tmk_member_type_texts[] = {
	[TMK_M_STRING] = "a string",
	[TMK_M_STRING_OR_NULL] = "a string or null",
	[TMK_M_U64] = "a whole number (u64)",
	[TMK_M_U64_OR_NULL] = "a whole number (u64) or null",
	[TMK_M_F64] = "a number",
	[TMK_M_F64_OR_NULL] = "a number or null",
	[TMK_M_BOOL] = "true or false",
	[TMK_M_STRINGS] = "an array of strings",
	[TMK_M_USIZES] = "an array of whole numbers (usize)",
	[TMK_M_STATE] = "one of \"present\", \"missing\", \"zero\", \"non_finite\"",
	[TMK_M_RECORD] = "an object",
	[TMK_M_RECORDS] = "an array",
};

/* In the order of the importer's structs, which is the order of the array form. */
static const struct tmk_member run_members[] = {
	{ TMK_F_ENTRYPOINT, TMK_M_STRING, true },
	{ TMK_F_PROFILE, TMK_M_STRING, true },
	{ TMK_F_CARGO_FEATURES, TMK_M_STRINGS, false },
	{ TMK_F_CFG, TMK_M_STRINGS, false },
	{ TMK_F_ANALYSIS_ID, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_BUILD_ID, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_PHASE, TMK_M_STRING_OR_NULL, false },
};

static const struct tmk_member meta_members[] = {
	{ TMK_F_SCHEMA, TMK_M_STRING, true },
	{ TMK_F_ENTRYPOINT, TMK_M_STRING, true },
	{ TMK_F_PROFILE, TMK_M_STRING, true },
	{ TMK_F_CARGO_FEATURES, TMK_M_STRINGS, false },
	{ TMK_F_CFG, TMK_M_STRINGS, false },
	{ TMK_F_ANALYSIS_ID, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_BUILD_ID, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_PHASE, TMK_M_STRING_OR_NULL, false },
};

static const struct tmk_member tensor_members[] = {
	{ TMK_F_EVENT_ID, TMK_M_STRING, true },
	{ TMK_F_STATIC_ID, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_SOURCE, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_STEP, TMK_M_U64_OR_NULL, false },
	{ TMK_F_SHAPE, TMK_M_USIZES, true },
	{ TMK_F_DTYPE, TMK_M_STRING, true },
	{ TMK_F_DEVICE, TMK_M_STRING, true },
	{ TMK_F_CONTIGUOUS, TMK_M_BOOL, true },
	{ TMK_F_REQUIRES_GRAD, TMK_M_BOOL, true },
	{ TMK_F_STORAGE_ID, TMK_M_STRING_OR_NULL, false },
};

static const struct tmk_member operation_members[] = {
	{ TMK_F_EVENT_ID, TMK_M_STRING, true },
	{ TMK_F_OP, TMK_M_STRING, true },
	{ TMK_F_STATIC_ID, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_SOURCE, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_INPUTS, TMK_M_STRINGS, false },
	{ TMK_F_OUTPUT, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_STEP, TMK_M_U64_OR_NULL, false },
	{ TMK_F_DURATION_NS, TMK_M_U64_OR_NULL, false },
};

static const struct tmk_member gradient_members[] = {
	{ TMK_F_EVENT_ID, TMK_M_STRING, true },	  { TMK_F_ROOT, TMK_M_STRING, true },
	{ TMK_F_KEY, TMK_M_STRING, true },	  { TMK_F_STATE, TMK_M_STATE, true },
	{ TMK_F_STEP, TMK_M_U64_OR_NULL, false }, { TMK_F_NORM, TMK_M_F64_OR_NULL, false },
};

static const struct tmk_member value_members[] = {
	{ TMK_F_EVENT_ID, TMK_M_STRING, true },
	{ TMK_F_STATIC_ID, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_SOURCE, TMK_M_STRING_OR_NULL, false },
	{ TMK_F_STEP, TMK_M_U64_OR_NULL, false },
	{ TMK_F_MIN, TMK_M_F64, true },
	{ TMK_F_MAX, TMK_M_F64, true },
	{ TMK_F_ABS_MAX, TMK_M_F64, true },
	{ TMK_F_NONFINITE_COUNT, TMK_M_U64, false },
	{ TMK_F_SATURATED_COUNT, TMK_M_U64, false },
};

static const struct tmk_member edge_timing_members[] = {
	{ TMK_F_EVENT_ID, TMK_M_STRING, true },	    { TMK_F_FROM_STATIC_ID, TMK_M_STRING, true },
	{ TMK_F_TO_STATIC_ID, TMK_M_STRING, true }, { TMK_F_DURATION_NS, TMK_M_U64, true },
	{ TMK_F_STEP, TMK_M_U64_OR_NULL, false },
};

static const struct tmk_member document_members[] = {
	{ TMK_F_SCHEMA, TMK_M_STRING, true },	      { TMK_F_RUN, TMK_M_RECORD, true },
	{ TMK_F_TENSORS, TMK_M_RECORDS, false },      { TMK_F_OPERATIONS, TMK_M_RECORDS, false },
	{ TMK_F_GRADIENTS, TMK_M_RECORDS, false },    { TMK_F_VALUES, TMK_M_RECORDS, false },
	{ TMK_F_EDGE_TIMINGS, TMK_M_RECORDS, false },
};

#define MEMBERS(m) m, sizeof(m) / sizeof(m[0])
const struct tmk_shape tmk_shapes[] = {
	[TMK_RECORD_META] = { "meta", "a meta line", MEMBERS(meta_members) },
	[TMK_RECORD_TENSOR] = { "tensor", "a tensor", MEMBERS(tensor_members) },
	[TMK_RECORD_OPERATION] = { "operation", "an operation", MEMBERS(operation_members) },
	[TMK_RECORD_GRADIENT] = { "gradient", "a gradient", MEMBERS(gradient_members) },
	[TMK_RECORD_VALUE] = { "value", "a value", MEMBERS(value_members) },
	[TMK_RECORD_EDGE_TIMING] = { "edge_timing", "an edge_timing",
				     MEMBERS(edge_timing_members) },
	[TMK_RECORD_RUN] = { "run", "a run", MEMBERS(run_members) },
	[TMK_RECORD_DOCUMENT] = { "document", "a document", MEMBERS(document_members) },
	[TMK_RECORD_UNKNOWN] = { "unknown", "an event", NULL, 0 },
};
