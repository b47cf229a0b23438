/* SPDX-License-Identifier: BSD-3-Clause */
/* lines_large.c - which lines hold memory: large allocations, as a table and for findings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "collector/report/lines.h"
#include "common/rows.h"

#define TOP 12

struct value line_large(const struct line_sum *s, enum crema_lines_large number)
{
	return s->large_known && s->large[number] >= 0 ? value_uint((uint64_t)s->large[number])
						       : value_null();
}

/* Below this the names do not fit next to the numbers; file and line matter more than the
 * middle. */
#define WIDE_COLUMNS 100

void line_place_cell(struct grid *g, const struct line_place *p)
{
	char name[192], *space;

	if (!p) {
		grid_text(g, "(none yours)");
		return;
	}
	lines_name(p, name);
	space = strrchr(name, ' ');
	if (space && p->line && sink_columns(g->sink) < WIDE_COLUMNS)
		*space = 0;
	grid_text(g, name);
}

static int by_memory(const void *pa, const void *pb)
{
	static const enum crema_lines_large order[] = {
		CREMA_LINES_L_peak_bytes, CREMA_LINES_L_kept_bytes, CREMA_LINES_L_allocated_bytes};
	const struct line_sum *a = &(*(struct line_row *const *)pa)->sum;
	const struct line_sum *b = &(*(struct line_row *const *)pb)->sum;

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		if (a->large[order[i]] != b->large[order[i]])
			return a->large[order[i]] > b->large[order[i]] ? -1 : 1;
	return 0;
}

static void put_row(struct grid *g, const struct line_row *r)
{
	line_place_cell(g, r->place);
	grid_value(g, line_large(&r->sum, CREMA_LINES_L_peak_bytes), AS_BYTES);
	grid_value(g, line_large(&r->sum, CREMA_LINES_L_kept_bytes), AS_BYTES);
	grid_value(g, line_large(&r->sum, CREMA_LINES_L_allocated_bytes), AS_BYTES);
	grid_value(g, line_large(&r->sum, CREMA_LINES_L_allocations), AS_COUNT);
}

static void put_rows(const struct lines *l, struct line_row **rows, struct sink *s, bool colour)
{
	struct grid g;
	char least[HUMAN_BYTES], refused[HUMAN_BYTES], bytes[HUMAN_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < l->rows.n; i++)
		if (l->rows.v[i]->sum.large[CREMA_LINES_L_allocations] > 0)
			rows[n++] = l->rows.v[i];
	if (!n)
		return;
	qsort(rows, n, sizeof(*rows), by_memory);
	table_section(s, colour, "Memory by line of your code (large allocations)");
	grid_init(&g, s, colour);
	grid_columns(&g, "<line", ">at peak", ">kept", ">allocated", ">allocations", NULL);
	for (size_t i = 0; i < n && i < TOP; i++)
		put_row(&g, rows[i]);
	grid_print(&g);
	table_more(s, n, TOP);
	text_paragraph(
		s, "  ",
		"allocations of tasks of %s and more; exact for these, and smaller ones are "
		"not included. at peak: in use when the run's tasks held most, in each worker "
		"at its own time; kept: still in use although the task has ended, results "
		"that Dask holds included",
		human(value_uint(l->large_bytes), AS_BYTES, least));
	if (l->large_refused > 0)
		text_paragraph(s, "  ",
			       "%s more allocations of %s in all found no room in the workers' "
			       "tables: what is in use or kept may be more by that much at most",
			       human(value_real(l->large_refused), AS_COUNT, refused),
			       human(value_real(l->large_refused_bytes), AS_BYTES, bytes));
}

void lines_large_table(const struct lines *l, struct sink *s, bool colour)
{
	struct line_row **rows = calloc(l->rows.n + 1, sizeof(struct line_row *));

	if (rows)
		put_rows(l, rows, s, colour);
	free(rows);
}

/* Of one line in one worker. */
struct keeper {
	const struct line_place *place;
	const char *prefix; /* of the stack with most of it */
	int64_t bytes, most;
};

static int64_t kept_in(const struct line_stack_row *row, const struct worker *w)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < row->parts.n; i++)
		if (row->parts.v[i]->worker == w)
			bytes += row->parts.v[i]->n.large[CREMA_LINES_L_kept_bytes];
	return bytes;
}

static struct keeper keeper_at(const struct lines *l, const struct worker *w,
			       const struct line_place *place)
{
	struct keeper k = {.place = place};
	const struct line_place *p;
	int64_t bytes;

	for (size_t i = 0; i < l->stacks.n; i++) {
		p = lines_user_place(l->stacks.v[i]->list, 0);
		if (!p || p->file != place->file || p->line != place->line)
			continue;
		bytes = kept_in(l->stacks.v[i], w);
		k.bytes += bytes;
		if (bytes > k.most) {
			k.most = bytes;
			k.prefix = l->stacks.v[i]->prefix;
		}
	}
	return k;
}

const struct line_place *lines_keeper(const struct lines *l, const struct worker *w, int64_t *bytes,
				      const char **prefix)
{
	struct keeper most = {.place = NULL}, k;

	for (size_t i = 0; i < l->rows.n; i++) {
		const struct line_row *r = l->rows.v[i];

		/* no worker has more of a line than all have together */
		if (!r->place || r->sum.large[CREMA_LINES_L_kept_bytes] <= most.bytes)
			continue;
		k = keeper_at(l, w, r->place);
		most = k.bytes > most.bytes ? k : most;
	}
	*bytes = most.bytes;
	*prefix = most.prefix;
	return most.place;
}
