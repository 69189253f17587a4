// SPDX-License-Identifier: BSD-2-Clause
/*
 * tickmark convert: replays a raw capture through the assembler and the sinks. Needs no privilege.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "assemble/assemble.h"
#include "base/report.h"
#include "capture/raw.h"
#include "cmd/cmd.h"
#include "sink/out_path.h"
#include "sink/runtime3_file.h"
#include "sink/summary.h"

static const char doc[] =
	"Turns a raw capture into candle-graph/runtime/3 JSONL, just as 'tickmark record' would have "
	"written it.\n\n"
	"  tickmark convert run.tmk                      writes ./run.jsonl\n"
	"  tickmark convert run.tmk -o traces/           one file a session\n"
	"  tickmark convert run.tmk --strict -o - | ...  candle-graph's own fields only\n"
	"  tickmark convert --partial crashed.tmk        what there is of a capture that was cut short"
	"\vWithout -o the result goes into the current directory, named after RAW. Several sessions that "
	"end up in one -o FILE get numbers: run.jsonl, run.2.jsonl. The summary goes to standard output, "
	"or to standard error with -o -.\n\n"
	"Exit status: 0 all well, 1 failed, 2 wrong usage, 3 the file is whole but something was lost.";

enum { OPT_STRICT = 256, OPT_PARTIAL };

static const struct argp_option option_table[] = {
	{ "output", 'o', "FILE|DIR", 0, "Write runtime/3 there; - is standard output", 0 },
	{ "strict", OPT_STRICT, NULL, 0, "Write candle-graph's own fields only", 0 },
	{ "partial", OPT_PARTIAL, NULL, 0, "Accept a capture that was cut short", 0 },
	{ "quiet", 'q', NULL, 0, "No notes, no summary", 0 },
	{ 0 },
};

struct convert_options {
	const char *raw, *output;
	bool strict, partial, quiet;
};

static error_t option_parse(int key, char *arg, struct argp_state *state)
{
	struct convert_options *o = state->input;

	switch (key) {
	case 'o':
		o->output = arg;
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case OPT_PARTIAL:
		o->partial = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->raw)
			argp_error(state, "one RAW at a time; '%s' is a second one", arg);
		o->raw = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->raw)
			argp_error(state, "say which raw capture to convert");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* "dir/run.tmk" -> "run.jsonl" */
static char *default_output(const char *raw)
{
	const char *name = strrchr(raw, '/');
	size_t len;
	char *out;

	name = name ? name + 1 : raw;
	len = strlen(name);
	if (len > 4 && !strcmp(name + len - 4, ".tmk"))
		len -= 4;
	return asprintf(&out, "%.*s.jsonl", (int)len, name) < 0 ? NULL : out;
}

/* Before any output exists: a capture that was cut short must not leave half of one. */
static int raw_validate(const struct tmk_raw_reader *raw, const struct convert_options *o)
{
	struct tmk_raw_scan scan;

	tmk_raw_reader_scan(raw, &scan);
	if (o->partial || (!scan.bad_at && scan.has_end))
		return TMK_EXIT_OK;
	if (scan.bad_at)
		tmk_error("%s: %s (at byte %" PRIu64 ", behind %" PRIu64
			  " whole records); convert what there is with --partial",
			  o->raw, scan.why, scan.bad_at, scan.records);
	else
		tmk_error("%s: cut short, no end record behind its %" PRIu64
			  " records; convert what there is with --partial",
			  o->raw, scan.records);
	return TMK_EXIT_FAILED;
}

/* Returns 0 or the error that ended the replay. */
static int replay(struct tmk_raw_reader *raw, struct tmk_assembler *a)
{
	const struct tmk_raw_header *h = tmk_raw_reader_header(raw);
	const struct tmk_rec *rec;
	const char *why;
	int err;

	while (tmk_raw_reader_next(raw, &rec, &why) > 0) {
		err = tmk_assembler_feed(a, rec, rec->bytes);
		/* Refused records were counted when they were recorded; here again, as malformed. */
		if (err && err != -EINVAL)
			return err;
	}
	return tmk_assembler_cut_short(a, h->mono_ns, h->real_ns);
}

static int convert_run(const struct convert_options *o, struct tmk_raw_reader *raw,
		       const struct tmk_out_path *path)
{
	struct tmk_runtime3_file_options file_options = { .strict = o->strict, .has_avoid = true };
	struct tmk_sink sinks[2] = { { 0 } };
	struct tmk_assembler *a = NULL;
	const struct tmk_finish_view *f = NULL;
	int status = TMK_EXIT_FAILED, err;
	size_t n_sinks = 0;

	tmk_raw_reader_identity(raw, &file_options.avoid_dev, &file_options.avoid_ino);
	err = tmk_runtime3_file_new(&sinks[0], path, &file_options);
	n_sinks += !err;
	if (!err && !o->quiet) {
		err = tmk_summary_new(&sinks[1], path->mode == TMK_OUT_STDOUT ? stderr : stdout);
		n_sinks += !err;
	}
	if (!err)
		err = tmk_assembler_new(&a, sinks, n_sinks);
	if (!err) {
		err = replay(raw, a);
		f = tmk_assembler_result(a);
	}
	if (err == -ENOMEM)
		tmk_error("%s: out of memory", o->raw);
	if (!err && !f->n_sessions) {
		tmk_error(
			"%s: no session in it, so nothing was written; was a marked program running?",
			o->raw);
	} else if (!err) {
		status = tmk_finish_exit(f);
		tmk_finish_tell(f, o->raw);
		if (status == TMK_EXIT_OK && tmk_runtime3_file_skipped(&sinks[0]))
			status = TMK_EXIT_LOSS;
	} else if (n_sinks) {
		tmk_runtime3_file_discard(&sinks[0]);
	}
	tmk_assembler_free(a);
	for (size_t i = 0; i < n_sinks; i++)
		sinks[i].ops->free(sinks[i].self);
	return status;
}

int tmk_cmd_convert(int argc, char **argv)
{
	static const struct argp argp = {
		option_table, option_parse, "RAW", doc, NULL, NULL, NULL
	};
	struct convert_options o = { 0 };
	struct tmk_out_path path = { 0 };
	struct tmk_raw_reader *raw = NULL;
	char *own_output = NULL, reason[256];
	const char *why;
	int status = TMK_EXIT_FAILED;

	argp_err_exit_status = TMK_EXIT_USAGE;
	if (argp_parse(&argp, argc, argv, 0, NULL, &o))
		return TMK_EXIT_USAGE;
	tmk_report_set_quiet(o.quiet);
	if (!o.output)
		o.output = own_output = default_output(o.raw);
	if (!o.output) {
		tmk_error("%s: out of memory", o.raw);
		goto cleanup;
	}
	if (tmk_raw_reader_open(&raw, o.raw, &why)) {
		tmk_error("%s: %s", o.raw, why);
		goto cleanup;
	}
	status = raw_validate(raw, &o);
	if (status)
		goto cleanup;
	status = TMK_EXIT_FAILED;
	if (tmk_out_path_init(&path, o.output, reason, sizeof(reason))) {
		tmk_error("%s: %s", o.output, reason);
		goto cleanup;
	}
	status = convert_run(&o, raw, &path);
cleanup:
	tmk_out_path_free(&path);
	tmk_raw_reader_close(raw);
	free(own_output);
	return status;
}
