// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of output files. Opening and writing them is the sinks'.
 */
#include "sink/out_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int why_set(char *why, size_t cap, int err, const char *text)
{
	snprintf(why, cap, "%s", text);
	return err;
}

static int dir_problem(const char *dir, char *why, size_t cap)
{
	struct stat st;

	if (stat(dir, &st)) {
		if (errno == ENOENT)
			return why_set(why, cap, -ENOENT,
				       "its directory does not exist; create it first");
		snprintf(why, cap, "%s; give another -o", strerror(errno));
		return -errno;
	}
	if (!S_ISDIR(st.st_mode))
		return why_set(why, cap, -ENOTDIR,
			       "what should be its directory is none; give another -o");
	if (access(dir, W_OK | X_OK)) {
		snprintf(why, cap, "its directory is not writable (%s); give another -o",
			 strerror(errno));
		return -errno;
	}
	return 0;
}

static int dir_prepare(const char *dir, char *why, size_t cap)
{
	struct stat st;

	if (mkdir(dir, 0777) && errno != EEXIST) {
		if (errno == ENOENT)
			return why_set(why, cap, -ENOENT,
				       "the directory above it does not exist; create it first");
		snprintf(why, cap, "cannot make the directory (%s); give another -o",
			 strerror(errno));
		return -errno;
	}
	/* With its final "/", a file is no directory to stat() itself. */
	if (stat(dir, &st) ? errno == ENOTDIR : !S_ISDIR(st.st_mode))
		return why_set(why, cap, -ENOTDIR,
			       "is a file, not a directory; leave out the final '/'");
	if (access(dir, W_OK | X_OK)) {
		snprintf(why, cap, "not writable (%s); give another -o", strerror(errno));
		return -errno;
	}
	return 0;
}

static int file_prepare(const char *path, char *why, size_t cap)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int err;

	if (!access(path, F_OK)) {
		if (!access(path, W_OK))
			return 0;
		snprintf(why, cap, "not writable (%s); give another -o", strerror(errno));
		return -errno;
	}
	dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	if (!dir)
		return why_set(why, cap, -ENOMEM, "out of memory");
	err = dir_problem(dir, why, cap);
	free(dir);
	return err;
}

int tmk_out_path_init(struct tmk_out_path *p, const char *arg, char *why, size_t why_cap)
{
	size_t len = strlen(arg);
	struct stat st;
	int err = 0;

	memset(p, 0, sizeof(*p));
	if (!len)
		return why_set(why, why_cap, -EINVAL, "an empty output path; give -o a file");
	if (!strcmp(arg, "-")) {
		p->mode = TMK_OUT_STDOUT;
	} else if (arg[len - 1] == '/' || (!stat(arg, &st) && S_ISDIR(st.st_mode))) {
		p->mode = TMK_OUT_DIR;
		err = dir_prepare(arg, why, why_cap);
		while (len > 1 && arg[len - 1] == '/')
			len--;
	} else {
		p->mode = TMK_OUT_FILE;
		err = file_prepare(arg, why, why_cap);
	}
	if (err)
		return err;
	p->base = strndup(arg, len);
	return p->base ? 0 : why_set(why, why_cap, -ENOMEM, "out of memory");
}

void tmk_out_path_free(struct tmk_out_path *p)
{
	free(p->base);
	memset(p, 0, sizeof(*p));
}

/* A process may call itself "../../etc/x", "-rf" or nothing at all. */
static void comm_sanitize(char out[32], const char *comm)
{
	size_t n = 0;

	for (; n < 16 && comm[n]; n++) {
		char c = comm[n];
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  (c >= '0' && c <= '9') || c == '_' || (n && (c == '.' || c == '-'));

		out[n] = ok ? c : '_';
	}
	out[n] = '\0';
	if (!n)
		strcpy(out, "unnamed");
}

static char *file_name(const char *base, uint64_t ordinal)
{
	const char *name = strrchr(base, '/');
	const char *dot;
	char *out = NULL;

	name = name ? name + 1 : base;
	dot = strrchr(name, '.');
	if (!dot || dot == name)
		dot = name + strlen(name);
	if (asprintf(&out, "%.*s.%" PRIu64 "%s", (int)(dot - base), base, ordinal, dot) < 0)
		return NULL;
	return out;
}

char *tmk_out_path_session(const struct tmk_out_path *p, const struct tmk_session_view *s,
			   unsigned int attempt)
{
	char comm[32], other[16] = "";
	char *out = NULL;

	if (p->mode == TMK_OUT_STDOUT || (p->mode == TMK_OUT_FILE && !s->index))
		return strdup(p->base);
	if (p->mode == TMK_OUT_FILE)
		return file_name(p->base, s->index + 1ull);
	comm_sanitize(comm, s->comm);
	if (attempt)
		snprintf(other, sizeof(other), "-%u", attempt + 1);
	/* The upper half of the number only tells copies of the library apart. */
	if (asprintf(&out, "%s/%s-%" PRIu32 "-%" PRIu32 "%s.jsonl", p->base, comm, s->pid,
		     (uint32_t)s->session_id, other) < 0)
		return NULL;
	return out;
}
