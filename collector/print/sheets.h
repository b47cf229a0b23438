/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sheets.h - a run as flat tables: what CSV and SQLite write.
 *
 * Columns have the JSON's names and values. An object's members are joined to its name by '_'
 * (goodbye.how: goodbye_how), a list is text that holds it as JSON. Every sheet but the first
 * begins with the column `run`, so that those of several runs can be put together. `files` has
 * imports and files_rest too, told apart by `kind`; `samples` holds what each source saw at one
 * time.
 *
 * To add a sheet: a cells_NAME.def with its columns (the JSON made from it, too, where it is flat),
 * and a line in the table of print/sheets.c.
 */
#ifndef CREMA_COLLECTOR_PRINT_SHEETS_H
#define CREMA_COLLECTOR_PRINT_SHEETS_H

#include "collector/report/report.h"

#define SHEETS 30 /* at most */
#define SHEET_COLUMNS 512
#define SHEET_INDICES 6

struct sheet_column {
	const char *name;
	enum value_type type; /* VALUE_NULL: of any; whole numbers of either sign are UINT */
	const char *unit;     /* "" = none */
};

struct sheet {
	const char *name;
	const char *key;		  /* columns that name a row: "a, b"; "" = none do */
	const char *index[SHEET_INDICES]; /* columns that are looked for */
	const struct sheet_column *column;
	size_t n;
};

/* Each returns 0, or -errno, which ends the writing. */
struct sheet_way {
	void *arg;
	int (*begin)(void *arg, const struct sheet *s);
	int (*row)(void *arg, const struct sheet *s, const struct value *cells);
	int (*end)(void *arg, const struct sheet *s);
};

/* All sheets, one after the other: 0, -ENOMEM, or the way's error. */
int sheets_write(const struct report *r, const struct sheet_way *way);

#endif
