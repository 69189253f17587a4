// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bytes of runtime/3 lines: escaping against a second, slow implementation of the rule, whole lines
 * against what serde prints, and the bound that the fast writer relies on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/decimal.h"
#include "runtime3/check.h"
#include "runtime3/runtime3.h"

#define S(literal) ((struct tmk_str){ literal, sizeof(literal) - 1 })
#define FFFD "\xef\xbf\xbd"

static void assert_text(const struct tmk_buf *b, const char *want)
{
	assert_int_equal(b->err, 0);
	if (b->len != strlen(want) || memcmp(b->data, want, b->len))
		fail_msg("got  %.*s\nwant %s", (int)b->len, b->data, want);
}

static void assert_escaped(struct tmk_str s, const char *want, size_t want_len)
{
	struct tmk_buf b = { 0 };

	tmk_r3_escape(&b, s);
	assert_int_equal(b.err, 0);
	assert_true(b.len == want_len + 2 && b.data[0] == '"' && b.data[b.len - 1] == '"');
	assert_memory_equal(b.data + 1, want, want_len);
	tmk_buf_free(&b);
}

/* --- the rule once more, one byte at a time */

static size_t slow_ascii(char *out, unsigned char c)
{
	switch (c) {
	case '"':
		return (size_t)sprintf(out, "\\\"");
	case '\\':
		return (size_t)sprintf(out, "\\\\");
	case '\b':
		return (size_t)sprintf(out, "\\b");
	case '\t':
		return (size_t)sprintf(out, "\\t");
	case '\n':
		return (size_t)sprintf(out, "\\n");
	case '\f':
		return (size_t)sprintf(out, "\\f");
	case '\r':
		return (size_t)sprintf(out, "\\r");
	default:
		if (c < 0x20)
			return (size_t)sprintf(out, "\\u%04x", c);
		*out = (char)c;
		return 1;
	}
}

/* Decodes by arithmetic, not by ranges of bytes. 0: not a character; *bad = bytes that count as one. */
static size_t slow_decode(const unsigned char *s, size_t len, size_t *bad)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t need = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	uint32_t cp = s[0] & (0xffu >> (need + 1));

	*bad = 1;
	if (s[0] < 0xc0 || s[0] > 0xf7)
		return 0;
	for (size_t i = 1; i <= need; i++) {
		/* Could the bytes so far still become a character? Fill up with the lowest and highest. */
		uint32_t low = cp << 6 * (need - i), high = low | ((1u << 6 * (need - i)) - 1);

		if (high < least[need] || low > 0x10ffff || (low >= 0xd800 && high <= 0xdfff))
			return 0;
		*bad = i;
		if (i == need)
			return need;
		if (i >= len || (s[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (s[i] & 0x3f);
	}
	return 0;
}

static size_t slow_escape(char *out, const unsigned char *s, size_t len)
{
	size_t n = 0, bad;

	for (size_t i = 0; i < len;) {
		size_t need;

		if (s[i] < 0x80) {
			n += slow_ascii(out + n, s[i++]);
			continue;
		}
		need = slow_decode(s + i, len - i, &bad);
		if (need) {
			memcpy(out + n, s + i, need);
			n += need;
			i += need;
		} else {
			memcpy(out + n, FFFD, 3);
			n += 3;
			i += bad;
		}
	}
	return n;
}

static void assert_like_slow(const char *s, size_t len)
{
	char *want = malloc(6 * len + 1);

	assert_non_null(want);
	assert_escaped((struct tmk_str){ s, len }, want,
		       slow_escape(want, (const unsigned char *)s, len));
	free(want);
}

static void conf26_ascii_escapes_like_serde(void **state)
{
	char s[40];

	(void)state;
	/* Every byte, at every place of strings of every length that the word-wise copy treats apart. */
	for (int c = 0; c < 0x80; c++) {
		for (size_t len = 1; len <= 35; len++) {
			for (size_t at = 0; at < len; at++) {
				memset(s, 'x', len);
				s[at] = (char)c;
				assert_like_slow(s, len);
			}
		}
	}
	assert_escaped(S("\b\t\n\f\r\"\\/\x7f\x1f\x01\0"),
		       "\\b\\t\\n\\f\\r\\\"\\\\/\x7f\\u001f\\u0001\\u0000", 34);
}

static void conf26_every_character_stays_raw(void **state)
{
	(void)state;
	for (uint32_t cp = 0x80; cp <= 0x10ffff; cp++) {
		char s[4];
		size_t n = 0;

		if (cp >= 0xd800 && cp <= 0xdfff)
			continue;
		if (cp < 0x800) {
			s[n++] = (char)(0xc0 | cp >> 6);
		} else if (cp < 0x10000) {
			s[n++] = (char)(0xe0 | cp >> 12);
			s[n++] = (char)(0x80 | (cp >> 6 & 0x3f));
		} else {
			s[n++] = (char)(0xf0 | cp >> 18);
			s[n++] = (char)(0x80 | (cp >> 12 & 0x3f));
			s[n++] = (char)(0x80 | (cp >> 6 & 0x3f));
		}
		s[n++] = (char)(0x80 | (cp & 0x3f));
		assert_escaped((struct tmk_str){ s, n }, s, n);
	}
	assert_escaped(S("a\xe2\x80\xa8z"), "a\xe2\x80\xa8z", 5); /* U+2028 */
}

static void conf20_what_is_not_utf8_is_replaced(void **state)
{
	static const struct {
		struct tmk_str bytes;
		const char *want;
	} cases[] = {
		{ S("\x80"), FFFD },				/* nothing to continue */
		{ S("\xff\xfe"), FFFD FFFD },			/* never in UTF-8 */
		{ S("\xc0\xaf"), FFFD FFFD },			/* overlong "/" */
		{ S("\xc1\xbf"), FFFD FFFD },			/* overlong */
		{ S("\xe0\x80\xaf"), FFFD FFFD FFFD },		/* overlong "/" in three */
		{ S("\xe0\x9f\xbf"), FFFD FFFD FFFD },		/* overlong */
		{ S("\xf0\x80\x80\xaf"), FFFD FFFD FFFD FFFD }, /* overlong "/" in four */
		{ S("\xf0\x8f\xbf\xbf"), FFFD FFFD FFFD FFFD }, /* overlong */
		{ S("\xed\xa0\x80"), FFFD FFFD FFFD },		/* first surrogate */
		{ S("\xed\xbf\xbf"), FFFD FFFD FFFD },		/* last surrogate */
		{ S("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD }, /* U+110000 */
		{ S("\xf5\x80\x80\x80"), FFFD FFFD FFFD FFFD },
		{ S("\xf8\x88\x80\x80\x80"), FFFD FFFD FFFD FFFD FFFD },
		{ S("\xc3"), FFFD }, /* cut off */
		{ S("\xe2\x82"), FFFD },
		{ S("\xf0\x9f\x98"), FFFD },
		{ S("\xc3(x"), FFFD "(x" }, /* cut short by something else */
		{ S("\xe2\x82(x"), FFFD "(x" },
		{ S("\xe2\x82\xe2\x82\xac"), FFFD "\xe2\x82\xac" },
		{ S("\xf0\x9f\x98\""), FFFD "\\\"" },
		{ S("abcdefgh\xed\xa0\x80ijklmnop"), "abcdefgh" FFFD FFFD FFFD "ijklmnop" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_escaped(cases[i].bytes, cases[i].want, strlen(cases[i].want));
}

static void conf20_all_short_byte_sequences(void **state)
{
	/* Bytes around every boundary of the definition of UTF-8. */
	static const unsigned char edge[] = { 0x00, 0x1f, 0x41, 0x7f, 0x80, 0x8f, 0x90,
					      0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
					      0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0,
					      0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff };
	const size_t n = sizeof(edge);

	(void)state;
	for (size_t i = 0; i < n * n * n * n; i++) {
		char s[4] = { (char)edge[i % n], (char)edge[i / n % n], (char)edge[i / n / n % n],
			      (char)edge[i / n / n / n] };

		assert_like_slow(s, 1 + i % 4);
		assert_like_slow(s, 4);
	}
}

static void conf20_random_bytes(void **state)
{
	uint64_t x = 88172645463325252u;
	char s[64];

	(void)state;
	for (int round = 0; round < 200000; round++) {
		size_t len = 0;

		do {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			/* Two of three bytes plain, so that runs of all lengths come up. */
			s[len++] = (char)(x % 3 ? 'a' + x % 26 : x >> 40);
		} while (len < sizeof(s) && x % 41);
		assert_like_slow(s, len);
	}
}

/* --- numbers */

static void conf27_numbers_are_plain_decimals(void **state)
{
	char got[TMK_DECIMAL_MAX + 1], want[TMK_DECIMAL_MAX + 1];

	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		for (uint64_t power = 1, i = 0; i < 20; i++, power *= 10) {
			uint64_t values[] = { (1ull << bit) - 1,   1ull << bit, power - 1, power,
					      power ^ 1ull << bit, ~0ull >> bit };

			for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
				*tmk_decimal_put(got, values[k]) = '\0';
				snprintf(want, sizeof(want), "%llu", (unsigned long long)values[k]);
				assert_string_equal(got, want);
			}
		}
	}
}

/* --- lines */

static const struct tmk_r3_meta train_meta = {
	.entrypoint = S("Model::forward"),
	.phase = S("train"),
	.profile = S("release"),
	.analysis_id = S("analysis:test"),
};

static void conf02_meta_line(void **state)
{
	const struct tmk_str features[] = { S("cuda"), S("f16") };
	struct tmk_r3_meta infer = {
		.entrypoint = S("Model::forward"),
		.phase = S("infer"),
		.profile = S("release"),
		.cargo_features = features,
		.n_cargo_features = 2,
	};
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_r3_meta_line(&b, &train_meta, false);
	assert_text(
		&b,
		"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"Model::"
		"forward\",\"profile\":\"release\",\"cargo_features\":[],\"cfg\":[],\"analysis_"
		"id\":\"analysis:test\",\"phase\":\"train\"}\n");
	tmk_buf_clear(&b);
	tmk_r3_meta_line(&b, &infer, false);
	assert_text(
		&b,
		"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"Model::"
		"forward\",\"profile\":\"release\",\"cargo_features\":[\"cuda\",\"f16\"],"
		"\"cfg\":[],\"phase\":\"infer\"}\n");
	tmk_buf_clear(&b);
	infer.cut = TMK_DESC_CUT_SESSION;
	infer.n_cargo_features = 0;
	tmk_r3_meta_line(&b, &infer, false);
	assert_text(
		&b,
		"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"Model::"
		"forward\",\"profile\":\"release\",\"cargo_features\":[],\"cfg\":[],\"phase\":"
		"\"infer\",\"truncated\":[\"session\"]}\n");
	tmk_buf_free(&b);
}

static int64_t violations(const struct tmk_buf *b, struct tmk_check_counts *counts)
{
	return tmk_check_memory(b->data, b->len, NULL, NULL, 0, counts);
}

static void conf08_dual_form(void **state)
{
	struct tmk_check_counts counts = { 0 };
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_r3_meta_line(&b, &train_meta, true);
	assert_text(
		&b,
		"{\"kind\":\"meta\",\"schema\":\"candle-graph/runtime/3\",\"entrypoint\":\"Model::"
		"forward\",\"profile\":\"release\",\"cargo_features\":[],\"cfg\":[],\"analysis_"
		"id\":\"analysis:test\",\"phase\":\"train\",\"run\":{\"entrypoint\":\"Model::forward\","
		"\"profile\":\"release\",\"cargo_features\":[],\"cfg\":[],\"analysis_id\":\"analysis:"
		"test\",\"phase\":\"train\"}}\n");
	assert_int_equal(violations(&b, &counts), 0);
	tmk_buf_clear(&b);
	/* The plain form alone is what the importer does not take. */
	tmk_r3_meta_line(&b, &train_meta, false);
	assert_true(violations(&b, &counts) > 0);
	tmk_buf_free(&b);
}

static void op_lines_for(struct tmk_buf *b, const char *input, bool strict)
{
	struct tmk_str inputs[] = { S("a"), { input, strlen(input) } };
	struct tmk_r3_site site, bare;
	struct tmk_r3_op op = {
		.phase = S("train"),
		.site = &bare,
		.output = S("tensor-out"),
		.n = 1,
		.duration_ns = 158003,
		.start_ns = 12,
		.pid = 3,
		.tid = 4,
		.end_tid = 4,
		.stream = 5,
	};

	assert_int_equal(tmk_r3_site_render(&site, S("s"), S("matmul"), inputs, 2, 0), 0);
	assert_int_equal(tmk_r3_site_render(&bare, S("operation:train:Model::forward:0"),
					    S("matmul"), NULL, 0, 0),
			 0);
	tmk_r3_op_line(b, &op, strict);
	op.site = &site;
	op.output = (struct tmk_str){ NULL, 0 };
	op.begin_step = 3;
	op.end_step = 7;
	op.n = UINT64_MAX;
	op.duration_ns = UINT64_MAX;
	op.end_tid = 6;
	tmk_r3_op_line(b, &op, strict);
	tmk_r3_site_free(&site);
	tmk_r3_site_free(&bare);
}

static void conf16_operation_line(void **state)
{
	struct tmk_buf b = { 0 };

	(void)state;
	op_lines_for(&b, "b", true);
	assert_text(
		&b,
		"{\"kind\":\"operation\",\"event_id\":\"train-op-0-1\",\"op\":\"matmul\",\"static_id\":"
		"\"operation:train:Model::forward:0\",\"inputs\":[],\"output\":\"tensor-out\",\"step\":0,"
		"\"duration_ns\":158003}\n"
		"{\"kind\":\"operation\",\"event_id\":\"train-op-3-18446744073709551615\",\"op\":"
		"\"matmul\",\"static_id\":\"s\",\"inputs\":[\"a\",\"b\"],\"step\":7,\"duration_ns\":"
		"18446744073709551615}\n");
	tmk_buf_free(&b);
}

static void conf29_own_fields_follow_the_base(void **state)
{
	struct tmk_buf b = { 0 };

	(void)state;
	op_lines_for(&b, "b", false);
	assert_text(
		&b,
		"{\"kind\":\"operation\",\"event_id\":\"train-op-0-1\",\"op\":\"matmul\",\"static_id\":"
		"\"operation:train:Model::forward:0\",\"inputs\":[],\"output\":\"tensor-out\",\"step\":0,"
		"\"duration_ns\":158003,\"start_ns\":12,\"pid\":3,\"tid\":4,\"stream\":5}\n"
		"{\"kind\":\"operation\",\"event_id\":\"train-op-3-18446744073709551615\",\"op\":"
		"\"matmul\",\"static_id\":\"s\",\"inputs\":[\"a\",\"b\"],\"step\":7,\"duration_ns\":"
		"18446744073709551615,\"start_ns\":12,\"pid\":3,\"tid\":4,\"stream\":5,\"end_tid\":6}\n");
	tmk_buf_free(&b);
}

static void conf23_edge_line(void **state)
{
	struct tmk_r3_edge e = {
		.phase = S("train"),
		.from = S("tensor:train:Model::forward:0"),
		.to = S("operation:train:Model::forward:0"),
		.n = 2,
		.duration_ns = 158003,
		.pid = 7,
		.tid = 8,
		.start_ns = 9,
		.cut = TMK_DESC_CUT_STATIC_ID,
	};
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_r3_edge_line(&b, &e, true);
	tmk_r3_edge_line(&b, &e, false);
	assert_text(
		&b,
		"{\"kind\":\"edge_timing\",\"event_id\":\"train-edge-0-2\",\"from_static_id\":"
		"\"tensor:train:Model::forward:0\",\"to_static_id\":\"operation:train:Model::forward:"
		"0\",\"duration_ns\":158003,\"step\":0}\n"
		"{\"kind\":\"edge_timing\",\"event_id\":\"train-edge-0-2\",\"from_static_id\":"
		"\"tensor:train:Model::forward:0\",\"to_static_id\":\"operation:train:Model::forward:"
		"0\",\"duration_ns\":158003,\"step\":0,\"start_ns\":9,\"pid\":7,\"tid\":8,"
		"\"truncated\":[\"static_id\"]}\n");
	tmk_buf_free(&b);
}

static void conf19_what_was_cut_is_named(void **state)
{
	struct tmk_r3_site site;
	struct tmk_r3_op op = { .phase = S("infer"), .site = &site, .output = S("o"), .n = 1 };
	struct tmk_buf b = { 0 };

	(void)state;
	assert_int_equal(
		tmk_r3_site_render(&site, S("s"), S("o"), NULL, 0,
				   TMK_DESC_CUT_STATIC_ID | TMK_DESC_CUT_OP | TMK_DESC_CUT_INPUTS),
		0);
	op.cut = TMK_DESC_CUT_NAME;
	tmk_r3_op_line(&b, &op, false);
	assert_text(
		&b,
		"{\"kind\":\"operation\",\"event_id\":\"infer-op-0-1\",\"op\":\"o\",\"static_id\":"
		"\"s\",\"inputs\":[],\"output\":\"o\",\"step\":0,\"duration_ns\":0,\"start_ns\":0,"
		"\"pid\":0,\"tid\":0,\"stream\":0,\"truncated\":[\"static_id\",\"op\",\"inputs\","
		"\"output\"]}\n");
	tmk_buf_clear(&b);
	tmk_r3_op_line(&b, &op, true);
	assert_null(memmem(b.data, b.len, "truncated", 9));
	tmk_buf_free(&b);
	tmk_r3_site_free(&site);
}

static void conf49_unfinished_and_capture_lines(void **state)
{
	const struct tmk_r3_count hits[] = { { "op_begin", 2 }, { "op_end", 1 } };
	const struct tmk_r3_count lost[] = { { "ring_full", 0 } };
	struct tmk_r3_site site;
	struct tmk_r3_unfinished u = {
		.phase = S("train"),
		.site = &site,
		.n = 4,
		.begin_step = 2,
		.start_ns = 99,
		.pid = 1,
		.tid = 2,
		.stream = 3,
		.reason = "target_gone",
	};
	struct tmk_r3_capture c = {
		.status = "target_gone",
		.source = "traced",
		.start_ns = 1,
		.end_ns = 2,
		.anchors = { { 1, 1000 }, { 2, 1001 } },
		.n_anchors = 2,
		.hits = hits,
		.n_hits = 2,
		.lost = lost,
		.n_lost = 1,
		.operations = 5,
		.edges = 6,
		.unfinished = 1,
		.truncated = 0,
		.pid = 1,
		.comm = S("t\"t"),
		.exit_known = true,
		.exit_status = 9,
	};
	struct tmk_check_counts counts = { 0 };
	struct tmk_buf b = { 0 };

	(void)state;
	assert_int_equal(tmk_r3_site_render(&site, S("s"), S("o"), NULL, 0, 0), 0);
	tmk_r3_unfinished_line(&b, &u);
	assert_text(
		&b,
		"{\"kind\":\"operation\",\"event_id\":\"train-op-2-4\",\"op\":\"o\",\"static_id\":"
		"\"s\",\"inputs\":[],\"step\":2,\"pid\":1,\"tid\":2,\"stream\":3,\"unfinished\":{"
		"\"start_ns\":99,\"reason\":\"target_gone\"}}\n");
	tmk_buf_clear(&b);
	tmk_r3_capture_line(&b, &c);
	assert_text(
		&b,
		"{\"kind\":\"operation\",\"event_id\":\"capture\",\"op\":\"capture\",\"inputs\":[],"
		"\"capture\":{\"status\":\"target_gone\",\"source\":\"traced\",\"start_ns\":1,"
		"\"end_ns\":2,\"clock\":{\"id\":\"CLOCK_MONOTONIC\",\"anchors\":[{\"monotonic_ns\":1,"
		"\"realtime_ns\":1000},{\"monotonic_ns\":2,\"realtime_ns\":1001}]},\"pid\":1,\"comm\":"
		"\"t\\\"t\",\"exit\":{\"signal\":9},\"operations\":5,\"edges\":6,\"unfinished\":1,"
		"\"truncated\":0,\"hits\":{\"op_begin\":2,\"op_end\":1},\"lost\":{\"ring_full\":0}}}\n");
	/* Neither has a duration, and the importer takes both. */
	assert_null(memmem(b.data, b.len, "duration_ns", 11));
	tmk_buf_clear(&b);
	tmk_r3_meta_line(&b, &train_meta, false);
	tmk_r3_unfinished_line(&b, &u);
	c.exit_status = 3 << 8;
	tmk_r3_capture_line(&b, &c);
	assert_int_equal(violations(&b, &counts), 0);
	assert_non_null(memmem(b.data, b.len, "\"exit\":{\"code\":3}", 17));
	assert_int_equal(counts.unfinished, 1);
	assert_int_equal(counts.has_capture, 1);
	tmk_buf_free(&b);
	tmk_r3_site_free(&site);
}

static void conf46_named_streams_say_so(void **state)
{
	struct tmk_r3_site site;
	struct tmk_r3_op op = {
		.phase = S("train"),
		.site = &site,
		.n = 1,
		.tid = 4,
		.end_tid = 6,
		.stream = UINT64_MAX,
		.named = true,
	};
	struct tmk_r3_unfinished u = {
		.phase = S("train"), .site = &site, .n = 2, .named = true, .reason = "finished"
	};
	struct tmk_buf b = { 0 };

	(void)state;
	assert_int_equal(tmk_r3_site_render(&site, S("s"), S("o"), NULL, 0, 0), 0);
	tmk_r3_op_line(&b, &op, false);
	tmk_r3_unfinished_line(&b, &u);
	assert_text(
		&b,
		"{\"kind\":\"operation\",\"event_id\":\"train-op-0-1\",\"op\":\"o\",\"static_id\":"
		"\"s\",\"inputs\":[],\"step\":0,\"duration_ns\":0,\"start_ns\":0,\"pid\":0,\"tid\":4,"
		"\"stream\":18446744073709551615,\"named\":true,\"end_tid\":6}\n"
		"{\"kind\":\"operation\",\"event_id\":\"train-op-0-2\",\"op\":\"o\",\"static_id\":"
		"\"s\",\"inputs\":[],\"step\":0,\"pid\":0,\"tid\":0,\"stream\":0,\"named\":true,"
		"\"unfinished\":{\"start_ns\":0,\"reason\":\"finished\"}}\n");
	tmk_buf_clear(&b);
	tmk_r3_op_line(&b, &op, true);
	assert_null(memmem(b.data, b.len, "named", 5));
	tmk_buf_free(&b);
	tmk_r3_site_free(&site);
}

/* --- windows */

static const struct tmk_r3_window full_window = {
	.phase = S("train"),
	.name = S("dec\"ode"),
	.n = 2,
	.step = 7,
	.id = UINT64_MAX,
	.opened_on = 9,
	.pid = 3,
	.tid = 4,
	.end_tid = 5,
	.stream = 9,
	.has_stream = true,
	.named = true,
	.has_start = true,
	.has_end = true,
	.has_duration = true,
	.start_ns = 10,
	.end_ns = 30,
	.duration_ns = 7,
	.device = true,
	.status = "closed",
	.flush = true,
	.has_place = true,
	.depth = 1,
	.has_parent = true,
	.parent = 1,
	.has_operations = true,
	.operations = 3,
	.has_idle = true,
	.idle_ns = 20,
};

static void conf34_window_line(void **state)
{
	struct tmk_r3_window w = full_window;
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_r3_window_line(&b, &w);
	assert_text(
		&b,
		"{\"kind\":\"operation\",\"event_id\":\"train-window-7-2\",\"op\":\"dec\\\"ode\","
		"\"inputs\":[],\"step\":7,\"pid\":3,\"tid\":4,\"stream\":9,\"named\":true,\"end_tid\":5,"
		"\"window\":{\"id\":18446744073709551615,\"opened_on\":9,\"start_ns\":10,\"end_ns\":30,"
		"\"duration_ns\":7,\"method\":\"device\",\"status\":\"closed\",\"depth\":1,\"parent\":1,"
		"\"overlaps\":0,\"flush\":true,\"operations\":3,\"idle_ns\":20}}\n");
	tmk_buf_clear(&b);
	w.device = w.named = w.has_parent = w.has_duration = false;
	w.end_tid = w.tid;
	w.depth = 0;
	w.overlaps = 2;
	w.status = "failed";
	w.error = 5;
	w.has_idle = false;
	w.incomplete = true;
	w.cut = TMK_DESC_CUT_NAME;
	tmk_r3_window_line(&b, &w);
	assert_text(
		&b,
		"{\"kind\":\"operation\",\"event_id\":\"train-window-7-2\",\"op\":\"dec\\\"ode\","
		"\"inputs\":[],\"step\":7,\"pid\":3,\"tid\":4,\"stream\":9,"
		"\"window\":{\"id\":18446744073709551615,\"opened_on\":9,\"start_ns\":10,\"end_ns\":30,"
		"\"method\":\"system\",\"status\":\"failed\",\"error\":5,\"depth\":0,\"overlaps\":2,"
		"\"flush\":true,\"operations\":3,\"incomplete\":true},\"truncated\":[\"op\"]}\n");
	tmk_buf_free(&b);
}

static void conf41_what_a_window_did_not_measure_is_absent(void **state)
{
	struct tmk_r3_window w = {
		.phase = S("infer"),
		.name = S("?"),
		.n = 1,
		.id = 1,
		.pid = 3,
		.end_tid = 5,
		.status = "not_measured",
		.reason = "start_unknown",
		.start_ns = 1,
		.end_ns = 1,
		.duration_ns = 1,
		.depth = 1,
		.overlaps = 1,
		.has_parent = true, /* of a place that is not known */
		.operations = 1,
		.idle_ns = 1,
	};
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_r3_window_line(&b, &w);
	assert_text(&b,
		    "{\"kind\":\"operation\",\"event_id\":\"infer-window-0-1\",\"op\":\"?\","
		    "\"inputs\":[],\"step\":0,\"pid\":3,\"end_tid\":5,\"window\":{\"id\":1,"
		    "\"opened_on\":0,\"method\":\"system\",\"status\":\"not_measured\",\"reason\":"
		    "\"start_unknown\",\"flush\":false}}\n");
	tmk_buf_free(&b);
}

static void conf49_window_line_and_counts(void **state)
{
	static const char counts_text[] = ",\"truncated\":0,\"windows\":{\"closed\":1,\"open\":0},"
					  "\"hits\":{\"window_end\":1}}}\n";
	const struct tmk_r3_count windows[] = { { "closed", 1 }, { "open", 0 } };
	const struct tmk_r3_count hits[] = { { "window_end", 1 } };
	struct tmk_r3_capture c = {
		.status = "complete",
		.source = "traced",
		.windows = windows,
		.n_windows = 2,
		.hits = hits,
		.n_hits = 1,
	};
	struct tmk_check_counts counts = { 0 };
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_r3_capture_line(&b, &c);
	tmk_buf_append(&b, "", 1); /* for strstr() */
	assert_non_null(strstr(b.data, counts_text));
	tmk_buf_clear(&b);
	c.n_windows = 0;
	tmk_r3_capture_line(&b, &c);
	assert_null(memmem(b.data, b.len, "windows", 7));
	tmk_buf_clear(&b);
	tmk_r3_meta_line(&b, &train_meta, false);
	tmk_r3_window_line(&b, &full_window);
	assert_int_equal(violations(&b, &counts), 0);
	assert_int_equal(counts.windows, 1);
	assert_int_equal(counts.operations, 0);
	tmk_buf_free(&b);
}

/* --- memory */

static void line_stays_inside_its_bound(void **state)
{
	static const char *const worst[] = { "", "\x01", "\xff", "\"", "x", "\xf0\x9f\x98\x80" };

	(void)state;
	for (size_t w = 0; w < sizeof(worst) / sizeof(worst[0]); w++) {
		char text[301];
		struct tmk_str s = { text, 0 };
		struct tmk_r3_site site;
		struct tmk_r3_op op = { 0 };
		char *line, *end;
		size_t max;

		while (s.len + strlen(worst[w]) < 300 && worst[w][0]) {
			memcpy(text + s.len, worst[w], strlen(worst[w]));
			s.len += strlen(worst[w]);
		}
		assert_int_equal(tmk_r3_site_render(&site, s, s, &s, 1, 0xffff), 0);
		memset(&op, 0xff, sizeof(op)); /* the largest numbers, and everything cut */
		op.phase = op.output = s;
		op.site = &site;
		op.end_tid = 0xfffffffe;
		op.named = true;
		max = tmk_r3_op_line_max(&op);
		line = malloc(max); /* exactly: a sanitizer sees the first byte behind it */
		assert_non_null(line);
		end = tmk_r3_op_line_put(line, &op, false);
		assert_true((size_t)(end - line) <= max && end[-1] == '\n');
		free(line);
		tmk_r3_site_free(&site);
	}
}

static void buffer_remembers_that_memory_ran_out(void **state)
{
	struct tmk_buf b = { 0 };

	(void)state;
	tmk_buf_puts(&b, "abc");
	tmk_buf_append(&b, NULL, 0);
	assert_int_equal(b.len, 3);
	assert_false(tmk_buf_reserve(&b, SIZE_MAX));
	assert_int_equal(b.err, -12);
	tmk_buf_puts(&b, "def");
	tmk_buf_putu64(&b, 1);
	tmk_r3_meta_line(&b, &train_meta, true);
	assert_int_equal(b.len, 3);
	tmk_buf_clear(&b);
	tmk_buf_putu64(&b, UINT64_MAX);
	assert_text(&b, "18446744073709551615");
	tmk_buf_free(&b);
	tmk_r3_site_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf02_meta_line),
		cmocka_unit_test(conf08_dual_form),
		cmocka_unit_test(conf16_operation_line),
		cmocka_unit_test(conf19_what_was_cut_is_named),
		cmocka_unit_test(conf20_what_is_not_utf8_is_replaced),
		cmocka_unit_test(conf20_all_short_byte_sequences),
		cmocka_unit_test(conf20_random_bytes),
		cmocka_unit_test(conf23_edge_line),
		cmocka_unit_test(conf26_ascii_escapes_like_serde),
		cmocka_unit_test(conf26_every_character_stays_raw),
		cmocka_unit_test(conf27_numbers_are_plain_decimals),
		cmocka_unit_test(conf29_own_fields_follow_the_base),
		cmocka_unit_test(conf34_window_line),
		cmocka_unit_test(conf41_what_a_window_did_not_measure_is_absent),
		cmocka_unit_test(conf46_named_streams_say_so),
		cmocka_unit_test(conf49_window_line_and_counts),
		cmocka_unit_test(conf49_unfinished_and_capture_lines),
		cmocka_unit_test(line_stays_inside_its_bound),
		cmocka_unit_test(buffer_remembers_that_memory_ran_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
