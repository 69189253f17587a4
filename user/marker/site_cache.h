/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sites that one session's file has met, each rendered once as the constant part of its lines.
 *
 * Found by address, but not believed by address alone: a plugin may be unloaded and another take its
 * place in memory, so the content is compared too. Looked up without a lock; what it hands out stays
 * valid until the cache is freed.
 */
#ifndef TICKMARK_MARKER_SITE_CACHE_H
#define TICKMARK_MARKER_SITE_CACHE_H

#include <pthread.h>

#include "runtime3/runtime3.h"
#include "tickmark/marker_abi.h"

struct tmk_site_table;
struct tmk_site_entry;

struct tmk_site_cache {
	struct tmk_site_table *table;	/* atomic */
	struct tmk_site_entry *entries; /* all that were ever made */
	pthread_mutex_t lock;		/* of insertions */
};

void tmk_site_cache_init(struct tmk_site_cache *c);

/* NULL without memory. */
const struct tmk_r3_site *tmk_site_cache_get(struct tmk_site_cache *c, const struct tmk_desc *site);

/* Only when no other thread uses the cache any more. */
void tmk_site_cache_free(struct tmk_site_cache *c);

#endif /* TICKMARK_MARKER_SITE_CACHE_H */
