/* SPDX-License-Identifier: BSD-3-Clause */
/* read_columns_out.c - columns as JSON and as a table. */
#include "collector/report/read_columns.h"

#include <stdio.h>

#include "common/dirs.h"

#define TOP 20

void column_lines_json(const struct column_sum *s, struct json *j, const char *name)
{
	emit_array(j, name);
	for (size_t i = 0; i < s->lines; i++)
		emit_value(j, NULL, value_text(s->line[i]));
	emit_end(j);
}

void read_columns_json(const struct read_columns *c, struct json *j)
{
	const struct column_sum *s;

	emit_array(j, "read_columns");
	for (size_t i = 0; i < c->v.n; i++) {
		s = c->v.v[i];
		emit_object(j, NULL);
#define CELL(name, type, value) emit_value(j, #name, value);
#define LIST EMIT_LIST
#include "collector/report/cells_column.def"
#undef CELL
#undef LIST
		emit_end(j);
	}
	emit_end(j);
	emit_value(j, "read_columns_unmeasured", c->unmeasured);
}

static void put_name(struct grid *g, const struct column_sum *s)
{
	if (s->kind == COLUMN_ONE)
		grid_text(g, s->column);
	else
		grid_text(g, s->kind == COLUMN_TOGETHER ? "(several at once)"
			     : s->kind == COLUMN_BEYOND ? "(columns beyond the table)"
							: "(outside columns)");
}

/* Neither CPU nor the run queue: the waits of the reading thread. */
static struct value waited(const struct column_sum *s)
{
	struct value ns = value_plus(s->network_wait_ns, s->storage_wait_ns);

	return value_seconds(value_plus(ns, value_plus(s->lock_wait_ns, s->gil_wait_ns)));
}

/* Without its folder; with the number of further lines. */
static void put_line(struct grid *g, const struct column_sum *s)
{
	char more[48] = "";

	if (s->lines > 1)
		snprintf(more, sizeof(more), " (+%zu%s)", s->lines - 1,
			 s->more_lines ? " at least" : "");
	grid_printf(g, "%s%s", dirs_base(s->lines ? s->line[0] : "", ""), more);
}

static void put_row(struct grid *g, const struct column_sum *s)
{
	put_name(g, s);
	grid_text(g, s->dataset ? s->dataset : "");
	grid_value(g, s->calls, AS_COUNT);
	grid_value(g, s->requests, AS_COUNT);
	grid_value(g, column_bytes(s->number), AS_BYTES);
	grid_value(g, value_seconds(s->cpu_ns), AS_SECONDS);
	grid_value(g, waited(s), AS_SECONDS);
	put_line(g, s);
}

void read_columns_table(const struct read_columns *c, struct sink *out, bool colour)
{
	struct grid g;
	size_t i, n = 0;

	if (!c->v.n)
		return;
	table_section(out, colour, "Columns of all attempts, most bytes first");
	grid_init(&g, out, colour);
	grid_columns(&g, "<column", "<dataset", ">arrays", ">requests", ">bytes", ">CPU", ">waited",
		     "<asked for at", NULL);
	while (n < c->v.n && c->v.v[n]->kind != COLUMN_REST)
		n++;
	for (i = 0; i < n && i < TOP; i++)
		put_row(&g, c->v.v[i]);
	for (i = n; i < c->v.n && i < n + TOP; i++)
		put_row(&g, c->v.v[i]);
	grid_print(&g);
	table_more(out, n, TOP);
}
