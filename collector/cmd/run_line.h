/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_line.h - the line that `crema run` ends with: what was measured, and what to type next.
 *
 *	run_line_begin(&line);  ... the command runs with CREMA_RUN_FILE ...  run_line_end(&line);
 *
 * Each agent that starts below the command adds its worker's process id and start time to a file,
 * which says whose the records in the state directory are. They are read in a child process for
 * RUN_LINE_MS at most: what is known by then is printed, in one line on standard error.
 */
#ifndef CREMA_COLLECTOR_CMD_RUN_LINE_H
#define CREMA_COLLECTOR_CMD_RUN_LINE_H

#include <limits.h>

#define RUN_LINE_MS 1000

struct run_line {
	char path[PATH_MAX]; /* "": it could not be made */
	const char *dir;     /* --dir; NULL: the usual one */
};

/* Makes the file and names it in the environment. */
void run_line_begin(struct run_line *line, const char *dir);
/* Prints the line and removes the file. */
void run_line_end(struct run_line *line);

#endif
