// SPDX-License-Identifier: BSD-2-Clause
/*
 * Descriptors within their bounds. See desc.h.
 */
#include "marker/desc.h"

#include <string.h>

#define PAGE 4096 /* the smallest there is */

/* The bytes of `s` before a NUL, but at most `max`, and then not ending inside a UTF-8 character. */
static size_t length_within(const char *s, size_t max, bool *cut)
{
	size_t len = strnlen(s, max + 1);
	size_t at = max;

	if (len <= max)
		return len;
	*cut = true;
	while (at && max - at < 3 && ((unsigned char)s[at] & 0xc0) == 0x80)
		at--;
	/* More continuation bytes than a character has: no UTF-8, so cut anywhere. */
	return ((unsigned char)s[at] & 0xc0) == 0x80 ? max : at;
}

struct tmk_str tmk_desc_cut(const char *s, bool *cut)
{
	if (!s)
		s = "";
	return (struct tmk_str){ s, length_within(s, TMK_STRING_MAX, cut) };
}

void tmk_desc_begin(union tmk_desc_draft *draft, enum tmk_desc_kind kind)
{
	memset(&draft->desc, 0, sizeof(draft->desc));
	draft->desc.magic = TMK_DESC_MAGIC;
	draft->desc.kind = (tmk_u16)kind;
}

static size_t room(const union tmk_desc_draft *draft)
{
	return TMK_STRINGS_MAX - draft->desc.bytes;
}

static void append(union tmk_desc_draft *draft, const char *s, size_t len)
{
	char *p = draft->bytes + sizeof(draft->desc) + draft->desc.bytes;

	memcpy(p, s, len);
	p[len] = '\0';
	draft->desc.bytes += (tmk_u32)len + 1;
	draft->desc.count++;
}

void tmk_desc_add(union tmk_desc_draft *draft, const char *s, size_t keep, enum tmk_desc_flags flag)
{
	size_t max = room(draft) - keep - 1;
	bool cut = false;
	size_t len;

	if (!s)
		s = "";
	len = length_within(s, max < TMK_STRING_MAX ? max : TMK_STRING_MAX, &cut);
	append(draft, s, len);
	if (cut)
		draft->desc.flags |= (tmk_u16)flag;
}

bool tmk_desc_add_item(union tmk_desc_draft *draft, const char *s, enum tmk_desc_flags flag)
{
	bool cut = false;
	struct tmk_str str = tmk_desc_cut(s, &cut);

	if (cut || str.len + 1 > room(draft))
		draft->desc.flags |= (tmk_u16)flag;
	if (str.len + 1 > room(draft))
		return false;
	append(draft, str.data, str.len);
	return true;
}

size_t tmk_desc_strings(const struct tmk_desc *desc, struct tmk_str *strings, size_t max)
{
	const char *p = desc->strings, *end = p + desc->bytes;
	size_t n = 0;

	while (n < desc->count && n < max) {
		const char *nul = memchr(p, '\0', (size_t)(end - p));

		if (!nul)
			break;
		strings[n++] = (struct tmk_str){ p, (size_t)(nul - p) };
		p = nul + 1;
	}
	return n;
}

void tmk_desc_touch(const struct tmk_desc *desc)
{
	const volatile char *p = (const volatile char *)desc;
	size_t last = tmk_desc_size(desc) - 1;

	for (size_t at = 0; at < last; at += PAGE)
		(void)p[at];
	(void)p[last];
}
