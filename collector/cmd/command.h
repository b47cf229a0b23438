/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.h - one subcommand of crema = one file cmd_NAME.c = one const descriptor.
 *
 * To add one: write the file with its `const struct command cmd_NAME`, declare it here, add it to
 * command_table.c and describe it in man/crema-NAME.txt. run() gets only its own arguments (argv[0]
 * is the command's name) and returns the exit status; it begins with command_options().
 */
#ifndef CREMA_COLLECTOR_CMD_COMMAND_H
#define CREMA_COLLECTOR_CMD_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"

enum { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

struct command {
	const char *name;
	const char *usage;    /* what follows "crema " in a usage line */
	const char *summary;  /* one line, for `crema --help` */
	const char *examples; /* one line each, for --help and the man page */
	unsigned int scope;   /* of its options */
	int (*run)(int argc, char **argv);
};

extern const struct command *const command_table[]; /* NULL-terminated */

extern const struct command cmd_collect;
extern const struct command cmd_report;
extern const struct command cmd_compare;
extern const struct command cmd_run;
extern const struct command cmd_token;
extern const struct command cmd_top;
extern const struct command cmd_stuck;
extern const struct command cmd_doctor;
extern const struct command cmd_follow;
extern const struct command cmd_page;

/*
 * Parses the command's options and handles --help and --version. True: continue. False: return
 * *status. `more`: arguments that are not options may follow; otherwise they are an error.
 */
bool command_options(const struct command *command, struct options *options, bool more, int argc,
		     char **argv, int *status);

/* Prints the version, and what this build lacks. */
void command_version(void);

/* --read-whole in bytes, 0 if not given. False: not a number; a line was logged. */
bool command_read_whole(const struct options *options, uint64_t *bytes);

/* Prints which file was written, unless it is standard output or --quiet was given. */
void command_wrote(const struct options *options, const char *path);

/* Whether text on standard output may be coloured: a capable terminal, and no NO_COLOR. */
bool command_colour(void);

/* Columns of the terminal on standard output; 0: not a terminal. */
unsigned int command_width(void);

/* "usage: crema ..." on stderr; returns STATUS_USAGE. */
int command_usage(const struct command *command);

#endif
