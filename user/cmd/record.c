// SPDX-License-Identifier: BSD-2-Clause
/*
 * tickmark record: what to trace, for how long, and where the result goes. The run itself is recorder.h's.
 */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/privilege.h"
#include "base/report.h"
#include "cmd/cmd.h"
#include "cmd/recorder.h"
#include "sink/runtime3_file.h"
#include "sink/summary.h"

#define DEFAULT_OUTPUT "tickmark.jsonl"
#define PIDS_MAX 1024

static const char doc[] =
	"Records every operation of marked processes and writes candle-graph/runtime/3 JSONL.\n\n"
	"  tickmark record -p 4242 -o run.jsonl          until ^C, or until the process ends\n"
	"  tickmark record -p 4242 -d 10 -o traces/      ten seconds, one file a session\n"
	"  tickmark record -o run.jsonl -- ./server -x   from the first operation on\n"
	"  tickmark record -p 4242 --raw run.tmk         the raw capture, for 'tickmark convert'\n\n"
	"The process is not stopped, restarted or changed; its marks cost nothing again afterwards."
	"\vWithout -o and --raw the result goes to " DEFAULT_OUTPUT
	". Several sessions that end up in one -o "
	"FILE get numbers: run.jsonl, run.2.jsonl. The summary goes to standard output, or to standard "
	"error with -o -.\n\n"
	"Exit status: 0 all well, 1 failed, 2 wrong usage, 3 the file is whole but something was lost.";

enum { OPT_RAW = 256, OPT_STRICT };

static const struct argp_option option_table[] = {
	{ "pid", 'p', "PID[,PID]", 0, "Trace this running process (repeatable)", 0 },
	{ "output", 'o', "FILE|DIR", 0, "Write runtime/3 there; - is standard output", 0 },
	{ "raw", OPT_RAW, "FILE", 0, "Also, or only, write the raw capture", 0 },
	{ "duration", 'd', "SECONDS", 0, "Detach after this time", 0 },
	{ "strict", OPT_STRICT, NULL, 0, "Write candle-graph's own fields only", 0 },
	{ "quiet", 'q', NULL, 0, "No status line, no notes, no summary", 0 },
	{ 0 },
};

struct record_options {
	pid_t pids[PIDS_MAX];
	size_t n_pids;
	char **command; /* NULL: none */
	const char *output, *raw;
	char command_line[256]; /* our own, for the raw file's header; cut if longer */
	uint64_t duration_ns;	/* 0: no end */
	bool strict, quiet;
};

static void pids_parse(struct record_options *o, const char *arg, struct argp_state *state)
{
	const char *at = arg;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(at, &end, 10);
		if (errno || end == at || (*end && *end != ',') || pid <= 0 || pid > INT32_MAX)
			argp_error(state, "-p %s: not a process id", arg);
		if (o->n_pids == PIDS_MAX)
			argp_error(state, "more than %d processes", PIDS_MAX);
		o->pids[o->n_pids++] = pid;
		if (!*end)
			return;
		at = end + 1;
	}
}

static uint64_t duration_parse(const char *arg, struct argp_state *state)
{
	double seconds;
	char *end;

	errno = 0;
	seconds = strtod(arg, &end);
	if (errno || end == arg || *end || !isfinite(seconds) || seconds < 1e-3 || seconds > 1e9)
		argp_error(state, "-d %s: not a number of seconds from 0.001 to 1e9", arg);
	return seconds * 1e9;
}

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;

	switch (key) {
	case 'p':
		pids_parse(o, arg, state);
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_RAW:
		o->raw = arg;
		return 0;
	case 'd':
		o->duration_ns = duration_parse(arg, state);
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case ARGP_KEY_ARGS:
		o->command = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (!o->n_pids == !o->command)
			argp_error(state, "say what to record: -p PID, or -- COMMAND");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* The outputs of one recording. */
struct outputs {
	struct tmk_out_path path;
	struct tmk_sink sinks[2];
	size_t n_sinks;
	struct tmk_sink *file; /* among the sinks; NULL: none */
};

static void outputs_close(struct outputs *out)
{
	for (size_t i = 0; i < out->n_sinks; i++) {
		if (out->sinks[i].ops->free)
			out->sinks[i].ops->free(out->sinks[i].self);
	}
	out->n_sinks = 0;
	tmk_out_path_free(&out->path);
}

static int memory_failure(void)
{
	tmk_error("out of memory");
	return TMK_EXIT_FAILED;
}

static int outputs_open(struct outputs *out, struct tmk_capture *c, const struct record_options *o)
{
	const char *path = o->output ? o->output : o->raw ? NULL : DEFAULT_OUTPUT;
	struct tmk_runtime3_file_options options = { .strict = o->strict, .live = true };
	char why[256];
	int err;

	memset(out, 0, sizeof(*out));
	if (path) {
		err = tmk_out_path_init(&out->path, path, why, sizeof(why));
		if (err) {
			tmk_error("%s: %s", path, why);
			return TMK_EXIT_FAILED;
		}
		err = tmk_runtime3_file_new(&out->sinks[out->n_sinks], &out->path, &options);
		if (err)
			return memory_failure();
		out->file = &out->sinks[out->n_sinks++];
	}
	if (!o->quiet) {
		bool talk = path && !strcmp(path, "-");

		if (tmk_summary_new(&out->sinks[out->n_sinks], talk ? stderr : stdout))
			return memory_failure();
		out->n_sinks++;
	}
	if (tmk_assembler_new(&c->assembler, out->sinks, out->n_sinks))
		return memory_failure();
	return TMK_EXIT_OK;
}

static int raw_open(struct tmk_capture *c, const struct record_options *o)
{
	int err;

	if (!o->raw)
		return TMK_EXIT_OK;
	err = tmk_raw_writer_open(&c->raw, o->raw, o->command_line);
	if (!err)
		return TMK_EXIT_OK;
	tmk_error("%s: %s; choose another place for the raw capture", o->raw, strerror(-err));
	return TMK_EXIT_FAILED;
}

static int raw_close(struct tmk_capture *c, const struct record_options *o)
{
	int err = c->raw ? tmk_raw_writer_close(c->raw) : 0;

	c->raw = NULL;
	if (!err)
		return TMK_EXIT_OK;
	tmk_error("%s: %s; what was written so far is whole", o->raw, strerror(-err));
	return TMK_EXIT_FAILED;
}

/* Everything that can be refused is asked before anything is attached or written. */
static int prepare(struct tmk_recorder *r, const struct record_options *o, struct outputs *out)
{
	const char *missing = tmk_privilege_missing();
	int status;

	if (missing) {
		tmk_error("tracing needs %s, which this process lacks; run as root (sudo)",
			  missing);
		return TMK_EXIT_FAILED;
	}
	if (!tmk_privilege_initial_pids()) {
		tmk_error(
			"this is a pid namespace of its own (a container), where the kernel's pids are "
			"other ones; run tickmark on the host");
		return TMK_EXIT_FAILED;
	}
	status = tmk_recorder_init(r);
	for (size_t i = 0; !status && i < o->n_pids; i++)
		status = tmk_recorder_add(r, o->pids[i]);
	if (!status)
		status = outputs_open(out, &r->capture, o);
	if (!status)
		status = tmk_recorder_load(r);
	if (!status)
		status = raw_open(&r->capture, o);
	return status;
}

static const char *output_name(const struct record_options *o)
{
	return o->output ? o->output : o->raw ? o->raw : DEFAULT_OUTPUT;
}

/* The recording ended well; was anything lost on the way? */
static int verdict(const struct tmk_recorder *r, const struct record_options *o,
		   const struct outputs *out)
{
	const struct tmk_finish_view *f = tmk_assembler_result(r->capture.assembler);
	int status = f ? tmk_finish_exit(f) : TMK_EXIT_FAILED;

	if (f)
		tmk_finish_tell(f, output_name(o));
	if (!status && out->file && tmk_runtime3_file_skipped(out->file))
		status = TMK_EXIT_LOSS;
	return status;
}

static int run(struct tmk_recorder *r, const struct record_options *o, const struct outputs *out)
{
	int status = o->command ? tmk_recorder_spawn(r, o->command) : tmk_recorder_attach(r);
	int raw_status;

	if (!status)
		status = tmk_recorder_run(r, o->duration_ns, o->quiet);
	raw_status = raw_close(&r->capture, o);
	if (!status)
		status = raw_status;
	return status ? status : verdict(r, o, out);
}

static void command_line_join(struct record_options *o, char **argv)
{
	size_t at = 0;

	for (int i = 0; argv[i] && at < sizeof(o->command_line) - 1; i++)
		at += snprintf(o->command_line + at, sizeof(o->command_line) - at, "%s%s",
			       i ? " " : "", argv[i]);
}

int tmk_cmd_record(int argc, char **argv)
{
	static const struct argp argp = {
		option_table, option_parse, "-p PID\n-- COMMAND [ARGUMENT...]", doc, NULL,
		NULL,	      NULL
	};
	struct record_options *o = calloc(1, sizeof(*o));
	struct outputs out = { 0 };
	struct tmk_recorder r;
	int status;

	if (!o)
		return memory_failure();
	command_line_join(o, argv);
	argp_err_exit_status = TMK_EXIT_USAGE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, o);
	tmk_report_set_quiet(o->quiet);
	memset(&r, 0, sizeof(r));
	r.epoll = r.signals = -1;
	status = prepare(&r, o, &out);
	if (!status)
		status = run(&r, o, &out);
	tmk_raw_writer_close(r.capture.raw);
	tmk_assembler_free(r.capture.assembler);
	outputs_close(&out);
	tmk_recorder_free(&r);
	free(o);
	return status;
}
