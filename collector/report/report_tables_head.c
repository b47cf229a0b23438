/* SPDX-License-Identifier: BSD-3-Clause */
/* report_tables_head.c - which run this is, and where the time of its tasks went. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/report/report_parts.h"

static void add_word(char *list, size_t size, const char *word)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s", n ? ", " : "", word);
}

/* What a hypervisor takes from a running thread is neither its CPU nor its waiting. */
static void say_stolen(const struct facts *f, struct sink *s)
{
	double rest = value_number(metric_unclassified_seconds(f), NULL);
	double stolen = value_number(metric_stolen_cpu_seconds(f), NULL);
	char seconds[32];

	if (stolen < 0.01 || stolen < 0.1 * rest)
		return;
	human(value_real(stolen), AS_SECONDS, seconds);
	text_paragraph(s, "  ", "%s of CPU of these hosts went to other virtual machines: the "
		       "tasks' part of it is not classified", seconds);
}

/* Where the wall time of counted tasks went. */
void report_tables_timing(const struct facts *f, struct sink *s, bool colour)
{
	static const struct {
		const char *label, *id;
	} rows[] = {
		{"CPU, own thread", "task_cpu_seconds"},
		{"waiting for a core", "runqueue_wait_seconds"},
		{"waiting for the interpreter lock", "gil_wait_seconds"},
		{"waiting for other locks", "lock_wait_seconds"},
		{"waiting for the network", "network_wait_seconds"},
		{"waiting for storage", "storage_wait_seconds"},
		{"asleep", "sleep_seconds"},
		{"not classified", "unclassified_seconds"},
		{"wall time of tasks", "task_wall_seconds"},
		{"CPU of pool threads, beside it", "task_pool_cpu_seconds"},
	};
	static const char bar[] = "####################";
	struct value v, wall = metric_task_wall_seconds(f);
	char unknown[128] = "";
	struct grid g;
	double share;
	bool known;
	int n;
	size_t i;

	table_section(s, colour, "Timing: where the time of counted tasks went");
	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">", ">of wall", "<", NULL);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		v = metric_value(f, rows[i].id);
		share = value_number(value_ratio(v, wall, 100), &known);
		grid_text(&g, rows[i].label);
		grid_value(&g, v, AS_SECONDS);
		if (known)
			grid_printf(&g, "%.1f %%", share);
		else
			grid_text(&g, "");
		grid_style(&g, i ? STYLE_WAIT : STYLE_GOOD);
		n = known ? (int)lround(fmin(fmax(share, 0), 100) / 5) : 0;
		grid_printf(&g, "%.*s", i + 2 < sizeof(rows) / sizeof(*rows) ? n : 0, bar);
	}
	grid_print(&g);
	for (i = 0; i < CREMA_TIMES; i++) {
		if (f->tasks.class_unknown[i])
			add_word(unknown, sizeof(unknown), class_name((unsigned int)i));
	}
	if (*unknown)
		text_paragraph(s, "  ", "not classified includes unknown: %s", unknown);
	say_stolen(f, s);
}

/* Versions as the first worker tells them. */
static void put_stack(const struct run *r, struct sink *s)
{
	const struct worker *w = r->workers.n ? r->workers.v[0] : NULL;
	const struct {
		const char *name, *version;
	} stack[] = {
		{"Python", w ? w->python : NULL},
		{"Dask", w ? w->distributed : NULL},
		{"coffea", w ? w->coffea : NULL},
		{"uproot", w ? w->uproot : NULL},
	};
	char line[256] = "", word[64];
	size_t i;

	for (i = 0; i < sizeof(stack) / sizeof(*stack); i++) {
		if (!stack[i].version)
			continue;
		snprintf(word, sizeof(word), "%s %.40s", stack[i].name, stack[i].version);
		add_word(line, sizeof(line), word);
	}
	if (*line)
		text_paragraph(s, "  ", "%s", line);
}

void report_tables_head(const struct report *r, struct sink *s, bool colour)
{
	const struct facts *f = r->facts;
	char when[40], a[HUMAN_BYTES], wasted[40] = "";

	sink_printf(s, "%srun %s%s", colour ? "\033[1m" : "", r->run->id, colour ? "\033[0m" : "");
	if (iso_time(r->run->start, when, sizeof(when)))
		sink_printf(s, "   began %.10s %.8s UTC", when, when + 11);
	if (r->run->running)
		sink_puts(s, "   still running");
	sink_puts(s, "\n");
	text_paragraph(s, "  ", "wall time %s (first to last task on the workers)",
		       human(metric_wall_time(f), AS_SECONDS, a));
	if (f->wasted.attempts)
		snprintf(wasted, sizeof(wasted), ", %zu wasted", f->wasted.attempts);
	text_paragraph(s, "  ", "%zu of %zu attempts at tasks counted%s, %zu worker%s",
		       f->tasks.attempts, f->all.attempts, wasted, r->run->workers.n,
		       r->run->workers.n == 1 ? "" : "s");
	put_stack(r->run, s);
}
