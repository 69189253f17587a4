// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reading one record in each of the importer's three ways, and fitting its values to the tables of
 * record_tables.c. JSON itself is read in json.c.
 */
#include "runtime3/record.h"

#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "runtime3/record_tables.h"

const char *tmk_record_phrase(enum tmk_record_kind kind)
{
	return tmk_shapes[kind].phrase;
}

static enum tmk_record_kind kind_of(const struct tmk_json_value *v)
{
	if (v->type != TMK_JSON_STRING)
		return TMK_RECORD_UNKNOWN;
	for (int k = TMK_RECORD_META; k <= TMK_RECORD_EDGE_TIMING; k++) {
		if (tmk_json_equals(v, tmk_shapes[k].name, strlen(tmk_shapes[k].name)))
			return k;
	}
	return TMK_RECORD_UNKNOWN;
}

/* --- reading */

static void field_note(struct tmk_record *r, enum tmk_field f, enum tmk_record_rules rules)
{
	uint64_t bit = UINT64_C(1) << f;

	if (rules != TMK_RULES_TREE)
		r->repeated |= r->seen & bit;
	r->seen |= bit;
}

/*
 * Whether a member's value is read strictly. Typed straight from the text, what the struct does not
 * have is skipped, and so are, for now, the parts of a document, which are gone through one by one later.
 */
static bool is_strict(enum tmk_record_rules rules, enum tmk_record_kind kind, enum tmk_field f)
{
	if (rules != TMK_RULES_TYPED)
		return true;
	if (kind == TMK_RECORD_DOCUMENT)
		return false;
	for (size_t i = 0; i < tmk_shapes[kind].n; i++) {
		if (tmk_shapes[kind].members[i].field == f)
			return true;
	}
	return false;
}

static int object_read(struct tmk_json *j, enum tmk_record_rules rules, struct tmk_record *r)
{
	struct tmk_json_value key;
	bool first = true;
	int more;

	for (;; first = false) {
		enum tmk_field f;
		int err;

		more = tmk_json_next(j, first);
		if (more <= 0)
			return more;
		j->lenient = false;
		err = tmk_json_key(j, &key);
		if (err)
			return err;
		f = tmk_field_find(&key);
		j->lenient = !is_strict(rules, r->kind, f);
		err = tmk_json_value(j, &r->value[f]);
		j->lenient = false;
		if (err)
			return err;
		field_note(r, f, rules);
	}
}

/* The array form: members by position, in a line behind the kind. */
static int array_read(struct tmk_json *j, enum tmk_record_rules rules, struct tmk_record *r)
{
	bool kind_due = rules == TMK_RULES_LINE;

	r->from_array = true;
	for (bool first = true;; first = false) {
		enum tmk_field f = TMK_F_NONE;
		int err, more = tmk_json_next(j, first);

		if (more <= 0)
			return more;
		if (kind_due)
			f = TMK_F_KIND;
		else if (r->elements < tmk_shapes[r->kind].n)
			f = tmk_shapes[r->kind].members[r->elements].field;
		r->elements += !kind_due;
		err = tmk_json_value(j, &r->value[f]);
		if (err)
			return err;
		if (kind_due)
			r->kind = kind_of(&r->value[f]);
		kind_due = false;
		field_note(r, f, rules);
	}
}

int tmk_record_read(struct tmk_json *j, enum tmk_record_rules rules, enum tmk_record_kind kind,
		    struct tmk_record *r, bool *is_record)
{
	int c = tmk_json_peek(j), err;

	r->seen = r->repeated = 0;
	r->from_array = false;
	r->elements = 0;
	r->kind = rules == TMK_RULES_LINE ? TMK_RECORD_UNKNOWN : kind;
	*is_record = c == '{' || c == '[';
	if (!*is_record)
		return tmk_json_value(j, &r->value[TMK_F_NONE]);
	err = tmk_json_enter(j);
	if (err)
		return err;
	err = c == '{' ? object_read(j, rules, r) : array_read(j, rules, r);
	if (!err && c == '{' && rules == TMK_RULES_LINE && tmk_record_has(r, TMK_F_KIND))
		r->kind = kind_of(&r->value[TMK_F_KIND]);
	return err;
}

const struct tmk_json_value *tmk_record_event_id(const struct tmk_record *r)
{
	const struct tmk_json_value *v = &r->value[TMK_F_EVENT_ID];

	return tmk_record_has(r, TMK_F_EVENT_ID) && v->type == TMK_JSON_STRING ? v : NULL;
}

/* --- judging */

const char *tmk_json_excerpt(const struct tmk_json_value *v, char out[TMK_EXCERPT])
{
	bool quoted = v->type == TMK_JSON_STRING;
	size_t most = TMK_EXCERPT - 8, n;

	if (v->type == TMK_JSON_ARRAY)
		return "an array";
	if (v->type == TMK_JSON_OBJECT)
		return "an object";
	tmk_safe(out + quoted, most, v->text, v->len < most ? v->len : most);
	n = strlen(out + quoted) + quoted;
	if (quoted)
		out[0] = '"';
	snprintf(out + n, TMK_EXCERPT - n, "%s%s", v->len >= most ? "…" : "", quoted ? "\"" : "");
	return out;
}

enum gradient_state { PRESENT, MISSING, ZERO, NON_FINITE, NO_STATE };

static enum gradient_state state_named(const struct tmk_json_value *v)
{
	static const char *const names[] = { "present", "missing", "zero", "non_finite" };

	for (int s = PRESENT; s < NO_STATE; s++) {
		if (tmk_json_equals(v, names[s], strlen(names[s])))
			return s;
	}
	return NO_STATE;
}

/* A unit variant's content is null; out of a line's buffer, {} passes for it too. */
static bool is_unit(const struct tmk_json_value *v, enum tmk_record_rules rules)
{
	struct tmk_json j;
	bool empty;

	if (v->type != TMK_JSON_OBJECT || rules != TMK_RULES_LINE)
		return v->type == TMK_JSON_NULL;
	tmk_json_init(&j);
	tmk_json_set(&j, v->text, v->len);
	empty = !tmk_json_enter(&j) && !tmk_json_next(&j, true);
	tmk_json_free(&j);
	return empty;
}

/*
 * A state as an object, {"zero":null}, which serde takes for any enum. One member; out of a tree, where
 * the last duplicate has won, one name.
 */
static enum gradient_state state_object(const struct tmk_json_value *v, enum tmk_record_rules rules)
{
	enum gradient_state state = NO_STATE, s;
	struct tmk_json_value key, content = { 0 };
	size_t members = 0;
	struct tmk_json j;
	int more;

	tmk_json_init(&j);
	tmk_json_set(&j, v->text, v->len);
	more = tmk_json_enter(&j) ? -1 : 1;
	while (more > 0) {
		more = tmk_json_next(&j, members == 0);
		if (more <= 0)
			break;
		if (tmk_json_key(&j, &key) || tmk_json_value(&j, &content)) {
			more = -1;
			break;
		}
		s = state_named(&key);
		if (s == NO_STATE || (members && (rules != TMK_RULES_TREE || s != state)))
			more = -1;
		state = s;
		members++;
	}
	tmk_json_free(&j);
	return more == 0 && members && is_unit(&content, rules) ? state : NO_STATE;
}

static enum gradient_state state_of(const struct tmk_json_value *v, enum tmk_record_rules rules)
{
	if (v->type == TMK_JSON_STRING)
		return state_named(v);
	return v->type == TMK_JSON_OBJECT ? state_object(v, rules) : NO_STATE;
}

/* Whether each element is of one type; *bad is the first that is not. */
static bool elements_are(const struct tmk_json_value *array, enum tmk_json_type type,
			 struct tmk_json_value *bad)
{
	struct tmk_json j;
	bool first = true, good = false;

	tmk_json_init(&j);
	tmk_json_set(&j, array->text, array->len);
	if (!tmk_json_enter(&j)) {
		for (;; first = false) {
			int more = tmk_json_next(&j, first);

			good = !more;
			if (more <= 0 || tmk_json_value(&j, bad) || bad->type != type)
				break;
		}
	}
	tmk_json_free(&j);
	return good;
}

static bool type_fits(const struct tmk_json_value *v, enum tmk_member_type type,
		      enum tmk_record_rules rules)
{
	enum tmk_json_type is = v->type;

	switch (type) {
	case TMK_M_STRING_OR_NULL:
		return is == TMK_JSON_STRING || is == TMK_JSON_NULL;
	case TMK_M_STRING:
		return is == TMK_JSON_STRING;
	case TMK_M_U64_OR_NULL:
		return is == TMK_JSON_UNSIGNED || is == TMK_JSON_NULL;
	case TMK_M_U64:
		return is == TMK_JSON_UNSIGNED;
	case TMK_M_F64_OR_NULL:
		return is == TMK_JSON_UNSIGNED || is == TMK_JSON_NUMBER || is == TMK_JSON_NULL;
	case TMK_M_F64:
		return is == TMK_JSON_UNSIGNED || is == TMK_JSON_NUMBER;
	case TMK_M_BOOL:
		return is == TMK_JSON_TRUE || is == TMK_JSON_FALSE;
	case TMK_M_STATE:
		return state_of(v, rules) != NO_STATE;
	case TMK_M_RECORD:
		return is == TMK_JSON_OBJECT || is == TMK_JSON_ARRAY;
	case TMK_M_STRINGS:
	case TMK_M_USIZES:
	case TMK_M_RECORDS:
		return is == TMK_JSON_ARRAY;
	}
	return false;
}

/* Writes what is wrong with one member's value, or nothing. */
static void value_judge(enum tmk_field f, const struct tmk_json_value *v, enum tmk_member_type type,
			enum tmk_record_rules rules, tmk_record_complain_fn complain, void *ctx)
{
	char shown[TMK_EXCERPT], text[256];
	struct tmk_json_value bad = { 0 };

	if (!type_fits(v, type, rules)) {
		snprintf(text, sizeof(text), "%s: %s is not %s", tmk_field_name(f),
			 tmk_json_excerpt(v, shown), tmk_member_type_texts[type]);
		complain(ctx, text);
		return;
	}
	if (type != TMK_M_STRINGS && type != TMK_M_USIZES)
		return;
	if (elements_are(v, type == TMK_M_STRINGS ? TMK_JSON_STRING : TMK_JSON_UNSIGNED, &bad))
		return;
	snprintf(text, sizeof(text), "%s: is not %s: it holds %s", tmk_field_name(f),
		 tmk_member_type_texts[type], tmk_json_excerpt(&bad, shown));
	complain(ctx, text);
}

static void gradient_judge(const struct tmk_record *r, enum tmk_record_rules rules,
			   tmk_record_complain_fn complain, void *ctx)
{
	const struct tmk_json_value *norm = &r->value[TMK_F_NORM];

	if (!tmk_record_has(r, TMK_F_STATE) || !tmk_record_has(r, TMK_F_NORM) ||
	    !type_fits(norm, TMK_M_F64, rules))
		return;
	switch (state_of(&r->value[TMK_F_STATE], rules)) {
	case MISSING:
		complain(ctx, "norm: a missing gradient must not carry one");
		break;
	case ZERO:
		if (norm->number != 0)
			complain(ctx, "norm: must be 0 where the state is zero");
		break;
	case PRESENT:
		if (norm->number == 0)
			complain(ctx, "norm: must not be 0 where the state is present (say zero)");
		break;
	case NON_FINITE:
		complain(ctx, "norm: must not be finite where the state is non_finite");
		break;
	case NO_STATE:
		break;
	}
}

void tmk_record_judge(const struct tmk_record *r, enum tmk_record_rules rules,
		      tmk_record_complain_fn complain, void *ctx)
{
	char text[256];

	if (r->from_array && r->kind == TMK_RECORD_META)
		complain(ctx, "a meta event must be an object, not an array");
	if (r->from_array && r->elements > tmk_shapes[r->kind].n) {
		snprintf(text, sizeof(text),
			 "an array of %zu values is too long for %s (at most %zu)", r->elements,
			 tmk_shapes[r->kind].phrase, tmk_shapes[r->kind].n);
		complain(ctx, text);
	}
	for (size_t i = 0; i < tmk_shapes[r->kind].n; i++) {
		const struct tmk_member *m = &tmk_shapes[r->kind].members[i];
		uint64_t bit = UINT64_C(1) << m->field;

		if (!(r->seen & bit)) {
			if (!m->required)
				continue;
			snprintf(text, sizeof(text), "%s: missing, and %s needs it",
				 tmk_field_name(m->field), tmk_shapes[r->kind].phrase);
			complain(ctx, text);
		} else if (r->repeated & bit) {
			snprintf(text, sizeof(text), "%s: given twice", tmk_field_name(m->field));
			complain(ctx, text);
		} else {
			value_judge(m->field, &r->value[m->field], m->type, rules, complain, ctx);
		}
	}
	if (r->kind == TMK_RECORD_GRADIENT)
		gradient_judge(r, rules, complain, ctx);
}
