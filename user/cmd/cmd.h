/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommands, one file each. A new one is a new file and one line in the table of main.c.
 */
#ifndef TICKMARK_CMD_H
#define TICKMARK_CMD_H

/* Each takes its own arguments (argv[0] is "tickmark NAME") and returns an enum tmk_exit. */
int tmk_cmd_record(int argc, char **argv);
int tmk_cmd_list(int argc, char **argv);
int tmk_cmd_convert(int argc, char **argv);
int tmk_cmd_check(int argc, char **argv);

#endif /* TICKMARK_CMD_H */
