/* SPDX-License-Identifier: BSD-3-Clause */
/* tables_head.c - which run this is, and where the time of its tasks went. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/print/print.h"

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
	text_paragraph(s, "  ",
		       "%s of CPU of these hosts went to other virtual machines: the "
		       "tasks' part of it is not classified",
		       seconds);
}

static struct value shown_pool(const struct tally *t)
{
	return value_seconds(sum_value(&t->pool[CREMA_T_cpu]));
}

/* Where the wall time of tasks went: counted ones, or all attempts (facts_shown()). */
void report_table_timing(const struct report *r, struct sink *s, bool colour)
{
	const struct facts *f = r->facts;
	static const struct {
		const char *label;
		enum crema_time_id class;
		struct value (*other)(const struct tally *); /* NULL: the class */
	} rows[] = {
		{"CPU, own thread", CREMA_T_cpu, NULL},
		{"waiting for a core", CREMA_T_runqueue, NULL},
		{"waiting for the interpreter lock", CREMA_T_gil_wait, NULL},
		{"waiting for other locks", CREMA_T_lock_wait, NULL},
		{"waiting for the network", CREMA_T_network_wait, NULL},
		{"waiting for storage", CREMA_T_storage_wait, NULL},
		{"asleep", CREMA_T_sleep, NULL},
		{"not classified", 0, tally_unclassified},
		{"wall time of tasks", 0, tally_wall},
		{"CPU of pool threads (not included)", 0, shown_pool},
	};
	const struct tally *t = facts_shown(f);
	static const char bar[] = "####################";
	struct value v, wall = tally_wall(t);
	char unknown[128] = "";
	struct grid g;
	double share;
	bool known;
	int n;
	size_t i;

	table_section(s, colour,
		      facts_shows_all(f) ? "Timing: where the time of all attempts went"
					 : "Timing: where the time of counted tasks went");
	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">", ">of wall", "<", NULL);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		v = rows[i].other ? rows[i].other(t) : tally_class(t, rows[i].class);
		share = value_number(value_ratio(v, wall, 100), &known);
		if (known && rows[i].other == tally_unclassified && fabs(share) < 1) {
			/* what clocks differ by, of either sign */
			v = value_uint(0);
			share = 0;
		}
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
		if (t->class_unknown[i])
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

/* The one that is shown is "last": others may be what was asked for. Others on the same workers are
 * in what is said of workers, and others' results are not in its numbers. */
static void put_others(const struct run *r, struct sink *s)
{
	const struct run_others *o = &r->others;
	char line[160];

	if (o->n)
		text_paragraph(s, "  ", "%zu other run%s near it: %s ('crema report --list')", o->n,
			       o->n == 1 ? "" : "s",
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
			       "only %s of the time of tasks is of attempts that count: "
			       "timing, tables of tasks and findings are of all attempts",
			       human(value_real(f->tasks.wall / f->all.wall * 100), AS_PERCENT, a));
	put_others(r->run, s);
	put_stack(r->run, s);
}
