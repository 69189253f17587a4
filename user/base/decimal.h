/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decimal digits, fast: every line of output has eight numbers or more. Text beyond that is the
 * caller's.
 */
#ifndef TICKMARK_BASE_DECIMAL_H
#define TICKMARK_BASE_DECIMAL_H

#include <stdint.h>
#include <string.h>

#define TMK_DECIMAL_MAX 20 /* digits of UINT64_MAX */

static inline unsigned int tmk_decimal_digits(uint64_t v)
{
	static const uint64_t power[] = { 0ULL,
					  10ULL,
					  100ULL,
					  1000ULL,
					  10000ULL,
					  100000ULL,
					  1000000ULL,
					  10000000ULL,
					  100000000ULL,
					  1000000000ULL,
					  10000000000ULL,
					  100000000000ULL,
					  1000000000000ULL,
					  10000000000000ULL,
					  100000000000000ULL,
					  1000000000000000ULL,
					  10000000000000000ULL,
					  100000000000000000ULL,
					  1000000000000000000ULL,
					  10000000000000000000ULL };
	unsigned int bits = 64 - (unsigned int)__builtin_clzll(v | 1);
	/* bits * log10(2), rounded down: the number of digits, or one less. */
	unsigned int t = bits * 1233 >> 12;

	return t + 1 - (v < power[t]);
}

/* Writes v at p, without a NUL, and returns the place behind it. */
static inline char *tmk_decimal_put(char *p, uint64_t v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char *end = p + tmk_decimal_digits(v);
	char *at = end;

	while (v >= 100) {
		at -= 2;
		memcpy(at, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10)
		memcpy(at - 2, pairs + v * 2, 2);
	else
		at[-1] = (char)('0' + v);
	return end;
}

#endif /* TICKMARK_BASE_DECIMAL_H */
