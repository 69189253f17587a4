// SPDX-License-Identifier: BSD-2-Clause
/*
 * Numbers for people. Where they stand on the line is the caller's.
 */
#include "base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t round_to(uint64_t n, uint64_t step)
{
	return (n + step / 2) / step * step;
}

char *tmk_format_ns(char out[TMK_FORMAT_MAX], uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "µs", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	static const uint64_t steps[] = { 1000, 100, 10 };
	size_t unit = 0;

	if (ns < 1000) {
		snprintf(out, TMK_FORMAT_MAX, "%" PRIu64 " ns", ns);
		return out;
	}
	for (;; unit++) {
		/* In thousandths of the unit, rounded to the three digits that are printed. */
		uint64_t milli = ns / (units[unit].ns / 1000);
		int decimals = 0;

		if (unit < 2 && milli >= 1000000)
			continue;
		if (milli < 9995)
			decimals = 2;
		else if (milli < 99950)
			decimals = 1;
		milli = round_to(milli, steps[decimals]);
		if (unit < 2 && milli >= 1000000)
			continue; /* rounding has carried it into the next unit */
		snprintf(out, TMK_FORMAT_MAX, "%.*f %s", decimals, (double)milli / 1000,
			 units[unit].name);
		return out;
	}
}

char *tmk_format_count(char out[TMK_FORMAT_MAX], uint64_t n)
{
	char digits[TMK_FORMAT_MAX];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = out;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return out;
}
