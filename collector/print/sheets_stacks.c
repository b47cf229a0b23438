/* SPDX-License-Identifier: BSD-3-Clause */
/* sheets_stacks.c - flat tables of call stacks: of long waits, and all sampled ones, of which the
 * JSON has the first. */
#include "collector/print/sheet_maker.h"

void line_columns(struct sheet_maker *k)
{
	lines_cells(&k->report->lines, &(struct line_row){.place = NULL}, sheet_put_column, k);
	sheet_column_add(k, "stack", VALUE_TEXT, NULL);
}

void line_rows(struct sheet_maker *k)
{
	const struct lines *l = &k->report->lines;

	for (size_t i = 0; i < l->rows.n && !k->rc; i++) {
		sheet_row_begin(k);
		lines_cells(l, l->rows.v[i], sheet_put_cell, k);
		PUT_LIST(stack, lines_frames_json(l->rows.v[i]->most, j, member))
		sheet_row_end(k);
	}
}

void stack_columns(struct sheet_maker *k)
{
	lines_stack_cells(k->report->run, &(struct line_stack_row){.prefix = NULL},
			  sheet_put_column, k);
	sheet_column_add(k, "frames", VALUE_TEXT, NULL);
}

void stack_rows(struct sheet_maker *k)
{
	const struct lines *l = &k->report->lines;

	for (size_t i = 0; i < l->stacks.n && !k->rc; i++) {
		sheet_row_begin(k);
		lines_stack_cells(k->report->run, l->stacks.v[i], sheet_put_cell, k);
		PUT_LIST(frames, lines_frames_json(l->stacks.v[i]->list, j, member))
		sheet_row_end(k);
	}
}

void blocking_columns(struct sheet_maker *k)
{
	static const struct site nowhere;

	blocking_cells(&(struct blocking_row){.site = &nowhere, .longest = &nowhere},
		       sheet_put_column, k);
	sheet_column_add(k, "frames", VALUE_TEXT, NULL);
	sheet_column_add(k, "stack", VALUE_TEXT, NULL);
	sheet_column_add(k, "python_frames", VALUE_TEXT, NULL);
	sheet_column_add(k, "longest_holder_frames", VALUE_TEXT, NULL);
}

void blocking_rows(struct sheet_maker *k)
{
	struct blocking *b = k->report->blocking;
	const struct blocking_row *r;

	for (size_t i = 0; i < b->rows.n && i < BLOCKING_ROWS && !k->rc; i++) {
		r = b->rows.v[i];
		sheet_row_begin(k);
		blocking_cells(r, sheet_put_cell, k);
		PUT_LIST(frames, blocking_frames_json(r, j, member))
		PUT_LIST(stack, blocking_stack_json(b, k->report->run->model, r->site, j, member))
		PUT_LIST(python_frames, blocking_python_json(r->site->python, j, member))
		PUT_LIST(longest_holder_frames,
			 blocking_python_json(r->longest->holder.python, j, member))
		sheet_row_end(k);
	}
}
