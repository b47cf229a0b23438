/* SPDX-License-Identifier: BSD-3-Clause */
/* compare_text.c - a comparison of runs in 80 columns. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/compare/compare.h"
#include "collector/emit/emit_table.h"
#include "collector/emit/emit_text.h"
#include "common/rows.h"

struct column_of { /* of a table with one line per run */
	const char *title, *id;
	enum human as;
	struct value (*value)(const struct compared *c); /* NULL: the metric */
	const char *share_of; /* another metric: shown as a share of it, in percent */
};

static struct value number_of(const struct compared *c, const struct column_of *col)
{
	struct value v = col->value ? col->value(c) : metric_value(&c->facts, col->id);

	return col->share_of ? value_ratio(v, metric_value(&c->facts, col->share_of), 100) : v;
}

static void print_runs(const struct comparison *c, struct sink *s, bool colour, const char *title,
		       const struct column_of *col, size_t n)
{
	struct grid g;
	size_t i, k;

	table_section(s, colour, title);
	grid_init(&g, s, colour);
	g.columns = (unsigned int)n + 1;
	g.right[0] = true;
	g.title[0] = "run";
	for (k = 0; k < n; k++) {
		g.right[k + 1] = true;
		g.title[k + 1] = col[k].title;
	}
	for (i = 0; i < c->n; i++) {
		grid_printf(&g, "%zu", i + 1);
		for (k = 0; k < n; k++)
			grid_value(&g, number_of(&c->run[i], &col[k]), col[k].as);
	}
	grid_print(&g);
}

static const struct column_of scenario[] = {
	{"wall", "wall_time", AS_SECONDS, NULL, NULL},
	{"CPU", "task_cpu_seconds", AS_SECONDS, NULL, NULL},
	{"waiting", NULL, AS_SECONDS, compared_waiting, NULL},
	{"CPU", "task_cpu_seconds", AS_PERCENT, NULL, "task_wall_seconds"},
	{"waiting", NULL, AS_PERCENT, compared_waiting, "task_wall_seconds"},
	{"overhead", NULL, AS_PERCENT, compared_overhead, "task_wall_seconds"},
	{"busiest", "worker_imbalance", AS_TIMES, NULL, NULL},
};
static const struct column_of rates[] = {
	{"events", "event_rate_wall_khz", AS_KHZ, NULL, NULL},
	{"requested", "overall_rate_mbs", AS_MBS, NULL, NULL},
	{"read", "read_rate_mbs", AS_MBS, NULL, NULL},
	{"storage", "storage_read_rate_mbs", AS_MBS, NULL, NULL},
	{"unpacked", "decompressed_rate_mbs", AS_MBS, NULL, NULL},
};
static const struct column_of bytes[] = {
	{"requested", "total_bytes_read_coffea", AS_BYTES, NULL, NULL},
	{"read", "read_bytes", AS_BYTES, NULL, NULL},
	{"network", "network_read_bytes", AS_BYTES, NULL, NULL},
	{"storage", "disk_read_bytes", AS_BYTES, NULL, NULL},
	{"baskets", "basket_bytes", AS_BYTES, NULL, NULL},
	{"unpacked", "bytes_read_uncompressed", AS_BYTES, NULL, NULL},
};

static void workers_text(const struct compared *r, char *out, size_t size)
{
	char least[HUMAN_BYTES], most[HUMAN_BYTES];

	human(compared_least_workers(r), AS_IS, least);
	human(metric_value(&r->facts, "peak_workers"), AS_IS, most);
	if (strcmp(least, most) != 0)
		snprintf(out, size, "%s-%s", least, most);
	else
		snprintf(out, size, "%s", most);
}

static void print_names(const struct comparison *c, struct sink *s, bool colour)
{
	const struct compared *r;
	char workers[2 * HUMAN_BYTES + 2];
	struct grid g;
	size_t i;

	table_section(s, colour, "Runs");
	grid_init(&g, s, colour);
	grid_columns(&g, ">run", "<id (start, UTC)", ">workers", ">cores", ">chunks",
		     ">events/chunk", ">events", NULL);
	for (i = 0; i < c->n; i++) {
		r = &c->run[i];
		workers_text(r, workers, sizeof(workers));
		grid_printf(&g, "%zu", i + 1);
		grid_text(&g, r->run->id);
		grid_text(&g, workers);
		grid_value(&g, metric_value(&r->facts, "total_cores"), AS_IS);
		grid_value(&g, metric_value(&r->facts, "num_chunks"), AS_COUNT);
		grid_value(&g, metric_value(&r->facts, "chunk_events_mean"), AS_COUNT);
		grid_value(&g, metric_value(&r->facts, "total_events"), AS_COUNT);
	}
	grid_print(&g);
	if (c->dir_count < 2)
		return;
	grid_columns(&g, ">", "<", NULL);
	for (i = 0; i < c->n; i++) {
		grid_printf(&g, "%zu", i + 1);
		grid_text(&g, c->run[i].dir);
	}
	grid_print(&g);
}

static const char *class_text(int class)
{
	if (class == COMPARE_NONE)
		return "";
	return class == COMPARE_IDLE ? "threads without a task" : row_times[class].label;
}

static struct value rest_of(const struct compared *c)
{
	return value_rest(metric_value(&c->facts, "unclassified_seconds"),
			  metric_value(&c->facts, "task_wall_seconds"));
}

static void print_waits(const struct comparison *c, struct sink *s, bool colour)
{
	struct column_of waits[CREMA_TIMES];
	size_t i, n = 0;

	for (i = 0; i < CREMA_TIMES; i++) {
		if (i != CREMA_T_cpu)
			waits[n++] =
				(struct column_of){row_times[i].head, class_metric((unsigned int)i),
						   AS_PERCENT, NULL, "task_wall_seconds"};
	}
	waits[n++] = (struct column_of){"the rest", NULL, AS_PERCENT, rest_of, "task_wall_seconds"};
	print_runs(c, s, colour, "Waiting, of the tasks' wall time", waits, n);
}

static void print_scaling(const struct comparison *c, struct sink *s, bool colour)
{
	const struct curve_point *p;
	struct grid g;
	size_t i;

	if (!c->scaling_count)
		return;
	table_section(s, colour, "Scaling: events per second, compared with the fewest cores");
	grid_init(&g, s, colour);
	grid_columns(&g, ">run", ">cores", ">events", ">speed-up", ">ideal", ">efficiency",
		     "<what took more per event", NULL);
	for (i = 0; i < c->scaling_count; i++) {
		p = &c->scaling[i];
		grid_printf(&g, "%zu", compared_number_of(c, p->run));
		grid_value(&g, metric_value(&p->run->facts, "total_cores"), AS_IS);
		grid_value(&g, value_real(p->run->rate / 1000), AS_KHZ);
		grid_value(&g, p->speedup, AS_TIMES);
		grid_value(&g, p->ideal, AS_TIMES);
		grid_value(&g, p->efficiency, AS_SHARE);
		grid_text(&g, class_text(p->grew));
	}
	grid_print(&g);
}

static void print_chunks(const struct comparison *c, struct sink *s, bool colour)
{
	const struct curve_point *p;
	struct grid g;
	size_t i;

	if (!c->chunks_count)
		return;
	table_section(s, colour, "Chunk size: runs with the same number of cores");
	grid_init(&g, s, colour);
	grid_columns(&g, ">run", ">cores", ">events/chunk", ">events", ">CPU/event", ">no baskets",
		     ">longest", "<", NULL);
	for (i = 0; i < c->chunks_count; i++) {
		p = &c->chunks[i];
		grid_printf(&g, "%zu", compared_number_of(c, p->run));
		grid_printf(&g, "%ld", p->run->cores);
		grid_value(&g, metric_value(&p->run->facts, "chunk_events_mean"), AS_COUNT);
		grid_value(&g, value_real(p->run->rate / 1000), AS_KHZ);
		grid_value(&g, metric_value(&p->run->facts, "cpu_time_per_event_seconds"),
			   AS_SECONDS);
		grid_value(&g, metric_value(&p->run->facts, "requested_outside_percent"),
			   AS_PERCENT);
		grid_value(&g, metric_value(&p->run->facts, "chunk_wall_max_seconds"), AS_SECONDS);
		grid_text(&g, p->best ? "best" : "");
	}
	grid_print(&g);
}

/* If the best one spent less than the next: the class that differs most, over all threads. */
static void print_reason(const struct comparison *c, struct sink *s)
{
	double mine, other, most = 0, best_mine = 0, best_other = 0;
	char a[HUMAN_BYTES], b[HUMAN_BYTES];
	int i, class = COMPARE_NONE;

	if (c->best->cores != c->next->cores && c->best->cores && c->next->cores)
		sink_printf(s, "  It had %ld %s, run %zu had %ld.\n", c->best->cores,
			    c->best->cores == 1 ? "core" : "cores", compared_number_of(c, c->next),
			    c->next->cores);
	if (compared_unmeasured(c->best) || compared_unmeasured(c->next))
		return;
	for (i = 0; i <= COMPARE_IDLE; i++) {
		mine = compared_class(c->best, i);
		other = compared_class(c->next, i);
		if (!(other - mine > most))
			continue;
		most = other - mine;
		best_mine = mine;
		best_other = other;
		class = i;
	}
	if (class != COMPARE_NONE)
		text_paragraph(s, "  ", "The largest saving was in \"%s\": %s, in run %zu %s.",
			       class_text(class), human(value_real(best_mine), AS_SECONDS, a),
			       compared_number_of(c, c->next),
			       human(value_real(best_other), AS_SECONDS, b));
}

/* Fixed and changing numbers of workers, if there are both. */
static void print_fixed(const struct comparison *c, struct sink *s)
{
	const struct compared *r, *fixed = NULL, *changing = NULL;
	char a[HUMAN_BYTES], b[HUMAN_BYTES];
	size_t i;

	for (i = 0; i < c->n; i++) {
		r = &c->run[i];
		if (!r->cores)
			continue;
		if (r->fixed && (!fixed || r->rate > fixed->rate))
			fixed = r;
		if (!r->fixed && (!changing || r->rate > changing->rate))
			changing = r;
	}
	if (!fixed || !changing)
		return;
	sink_printf(s,
		    "  Per core and second: %s events with a fixed number of workers (run %zu),\n"
		    "  %s with a changing number (run %zu).\n",
		    human(metric_value(&fixed->facts, "event_rate_core_hz"), AS_COUNT, a),
		    compared_number_of(c, fixed),
		    human(metric_value(&changing->facts, "event_rate_core_hz"), AS_COUNT, b),
		    compared_number_of(c, changing));
}

static void print_best(const struct comparison *c, struct sink *s, bool colour)
{
	char rate[HUMAN_BYTES], events[HUMAN_BYTES], core[HUMAN_BYTES];

	table_section(s, colour, "Best");
	if (*c->refused) {
		sink_printf(s, "  No run is called best:\n  %s.\n", c->refused);
		return;
	}
	sink_printf(s, "  Run %zu: %s, %.2fx the next one's (run %zu); each did %s events.\n",
		    compared_number_of(c, c->best),
		    human(value_real(c->best->rate / 1000), AS_KHZ, rate),
		    c->best->rate / c->next->rate, compared_number_of(c, c->next),
		    human(metric_value(&c->best->facts, "total_events"), AS_COUNT, events));
	print_reason(c, s);
	if (c->best_per_core && c->best_per_core != c->best)
		sink_printf(s, "  Per core, run %zu did most: %s events per second.\n",
			    compared_number_of(c, c->best_per_core),
			    human(metric_value(&c->best_per_core->facts, "event_rate_core_hz"),
				  AS_COUNT, core));
	print_fixed(c, s);
	if (*c->content)
		sink_printf(s, "  Note that %s.\n", c->content);
}

#define PRINT(title, table) print_runs(c, s, colour, title, table, sizeof(table) / sizeof(*(table)))

void compare_text(const struct comparison *c, struct sink *s, bool colour)
{
	print_names(c, s, colour);
	PRINT("Time: of counted tasks in all threads; overhead: other than chunks", scenario);
	print_waits(c, s, colour);
	PRINT("Throughput, by wall time", rates);
	PRINT("Bytes", bytes);
	compare_functions_text(c, s, colour);
	print_scaling(c, s, colour);
	print_chunks(c, s, colour);
	print_best(c, s, colour);
}
