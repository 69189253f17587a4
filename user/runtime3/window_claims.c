// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reading a window's claims, and the rules that one line can break by itself. See window_claims.h.
 */
#include "runtime3/window_claims.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BIT(member) (UINT32_C(1) << (member))

const char *const tmk_window_status_names[TMK_W_STATUSES] = {
	[TMK_W_CLOSED] = "closed",
	[TMK_W_ABANDONED] = "abandoned",
	[TMK_W_NOT_MEASURED] = "not_measured",
	[TMK_W_FAILED] = "failed",
	[TMK_W_OPEN] = "open",
};

static const struct {
	const char *name;
	enum tmk_json_type type; /* TMK_JSON_TRUE: false will do as well */
	bool required;
} members[TMK_W_MEMBERS] = {
	[TMK_W_ID] = { "id", TMK_JSON_UNSIGNED, true },
	[TMK_W_OPENED_ON] = { "opened_on", TMK_JSON_UNSIGNED, true },
	[TMK_W_START_NS] = { "start_ns", TMK_JSON_UNSIGNED, false },
	[TMK_W_END_NS] = { "end_ns", TMK_JSON_UNSIGNED, false },
	[TMK_W_DURATION_NS] = { "duration_ns", TMK_JSON_UNSIGNED, false },
	[TMK_W_METHOD] = { "method", TMK_JSON_STRING, true },
	[TMK_W_STATUS] = { "status", TMK_JSON_STRING, true },
	[TMK_W_REASON] = { "reason", TMK_JSON_STRING, false },
	[TMK_W_ERROR] = { "error", TMK_JSON_UNSIGNED, false },
	[TMK_W_DEPTH] = { "depth", TMK_JSON_UNSIGNED, false },
	[TMK_W_PARENT] = { "parent", TMK_JSON_UNSIGNED, false },
	[TMK_W_OVERLAPS] = { "overlaps", TMK_JSON_UNSIGNED, false },
	[TMK_W_FLUSH] = { "flush", TMK_JSON_TRUE, true },
	[TMK_W_OPERATIONS] = { "operations", TMK_JSON_UNSIGNED, false },
	[TMK_W_IDLE_NS] = { "idle_ns", TMK_JSON_UNSIGNED, false },
	[TMK_W_INCOMPLETE] = { "incomplete", TMK_JSON_TRUE, false },
};

/* Which reasons go with a status. A first one that is "" says that there may be none. */
static const struct {
	const char *reasons[7];
	bool ends; /* with a time */
} statuses[TMK_W_STATUSES] = {
	[TMK_W_CLOSED] = { { "" }, true },
	[TMK_W_ABANDONED] = { { "program", "finished", "target_gone", "exec", "limit" }, true },
	[TMK_W_NOT_MEASURED] = { { "backend", "no_time", "unresolved", "opened_before_capture",
				   "start_unknown", "reused" },
				 true },
	[TMK_W_FAILED] = { { "", "backend", "recorded" }, true },
	[TMK_W_OPEN] = { { "detached", "stopped", "failed" }, false },
};

static bool says(const struct tmk_json_value *v, const char *text)
{
	return tmk_json_equals(v, text, strlen(text));
}

/* --- reading */

static enum tmk_window_member member_find(const struct tmk_json_value *key)
{
	for (int m = 0; m < TMK_W_MEMBERS; m++) {
		if (says(key, members[m].name))
			return m;
	}
	return TMK_W_MEMBERS;
}

static void member_note(struct tmk_window_claims *c, enum tmk_window_member m,
			const struct tmk_json_value *v)
{
	c->repeated |= c->seen & BIT(m);
	c->seen |= BIT(m);
	c->value[m] = *v;
	c->number[m] = v->type == TMK_JSON_UNSIGNED ? tmk_json_u64(v) : 0;
}

/* Members that are not known are somebody else's, and pass. */
static bool members_read(const struct tmk_json_value *object, struct tmk_window_claims *c)
{
	struct tmk_json_value key, value;
	struct tmk_json j;
	int more;

	tmk_json_init(&j);
	tmk_json_set(&j, object->text, object->len);
	more = tmk_json_enter(&j) ? -1 : 1;
	for (bool first = true; more > 0; first = false) {
		enum tmk_window_member m;

		more = tmk_json_next(&j, first);
		if (more <= 0)
			break;
		if (tmk_json_key(&j, &key) || tmk_json_value(&j, &value)) {
			more = -1;
			break;
		}
		m = member_find(&key);
		if (m < TMK_W_MEMBERS)
			member_note(c, m, &value);
	}
	tmk_json_free(&j);
	return more == 0;
}

bool tmk_record_stream(const struct tmk_record *r, struct tmk_facts_stream *stream)
{
	const struct tmk_json_value *v = &r->value[TMK_F_STREAM];

	if (!tmk_record_has(r, TMK_F_STREAM) || v->type != TMK_JSON_UNSIGNED)
		return false;
	stream->number = tmk_json_u64(v);
	stream->named =
		tmk_record_has(r, TMK_F_NAMED) && r->value[TMK_F_NAMED].type == TMK_JSON_TRUE;
	return true;
}

static enum tmk_window_status status_of(const struct tmk_window_claims *c)
{
	const struct tmk_json_value *v = &c->value[TMK_W_STATUS];
	int status = 0;

	if (!tmk_window_claims_has(c, TMK_W_STATUS) || v->type != TMK_JSON_STRING)
		return TMK_W_STATUSES;
	while (status < TMK_W_STATUSES && !says(v, tmk_window_status_names[status]))
		status++;
	return status;
}

bool tmk_window_claims_read(const struct tmk_record *r, struct tmk_window_claims *c)
{
	c->seen = c->repeated = 0;
	if (r->kind != TMK_RECORD_OPERATION || r->from_array || !tmk_record_has(r, TMK_F_WINDOW) ||
	    tmk_record_has(r, TMK_F_CAPTURE) || r->value[TMK_F_WINDOW].type != TMK_JSON_OBJECT ||
	    !members_read(&r->value[TMK_F_WINDOW], c))
		return false;
	c->has_stream = tmk_record_stream(r, &c->stream);
	c->status = status_of(c);
	return tmk_window_claims_has(c, TMK_W_ID) && tmk_window_claims_has(c, TMK_W_OPENED_ON) &&
	       c->value[TMK_W_ID].type == TMK_JSON_UNSIGNED &&
	       c->value[TMK_W_OPENED_ON].type == TMK_JSON_UNSIGNED;
}

/* --- judging */

struct judge {
	const struct tmk_window_claims *c;
	tmk_window_complain_fn complain;
	void *ctx;
	uint64_t complaints;
};

__attribute__((format(printf, 3, 4))) static void complain(struct judge *j, const char *rule,
							   const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	j->complaints++;
	j->complain(j->ctx, rule, what);
}

static bool has(const struct judge *j, enum tmk_window_member m)
{
	return tmk_window_claims_has(j->c, m);
}

static bool type_fits(const struct tmk_json_value *v, enum tmk_json_type type)
{
	return v->type == type || (type == TMK_JSON_TRUE && v->type == TMK_JSON_FALSE);
}

static const char *type_text(enum tmk_json_type type)
{
	return type == TMK_JSON_UNSIGNED ? "a whole number (u64)"
	       : type == TMK_JSON_STRING ? "a string"
					 : "true or false";
}

static void member_judge(struct judge *j, enum tmk_window_member m)
{
	char shown[TMK_EXCERPT];

	if (j->c->repeated & BIT(m))
		complain(j, "types", "%s is given twice", members[m].name);
	else if (has(j, m) && !type_fits(&j->c->value[m], members[m].type))
		complain(j, "types", "%s: %s is not %s", members[m].name,
			 tmk_json_excerpt(&j->c->value[m], shown), type_text(members[m].type));
	else if (!has(j, m) && members[m].required)
		complain(j, "types", "%s is missing", members[m].name);
}

static void top_member_judge(struct judge *j, const struct tmk_record *r, enum tmk_field f,
			     enum tmk_json_type type)
{
	char shown[TMK_EXCERPT];

	if (r->repeated >> f & 1)
		complain(j, "types", "%s is given twice", tmk_field_name(f));
	else if (tmk_record_has(r, f) && !type_fits(&r->value[f], type))
		complain(j, "types", "%s: %s is not %s", tmk_field_name(f),
			 tmk_json_excerpt(&r->value[f], shown), type_text(type));
}

static bool types_judge(struct judge *j, const struct tmk_record *r)
{
	for (int m = 0; m < TMK_W_MEMBERS; m++)
		member_judge(j, m);
	top_member_judge(j, r, TMK_F_STREAM, TMK_JSON_UNSIGNED);
	top_member_judge(j, r, TMK_F_NAMED, TMK_JSON_TRUE);
	return !j->complaints;
}

static void method_judge(struct judge *j)
{
	const struct tmk_json_value *v = &j->c->value[TMK_W_METHOD];
	char shown[TMK_EXCERPT];

	if (!says(v, "system") && !says(v, "device"))
		complain(j, "method", "%s is neither \"system\" nor \"device\"",
			 tmk_json_excerpt(v, shown));
}

static bool reason_known(enum tmk_window_status status, const struct tmk_json_value *reason)
{
	for (const char *const *r = statuses[status].reasons; *r; r++) {
		if (**r && says(reason, *r))
			return true;
	}
	return false;
}

static void status_judge(struct judge *j)
{
	const struct tmk_json_value *reason = &j->c->value[TMK_W_REASON];
	char shown[TMK_EXCERPT];
	const char *status;

	if (j->c->status == TMK_W_STATUSES) {
		complain(j, "status", "%s is none that is known",
			 tmk_json_excerpt(&j->c->value[TMK_W_STATUS], shown));
		return;
	}
	status = tmk_window_status_names[j->c->status];
	if (has(j, TMK_W_REASON) && !reason_known(j->c->status, reason))
		complain(j, "reason", "%s does not go with the status %s",
			 tmk_json_excerpt(reason, shown), status);
	else if (!has(j, TMK_W_REASON) && *statuses[j->c->status].reasons[0])
		complain(j, "reason", "is missing, and the status %s needs one", status);
	if (has(j, TMK_W_ERROR) && j->c->status != TMK_W_FAILED)
		complain(j, "error", "goes with the status failed, not with %s", status);
	if (has(j, TMK_W_ERROR) && !j->c->number[TMK_W_ERROR])
		complain(j, "error", "0 is no errno");
}

/* Whether its end has no time: nobody saw it. */
static bool is_endless(const struct judge *j)
{
	const struct tmk_json_value *reason = &j->c->value[TMK_W_REASON];

	if (j->c->status == TMK_W_STATUSES)
		return false;
	return !statuses[j->c->status].ends ||
	       (j->c->status == TMK_W_ABANDONED && has(j, TMK_W_REASON) &&
		(says(reason, "target_gone") || says(reason, "exec")));
}

static void end_judge(struct judge *j)
{
	const uint64_t *number = j->c->number;

	if (!has(j, TMK_W_END_NS))
		return;
	if (is_endless(j))
		complain(j, "end", "there is an end_ns where nobody saw the end");
	if (has(j, TMK_W_START_NS) && number[TMK_W_END_NS] < number[TMK_W_START_NS])
		complain(j, "end", "end_ns %" PRIu64 " is before start_ns %" PRIu64,
			 number[TMK_W_END_NS], number[TMK_W_START_NS]);
}

/* How long it was open; false where that is not known. */
static bool length_of(const struct judge *j, uint64_t *length_ns)
{
	const uint64_t *number = j->c->number;

	*length_ns = number[TMK_W_END_NS] - number[TMK_W_START_NS];
	return has(j, TMK_W_START_NS) && has(j, TMK_W_END_NS) &&
	       number[TMK_W_END_NS] >= number[TMK_W_START_NS];
}

static void closed_judge(struct judge *j)
{
	uint64_t duration_ns = j->c->number[TMK_W_DURATION_NS], length_ns;

	if (!has(j, TMK_W_START_NS) || !has(j, TMK_W_END_NS))
		complain(j, "end", "a closed window has a start_ns and an end_ns");
	if (!has(j, TMK_W_DURATION_NS))
		complain(j, "duration", "duration_ns is missing, and a closed window has one");
	else if (!duration_ns)
		complain(j, "duration", "0 is no measurement: what was not measured is left out");
	else if (says(&j->c->value[TMK_W_METHOD], "system") && length_of(j, &length_ns) &&
		 duration_ns != length_ns)
		complain(j, "duration",
			 "duration_ns %" PRIu64 " is not end_ns - start_ns, which is %" PRIu64,
			 duration_ns, length_ns);
}

static void duration_judge(struct judge *j, const struct tmk_record *r)
{
	if (tmk_record_has(r, TMK_F_DURATION_NS))
		complain(j, "duration",
			 "there is one at the top of the line, and the importer would average it");
	if (j->c->status == TMK_W_CLOSED)
		closed_judge(j);
	else if (has(j, TMK_W_DURATION_NS))
		complain(j, "duration", "only a closed window has a duration_ns");
}

static void idle_judge(struct judge *j)
{
	uint64_t idle_ns = j->c->number[TMK_W_IDLE_NS], length_ns;

	if (!has(j, TMK_W_IDLE_NS))
		return;
	if (j->c->value[TMK_W_INCOMPLETE].type == TMK_JSON_TRUE && has(j, TMK_W_INCOMPLETE))
		complain(j, "idle", "an incomplete window has no idle_ns");
	if (!has(j, TMK_W_START_NS) || !has(j, TMK_W_END_NS))
		complain(j, "idle", "there is an idle_ns without a start_ns and an end_ns");
	else if (length_of(j, &length_ns) && idle_ns > length_ns)
		complain(j, "idle",
			 "idle_ns %" PRIu64 " is more than end_ns - start_ns, which is %" PRIu64,
			 idle_ns, length_ns);
}

static void depth_judge(struct judge *j)
{
	bool nested = has(j, TMK_W_DEPTH) && j->c->number[TMK_W_DEPTH];

	if (nested && !has(j, TMK_W_PARENT))
		complain(j, "depth", "depth is %" PRIu64 ", and there is no parent",
			 j->c->number[TMK_W_DEPTH]);
	if (!nested && has(j, TMK_W_PARENT))
		complain(j, "depth", "there is a parent, and depth is %s",
			 has(j, TMK_W_DEPTH) ? "0" : "missing");
}

bool tmk_window_claims_judge(const struct tmk_record *r, const struct tmk_window_claims *c,
			     tmk_window_complain_fn complain_fn, void *ctx)
{
	struct judge j = { .c = c, .complain = complain_fn, .ctx = ctx };

	if (!types_judge(&j, r))
		return false;
	method_judge(&j);
	status_judge(&j);
	end_judge(&j);
	duration_judge(&j, r);
	idle_judge(&j);
	depth_judge(&j);
	return true;
}
