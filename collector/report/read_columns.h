/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read_columns.h - columns of trees and RNTuples as tasks read them: sums over the workers of a
 * run, by dataset and tree.
 *
 * The numbers of all rows of a dataset add up to those of its chunks, all attempts included:
 * COLUMN_REST is the work outside of any column (metadata, the processor itself). Its requested
 * bytes are unknown if an attempt did not report coffea's bytesread. Numbers that only columns have
 * are unknown for it.
 */
#ifndef CREMA_COLLECTOR_REPORT_READ_COLUMNS_H
#define CREMA_COLLECTOR_REPORT_READ_COLUMNS_H

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_table.h"
#include "collector/runs/runs.h"
#include "common/rows.h"

enum column_kind {
	COLUMN_ONE,
	COLUMN_TOGETHER, /* several with one request: what cannot be attributed to one of them */
	COLUMN_BEYOND,	 /* those beyond the workers' tables */
	COLUMN_REST,
};

#define COLUMN_LINES 8u

struct column_sum {
	enum column_kind kind;
	const char *column, *tree, *dataset; /* NULL: not of one; unknown */
	const char *line[COLUMN_LINES];	     /* of user code, which requested it */
	size_t lines;
	bool more_lines;
	union {
		struct {
#define COLUMN_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_COLUMN_NUMBERS];
	};
};

struct read_columns {
	ARRAY(struct column_sum *) v; /* most bytes first; those of COLUMN_REST last */
	struct value unmeasured;      /* reads over the whole life of the run's workers */
	struct table table;
	struct arena arena;
};

int read_columns_gather(struct read_columns *c, const struct run *run);
void read_columns_release(struct read_columns *c);

const char *column_kind_name(enum column_kind kind);
/* Parts of `number`, in column_sum and read_line: initializes it; and bytes in the file: of
 * baskets, or those requested. */
void column_numbers_begin(struct value *number);
struct value column_bytes(const struct value *number);

/* As an array. */
void column_lines_json(const struct column_sum *s, struct json *j, const char *name);
void read_columns_json(const struct read_columns *c, struct json *j);
void read_columns_table(const struct read_columns *c, struct sink *out, bool colour);

#endif
