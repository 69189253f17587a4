// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes raw capture files. What a record means is the assembler's.
 */
#include "capture/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/out_file.h"

struct tmk_raw_writer {
	struct tmk_out_file file;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The buffer begins with the header in the file's first write, and with a record in every later one. */
static size_t whole_records(const char *data, size_t len)
{
	size_t done = 0;

	if (len >= sizeof(struct tmk_raw_header) && !memcmp(data, TMK_RAW_MAGIC, 8))
		done = sizeof(struct tmk_raw_header);
	while (len - done >= sizeof(struct tmk_rec)) {
		struct tmk_rec rec;

		memcpy(&rec, data + done, sizeof(rec));
		if (rec.bytes < sizeof(rec) || rec.bytes > len - done)
			break;
		done += rec.bytes;
	}
	return done;
}

/* Cuts what is too long; `to` is zeroed and keeps its last NUL. */
static void text_copy(char *to, size_t cap, const char *from)
{
	memcpy(to, from, strnlen(from, cap - 1));
}

static void header_fill(struct tmk_raw_header *h, const char *options)
{
	struct utsname un;

	memset(h, 0, sizeof(*h));
	memcpy(h->magic, TMK_RAW_MAGIC, sizeof(h->magic));
	h->byte_order = TMK_RAW_BYTE_ORDER;
	h->version = TMK_RAW_VERSION;
	h->header_bytes = sizeof(*h);
	h->mono_ns = clock_ns(CLOCK_MONOTONIC);
	h->real_ns = clock_ns(CLOCK_REALTIME);
	if (!uname(&un)) {
		text_copy(h->host, sizeof(h->host), un.nodename);
		text_copy(h->kernel, sizeof(h->kernel), un.release);
	}
	text_copy(h->options, sizeof(h->options), options ? options : "");
}

int tmk_raw_writer_open(struct tmk_raw_writer **out, const char *path, const char *options)
{
	struct tmk_raw_header header;
	struct tmk_raw_writer *w;
	int err;

	*out = NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	err = tmk_out_file_open(&w->file, path, whole_records, NULL);
	if (err)
		goto cleanup;
	header_fill(&header, options);
	tmk_buf_append(&w->file.buf, &header, sizeof(header));
	/* At once: an error of the file is better found before anything is recorded. */
	err = tmk_out_file_flush(&w->file);
	if (err)
		goto cleanup;
	*out = w;
	return 0;
cleanup:
	tmk_out_file_close(&w->file);
	free(w);
	return err;
}

int tmk_raw_writer_put(struct tmk_raw_writer *w, const struct tmk_rec *rec)
{
	if (rec->bytes < sizeof(*rec) || rec->bytes % 8)
		return -EINVAL;
	tmk_buf_append(&w->file.buf, rec, rec->bytes);
	return tmk_out_file_commit(&w->file);
}

int tmk_raw_writer_flush(struct tmk_raw_writer *w)
{
	return tmk_out_file_flush(&w->file);
}

int tmk_raw_writer_close(struct tmk_raw_writer *w)
{
	int err;

	if (!w)
		return 0;
	err = tmk_out_file_close(&w->file);
	free(w);
	return err;
}
