// SPDX-License-Identifier: BSD-2-Clause
/*
 * The growing byte buffer of buf.h. Writing it anywhere is the caller's.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"

#define BUF_MIN 256

bool tmk_buf_reserve(struct tmk_buf *b, size_t more)
{
	size_t need, cap;
	char *data;

	if (b->err)
		return false;
	if (more <= b->cap - b->len)
		return true;
	if (__builtin_add_overflow(b->len, more, &need) || need > SIZE_MAX / 2)
		goto failed;
	cap = b->cap * 2 > need ? b->cap * 2 : need;
	if (cap < BUF_MIN)
		cap = BUF_MIN;
	data = realloc(b->data, cap);
	if (!data)
		goto failed;
	b->data = data;
	b->cap = cap;
	return true;
failed:
	b->err = -ENOMEM;
	return false;
}

void tmk_buf_append(struct tmk_buf *b, const void *data, size_t len)
{
	if (!len || !tmk_buf_reserve(b, len))
		return;
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void tmk_buf_puts(struct tmk_buf *b, const char *s)
{
	tmk_buf_append(b, s, strlen(s));
}

void tmk_buf_putu64(struct tmk_buf *b, uint64_t v)
{
	if (tmk_buf_reserve(b, TMK_DECIMAL_MAX))
		b->len = (size_t)(tmk_decimal_put(b->data + b->len, v) - b->data);
}

void tmk_buf_clear(struct tmk_buf *b)
{
	b->len = 0;
	b->err = 0;
}

void tmk_buf_free(struct tmk_buf *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}
