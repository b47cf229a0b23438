/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - see print/list.h. */
#include "collector/print/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/print/print.h"

static int make_room(struct report_list *list, size_t n)
{
	struct report_list_line *v;

	if (list->n == n) /* also if the reading started over and found the same runs */
		return 0;
	v = reallocarray(list->v, n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	list->v = v;
	list->n = n;
	return 0;
}

static struct value total(const struct run *r, const char *id)
{
	return dropped_value(r->totals, id);
}

/* From its attempts, once; nothing of it is running any more. */
static void take_totals(struct report_list_line *line, const struct run *r)
{
	line->wall_time = total(r, "wall_time");
	line->num_tasks = total(r, "num_tasks");
	line->num_attempts = total(r, "num_attempts");
	line->num_chunks = total(r, "num_chunks");
	line->total_events = total(r, "total_events");
	line->running = 0;
	line->chunk_attempts = r->totals->chunk_attempts;
	line->state = r->totals->state;
}

static int take_attempts(struct report_list_line *line, const struct run *r)
{
	struct facts f;
	int rc = facts_build(&f, r);

	line->wall_time = metric_wall_time(&f);
	line->num_tasks = metric_num_tasks(&f);
	line->num_attempts = metric_num_attempts(&f);
	line->num_chunks = metric_num_chunks(&f);
	line->total_events = metric_total_events(&f);
	line->running = r->running;
	line->state = run_state_name(f.state.id);
	line->chunk_attempts = f.chunks_all.attempts;
	facts_release(&f);
	return rc;
}

int report_list_take(void *arg, const struct run *r, size_t at, size_t n)
{
	struct report_list *list = arg;
	struct report_list_line *line;
	int rc = make_room(list, n);

	if (rc)
		return rc;
	line = &list->v[at];
	memcpy(line->id, r->id, sizeof(line->id));
	snprintf(line->name, sizeof(line->name), "%s", r->name ? r->name : "");
	line->kind = run_kind_name(r);
	line->start = r->start;
	if (!r->totals)
		return take_attempts(line, r);
	take_totals(line, r);
	return 0;
}

void report_list_json(const struct report_list *list, const struct model *m, struct sink *s)
{
	const struct report_list_line *l;
	struct json j;

	emit_init(&j, s);
	emit_object(&j, NULL);
	emit_array(&j, "runs");
	for (l = list->v; l < list->v + list->n; l++) {
		emit_object(&j, NULL);
		emit_value(&j, "run", value_text(l->id));
		emit_value(&j, "name", value_text(*l->name ? l->name : NULL));
		emit_value(&j, "kind", value_text(l->kind));
		emit_value(&j, "start", value_real(l->start));
		emit_value(&j, "wall_time", l->wall_time);
		emit_value(&j, "num_tasks", l->num_tasks);
		emit_value(&j, "num_attempts", l->num_attempts);
		emit_value(&j, "num_chunks", l->num_chunks);
		emit_value(&j, "total_events", l->total_events);
		emit_value(&j, "state", value_text(l->state));
		emit_value(&j, "running_attempts", value_uint(l->running));
		emit_end(&j);
	}
	emit_end(&j);
	report_dropped_list_json(m, &j);
	emit_end(&j);
}

void report_list_text(const struct report_list *list, const struct model *m, struct sink *s,
		      bool colour)
{
	const struct report_list_line *l;
	bool named = false;
	struct grid g;

	for (l = list->v; l < list->v + list->n; l++)
		named = named || *l->name;
	grid_init(&g, s, colour);
	/* the id begins with the start in UTC, and must not be cut: people copy it */
	grid_columns(&g, "<run (start, UTC)", ">wall", ">tasks", ">chunks", ">events", "<state",
		     named ? "<name" : NULL, NULL);
	report_dropped_list(m, &g, named);
	for (l = list->v; l < list->v + list->n; l++) {
		grid_text(&g, l->id);
		grid_value(&g, l->wall_time, AS_SECONDS);
		grid_value(&g, l->num_tasks, AS_COUNT);
		grid_value(&g, l->num_chunks, AS_COUNT);
		if (l->chunk_attempts)
			grid_value(&g, l->total_events, AS_COUNT);
		else
			grid_text(&g, "-");
		/* short enough for a line of 80 columns */
		if (!strcmp(l->kind, "preprocessing"))
			grid_printf(&g, "preprocess %s", l->state);
		else if (strcmp(l->kind, "coffea") != 0)
			grid_printf(&g, "%s %s", l->kind, l->state);
		else
			grid_text(&g, l->state);
		if (named)
			grid_text(&g, l->name);
	}
	grid_print(&g);
}
