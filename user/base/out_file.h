/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An output file that only ever holds whole units (lines, records).
 *
 * The caller appends whole units to `buf` and calls tmk_out_file_commit(); the bytes leave in large
 * writes. When a write fails half-way, the file is cut back to the last whole unit. Errors are sticky:
 * after the first one nothing is written any more and every call returns it. What the units mean, what
 * the file is called and who is told of an error are the caller's.
 *
 * Not thread-safe.
 */
#ifndef TICKMARK_BASE_OUT_FILE_H
#define TICKMARK_BASE_OUT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Bytes that gather before commit writes them. */
#define TMK_OUT_FILE_CHUNK (64u * 1024)

/* The length of the longest prefix of whole units in `len` bytes at `data`, which begin with one. */
typedef size_t (*tmk_whole_fn)(const char *data, size_t len);
size_t tmk_whole_lines(const char *data, size_t len);

struct tmk_out_file {
	struct tmk_buf buf; /* append whole units here */
	char *path;	    /* owned; "-" is stdout */
	tmk_whole_fn whole;
	int fd;	 /* -1 while parked or closed */
	int err; /* sticky, negative errno */
	bool regular;
	bool killable; /* may be killed at any time: see tmk_out_file_options */
	dev_t dev;
	ino_t ino;
	off_t end; /* regular files: where the last whole unit that was written ends */
};

struct tmk_out_file_options {
	/*
	 * For names that somebody else could guess, and plant: nothing but a plain file with one name
	 * is overwritten (-ELOOP, -EMLINK, -EEXIST otherwise).
	 */
	bool no_follow;
	/*
	 * Write in small groups of whole units. A SIGKILL stops a write at the end of a page, so of a large
	 * one a unit that is cut would nearly always remain; small ones leave the kernel little to cut.
	 */
	bool killable;
	bool has_avoid; /* refuse (-EDEADLK) the file with this identity, untouched */
	dev_t avoid_dev;
	ino_t avoid_ino;
};

/*
 * Opens `path` for writing and truncates it; "-" is stdout, which is written where it stands. Returns
 * 0 or -errno (the file is then closed and needs no tmk_out_file_close()). `options` may be NULL.
 */
int tmk_out_file_open(struct tmk_out_file *f, const char *path, tmk_whole_fn whole,
		      const struct tmk_out_file_options *options);

/* Writes everything. Returns 0 or the sticky error. */
int tmk_out_file_flush(struct tmk_out_file *f);

/* To be called after units were appended: writes once enough has gathered, and notices -ENOMEM. */
static inline int tmk_out_file_commit(struct tmk_out_file *f)
{
	if (__builtin_expect(f->buf.len < TMK_OUT_FILE_CHUNK && !f->buf.err, 1))
		return f->err;
	return tmk_out_file_flush(f);
}

/*
 * Flushes, and gives back descriptor and memory; the next flush opens the file again, after checking
 * that it still is the same file. Does nothing for a file that cannot be opened again (a pipe, stdout).
 */
int tmk_out_file_park(struct tmk_out_file *f);

/* Flushes and closes. Returns the sticky error. A file that was never opened (all zero) is fine. */
int tmk_out_file_close(struct tmk_out_file *f);

#endif /* TICKMARK_BASE_OUT_FILE_H */
