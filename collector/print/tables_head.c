/* SPDX-License-Identifier: BSD-3-Clause */
/* tables_head.c - the run's identity, and where the time of its tasks went. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/print/print.h"
#include "common/rows.h"

static void add_word(char *list, size_t size, const char *word)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s", n ? ", " : "", word);
}

/* Time that a hypervisor takes from a running thread is neither its CPU time nor a wait. */
static void say_stolen(const struct facts *f, struct sink *s)
{
	double rest = value_number(tally_unclassified_part(&f->tasks), NULL);
	double stolen = value_number(metric_stolen_cpu_seconds(f), NULL);
	char seconds[32];

	if (stolen < 0.01 || stolen < 0.1 * rest)
		return;
	human(value_real(stolen), AS_SECONDS, seconds);
	text_paragraph(s, "  ",
		       "other virtual machines took %s of CPU from these hosts: the tasks' share "
		       "of it is not classified",
		       seconds);
}

static struct value shown_pool(const struct tally *t)
{
	return value_seconds(sum_value(&t->pool[CREMA_T_cpu]));
}

static void timing_row(struct grid *g, const char *label, struct value v, struct value wall,
		       const char *style, bool is_part)
{
	static const char bar[] = "####################";
	double share;
	bool known;

	share = value_number(value_ratio(v, wall, 100), &known);
	grid_text(g, label);
	grid_value(g, v, AS_SECONDS);
	if (known)
		grid_printf(g, "%.1f %%", share);
	else
		grid_text(g, "");
	grid_style(g, style);
	grid_printf(g, "%.*s", known && is_part ? (int)lround(fmin(fmax(share, 0), 100) / 5) : 0,
		    bar);
}

static struct value shown_rest(const struct tally *t)
{
	return value_rest(tally_unclassified_part(t), tally_wall(t));
}

static void say_unmeasured(const struct tally *t, struct sink *s)
{
	if (t->unmeasured)
		text_paragraph(s, "  ",
			       "not measured: %zu attempt%s in other processes or asynchronous, of "
			       "which only the wall time is known; the classes lack them",
			       t->unmeasured, t->unmeasured == 1 ? "" : "s");
}

/* Where the wall time of tasks went: counted ones, or all attempts (facts_shown()). */
void report_table_timing(const struct report *r, struct sink *s, bool colour)
{
	const struct facts *f = r->facts;
	static const struct {
		const char *label;
		struct value (*value)(const struct tally *);
	} more[] = {
		{"not classified", shown_rest},
		{"not measured", tally_unmeasured},
		{"wall time of tasks", tally_wall},
		{"CPU of pool threads (not included)", shown_pool},
	};
	const struct tally *t = facts_shown(f);
	struct value wall = tally_wall(t);
	char unknown[128] = "";
	struct grid g;
	size_t i;

	table_section(s, colour,
		      facts_shows_all(f) ? "Timing: where the time of all attempts went"
					 : "Timing: where the time of counted tasks went");
	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">", ">of wall", "<", NULL);
	for (i = 0; i < CREMA_TIMES; i++)
		timing_row(&g, i == CREMA_T_cpu ? "CPU, own thread" : row_times[i].label,
			   tally_class_part(t, (enum crema_time_id)i), wall,
			   i == CREMA_T_cpu ? STYLE_GOOD : STYLE_WAIT, true);
	for (i = 0; i < sizeof(more) / sizeof(*more); i++) {
		if (more[i].value != tally_unmeasured || t->unmeasured)
			timing_row(&g, more[i].label, more[i].value(t), wall, STYLE_WAIT, i < 2);
	}
	grid_print(&g);
	say_unmeasured(t, s);
	for (i = 0; i < CREMA_TIMES; i++) {
		if (t->class_unknown[i])
			add_word(unknown, sizeof(unknown), class_name((unsigned int)i));
	}
	if (*unknown)
		text_paragraph(s, "  ", "not classified includes unknown: %s", unknown);
	say_stolen(f, s);
}

/* Versions as the first worker reports them. */
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

static void put_wall(const struct facts *f, struct sink *s)
{
	char wall[HUMAN_BYTES], tasks[HUMAN_BYTES];

	human(metric_wall_time(f), AS_SECONDS, wall);
	human(metric_workers_wall_time(f), AS_SECONDS, tasks);
	if (strcmp(f->wall_time_source, "client") != 0)
		text_paragraph(s, "  ", "wall time %s (first to last task on the workers)", wall);
	else
		text_paragraph(s, "  ",
			       "wall time %s (the client's; first to last task %s); averages of "
			       "workers and memory are over %s",
			       wall, tasks,
			       run_has_block(f->run) ? "the client's block" : "first to last task");
}

static void put_sentence(void *sink, const char *sentence)
{
	text_paragraph(sink, "  ", "%s", sentence);
}

void report_company(const struct run *r, struct sink *s)
{
	run_company_say(r, put_sentence, s);
}

/* The shown run is "last": the user may have meant another. Numbers about workers include other
 * runs on them; tasks whose results it takes from other runs are not in its numbers. */
static void put_others(const struct run *r, struct sink *s)
{
	const struct run_others *o = &r->others;
	char line[160];

	if (o->n)
		text_paragraph(s, "  ", "%zu other run%s close to it: %s ('crema report --list')",
			       o->n, o->n == 1 ? "" : "s",
			       run_ids_text(line, sizeof(line), o->ids, o->n));
	report_company(r, s);
}

void report_title(const struct report *r, struct sink *s, bool colour)
{
	char when[40], state[RUN_SENTENCE_BYTES];

	sink_printf(s, "%srun %s%s", colour ? "\033[1m" : "", r->run->id, colour ? "\033[0m" : "");
	if (iso_time(r->run->start, when, sizeof(when)))
		sink_printf(s, "   began %.10s %.8s UTC", when, when + 11);
	sink_puts(s, "\n");
	text_paragraph(s, "  ", "%s", run_state_sentence(&r->facts->state, state, sizeof(state)));
	if (r->run->name) {
		snprintf(state, sizeof(state), "%s", r->run->name);
		text_paragraph(s, "  name: ", "%s", text_clean(state));
	}
}

void report_tables_head(const struct report *r, struct sink *s, bool colour)
{
	const struct facts *f = r->facts;
	char a[HUMAN_BYTES], wasted[40] = "";

	report_title(r, s, colour);
	put_wall(f, s);
	if (f->wasted.attempts)
		snprintf(wasted, sizeof(wasted), ", %zu wasted", f->wasted.attempts);
	text_paragraph(s, "  ", "%zu of %zu attempts at tasks counted%s, %zu worker%s",
		       f->tasks.attempts, f->all.attempts, wasted, r->run->workers.n,
		       r->run->workers.n == 1 ? "" : "s");
	if (facts_shows_all(f))
		text_paragraph(s, "  ",
			       "only %s of the tasks' time belongs to attempts that count: "
			       "timing, tables of tasks and findings cover all attempts",
			       human(value_real(f->tasks.wall / f->all.wall * 100), AS_PERCENT, a));
	put_others(r->run, s);
	put_stack(r->run, s);
}
