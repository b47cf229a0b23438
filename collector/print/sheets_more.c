/* SPDX-License-Identifier: BSD-3-Clause */
/* sheets_more.c - flat tables of what the JSON has as objects and series. */
#include <stdio.h>

#include "collector/findings/findings.h"
#include "collector/print/sheet_maker.h"

#define NAME_BYTES 64

void finding_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "id", VALUE_TEXT, NULL);
	sheet_column_add(k, "severity", VALUE_TEXT, NULL);
	sheet_column_add(k, "sentence", VALUE_TEXT, NULL);
	sheet_column_add(k, "advice", VALUE_TEXT, NULL);
	sheet_column_add(k, "cost", VALUE_TEXT, NULL);
	sheet_column_add(k, "cost_seconds", VALUE_REAL, "s");
	sheet_column_add(k, "cost_at_least", VALUE_BOOL, NULL);
	sheet_column_add(k, "of_seconds", VALUE_REAL, "s");
	sheet_column_add(k, "gain", VALUE_TEXT, NULL);
	sheet_column_add(k, "gain_seconds", VALUE_REAL, "s");
	sheet_column_add(k, "evidence", VALUE_TEXT, NULL);
}

void finding_rows(struct sheet_maker *k)
{
	const struct findings *found = k->report->findings;
	char cost[FINDING_COST_BYTES];
	const struct finding *f;
	size_t i;

	for (i = 0; found && i < found->n && !k->rc; i++) {
		f = &found->v[i];
		sheet_row_begin(k);
		sheet_cell(k, value_text(f->id));
		sheet_cell(k, value_text(finding_severity_name(f->severity)));
		sheet_cell(k, value_text(f->sentence));
		sheet_cell(k, value_text(f->advice));
		sheet_cell(k, value_text(*finding_cost(f, cost, sizeof(cost)) ? cost : NULL));
		sheet_cell(k, value_real(f->cost_s));
		sheet_cell(k, value_bool(f->cost_is_least));
		sheet_cell(k, value_real(f->of_s));
		sheet_cell(k, value_text(f->gain));
		sheet_cell(k, value_real(f->gain_s));
		PUT_LIST(evidence, finding_evidence_json(f, j, member))
		sheet_row_end(k);
	}
}

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

/* The numbers, and once more without inner sections. */
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

void blocking_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "wait", VALUE_TEXT, NULL);
	sheet_column_add(k, "prefix", VALUE_TEXT, NULL);
	sheet_column_add(k, "file", VALUE_TEXT, NULL);
	sheet_column_add(k, "peer", VALUE_TEXT, NULL);
	sheet_column_add(k, "count", VALUE_UINT, NULL);
	sheet_column_add(k, "waited_seconds", VALUE_REAL, NULL);
	sheet_column_add(k, "longest_seconds", VALUE_REAL, NULL);
	sheet_column_add(k, "frames", VALUE_TEXT, NULL);
	sheet_column_add(k, "stack", VALUE_TEXT, NULL);
}

void blocking_rows(struct sheet_maker *k)
{
	struct blocking *b = k->report->blocking;
	const struct blocking_row *r;
	size_t i;

	for (i = 0; i < b->rows.n && i < BLOCKING_ROWS && !k->rc; i++) {
		r = b->rows.v[i];
		sheet_row_begin(k);
		sheet_cell(k, value_text(blocking_wait(r)));
		sheet_cell(k, value_text(r->prefix));
		sheet_cell(k, value_text(r->site->file));
		sheet_cell(k, value_text(r->site->peer));
		sheet_cell(k, value_uint(r->waits.calls));
		sheet_cell(k, value_seconds(value_uint(r->waits.ns)));
		sheet_cell(k, value_seconds(value_uint(r->waits.longest_ns)));
		PUT_LIST(frames, blocking_frames_json(r, j, member))
		PUT_LIST(stack, blocking_stack_json(b, k->report->run->model, r->site, j, member))
		sheet_row_end(k);
	}
}

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

/* A row is a point of a series of tracking_data; worker NULL: of all of them. */
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
