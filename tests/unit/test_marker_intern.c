// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sites, edges and names from strings that are only known at run time: the same strings give the same
 * descriptor, bounds are kept and said, and a full table degrades by degrees.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>

#include "unit/marker_hook.h"

#define CUT_ALL (TMK_DESC_CUT_STATIC_ID | TMK_DESC_CUT_OP | TMK_DESC_CUT_INPUTS)

static struct tmk_session *session; /* marks only, with a listener */

static int listening_setup(void **state)
{
	struct tmk_config config = tmk_config_infer("E");

	if (hooks_install(state) || tmk_session_open(&session, NULL, &config))
		return -1;
	listen_start();
	return 0;
}

static int listening_end(void **state)
{
	(void)state;
	listen_stop();
	return tmk_session_finish(session);
}

static void assert_strings(const struct tmk_desc *desc, const char *strings, size_t bytes,
			   unsigned int count, unsigned int flags)
{
	assert_int_equal(desc->magic, TMK_DESC_MAGIC);
	assert_int_equal(desc->flags, flags);
	assert_int_equal(desc->count, count);
	assert_int_equal(desc->bytes, bytes);
	assert_int_equal(desc->serial, 0);
	assert_memory_equal(desc->strings, strings, bytes);
}

#define ASSERT_STRINGS(desc, literal, count, flags) \
	assert_strings(desc, literal, sizeof(literal), count, flags)

static void same_strings_give_the_same_site(void **state)
{
	const char *ab[] = { "a", "b" }, *ba[] = { "b", "a" };
	char id[] = "id", op[] = "op";
	const struct tmk_desc *site = tmk_site_intern("id", "op", ab, 2);

	(void)state;
	assert_int_equal(site->kind, TMK_DESC_SITE);
	ASSERT_STRINGS(site, "id\0op\0a\0b", 4, 0);
	assert_ptr_equal(tmk_site_intern(id, op, ab, 2), site);
	assert_ptr_not_equal(tmk_site_intern("id", "op", ba, 2), site);
	assert_ptr_not_equal(tmk_site_intern("id", "op", ab, 1), site);
	/* The same bytes, divided otherwise. */
	assert_ptr_not_equal(tmk_site_intern("i", "dop", ab, 2), site);
	/* The same strings as an edge or a name are another thing. */
	assert_int_equal(tmk_edge_record(session, "id", "op", 1), 0);
	assert_int_equal(desc_at(hits[n_hits - 1].arg[2])->kind, TMK_DESC_EDGE);
	ASSERT_STRINGS(tmk_site_intern("id", "op", NULL, 0), "id\0op", 2, 0);
	/* Copied: what the caller does with its strings afterwards is no matter. */
	id[0] = op[0] = 'X';
	ASSERT_STRINGS(site, "id\0op\0a\0b", 4, 0);
}

static void null_counts_as_empty(void **state)
{
	const char *inputs[] = { NULL, "b" };

	(void)state;
	ASSERT_STRINGS(tmk_site_intern(NULL, NULL, NULL, 0), "\0", 2, 0);
	ASSERT_STRINGS(tmk_site_intern(NULL, NULL, NULL, 7), "\0", 2, 0);
	ASSERT_STRINGS(tmk_site_intern("i", NULL, inputs, 2), "i\0\0\0b", 4, 0);
	assert_ptr_equal(tmk_site_intern("", "", NULL, 0), tmk_site_intern(NULL, NULL, NULL, 0));
}

/* A string of `len` bytes that ends in `end`. */
static char *long_string(size_t len, const char *end)
{
	char *s = malloc(len + 1);

	assert_non_null(s);
	memset(s, 'x', len);
	memcpy(s + len - strlen(end), end, strlen(end) + 1);
	return s;
}

static void conf19_cut_at_a_character(void **state)
{
	static const struct {
		size_t len;
		const char *end;
		size_t kept;
	} cases[] = {
		{ TMK_STRING_MAX, "y", TMK_STRING_MAX },
		{ TMK_STRING_MAX, "\xf0\x9f\x98\x80", TMK_STRING_MAX },
		{ TMK_STRING_MAX + 1, "y", TMK_STRING_MAX },
		{ TMK_STRING_MAX + 1, "\xc3\xa9", TMK_STRING_MAX - 1 },
		{ TMK_STRING_MAX + 2, "\xc3\xa9", TMK_STRING_MAX },
		{ TMK_STRING_MAX + 1, "\xe2\x80\xa8", TMK_STRING_MAX - 2 },
		{ TMK_STRING_MAX + 2, "\xe2\x80\xa8", TMK_STRING_MAX - 1 },
		{ TMK_STRING_MAX + 1, "\xf0\x9f\x98\x80", TMK_STRING_MAX - 3 },
		{ TMK_STRING_MAX + 3, "\xf0\x9f\x98\x80", TMK_STRING_MAX - 1 },
		/* Not UTF-8: cut at the bound. */
		{ TMK_STRING_MAX + 2, "\x80\x80\x80\x80\x80\x80\x80\x80", TMK_STRING_MAX },
		{ 100000, "y", TMK_STRING_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *s = long_string(cases[i].len, cases[i].end);
		const struct tmk_desc *site = tmk_site_intern(s, "", NULL, 0);

		assert_int_equal(strlen(site->strings), cases[i].kept);
		assert_memory_equal(site->strings, s, cases[i].kept);
		assert_int_equal(site->flags,
				 cases[i].kept < cases[i].len ? TMK_DESC_CUT_STATIC_ID : 0);
		assert_int_equal(tmk_site_intern("", s, NULL, 0)->flags,
				 cases[i].kept < cases[i].len ? TMK_DESC_CUT_OP : 0);
		free(s);
	}
}

static void conf19_inputs_that_do_not_fit(void **state)
{
	char *s = long_string(TMK_STRING_MAX, "");
	const char *inputs[] = { "first", s, s, s, "last" };
	const char *many[2000];
	const struct tmk_desc *site;

	(void)state;
	site = tmk_site_intern(s, s, inputs, 5);
	/* static_id, op, "first" and one long input; the next is left out, and what follows it. */
	assert_int_equal(site->count, 4);
	assert_int_equal(site->flags, TMK_DESC_CUT_INPUTS);
	assert_true(site->bytes <= TMK_STRINGS_MAX);
	for (size_t i = 0; i < 2000; i++)
		many[i] = "";
	site = tmk_site_intern("a", "b", many, 2000);
	assert_int_equal(site->count, 2002);
	assert_int_equal(site->flags, 0);
	for (size_t i = 0; i < 2000; i++)
		many[i] = "abc";
	site = tmk_site_intern("a", "b", many, 2000);
	assert_int_equal(site->count, 2 + (TMK_STRINGS_MAX - 4) / 4);
	assert_int_equal(site->flags, TMK_DESC_CUT_INPUTS);
	free(s);
}

static void names_are_cut_and_say_so(void **state)
{
	char *s = long_string(TMK_STRING_MAX + 1, "");
	TMK_SITE(site, "s", "o");
	const struct tmk_desc *name, *edge;

	(void)state;
	tmk_op_end(session, tmk_op_begin(session, &site), s);
	name = desc_at(hits[n_hits - 1].arg[4]);
	assert_int_equal(name->flags, TMK_DESC_CUT_NAME);
	assert_int_equal(name->bytes, TMK_STRING_MAX + 1);
	tmk_edge_record(session, "a", s, 1);
	edge = desc_at(hits[n_hits - 1].arg[2]);
	assert_int_equal(edge->flags, TMK_DESC_CUT_STATIC_ID);
	assert_int_equal(edge->bytes, 2 + TMK_STRING_MAX + 1);
	free(s);
}

/* --- threads */

enum { THREADS = 4, SITES = 5000 };
static const struct tmk_desc *found[THREADS][SITES];

static void *intern_all(void *arg)
{
	const struct tmk_desc **mine = arg;
	char id[32];

	for (int i = 0; i < SITES; i++) {
		snprintf(id, sizeof(id), "thread-%d", i);
		mine[i] = tmk_site_intern(id, "op", NULL, 0);
	}
	return NULL;
}

static void threads_find_one_anothers(void **state)
{
	pthread_t threads[THREADS];
	char id[32];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, intern_all, found[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int k = 0; k < SITES; k++) {
		snprintf(id, sizeof(id), "thread-%d", k);
		assert_string_equal(found[0][k]->strings, id);
		for (int i = 1; i < THREADS; i++)
			assert_ptr_equal(found[i][k], found[0][k]);
	}
}

/* --- last: fills the table for good */

static void full_table_cuts_by_degrees(void **state)
{
	const struct tmk_desc *site, *first = NULL, *shared;
	const char *inputs[] = { "x", "y" };
	TMK_SITE(made, "s", "o");
	char id[32];
	unsigned int i;

	(void)state;
	for (i = 0; i <= TMK_INTERN_MAX; i++) {
		snprintf(id, sizeof(id), "full-%u", i);
		site = tmk_site_intern(id, "op", inputs, 2);
		if (!i)
			first = site;
		assert_string_equal(site->strings, id);
		if (site->flags)
			break;
	}
	/* Where the table is full, a site loses its inputs but not its name. */
	assert_true(i > TMK_INTERN_MAX - 3 * SITES && i <= TMK_INTERN_MAX);
	assert_int_equal(site->flags, TMK_DESC_CUT_INPUTS);
	assert_int_equal(site->count, 2);
	assert_ptr_equal(tmk_site_intern(id, "op", inputs, 2), site);
	assert_ptr_equal(tmk_site_intern(id, "op", inputs, 1), site);
	for (; !(site->flags & TMK_DESC_CUT_STATIC_ID); i++) {
		snprintf(id, sizeof(id), "full-%u", i);
		site = tmk_site_intern(id, "op", inputs, 2);
	}
	shared = site;
	assert_true(i > TMK_INTERN_MAX && i < 2 * TMK_INTERN_MAX);
	ASSERT_STRINGS(shared, "\0", 2, CUT_ALL);
	assert_ptr_equal(tmk_site_intern("another", "op", NULL, 0), shared);
	/* What was there is still found. */
	assert_ptr_equal(tmk_site_intern("full-0", "op", inputs, 2), first);
	assert_ptr_equal(tmk_site_intern("thread-7", "op", NULL, 0), found[0][7]);

	listen_start();
	tmk_op_end(session, tmk_op_begin(session, shared), "a name that is new");
	tmk_op_end(session, tmk_op_begin_inputs(session, &made, inputs, 2), NULL);
	tmk_edge_record(session, "new", "too", 1);
	assert_int_equal(n_hits, 5);
	assert_int_equal(desc_at(hits[1].arg[4])->kind, TMK_DESC_NAME);
	assert_int_equal(desc_at(hits[1].arg[4])->flags, TMK_DESC_CUT_NAME);
	assert_ptr_equal(desc_at(hits[2].arg[2]), shared);
	assert_int_equal(desc_at(hits[4].arg[2])->kind, TMK_DESC_EDGE);
	assert_int_equal(desc_at(hits[4].arg[2])->flags, TMK_DESC_CUT_STATIC_ID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_strings_give_the_same_site),
		cmocka_unit_test(null_counts_as_empty),
		cmocka_unit_test(conf19_cut_at_a_character),
		cmocka_unit_test(conf19_inputs_that_do_not_fit),
		cmocka_unit_test(names_are_cut_and_say_so),
		cmocka_unit_test(threads_find_one_anothers),
		cmocka_unit_test(full_table_cuts_by_degrees),
	};

	return cmocka_run_group_tests(tests, listening_setup, listening_end);
}
