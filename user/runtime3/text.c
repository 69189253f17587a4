// SPDX-License-Identifier: BSD-2-Clause
/*
 * UTF-8 checking and Unicode trimming. Lines and JSON are for check.c and json.c.
 */
#include "runtime3/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Steps over ASCII, 32 bytes at a time while that works. */
static const unsigned char *ascii_skip(const unsigned char *p, const unsigned char *end)
{
	uint64_t w[4];

	while (end - p >= 32) {
		memcpy(w, p, 32);
		if ((w[0] | w[1] | w[2] | w[3]) & HIGH_BITS)
			break;
		p += 32;
	}
	while (p < end && *p < 0x80)
		p++;
	return p;
}

static bool is_tail(const unsigned char *p, const unsigned char *end, size_t at)
{
	return (size_t)(end - p) > at && (p[at] & 0xc0) == 0x80;
}

/* Bytes of the character of two or more bytes at p; 0 when it is none. */
static size_t multibyte_len(const unsigned char *p, const unsigned char *end)
{
	unsigned char c = p[0];

	if (c < 0xc2 || c > 0xf4 || !is_tail(p, end, 1))
		return 0;
	if (c < 0xe0)
		return 2;
	if (!is_tail(p, end, 2))
		return 0;
	if (c < 0xf0) {
		bool overlong = c == 0xe0 && p[1] < 0xa0;
		bool surrogate = c == 0xed && p[1] >= 0xa0;

		return overlong || surrogate ? 0 : 3;
	}
	if (!is_tail(p, end, 3) || (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] >= 0x90))
		return 0;
	return 4;
}

size_t tmk_text_valid(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	for (;;) {
		size_t n;

		p = ascii_skip(p, end);
		if (p == end)
			return len;
		/* Text in one script comes in runs: stay here while it does. */
		while (p < end && *p >= 0x80) {
			n = multibyte_len(p, end);
			if (!n)
				return (size_t)(p - (const unsigned char *)text);
			p += n;
		}
	}
}

/* The white space beyond ASCII, as UTF-8. */
static const char wide_spaces[][4] = {
	"\xc2\x85",	/* next line */
	"\xc2\xa0",	/* no-break space */
	"\xe1\x9a\x80", /* ogham space mark */
	"\xe2\x80\x80", /* U+2000 to U+200A: spaces of one width each */
	"\xe2\x80\x81", "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84",
	"\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
	"\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", /* line separator */
	"\xe2\x80\xa9",					/* paragraph separator */
	"\xe2\x80\xaf",					/* narrow no-break space */
	"\xe2\x81\x9f",					/* medium mathematical space */
	"\xe3\x80\x80",					/* ideographic space */
};

static bool is_ascii_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Bytes of the white space that begins (or, `last`, ends) the text; 0 when there is none. */
static size_t space_len(const char *begin, const char *end, bool last)
{
	if (begin == end)
		return 0;
	if (is_ascii_space(last ? end[-1] : *begin))
		return 1;
	if ((last ? end[-1] : *begin) >= 0)
		return 0;
	for (size_t i = 0; i < sizeof(wide_spaces) / sizeof(wide_spaces[0]); i++) {
		size_t n = strlen(wide_spaces[i]);

		if ((size_t)(end - begin) >= n &&
		    !memcmp(last ? end - n : begin, wide_spaces[i], n))
			return n;
	}
	return 0;
}

void tmk_text_trim(const char **begin, const char **end)
{
	size_t n;

	while ((n = space_len(*begin, *end, false)))
		*begin += n;
	while ((n = space_len(*begin, *end, true)))
		*end -= n;
}
