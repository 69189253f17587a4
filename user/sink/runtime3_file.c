// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes one runtime/3 file a session, with few of them open at a time. What the lines look like is
 * runtime3's, when they are complete the assembler's.
 */
#include "sink/runtime3_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/out_file.h"
#include "base/report.h"
#include "sink/capture_line.h"

/* Files with a descriptor and a buffer at a time; the others are parked. */
#define ACTIVE_MAX 64
#define FLUSH_EVERY_NS 100000000ull
/* Notes about single files that are printed before it becomes tiresome. */
#define NOTES_MAX 8

struct session_file {
	struct tmk_out_file out;
	char *path;
	bool skipped;	/* stdout is taken */
	bool meta_held; /* strict: waits for the first event */
	bool active;
	bool regular;
	dev_t dev;
	ino_t ino;
};

struct runtime3_sink {
	const struct tmk_out_path *path;
	struct tmk_runtime3_file_options options;
	struct session_file **files; /* by session index */
	size_t n, cap;
	struct session_file *active[ACTIVE_MAX];
	size_t n_active, next_victim;
	uint64_t flushed_ns;
	uint64_t skipped;
	bool failed;
};

static const char *error_advice(int err)
{
	switch (-err) {
	case ENOSPC:
	case EDQUOT:
		return "free some space, or give another -o";
	case EDEADLK:
		return "give another -o";
	case ESTALE:
		return "somebody replaced it; leave the output alone while it is written";
	case ENOENT:
		return "check that its directory exists";
	case EMFILE:
	case ENFILE:
		return "raise the limit of open files";
	case ELOOP:
	case EMLINK:
	case EEXIST:
		return "something else has that name; remove it";
	default:
		return "give another -o";
	}
}

static int file_failed(struct runtime3_sink *sink, const char *path, int err)
{
	const char *name = !strcmp(path, "-") ? "standard output" : path;

	if (!sink->failed)
		tmk_error("%s: cannot be written: %s; %s", name,
			  err == -EDEADLK ? "it is the input" : strerror(-err), error_advice(err));
	sink->failed = true;
	return err;
}

/* Two sessions must never share a file, whatever their processes and ids are called. */
static bool path_is_taken(const struct runtime3_sink *sink, const char *path)
{
	for (size_t i = 0; i < sink->n; i++)
		if (sink->files[i] && sink->files[i]->path && !strcmp(sink->files[i]->path, path))
			return true;
	return false;
}

static char *path_choose(const struct runtime3_sink *sink, const struct tmk_session_view *s)
{
	for (unsigned int attempt = 0;; attempt++) {
		char *path = tmk_out_path_session(sink->path, s, attempt);

		if (!path || sink->path->mode != TMK_OUT_DIR || !path_is_taken(sink, path))
			return path;
		free(path);
	}
}

static int file_park(struct runtime3_sink *sink, struct session_file *f)
{
	int err = tmk_out_file_park(&f->out);

	f->active = false;
	return err ? file_failed(sink, f->path, err) : 0;
}

/* Takes a place among the active files, for which another one may have to be parked. */
static int file_activate(struct runtime3_sink *sink, struct session_file *f)
{
	size_t place = sink->n_active;
	int err = 0;

	if (place == ACTIVE_MAX) {
		place = sink->next_victim++ % ACTIVE_MAX;
		err = file_park(sink, sink->active[place]);
	} else {
		sink->n_active++;
	}
	sink->active[place] = f;
	f->active = true;
	return err;
}

static int file_open(struct runtime3_sink *sink, struct session_file *f,
		     const struct tmk_session_view *s)
{
	struct tmk_out_file_options o = {
		/* Names that others can foresee may have been planted; the user's own was meant. */
		.no_follow = sink->path->mode == TMK_OUT_DIR || s->index,
		.killable = sink->options.live,
		.has_avoid = sink->options.has_avoid,
		.avoid_dev = sink->options.avoid_dev,
		.avoid_ino = sink->options.avoid_ino,
	};
	int err = file_activate(sink, f);

	if (!err)
		err = tmk_out_file_open(&f->out, f->path, tmk_whole_lines, &o);
	if (err)
		return file_failed(sink, f->path, err);
	f->regular = f->out.regular && strcmp(f->path, "-");
	f->dev = f->out.dev;
	f->ino = f->out.ino;
	if (s->index && s->index < NOTES_MAX)
		tmk_note("session %u goes to %s", s->index + 1, f->path);
	return 0;
}

static int files_grow(struct runtime3_sink *sink, size_t n)
{
	size_t cap = sink->cap ? sink->cap : 16;
	struct session_file **files;

	while (cap < n)
		cap *= 2;
	if (cap > sink->cap) {
		files = realloc(sink->files, cap * sizeof(*files));
		if (!files)
			return -ENOMEM;
		sink->files = files;
		sink->cap = cap;
	}
	while (sink->n < n)
		sink->files[sink->n++] = NULL;
	return 0;
}

static int runtime3_on_session(void *self, const struct tmk_session_view *s)
{
	struct runtime3_sink *sink = self;
	struct session_file *f = NULL;
	int err = files_grow(sink, s->index + 1ul);

	if (!err)
		f = calloc(1, sizeof(*f));
	if (!f)
		return file_failed(sink, sink->path->base, -ENOMEM);
	f->out.fd = -1;
	sink->files[s->index] = f;
	if (sink->path->mode == TMK_OUT_STDOUT && s->index) {
		f->skipped = true;
		sink->skipped++;
		return 0;
	}
	/* Not before it is certain to be free: path_is_taken() looks at every file. */
	f->path = path_choose(sink, s);
	if (!f->path)
		return file_failed(sink, sink->path->base, -ENOMEM);
	err = file_open(sink, f, s);
	if (err)
		return err;
	if (sink->options.strict)
		f->meta_held = true;
	else
		tmk_r3_meta_line(&f->out.buf, &s->meta, false);
	/* At once: an output that cannot be written should be known before the run, not after. */
	err = tmk_out_file_flush(&f->out);
	return err ? file_failed(sink, f->path, err) : 0;
}

/* The buffer for the next line of a session; NULL and *err = 0 for one that is not written. */
static inline struct session_file *line_begin(struct runtime3_sink *sink,
					      const struct tmk_session_view *s, int *err)
{
	struct session_file *f = sink->files[s->index];

	*err = 0;
	if (f->skipped)
		return NULL;
	if (!f->active)
		*err = file_activate(sink, f);
	if (f->meta_held) {
		tmk_r3_meta_line(&f->out.buf, &s->meta, false);
		f->meta_held = false;
	}
	return *err ? NULL : f;
}

static inline int line_end(struct runtime3_sink *sink, struct session_file *f)
{
	int err = tmk_out_file_commit(&f->out);

	return err ? file_failed(sink, f->path, err) : 0;
}

static int runtime3_on_op(void *self, const struct tmk_op_view *op)
{
	struct runtime3_sink *sink = self;
	int err;
	struct session_file *f = line_begin(sink, op->session, &err);

	if (!f)
		return err;
	tmk_r3_op_line(&f->out.buf, &op->op, sink->options.strict);
	return line_end(sink, f);
}

static int runtime3_on_edge(void *self, const struct tmk_edge_view *e)
{
	struct runtime3_sink *sink = self;
	int err;
	struct session_file *f = line_begin(sink, e->session, &err);

	if (!f)
		return err;
	tmk_r3_edge_line(&f->out.buf, &e->edge, sink->options.strict);
	return line_end(sink, f);
}

static int runtime3_on_unfinished(void *self, const struct tmk_unfinished_view *u)
{
	struct runtime3_sink *sink = self;
	struct session_file *f;
	int err;

	if (sink->options.strict)
		return 0;
	f = line_begin(sink, u->session, &err);
	if (!f)
		return err;
	tmk_r3_unfinished_line(&f->out.buf, &u->u);
	return line_end(sink, f);
}

static int runtime3_on_window(void *self, const struct tmk_window_view *w)
{
	struct runtime3_sink *sink = self;
	struct session_file *f;
	int err;

	if (sink->options.strict)
		return 0;
	f = line_begin(sink, w->session, &err);
	if (!f)
		return err;
	tmk_r3_window_line(&f->out.buf, &w->w);
	return line_end(sink, f);
}

/* A file that somebody reads meanwhile is never far behind. */
static int runtime3_on_tide(void *self)
{
	struct runtime3_sink *sink = self;
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	if (now - sink->flushed_ns < FLUSH_EVERY_NS)
		return 0;
	sink->flushed_ns = now;
	for (size_t i = 0; i < sink->n_active; i++) {
		struct session_file *f = sink->active[i];

		if (tmk_out_file_flush(&f->out))
			return file_failed(sink, f->path, f->out.err);
	}
	return 0;
}

static int session_finish(struct runtime3_sink *sink, const struct tmk_finish_view *v, size_t i)
{
	struct session_file *f = i < sink->n ? sink->files[i] : NULL;
	int err = 0;

	if (!f || f->skipped || !f->out.path || sink->failed)
		return 0;
	if (f->meta_held)
		tmk_r3_meta_line(&f->out.buf, &v->sessions[i]->meta, true);
	else if (!sink->options.strict)
		tmk_capture_line(&f->out.buf, v, i);
	f->meta_held = false;
	err = tmk_out_file_close(&f->out);
	return err ? file_failed(sink, f->path, err) : 0;
}

static int runtime3_on_finish(void *self, const struct tmk_finish_view *v)
{
	struct runtime3_sink *sink = self;
	int err = 0;

	for (size_t i = 0; i < v->n_sessions && !err; i++)
		err = session_finish(sink, v, i);
	if (sink->n > NOTES_MAX && sink->path->mode != TMK_OUT_STDOUT)
		tmk_note("%zu sessions, each in a file of its own", sink->n);
	if (sink->skipped)
		tmk_note("standard output holds one session; %llu more were left out: give -o a "
			 "directory",
			 (unsigned long long)sink->skipped);
	return err;
}

static void runtime3_free(void *self)
{
	struct runtime3_sink *sink = self;

	for (size_t i = 0; i < sink->n; i++) {
		struct session_file *f = sink->files[i];

		if (!f)
			continue;
		tmk_out_file_close(&f->out);
		free(f->path);
		free(f);
	}
	free(sink->files);
	free(sink);
}

static const struct tmk_sink_ops runtime3_ops = {
	.name = "runtime3",
	.on_session = runtime3_on_session,
	.on_op = runtime3_on_op,
	.on_edge = runtime3_on_edge,
	.on_unfinished = runtime3_on_unfinished,
	.on_window = runtime3_on_window,
	.on_tide = runtime3_on_tide,
	.on_finish = runtime3_on_finish,
	.free = runtime3_free,
};

int tmk_runtime3_file_new(struct tmk_sink *out, const struct tmk_out_path *path,
			  const struct tmk_runtime3_file_options *options)
{
	struct runtime3_sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return -ENOMEM;
	sink->path = path;
	if (options)
		sink->options = *options;
	out->ops = &runtime3_ops;
	out->self = sink;
	return 0;
}

uint64_t tmk_runtime3_file_skipped(const struct tmk_sink *sink)
{
	return ((const struct runtime3_sink *)sink->self)->skipped;
}

void tmk_runtime3_file_discard(const struct tmk_sink *sink)
{
	const struct runtime3_sink *s = sink->self;

	for (size_t i = 0; i < s->n; i++) {
		const struct session_file *f = s->files[i];
		struct stat st;

		if (f && f->regular && !lstat(f->path, &st) && S_ISREG(st.st_mode) &&
		    st.st_dev == f->dev && st.st_ino == f->ino)
			unlink(f->path);
	}
}
