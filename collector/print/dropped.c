/* SPDX-License-Identifier: BSD-3-Clause */
/* dropped.c - a run whose records were dropped: what remains of it, and why. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/print/print.h"

void report_dropped_list(const struct model *m, struct grid *g, bool named)
{
	const struct dropped_run *d;
	size_t i;

	for (i = 0; i < m->dropped.n; i++) {
		d = m->dropped.v[i];
		grid_text(g, d->id);
		grid_value(g, dropped_value(d, "wall_time"), AS_SECONDS);
		grid_value(g, dropped_value(d, "num_tasks"), AS_COUNT);
		grid_value(g, dropped_value(d, "num_chunks"), AS_COUNT);
		if (strcmp(d->kind, "coffea") != 0)
			grid_text(g, "-");
		else
			grid_value(g, dropped_value(d, "total_events"), AS_COUNT);
		grid_text(g, "dropped, totals only");
		if (named)
			grid_text(g, "");
	}
}

static void identity_json(const struct dropped_run *d, struct json *j)
{
	char at[40] = "";

	iso_time(utc_seconds(d->dropped_ns), at, sizeof(at));
	emit_value(j, "run", value_text(d->id));
	emit_value(j, "kind", value_text(d->kind));
	emit_value(j, "start", value_real(utc_seconds(d->start_ns)));
	emit_value(j, "stop", value_real(utc_seconds(d->stop_ns)));
	emit_object(j, "dropped");
	emit_value(j, "at", value_text(at));
	emit_value(j, "option", value_text(d->why));
	emit_end(j);
}

void report_dropped_list_json(const struct model *m, struct json *j)
{
	static const char *const ids[] = {"wall_time", "num_tasks", "num_attempts", "num_chunks",
					  "total_events"};
	size_t i, k;

	emit_array(j, "dropped_runs");
	for (i = 0; i < m->dropped.n; i++) {
		emit_object(j, NULL);
		identity_json(m->dropped.v[i], j);
		for (k = 0; k < sizeof(ids) / sizeof(*ids); k++)
			emit_value(j, ids[k], dropped_value(m->dropped.v[i], ids[k]));
		emit_end(j);
	}
	emit_end(j);
}

static void why_line(const struct dropped_run *d, char *out, size_t size)
{
	char at[40] = "";

	iso_time(utc_seconds(d->dropped_ns), at, sizeof(at));
	snprintf(out, size, "run %s was dropped from the journal at %s (%s of 'crema collect')",
		 d->id, at, d->why);
}

int report_dropped_refuse(const struct dropped_run *d, struct buf *out)
{
	char line[200];

	why_line(d, line, sizeof(line));
	return report_fail(out, -ENODATA,
			   "%s: only its totals are left; 'crema report --run %s' prints them",
			   line, d->id);
}

static void put_values(const struct dropped_run *d, enum metric_group group, struct grid *g)
{
	const struct metric *m;
	size_t i;

	for (i = 0; i < d->values.n; i++) {
		m = d->values.v[i].id ? metric_find(d->values.v[i].id) : NULL;
		if (!m || m->group != group)
			continue;
		grid_text(g, m->id);
		if (m->kind == METRIC_NUM)
			grid_value(g, d->values.v[i].v, metric_unit(m->unit)->as);
		else
			grid_text(g, "");
		grid_text(g, d->values.v[i].v.type == VALUE_TEXT ? d->values.v[i].v.v.s : "");
	}
}

static bool has_group(const struct dropped_run *d, enum metric_group group)
{
	const struct metric *m;
	size_t i;

	for (i = 0; i < d->values.n; i++) {
		m = d->values.v[i].id ? metric_find(d->values.v[i].id) : NULL;
		if (m && m->group == group)
			return true;
	}
	return false;
}

void report_dropped_json(const struct dropped_run *d, struct sink *s)
{
	struct json j;
	size_t i;

	emit_init(&j, s);
	emit_object(&j, NULL);
	identity_json(d, &j);
	emit_object(&j, "metrics");
	for (i = 0; i < d->values.n; i++)
		emit_value(&j, d->values.v[i].id, d->values.v[i].v);
	emit_end(&j);
	emit_end(&j);
}

void report_dropped(const struct dropped_run *d, const struct report_request *req, struct sink *s)
{
	enum metric_group group;
	char line[200];
	struct grid g;

	if (req->json) {
		report_dropped_json(d, s);
		return;
	}
	why_line(d, line, sizeof(line));
	sink_printf(s,
		    "%s.\nIts totals from then are left. Its tasks, workers, files, lists and "
		    "times are deleted.\n",
		    line);
	for (group = 0; group < METRIC_GROUPS; group++) {
		if (!has_group(d, group))
			continue;
		table_section(s, req->colour, metric_group_titles[group]);
		grid_init(&g, s, req->colour);
		grid_columns(&g, "<", ">", "<", NULL);
		put_values(d, group, &g);
		grid_print(&g);
	}
}
