// SPDX-License-Identifier: BSD-2-Clause
/*
 * Decodes one descriptor. Keeping it is names.c's and sessions.c's.
 */
#include "assemble/desc.h"

#include <errno.h>
#include <string.h>

static uint32_t strings_needed(uint16_t kind, uint16_t flags)
{
	switch (kind) {
	case TMK_DESC_SESSION:
		return 3 + !!(flags & TMK_DESC_HAS_ANALYSIS_ID) + !!(flags & TMK_DESC_HAS_BUILD_ID);
	case TMK_DESC_SITE:
	case TMK_DESC_EDGE:
		return 2;
	case TMK_DESC_NAME:
		return 1;
	default:
		return UINT32_MAX;
	}
}

static uint16_t cut_flag(uint16_t kind, uint32_t i)
{
	static const uint16_t site_flags[] = { TMK_DESC_CUT_STATIC_ID, TMK_DESC_CUT_OP };

	switch (kind) {
	case TMK_DESC_SESSION:
		return TMK_DESC_CUT_SESSION;
	case TMK_DESC_SITE:
		return i < 2 ? site_flags[i] : TMK_DESC_CUT_INPUTS;
	case TMK_DESC_EDGE:
		return TMK_DESC_CUT_STATIC_ID;
	default:
		return TMK_DESC_CUT_NAME;
	}
}

/* The longest prefix of at most TMK_STRING_MAX bytes that does not end inside a character. */
static size_t cut_length(const char *s)
{
	size_t len = TMK_STRING_MAX;

	while (len && ((unsigned char)s[len] & 0xc0) == 0x80)
		len--;
	return len ? len : TMK_STRING_MAX; /* nothing but continuation bytes: no text anyway */
}

int tmk_desc_decode(struct tmk_desc_view *d, const struct tmk_rec_describe *rec)
{
	const struct tmk_desc *desc = (const struct tmk_desc *)(rec + 1);
	const char *p, *end;

	if (rec->h.bytes < sizeof(*rec) + sizeof(*desc))
		return -EINVAL;
	if (desc->magic != TMK_DESC_MAGIC || desc->bytes > TMK_STRINGS_MAX ||
	    desc->bytes > rec->h.bytes - sizeof(*rec) - sizeof(*desc) || desc->count > desc->bytes)
		return -EINVAL;
	if (desc->count < strings_needed(desc->kind, desc->flags))
		return -EINVAL;
	/* A session descriptor says whose it is; memory that was reused for another one is none. */
	if (desc->kind == TMK_DESC_SESSION && desc->serial != rec->session_id)
		return -EINVAL;

	d->kind = desc->kind;
	d->flags = desc->flags;
	d->count = desc->count;
	p = desc->strings;
	end = p + desc->bytes;
	for (uint32_t i = 0; i < desc->count; i++) {
		const char *nul = memchr(p, '\0', (size_t)(end - p));
		size_t len;

		if (!nul)
			return -EINVAL;
		len = (size_t)(nul - p);
		if (len > TMK_STRING_MAX) {
			len = cut_length(p);
			d->flags |= cut_flag(desc->kind, i);
		}
		d->strings[i] = (struct tmk_str){ p, len };
		p = nul + 1;
	}
	return p == end ? 0 : -EINVAL;
}
