/* SPDX-License-Identifier: BSD-3-Clause */
/* sheets_lines.c - flat tables of sampled lines and stacks: all of them, of which the JSON has the
 * first. */
#include "collector/print/sheet_maker.h"

static void column(void *arg, const char *name, enum value_type type, struct value v)
{
	(void)v;
	sheet_column_add(arg, name, type, strncmp(name, "share", 5) ? NULL : "");
}

static void cell(void *arg, const char *name, enum value_type type, struct value v)
{
	(void)name, (void)type;
	sheet_cell(arg, v);
}

void line_columns(struct sheet_maker *k)
{
	lines_cells(&k->report->lines, &(struct line_row){.place = NULL}, column, k);
	sheet_column_add(k, "stack", VALUE_TEXT, NULL);
}

void line_rows(struct sheet_maker *k)
{
	const struct lines *l = &k->report->lines;

	for (size_t i = 0; i < l->rows.n && !k->rc; i++) {
		sheet_row_begin(k);
		lines_cells(l, l->rows.v[i], cell, k);
		PUT_LIST(stack, lines_frames_json(l->rows.v[i]->most, j, member))
		sheet_row_end(k);
	}
}

void stack_columns(struct sheet_maker *k)
{
	lines_stack_cells(k->report->run, &(struct line_stack_row){.prefix = NULL}, column, k);
	sheet_column_add(k, "frames", VALUE_TEXT, NULL);
}

void stack_rows(struct sheet_maker *k)
{
	const struct lines *l = &k->report->lines;

	for (size_t i = 0; i < l->stacks.n && !k->rc; i++) {
		sheet_row_begin(k);
		lines_stack_cells(k->report->run, l->stacks.v[i], cell, k);
		PUT_LIST(frames, lines_frames_json(l->stacks.v[i]->list, j, member))
		sheet_row_end(k);
	}
}
