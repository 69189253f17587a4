// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writing whole units, and cutting back to whole units when a write fails. Naming files and telling
 * people are the callers'.
 */
#include "base/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

size_t tmk_whole_lines(const char *data, size_t len)
{
	const char *nl = len ? memrchr(data, '\n', len) : NULL;

	return nl ? (size_t)(nl - data) + 1 : 0;
}

static int out_stdout_open(struct tmk_out_file *f)
{
	struct stat st;

	/* A copy, so that closing the output leaves the process's stdout alone. */
	f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (f->fd < 0 || fstat(f->fd, &st))
		return -errno;
	/* A file that is only appended to is shared with others: it is not ours to cut. */
	f->regular = S_ISREG(st.st_mode) && !(fcntl(f->fd, F_GETFL) & O_APPEND);
	f->end = f->regular ? lseek(f->fd, 0, SEEK_CUR) : 0;
	if (f->end < 0)
		f->regular = false;
	return 0;
}

static int out_path_open(struct tmk_out_file *f, const struct tmk_out_file_options *o)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;
	struct stat st;

	/* Not O_TRUNC: the file may turn out to be one that must not be touched. */
	f->fd = open(f->path, flags | (o->no_follow ? O_NOFOLLOW | O_NONBLOCK : 0), 0666);
	if (f->fd < 0 || fstat(f->fd, &st))
		return -errno;
	if (o->has_avoid && st.st_dev == o->avoid_dev && st.st_ino == o->avoid_ino)
		return -EDEADLK;
	f->regular = S_ISREG(st.st_mode);
	if (o->no_follow && !f->regular)
		return -EEXIST;
	if (o->no_follow && st.st_nlink > 1)
		return -EMLINK;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	/* Not an empty one: ext4 takes a truncation for a replacement, and then waits for the disk at close. */
	if (f->regular && st.st_size && ftruncate(f->fd, 0))
		return -errno;
	return 0;
}

int tmk_out_file_open(struct tmk_out_file *f, const char *path, tmk_whole_fn whole,
		      const struct tmk_out_file_options *options)
{
	static const struct tmk_out_file_options none;
	int err;

	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->whole = whole;
	f->killable = options && options->killable;
	f->path = strdup(path);
	if (!f->path)
		return -ENOMEM;
	err = strcmp(path, "-") ? out_path_open(f, options ? options : &none) : out_stdout_open(f);
	if (!err)
		return 0;
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	return err;
}

static int out_reopen(struct tmk_out_file *f)
{
	struct stat st;

	/* O_NONBLOCK: whatever has taken the file's place must not hold us up. */
	f->fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (f->fd < 0)
		return -errno;
	if (fstat(f->fd, &st))
		return -errno;
	if (st.st_dev != f->dev || st.st_ino != f->ino)
		return -ESTALE;
	if (lseek(f->fd, f->end, SEEK_SET) < 0)
		return -errno;
	return 0;
}

/* How many of the `len` bytes at `data` go into one write. */
static size_t write_size(const struct tmk_out_file *f, const char *data, size_t len)
{
	const size_t page = 4096;
	size_t n;

	if (!f->killable || len <= page)
		return len;
	n = f->whole(data, page);
	return n ? n : len; /* a unit of more than a page */
}

static int out_write(struct tmk_out_file *f)
{
	size_t done = 0;

	while (done < f->buf.len) {
		const char *data = f->buf.data + done;
		ssize_t n = write(f->fd, data, write_size(f, data, f->buf.len - done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			struct pollfd wait = { .fd = f->fd, .events = POLLOUT };

			poll(&wait, 1, -1);
			continue;
		}
		if (n <= 0) {
			int err = n < 0 ? -errno : -EIO;

			/* Of what reached the file only whole units may stay. */
			f->end += (off_t)f->whole(f->buf.data, done);
			if (f->regular && ftruncate(f->fd, f->end) == 0)
				lseek(f->fd, f->end, SEEK_SET);
			return err;
		}
		done += (size_t)n;
	}
	f->end += (off_t)done;
	return 0;
}

int tmk_out_file_flush(struct tmk_out_file *f)
{
	if (f->err)
		return f->err;
	if (f->buf.err)
		/* Memory ran out in the middle of a unit; keep those before it. */
		f->buf.len = f->whole(f->buf.data, f->buf.len);
	if (f->buf.len && f->fd < 0)
		f->err = out_reopen(f);
	if (f->buf.len && !f->err)
		f->err = out_write(f);
	if (!f->err)
		f->err = f->buf.err;
	tmk_buf_clear(&f->buf);
	return f->err;
}

int tmk_out_file_park(struct tmk_out_file *f)
{
	if (!f->regular || !strcmp(f->path, "-"))
		return f->err;
	tmk_out_file_flush(f);
	if (f->fd >= 0 && close(f->fd) && !f->err)
		f->err = -errno;
	f->fd = -1;
	tmk_buf_free(&f->buf);
	return f->err;
}

int tmk_out_file_close(struct tmk_out_file *f)
{
	int err;

	if (!f->path)
		return 0;
	tmk_out_file_flush(f);
	if (f->fd >= 0 && close(f->fd) && !f->err)
		f->err = -errno;
	err = f->err;
	tmk_buf_free(&f->buf);
	free(f->path);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	return err;
}
