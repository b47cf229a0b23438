/* SPDX-License-Identifier: BSD-3-Clause */
/* taskvine_report.c - TaskVine's tasks in JSON and in the terminal report. */
#include <math.h>
#include <string.h>

#include "collector/emit/emit_table.h"
#include "collector/emit/emit_text.h"
#include "collector/runs/taskvine_log.h"

void taskvine_log_json(const struct taskvine_log *log, struct json *j)
{
	const struct taskvine_execution *x;
	size_t i;

	emit_object(j, "taskvine");
	emit_value(j, "problem", value_text(*log->line ? log->line : NULL));
	emit_value(j, "lines_bad", value_uint(log->lines_bad));
	emit_array(j, "tasks");
	for (i = 0; i < log->executions.n; i++) {
		x = &log->executions.v[i];
		emit_object(j, NULL);
		emit_value(j, "task", value_uint(x->task));
		emit_value(j, "category", value_text(*x->category ? x->category : NULL));
		emit_value(j, "result", value_text(*x->result ? x->result : NULL));
		emit_value(j, "worker_id", value_text(x->worker ? x->worker->hex : NULL));
		emit_value(j, "ready", value_real(x->ready));
		emit_value(j, "running", value_real(x->running));
		emit_value(j, "worker_start", value_real(x->worker_start));
		emit_value(j, "worker_end", value_real(x->worker_end));
		emit_value(j, "retrieved", value_real(x->retrieved));
		emit_value(j, "waited_seconds", value_real(x->running - x->ready));
		emit_value(j, "wall_seconds", x->wall_seconds);
		emit_value(j, "input_seconds", x->input_seconds);
		emit_value(j, "input_bytes", x->input_bytes);
		emit_value(j, "output_seconds", x->output_seconds);
		emit_value(j, "output_bytes", x->output_bytes);
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

struct category {
	const char *name;
	uint64_t executions, measured;
	struct value waited, wall, input_bytes, output_bytes, work;
};

static void add(struct value *sum, struct value v)
{
	*sum = value_plus(*sum, v);
}

static void put_category(struct grid *g, const struct taskvine_log *log, const char *name)
{
	struct value zero = value_uint(0);
	struct category c = {name, 0, 0, zero, zero, zero, zero, zero};
	const struct taskvine_execution *x;
	size_t i;

	for (i = 0; i < log->executions.n; i++) {
		x = &log->executions.v[i];
		if (strcmp(x->category, name) != 0)
			continue;
		c.executions++;
		add(&c.waited, value_real(x->running - x->ready));
		add(&c.wall, x->wall_seconds);
		add(&c.input_bytes, x->input_bytes);
		add(&c.output_bytes, x->output_bytes);
		if (!x->worker)
			continue;
		c.measured++;
		add(&c.work, worker_work(x->worker));
	}
	grid_text(g, *name ? name : "unknown");
	grid_value(g, value_uint(c.executions), AS_COUNT);
	grid_value(g, value_uint(c.measured), AS_COUNT);
	grid_value(g, c.waited, AS_SECONDS);
	grid_value(g, c.wall, AS_SECONDS);
	grid_value(g, c.measured ? c.work : value_null(), AS_SECONDS);
	grid_value(g, c.input_bytes, AS_BYTES);
	grid_value(g, c.output_bytes, AS_BYTES);
}

void taskvine_log_table(const struct taskvine_log *log, struct sink *s, bool colour)
{
	struct grid g;
	size_t i, k;

	table_section(s, colour, "TaskVine's tasks, from its log");
	if (*log->line)
		text_paragraph(s, "  ", "%s", log->line);
	if (!log->executions.n)
		return;
	grid_init(&g, s, colour);
	grid_columns(&g, "<category", ">tasks", ">measured", ">waited", ">wall", ">work in it",
		     ">sent", ">returned", NULL);
	for (i = 0; i < log->executions.n; i++) {
		for (k = 0;
		     k < i && strcmp(log->executions.v[k].category, log->executions.v[i].category);
		     k++)
			;
		if (k == i)
			put_category(&g, log, log->executions.v[i].category);
	}
	grid_print(&g);
}
