// SPDX-License-Identifier: BSD-2-Clause
/*
 * Output files: parking, reopening, and whose bytes may be cut when a write fails. Full disks are
 * tested where the files are used (test_raw.c, test_sink_runtime3.c).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/out_file.h"

static char path[64], aside[80];

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/tickmark-test-out.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(aside, sizeof(aside), "%s.aside", path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(aside);
	return 0;
}

static void expect(const char *file, const char *text)
{
	char got[4096];
	int fd = open(file, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, got, sizeof(got) - 1);
	assert_true(n >= 0);
	got[n] = '\0';
	close(fd);
	assert_string_equal(got, text);
}

static void whole_lines(void **state)
{
	(void)state;
	assert_int_equal(tmk_whole_lines("", 0), 0);
	assert_int_equal(tmk_whole_lines("ab", 2), 0);
	assert_int_equal(tmk_whole_lines("a\nbc", 4), 2);
	assert_int_equal(tmk_whole_lines("a\nb\n", 4), 4);
}

static void truncates_what_was_there(void **state)
{
	struct tmk_out_file f;

	(void)state;
	assert_int_equal(tmk_out_file_open(&f, path, tmk_whole_lines, NULL), 0);
	tmk_buf_puts(&f.buf, "a longer text\n");
	assert_int_equal(tmk_out_file_close(&f), 0);
	assert_int_equal(tmk_out_file_open(&f, path, tmk_whole_lines, NULL), 0);
	tmk_buf_puts(&f.buf, "short\n");
	assert_int_equal(tmk_out_file_close(&f), 0);
	expect(path, "short\n");
	assert_int_equal(tmk_out_file_close(&f), 0); /* closed already: nothing to do */
}

static void parked_files_go_on_where_they_were(void **state)
{
	struct tmk_out_file f;

	(void)state;
	assert_int_equal(tmk_out_file_open(&f, path, tmk_whole_lines, NULL), 0);
	for (int i = 0; i < 3; i++) {
		tmk_buf_puts(&f.buf, "line\n");
		assert_int_equal(tmk_out_file_park(&f), 0);
		assert_int_equal(f.fd, -1);
		assert_null(f.buf.data);
	}
	assert_int_equal(tmk_out_file_flush(&f), 0); /* nothing to write: stays parked */
	assert_int_equal(f.fd, -1);
	tmk_buf_puts(&f.buf, "last\n");
	assert_int_equal(tmk_out_file_close(&f), 0);
	expect(path, "line\nline\nline\nlast\n");
}

/* While a file is parked another one may be put in its place; that one is not ours. */
static void a_replaced_file_is_not_written(void **state)
{
	struct tmk_out_file f;
	FILE *other;

	(void)state;
	assert_int_equal(tmk_out_file_open(&f, path, tmk_whole_lines, NULL), 0);
	tmk_buf_puts(&f.buf, "ours\n");
	assert_int_equal(tmk_out_file_park(&f), 0);
	assert_int_equal(rename(path, aside), 0);
	other = fopen(path, "w");
	assert_non_null(other);
	fputs("theirs", other);
	fclose(other);
	tmk_buf_puts(&f.buf, "more\n");
	assert_int_equal(tmk_out_file_flush(&f), -ESTALE);
	tmk_buf_puts(&f.buf, "more\n");
	assert_int_equal(tmk_out_file_close(&f), -ESTALE);
	expect(path, "theirs");
	expect(aside, "ours\n");
}

/* Runs f with stdout going to `path`, opened with `flags`, and a limit on the size of files. */
static int with_stdout(int flags, rlim_t limit, const char *text)
{
	struct rlimit old, low;
	struct tmk_out_file f;
	int fd = open(path, O_WRONLY | flags), keep, err;

	assert_true(fd >= 0);
	fflush(stdout);
	keep = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	close(fd);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	low = old;
	low.rlim_cur = limit;
	setrlimit(RLIMIT_FSIZE, &low);
	err = tmk_out_file_open(&f, "-", tmk_whole_lines, NULL);
	if (!err) {
		tmk_buf_puts(&f.buf, text);
		tmk_out_file_park(&f); /* cannot be: nobody could open it again */
		err = tmk_out_file_close(&f);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	dup2(keep, STDOUT_FILENO);
	close(keep);
	return err;
}

static void standard_output_is_written_where_it_stands(void **state)
{
	FILE *f = fopen(path, "w");

	(void)state;
	fputs("before\n", f);
	fclose(f);
	assert_int_equal(with_stdout(O_APPEND, RLIM_INFINITY, "one\n"), 0);
	expect(path, "before\none\n");
	assert_int_equal(with_stdout(0, RLIM_INFINITY, "ONE\n"), 0);
	expect(path, "ONE\nre\none\n");
}

/* A failed write cuts the file back to whole lines, but never into what was there before. */
static void standard_output_is_cut_only_where_it_is_ours(void **state)
{
	FILE *f = fopen(path, "w");

	(void)state;
	fputs("before", f);
	fclose(f);
	assert_int_equal(with_stdout(O_APPEND, 14, "one\ntwo\nthree\n"), -EFBIG);
	expect(path, "beforeone\ntwo\n");
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(with_stdout(O_TRUNC, 10, "one\ntwo\nthree\n"), -EFBIG);
	expect(path, "one\ntwo\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_lines),
		TEST(truncates_what_was_there),
		TEST(parked_files_go_on_where_they_were),
		TEST(a_replaced_file_is_not_written),
		TEST(standard_output_is_written_where_it_stands),
		TEST(standard_output_is_cut_only_where_it_is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
