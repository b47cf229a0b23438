/* SPDX-License-Identifier: BSD-3-Clause */
/* lines_out.c - lines and stacks as JSON, and the lines as a table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/metrics/metrics.h"
#include "collector/report/lines.h"
#include "collector/report/read_lines.h"
#include "common/rows.h"

#define TOP 12

/* Waits that can be long, as columns. */
static const char *const long_names[CREMA_TIMES] = {
#define TIME(id, name, ...) [CREMA_T_##id] = "long_" #name,
#include "counters.def"
};

const char *line_class_name(unsigned int class)
{
	return class < CREMA_TIMES ? row_times[class].name : "other_seconds";
}

void line_sum_cells(const struct line_sum *s, cell_put put, void *arg)
{
	put(arg, "samples", VALUE_UINT, value_uint(s->samples));
	put(arg, "seconds", VALUE_REAL, value_real(s->seconds));
	for (unsigned int i = 0; i < LINE_CLASSES_TOLD; i++)
		put(arg, line_class_name(i), VALUE_REAL, value_real(s->class_s[i]));
	put(arg, "held_gil_seconds", VALUE_REAL, value_real(s->held_s));
#define LINES_BYTES(name, cell, ...)                                                               \
	put(arg, #cell, VALUE_UINT, value_uint(s->bytes[CREMA_LINES_B_##name]));                   \
	put(arg, #cell "_error", VALUE_REAL, value_real(line_bytes_error(s, CREMA_LINES_B_##name)));
#include "rows.def"
	put(arg, "long_waits", VALUE_UINT, value_uint(line_sum_waits(s).waits));
	for (unsigned int i = CREMA_T_gil_wait; i < CREMA_TIMES; i++)
		put(arg, long_names[i], VALUE_REAL, value_seconds(value_uint(s->waited_ns[i])));
#define LINES_LARGE(name, kind, cell, ...)                                                         \
	put(arg, #cell, VALUE_UINT, line_large(s, CREMA_LINES_L_##name));
#include "rows.def"
}

void lines_cells(const struct lines *l, const struct line_row *r, cell_put put, void *arg)
{
	const struct line_place *p = r->place;
	double share = lines_share(l, &r->sum);

	put(arg, "file", VALUE_TEXT, value_text(p ? p->file : NULL));
	put(arg, "line", VALUE_UINT, p && p->line ? value_uint(p->line) : value_null());
	put(arg, "function", VALUE_TEXT, value_text(p ? p->function : NULL));
	line_sum_cells(&r->sum, put, arg);
	put(arg, "share", VALUE_REAL, value_real(share));
	put(arg, "share_error", VALUE_REAL, value_real(lines_error(share, l->all.samples)));
}

void lines_stack_cells(const struct run *run, const struct line_stack_row *r, cell_put put,
		       void *arg)
{
	put(arg, "prefix", VALUE_TEXT, value_text(run_prefix_shown(run, r->prefix)));
	put(arg, "dataset", VALUE_TEXT, value_text(r->dataset));
	put(arg, "thread", VALUE_TEXT, value_text(line_thread_name(r)));
	put(arg, "without", VALUE_TEXT, value_text(r->why));
	line_sum_cells(&r->sum, put, arg);
}

void lines_frames_json(const struct line_list *list, struct json *j, const char *name)
{
	char text[LINES_TEXT];

	emit_array(j, name);
	for (uint32_t i = list->depth; i > 0; i--)
		emit_value(j, NULL, value_text(lines_text(list->place[i - 1], text)));
	emit_end(j);
}

/* What of the exact number no sample stands for. */
static struct value not_sampled(const struct lines *l, const struct tally *exact,
				enum crema_lines_byte kind, enum crema_count_id count)
{
	uint64_t sampled = l->all.bytes[kind] + l->pool.bytes[kind];
	bool known;
	double n = value_number(sum_value(&exact->count[count]), &known);

	return known && sampled ? value_real(n - (double)sampled) : value_null();
}

static void put_waits(const struct lines *l, const struct run *run, struct json *j)
{
	struct line_waits missing;
	bool known = lines_waits_missing(l, run, &missing);

	emit_value(j, "long_waits_without_stack", value_uint(l->stackless.waits));
	emit_value(j, "long_waits_without_stack_seconds",
		   value_seconds(value_uint(l->stackless.ns)));
	emit_value(j, "not_long_waits", known ? value_uint(missing.waits) : value_null());
	emit_value(j, "not_long_waits_seconds",
		   known ? value_seconds(value_uint(missing.ns)) : value_null());
}

static void put_facts(const struct lines *l, const struct tally *exact, struct json *j)
{
	struct value wall = tally_wall(exact);
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
#define LINES_BYTES(name, cell, shown, head, id, ...)                                              \
	emit_value(j, "not_" #cell, not_sampled(l, exact, CREMA_LINES_B_##name, CREMA_C_##id));
#include "rows.def"
	emit_value(j, "large_allocation_workers", value_uint(l->large_workers));
	emit_value(j, "large_allocation_least_bytes",
		   l->large_workers ? value_uint(l->large_bytes) : value_null());
	emit_value(j, "torn_samples", value_uint(l->torn));
	emit_value(j, "without_python_samples", value_uint(l->none));
	emit_value(j, "beyond_the_table_samples", value_uint(l->full));
	emit_value(j, "inner_frames_missing_samples", value_uint(l->cut));
	emit_value(j, "held_gil_seconds", value_real(l->held_s));
	emit_value(j, "gil_holder_unknown_seconds", value_real(lines_unheld(l)));
	emit_value(j, "rows_left_out", value_bool(l->beyond));
	emit_value(j, "core_waits_known",
		   l->all.samples + l->pool.samples ? value_bool(!l->clockless) : value_null());
	emit_value(j, "agents_cpu_seconds", value_real((double)l->agent_cpu_ns / 1e9));
}

void lines_json(const struct lines *l, const struct run *run, const struct tally *exact,
		struct json *j)
{
	emit_object(j, "stacks");
	put_facts(l, exact, j);
	put_waits(l, run, j);
	emit_object(j, "own");
	line_sum_cells(&l->all, emit_cell, j);
	emit_end(j);
	emit_object(j, "pool");
	line_sum_cells(&l->pool, emit_cell, j);
	emit_end(j);
	emit_array(j, "lines");
	for (size_t i = 0; i < l->rows.n && i < LINES_ROWS; i++) {
		emit_object(j, NULL);
		lines_cells(l, l->rows.v[i], emit_cell, j);
		lines_frames_json(l->rows.v[i]->most, j, "stack");
		emit_end(j);
	}
	emit_end(j);
	emit_value(j, "lines_left_out",
		   value_uint(l->rows.n > LINES_ROWS ? l->rows.n - LINES_ROWS : 0));
	emit_array(j, "stacks");
	for (size_t i = 0; i < l->stacks.n && i < LINES_STACKS; i++) {
		emit_object(j, NULL);
		lines_stack_cells(run, l->stacks.v[i], emit_cell, j);
		lines_frames_json(l->stacks.v[i]->list, j, "frames");
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

static bool has_bytes(const struct lines *l, unsigned int kind)
{
	return l->all.bytes[kind] + l->pool.bytes[kind] != 0;
}

static void put_notes(const struct lines *l, struct value wall, struct sink *s)
{
	bool known;
	double exact = value_number(wall, &known);

	if (known && exact > 0)
		text_paragraph(s, "  ",
			       "%" PRIu64 " samples, one each %.0f ms of a thread: an estimate "
			       "that covers %.3g s of the tasks' %.3g s",
			       l->all.samples, 1e3 * l->all.seconds / (double)l->all.samples,
			       l->all.seconds, exact);
	if (l->held_samples)
		text_paragraph(s, "  ",
			       "held GIL: how long other threads waited for the interpreter lock "
			       "while this line held it; of %.3g s of these waits it changed hands "
			       "during the sample",
			       lines_unheld(l));
	if (has_bytes(l, CREMA_LINES_B_read) || has_bytes(l, CREMA_LINES_B_received))
		text_paragraph(
			s, "  ",
			"files, net: read and received by calls from this line, also by other "
			"threads for it; estimates, with errors in JSON");
	if (l->torn + l->full)
		text_paragraph(s, "  ",
			       "%" PRIu64 " samples have no line: their stacks changed while they "
			       "were read, or there were too many",
			       l->torn + l->full);
}

/* What it read; empty: it requested no column. */
static void read_cell(struct grid *g, const struct read_lines *reads, const struct line_row *r)
{
	const struct read_line *read =
		r->place ? read_lines_at(reads, r->place->file, r->place->line) : NULL;

	if (read && read_line_asked(read))
		grid_value(g, column_bytes(read->number), AS_BYTES);
	else
		grid_text(g, "");
}

static bool any_column(const struct read_lines *reads)
{
	for (size_t i = 0; i < reads->v.n; i++)
		if (read_line_asked(reads->v.v[i]))
			return true;
	return false;
}

#define LAST_TITLES (CREMA_LINES_BYTES + 2)

/* Titles of the columns that not every run has, NULL after them. */
static void last_titles(const struct lines *l, bool asked, const char *titles[LAST_TITLES])
{
	static const char *const heads[] = {
#define LINES_BYTES(name, cell, shown, head, ...) ">" head,
#include "rows.def"
	};
	unsigned int n = 0;

	if (asked)
		titles[n++] = ">read";
	for (unsigned int k = 0; k < CREMA_LINES_BYTES; k++)
		if (has_bytes(l, k))
			titles[n++] = heads[k];
	if (l->held_samples)
		titles[n++] = ">held GIL";
	while (n < LAST_TITLES)
		titles[n++] = NULL;
}

void lines_table(const struct lines *l, const struct read_lines *reads, const struct tally *exact,
		 struct sink *s, bool colour)
{
	const char *titles[LAST_TITLES];
	bool asked = any_column(reads);
	struct grid g;
	double share;

	if (!l->all.samples)
		return;
	table_section(s, colour, "Lines of your code, most time first (sampled)");
	grid_init(&g, s, colour);
	last_titles(l, asked, titles);
	grid_columns(&g, "<line", ">time", ">share", ">+-", ">CPU", ">most wait", titles[0],
		     titles[1], titles[2], titles[3], NULL);
	for (size_t i = 0; i < l->rows.n && i < TOP; i++) {
		const struct line_row *r = l->rows.v[i];

		share = lines_share(l, &r->sum);
		line_place_cell(&g, r->place);
		grid_value(&g, value_real(r->sum.seconds), AS_SECONDS);
		grid_value(&g, value_real(share), AS_SHARE);
		grid_value(&g, value_real(lines_error(share, l->all.samples)), AS_SHARE);
		grid_value(&g, value_real(r->sum.class_s[CREMA_T_cpu]), AS_SECONDS);
		wait_cell(&g, &r->sum);
		if (asked)
			read_cell(&g, reads, r);
		for (unsigned int k = 0; k < CREMA_LINES_BYTES; k++)
			if (has_bytes(l, k))
				grid_value(&g, value_uint(r->sum.bytes[k]), AS_BYTES);
		if (l->held_samples)
			grid_value(&g, value_real(r->sum.held_s), AS_SECONDS);
	}
	grid_print(&g);
	table_more(s, l->rows.n, TOP);
	put_notes(l, tally_wall(exact), s);
}
