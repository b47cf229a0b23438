/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sheet_maker.h - writes one flat table: first its columns, then cell after cell, row after row.
 *
 * Part of print/sheets.c. The first error sticks in `rc`.
 */
#ifndef CREMA_COLLECTOR_PRINT_SHEET_MAKER_H
#define CREMA_COLLECTOR_PRINT_SHEET_MAKER_H

#include "collector/print/sheets.h"

#define SHEET_LISTS 8

struct sheet_maker {
	const struct report *report;
	const struct sheet_way *way;
	struct sheet sheet;
	struct sheet_column column[SHEET_COLUMNS];
	struct value cell[SHEET_COLUMNS];
	struct buf list[SHEET_LISTS]; /* text of this row's lists */
	size_t at, lists;
	int rc;
};

/* unit NULL: from the name */
void sheet_column_add(struct sheet_maker *k, const char *name, enum value_type type,
		      const char *unit);
/* The cells of a row, in the order of the columns; the first, `run`, is added already. */
void sheet_row_begin(struct sheet_maker *k);
void sheet_cell(struct sheet_maker *k, struct value v);
int sheet_row_end(struct sheet_maker *k);
/* A cell that holds JSON: written to the sink between these two. */
struct sink sheet_list_open(struct sheet_maker *k);
void sheet_list_cell(struct sheet_maker *k, struct sink *s);

/* emit_json.h's cell_put: adds a column without its value, or the cell. */
void sheet_put_column(void *maker, const char *name, enum value_type type, struct value v);
void sheet_put_cell(void *maker, const char *name, enum value_type type, struct value v);

#define PUT_LIST(name, put)                                                                        \
	{                                                                                          \
		struct json json, *j = &json;                                                      \
		struct sink sink = sheet_list_open(k);                                             \
		const char *member = NULL;                                                         \
                                                                                                   \
		emit_init(j, &sink);                                                               \
		j->pretty = false;                                                                 \
		put;                                                                               \
		sheet_list_cell(k, &sink);                                                         \
	}

/* Writes a whole sheet; index: NULL-terminated names. */
int sheet_make(struct sheet_maker *k, const char *name, const char *key, const char *const *index,
	       void (*columns)(struct sheet_maker *), void (*rows)(struct sheet_maker *));
void sheet_release(struct sheet_maker *k);

/* Sheets of print/sheets_stacks.c. */
void line_columns(struct sheet_maker *k);
void line_rows(struct sheet_maker *k);
void stack_columns(struct sheet_maker *k);
void stack_rows(struct sheet_maker *k);

void blocking_columns(struct sheet_maker *k);
void blocking_rows(struct sheet_maker *k);

/* Sheets of print/sheets_sections.c. */
void section_columns(struct sheet_maker *k);
void section_rows(struct sheet_maker *k);
void section_dataset_columns(struct sheet_maker *k);
void section_dataset_rows(struct sheet_maker *k);
void memory_columns(struct sheet_maker *k);
void memory_rows(struct sheet_maker *k);
void custom_columns(struct sheet_maker *k);
void custom_rows(struct sheet_maker *k);

/* Sheets of print/sheets_series.c. */
void timeline_columns(struct sheet_maker *k);
void timeline_rows(struct sheet_maker *k);
void tracking_columns(struct sheet_maker *k);
void tracking_rows(struct sheet_maker *k);
void list_columns(struct sheet_maker *k);
void list_rows(struct sheet_maker *k);

#endif
