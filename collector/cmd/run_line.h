/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_line.h - the line that `crema run` prints at the end: what was measured, and what to
 * type next.
 *
 *	run_line_begin(&line);  ... the command runs with CREMA_RUN_FILE ...  run_line_end(&line);
 *
 * Each agent that starts below the command adds its worker's process id and start time to a file,
 * which identifies the command's records in the state directory. A child process reads them for
 * RUN_LINE_MS at most; what is known by then is printed as one line on standard error.
 */
#ifndef CREMA_COLLECTOR_CMD_RUN_LINE_H
#define CREMA_COLLECTOR_CMD_RUN_LINE_H

#include <limits.h>
#include <sys/types.h>

#define RUN_LINE_MS 1000

struct run_line {
	char path[PATH_MAX]; /* "": there is none, and nothing is printed */
	const char *dir;     /* --dir; NULL: the default */
};

/* Creates the file and puts its name into the environment. */
void run_line_begin(struct run_line *line, const char *dir);
/* Removes the file. */
void run_line_drop(struct run_line *line);
/* Prints the line and removes the file. `pid`: the command's, which has ended. */
void run_line_end(struct run_line *line, pid_t pid);

#endif
