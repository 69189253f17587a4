// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tickmark command: finds the subcommand and hands over. Everything else is the subcommand's.
 */
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "cmd/cmd.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{ "record", tmk_cmd_record,
	  "attach to running or new processes and record their operations" },
	{ "list", tmk_cmd_list, "show what could be traced" },
	{ "convert", tmk_cmd_convert, "turn a raw capture into runtime/3 (no root)" },
	{ "check", tmk_cmd_check, "check files by the rules of candle-graph's importer (no root)" },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage_print(FILE *to)
{
	fputs("Times every operation of a running, marked program from outside.\n\n"
	      "  tickmark record -p PID -o run.jsonl      until ^C, or until the job ends\n"
	      "  tickmark record -o run.jsonl -- CMD ARGS\n\n"
	      "Commands (each has --help, with examples):\n",
	      to);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fputs("\nExit status: 0 all well, 1 failed, 2 wrong usage, 3 the output is whole but something "
	      "was lost.\n",
	      to);
}

int main(int argc, char **argv)
{
	static char name[64];

	if (argc < 2) {
		usage_print(stderr);
		return TMK_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage_print(stdout);
		return TMK_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("tickmark " TMK_VERSION);
		return TMK_EXIT_OK;
	}
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		snprintf(name, sizeof(name), "tickmark %s", commands[i].name);
		argv[1] = name;
		return commands[i].run(argc - 1, argv + 1);
	}
	tmk_error("unknown command '%s'; 'tickmark --help' lists them", argv[1]);
	return TMK_EXIT_USAGE;
}
