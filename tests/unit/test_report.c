// SPDX-License-Identifier: BSD-2-Clause
/*
 * No byte of a target reaches a terminal raw; numbers for people are rounded as people do.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/report.h"

static const char *safe(const char *s, size_t len)
{
	static char out[64];

	return tmk_safe(out, sizeof(out), s, len);
}

#define SAFE(literal) safe(literal, sizeof(literal) - 1)

static void text_passes(void **state)
{
	(void)state;
	assert_string_equal(SAFE(""), "");
	assert_string_equal(SAFE("plain ~"), "plain ~");
	assert_string_equal(SAFE("é € 😀"), "é € 😀");
}

static void controls_do_not(void **state)
{
	char all[0x21];

	(void)state;
	for (int i = 0; i < 0x20; i++)
		all[i] = (char)i;
	assert_string_equal(safe(all, 0x20), "????????????????????????????????");
	assert_string_equal(SAFE("\x1b[31mred\x7f"), "?[31mred?");
	assert_string_equal(SAFE("a\0b"), "a?b");
	assert_string_equal(SAFE("\xc2\x9b"
				 "2J"),
			    "?2J");			   /* C1: CSI */
	assert_string_equal(SAFE("\xc2\xa0"), "\xc2\xa0"); /* the first that is none */
	assert_string_equal(SAFE("a\xe2\x80\xae"
				 "b"),
			    "a?b");			/* right-to-left override */
	assert_string_equal(SAFE("\xe2\x80\xa8"), "?"); /* line separator */
}

static void invalid_utf8_does_not(void **state)
{
	(void)state;
	assert_string_equal(SAFE("a\xff\xfe"
				 "b"),
			    "a??b");
	assert_string_equal(SAFE("\x80"), "?");
	assert_string_equal(SAFE("\xc0\x9b"), "??");	       /* overlong ESC */
	assert_string_equal(SAFE("\xe0\x80\x9b"), "???");      /* likewise */
	assert_string_equal(SAFE("\xed\xa0\x80"), "???");      /* a surrogate */
	assert_string_equal(SAFE("\xf4\x90\x80\x80"), "????"); /* past U+10FFFF */
	assert_string_equal(SAFE("\xf8\x88\x80\x80\x80"), "?????");
	assert_string_equal(SAFE("\xe2\x82"), "??"); /* cut */
	assert_string_equal(SAFE("\xe2"
				 "a"),
			    "?a");
}

static void cut_at_a_character(void **state)
{
	char out[6];

	(void)state;
	assert_string_equal(tmk_safe(out, sizeof(out), "abcdefgh", 8), "abcde");
	assert_string_equal(tmk_safe(out, sizeof(out), "abc\xe2\x82\xac", 6), "abc");
	assert_string_equal(tmk_safe(out, sizeof(out), "ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
	assert_string_equal(tmk_safe(out, 1, "abc", 3), "");
	out[0] = 'x';
	tmk_safe(out, 0, "abc", 3);
	assert_int_equal(out[0], 'x');
}

static void width_counts_characters(void **state)
{
	(void)state;
	assert_int_equal(tmk_safe_width(""), 0);
	assert_int_equal(tmk_safe_width("abc"), 3);
	assert_int_equal(tmk_safe_width("µs €"), 4);
}

/* What a function prints on stderr. */
static const char *captured(void (*say)(void))
{
	static char text[8192];
	FILE *f = tmpfile();
	int old = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(f);
	fflush(stderr);
	dup2(fileno(f), STDERR_FILENO);
	say();
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void say_hostile(void)
{
	tmk_error("%s: no\nsuch \x1b]0;title\a", "file\r");
}

static void say_note(void)
{
	tmk_note("hello %d", 7);
}

static void say_long(void)
{
	static char long_text[10000];

	memset(long_text, 'x', sizeof(long_text) - 1);
	tmk_error("%s", long_text);
}

static void messages_are_one_safe_line(void **state)
{
	const char *text;

	(void)state;
	assert_string_equal(captured(say_hostile), "tickmark: file?: no?such ?]0;title?\n");
	assert_string_equal(captured(say_note), "tickmark: hello 7\n");
	tmk_report_set_quiet(1);
	assert_string_equal(captured(say_note), "");
	assert_string_equal(captured(say_hostile), "tickmark: file?: no?such ?]0;title?\n");
	tmk_report_set_quiet(0);
	text = captured(say_long);
	assert_true(strlen(text) < 4200);
	assert_int_equal(text[strlen(text) - 1], '\n');
}

static void durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.00 µs" },
		{ 1234, "1.23 µs" },
		{ 1235, "1.24 µs" },
		{ 9994, "9.99 µs" },
		{ 9995, "10.0 µs" },
		{ 12345, "12.3 µs" },
		{ 99949, "99.9 µs" },
		{ 99950, "100 µs" },
		{ 999499, "999 µs" },
		{ 999500, "1.00 ms" },
		{ 1000000, "1.00 ms" },
		{ 12345678, "12.3 ms" },
		{ 999500000, "1.00 s" },
		{ 1500000000, "1.50 s" },
		{ 59990000000, "60.0 s" },
		{ 1234567890123, "1235 s" },
		{ UINT64_MAX, "18446744074 s" },
	};
	char out[TMK_FORMAT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(tmk_format_ns(out, cases[i].ns), cases[i].text);
}

static void counts(void **state)
{
	char out[TMK_FORMAT_MAX];

	(void)state;
	assert_string_equal(tmk_format_count(out, 0), "0");
	assert_string_equal(tmk_format_count(out, 999), "999");
	assert_string_equal(tmk_format_count(out, 1000), "1,000");
	assert_string_equal(tmk_format_count(out, 12345678), "12,345,678");
	assert_string_equal(tmk_format_count(out, UINT64_MAX), "18,446,744,073,709,551,615");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_passes),
		cmocka_unit_test(controls_do_not),
		cmocka_unit_test(invalid_utf8_does_not),
		cmocka_unit_test(cut_at_a_character),
		cmocka_unit_test(width_counts_characters),
		cmocka_unit_test(messages_are_one_safe_line),
		cmocka_unit_test(durations),
		cmocka_unit_test(counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
