/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growing byte buffer. Running out of memory is remembered in `err` (-ENOMEM) and turns later
 * appends into no-ops, so a caller checks once, where the bytes leave.
 */
#ifndef TICKMARK_BASE_BUF_H
#define TICKMARK_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_buf {
	char *data;
	size_t len, cap;
	int err;
};

/* Makes room for `more` bytes behind len; false (and err set) when memory ran out. */
bool tmk_buf_reserve(struct tmk_buf *b, size_t more);
void tmk_buf_append(struct tmk_buf *b, const void *data, size_t len);
void tmk_buf_puts(struct tmk_buf *b, const char *s);
void tmk_buf_putu64(struct tmk_buf *b, uint64_t v); /* decimal */
void tmk_buf_clear(struct tmk_buf *b);		    /* keeps the memory, forgets an error */
void tmk_buf_free(struct tmk_buf *b);

#endif /* TICKMARK_BASE_BUF_H */
