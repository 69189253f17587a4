// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the lines of runtime3.h, byte for byte as serde would. What the values are, and where the bytes
 * go, is the caller's.
 *
 * An operation's line is written once for each operation of a running program, so it is built with bare
 * pointers in memory that was measured first: every `_max` below must be an upper bound of what its
 * `_put` writes. All other lines go through the buffer piece by piece.
 */
#include "runtime3/runtime3.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/decimal.h"

#define ADD(b, literal) tmk_buf_append(b, literal, sizeof(literal) - 1)
#define PUT(p, literal) ((char *)memcpy(p, literal, sizeof(literal) - 1) + sizeof(literal) - 1)

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* --- strings */

/* One input byte becomes at most six: \u00xx, or a replacement of three. */
static size_t string_max(size_t len)
{
	return 6 * len + 2;
}

/*
 * The length of the UTF-8 sequence at s, negative if it is none: then that of the part which a decoder
 * replaces as one (the longest beginning of a well-formed sequence, else one byte).
 */
static int utf8_sequence(const unsigned char *s, const unsigned char *end)
{
	unsigned char lowest = 0x80, highest = 0xbf;
	int len;

	switch (s[0]) {
	case 0xc2 ... 0xdf:
		len = 2;
		break;
	case 0xe0: /* below U+0800 is overlong */
		lowest = 0xa0;
		len = 3;
		break;
	case 0xed: /* from U+D800 on are surrogates */
		highest = 0x9f;
		len = 3;
		break;
	case 0xe1 ... 0xec:
	case 0xee ... 0xef:
		len = 3;
		break;
	case 0xf0: /* below U+10000 is overlong */
		lowest = 0x90;
		len = 4;
		break;
	case 0xf4: /* U+10FFFF is the last */
		highest = 0x8f;
		len = 4;
		break;
	case 0xf1 ... 0xf3:
		len = 4;
		break;
	default:
		return -1;
	}
	for (int i = 1; i < len; i++) {
		if (end - s <= i || s[i] < lowest || s[i] > highest)
			return -i;
		lowest = 0x80;
		highest = 0xbf;
	}
	return len;
}

static char *escape_put(char *p, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";

	*p++ = '\\';
	switch (c) {
	case '\b':
		*p++ = 'b';
		return p;
	case '\t':
		*p++ = 't';
		return p;
	case '\n':
		*p++ = 'n';
		return p;
	case '\f':
		*p++ = 'f';
		return p;
	case '\r':
		*p++ = 'r';
		return p;
	case '"':
	case '\\':
		*p++ = (char)c;
		return p;
	default:
		p = PUT(p, "u00");
		*p++ = hex[c >> 4];
		*p++ = hex[c & 15];
		return p;
	}
}

/* Whether a byte stands for itself: printable ASCII and DEL, but for quote and backslash. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Whether eight bytes all do. */
static bool are_plain(uint64_t word)
{
	const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
	uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
	uint64_t bad = word;

	/* A borrow only ever comes out of a byte that is bad itself, so no word passes wrongly. */
	bad |= word - ones * 0x20;
	bad |= quote - ones;
	bad |= backslash - ones;
	return !(bad & tops);
}

/*
 * Copies the plain beginning of a string, as long as whole words of it are plain, and returns how long it
 * is. Short strings and the rest of long ones are words that overlap what was copied before.
 */
static size_t plain_put(char *p, const unsigned char *s, size_t len)
{
	uint64_t word;
	size_t i = 0;

	for (; len - i >= 8; i += 8) {
		memcpy(&word, s + i, 8);
		if (!are_plain(word))
			return i;
		memcpy(p + i, &word, 8);
	}
	if (len >= 8) {
		memcpy(&word, s + len - 8, 8);
		if (!are_plain(word))
			return i;
		memcpy(p + len - 8, &word, 8);
		return len;
	}
	if (len >= 4) {
		uint32_t first, last;

		memcpy(&first, s, 4);
		memcpy(&last, s + len - 4, 4);
		if (!are_plain(first | (uint64_t)last << 32))
			return 0;
		memcpy(p, &first, 4);
		memcpy(p + len - 4, &last, 4);
		return len;
	}
	return 0;
}

/* What is not plain, and the few bytes around it. */
static char *awkward_put(char *p, const unsigned char *s, const unsigned char *end)
{
	while (s < end) {
		int len;

		if (is_plain(*s)) {
			*p++ = (char)*s++;
			continue;
		}
		if (*s < 0x80) {
			p = escape_put(p, *s++);
			continue;
		}
		len = utf8_sequence(s, end);
		if (len > 0) {
			memcpy(p, s, (size_t)len);
			p += len;
			s += len;
		} else {
			p = PUT(p, REPLACEMENT);
			s -= len;
		}
	}
	return p;
}

static inline char *string_put(char *p, struct tmk_str str)
{
	const unsigned char *s = (const unsigned char *)str.data;
	size_t plain;

	*p++ = '"';
	plain = plain_put(p, s, str.len);
	p += plain;
	if (plain < str.len)
		p = awkward_put(p, s + plain, s + str.len);
	*p++ = '"';
	return p;
}

void tmk_r3_escape(struct tmk_buf *b, struct tmk_str s)
{
	if (tmk_buf_reserve(b, string_max(s.len)))
		b->len = (size_t)(string_put(b->data + b->len, s) - b->data);
}

static void strings_add(struct tmk_buf *b, const struct tmk_str *s, size_t n)
{
	ADD(b, "[");
	for (size_t i = 0; i < n; i++) {
		if (i)
			ADD(b, ",");
		tmk_r3_escape(b, s[i]);
	}
	ADD(b, "]");
}

/* --- pieces that several lines share */

static void number_add(struct tmk_buf *b, const char *key, uint64_t v)
{
	tmk_buf_puts(b, key);
	tmk_buf_putu64(b, v);
}

#define NAMED ",\"named\":true"

static void stream_add(struct tmk_buf *b, uint64_t stream, bool named)
{
	number_add(b, ",\"stream\":", stream);
	if (named)
		ADD(b, NAMED);
}

/* The phase is the session's own string, so it is escaped like any other. */
#define PUT_EVENT_ID(p, phase, what, step, n)                                      \
	({                                                                         \
		char *at_ = string_put(p, phase) - 1; /* over its closing quote */ \
		at_ = PUT(at_, what);                                              \
		at_ = tmk_decimal_put(at_, step);                                  \
		*at_++ = '-';                                                      \
		at_ = tmk_decimal_put(at_, n);                                     \
		PUT(at_, "\",");                                                   \
	})

#define EVENT_ID_MAX(phase) (string_max((phase).len) + sizeof("-window--\",") + 2 * TMK_DECIMAL_MAX)

static void op_id_add(struct tmk_buf *b, struct tmk_str phase, uint64_t step, uint64_t n)
{
	if (tmk_buf_reserve(b, EVENT_ID_MAX(phase)))
		b->len = (size_t)(PUT_EVENT_ID(b->data + b->len, phase, "-op-", step, n) - b->data);
}

static void window_id_add(struct tmk_buf *b, struct tmk_str phase, uint64_t step, uint64_t n)
{
	if (tmk_buf_reserve(b, EVENT_ID_MAX(phase)))
		b->len = (size_t)(PUT_EVENT_ID(b->data + b->len, phase, "-window-", step, n) -
				  b->data);
}

static void edge_id_add(struct tmk_buf *b, struct tmk_str phase, uint64_t step, uint64_t n)
{
	if (tmk_buf_reserve(b, EVENT_ID_MAX(phase)))
		b->len = (size_t)(PUT_EVENT_ID(b->data + b->len, phase, "-edge-", step, n) -
				  b->data);
}

static char *truncated_put(char *p, uint16_t cut)
{
	static const struct {
		uint16_t flag;
		const char *name;
	} parts[] = {
		{ TMK_DESC_CUT_STATIC_ID, "\"static_id\"," }, { TMK_DESC_CUT_OP, "\"op\"," },
		{ TMK_DESC_CUT_INPUTS, "\"inputs\"," },	      { TMK_DESC_CUT_NAME, "\"output\"," },
		{ TMK_DESC_CUT_SESSION, "\"session\"," },
	};

	p = PUT(p, ",\"truncated\":[");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t len = strlen(parts[i].name);

		if (cut & parts[i].flag)
			p = (char *)memcpy(p, parts[i].name, len) + len;
	}
	p[-1] = ']'; /* over the last comma */
	return p;
}

#define CUT_FLAGS                                                                             \
	(TMK_DESC_CUT_STATIC_ID | TMK_DESC_CUT_OP | TMK_DESC_CUT_INPUTS | TMK_DESC_CUT_NAME | \
	 TMK_DESC_CUT_SESSION)
#define TRUNCATED_MAX 80

static void truncated_add(struct tmk_buf *b, uint16_t cut)
{
	if ((cut & CUT_FLAGS) && tmk_buf_reserve(b, TRUNCATED_MAX))
		b->len = (size_t)(truncated_put(b->data + b->len, cut) - b->data);
}

/* --- lines */

static void meta_members_add(struct tmk_buf *b, const struct tmk_r3_meta *m)
{
	ADD(b, "\"entrypoint\":");
	tmk_r3_escape(b, m->entrypoint);
	ADD(b, ",\"profile\":");
	tmk_r3_escape(b, m->profile);
	ADD(b, ",\"cargo_features\":");
	strings_add(b, m->cargo_features, m->n_cargo_features);
	ADD(b, ",\"cfg\":[]");
	if (m->analysis_id.data) {
		ADD(b, ",\"analysis_id\":");
		tmk_r3_escape(b, m->analysis_id);
	}
	if (m->build_id.data) {
		ADD(b, ",\"build_id\":");
		tmk_r3_escape(b, m->build_id);
	}
	ADD(b, ",\"phase\":");
	tmk_r3_escape(b, m->phase);
}

void tmk_r3_meta_line(struct tmk_buf *b, const struct tmk_r3_meta *m, bool dual)
{
	ADD(b, "{\"kind\":\"meta\",\"schema\":\"" TMK_RUNTIME3_SCHEMA "\",");
	meta_members_add(b, m);
	if (dual) {
		ADD(b, ",\"run\":{");
		meta_members_add(b, m);
		ADD(b, "}");
	}
	truncated_add(b, m->cut ? TMK_DESC_CUT_SESSION : 0);
	ADD(b, "}\n");
}

/* 320: all keys of the line, and then some. 8: its numbers beside the event id's. */
size_t tmk_r3_op_line_max(const struct tmk_r3_op *op)
{
	return EVENT_ID_MAX(op->phase) + op->site->len + string_max(op->output.len) +
	       8 * TMK_DECIMAL_MAX + TRUNCATED_MAX + 320;
}

char *tmk_r3_op_line_put(char *p, const struct tmk_r3_op *op, bool strict)
{
	uint16_t cut = op->cut | op->site->cut;

	p = PUT(p, "{\"kind\":\"operation\",\"event_id\":");
	p = PUT_EVENT_ID(p, op->phase, "-op-", op->begin_step, op->n);
	p = (char *)memcpy(p, op->site->json, op->site->len) + op->site->len;
	if (op->output.data) {
		p = PUT(p, ",\"output\":");
		p = string_put(p, op->output);
	}
	p = PUT(p, ",\"step\":");
	p = tmk_decimal_put(p, op->end_step);
	p = PUT(p, ",\"duration_ns\":");
	p = tmk_decimal_put(p, op->duration_ns);
	if (strict)
		return PUT(p, "}\n");
	p = PUT(p, ",\"start_ns\":");
	p = tmk_decimal_put(p, op->start_ns);
	p = PUT(p, ",\"pid\":");
	p = tmk_decimal_put(p, op->pid);
	p = PUT(p, ",\"tid\":");
	p = tmk_decimal_put(p, op->tid);
	p = PUT(p, ",\"stream\":");
	p = tmk_decimal_put(p, op->stream);
	if (op->named)
		p = PUT(p, NAMED);
	if (op->end_tid != op->tid) {
		p = PUT(p, ",\"end_tid\":");
		p = tmk_decimal_put(p, op->end_tid);
	}
	if (cut & CUT_FLAGS)
		p = truncated_put(p, cut);
	return PUT(p, "}\n");
}

void tmk_r3_op_line(struct tmk_buf *b, const struct tmk_r3_op *op, bool strict)
{
	if (tmk_buf_reserve(b, tmk_r3_op_line_max(op)))
		b->len = (size_t)(tmk_r3_op_line_put(b->data + b->len, op, strict) - b->data);
}

void tmk_r3_edge_line(struct tmk_buf *b, const struct tmk_r3_edge *e, bool strict)
{
	ADD(b, "{\"kind\":\"edge_timing\",\"event_id\":");
	edge_id_add(b, e->phase, e->step, e->n);
	ADD(b, "\"from_static_id\":");
	tmk_r3_escape(b, e->from);
	ADD(b, ",\"to_static_id\":");
	tmk_r3_escape(b, e->to);
	number_add(b, ",\"duration_ns\":", e->duration_ns);
	number_add(b, ",\"step\":", e->step);
	if (!strict) {
		number_add(b, ",\"start_ns\":", e->start_ns);
		number_add(b, ",\"pid\":", e->pid);
		number_add(b, ",\"tid\":", e->tid);
		truncated_add(b, e->cut);
	}
	ADD(b, "}\n");
}

void tmk_r3_unfinished_line(struct tmk_buf *b, const struct tmk_r3_unfinished *u)
{
	ADD(b, "{\"kind\":\"operation\",\"event_id\":");
	op_id_add(b, u->phase, u->begin_step, u->n);
	tmk_buf_append(b, u->site->json, u->site->len);
	number_add(b, ",\"step\":", u->begin_step);
	number_add(b, ",\"pid\":", u->pid);
	number_add(b, ",\"tid\":", u->tid);
	stream_add(b, u->stream, u->named);
	number_add(b, ",\"unfinished\":{\"start_ns\":", u->start_ns);
	ADD(b, ",\"reason\":\"");
	tmk_buf_puts(b, u->reason);
	ADD(b, "\"}");
	truncated_add(b, u->site->cut);
	ADD(b, "}\n");
}

/* What was not measured is left out here, never written as 0. */
static void window_times_add(struct tmk_buf *b, const struct tmk_r3_window *w)
{
	if (w->has_start)
		number_add(b, ",\"start_ns\":", w->start_ns);
	if (w->has_end)
		number_add(b, ",\"end_ns\":", w->end_ns);
	if (w->has_duration)
		number_add(b, ",\"duration_ns\":", w->duration_ns);
	tmk_buf_puts(b, w->device ? ",\"method\":\"device\"" : ",\"method\":\"system\"");
}

static void window_status_add(struct tmk_buf *b, const struct tmk_r3_window *w)
{
	ADD(b, ",\"status\":\"");
	tmk_buf_puts(b, w->status);
	ADD(b, "\"");
	if (w->reason) {
		ADD(b, ",\"reason\":\"");
		tmk_buf_puts(b, w->reason);
		ADD(b, "\"");
	}
	if (w->error)
		number_add(b, ",\"error\":", w->error);
}

static void window_inside_add(struct tmk_buf *b, const struct tmk_r3_window *w)
{
	if (w->has_place)
		number_add(b, ",\"depth\":", w->depth);
	if (w->has_place && w->has_parent)
		number_add(b, ",\"parent\":", w->parent);
	if (w->has_place)
		number_add(b, ",\"overlaps\":", w->overlaps);
	tmk_buf_puts(b, w->flush ? ",\"flush\":true" : ",\"flush\":false");
	if (w->has_operations)
		number_add(b, ",\"operations\":", w->operations);
	if (w->has_idle)
		number_add(b, ",\"idle_ns\":", w->idle_ns);
	if (w->incomplete)
		ADD(b, ",\"incomplete\":true");
}

void tmk_r3_window_line(struct tmk_buf *b, const struct tmk_r3_window *w)
{
	ADD(b, "{\"kind\":\"operation\",\"event_id\":");
	window_id_add(b, w->phase, w->step, w->n);
	ADD(b, "\"op\":");
	tmk_r3_escape(b, w->name);
	number_add(b, ",\"inputs\":[],\"step\":", w->step);
	number_add(b, ",\"pid\":", w->pid);
	if (w->tid)
		number_add(b, ",\"tid\":", w->tid);
	if (w->has_stream)
		stream_add(b, w->stream, w->named);
	if (w->end_tid && w->end_tid != w->tid)
		number_add(b, ",\"end_tid\":", w->end_tid);
	number_add(b, ",\"window\":{\"id\":", w->id);
	number_add(b, ",\"opened_on\":", w->opened_on);
	window_times_add(b, w);
	window_status_add(b, w);
	window_inside_add(b, w);
	ADD(b, "}");
	truncated_add(b, w->cut & TMK_DESC_CUT_NAME ? TMK_DESC_CUT_OP : 0);
	ADD(b, "}\n");
}

static void counts_add(struct tmk_buf *b, const char *key, const struct tmk_r3_count *counts,
		       size_t n)
{
	if (!n)
		return;
	tmk_buf_puts(b, key);
	for (size_t i = 0; i < n; i++) {
		tmk_buf_puts(b, i ? ",\"" : "{\"");
		tmk_buf_puts(b, counts[i].name);
		number_add(b, "\":", counts[i].value);
	}
	ADD(b, "}");
}

static void exit_status_add(struct tmk_buf *b, uint32_t status)
{
	int wait_status = (int)status;

	if (WIFSIGNALED(wait_status))
		number_add(b, ",\"exit\":{\"signal\":", (uint64_t)WTERMSIG(wait_status));
	else
		number_add(b, ",\"exit\":{\"code\":", (uint64_t)WEXITSTATUS(wait_status));
	ADD(b, "}");
}

static void clock_add(struct tmk_buf *b, const struct tmk_r3_capture *c)
{
	ADD(b, ",\"clock\":{\"id\":\"CLOCK_MONOTONIC\",\"anchors\":[");
	for (size_t i = 0; i < c->n_anchors; i++) {
		number_add(b,
			   i ? ",{\"monotonic_ns\":" : "{\"monotonic_ns\":", c->anchors[i].mono_ns);
		number_add(b, ",\"realtime_ns\":", c->anchors[i].real_ns);
		ADD(b, "}");
	}
	ADD(b, "]}");
}

void tmk_r3_capture_line(struct tmk_buf *b, const struct tmk_r3_capture *c)
{
	ADD(b, "{\"kind\":\"operation\",\"event_id\":\"capture\",\"op\":\"capture\",\"inputs\":[],"
	       "\"capture\":{\"status\":\"");
	tmk_buf_puts(b, c->status);
	ADD(b, "\",\"source\":\"");
	tmk_buf_puts(b, c->source);
	number_add(b, "\",\"start_ns\":", c->start_ns);
	number_add(b, ",\"end_ns\":", c->end_ns);
	clock_add(b, c);
	number_add(b, ",\"pid\":", c->pid);
	if (c->comm.data) {
		ADD(b, ",\"comm\":");
		tmk_r3_escape(b, c->comm);
	}
	if (c->exit_known)
		exit_status_add(b, c->exit_status);
	number_add(b, ",\"operations\":", c->operations);
	number_add(b, ",\"edges\":", c->edges);
	number_add(b, ",\"unfinished\":", c->unfinished);
	number_add(b, ",\"truncated\":", c->truncated);
	counts_add(b, ",\"windows\":", c->windows, c->n_windows);
	counts_add(b, ",\"hits\":", c->hits, c->n_hits);
	counts_add(b, ",\"delivered\":", c->delivered, c->n_delivered);
	counts_add(b, ",\"lost\":", c->lost, c->n_lost);
	counts_add(b, ",\"unpaired\":", c->unpaired, c->n_unpaired);
	counts_add(b, ",\"overhead\":", c->overhead, c->n_overhead);
	ADD(b, "}}\n");
}

/* --- sites */

int tmk_r3_site_render(struct tmk_r3_site *site, struct tmk_str static_id, struct tmk_str op,
		       const struct tmk_str *inputs, size_t n_inputs, uint16_t cut)
{
	struct tmk_buf b = { 0 };

	ADD(&b, "\"op\":");
	tmk_r3_escape(&b, op);
	ADD(&b, ",\"static_id\":");
	tmk_r3_escape(&b, static_id);
	ADD(&b, ",\"inputs\":");
	strings_add(&b, inputs, n_inputs);
	if (b.err) {
		tmk_buf_free(&b);
		return -ENOMEM;
	}
	*site = (struct tmk_r3_site){ b.data, b.len, cut };
	return 0;
}

void tmk_r3_site_free(struct tmk_r3_site *site)
{
	if (!site)
		return;
	free(site->json);
	memset(site, 0, sizeof(*site));
}
