/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - see print/list.h. */
#include "collector/print/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/print/print.h"

static int make_room(struct report_list *list, size_t n)
{
	struct report_list_line *v;

	if (list->n == n) /* also when the reading was begun anew, and nothing came or went */
		return 0;
	v = reallocarray(list->v, n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	list->v = v;
	list->n = n;
	return 0;
}

int report_list_take(void *arg, const struct run *r, size_t at, size_t n)
{
	struct report_list *list = arg;
	struct report_list_line *line;
	struct facts f;
	int rc = make_room(list, n);

	if (rc)
		return rc;
	rc = facts_build(&f, r);
	line = &list->v[at];
	memcpy(line->id, r->id, sizeof(line->id));
	line->kind = run_kind_name(r);
	line->start = r->start;
	line->wall_time = metric_wall_time(&f);
	line->num_tasks = metric_num_tasks(&f);
	line->num_attempts = metric_num_attempts(&f);
	line->num_chunks = metric_num_chunks(&f);
	line->total_events = metric_total_events(&f);
	line->running = r->running;
	line->chunk_attempts = f.chunks_all.attempts;
	facts_release(&f);
	return rc;
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
		emit_value(&j, "kind", value_text(l->kind));
		emit_value(&j, "start", value_real(l->start));
		emit_value(&j, "wall_time", l->wall_time);
		emit_value(&j, "num_tasks", l->num_tasks);
		emit_value(&j, "num_attempts", l->num_attempts);
		emit_value(&j, "num_chunks", l->num_chunks);
		emit_value(&j, "total_events", l->total_events);
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
	struct grid g;

	grid_init(&g, s, colour);
	/* the id begins with the start, in UTC, and must stay whole: people copy it */
	grid_columns(&g, "<run (start, UTC)", ">wall", ">tasks", ">chunks", ">events", "<", NULL);
	report_dropped_list(m, &g);
	for (l = list->v; l < list->v + list->n; l++) {
		grid_text(&g, l->id);
		grid_value(&g, l->wall_time, AS_SECONDS);
		grid_value(&g, l->num_tasks, AS_COUNT);
		grid_value(&g, l->num_chunks, AS_COUNT);
		if (l->chunk_attempts)
			grid_value(&g, l->total_events, AS_COUNT);
		else
			grid_text(&g, "-");
		grid_text(&g, l->running ? "running" : strcmp(l->kind, "coffea") ? l->kind : "");
	}
	grid_print(&g);
}
