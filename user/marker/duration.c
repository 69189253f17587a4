// SPDX-License-Identifier: BSD-2-Clause
/*
 * Durations: from two stamps of one clock to nanoseconds, or to the reason why there are none.
 */
#define TMK_NO_INLINE
#include <errno.h>
#include <stdbool.h>

#include "marker/duration.h"

#define NS_PER_SECOND 1000000000u

bool tmk_ticks_ns(const struct tmk_ticks *t, uint64_t *ns)
{
	unsigned __int128 wide;

	if (!t->start || !t->end || t->end <= t->start)
		return false;
	wide = (unsigned __int128)(t->end - t->start) * NS_PER_SECOND /
	       (t->per_second ? t->per_second : NS_PER_SECOND);
	if (wide > UINT64_MAX)
		return false;
	*ns = wide ? (uint64_t)wide : 1;
	return true;
}

void tmk_duration_set(struct tmk_duration *d, const struct tmk_duration *value)
{
	d->method = value->method;
	d->ticks = value->ticks;
	d->error = value->error;
	__atomic_store_n(&d->state, value->state, __ATOMIC_RELEASE);
}

int tmk_duration_ns(const struct tmk_duration *d, uint64_t *ns)
{
	switch (__atomic_load_n(&d->state, __ATOMIC_ACQUIRE)) {
	case TMK_DURATION_PENDING:
		return -EAGAIN;
	case TMK_DURATION_MEASURED:
		return tmk_ticks_ns(&d->ticks, ns) ? 0 : -ENODATA;
	case TMK_DURATION_FAILED:
		return d->error < 0 ? d->error : -EIO;
	default:
		return -ENODATA;
	}
}
