/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read_lines.h - what the lines of user code read: the numbers of the columns that each requested
 * first, and the bytes through the descriptors that each opened (opened.h).
 *
 * Numbers are exact and count once: a worker's row of a column goes to the line that requested
 * it, or to READ_SEVERAL if several did. These rows, those of unknown lines, and the chunks'
 * rest (read_columns.h) add up to the chunks' own numbers. A line's numbers do not include
 * requests of the lines that it calls. Opened descriptors are another view of the same bytes:
 * a line may have both.
 */
#ifndef CREMA_COLLECTOR_REPORT_READ_LINES_H
#define CREMA_COLLECTOR_REPORT_READ_LINES_H

#include "collector/report/file_layers.h"
#include "collector/report/read_columns.h"

enum read_line_kind {
	READ_LINE,
	READ_SEVERAL, /* columns that several lines requested */
	READ_UNKNOWN, /* not requested by user code */
	READ_REST,    /* chunks outside of columns */
};

struct read_line {
	enum read_line_kind kind;
	const char *file, *function; /* NULL: not READ_LINE */
	uint64_t line;
	/* Names, each once; NULL: requests for several. shared: those whose numbers are in
	 * READ_SEVERAL on at least one worker. */
	struct read_names {
		const char **v;
		size_t n, cap;
	} columns, shared;
	union {
		struct {
#define COLUMN_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_COLUMN_NUMBERS];
	};
	struct opened_line opened; /* over all files; line NULL: it opened none */
};

struct read_lines {
	ARRAY(struct read_line *) v; /* by kind, most bytes first */
	struct table table, name_table;
	struct arena arena;
};

/* c, files: of the same run. 0 or -ENOMEM; release it in either case. */
int read_lines_gather(struct read_lines *l, const struct run *run, const struct read_columns *c,
		      const struct file_sum *files, size_t n);
/* Whether it requested columns. */
bool read_line_asked(const struct read_line *s);
void read_lines_release(struct read_lines *l);
const char *read_line_kind_name(enum read_line_kind kind);
/* The row of a READ_LINE; NULL: it read and opened nothing. */
const struct read_line *read_lines_at(const struct read_lines *l, const char *file, uint64_t line);
/* The line whose columns have most of a number (CREMA_COLUMN_N_), and at least `least`; NULL:
 * none. */
const struct read_line *read_lines_most(const struct read_lines *l, size_t number, double least);
/* As an array. */
void read_names_json(const struct read_names *names, struct json *j, const char *name);
void read_lines_json(const struct read_lines *l, struct json *j);

#endif
