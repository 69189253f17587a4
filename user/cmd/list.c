// SPDX-License-Identifier: BSD-2-Clause
/*
 * tickmark list: what could be traced. One line a session that is open now, or an object with markers;
 * or, for a file, one line a marker. Reads /proc and ELF files only; attaches nothing.
 */
#include <argp.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/process.h"
#include "base/marker_name.h"
#include "base/report.h"
#include "cmd/cmd.h"

static const char doc[] =
	"Shows which processes and files carry tickmark markers, and which sessions are open.\n\n"
	"  tickmark list                 every process that this user may look into\n"
	"  tickmark list -p 4242         one process\n"
	"  tickmark list ./server        the markers of an executable or a library\n";

static const struct argp_option option_table[] = {
	{ "pid", 'p', "PID", 0, "Look at this process (repeatable)", 0 },
	{ "all", 'a', NULL, 0, "Look at every process (the default)", 0 },
	{ 0 },
};

#define PIDS_MAX 1024

struct list_options {
	pid_t pids[PIDS_MAX];
	size_t n_pids;
	bool all;
	char **files;
	int n_files;
};

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
	struct list_options *o = state->input;
	char *end;
	long pid;

	switch (key) {
	case 'p':
		errno = 0;
		pid = strtol(arg, &end, 10);
		if (errno || end == arg || *end || pid <= 0 || pid > INT32_MAX)
			argp_error(state, "-p %s: not a process id", arg);
		if (o->n_pids == PIDS_MAX)
			argp_error(state, "more than %d processes", PIDS_MAX);
		o->pids[o->n_pids++] = pid;
		return 0;
	case 'a':
		o->all = true;
		return 0;
	case ARGP_KEY_ARGS:
		o->files = state->argv + state->next;
		o->n_files = state->argc - state->next;
		return 0;
	case ARGP_KEY_END:
		if (o->n_files + (o->n_pids > 0) + o->all > 1 &&
		    !(o->n_files && !o->n_pids && !o->all))
			argp_error(state, "give files, -p, or -a: one of them");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void safe_print(const char *text, int width)
{
	char safe[512];
	int pad;

	tmk_safe(safe, sizeof(safe), text, strlen(text));
	pad = width - (int)tmk_safe_width(safe);
	printf("%s%*s  ", safe, pad > 0 ? pad : 0, "");
}

static void process_line(const struct tmk_process *p, const struct tmk_object *o,
			 const char *session, const char *phase, const struct tmk_switch *sw)
{
	char attached[32] = "?";

	if (sw)
		snprintf(attached, sizeof(attached), sw->direct || sw->batch ? "yes (%u)" : "no",
			 sw->direct + sw->batch);
	printf("%-8d", p->pid);
	safe_print(p->comm, 15);
	safe_print(session, 24);
	safe_print(phase, 5);
	printf("%7u  ", o->notes.n_markers);
	safe_print(attached, 8);
	safe_print(o->path, 0);
	putchar('\n');
}

static const char *string_at(const struct tmk_desc *d, unsigned int i)
{
	const char *at = d->strings, *end = d->strings + d->bytes;

	for (;;) {
		const char *nul = memchr(at, 0, end - at);

		if (!nul)
			return "?";
		if (!i--)
			return at;
		at = nul + 1;
	}
}

static void object_show(const struct tmk_process *p, const struct tmk_object *o)
{
	struct tmk_switch sw;
	bool any = false;

	if (tmk_process_read_switch(p, o, &sw)) {
		process_line(p, o, "(memory not readable)", "", NULL);
		return;
	}
	for (size_t i = 0; i < TMK_REGISTRY_SESSIONS; i++) {
		struct tmk_desc *d;

		if (!sw.sessions[i] || tmk_process_read_desc(p, sw.sessions[i], &d))
			continue;
		if (d->kind == TMK_DESC_SESSION) {
			process_line(p, o, string_at(d, 0), string_at(d, 1), &sw);
			any = true;
		}
		free(d);
	}
	if (!any)
		process_line(p, o, "(no session open)", "", &sw);
}

/* Returns the number of objects shown, or -errno. */
static int process_show(pid_t pid)
{
	struct tmk_process p;
	int err = tmk_process_init(&p, pid);

	if (!err)
		err = tmk_process_scan(&p);
	for (size_t i = 0; err >= 0 && i < p.n_objects; i++)
		object_show(&p, &p.objects[i]);
	if (err >= 0)
		err = p.n_objects;
	tmk_process_free(&p);
	return err;
}

static int pids_show(const struct list_options *o)
{
	int status = TMK_EXIT_OK;

	for (size_t i = 0; i < o->n_pids; i++) {
		int n = process_show(o->pids[i]);

		if (n > 0)
			continue;
		status = TMK_EXIT_FAILED;
		if (n == -ESRCH)
			tmk_error("process %d: no such process", o->pids[i]);
		else if (n == -EACCES || n == -EPERM)
			tmk_error("process %d: not allowed to look into it; run as root",
				  o->pids[i]);
		else if (n < 0)
			tmk_error("process %d: %s", o->pids[i], strerror(-n));
		else
			tmk_error(
				"process %d: no tickmark markers in its executable or mapped files; "
				"link it with libtickmark",
				o->pids[i]);
	}
	return status;
}

static int all_show(void)
{
	size_t hidden = 0, shown = 0;
	struct dirent *e;
	DIR *proc = opendir("/proc");

	if (!proc) {
		tmk_error("/proc: %s; mount it", strerror(errno));
		return TMK_EXIT_FAILED;
	}
	while ((e = readdir(proc))) {
		int n;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		n = process_show(atoi(e->d_name));
		if (n > 0)
			shown += n;
		else if (n == -EACCES || n == -EPERM)
			hidden++;
	}
	closedir(proc);
	if (!shown)
		tmk_note("no process carries tickmark markers");
	if (hidden)
		tmk_note("%zu process%s could not be looked into%s", hidden,
			 hidden == 1 ? "" : "es", geteuid() ? "; run as root" : "");
	return TMK_EXIT_OK;
}

static int file_show(const char *path)
{
	struct tmk_marker_notes notes;
	struct stat st;
	int fd, n;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		tmk_error("%s: %s", path, strerror(errno));
		return TMK_EXIT_FAILED;
	}
	n = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? tmk_notes_read(fd, &notes) : 0;
	close(fd);
	if (n <= 0) {
		tmk_error(
			"%s: %s", path,
			n < 0 ? strerror(-n)
			      : "no tickmark markers in it (not an ELF file of this machine, or not "
				"linked with libtickmark)");
		return TMK_EXIT_FAILED;
	}
	safe_print(path, 0);
	printf("build id %s, semaphore at file offset 0x%" PRIx64 "\n",
	       notes.build_id[0] ? notes.build_id : "none", notes.semaphore_offset);
	for (unsigned int kind = 0; kind < TMK_REC_MARKERS; kind++) {
		for (unsigned int i = 0; i < notes.kind[kind].n; i++)
			printf("  %s:%-16s file offset 0x%" PRIx64 "\n", TMK_PROVIDER,
			       tmk_marker_name(kind), notes.kind[kind].offset[i]);
	}
	return TMK_EXIT_OK;
}

static int files_show(const struct list_options *o)
{
	int status = TMK_EXIT_OK;

	for (int i = 0; i < o->n_files; i++) {
		if (file_show(o->files[i]) != TMK_EXIT_OK)
			status = TMK_EXIT_FAILED;
	}
	return status;
}

int tmk_cmd_list(int argc, char **argv)
{
	static const struct argp argp = { option_table, option_parse, "[FILE...]", doc,
					  NULL,		NULL,	      NULL };
	struct list_options *o = calloc(1, sizeof(*o));
	int status;

	if (!o) {
		tmk_error("out of memory");
		return TMK_EXIT_FAILED;
	}
	argp_err_exit_status = TMK_EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, o);
	if (o->n_files) {
		status = files_show(o);
	} else {
		printf("%-8s%-15s  %-24s  %-5s  %7s  %-8s  %s\n", "PID", "COMMAND", "SESSION",
		       "PHASE", "MARKERS", "ATTACHED", "FILE");
		status = o->n_pids ? pids_show(o) : all_show();
	}
	free(o);
	return status;
}
