// SPDX-License-Identifier: BSD-2-Clause
/*
 * Raw capture files: what is written is read back, and everything that is no such file is named.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/raw.h"

static char path[] = "/tmp/tickmark-test-raw.XXXXXX";

static int setup(void **state)
{
	(void)state;
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static struct tmk_rec_op_begin begin_record(uint64_t token)
{
	return (struct tmk_rec_op_begin){ .h = { .bytes = sizeof(struct tmk_rec_op_begin),
						 .kind = TMK_REC_OP_BEGIN,
						 .incarnation = 1,
						 .time = token },
					  .token = token };
}

static struct tmk_rec_end end_record(void)
{
	return (struct tmk_rec_end){ .h = { .bytes = sizeof(struct tmk_rec_end),
					    .kind = TMK_REC_END } };
}

/* A whole capture of `n` begins. */
static void capture_write(uint64_t n)
{
	struct tmk_rec_end end = end_record();
	struct tmk_raw_writer *w;

	assert_int_equal(tmk_raw_writer_open(&w, path, "record -p 1"), 0);
	for (uint64_t i = 0; i < n; i++) {
		struct tmk_rec_op_begin r = begin_record(i);

		assert_int_equal(tmk_raw_writer_put(w, &r.h), 0);
	}
	assert_int_equal(tmk_raw_writer_put(w, &end.h), 0);
	assert_int_equal(tmk_raw_writer_close(w), 0);
}

static off_t file_size(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* Overwrites bytes of the file. */
static void poke(off_t at, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, at), n);
	close(fd);
}

static void round_trip(void **state)
{
	const uint64_t n = 100000; /* several buffers */
	struct tmk_raw_reader *r;
	const struct tmk_rec *rec;
	struct tmk_raw_scan scan;
	const char *why;

	(void)state;
	capture_write(n);
	assert_int_equal(tmk_raw_reader_open(&r, path, &why), 0);
	assert_string_equal(tmk_raw_reader_header(r)->options, "record -p 1");
	assert_int_not_equal(tmk_raw_reader_header(r)->mono_ns, 0);
	assert_int_not_equal(tmk_raw_reader_header(r)->real_ns, 0);
	assert_int_equal(tmk_raw_reader_offset(r), sizeof(struct tmk_raw_header));
	tmk_raw_reader_scan(r, &scan);
	assert_int_equal(scan.records, n + 1);
	assert_true(scan.has_end);
	assert_int_equal(scan.bad_at, 0);
	for (uint64_t i = 0; i < n; i++) {
		struct tmk_rec_op_begin expected = begin_record(i);

		assert_int_equal(tmk_raw_reader_next(r, &rec, &why), 1);
		assert_int_equal(rec->bytes, sizeof(expected));
		assert_memory_equal(rec, &expected, sizeof(expected));
	}
	assert_int_equal(tmk_raw_reader_next(r, &rec, &why), 1);
	assert_int_equal(rec->kind, TMK_REC_END);
	assert_int_equal(tmk_raw_reader_next(r, &rec, &why), 0);
	assert_int_equal(tmk_raw_reader_next(r, &rec, &why), 0);
	tmk_raw_reader_close(r);
}

static void impossible_records_are_not_written(void **state)
{
	struct tmk_rec_op_begin rec = begin_record(1);
	struct tmk_raw_writer *w;

	(void)state;
	assert_int_equal(tmk_raw_writer_open(&w, path, NULL), 0);
	rec.h.bytes = 16;
	assert_int_equal(tmk_raw_writer_put(w, &rec.h), -EINVAL);
	rec.h.bytes = 60;
	assert_int_equal(tmk_raw_writer_put(w, &rec.h), -EINVAL);
	assert_int_equal(tmk_raw_writer_close(w), 0);
	assert_int_equal(file_size(), sizeof(struct tmk_raw_header));
}

static void an_unopenable_path(void **state)
{
	struct tmk_raw_writer *w;
	struct tmk_raw_reader *r;
	const char *why;

	(void)state;
	assert_int_equal(tmk_raw_writer_open(&w, "/nonexistent/x.tmk", NULL), -ENOENT);
	assert_null(w);
	assert_int_equal(tmk_raw_reader_open(&r, "/nonexistent/x.tmk", &why), -ENOENT);
	assert_null(r);
	assert_non_null(strstr(why, "no such file"));
}

static void open_fails(int expected, const char *part)
{
	struct tmk_raw_reader *r;
	const char *why = NULL;

	assert_int_equal(tmk_raw_reader_open(&r, path, &why), expected);
	assert_null(r);
	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("'%s' does not say '%s'", why, part);
}

static void files_that_are_no_captures(void **state)
{
	static const uint32_t other_order = 0x04030201, no_order = 7, version = 2, len = 999999;
	struct tmk_raw_header h;

	(void)state;
	open_fails(-EBADMSG, "empty");
	poke(0, "no capture, but long enough for a header", 40);
	open_fails(-EBADMSG, "not a raw capture");
	assert_int_equal(truncate(path, 3), 0);
	open_fails(-EBADMSG, "not a raw capture");
	capture_write(1);
	poke(offsetof(struct tmk_raw_header, byte_order), &other_order, 4);
	open_fails(-EBADMSG, "other byte order");
	capture_write(1);
	poke(offsetof(struct tmk_raw_header, byte_order), &no_order, 4);
	open_fails(-EBADMSG, "damaged");
	capture_write(1);
	poke(offsetof(struct tmk_raw_header, version), &version, 4);
	open_fails(-EBADMSG, "another format version");
	capture_write(1);
	poke(offsetof(struct tmk_raw_header, header_bytes), &len, 4);
	open_fails(-EBADMSG, "damaged");
	capture_write(1);
	assert_int_equal(truncate(path, sizeof(h) - 1), 0);
	open_fails(-EBADMSG, "cut short");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	open_fails(-EINVAL, "not a regular file");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	open_fails(-EISDIR, "directory");
	rmdir(path);
}

static void scan_expect(uint64_t records, uint64_t bad_at, const char *part)
{
	struct tmk_raw_reader *r;
	struct tmk_raw_scan scan;
	const struct tmk_rec *rec;
	const char *why;
	int got;

	assert_int_equal(tmk_raw_reader_open(&r, path, &why), 0);
	tmk_raw_reader_scan(r, &scan);
	assert_int_equal(scan.records, records);
	assert_int_equal(scan.bad_at, bad_at);
	assert_false(scan.has_end);
	/* Reading finds the same. */
	for (uint64_t i = 0; i < records; i++)
		assert_int_equal(tmk_raw_reader_next(r, &rec, &why), 1);
	got = tmk_raw_reader_next(r, &rec, &why);
	assert_int_equal(got, bad_at ? -EBADMSG : 0);
	if (bad_at) {
		assert_string_equal(why, scan.why);
		if (!strstr(why, part))
			fail_msg("'%s' does not say '%s'", why, part);
		assert_int_equal(tmk_raw_reader_next(r, &rec, &why), -EBADMSG);
	}
	tmk_raw_reader_close(r);
}

static void captures_that_are_damaged(void **state)
{
	const off_t head = sizeof(struct tmk_raw_header), rec = sizeof(struct tmk_rec_op_begin);
	const off_t end = sizeof(struct tmk_rec_end);
	static const uint16_t no_length = 0, odd = 60, beyond = 0xfff8;

	(void)state;
	capture_write(3);
	assert_int_equal(truncate(path, head + 3 * rec), 0);
	scan_expect(3, 0, NULL); /* whole records, but no end */
	assert_int_equal(truncate(path, head + 2 * rec + 8), 0);
	scan_expect(2, (uint64_t)(head + 2 * rec), "cut short");
	capture_write(3);
	assert_int_equal(truncate(path, head + 3 * rec + end - 8), 0);
	scan_expect(3, (uint64_t)(head + 3 * rec), "cut short");
	capture_write(3);
	poke(head + rec, &no_length, 2);
	scan_expect(1, (uint64_t)(head + rec), "impossible length");
	poke(head + rec, &odd, 2);
	scan_expect(1, (uint64_t)(head + rec), "impossible length");
	poke(head + rec, &beyond, 2);
	scan_expect(1, (uint64_t)(head + rec), "cut short");
	capture_write(3);
	poke(head + 3 * rec + end, "12345678", 8);
	scan_expect(4, (uint64_t)(head + 3 * rec + end), "behind the end");
}

/* conf33: the first write that fails is remembered, and only whole records stay in the file. */
static void conf33_a_full_disk_leaves_whole_records(void **state)
{
	const off_t limit = 200001; /* in the middle of a record of the second write */
	struct rlimit old, low;
	struct tmk_raw_writer *w;
	int err = 0;
	off_t size;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = old;
	low.rlim_cur = (rlim_t)limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(tmk_raw_writer_open(&w, path, "x"), 0);
	for (uint64_t i = 0; i < 20000; i++) {
		struct tmk_rec_op_begin r = begin_record(i);
		int got = tmk_raw_writer_put(w, &r.h);

		assert_true(!err || got == err);
		err = got;
	}
	assert_int_equal(err, -EFBIG);
	assert_int_equal(tmk_raw_writer_flush(w), -EFBIG);
	assert_int_equal(tmk_raw_writer_close(w), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	size = file_size();
	assert_int_equal((size - (off_t)sizeof(struct tmk_raw_header)) %
				 (off_t)sizeof(struct tmk_rec_op_begin),
			 0);
	/* And no whole record that fitted was thrown away. */
	assert_in_range(size, limit - (off_t)sizeof(struct tmk_rec_op_begin), limit);
	scan_expect((uint64_t)(size - (off_t)sizeof(struct tmk_raw_header)) /
			    sizeof(struct tmk_rec_op_begin),
		    0, NULL);
}

static void conf33_no_space_from_the_first_byte(void **state)
{
	struct tmk_raw_writer *w;

	(void)state;
	assert_int_equal(tmk_raw_writer_open(&w, "/dev/full", "x"), -ENOSPC);
	assert_null(w);
	assert_int_equal(tmk_raw_writer_close(NULL), 0);
	tmk_raw_reader_close(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(round_trip),
		TEST(impossible_records_are_not_written),
		TEST(an_unopenable_path),
		TEST(files_that_are_no_captures),
		TEST(captures_that_are_damaged),
		TEST(conf33_a_full_disk_leaves_whole_records),
		TEST(conf33_no_space_from_the_first_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
