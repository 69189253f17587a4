/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One record of candle-graph/runtime/3 (an event, a run's metadata, a document's head): which members
 * it must have, of what type, and what the importer's derived code makes of duplicates, nulls, unknown
 * members and the array form. What holds between records (ids, one meta line) is check.c's.
 */
#ifndef TICKMARK_RUNTIME3_RECORD_H
#define TICKMARK_RUNTIME3_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime3/json.h"

/* Every member name that means something in some record. */
enum tmk_field {
	TMK_F_NONE,
	TMK_F_OP,
	TMK_F_CFG,
	TMK_F_MIN,
	TMK_F_MAX,
	TMK_F_KEY,
	TMK_F_RUN,
	TMK_F_KIND,
	TMK_F_STEP,
	TMK_F_ROOT,
	TMK_F_NORM,
	TMK_F_PHASE,
	TMK_F_SHAPE,
	TMK_F_DTYPE,
	TMK_F_STATE,
	TMK_F_SCHEMA,
	TMK_F_SOURCE,
	TMK_F_INPUTS,
	TMK_F_OUTPUT,
	TMK_F_DEVICE,
	TMK_F_VALUES,
	TMK_F_PROFILE,
	TMK_F_ABS_MAX,
	TMK_F_TENSORS,
	TMK_F_BUILD_ID,
	TMK_F_EVENT_ID,
	TMK_F_STATIC_ID,
	TMK_F_GRADIENTS,
	TMK_F_ENTRYPOINT,
	TMK_F_STORAGE_ID,
	TMK_F_CONTIGUOUS,
	TMK_F_OPERATIONS,
	TMK_F_ANALYSIS_ID,
	TMK_F_DURATION_NS,
	TMK_F_TO_STATIC_ID,
	TMK_F_EDGE_TIMINGS,
	TMK_F_REQUIRES_GRAD,
	TMK_F_CARGO_FEATURES,
	TMK_F_FROM_STATIC_ID,
	TMK_F_NONFINITE_COUNT,
	TMK_F_SATURATED_COUNT,
	/* tickmark's own, unknown to the importer: what is made of them is not its verdict */
	TMK_F_NAMED,
	TMK_F_STREAM,
	TMK_F_WINDOW,
	TMK_F_CAPTURE,
	TMK_F_START_NS,
	TMK_F_UNFINISHED,
	TMK_FIELDS
};

enum tmk_record_kind {
	TMK_RECORD_META,
	TMK_RECORD_TENSOR,
	TMK_RECORD_OPERATION,
	TMK_RECORD_GRADIENT,
	TMK_RECORD_VALUE,
	TMK_RECORD_EDGE_TIMING,
	TMK_RECORD_RUN,	     /* a document's "run" */
	TMK_RECORD_DOCUMENT, /* a document as a whole */
	TMK_RECORD_UNKNOWN,
};

/*
 * The importer reads the same structs in three ways, which differ in what they let pass.
 */
enum tmk_record_rules {
	/* A line of JSONL: buffered whole, so all of it is strict; then picked apart by "kind". */
	TMK_RULES_LINE,
	/* A document on one line: typed straight from the text; unknown members are skipped. */
	TMK_RULES_TYPED,
	/* A document on many lines: first a generic tree, all strict, the last duplicate wins. */
	TMK_RULES_TREE,
};

struct tmk_record {
	uint64_t seen, repeated;   /* bits 1 << enum tmk_field; repeated: never under TREE */
	bool from_array;	   /* its values came by position, not by name */
	size_t elements;	   /* of the array form, the kind not counted */
	enum tmk_record_kind kind; /* of a line; otherwise as asked for */
	struct tmk_json_value value[TMK_FIELDS]; /* valid where seen; the last of repeated ones */
};

/*
 * Reads the object or array that j is at. `kind` is ignored for TMK_RULES_LINE, where the record says
 * it itself. Returns 0 (also for a value that is neither object nor array: nothing is then seen, and
 * *is_record is false), -EBADMSG or -ENOMEM as json.h.
 */
int tmk_record_read(struct tmk_json *j, enum tmk_record_rules rules, enum tmk_record_kind kind,
		    struct tmk_record *r, bool *is_record);

/* Called for each thing that is wrong with a record; `text` is safe to print. */
typedef void (*tmk_record_complain_fn)(void *ctx, const char *text);

/* Judges types and presence of members, the array form, and a gradient's norm. */
void tmk_record_judge(const struct tmk_record *r, enum tmk_record_rules rules,
		      tmk_record_complain_fn complain, void *ctx);

static inline bool tmk_record_has(const struct tmk_record *r, enum tmk_field f)
{
	return r->seen >> f & 1;
}

/* The event_id where there is one that is a string; else NULL. */
const struct tmk_json_value *tmk_record_event_id(const struct tmk_record *r);

const char *tmk_field_name(enum tmk_field f);
enum tmk_field tmk_field_find(const struct tmk_json_value *name);
/* "an operation", "a meta line"… */
const char *tmk_record_phrase(enum tmk_record_kind kind);

#define TMK_EXCERPT 64
/* A value as a message shows it, cut and safe to print: "abc…", 1.0, an array. Returns out. */
const char *tmk_json_excerpt(const struct tmk_json_value *v, char out[TMK_EXCERPT]);

#endif /* TICKMARK_RUNTIME3_RECORD_H */
