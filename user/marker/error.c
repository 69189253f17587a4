// SPDX-License-Identifier: BSD-2-Clause
/*
 * Why the calling thread's last failed call failed. See error.h.
 */
#include "marker/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "tickmark/tickmark.h"

#define ERROR_MAX 512

static __thread char last_error[ERROR_MAX];

const char *tmk_last_error(void)
{
	return last_error;
}

int tmk_error_note(int err, const char *advice, const char *object, ...)
{
	int saved = errno;
	va_list args;
	int len;

	va_start(args, object);
	len = vsnprintf(last_error, ERROR_MAX, object, args);
	va_end(args);
	errno = -err;
	if (len >= 0 && len < ERROR_MAX)
		snprintf(last_error + len, (size_t)(ERROR_MAX - len), ": %m; %s", advice);
	errno = saved;
	return err;
}
