/* SPDX-License-Identifier: BSD-3-Clause */
/* lines_out.c - lines and stacks as JSON, and the lines as a table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/report/lines.h"
#include "common/rows.h"

#define TOP 12

const char *line_class_name(unsigned int class)
{
	return class < CREMA_TIMES ? row_times[class].name : "other_seconds";
}

static void put_sum(const struct line_sum *s, struct json *j)
{
	emit_value(j, "samples", value_uint(s->samples));
	emit_value(j, "seconds", value_real(s->seconds));
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		emit_value(j, line_class_name(i), value_real(s->class_s[i]));
}

static void put_place(const struct line_place *p, struct json *j)
{
	emit_value(j, "file", value_text(p ? p->file : NULL));
	emit_value(j, "line", p && p->line ? value_uint(p->line) : value_null());
	emit_value(j, "function", value_text(p ? p->function : NULL));
}

void lines_frames_json(const struct line_list *list, struct json *j, const char *name)
{
	char text[512];

	emit_array(j, name);
	for (uint32_t i = list->depth; i > 0; i--) {
		const struct line_place *p = list->place[i - 1];

		snprintf(text, sizeof(text), "%.300s:%" PRIu64 " %.150s", p->file ? p->file : "?",
			 p->line, p->function ? p->function : "?");
		emit_value(j, NULL, value_text(text));
	}
	emit_end(j);
}

static void put_facts(const struct lines *l, struct value wall, struct json *j)
{
	bool known;
	double s = value_number(wall, &known);

	emit_object(j, "workers");
	for (size_t i = 0; i < l->states; i++)
		emit_value(j, l->state[i].state, value_uint(l->state[i].workers));
	emit_value(j, "unknown", value_uint(l->unknown));
	emit_end(j);
	emit_value(j, "interval_seconds",
		   l->all.samples ? value_real(l->all.seconds / (double)l->all.samples)
				  : value_null());
	emit_value(j, "task_wall_seconds", wall);
	emit_value(j, "remainder_seconds",
		   known && l->all.samples ? value_real(s - l->all.seconds) : value_null());
	emit_value(j, "torn_samples", value_uint(l->torn));
	emit_value(j, "without_python_samples", value_uint(l->none));
	emit_value(j, "beyond_the_table_samples", value_uint(l->full));
	emit_value(j, "inner_frames_missing_samples", value_uint(l->cut));
	emit_value(j, "rows_left_out", value_bool(l->beyond));
	emit_value(j, "core_waits_known",
		   l->all.samples + l->pool.samples ? value_bool(!l->clockless) : value_null());
	emit_value(j, "agents_cpu_seconds", value_real((double)l->agent_cpu_ns / 1e9));
}

static void put_line(const struct lines *l, const struct line_row *r, struct json *j)
{
	double share = lines_share(l, &r->sum);

	emit_object(j, NULL);
	put_place(r->place, j);
	put_sum(&r->sum, j);
	emit_value(j, "share", value_real(share));
	emit_value(j, "share_error", value_real(lines_error(share, l->all.samples)));
	if (r->most)
		lines_frames_json(r->most, j, "stack");
	emit_end(j);
}

void lines_json(const struct lines *l, const struct run *run, struct value wall, struct json *j)
{
	emit_object(j, "stacks");
	put_facts(l, wall, j);
	emit_object(j, "own");
	put_sum(&l->all, j);
	emit_end(j);
	emit_object(j, "pool");
	put_sum(&l->pool, j);
	emit_end(j);
	emit_array(j, "lines");
	for (size_t i = 0; i < l->rows.n && i < LINES_ROWS; i++)
		put_line(l, l->rows.v[i], j);
	emit_end(j);
	emit_value(j, "lines_left_out",
		   value_uint(l->rows.n > LINES_ROWS ? l->rows.n - LINES_ROWS : 0));
	emit_array(j, "stacks");
	for (size_t i = 0; i < l->stacks.n && i < LINES_STACKS; i++) {
		const struct line_stack_row *r = l->stacks.v[i];

		emit_object(j, NULL);
		emit_value(j, "prefix", value_text(run_prefix_shown(run, r->prefix)));
		emit_value(j, "thread", value_text(r->pool ? "pool" : "own"));
		emit_value(j, "without", value_text(r->why));
		put_sum(&r->sum, j);
		lines_frames_json(r->list, j, "frames");
		emit_end(j);
	}
	emit_end(j);
	emit_value(j, "stacks_left_out",
		   value_uint(l->stacks.n > LINES_STACKS ? l->stacks.n - LINES_STACKS : 0));
	emit_end(j);
}

/* The wait with the most of a line's time. */
static void wait_cell(struct grid *g, const struct line_sum *s)
{
	unsigned int most = LINE_TOLD_OTHER;

	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		if (i != CREMA_T_cpu && s->class_s[i] > s->class_s[most])
			most = i;
	if (s->seconds <= 0 || s->class_s[most] < 0.01 * s->seconds)
		grid_text(g, "");
	else
		grid_printf(g, "%s %.0f %%", most < CREMA_TIMES ? row_times[most].head : "other",
			    100 * s->class_s[most] / s->seconds);
}

static void put_remarks(const struct lines *l, struct value wall, struct sink *s)
{
	bool known;
	double exact = value_number(wall, &known);

	if (known && exact > 0)
		text_paragraph(s, "  ",
			       "%" PRIu64 " samples, one each %.0f ms of a thread: an estimate "
			       "that covers %.3g s of the tasks' %.3g s",
			       l->all.samples, 1e3 * l->all.seconds / (double)l->all.samples,
			       l->all.seconds, exact);
	if (l->torn + l->full)
		text_paragraph(s, "  ",
			       "%" PRIu64 " samples have no line: their stacks changed while they "
			       "were read, or there were too many",
			       l->torn + l->full);
}

void lines_table(const struct lines *l, struct value wall, struct sink *s, bool colour)
{
	char name[192];
	struct grid g;
	double share;

	if (!l->all.samples)
		return;
	table_section(s, colour, "Lines of your code, most time first (sampled)");
	grid_init(&g, s, colour);
	grid_columns(&g, "<line", ">samples", ">time", ">share", ">+-", ">CPU", ">most wait", NULL);
	for (size_t i = 0; i < l->rows.n && i < TOP; i++) {
		const struct line_row *r = l->rows.v[i];

		share = lines_share(l, &r->sum);
		grid_text(&g, r->place ? lines_name(r->place, name) : "(none of your lines)");
		grid_value(&g, value_uint(r->sum.samples), AS_COUNT);
		grid_value(&g, value_real(r->sum.seconds), AS_SECONDS);
		grid_value(&g, value_real(share), AS_SHARE);
		grid_value(&g, value_real(lines_error(share, l->all.samples)), AS_SHARE);
		grid_value(&g, value_real(r->sum.class_s[CREMA_T_cpu]), AS_SECONDS);
		wait_cell(&g, &r->sum);
	}
	grid_print(&g);
	table_more(s, l->rows.n, TOP);
	put_remarks(l, wall, s);
}
