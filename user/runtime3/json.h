/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader of JSON text that draws the line between good and bad exactly where serde_json 1.0 does.
 *
 * It moves through a text that lies in memory and hands out one value at a time; it builds nothing. A
 * container is either entered, member by member, or skipped whole. What the values mean is the
 * caller's business (record.h). The text must be UTF-8 (text.h checks that) but may be anything else,
 * and may even change while it is read: no byte outside it is ever touched.
 *
 * Two strictnesses, because the importer has two. Strict is how serde_json reads a value that it keeps:
 * surrogate escapes must pair, a number must fit an f64, nesting ends at 127 levels. Lenient is how it
 * skips a member that nobody asked for: only the grammar counts, at any depth.
 *
 * Not thread-safe: one reader, one thread. Functions that return int give 0 or 1, -EBADMSG when the
 * text is bad (`why` and `p` then say what and where), or -ENOMEM (lenient mode, at absurd depths).
 */
#ifndef TICKMARK_RUNTIME3_JSON_H
#define TICKMARK_RUNTIME3_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TMK_JSON_MAX_DEPTH 127 /* of a strict value */

enum tmk_json_type {
	TMK_JSON_NULL,
	TMK_JSON_FALSE,
	TMK_JSON_TRUE,
	TMK_JSON_UNSIGNED, /* written as a whole number, 0 to UINT64_MAX */
	TMK_JSON_NUMBER,   /* any other: "-0", "-1", "1.0", "1e3", 2^64 */
	TMK_JSON_STRING,
	TMK_JSON_ARRAY,
	TMK_JSON_OBJECT,
};

/* Points into the text. */
struct tmk_json_value {
	enum tmk_json_type type;
	bool escaped; /* a string with backslashes in it */
	const char
		*text; /* as written: a string without its quotes, a container with its brackets */
	size_t len;
	double number; /* of both number types, with serde_json's rounding */
};

struct tmk_json {
	const char *p, *end;
	const char *why; /* static text; NULL while all is well */
	bool lenient;	 /* may be switched between any two calls */
	size_t depth;	 /* of open containers */
	/* One bit a level, set for an object. Only lenient mode goes where `far` is needed. */
	uint64_t near[2];
	uint64_t *far;
	size_t far_words;
};

void tmk_json_init(struct tmk_json *j);
void tmk_json_free(struct tmk_json *j);

/* Begins a new text, strictly. The text is borrowed until the next one. */
void tmk_json_set(struct tmk_json *j, const char *text, size_t len);

/* The next byte that is not white space, without taking it; -1 at the end of the text. */
int tmk_json_peek(struct tmk_json *j);

/* Reads a value of any type; a container is checked and skipped whole. */
int tmk_json_value(struct tmk_json *j, struct tmk_json_value *v);

/* Opens the container that begins here (peek gave '[' or '{'). */
int tmk_json_enter(struct tmk_json *j);

/*
 * Goes to the next member of the innermost open container: 1, or 0 when it closed there. `first` says
 * that none was read yet. In an object, tmk_json_key() is due next, in an array a value.
 */
int tmk_json_next(struct tmk_json *j, bool first);

/* Reads a member's name and its colon. */
int tmk_json_key(struct tmk_json *j, struct tmk_json_value *key);

/* The number that a value of type TMK_JSON_UNSIGNED is. */
uint64_t tmk_json_u64(const struct tmk_json_value *v);

/* 0 when only white space is left. */
int tmk_json_end(struct tmk_json *j);

/*
 * Writes a string's meaning into `out` and returns its bytes (never more than v->len); with less room
 * than that, stops before the character that does not fit and returns SIZE_MAX. A lone surrogate, which
 * only lenient strings can hold, comes out as three bytes of its own.
 */
size_t tmk_json_unescape(const struct tmk_json_value *v, char *out, size_t cap);

/* Whether a string means exactly these `len` bytes. */
bool tmk_json_equals(const struct tmk_json_value *v, const char *bytes, size_t len);

#endif /* TICKMARK_RUNTIME3_JSON_H */
