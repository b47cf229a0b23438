/* SPDX-License-Identifier: BSD-3-Clause */
/* sheets_series.c - flat tables of the JSON's series and lists. */
#include "collector/print/sheet_maker.h"

/* A row is a bin. */
void timeline_columns(struct sheet_maker *k)
{
	int s;

	sheet_column_add(k, "time", VALUE_REAL, NULL);
	sheet_column_add(k, "bin_seconds", VALUE_REAL, NULL);
	for (s = 0; s < HISTORY_SERIES; s++)
		sheet_column_add(k, history_name((enum history_series)s),
				 history_is_class((enum history_series)s) ? VALUE_REAL : VALUE_UINT,
				 history_is_class((enum history_series)s) ? "s" : NULL);
	sheet_column_add(k, "workers", VALUE_REAL, NULL);
	sheet_column_add(k, "running", VALUE_REAL, NULL);
}

void timeline_rows(struct sheet_maker *k)
{
	const struct timeline *t = &k->report->timeline;
	struct value v;
	size_t i;
	int s;

	for (i = 0; i < t->bins && !k->rc; i++) {
		sheet_row_begin(k);
		sheet_cell(k, value_real(t->start + (double)i * t->bin_seconds));
		sheet_cell(k, value_real(timeline_bin_width(t, i)));
		for (s = 0; s < HISTORY_SERIES; s++) {
			v = timeline_value(t, (enum history_series)s, i);
			sheet_cell(k,
				   history_is_class((enum history_series)s) ? value_seconds(v) : v);
		}
		sheet_cell(k, value_real(t->workers[i]));
		sheet_cell(k, value_real(t->running[i]));
		sheet_row_end(k);
	}
}

/* A row is a point of a series of tracking_data; worker NULL: of all workers. */
void tracking_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "series", VALUE_TEXT, NULL);
	sheet_column_add(k, "worker_id", VALUE_TEXT, NULL);
	sheet_column_add(k, "worker", VALUE_TEXT, NULL);
	sheet_column_add(k, "time", VALUE_REAL, NULL);
	sheet_column_add(k, "value", VALUE_REAL, "");
}

static void tracking_row(void *arg, const struct worker *w, const char *series, double time,
			 struct value v)
{
	struct sheet_maker *k = arg;

	if (k->rc)
		return;
	sheet_row_begin(k);
	sheet_cell(k, value_text(series));
	sheet_cell(k, value_text(w ? w->hex : NULL));
	sheet_cell(k, value_text(w ? w->label : NULL));
	sheet_cell(k, value_real(time));
	sheet_cell(k, v);
	sheet_row_end(k);
}

void tracking_rows(struct sheet_maker *k)
{
	tracking_each(k->report->facts, tracking_row, k);
}

/* Metrics that are lists, as JSON. */
void list_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "metric", VALUE_TEXT, NULL);
	sheet_column_add(k, "value", VALUE_TEXT, "");
}

void list_rows(struct sheet_maker *k)
{
	size_t i;

	for (i = 0; i < metric_count && !k->rc; i++) {
		if (metric_table[i].kind != METRIC_TREE)
			continue;
		sheet_row_begin(k);
		sheet_cell(k, value_text(metric_table[i].id));
		PUT_LIST(value, metric_table[i].tree(k->report->facts, member, j))
		sheet_row_end(k);
	}
}
