/* SPDX-License-Identifier: BSD-3-Clause */
/* sheets_lines.c - flat tables of sampled lines and stacks: all of them, of which the JSON has the
 * first. */
#include "collector/print/sheet_maker.h"
#include "common/rows.h"

static void sum_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "samples", VALUE_UINT, NULL);
	sheet_column_add(k, "seconds", VALUE_REAL, NULL);
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		sheet_column_add(k, line_class_name(i), VALUE_REAL, NULL);
}

static void sum_cells(struct sheet_maker *k, const struct line_sum *s)
{
	sheet_cell(k, value_uint(s->samples));
	sheet_cell(k, value_real(s->seconds));
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		sheet_cell(k, value_real(s->class_s[i]));
}

void line_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "file", VALUE_TEXT, NULL);
	sheet_column_add(k, "line", VALUE_UINT, NULL);
	sheet_column_add(k, "function", VALUE_TEXT, NULL);
	sum_columns(k);
	sheet_column_add(k, "share", VALUE_REAL, "");
	sheet_column_add(k, "share_error", VALUE_REAL, "");
	sheet_column_add(k, "stack", VALUE_TEXT, NULL);
}

void line_rows(struct sheet_maker *k)
{
	const struct lines *l = &k->report->lines;

	for (size_t i = 0; i < l->rows.n && !k->rc; i++) {
		const struct line_row *r = l->rows.v[i];
		const struct line_place *p = r->place;
		double share = lines_share(l, &r->sum);

		sheet_row_begin(k);
		sheet_cell(k, value_text(p ? p->file : NULL));
		sheet_cell(k, p && p->line ? value_uint(p->line) : value_null());
		sheet_cell(k, value_text(p ? p->function : NULL));
		sum_cells(k, &r->sum);
		sheet_cell(k, value_real(share));
		sheet_cell(k, value_real(lines_error(share, l->all.samples)));
		if (r->most)
			PUT_LIST(stack, lines_frames_json(r->most, j, member))
		else
			sheet_cell(k, value_null());
		sheet_row_end(k);
	}
}

void stack_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "prefix", VALUE_TEXT, NULL);
	sheet_column_add(k, "thread", VALUE_TEXT, NULL);
	sheet_column_add(k, "without", VALUE_TEXT, NULL);
	sum_columns(k);
	sheet_column_add(k, "frames", VALUE_TEXT, NULL);
}

void stack_rows(struct sheet_maker *k)
{
	const struct lines *l = &k->report->lines;

	for (size_t i = 0; i < l->stacks.n && !k->rc; i++) {
		const struct line_stack_row *r = l->stacks.v[i];

		sheet_row_begin(k);
		sheet_cell(k, value_text(run_prefix_shown(k->report->run, r->prefix)));
		sheet_cell(k, value_text(r->pool ? "pool" : "own"));
		sheet_cell(k, value_text(r->why));
		sum_cells(k, &r->sum);
		PUT_LIST(frames, lines_frames_json(r->list, j, member))
		sheet_row_end(k);
	}
}
