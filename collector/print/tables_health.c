/* SPDX-License-Identifier: BSD-3-Clause */
/* tables_health.c - workers, wasted work, coffea's own report, completeness. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/print/print.h"

#define TOP 16

static void put_fate(struct grid *g, const struct worker *w)
{
	if (w->goodbye && w->goodbye_how && strcmp(w->goodbye_how, "exit") != 0)
		grid_printf(g, "%s%s%s", w->goodbye_how, w->goodbye_cause ? ": " : "",
			    w->goodbye_cause ? w->goodbye_cause : "");
	else
		grid_text(g, w->goodbye ? "ended" : w->silent ? "silent" : "");
}

/* The working share of the processes' lives: without Dask each may live for only one chunk. */
static void put_lives(const struct report *r, struct sink *s)
{
	double life = 0, startup = 0, work = 0;
	char a[HUMAN_BYTES], b[HUMAN_BYTES];
	const struct worker *w;
	size_t i, n = 0;

	for (i = 0; r->run->plain && i < r->run->workers.n; i++) {
		w = r->run->workers.v[i];
		if (worker_life(w).type == VALUE_NULL || worker_work(w).type == VALUE_NULL)
			continue;
		n++;
		life += worker_life(w).v.d;
		startup += worker_startup(w).v.d;
		work += worker_work(w).v.d;
	}
	if (n && life > 0)
		text_paragraph(
			s, "  ",
			"process start and imports: %s of %zu processes' %s (%.0f %%); %.0f %% "
			"was work",
			human(value_real(startup), AS_SECONDS, a), n,
			human(value_real(life), AS_SECONDS, b), startup / life * 100,
			work / life * 100);
}

void report_table_workers(const struct report *r, struct sink *s, bool colour)
{
	const struct worker_track *t;
	struct tally sum;
	struct grid g;
	size_t i, k;

	table_section(s, colour, "Workers");
	grid_init(&g, s, colour);
	grid_columns(&g, "<worker", ">tasks", ">CPU", ">read", ">storage", ">peak memory", "<",
		     NULL);
	for (i = 0; i < r->facts->tracking->n && i < TOP; i++) {
		t = &r->facts->tracking->v[i];
		memset(&sum, 0, sizeof(sum));
		for (k = 0; k < r->run->attempts.n; k++) {
			if (r->run->attempts.v[k]->worker == t->worker)
				tally_add(&sum, r->run->attempts.v[k]);
		}
		grid_text(&g, t->worker->label);
		grid_value(&g, value_uint(sum.attempts), AS_COUNT);
		grid_value(&g, tally_cpu(&sum), AS_SECONDS);
		grid_value(&g, sum_value(&sum.count[CREMA_C_read_bytes]), AS_BYTES);
		grid_value(&g, sum_value(&sum.storage_read), AS_BYTES);
		grid_value(&g, value_real(t->peak_rss), AS_BYTES);
		put_fate(&g, t->worker);
	}
	grid_print(&g);
	table_more(s, r->facts->tracking->n, TOP);
	put_lives(r, s);
}

void report_table_waste(const struct report *r, struct sink *s, bool colour)
{
	static const char *const reasons[] = {"killed",	    "lost",   "erred",	 "retried",
					      "recomputed", "stolen", "shutdown"};
	const struct run *run = r->run;
	struct tally t;
	struct grid g;
	size_t i, k;

	table_section(s, colour, "Wasted work");
	if (!r->facts->wasted.attempts) {
		sink_puts(s, "  none: every attempt that ended counts\n");
		return;
	}
	grid_init(&g, s, colour);
	grid_columns(&g, "<reason", ">attempts", ">wall", ">CPU", ">read", ">storage", NULL);
	for (k = 0; k < sizeof(reasons) / sizeof(*reasons); k++) {
		memset(&t, 0, sizeof(t));
		for (i = 0; i < run->attempts.n; i++) {
			if (run->attempts.v[i]->waste_reason &&
			    !strcmp(run->attempts.v[i]->waste_reason, reasons[k]))
				tally_add(&t, run->attempts.v[i]);
		}
		if (!t.attempts)
			continue;
		grid_text(&g, reasons[k]);
		grid_value(&g, value_uint(t.attempts), AS_COUNT);
		grid_value(&g, value_seconds(sum_value(&t.wall_ns)), AS_SECONDS);
		grid_value(&g, tally_cpu(&t), AS_SECONDS);
		grid_value(&g, sum_value(&t.count[CREMA_C_read_bytes]), AS_BYTES);
		grid_value(&g, sum_value(&t.storage_read), AS_BYTES);
	}
	grid_print(&g);
}

void report_table_taskvine(const struct report *r, struct sink *s, bool colour)
{
	if (r->taskvine)
		taskvine_log_table(r->taskvine, s, colour);
}

void report_table_coffea(const struct report *r, struct sink *s, bool colour)
{
	const struct coffea_report *c = r->coffea;
	static const enum human units[COFFEA_FIELDS] = {AS_COUNT, AS_COUNT, AS_COUNT, AS_SECONDS,
							AS_COUNT};
	struct grid g;
	size_t i;

	if (!c)
		return;
	table_section(s, colour, "coffea's own report");
	if (*c->line)
		text_paragraph(s, "  ", "%s", c->line);
	if (!c->read)
		return;
	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">coffea", ">workers' sum", "<", NULL);
	for (i = 0; i < COFFEA_FIELDS; i++) {
		grid_text(&g, c->field[i].name);
		grid_value(&g, c->field[i].theirs, units[i]);
		grid_value(&g, c->field[i].ours, units[i]);
		grid_text(&g, c->field[i].verdict == COFFEA_UNKNOWN ? ""
								    : coffea_verdict(&c->field[i]));
	}
	grid_print(&g);
}

static void say_text(void *arg, const char *line)
{
	text_paragraph(arg, "  - ", "%s", line);
}

/* process = tasks + unattributed + unseen: one row each. */
static void put_balance(const struct balance *b, struct sink *s, bool colour)
{
	const struct {
		const char *name;
		const struct part *part;
	} rows[] = {
		{"tasks", &b->tasks},
		{"unattributed: other threads", &b->unattributed},
		{"unseen: unknown threads", &b->unseen},
		{"worker processes (getrusage)", &b->process},
		{"ended children (not included)", &b->children},
	};
	struct grid g;
	size_t i;

	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">CPU", ">from storage", ">to storage", ">read", NULL);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		grid_text(&g, rows[i].name);
		grid_value(&g, rows[i].part->cpu_seconds, AS_SECONDS);
		grid_value(&g, rows[i].part->storage_read_bytes, AS_BYTES);
		grid_value(&g, rows[i].part->storage_write_bytes, AS_BYTES);
		if (i < 2)
			grid_value(&g, rows[i].part->read_bytes, AS_BYTES);
		else
			grid_text(&g, "");
	}
	grid_print(&g);
}

static void put_sockets(struct grid *g, const char *name, struct value in, struct value out)
{
	grid_text(g, name);
	grid_value(g, in, AS_BYTES);
	grid_value(g, out, AS_BYTES);
}

/* Bytes on sockets by owner; Dask's own connections belong to no task. */
static void put_network(const struct balance *b, struct sink *s, bool colour)
{
	const struct part *t = &b->tasks, *u = &b->unattributed;
	struct grid g;

	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">received", ">sent", NULL);
	put_sockets(&g, "network: tasks", t->network_read_bytes, t->network_write_bytes);
	put_sockets(&g, "network: unattributed", u->network_read_bytes, u->network_write_bytes);
	put_sockets(&g, "Dask's own connections",
		    value_plus(t->comm_read_bytes, u->comm_read_bytes),
		    value_plus(t->comm_write_bytes, u->comm_write_bytes));
	grid_print(&g);
}

void report_table_completeness(const struct report *r, struct sink *s, bool colour)
{
	const char *at_least = r->silent ? "at least " : "";
	char a[HUMAN_BYTES], b[HUMAN_BYTES];

	table_section(s, colour, "Completeness (over the whole life of these workers)");
	put_balance(&r->balance, s, colour);
	put_network(&r->balance, s, colour);
	text_paragraph(s, "  ",
		       "%zu workers seen, %s%s records refused, %s%s records lost, %zu files read, "
		       "%zu torn",
		       r->run->workers.n, at_least, human(r->totals.records_refused, AS_COUNT, a),
		       at_least, human(r->records_lost, AS_COUNT, b),
		       (size_t)r->run->model->files_read, r->run->model->torn.n);
	report_notes(r, say_text, s);
}
