// SPDX-License-Identifier: BSD-2-Clause
/*
 * The histogram keeps its promise: quantiles within 1.6 %, everything else exact.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "sink/histogram.h"

static uint64_t rng_state = 88172645463325252ull;

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static int u64_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void empty(void **state)
{
	struct tmk_histogram h = { 0 };
	uint64_t v;

	(void)state;
	assert_false(tmk_histogram_quantile(&h, 0.5, &v));
}

static void one_value_is_exact(void **state)
{
	static const uint64_t values[] = { 0,
					   1,
					   31,
					   32,
					   63,
					   64,
					   65,
					   1000,
					   123456789,
					   1ull << 40,
					   (1ull << 63) - 1,
					   1ull << 63,
					   UINT64_MAX };
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct tmk_histogram_pool pool = { .max = 10 };
		struct tmk_histogram h = { 0 };
		uint64_t v = 7;

		tmk_histogram_add(&h, &pool, values[i]);
		for (int q = 0; q <= 100; q += 50) {
			assert_true(tmk_histogram_quantile(&h, q / 100.0, &v));
			assert_true(v == values[i]);
		}
		assert_true(h.min == values[i] && h.max == values[i] && h.total == values[i]);
		assert_int_equal(h.count, 1);
		tmk_histogram_free(&h, &pool);
		assert_int_equal(pool.used, 0);
	}
}

/* Against the sorted values themselves, over many shapes of distribution. */
static void quantiles_within_the_promised_error(void **state)
{
	enum { N = 5000 };
	static const double qs[] = { 0.001, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1 };
	static uint64_t values[N];

	(void)state;
	for (int shape = 0; shape < 64; shape++) {
		struct tmk_histogram_pool pool = { .max = 1000 };
		struct tmk_histogram h = { 0 };
		uint64_t sum = 0;

		for (int i = 0; i < N; i++) {
			values[i] = rng() >> (shape + rng() % (shape < 40 ? 20 : 4)) % 64;
			values[i] >>= 13; /* the sum stays below 2^64 */
			sum += values[i];
			tmk_histogram_add(&h, &pool, values[i]);
		}
		qsort(values, N, sizeof(values[0]), u64_compare);
		assert_true(h.total == sum);
		assert_true(h.min == values[0] && h.max == values[N - 1]);
		for (size_t k = 0; k < sizeof(qs) / sizeof(qs[0]); k++) {
			uint64_t exact = values[(size_t)ceil(qs[k] * N) - 1], got;

			assert_true(tmk_histogram_quantile(&h, qs[k], &got));
			if (fabs((double)got - (double)exact) > 0.016 * (double)exact)
				fail_msg("shape %d, q %g: %llu is not %llu", shape, qs[k],
					 (unsigned long long)got, (unsigned long long)exact);
			if (exact < 64)
				assert_true(got == exact);
		}
		tmk_histogram_free(&h, &pool);
	}
}

static void the_sum_saturates(void **state)
{
	struct tmk_histogram_pool pool = { .max = 10 };
	struct tmk_histogram h = { 0 };

	(void)state;
	tmk_histogram_add(&h, &pool, UINT64_MAX);
	tmk_histogram_add(&h, &pool, 5);
	assert_true(h.total == UINT64_MAX);
	tmk_histogram_free(&h, &pool);
}

/* Without memory a quantile is unknown, not wrong; the rest stays exact. */
static void an_empty_pool(void **state)
{
	struct tmk_histogram_pool pool = { .max = 1 };
	struct tmk_histogram h = { 0 };
	uint64_t v;

	(void)state;
	tmk_histogram_add(&h, &pool, 10);
	assert_true(tmk_histogram_quantile(&h, 0.5, &v));
	tmk_histogram_add(&h, &pool, 1000);
	assert_false(tmk_histogram_quantile(&h, 0.5, &v));
	assert_int_equal(h.count, 2);
	assert_int_equal(h.total, 1010);
	assert_int_equal(h.max, 1000);
	tmk_histogram_free(&h, &pool);
	assert_int_equal(pool.used, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(one_value_is_exact),
		cmocka_unit_test(quantiles_within_the_promised_error),
		cmocka_unit_test(the_sum_saturates),
		cmocka_unit_test(an_empty_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
