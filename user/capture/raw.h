/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw capture files: the records as they were read, for replay. Layout in capture_abi.h.
 */
#ifndef TICKMARK_CAPTURE_RAW_H
#define TICKMARK_CAPTURE_RAW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture_abi.h"

struct tmk_raw_writer;

/* Creates or truncates `path` ("-" is stdout). Returns 0 or -errno. `options` is for people. */
int tmk_raw_writer_open(struct tmk_raw_writer **out, const char *path, const char *options);
/*
 * Whole records only reach the file. `rec->bytes` must be what really lies at `rec`: -EINVAL for a
 * length that no record has. Write errors are sticky: returned here, by flush and by close.
 */
int tmk_raw_writer_put(struct tmk_raw_writer *w, const struct tmk_rec *rec);
int tmk_raw_writer_flush(struct tmk_raw_writer *w);
int tmk_raw_writer_close(struct tmk_raw_writer *w); /* flushes, frees; NULL is fine */

struct tmk_raw_reader;

/*
 * Opens a raw file and checks its header. On failure returns -errno and *why (static text, never NULL)
 * says what is wrong and what to do: not a raw capture, another version, another byte order, cut short.
 * The file is mapped: it may grow meanwhile (the reader sees what was there), but must not shrink.
 */
int tmk_raw_reader_open(struct tmk_raw_reader **out, const char *path, const char **why);
const struct tmk_raw_header *tmk_raw_reader_header(const struct tmk_raw_reader *r);
void tmk_raw_reader_identity(const struct tmk_raw_reader *r, dev_t *dev, ino_t *ino);

/*
 * Next record: 1 and *rec (valid until the reader is closed, and readable for rec->bytes), 0 at the
 * end of the file, or -EBADMSG with *why for a record that is cut short, malformed, or behind the last
 * one. After an error every further call gives the same.
 */
int tmk_raw_reader_next(struct tmk_raw_reader *r, const struct tmk_rec **rec, const char **why);
uint64_t
tmk_raw_reader_offset(const struct tmk_raw_reader *r); /* of the next record, for messages */

/* What a walk over all records finds, from the current position; the position stays. */
struct tmk_raw_scan {
	uint64_t records; /* whole ones */
	uint64_t bad_at;  /* offset of the first byte that is no whole record; 0 if there is none */
	const char *why;  /* why not, if bad_at */
	bool has_end;	  /* the last record is TMK_REC_END */
};
void tmk_raw_reader_scan(const struct tmk_raw_reader *r, struct tmk_raw_scan *scan);

void tmk_raw_reader_close(struct tmk_raw_reader *r); /* NULL is fine */

#endif /* TICKMARK_CAPTURE_RAW_H */
