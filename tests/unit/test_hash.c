// SPDX-License-Identifier: BSD-2-Clause
/*
 * The hash index against a plain array, with hashes that collide all the time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"

#define SLOTS 2000u

static uint64_t rng_state = 1;

static uint32_t below(uint32_t n)
{
	rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rng_state >> 33) % n;
}

static unsigned int times_found(const struct tmk_index *ix, uint32_t hash, uint32_t wanted)
{
	unsigned int found = 0;
	uint32_t pos, slot;

	TMK_INDEX_FOR_EACH(ix, hash, pos, slot)
	{
		found += slot == wanted;
	}
	return found;
}

static void remove_slot(struct tmk_index *ix, uint32_t hash, uint32_t wanted)
{
	uint32_t pos, slot;

	TMK_INDEX_FOR_EACH(ix, hash, pos, slot)
	{
		if (slot == wanted) {
			tmk_index_remove(ix, pos);
			return;
		}
	}
	fail_msg("slot %u is not there", wanted);
}

/* `spread` different hashes: 1 makes one chain of all, a high one spreads them; all near the wrap. */
static void against_an_array(uint32_t spread)
{
	static uint32_t hash_of[SLOTS];
	static uint8_t present[SLOTS];
	struct tmk_index ix = { 0 };
	uint32_t used = 0;

	memset(present, 0, sizeof(present));
	for (int step = 0; step < 20000; step++) {
		uint32_t slot = below(SLOTS);

		if (present[slot]) {
			remove_slot(&ix, hash_of[slot], slot);
			used--;
		} else {
			hash_of[slot] = UINT32_MAX - below(spread);
			assert_int_equal(tmk_index_insert(&ix, hash_of[slot], slot), 0);
			used++;
		}
		present[slot] ^= 1;
		assert_int_equal(ix.used, used);
		assert_true(used * 2 <= ix.mask + 1);
		if (step % 500 == 0)
			for (uint32_t i = 0; i < SLOTS; i++)
				assert_int_equal(times_found(&ix, hash_of[i], i), present[i]);
	}
	tmk_index_free(&ix);
}

static void colliding_hashes(void **state)
{
	(void)state;
	against_an_array(1);
	against_an_array(7);
	against_an_array(1000);
	against_an_array(UINT32_MAX);
}

static void an_empty_index(void **state)
{
	struct tmk_index ix = { 0 };

	(void)state;
	assert_int_equal(times_found(&ix, 5, 0), 0);
	tmk_index_free(&ix);
}

/* Keys in equal steps, which honest programs have, must spread whatever the seed; and seeds must differ. */
static void hashes_spread(void **state)
{
	enum { BITS = 12, N = 1 << BITS, SEEDS = 2000 };
	static const uint64_t steps[] = { 1, 16, 64, 4096, 1ull << 32 };
	struct tmk_seed seed, other;

	(void)state;
	tmk_seed_init(&other);
	for (unsigned int round = 0; round < SEEDS; round++) {
		static uint16_t load[N];
		uint64_t step = steps[round % 5];
		unsigned int empty = 0, most = 0, same = 0;

		memset(load, 0, sizeof(load));
		tmk_seed_init(&seed);
		for (uint32_t i = 0; i < N; i++) {
			uint64_t key = 0x7f0000001000 + i * step;
			uint32_t h =
				round % 2 ? tmk_hash2(&seed, key, 1) : tmk_hash2(&seed, 1, key);

			load[h % N]++;
			same += tmk_hash2(&seed, key, 1) == tmk_hash2(&other, key, 1);
		}
		for (uint32_t i = 0; i < N; i++) {
			empty += !load[i];
			most = load[i] > most ? load[i] : most;
		}
		/* N balls in N bins leave N / e of them empty, and hardly ever 14 in one. */
		assert_in_range(empty, N * 33 / 100, N * 41 / 100);
		assert_in_range(most, 3, 14);
		assert_in_range(same, 0, 5);
	}
}

static void hashes_of_bytes(void **state)
{
	struct tmk_seed seed;
	char text[40];

	(void)state;
	tmk_seed_init(&seed);
	memset(text, 'x', sizeof(text));
	for (size_t len = 0; len < sizeof(text); len++) {
		uint32_t h = tmk_hash_bytes(&seed, text, len);

		assert_int_equal(h, tmk_hash_bytes(&seed, text, len));
		for (size_t i = 0; i < len; i++) {
			text[i] ^= 1;
			assert_int_not_equal(h, tmk_hash_bytes(&seed, text, len));
			text[i] ^= 1;
		}
		assert_int_not_equal(h, tmk_hash_bytes(&seed, text, len ? len - 1 : 1));
	}
}

/* Counted names, as ids are: for each number of bytes that is below, of and above a word. */
static void hashes_of_short_strings_spread(void **state)
{
	static unsigned char load[65536];
	struct tmk_seed seed;
	char text[16];

	(void)state;
	tmk_seed_init(&seed);
	for (size_t len = 4; len <= 12; len++) {
		unsigned int empty = 0, most = 0;

		memset(load, 0, sizeof(load));
		for (unsigned int i = 0; i < sizeof(load); i++) {
			memset(text, 'o', sizeof(text));
			for (unsigned int digit = 0, n = i; digit < 4; digit++, n /= 16)
				text[len - 1 - digit] = "0123456789abcdef"[n % 16];
			load[tmk_hash_bytes(&seed, text, len) % sizeof(load)]++;
		}
		for (size_t i = 0; i < sizeof(load); i++) {
			empty += !load[i];
			most = load[i] > most ? load[i] : most;
		}
		assert_in_range(empty, sizeof(load) * 30 / 100, sizeof(load) * 45 / 100);
		assert_in_range(most, 2, 14);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_index),
		cmocka_unit_test(colliding_hashes),
		cmocka_unit_test(hashes_spread),
		cmocka_unit_test(hashes_of_bytes),
		cmocka_unit_test(hashes_of_short_strings_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
