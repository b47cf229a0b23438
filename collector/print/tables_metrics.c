/* SPDX-License-Identifier: BSD-3-Clause */
/* tables_metrics.c - every metric of contract/metrics.def by its name, group after group. */
#include "collector/print/print.h"

struct listing {
	struct grid grid;
	enum metric_group group;
};

static void put_value(struct grid *g, const char *name, const struct metric *m, const char *text)
{
	grid_text(g, name);
	grid_text(g, m->kind == METRIC_NUM ? text : "");
	grid_text(g, m->kind == METRIC_NUM ? "" : text);
}

static void put_metric(void *arg, const struct metric *m, struct value v, const char *text)
{
	struct listing *l = arg;

	(void)v;
	if (m->group != l->group)
		return;
	put_value(&l->grid, m->id, m, text);
	if (*m->alias)
		put_value(&l->grid, m->alias, m, text);
}

void report_tables_metrics(const struct report *r, struct sink *s, bool colour)
{
	struct listing l;

	report_tables_head(r, s, colour);
	for (l.group = 0; l.group < METRIC_GROUPS; l.group++) {
		table_section(s, colour, metric_group_titles[l.group]);
		grid_init(&l.grid, s, colour);
		grid_columns(&l.grid, "<", ">", "<", NULL);
		metrics_each(r->facts, put_metric, &l);
		grid_print(&l.grid);
	}
}
