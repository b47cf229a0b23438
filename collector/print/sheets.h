/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sheets.h - a run as flat tables, for CSV and SQLite.
 *
 * Columns have the JSON's names and values. A member of an object is named OBJECT_MEMBER
 * (goodbye.how: goodbye_how), a list is text in JSON. Every sheet but the first begins with the
 * column `run`, so that those of several runs can be combined. `files` includes imports and
 * files_rest, distinguished by `kind`. `samples` has the values of each source at one time.
 *
 * To add a sheet: a cells_NAME.def with its columns (also used for the JSON if that is flat), and a
 * line in the table of print/sheets.c.
 */
#ifndef CREMA_COLLECTOR_PRINT_SHEETS_H
#define CREMA_COLLECTOR_PRINT_SHEETS_H

#include "collector/report/report.h"

#define SHEETS 30 /* at most */
#define SHEET_COLUMNS 512
#define SHEET_INDICES 6

struct sheet_column {
	const char *name;
	enum value_type type; /* VALUE_NULL: any; whole numbers of either sign are UINT */
	const char *unit;     /* "": none */
};

struct sheet {
	const char *name;
	const char *key;		  /* columns that identify a row: "a, b"; "": none do */
	const char *index[SHEET_INDICES]; /* columns used for lookups */
	const struct sheet_column *column;
	size_t n;
};

/* Each function returns 0, or -errno, which stops the writing. */
struct sheet_way {
	void *arg;
	int (*begin)(void *arg, const struct sheet *s);
	int (*row)(void *arg, const struct sheet *s, const struct value *cells);
	int (*end)(void *arg, const struct sheet *s);
};

/* Writes all sheets in order: 0, -ENOMEM, or the way's error. */
int sheets_write(const struct report *r, const struct sheet_way *way);

#endif
