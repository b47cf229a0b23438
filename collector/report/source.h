/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.h - user code with the sampled time of each line, and what it read.
 *
 * What a line read is exact, and excludes what the lines that it calls read (read_lines.h). A
 * line's time includes what it calls: each sample counts once for every line of user code in its
 * stack. It covers the threads that tasks run in, as `own` of lines.h, and has the same error
 * (lines_error()). Sampled bytes are of all threads, with what the line calls (line_bytes_error()).
 *
 * The text is read when the report is made, from the path that the worker had. It is only shown if
 * it can be the code that ran: a regular file NAME.py, not a symbolic link, of at most
 * SOURCE_BYTES, owned by the reader. A file that was changed after the run began is shown with a
 * note, as its lines may have moved.
 */
#ifndef CREMA_COLLECTOR_REPORT_SOURCE_H
#define CREMA_COLLECTOR_REPORT_SOURCE_H

#include "collector/report/lines.h"
#include "collector/report/read_lines.h"

#define SOURCE_FILES 8
#define SOURCE_ROWS 400 /* of one file */
#define SOURCE_AROUND 2 /* lines without time shown above and below one that has some */
#define SOURCE_BYTES (1u << 20)

struct source_row {
	uint64_t line;
	const char *text;     /* untrusted; NULL: not readable */
	const char *function; /* NULL: a line without time and without reads */
	struct line_sum sum;
	const struct read_line *read; /* NULL: it read nothing */
	bool gap;		      /* lines above it are omitted */
};

struct source_file {
	const char *file;
	double seconds; /* of stacks that contain one of its lines */
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

/* 0 or -ENOMEM; release it in either case. */
int source_gather(struct source *s, const struct lines *l, const struct read_lines *reads,
		  const struct run *run);
void source_release(struct source *s);
void source_table(const struct source *s, const struct lines *l, const struct read_lines *reads,
		  struct sink *out, bool colour);

#endif
