// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads raw capture files, in place. Checks how records are framed; what is in them the assembler
 * checks.
 */
#include "capture/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for later versions of the header; more is not one. */
#define RAW_HEADER_MAX 65536u
/* How far ahead of the reader the file is fetched from memory; the processor stops at each page. */
#define RAW_AHEAD 2048

struct tmk_raw_reader {
	const char *map;
	size_t len, pos;
	uint8_t last_kind; /* of that record */
	dev_t dev;
	ino_t ino;
};

static const char *header_problem(const char *map, size_t len)
{
	const struct tmk_raw_header *h = (const struct tmk_raw_header *)map;

	if (len < sizeof(h->magic) || memcmp(h->magic, TMK_RAW_MAGIC, sizeof(h->magic)))
		return "not a raw capture; give a file that 'tickmark record --raw' wrote";
	if (len < sizeof(*h))
		return "cut short in its header, holds no records; record again";
	if (h->byte_order == __builtin_bswap32(TMK_RAW_BYTE_ORDER))
		return "recorded on a machine of the other byte order; convert it on such a machine";
	if (h->byte_order != TMK_RAW_BYTE_ORDER)
		return "its header is damaged (byte order mark); record again";
	if (h->version != TMK_RAW_VERSION)
		return "a raw capture of another format version; use the tickmark that recorded it";
	if (h->header_bytes < sizeof(*h) || h->header_bytes % 8 || h->header_bytes > RAW_HEADER_MAX)
		return "its header is damaged (length); record again";
	if (h->header_bytes > len)
		return "cut short in its header, holds no records; record again";
	return NULL;
}

static int raw_map(struct tmk_raw_reader *r, int fd, const char **why)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		*why = "is a directory; give a raw capture file";
		return -EISDIR;
	}
	if (!S_ISREG(st.st_mode)) {
		*why = "not a regular file; copy the capture into one first";
		return -EINVAL;
	}
	if (!st.st_size) {
		*why = "empty, not a raw capture; record again";
		return -EBADMSG;
	}
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	r->len = (size_t)st.st_size;
	map = mmap(NULL, r->len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	r->map = map;
	madvise(map, r->len, MADV_SEQUENTIAL);
	return 0;
}

static const char *errno_reason(int err)
{
	switch (-err) {
	case ENOENT:
		return "no such file; check the path";
	case EACCES:
		return "permission denied; ask its owner, or use sudo";
	case ENOMEM:
		return "out of memory; the file may be too large to be mapped";
	default:
		return strerror(-err);
	}
}

int tmk_raw_reader_open(struct tmk_raw_reader **out, const char *path, const char **why)
{
	struct tmk_raw_reader *r;
	int fd = -1, err;

	*out = NULL;
	*why = NULL;
	r = calloc(1, sizeof(*r));
	if (!r) {
		err = -ENOMEM;
		goto cleanup;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		err = -errno;
		goto cleanup;
	}
	err = raw_map(r, fd, why);
	if (err)
		goto cleanup;
	*why = header_problem(r->map, r->len);
	err = *why ? -EBADMSG : 0;
	if (err)
		goto cleanup;
	r->pos = tmk_raw_reader_header(r)->header_bytes;
cleanup:
	if (fd >= 0)
		close(fd);
	if (err) {
		tmk_raw_reader_close(r);
		if (!*why)
			*why = errno_reason(err);
		return err;
	}
	*out = r;
	return 0;
}

const struct tmk_raw_header *tmk_raw_reader_header(const struct tmk_raw_reader *r)
{
	return (const struct tmk_raw_header *)r->map;
}

void tmk_raw_reader_identity(const struct tmk_raw_reader *r, dev_t *dev, ino_t *ino)
{
	*dev = r->dev;
	*ino = r->ino;
}

int tmk_raw_reader_next(struct tmk_raw_reader *r, const struct tmk_rec **rec, const char **why)
{
	const struct tmk_rec *h = (const struct tmk_rec *)(r->map + r->pos);
	size_t left = r->len - r->pos;

	if (!left)
		return 0;
	if (r->last_kind == TMK_REC_END) {
		*why = "there are bytes behind the end record";
		return -EBADMSG;
	}
	if (left < sizeof(*h)) {
		*why = "the last record is cut short";
		return -EBADMSG;
	}
	if (h->bytes < sizeof(*h) || h->bytes % 8) {
		*why = "a record has an impossible length";
		return -EBADMSG;
	}
	if (h->bytes > left) {
		*why = "the last record is cut short";
		return -EBADMSG;
	}
	r->pos += h->bytes;
	__builtin_prefetch(r->map + r->pos + RAW_AHEAD);
	r->last_kind = h->kind;
	*rec = h;
	return 1;
}

void tmk_raw_reader_scan(const struct tmk_raw_reader *r, struct tmk_raw_scan *scan)
{
	struct tmk_raw_reader walk = *r;
	const struct tmk_rec *rec;
	int got;

	memset(scan, 0, sizeof(*scan));
	while ((got = tmk_raw_reader_next(&walk, &rec, &scan->why)) > 0)
		scan->records++;
	if (got < 0)
		scan->bad_at = walk.pos;
	else
		scan->has_end = walk.last_kind == TMK_REC_END;
}

uint64_t tmk_raw_reader_offset(const struct tmk_raw_reader *r)
{
	return r->pos;
}

void tmk_raw_reader_close(struct tmk_raw_reader *r)
{
	if (!r)
		return;
	if (r->map)
		munmap((void *)r->map, r->len);
	free(r);
}
