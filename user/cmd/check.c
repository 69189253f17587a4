// SPDX-License-Identifier: BSD-2-Clause
/*
 * tickmark check: would candle-graph's importer take these files, and is what they say of windows true?
 * Gets each file's bytes into memory and prints the verdict; the rules are in runtime3/check.c and
 * runtime3/check_windows.c.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/report.h"
#include "cmd/cmd.h"
#include "runtime3/check.h"
#include "runtime3/check_windows.h"

static const char doc[] =
	"Says whether candle-graph's importer accepts runtime/3 files, and if not, each reason with its "
	"line.\n\n"
	"  tickmark check run.jsonl\n"
	"  tickmark check runs/*.jsonl && upload\n"
	"  zcat run.jsonl.gz | tickmark check -\n"
	"\v"
	"The verdict is that of candle-graph 0.3.0. Files that tickmark wrote are held to rules of its own as "
	"well, which the importer does not have: a window's times, its parent and the operations that it "
	"counts must agree with the other lines. A broken rule is shown as FILE:LINE: window: RULE: what.\n\n"
	"All goes to stdout, unless -q leaves only the exit status: 0 all accepted and no rule broken, 1 one "
	"was rejected, broke a rule or could not be read, 2 wrong usage.";

#define DEFAULT_LIMIT 20

static const struct argp_option option_table[] = {
	{ "quiet", 'q', NULL, 0, "Print no verdicts: the exit status says it", 0 },
	{ "limit", 'n', "N", 0, "Print at most N violations a file (default 20)", 0 },
	{ 0 },
};

struct check_options {
	bool quiet;
	uint64_t limit;
	char **files;
	int n_files;
};

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
	struct check_options *o = state->input;
	char *end;

	switch (key) {
	case 'q':
		o->quiet = true;
		tmk_report_set_quiet(1);
		return 0;
	case 'n':
		errno = 0;
		o->limit = strtoull(arg, &end, 10);
		if (errno || *arg < '0' || *arg > '9' || *end)
			argp_error(state, "-n %s: not a number", arg);
		return 0;
	case ARGP_KEY_ARGS:
		o->files = state->argv + state->next;
		o->n_files = state->argc - state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which files? Name them, or give '-' for stdin");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* --- a file's bytes */

struct content {
	char *data;
	size_t len;
	bool mapped;
};

static void content_free(struct content *c)
{
	if (c->mapped)
		munmap(c->data, c->len);
	else
		free(c->data);
	memset(c, 0, sizeof(*c));
}

static int content_map(struct content *c, int fd, size_t len)
{
	void *map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	madvise(map, len, MADV_SEQUENTIAL);
	*c = (struct content){ .data = map, .len = len, .mapped = true };
	return 0;
}

/* For what cannot be mapped: pipes, and files of /proc that give no size. */
static int content_read(struct content *c, int fd)
{
	size_t cap = 0;

	for (;;) {
		ssize_t n;

		if (c->len == cap) {
			char *data = realloc(c->data, cap ? cap * 2 : 1 << 16);

			if (!data)
				return -ENOMEM;
			c->data = data;
			cap = cap ? cap * 2 : 1 << 16;
		}
		n = read(fd, c->data + c->len, cap - c->len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		if (n > 0)
			c->len += (size_t)n;
	}
}

/* On failure returns -errno, and *why may say more than that. */
static int content_load(struct content *c, const char *path, const char **why)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int err;

	*why = NULL;
	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && S_ISDIR(st.st_mode)) {
		*why = "is a directory; name the files in it";
		err = -EISDIR;
	} else if (!err && !is_stdin && !S_ISREG(st.st_mode)) {
		*why = "is not a regular file; to check what comes through a pipe, give '-'";
		err = -EINVAL;
	} else if (!err && S_ISREG(st.st_mode) && st.st_size > 0 &&
		   (!is_stdin || lseek(fd, 0, SEEK_CUR) == 0)) {
		err = content_map(c, fd, (size_t)st.st_size);
	} else if (!err) {
		err = content_read(c, fd);
	}
	if (!is_stdin)
		close(fd);
	return err;
}

/* --- a mapped file that shrinks under the reader raises SIGBUS: one line, no core dump */

static char bus_message[512];

static void bus_handle(int sig)
{
	ssize_t ignored;

	(void)sig;
	ignored = write(STDERR_FILENO, bus_message, strlen(bus_message));
	(void)ignored;
	_exit(TMK_EXIT_FAILED);
}

static void bus_expect(const char *shown)
{
	struct sigaction sa = { .sa_handler = bus_handle };

	snprintf(
		bus_message, sizeof(bus_message),
		"tickmark: %s: could not be read to its end; check it again when nothing writes to it\n",
		shown);
	sigaction(SIGBUS, &sa, NULL);
}

/* --- verdicts */

struct verdict {
	const char *shown; /* the file's name, safe to print */
	bool quiet;
};

static void violation_print(void *ctx, uint64_t line, const char *text)
{
	const struct verdict *v = ctx;

	if (v->quiet)
		return;
	if (line)
		printf("%s:%" PRIu64 ": %s\n", v->shown, line, text);
	else
		printf("%s: %s\n", v->shown, text);
}

static void count_print(uint64_t n, const char *what, bool always)
{
	if (n || always)
		printf(", %" PRIu64 " %s%s", n, what, n == 1 ? "" : "s");
}

static void accepted_print(const char *shown, const struct tmk_check_counts *n)
{
	printf("%s: accepted: %" PRIu64 " operation%s", shown, n->operations,
	       n->operations == 1 ? "" : "s");
	count_print(n->edges, "edge", true);
	count_print(n->windows, "window", false);
	if (n->unfinished)
		printf(", %" PRIu64 " unfinished", n->unfinished);
	count_print(n->tensors, "tensor", false);
	count_print(n->values, "value", false);
	count_print(n->gradients, "gradient", false);
	putchar('\n');
	if (!n->document && !n->has_capture)
		printf("%s: note: no closing capture line: cut short, written with --strict, or not by "
		       "tickmark\n",
		       shown);
}

static void rejected_print(const char *shown, uint64_t violations, uint64_t limit)
{
	printf("%s: rejected: %" PRIu64 " violation%s", shown, violations,
	       violations == 1 ? "" : "s");
	if (violations > limit)
		printf(", the first %" PRIu64 " are shown", limit);
	putchar('\n');
}

static void rules_print(const char *shown, uint64_t broken, uint64_t limit)
{
	printf("%s: %" PRIu64 " window rule%s broken", shown, broken, broken == 1 ? "" : "s");
	if (broken > limit)
		printf(", the first %" PRIu64 " %s shown", limit, limit == 1 ? "is" : "are");
	putchar('\n');
}

/* Prints both verdicts on what was read. Returns the exit status. */
static int content_check(const struct content *c, struct verdict *verdict, uint64_t limit)
{
	const char *data = c->data ? c->data : "";
	struct tmk_check_counts counts;
	int64_t n, broken = 0;
	uint64_t left;

	n = tmk_check_memory(data, c->len, violation_print, verdict, limit, &counts);
	left = n < 0 || (uint64_t)n > limit ? 0 : limit - (uint64_t)n;
	if (n >= 0)
		broken = tmk_check_windows(data, c->len, &counts, violation_print, verdict, left);
	if (n < 0 || broken < 0) {
		tmk_error("%s: %s", verdict->shown,
			  n == -EFBIG ? "holds an event id of 4 GiB, which is beyond this check"
			  : n < 0     ? "out of memory for its event ids"
				      : "out of memory for its windows");
		return TMK_EXIT_FAILED;
	}
	if (!verdict->quiet && n)
		rejected_print(verdict->shown, (uint64_t)n, limit);
	else if (!verdict->quiet)
		accepted_print(verdict->shown, &counts);
	if (!verdict->quiet && broken)
		rules_print(verdict->shown, (uint64_t)broken, left);
	return n || broken ? TMK_EXIT_FAILED : TMK_EXIT_OK;
}

static int file_check(const char *path, const struct check_options *o)
{
	struct content content = { 0 };
	char shown[256];
	struct verdict verdict = { .shown = shown, .quiet = o->quiet };
	const char *why;
	int err, status;

	tmk_safe(shown, sizeof(shown), strcmp(path, "-") ? path : "stdin",
		 strcmp(path, "-") ? strlen(path) : strlen("stdin"));
	err = content_load(&content, path, &why);
	if (err) {
		tmk_error("%s: %s", shown,
			  why ? why
			  : err == -ENOMEM
				  ? "does not fit into memory; save it to a file and check that"
				  : strerror(-err));
		content_free(&content);
		return TMK_EXIT_FAILED;
	}
	bus_expect(shown);
	status = content_check(&content, &verdict, o->limit);
	content_free(&content);
	return status;
}

int tmk_cmd_check(int argc, char **argv)
{
	static const struct argp argp = { option_table, option_parse, "FILE...", doc,
					  NULL,		NULL,	      NULL };
	struct check_options o = { .limit = DEFAULT_LIMIT };
	int status = TMK_EXIT_OK;

	argp_err_exit_status = TMK_EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	for (int i = 0; i < o.n_files; i++) {
		if (file_check(o.files[i], &o) != TMK_EXIT_OK)
			status = TMK_EXIT_FAILED;
	}
	if (fflush(stdout) || ferror(stdout)) {
		tmk_error("stdout: %s", strerror(errno));
		status = TMK_EXIT_FAILED;
	}
	return status;
}
