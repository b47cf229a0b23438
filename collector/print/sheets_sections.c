/* SPDX-License-Identifier: BSD-3-Clause */
/* sheets_sections.c - flat tables of sections, memory and custom metrics. */
#include <stdio.h>

#include "collector/print/sheet_maker.h"

#define NAME_BYTES 64

static void spread_columns(struct sheet_maker *k)
{
	size_t i;

	for (i = 0; i < CREMA_SECTION_NUMBERS; i++)
		if (*row_section_cells[i].cell)
			sheet_column_add(k, row_section_cells[i].cell,
					 row_section_cells[i].ns ? VALUE_REAL : VALUE_UINT, NULL);
	sheet_column_add(k, "unfinished", VALUE_UINT, NULL);
	for (i = 0; section_spread_name(i); i++)
		sheet_column_add(k, section_spread_name(i), VALUE_REAL, NULL);
	for (i = 0; section_number_name(i); i++)
		sheet_column_add(k, section_number_name(i), VALUE_NULL, NULL);
	sheet_column_add(k, "unclassified_seconds", VALUE_REAL, NULL);
}

/* The numbers, then the same without inner sections. */
void section_columns(struct sheet_maker *k)
{
	static char self[SECTION_NUMBERS + 1][NAME_BYTES];
	static const char *const texts[] = {"section", "outer", "prefix", "thread", "source"};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		sheet_column_add(k, texts[i], VALUE_TEXT, NULL);
	spread_columns(k);
	for (i = 0; section_number_name(i); i++) {
		snprintf(self[i], NAME_BYTES, "self_%s", section_number_name(i));
		sheet_column_add(k, self[i], VALUE_NULL, NULL);
	}
	sheet_column_add(k, "self_unclassified_seconds", VALUE_REAL, NULL);
}

void section_dataset_columns(struct sheet_maker *k)
{
	static const char *const texts[] = {"section", "dataset", "prefix", "thread", "source"};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		sheet_column_add(k, texts[i], VALUE_TEXT, NULL);
	sheet_column_add(k, "beyond_table", VALUE_BOOL, NULL);
	spread_columns(k);
}

static void section_numbers(struct sheet_maker *k, const struct section_sum *s, bool self)
{
	size_t i;

	for (i = 0; section_number_name(i); i++)
		sheet_cell(k, section_number(s, i, self));
	sheet_cell(k, section_unclassified(s, self));
}

static void section_cells(struct sheet_maker *k, const struct section_sum *s, const char *second)
{
	const char *const texts[] = {s->path, second, s->prefix, s->thread, s->source};
	size_t i;

	sheet_row_begin(k);
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		sheet_cell(k, value_text(texts[i]));
}

static void spread_cells(struct sheet_maker *k, const struct section_sum *s)
{
	size_t i;

	for (i = 0; i < CREMA_SECTION_NUMBERS; i++)
		if (*row_section_cells[i].cell)
			sheet_cell(k, section_cell(s, i));
	sheet_cell(k, value_minus(s->begun, value_plus(s->count, s->broken)));
	for (i = 0; section_spread_name(i); i++)
		sheet_cell(k, section_spread(s, i));
	section_numbers(k, s, false);
}

void section_rows(struct sheet_maker *k)
{
	const struct section_list *all = &k->report->sections.all;
	const struct section_sum *s;
	size_t i;

	for (i = 0; i < all->v.n && !k->rc; i++) {
		s = all->v.v[i];
		section_cells(k, s, s->outer ? s->outer->path : NULL);
		spread_cells(k, s);
		section_numbers(k, s, true);
		sheet_row_end(k);
	}
}

void section_dataset_rows(struct sheet_maker *k)
{
	const struct section_list *all = &k->report->sections.by_dataset;
	size_t i;

	for (i = 0; i < all->v.n && !k->rc; i++) {
		section_cells(k, all->v.v[i], all->v.v[i]->dataset);
		sheet_cell(k, value_bool(all->v.v[i]->beyond));
		spread_cells(k, all->v.v[i]);
		sheet_row_end(k);
	}
}

/* parts: names of the first n of a gauge's stats */
static void gauge_columns(struct sheet_maker *k, const char *const *parts, size_t n)
{
	static char names[CREMA_GAUGE_STATS + 1][CREMA_GAUGE_NUMBERS][NAME_BYTES];
	const char *unit = n > 1 ? "bytes" : "";
	size_t i, m;

	for (i = 0; i < n; i++) {
		for (m = 0; m < CREMA_GAUGE_NUMBERS; m++) {
			snprintf(names[i + (n == 1 ? CREMA_GAUGE_STATS : 0)][m], NAME_BYTES,
				 "%s_%s", parts[i], gauge_number_names[m]);
			sheet_column_add(k, names[i + (n == 1 ? CREMA_GAUGE_STATS : 0)][m],
					 m ? VALUE_REAL : VALUE_UINT, m ? unit : "");
		}
	}
}

static void stat_cells(struct sheet_maker *k, const struct crema_stat *s)
{
	struct value v[CREMA_GAUGE_NUMBERS];
	size_t i;

	gauge_values(s, v);
	for (i = 0; i < CREMA_GAUGE_NUMBERS; i++)
		sheet_cell(k, v[i]);
}

static void gauge_rows(struct sheet_maker *k, bool memory)
{
	const struct sections *all = &k->report->sections;
	const struct gauge_sum *g;
	size_t i, m;

	for (i = 0; i < all->gauges.n && !k->rc; i++) {
		g = all->gauges.v[i];
		if (gauge_is_memory(g) != memory)
			continue;
		sheet_row_begin(k);
		sheet_cell(k, value_text(g->path));
		sheet_cell(k, value_text(g->prefix));
		sheet_cell(k, value_text(g->source));
		sheet_cell(k, memory ? g->broken : value_text(g->kind));
		for (m = 0; m < (memory ? CREMA_GAUGE_STATS : 1); m++)
			stat_cells(k, &g->stat[m]);
		sheet_row_end(k);
	}
}

void memory_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "name", VALUE_TEXT, NULL);
	sheet_column_add(k, "prefix", VALUE_TEXT, NULL);
	sheet_column_add(k, "source", VALUE_TEXT, NULL);
	sheet_column_add(k, "broken", VALUE_UINT, NULL);
	gauge_columns(k, row_gauge_parts, CREMA_GAUGE_STATS);
}

void memory_rows(struct sheet_maker *k)
{
	gauge_rows(k, true);
}

void custom_columns(struct sheet_maker *k)
{
	static const char *const parts[] = {"value"};

	sheet_column_add(k, "name", VALUE_TEXT, NULL);
	sheet_column_add(k, "prefix", VALUE_TEXT, NULL);
	sheet_column_add(k, "source", VALUE_TEXT, NULL);
	sheet_column_add(k, "kind", VALUE_TEXT, NULL);
	gauge_columns(k, parts, 1);
}

void custom_rows(struct sheet_maker *k)
{
	gauge_rows(k, false);
}
