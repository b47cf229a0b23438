/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.h - the user's own code with the sampled time of each line, and what it read.
 *
 * What a line read is exact, and does not contain what the lines that it calls read (read_lines.h).
 * A line's time contains what it calls: each sample counts once for every line of the user's code
 * in its stack. It is of the threads that tasks run in, as `own` of lines.h, and has the same error
 * (lines_error()).
 *
 * The text is read when the report is made, from the path that the worker had. It is only shown
 * where it can be the code that ran: a regular file NAME.py of at most SOURCE_BYTES that belongs to
 * the reader, and no symbolic link. A file that was changed after the run began is shown with a
 * note, for its lines may have moved.
 */
#ifndef CREMA_COLLECTOR_REPORT_SOURCE_H
#define CREMA_COLLECTOR_REPORT_SOURCE_H

#include "collector/report/lines.h"
#include "collector/report/read_lines.h"

#define SOURCE_FILES 8
#define SOURCE_ROWS 400 /* of one file */
#define SOURCE_AROUND 2 /* lines without time above and below one that has some */
#define SOURCE_BYTES (1u << 20)

struct source_row {
	uint64_t line;
	const char *text;     /* hostile; NULL: not readable */
	const char *function; /* NULL: a line without time and without reads */
	struct line_sum sum;
	const struct read_line *read; /* NULL: it read nothing */
	bool gap;		      /* lines above it are left out */
};

struct source_file {
	const char *file;
	double seconds; /* of stacks that have a line of it */
	bool changed;
	const char *why; /* why there is no text; NULL: there is */
	struct source_row *v;
	size_t n, left_out; /* left_out: rows beyond SOURCE_ROWS */
};

struct source {
	struct arena arena;
	ARRAY(struct source_file) files; /* most time first */
	size_t left_out;		 /* files beyond SOURCE_FILES */
};

/* 0 or -ENOMEM; to be released in either case. */
int source_gather(struct source *s, const struct lines *l, const struct read_lines *reads,
		  const struct run *run);
void source_release(struct source *s);
void source_table(const struct source *s, const struct lines *l, const struct read_lines *reads,
		  struct sink *out, bool colour);

#endif
