/* SPDX-License-Identifier: BSD-3-Clause */
/* tables_slowest.c - the attempts that took longest, of those shown (facts_shows()), and where
 * their time went. */
#include <stdio.h>
#include <string.h>

#include "collector/print/print.h"

#define TOP 8

/* The longest first; equally long ones in the order of their begin. */
struct slowest {
	const struct attempt *v[TOP];
	size_t n;
};

static void take(struct slowest *s, const struct attempt *a)
{
	size_t i;

	if (!((a->known >> TASK_F_wall_ns) & 1))
		return;
	if (s->n == TOP && a->wall_ns <= s->v[TOP - 1]->wall_ns)
		return;
	i = s->n < TOP ? s->n++ : TOP - 1;
	for (; i && s->v[i - 1]->wall_ns < a->wall_ns; i--)
		s->v[i] = s->v[i - 1];
	s->v[i] = a;
}

/* "runs.root" and "0-50000" describe a chunk better than its key. */
static void name_cells(struct grid *g, const struct run *run, const struct attempt *a)
{
	char key[KEY_SHOWN_BYTES];
	const char *base = a->filename ? strrchr(a->filename, '/') : NULL;

	struct value start = attempt_i64(a, TASK_F_entrystart),
		     stop = attempt_i64(a, TASK_F_entrystop);

	if (attempt_is_chunk(a) && a->filename && stop.type == VALUE_INT) {
		grid_text(g, base && base[1] ? base + 1 : a->filename);
		grid_printf(g, "%lld-%lld", (long long)start.v.i, (long long)stop.v.i);
	} else {
		grid_text(g, run_key_shown(run, a, key));
		grid_text(g, "");
	}
}

/* Without the scheme, which is the same for every worker. */
static const char *address_of(const char *label)
{
	const char *host = strstr(label, "://");

	return host ? host + 3 : label;
}

/* The class with most of its time, and how much. */
static void most_cell(struct grid *g, const struct attempt *a)
{
	struct classes c;
	double most = 0, d;
	int i, found = -1;

	if (attempt_is_unmeasured(a)) {
		grid_text(g, "unknown");
		return;
	}
	attempt_classes(a, &c);
	for (i = 0; i < CREMA_TIMES; i++) {
		d = value_number(c.cls[i], NULL);
		if (d > most) {
			most = d;
			found = i;
		}
	}
	d = value_number(c.unclassified, NULL);
	if (d > most)
		grid_printf(g, "not classified %.0f %%", d / c.wall.v.d * 100);
	else if (found < 0)
		grid_text(g, "unknown");
	else
		grid_printf(g, "%s %.0f %%", class_name((unsigned int)found),
			    most / c.wall.v.d * 100);
}

void report_table_slowest(const struct report *r, struct sink *s, bool colour)
{
	struct slowest slowest = {.n = 0};
	const struct attempt *a;
	struct grid g;
	size_t i;

	for (i = 0; i < r->run->attempts.n; i++) {
		if (facts_shows(r->facts, r->run->attempts.v[i]))
			take(&slowest, r->run->attempts.v[i]);
	}
	if (!slowest.n)
		return;
	table_section(s, colour, "Slowest tasks");
	grid_init(&g, s, colour);
	grid_columns(&g, "<task", ">entries", "<worker", ">wall", ">CPU", "<most of it", NULL);
	for (i = 0; i < slowest.n; i++) {
		a = slowest.v[i];
		name_cells(&g, r->run, a);
		grid_text(&g, address_of(a->worker->label));
		grid_value(&g, value_seconds(attempt_wall_ns(a)), AS_SECONDS);
		grid_value(&g,
			   value_seconds(value_plus(own_ns(&a->c, CREMA_T_cpu),
						    pool_ns(&a->c, CREMA_T_cpu))),
			   AS_SECONDS);
		most_cell(&g, a);
	}
	grid_print(&g);
}
