/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * columns.h - the columns of task rows and chunk rows: a table of names and sources.
 *
 * To add a column, add a line to report/columns.c.
 */
#ifndef CREMA_COLLECTOR_REPORT_COLUMNS_H
#define CREMA_COLLECTOR_REPORT_COLUMNS_H

#include <stddef.h>

#include "collector/report/report.h"

enum source {
	FROM_TEXT, /* a text member */
	FROM_U64,  /* a wire field */
	FROM_I64,
	FROM_REAL,    /* the last one whose id is a field */
	FROM_CLASS,   /* a time class: seconds */
	FROM_POOL,    /* pool threads' time: seconds */
	FROM_COUNT,   /* a counter */
	FROM_COUNT_S, /* a counter of ns: seconds */
	FROM_FLAG,    /* a bit of flags */
	FROM_CALL,
};

struct column {
	const char *name;
	enum source source;
	unsigned int id; /* field, class, counter or flag */
	size_t offset;
	struct value (*call)(const struct attempt *a, const struct classes *c);
	enum value_type type; /* of known values; whole numbers of either sign: UINT or INT */
};

/* For each task; in addition for each chunk. */
extern const struct column task_columns[], chunk_columns[];
extern const size_t task_column_count, chunk_column_count;

/* The value of a column; null: unknown. `c`: attempt_classes() of a. */
struct value column_value(const struct column *col, const struct attempt *a,
			  const struct classes *c);

#endif
