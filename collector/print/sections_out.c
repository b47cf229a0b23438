/* SPDX-License-Identifier: BSD-3-Clause */
/* sections_out.c - sections and gauges as JSON and as tables. */
#include <math.h>
#include <string.h>

#include "collector/report/sections.h"
#include "common/rows.h"

#define TOP 12

static void put_numbers(const struct section_sum *s, bool self, struct json *j)
{
	for (size_t i = 0; section_number_name(i); i++)
		emit_value(j, section_number_name(i), section_number(s, i, self));
	emit_value(j, "unclassified_seconds", section_unclassified(s, self));
}

static void put_section(const struct section_sum *s, bool by_dataset, struct json *j)
{
	emit_object(j, NULL);
	emit_value(j, "section", value_text(s->path));
	if (by_dataset) {
		emit_value(j, "dataset", value_text(s->dataset));
		emit_value(j, "beyond_table", value_bool(s->beyond));
	} else {
		emit_value(j, "outer", value_text(s->outer ? s->outer->path : NULL));
	}
	emit_value(j, "prefix", value_text(s->prefix));
	emit_value(j, "thread", value_text(s->thread));
	emit_value(j, "source", value_text(s->source));
	for (size_t i = 0; i < CREMA_SECTION_NUMBERS; i++)
		if (*row_section_cells[i].cell)
			emit_value(j, row_section_cells[i].cell, section_cell(s, i));
	emit_value(j, "unfinished", value_minus(s->begun, value_plus(s->count, s->broken)));
	for (size_t i = 0; section_spread_name(i); i++)
		emit_value(j, section_spread_name(i), section_spread(s, i));
	put_numbers(s, false, j);
	if (!by_dataset) {
		emit_object(j, "self");
		put_numbers(s, true, j);
		emit_end(j);
	}
	emit_end(j);
}

static void put_list(const struct sections *s, bool by_dataset, struct json *j)
{
	const struct section_list *list = by_dataset ? &s->by_dataset : &s->all;

	emit_array(j, by_dataset ? "sections_by_dataset" : "sections");
	for (size_t i = 0; i < list->v.n; i++)
		put_section(list->v.v[i], by_dataset, j);
	emit_end(j);
}

static void put_stat(const struct crema_stat *s, const char *name, struct json *j)
{
	struct value v[CREMA_GAUGE_NUMBERS];

	gauge_values(s, v);
	emit_object(j, name);
	for (size_t i = 0; i < CREMA_GAUGE_NUMBERS; i++)
		emit_value(j, gauge_number_names[i], v[i]);
	emit_end(j);
}

bool gauge_is_memory(const struct gauge_sum *g)
{
	return g->kind && !strcmp(g->kind, "memory");
}

static void put_gauges(const struct sections *s, bool memory, struct json *j)
{
	emit_array(j, memory ? "memory_sections" : "custom_metrics");
	for (size_t i = 0; i < s->gauges.n; i++) {
		const struct gauge_sum *g = s->gauges.v[i];

		if (gauge_is_memory(g) != memory)
			continue;
		emit_object(j, NULL);
		emit_value(j, "name", value_text(g->path));
		emit_value(j, "prefix", value_text(g->prefix));
		emit_value(j, "source", value_text(g->source));
		if (memory)
			emit_value(j, "broken", g->broken);
		else
			emit_value(j, "kind", value_text(g->kind));
		for (size_t k = 0; memory && k < CREMA_GAUGE_STATS; k++)
			put_stat(&g->stat[k], row_gauge_parts[k], j);
		if (!memory)
			put_stat(&g->stat[0], "value", j);
		emit_end(j);
	}
	emit_end(j);
}

void sections_json(const struct sections *s, struct json *j)
{
	put_list(s, false, j);
	put_list(s, true, j);
	put_gauges(s, true, j);
	put_gauges(s, false, j);
	emit_object(j, "sections_unmeasured");
	emit_value(j, "outside_tasks", s->outside);
	emit_value(j, "too_deep", s->refused);
	emit_value(j, "values_refused", s->values);
	emit_value(j, "without_dataset", s->beyond);
	emit_end(j);
}

static size_t number_called(const char *name)
{
	size_t i = 0;

	while (section_number_name(i) && strcmp(section_number_name(i), name))
		i++;
	return i;
}

/* The largest class of waits of the opening thread, as a share of the wall time. */
static void wait_cell(struct grid *g, const struct section_sum *s)
{
	double wall = value_number(section_number(s, 0, false), NULL), most = 0, v;
	const char *which = "";

	for (size_t i = 0; i < CREMA_TIMES; i++) {
		if (i == CREMA_T_cpu)
			continue;
		v = value_number(section_number(s, number_called(row_times[i].name), false), NULL);
		which = v > most ? row_times[i].short_name : which;
		most = v > most ? v : most;
	}
	if (!s->path || wall <= 0 || most < 0.01 * wall)
		grid_text(g, "");
	else
		grid_printf(g, "%s %.0f %%", which, 100 * most / wall);
}

static void name_cell(struct grid *g, const struct section_sum *s)
{
	bool pool = s->thread && !strcmp(s->thread, "pool");
	bool found = s->source && !strcmp(s->source, "roastcoffea");

	if (s->path)
		grid_printf(g, "%s%s", s->path, pool ? " (pool)" : found ? " (roastcoffea)" : "");
	else
		grid_text(g, "(beyond the table)");
}

/* In large allocations; negative: it freed what the task had allocated before. */
static struct value kept_bytes(const struct section_sum *s)
{
	return value_minus(section_number(s, number_called("large_allocated_bytes"), false),
			   section_number(s, number_called("large_freed_bytes"), false));
}

static void section_cells(struct grid *g, const struct section_sum *s)
{
	name_cell(g, s);
	grid_value(g, s->count, AS_COUNT);
	grid_value(g, section_number(s, 0, false), AS_SECONDS);
	grid_value(g, section_number(s, 0, true), AS_SECONDS);
	grid_value(g, section_number(s, 1, false), AS_SECONDS);
	wait_cell(g, s);
	grid_value(g, section_number(s, number_called("read_bytes"), false), AS_BYTES);
	grid_value(g, kept_bytes(s), AS_BYTES);
}

static void dataset_cells(struct grid *g, const struct section_sum *s)
{
	name_cell(g, s);
	grid_text(g, s->beyond ? "(beyond the table)" : s->dataset ? s->dataset : "(unknown)");
	grid_value(g, s->count, AS_COUNT);
	grid_value(g, section_number(s, 0, false), AS_SECONDS);
	for (size_t i = 0; section_spread_name(i); i++)
		grid_value(g, section_spread(s, i), AS_SECONDS);
}

static void datasets_table(const struct sections *s, struct sink *out, bool colour)
{
	bool any = false;
	struct grid g;

	for (size_t i = 0; i < s->by_dataset.v.n; i++)
		any = any || s->by_dataset.v.v[i]->dataset;
	if (!any)
		return;
	table_section(out, colour, "Sections by dataset, most time first");
	grid_init(&g, out, colour);
	grid_columns(&g, "<section", "<dataset", ">times", ">wall", ">least", ">median", ">most",
		     NULL);
	for (size_t i = 0; i < s->by_dataset.v.n && i < TOP; i++)
		dataset_cells(&g, s->by_dataset.v.v[i]);
	grid_print(&g);
	table_more(out, s->by_dataset.v.n, TOP);
}

static void gauges_table(const struct sections *s, bool memory, struct sink *out, bool colour)
{
	enum human as = memory ? AS_BYTES : AS_IS;
	struct grid g;
	size_t n = 0;

	grid_init(&g, out, colour);
	if (memory)
		grid_columns(&g, "<name", ">times", ">mean change", ">least", ">most",
			     ">highest end", NULL);
	else
		grid_columns(&g, "<name", ">times", ">sum", ">least", ">most", NULL);
	for (size_t i = 0; i < s->gauges.n; i++) {
		const struct gauge_sum *one = s->gauges.v[i];
		const struct crema_stat *v = &one->stat[memory ? 2 : 0];

		if (gauge_is_memory(one) != memory || n++ >= TOP)
			continue;
		if (n == 1)
			table_section(out, colour,
				      memory ? "Memory around sections (whole process)"
					     : "Values recorded by tasks");
		grid_text(&g, one->path ? one->path : "");
		grid_value(&g, value_uint(v->count), AS_COUNT);
		grid_value(&g,
			   v->count ? value_real(memory ? v->sum / (double)v->count : v->sum)
				    : value_null(),
			   as);
		grid_value(&g, v->count ? value_real(v->min) : value_null(), as);
		grid_value(&g, v->count ? value_real(v->max) : value_null(), as);
		if (memory)
			grid_value(&g,
				   one->stat[1].count ? value_real(one->stat[1].max) : value_null(),
				   as);
	}
	if (!n)
		return;
	grid_print(&g);
	table_more(out, n, TOP);
}

void sections_table(const struct sections *s, struct sink *out, bool colour)
{
	struct grid g;

	if (s->all.v.n) {
		table_section(out, colour, "Sections of all attempts, most time first");
		grid_init(&g, out, colour);
		grid_columns(&g, "<section", ">times", ">wall", ">self", ">CPU", ">most wait",
			     ">read", ">memory kept", NULL);
		for (size_t i = 0; i < s->all.v.n && i < TOP; i++)
			section_cells(&g, s->all.v.v[i]);
		grid_print(&g);
		table_more(out, s->all.v.n, TOP);
	}
	datasets_table(s, out, colour);
	gauges_table(s, true, out, colour);
	gauges_table(s, false, out, colour);
}
