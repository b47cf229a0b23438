/* SPDX-License-Identifier: BSD-3-Clause */
/* meta.h - the self-description of CSV and SQLite: the tables meta and columns. */
#ifndef CREMA_COLLECTOR_EXPORT_META_H
#define CREMA_COLLECTOR_EXPORT_META_H

#include "collector/print/sheets.h"

/* Version of the names and meanings of tables and columns: increased by each change that
 * breaks a reader. */
#define META_FORMAT 1
#define META_COLUMN_NAMES "table_name,column_name,type,unit"
#define META_COLUMN_CELLS 4

void meta_each(const struct report *r, void (*put)(void *arg, const char *name, struct value v),
	       void *arg);
/* The row of `columns` for a sheet's column. */
void meta_column(const struct sheet *s, size_t i, struct value row[META_COLUMN_CELLS]);
/* "INTEGER", "REAL", "TEXT", "BOOLEAN"; "": any */
const char *meta_type(enum value_type type);

#endif
