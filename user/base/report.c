// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages to the person at the terminal, made safe whatever bytes they quote. Results (tables, files)
 * are the sinks'; they borrow tmk_safe() from here.
 */
#include "base/report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static int report_quiet;

void tmk_report_set_quiet(int quiet)
{
	report_quiet = quiet;
}

/*
 * Decodes the character at s. Returns its length, or 0 where there is no well-formed one (overlong
 * forms, surrogates and anything past U+10FFFF included).
 */
static size_t utf8_decode(const unsigned char *s, size_t len, uint32_t *cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = 2;

	if (s[0] < 0x80) {
		*cp = s[0];
		return 1;
	}
	if (s[0] < 0xc0 || s[0] >= 0xf8)
		return 0;
	n += s[0] >= 0xe0;
	n += s[0] >= 0xf0;
	if (n > len)
		return 0;
	*cp = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	if (*cp < least[n] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp < 0xe000))
		return 0;
	return n;
}

/* Characters that act on a terminal, or that turn round the order of the text beside them. */
static bool is_unsafe(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 ||
	       cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e) ||
	       (cp >= 0x2066 && cp <= 0x2069);
}

char *tmk_safe(char *out, size_t cap, const char *data, size_t len)
{
	const unsigned char *s = (const unsigned char *)data;
	size_t used = 0;

	if (!cap)
		return out;
	for (size_t i = 0, n; i < len; i += n) {
		uint32_t cp = 0;
		bool ok;

		n = utf8_decode(s + i, len - i, &cp);
		ok = n && !is_unsafe(cp);
		if (!n)
			n = 1;
		if (used + (ok ? n : 1) >= cap)
			break;
		if (ok)
			memcpy(out + used, data + i, n);
		else
			out[used] = '?';
		used += ok ? n : 1;
	}
	out[used] = '\0';
	return out;
}

size_t tmk_safe_width(const char *s)
{
	size_t width = 0;

	for (; *s; s++)
		width += ((unsigned char)*s & 0xc0) != 0x80;
	return width;
}

static void report_line(const char *fmt, va_list ap)
{
	char raw[4096], safe[4096];
	int n = vsnprintf(raw, sizeof(raw), fmt, ap);

	if (n < 0)
		return;
	tmk_safe(safe, sizeof(safe), raw, strlen(raw));
	fflush(stdout); /* what was already said on stdout comes first on a shared terminal */
	fprintf(stderr, "tickmark: %s\n", safe);
}

void tmk_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_line(fmt, ap);
	va_end(ap);
}

void tmk_note(const char *fmt, ...)
{
	va_list ap;

	if (report_quiet)
		return;
	va_start(ap, fmt);
	report_line(fmt, ap);
	va_end(ap);
}
