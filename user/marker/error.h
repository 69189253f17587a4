/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text behind tmk_last_error().
 */
#ifndef TICKMARK_MARKER_ERROR_H
#define TICKMARK_MARKER_ERROR_H

/*
 * Notes for the calling thread "OBJECT: REASON; ADVICE", the reason being that of the negative errno
 * `err`, which is returned.
 */
int tmk_error_note(int err, const char *advice, const char *object, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* TICKMARK_MARKER_ERROR_H */
