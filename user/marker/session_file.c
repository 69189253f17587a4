// SPDX-License-Identifier: BSD-2-Clause
/*
 * A session's own file. See session_file.h. The bytes of a line are runtime3/line.c's, whole lines and
 * sticky errors base/out_file.c's, the operations in flight op_table.c's.
 */
#include "marker/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/out_file.h"
#include "marker/desc.h"
#include "marker/error.h"
#include "marker/identity.h"
#include "marker/site_cache.h"
#include "marker/window_table.h"

/* Lines gather to this size before they are written. */
#define FLUSH_BYTES (64u * 1024)
/* An operation's line of up to this size is made outside the lock; nearly every one is. */
#define SCRATCH_BYTES 2048
/* How long exit() waits for a thread that is writing. */
#define EXIT_WAIT_MS 500

struct tmk_session_file {
	struct tmk_op_table open_ops;
	struct tmk_site_cache sites;
	const struct tmk_desc *session;
	struct tmk_str phase; /* inside the session's descriptor */
	char *path;
	uint32_t pid;
	bool strict;
	struct {
		uint64_t mono_ns, real_ns;
	} opened;
	uint64_t no_memory, repeated_ends, stray_ends, after_flush; /* atomic */
	struct tmk_session_file *next;				    /* under files_lock */

	pthread_mutex_t lock; /* of all below */
	struct tmk_out_file out;
	uint64_t operations, edges, truncated;
	struct tmk_window_counts windows; /* lines */
};

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tmk_session_file *files;	   /* all that are open */
static struct tmk_session_file *abandoned; /* a parent's, in a forked child */

/* --- time and threads */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t tmk_session_file_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Calls that write are points where a thread may be cancelled, which must not happen under a lock. */
static int cancel_hold(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static void cancel_release(int state)
{
	pthread_setcancelstate(state, NULL);
}

/*
 * The library knows of forks by pthread_atfork(), which clone() and _Fork() go past. Before anything
 * reaches the file, the kernel is asked.
 */
static bool is_ours(const struct tmk_session_file *f)
{
	return (uint32_t)getpid() == f->pid;
}

/* --- opening */

static int parents_make(const char *path)
{
	char *copy = strdup(path);
	int err = 0;

	if (!copy)
		return -ENOMEM;
	for (char *p = copy + 1; *copy && !err && (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			err = -errno;
		*p = '/';
	}
	free(copy);
	return err;
}

/* For out_file, "-" is stdout; here it is a file like any other. */
static char *path_plain(const char *path)
{
	return strdup(strcmp(path, "-") ? path : "./-");
}

static int meta_add(struct tmk_session_file *f, bool dual)
{
	const struct tmk_desc *session = f->session;
	struct tmk_str *strings = calloc(session->count, sizeof(*strings));
	struct tmk_r3_meta meta = { 0 };
	size_t n, i = 3;

	if (!strings)
		return -ENOMEM;
	n = tmk_desc_strings(session, strings, session->count);
	meta.entrypoint = strings[0];
	meta.phase = strings[1];
	meta.profile = strings[2];
	if (session->flags & TMK_DESC_HAS_ANALYSIS_ID)
		meta.analysis_id = strings[i++];
	if (session->flags & TMK_DESC_HAS_BUILD_ID)
		meta.build_id = strings[i++];
	meta.cargo_features = strings + i;
	meta.n_cargo_features = n - i;
	meta.cut = f->strict ? 0 : session->flags & TMK_DESC_CUT_SESSION;
	tmk_r3_meta_line(&f->out.buf, &meta, dual);
	f->phase = meta.phase;
	free(strings);
	return f->out.buf.err;
}

static void files_add(struct tmk_session_file *f)
{
	tmk_session_files_lock();
	f->next = files;
	files = f;
	tmk_session_files_unlock();
}

static void files_remove(struct tmk_session_file *f)
{
	tmk_session_files_lock();
	for (struct tmk_session_file **at = &files; *at; at = &(*at)->next) {
		if (*at == f) {
			*at = f->next;
			break;
		}
	}
	tmk_session_files_unlock();
}

static void file_free(struct tmk_session_file *f)
{
	if (!f)
		return;
	tmk_op_table_free(&f->open_ops);
	tmk_site_cache_free(&f->sites);
	pthread_mutex_destroy(&f->lock);
	free(f->path);
	free(f);
}

static int file_open(struct tmk_session_file *f)
{
	int cancel = cancel_hold();
	int err = parents_make(f->path);

	if (!err)
		err = tmk_out_file_open(&f->out, f->path, tmk_whole_lines, NULL);
	if (!err)
		err = meta_add(f, false);
	if (err)
		tmk_out_file_close(&f->out);
	cancel_release(cancel);
	return err;
}

int tmk_session_file_open(struct tmk_session_file **out, const char *path,
			  const struct tmk_desc *session, bool strict)
{
	struct tmk_session_file *f = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);
	int err = -ENOMEM;

	*out = NULL;
	if (!f)
		goto failed;
	memset(f, 0, sizeof(*f));
	tmk_site_cache_init(&f->sites);
	pthread_mutex_init(&f->lock, NULL);
	f->session = session;
	f->strict = strict;
	f->path = path_plain(path);
	if (!f->path)
		goto failed;
	tmk_fork_watch();
	f->pid = (uint32_t)getpid();
	f->opened.mono_ns = clock_ns(CLOCK_MONOTONIC);
	f->opened.real_ns = clock_ns(CLOCK_REALTIME);
	err = file_open(f);
	if (err)
		goto failed;
	files_add(f);
	*out = f;
	return 0;
failed:
	file_free(f);
	return tmk_error_note(err, "give a path that this program can create and write",
			      "session file '%s': cannot be opened", path);
}

/* --- writing */

/*
 * A program that closes descriptors it does not know, to become a daemon perhaps, may have given our
 * number to something else. Without a descriptor, out_file opens the file again and goes on.
 */
static void descriptor_check(struct tmk_out_file *out)
{
	struct stat st;

	if (out->fd >= 0 && (fstat(out->fd, &st) || st.st_dev != out->dev || st.st_ino != out->ino))
		out->fd = -1;
}

/* Under the lock. */
static int flush_locked(struct tmk_session_file *f)
{
	int cancel, err;

	if (!is_ours(f)) {
		tmk_buf_clear(&f->out.buf);
		return 0;
	}
	cancel = cancel_hold();
	descriptor_check(&f->out);
	err = tmk_out_file_flush(&f->out);
	cancel_release(cancel);
	return err;
}

/* After a line was appended. Under the lock. */
static void line_commit(struct tmk_session_file *f, bool cut)
{
	f->truncated += cut;
	if (f->out.buf.len >= FLUSH_BYTES || f->out.buf.err)
		flush_locked(f);
}

static void op_write(struct tmk_session_file *f, const struct tmk_r3_op *op)
{
	char scratch[SCRATCH_BYTES];
	size_t len = 0;

	if (tmk_r3_op_line_max(op) <= sizeof(scratch))
		len = (size_t)(tmk_r3_op_line_put(scratch, op, f->strict) - scratch);
	pthread_mutex_lock(&f->lock);
	if (!f->out.err) {
		if (len)
			tmk_buf_append(&f->out.buf, scratch, len);
		else
			tmk_r3_op_line(&f->out.buf, op, f->strict);
		f->operations++;
		line_commit(f, op->cut || op->site->cut);
	}
	pthread_mutex_unlock(&f->lock);
}

struct tmk_op_slot *tmk_session_file_prepare(struct tmk_session_file *f,
					     const struct tmk_desc *site, uint64_t step,
					     uint64_t stream, bool named)
{
	const struct tmk_r3_site *rendered = tmk_site_cache_get(&f->sites, site);
	struct tmk_op_slot *slot = rendered ? tmk_op_table_take(&f->open_ops) : NULL;

	if (!slot) {
		__atomic_add_fetch(&f->no_memory, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	slot->op.site = rendered;
	slot->op.step = step;
	slot->op.stream = stream;
	slot->op.named = named;
	slot->op.tid = tmk_thread_id();
	return slot;
}

static struct tmk_stream_id stream_of(const struct tmk_open_op *op)
{
	return (struct tmk_stream_id){ 0, op->stream, op->named };
}

void tmk_session_file_start(const struct tmk_session_file *f, struct tmk_op_slot *slot,
			    uint64_t token, struct tmk_window_table *windows)
{
	struct tmk_stream_id stream = stream_of(&slot->op);
	uint64_t now = tmk_session_file_now();

	/* A strict file has no windows to count it in. */
	if (f->strict || !windows || !tmk_window_table_op_begin(windows, &stream, &now))
		windows = NULL;
	slot->op.windows = windows;
	slot->op.start_ns = now;
	tmk_op_slot_start(slot, token);
}

int tmk_session_file_end(struct tmk_session_file *f, const struct tmk_op_end *end,
			 uint64_t *duration_ns)
{
	uint64_t n = end->token & ~TMK_TOKEN_NAMED, now = end->now;
	struct tmk_open_op open;
	struct tmk_r3_op
		op; /* filled member by member: to zero it first would cost a tenth of all */
	bool cut = false;

	if (!tmk_op_table_end(&f->open_ops, end->index1, end->token, &open)) {
		__atomic_add_fetch(n <= end->last_token ? &f->repeated_ends : &f->stray_ends, 1,
				   __ATOMIC_RELAXED);
		return -ENOENT;
	}
	if (open.windows) {
		struct tmk_stream_id stream = stream_of(&open);

		if (tmk_window_table_op_end(open.windows, &stream, open.start_ns, &now))
			__atomic_add_fetch(&f->after_flush, 1, __ATOMIC_RELAXED);
	}
	op.phase = f->phase;
	op.site = open.site;
	op.output = end->output ? tmk_desc_cut(end->output, &cut) : (struct tmk_str){ NULL, 0 };
	op.n = n;
	op.begin_step = open.step;
	op.end_step = end->step;
	op.start_ns = open.start_ns;
	op.duration_ns = now > open.start_ns ? now - open.start_ns : 0;
	op.pid = f->pid;
	op.tid = open.tid;
	op.end_tid = tmk_thread_id();
	op.stream = open.stream;
	op.named = open.named;
	op.cut = cut ? TMK_DESC_CUT_NAME : 0;
	*duration_ns = op.duration_ns;
	op_write(f, &op);
	return 0;
}

void tmk_session_file_edge(struct tmk_session_file *f, const struct tmk_edge_event *edge)
{
	bool cut = false;
	struct tmk_r3_edge e = {
		.phase = f->phase,
		.from = tmk_desc_cut(edge->from, &cut),
		.to = tmk_desc_cut(edge->to, &cut),
		.n = edge->token,
		.step = edge->step,
		.duration_ns = edge->duration_ns,
		.pid = f->pid,
		.tid = tmk_thread_id(),
		.start_ns = tmk_session_file_now(),
	};

	e.cut = cut ? TMK_DESC_CUT_STATIC_ID : 0;
	pthread_mutex_lock(&f->lock);
	if (!f->out.err) {
		tmk_r3_edge_line(&f->out.buf, &e, f->strict);
		f->edges++;
		line_commit(f, cut);
	}
	pthread_mutex_unlock(&f->lock);
}

void tmk_session_file_window(struct tmk_session_file *f, struct tmk_r3_window *w)
{
	w->phase = f->phase;
	w->pid = f->pid;
	if (f->strict)
		return;
	pthread_mutex_lock(&f->lock);
	if (!f->out.err) {
		tmk_r3_window_line(&f->out.buf, w);
		tmk_r3_window_count(&f->windows, w->status);
		line_commit(f, w->cut);
	}
	pthread_mutex_unlock(&f->lock);
}

static int write_error_note(const struct tmk_session_file *f, int err)
{
	return err ? tmk_error_note(err,
				    "what was written before is whole; make room and run again",
				    "session file '%s': cannot be written", f->path)
		   : 0;
}

int tmk_session_file_flush(struct tmk_session_file *f)
{
	int err;

	pthread_mutex_lock(&f->lock);
	err = flush_locked(f);
	pthread_mutex_unlock(&f->lock);
	return write_error_note(f, err);
}

/* --- closing */

/* The name of the process, as the kernel has it; empty where /proc is not mounted. */
static struct tmk_str comm_read(char *comm, size_t size)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, comm, size) : -1;

	if (fd >= 0)
		close(fd);
	if (n > 0 && comm[n - 1] == '\n')
		n--;
	return (struct tmk_str){ n >= 0 ? comm : NULL, n >= 0 ? (size_t)n : 0 };
}

static void capture_add(struct tmk_session_file *f)
{
	const struct tmk_r3_count lost[] = { { "memory", f->no_memory } };
	const struct tmk_r3_count unpaired[] = { { "end_without_begin", f->stray_ends },
						 { "repeated_end", f->repeated_ends },
						 { "ended_after_flush", f->after_flush } };
	struct tmk_r3_count windows[TMK_R3_WINDOW_COUNTS];
	char comm[64];
	struct tmk_r3_capture c = {
		.status = "complete",
		.source = "in_process",
		.start_ns = f->opened.mono_ns,
		.end_ns = clock_ns(CLOCK_MONOTONIC),
		.n_anchors = 2,
		.operations = f->operations,
		.edges = f->edges,
		.unfinished = tmk_op_table_count(&f->open_ops),
		.truncated = f->truncated,
		.pid = f->pid,
		.comm = comm_read(comm, sizeof(comm)),
		.lost = lost,
		.n_lost = 1,
		.unpaired = unpaired,
		.n_unpaired = f->after_flush ? 3 : 2,
		.windows = windows,
		.n_windows = tmk_r3_window_counts_list(&f->windows, windows),
	};

	c.anchors[0].mono_ns = f->opened.mono_ns;
	c.anchors[0].real_ns = f->opened.real_ns;
	c.anchors[1].mono_ns = c.end_ns;
	c.anchors[1].real_ns = clock_ns(CLOCK_REALTIME);
	tmk_r3_capture_line(&f->out.buf, &c);
}

/*
 * A meta line alone cannot be imported, and in strict mode no other line of ours may stand beside it:
 * such a file gets the form that is both a line and a whole document. Where the meta line has already
 * gone into something that cannot be rewritten, it stays as it is.
 */
static void empty_strict_rewrite(struct tmk_session_file *f)
{
	descriptor_check(&f->out);
	if (f->out.err || (f->out.end && !f->out.regular))
		return;
	if (f->out.end &&
	    (f->out.fd < 0 || lseek(f->out.fd, 0, SEEK_SET) || ftruncate(f->out.fd, 0)))
		return;
	f->out.end = 0;
	tmk_buf_clear(&f->out.buf);
	f->out.err = meta_add(f, true);
}

/*
 * Of a copy in a forked child nothing is used or freed: another thread of the parent may have been in
 * the middle of it. Only the descriptor goes; the memory is kept, once a session and fork.
 */
void tmk_session_file_abandon(struct tmk_session_file *f)
{
	int cancel = cancel_hold();

	descriptor_check(&f->out);
	if (f->out.fd >= 0)
		close(f->out.fd);
	f->out.fd = -1;
	cancel_release(cancel);
	tmk_session_files_lock();
	f->next = abandoned;
	abandoned = f;
	tmk_session_files_unlock();
}

int tmk_session_file_close(struct tmk_session_file *f)
{
	int cancel, err;

	if (!is_ours(f)) {
		tmk_session_file_abandon(f);
		return 0;
	}
	files_remove(f);
	cancel = cancel_hold();
	if (!f->strict)
		capture_add(f);
	else if (!f->operations && !f->edges)
		empty_strict_rewrite(f);
	descriptor_check(&f->out);
	err = write_error_note(f, tmk_out_file_close(&f->out));
	cancel_release(cancel);
	file_free(f);
	return err;
}

/* --- all files together */

void tmk_session_files_lock(void)
{
	pthread_mutex_lock(&files_lock);
}

void tmk_session_files_unlock(void)
{
	pthread_mutex_unlock(&files_lock);
}

void tmk_session_files_forget(void)
{
	files = NULL;
}

/*
 * exit() with open sessions: their lines are not lost. Somebody may exit from a signal handler that
 * interrupted us with a lock held, so this waits for locks, but not for ever.
 */
__attribute__((destructor)) static void files_flush_at_exit(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += EXIT_WAIT_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	if (pthread_mutex_timedlock(&files_lock, &until))
		return;
	for (struct tmk_session_file *f = files; f; f = f->next) {
		if (pthread_mutex_timedlock(&f->lock, &until))
			continue;
		flush_locked(f);
		pthread_mutex_unlock(&f->lock);
	}
	pthread_mutex_unlock(&files_lock);
}
