// SPDX-License-Identifier: BSD-2-Clause
/*
 * The JSON reader: tokens, nesting, numbers and escapes. Which members a record must have is decided
 * in record.c.
 *
 * Why this is not a library: `tickmark check` promises candle-graph's own verdict, and that verdict is
 * serde_json's in corners where every C library decides otherwise. 1e400 is an error here and infinity
 * elsewhere, but 0e999999 is fine; 1e-400 is 0, by a division of its own kind, and a "zero" gradient
 * may carry it; a long run of digits is read to 19 places and then only counted; "-0" is not an
 * integer; nesting ends at 127; a lone surrogate is fatal in a value that is kept and fine in one that
 * is skipped. A tree of a gigabyte is not wanted either: everything here runs in constant memory.
 */
#include "runtime3/json.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES(b) (UINT64_C(0x0101010101010101) * (b))

static int fail(struct tmk_json *j, const char *at, const char *why)
{
	j->p = at;
	j->why = why;
	return -EBADMSG;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

void tmk_json_init(struct tmk_json *j)
{
	memset(j, 0, sizeof(*j));
}

void tmk_json_free(struct tmk_json *j)
{
	if (j)
		free(j->far);
}

void tmk_json_set(struct tmk_json *j, const char *text, size_t len)
{
	j->p = text;
	j->end = text + len;
	j->why = NULL;
	j->lenient = false;
	j->depth = 0;
}

int tmk_json_peek(struct tmk_json *j)
{
	const char *p = j->p;

	while (p < j->end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	j->p = p;
	return p < j->end ? (unsigned char)*p : -1;
}

/* --- strings */

/* The first byte that cannot simply be part of a string: a quote, a backslash or a control byte. */
static const char *string_plain(const char *p, const char *end)
{
	while (end - p >= 8) {
		uint64_t w, quote, slash, special;

		memcpy(&w, p, 8);
		w = le64toh(w);
		quote = w ^ BYTES('"');
		slash = w ^ BYTES('\\');
		special = ((w - BYTES(0x20)) & ~w) | ((quote - BYTES(1)) & ~quote) |
			  ((slash - BYTES(1)) & ~slash);
		special &= BYTES(0x80);
		/* A borrow can only taint bytes behind the first true hit. */
		if (special)
			return p + (__builtin_ctzll(special) >> 3);
		p += 8;
	}
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		p++;
	return p;
}

/* Four hexadecimal digits at p, or -1. */
static int hex4(const char *p, const char *end)
{
	int v = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = p[i];

		if (is_digit(c))
			v = v * 16 + (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			v = v * 16 + (c - 'A' + 10);
		else
			return -1;
	}
	return v;
}

static bool is_high_surrogate(int v)
{
	return v >= 0xd800 && v <= 0xdbff;
}

static bool is_low_surrogate(int v)
{
	return v >= 0xdc00 && v <= 0xdfff;
}

/* Checks the escape whose backslash is at j->p and steps over it. */
static int escape_skip(struct tmk_json *j)
{
	const char *p = j->p + 1;
	int v;

	if (p == j->end)
		return fail(j, p, "the text ends inside a string");
	if (*p != 'u') {
		if (!*p || !strchr("\"\\/bfnrt", *p))
			return fail(j, j->p, "not an escape that JSON knows");
		j->p = p + 1;
		return 0;
	}
	v = hex4(p + 1, j->end);
	if (v < 0)
		return fail(j, j->p, "\\u must be followed by four hexadecimal digits");
	p += 5;
	if (!j->lenient && is_low_surrogate(v))
		return fail(j, j->p, "half a surrogate pair: the low half without the high one");
	if (!j->lenient && is_high_surrogate(v)) {
		if (j->end - p < 2 || p[0] != '\\' || p[1] != 'u' ||
		    !is_low_surrogate(hex4(p + 2, j->end)))
			return fail(j, j->p,
				    "half a surrogate pair: the high half without the low one");
		p += 6;
	}
	j->p = p;
	return 0;
}

/* Reads the string whose opening quote is at j->p. */
static int string_read(struct tmk_json *j, struct tmk_json_value *v)
{
	int err;

	v->type = TMK_JSON_STRING;
	v->escaped = false;
	v->text = ++j->p;
	for (;;) {
		j->p = string_plain(j->p, j->end);
		if (j->p == j->end)
			return fail(j, j->p, "the text ends inside a string");
		if (*j->p == '"')
			break;
		if (*j->p != '\\')
			return fail(j, j->p, "a control byte inside a string (JSON wants \\u00XX)");
		v->escaped = true;
		err = escape_skip(j);
		if (err)
			return err;
	}
	v->len = (size_t)(j->p++ - v->text);
	return 0;
}

/* UTF-8, surrogates included; returns the bytes. */
static size_t utf8_put(char out[4], uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* What the escape at *p means. Made for checked text, but safe with any. */
static size_t escape_decode(const char **p, const char *end, char out[4])
{
	static const char names[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	const char *at = *p + 1, *name;
	int v, low;

	if (at == end || *at != 'u') {
		*p = at < end ? at + 1 : end;
		name = at < end && *at ? strchr(names, *at) : NULL;
		out[0] = name ? meanings[name - names] : at < end ? *at : '\\';
		return 1;
	}
	v = hex4(at + 1, end);
	if (v < 0) {
		*p = end;
		return utf8_put(out, 0xfffd);
	}
	at += 5;
	if (is_high_surrogate(v) && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
		low = hex4(at + 2, end);
		if (is_low_surrogate(low)) {
			*p = at + 6;
			return utf8_put(out, 0x10000 + ((uint32_t)(v - 0xd800) << 10 |
							(uint32_t)(low - 0xdc00)));
		}
	}
	*p = at;
	return utf8_put(out, (uint32_t)v);
}

size_t tmk_json_unescape(const struct tmk_json_value *v, char *out, size_t cap)
{
	const char *p = v->text, *end = v->text + v->len;
	size_t used = 0;
	char c[4];

	while (p < end) {
		const char *slash = memchr(p, '\\', (size_t)(end - p));
		size_t n = (size_t)((slash ? slash : end) - p);

		if (n > cap - used)
			return SIZE_MAX;
		memcpy(out + used, p, n);
		used += n;
		p += n;
		if (p == end)
			break;
		n = escape_decode(&p, end, c);
		if (n > cap - used)
			return SIZE_MAX;
		memcpy(out + used, c, n);
		used += n;
	}
	return used;
}

bool tmk_json_equals(const struct tmk_json_value *v, const char *bytes, size_t len)
{
	char out[64];

	if (!v->escaped)
		return v->len == len && !memcmp(v->text, bytes, len);
	return len <= sizeof(out) && tmk_json_unescape(v, out, sizeof(out)) == len &&
	       !memcmp(out, bytes, len);
}

/* --- numbers */

/* A number as it is read: its first 19 or 20 digits and a decimal exponent that wraps as an i32. */
struct decimal {
	uint64_t digits;
	int32_t exponent;
	bool whole;	/* no fraction, no exponent, and all digits are in `digits` */
	bool vanished;	/* the exponent does not even fit an i32 and the value is 0 */
	bool too_large; /* beyond the range of an f64 */
};

static int32_t wrapping_add(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* Appends a digit unless that overflows. */
static bool digit_take(struct decimal *d, char c)
{
	uint64_t digits;

	if (__builtin_mul_overflow(d->digits, 10, &digits) ||
	    __builtin_add_overflow(digits, (uint64_t)(c - '0'), &digits))
		return false;
	d->digits = digits;
	return true;
}

static const char *digits_skip(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

/* The digits before the point. Those that do not fit only count for the exponent. */
static const char *integer_read(const char *p, const char *end, struct decimal *d)
{
	while (p < end && is_digit(*p) && digit_take(d, *p))
		p++;
	while (p < end && is_digit(*p)) {
		d->whole = false;
		d->exponent = wrapping_add(d->exponent, 1);
		p++;
	}
	return p;
}

/* The digits behind the point. Those that do not fit change nothing. */
static const char *fraction_read(const char *p, const char *end, struct decimal *d)
{
	d->whole = false;
	while (p < end && is_digit(*p) && digit_take(d, *p)) {
		d->exponent = wrapping_add(d->exponent, -1);
		p++;
	}
	return digits_skip(p, end);
}

static const char *exponent_read(const char *p, const char *end, bool negative, struct decimal *d)
{
	int32_t e = 0, sum;

	d->whole = false;
	for (; p < end && is_digit(*p); p++) {
		if (__builtin_mul_overflow(e, 10, &e) || __builtin_add_overflow(e, *p - '0', &e)) {
			d->too_large = d->digits && !negative;
			d->vanished = !d->too_large;
			return digits_skip(p, end);
		}
	}
	if (negative ? __builtin_sub_overflow(d->exponent, e, &sum)
		     : __builtin_add_overflow(d->exponent, e, &sum))
		sum = negative ? INT32_MIN : INT32_MAX;
	d->exponent = sum;
	return p;
}

static double power_of_ten(uint32_t n)
{
	static const double exact[] = { 1e0,  1e1,  1e2,  1e3,	1e4,  1e5,  1e6,  1e7,
					1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	char text[8];

	if (n < sizeof(exact) / sizeof(exact[0]))
		return exact[n];
	snprintf(text, sizeof(text), "1e%u", n % 1000);
	return strtod(text, NULL);
}

/* Not correctly rounded, on purpose: the same operations in the same order as serde_json's. */
static double decimal_value(struct decimal *d)
{
	double f = d->vanished ? 0 : (double)d->digits;
	int32_t e = d->vanished ? 0 : d->exponent;

	while (f != 0 && (e > 308 || e < -308)) {
		if (e > 0) {
			d->too_large = true;
			return f;
		}
		f /= 1e308;
		e += 308;
	}
	if (f == 0)
		return f;
	if (e < 0)
		return f / power_of_ten((uint32_t)-e);
	f *= power_of_ten((uint32_t)e);
	d->too_large = d->too_large || isinf(f);
	return f;
}

static int number_read(struct tmk_json *j, struct tmk_json_value *v)
{
	struct decimal d = { .whole = true };
	const char *p = j->p, *end = j->end;
	bool minus = *p == '-', e_minus = false;

	v->text = p;
	p += minus;
	if (p == end || !is_digit(*p))
		return fail(j, p, "a digit must follow the minus sign");
	if (*p == '0' && end - p > 1 && is_digit(p[1]))
		return fail(j, p, "a number must not begin with 0");
	p = integer_read(p, end, &d);
	if (p < end && *p == '.') {
		if (++p == end || !is_digit(*p))
			return fail(j, p, "a digit must follow the point");
		p = fraction_read(p, end, &d);
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		if (++p < end && (*p == '+' || *p == '-'))
			e_minus = *p++ == '-';
		if (p == end || !is_digit(*p))
			return fail(j, p, "a digit must follow the exponent sign");
		p = exponent_read(p, end, e_minus, &d);
	}
	v->number = d.whole ? (double)d.digits : decimal_value(&d);
	if (minus)
		v->number = -v->number;
	if (d.too_large && !j->lenient)
		return fail(j, v->text, "a number out of the range of a 64-bit float");
	v->type = d.whole && !minus ? TMK_JSON_UNSIGNED : TMK_JSON_NUMBER;
	v->len = (size_t)(p - v->text);
	j->p = p;
	return 0;
}

/* --- nesting */

static uint64_t *level_word(struct tmk_json *j, size_t level)
{
	return level < 128 ? &j->near[level / 64] : &j->far[level / 64 - 2];
}

static bool in_object(struct tmk_json *j)
{
	size_t level = j->depth - 1;

	return *level_word(j, level) >> (level % 64) & 1;
}

static int far_grow(struct tmk_json *j)
{
	size_t words = j->far_words ? j->far_words * 2 : 64;
	uint64_t *far = realloc(j->far, words * sizeof(*far));

	if (!far)
		return -ENOMEM;
	j->far = far;
	j->far_words = words;
	return 0;
}

int tmk_json_enter(struct tmk_json *j)
{
	size_t level = j->depth;
	uint64_t bit = UINT64_C(1) << (level % 64);
	int err;

	if (!j->lenient && level >= TMK_JSON_MAX_DEPTH)
		return fail(j, j->p, "nested deeper than 127 levels");
	if (level / 64 >= j->far_words + 2) {
		err = far_grow(j);
		if (err)
			return err;
	}
	if (*j->p++ == '{')
		*level_word(j, level) |= bit;
	else
		*level_word(j, level) &= ~bit;
	j->depth++;
	return 0;
}

int tmk_json_next(struct tmk_json *j, bool first)
{
	bool object = in_object(j);
	int c = tmk_json_peek(j);

	if (c < 0)
		return fail(j, j->p,
			    object ? "the text ends inside an object"
				   : "the text ends inside an array");
	if (c == (object ? '}' : ']')) {
		j->p++;
		j->depth--;
		return 0;
	}
	if (!first) {
		if (c != ',')
			return fail(j, j->p,
				    object ? "a comma or } must follow a member"
					   : "a comma or ] must follow an element");
		j->p++;
		c = tmk_json_peek(j);
	}
	if (object && c != '"')
		return fail(j, j->p,
			    c < 0 ? "the text ends inside an object"
				  : "a name in quotes must begin here");
	return 1;
}

int tmk_json_key(struct tmk_json *j, struct tmk_json_value *key)
{
	int err = string_read(j, key), c;

	if (err)
		return err;
	c = tmk_json_peek(j);
	if (c != ':')
		return fail(j, j->p,
			    c < 0 ? "the text ends inside an object"
				  : "a colon must follow a name");
	j->p++;
	return 0;
}

static int literal_read(struct tmk_json *j, struct tmk_json_value *v)
{
	static const struct {
		const char *text;
		enum tmk_json_type type;
	} literals[] = { { "null", TMK_JSON_NULL },
			 { "true", TMK_JSON_TRUE },
			 { "false", TMK_JSON_FALSE } };

	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
		size_t n = strlen(literals[i].text);

		if ((size_t)(j->end - j->p) < n || memcmp(j->p, literals[i].text, n))
			continue;
		v->type = literals[i].type;
		v->text = j->p;
		v->len = n;
		j->p += n;
		return 0;
	}
	return fail(j, j->p, "a value must begin here");
}

static int scalar_read(struct tmk_json *j, struct tmk_json_value *v, int c)
{
	if (c < 0)
		return fail(j, j->p, "the text ends where a value must begin");
	if (c == '"')
		return string_read(j, v);
	if (c == '-' || is_digit((char)c))
		return number_read(j, v);
	return literal_read(j, v);
}

static int container_skip(struct tmk_json *j)
{
	size_t base = j->depth;
	struct tmk_json_value ignored;
	bool first = true;
	int err = tmk_json_enter(j), c;

	while (!err && j->depth > base) {
		err = tmk_json_next(j, first);
		if (err < 0)
			return err;
		first = false;
		if (!err)
			continue;
		err = in_object(j) ? tmk_json_key(j, &ignored) : 0;
		if (err)
			return err;
		c = tmk_json_peek(j);
		if (c == '{' || c == '[') {
			err = tmk_json_enter(j);
			first = true;
		} else {
			err = scalar_read(j, &ignored, c);
		}
	}
	return err;
}

int tmk_json_value(struct tmk_json *j, struct tmk_json_value *v)
{
	int c = tmk_json_peek(j), err;

	v->escaped = false;
	if (c != '{' && c != '[')
		return scalar_read(j, v, c);
	v->type = c == '{' ? TMK_JSON_OBJECT : TMK_JSON_ARRAY;
	v->text = j->p;
	err = container_skip(j);
	v->len = (size_t)(j->p - v->text);
	return err;
}

uint64_t tmk_json_u64(const struct tmk_json_value *v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < v->len && v->text[i] >= '0' && v->text[i] <= '9'; i++)
		n = n * 10 + (uint64_t)(v->text[i] - '0');
	return n;
}

int tmk_json_end(struct tmk_json *j)
{
	if (tmk_json_peek(j) < 0)
		return 0;
	return fail(j, j->p, "the value is complete, but something follows it");
}
