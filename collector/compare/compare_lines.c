/* SPDX-License-Identifier: BSD-3-Clause */
/* compare_lines.c - sampled time by function of user code, matched between runs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/compare/compare.h"
#include "collector/emit/emit_table.h"
#include "common/dirs.h"

#define TOP 12

static struct compared_function *function_of(struct comparison *c, const struct line_place *p)
{
	const char *file = dirs_base(p->file, "?"), *function = p->function ? p->function : "?";
	struct compared_function *f;

	for (size_t i = 0; i < c->functions.n; i++) {
		f = &c->functions.v[i];
		if (!strcmp(f->function, function) && !strcmp(f->file, file))
			return f;
	}
	f = ARRAY_NEW(&c->functions);
	if (!f)
		return NULL;
	f->file = file;
	f->function = function;
	f->sum = calloc(c->n, sizeof(*f->sum));
	c->functions.n -= !f->sum;
	return f->sum ? f : NULL;
}

double compared_function_error(const struct compared *c, const struct line_sum *s)
{
	return lines_error(lines_share(&c->lines, s), c->lines.all.samples) * c->lines.all.seconds;
}

/* The difference between its least and its most time in the sampled runs. */
static double change_of(const struct comparison *c, const struct compared_function *f)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (!c->run[i].lines.all.samples)
			continue;
		least = fmin(least, f->sum[i].seconds);
		most = fmax(most, f->sum[i].seconds);
	}
	return most - least;
}

static int by_change(const void *pa, const void *pb)
{
	const struct compared_function *a = pa, *b = pb;
	int order;

	if (a->change != b->change)
		return a->change > b->change ? -1 : 1;
	order = strcmp(a->file, b->file);
	return order ? order : strcmp(a->function, b->function);
}

int compare_functions(struct comparison *c)
{
	struct compared_function *f;

	for (size_t i = 0; i < c->n; i++) {
		const struct lines *l = &c->run[i].lines;

		for (size_t k = 0; k < l->rows.n; k++) {
			if (!l->rows.v[k]->place)
				continue;
			f = function_of(c, l->rows.v[k]->place);
			if (!f)
				return -ENOMEM;
			line_sum_add(&f->sum[i], &l->rows.v[k]->sum);
		}
	}
	for (size_t i = 0; i < c->functions.n; i++)
		c->functions.v[i].change = change_of(c, &c->functions.v[i]);
	if (c->functions.n)
		qsort(c->functions.v, c->functions.n, sizeof(*c->functions.v), by_change);
	return 0;
}

void compare_functions_release(struct comparison *c)
{
	for (size_t i = 0; i < c->functions.n; i++)
		free(c->functions.v[i].sum);
	free(c->functions.v);
}

/* For two runs: how much longer the second took, and half the width of the 95 % interval. */
static void change_cells(const struct comparison *c, const struct compared_function *f,
			 struct grid *g)
{
	char text[HUMAN_BYTES];
	double more = f->sum[1].seconds - f->sum[0].seconds;

	grid_printf(g, "%c%s", more < 0 ? '-' : '+',
		    human(value_real(fabs(more)), AS_SECONDS, text));
	grid_value(g,
		   value_real(hypot(compared_function_error(&c->run[0], &f->sum[0]),
				    compared_function_error(&c->run[1], &f->sum[1]))),
		   AS_SECONDS);
}

void compare_functions_text(const struct comparison *c, struct sink *s, bool colour)
{
	char title[GRID_COLUMNS][16];
	size_t sampled = 0, i, k;
	bool two = c->n == 2;
	struct grid g;

	for (i = 0; i < c->n; i++)
		sampled += c->run[i].lines.all.samples > 0;
	if (sampled < 2 || !c->functions.n || c->n + 1 > GRID_COLUMNS)
		return;
	table_section(s, colour, "Functions of your code, largest difference first (sampled)");
	grid_init(&g, s, colour);
	g.columns = (unsigned int)c->n + (two ? 3 : 1);
	g.title[0] = "function";
	for (k = 1; k < g.columns; k++) {
		g.right[k] = true;
		snprintf(title[k], sizeof(title[k]), "run %zu", k);
		g.title[k] = k <= c->n ? title[k] : k == c->n + 1 ? "change" : "+-";
	}
	for (i = 0; i < c->functions.n && i < TOP; i++) {
		const struct compared_function *f = &c->functions.v[i];

		grid_printf(&g, "%.80s %.80s", f->file, f->function);
		for (k = 0; k < c->n; k++)
			grid_value(&g,
				   c->run[k].lines.all.samples ? value_real(f->sum[k].seconds)
							       : value_null(),
				   AS_SECONDS);
		if (two)
			change_cells(c, f, &g);
	}
	grid_print(&g);
	table_more(s, c->functions.n, TOP);
}

void compare_functions_json(const struct comparison *c, struct json *j)
{
	emit_array(j, "functions");
	for (size_t i = 0; i < c->functions.n; i++) {
		const struct compared_function *f = &c->functions.v[i];

		emit_object(j, NULL);
		emit_value(j, "file", value_text(f->file));
		emit_value(j, "function", value_text(f->function));
		emit_array(j, "runs"); /* null: not sampled */
		for (size_t k = 0; k < c->n; k++) {
			if (!c->run[k].lines.all.samples) {
				emit_value(j, NULL, value_null());
				continue;
			}
			emit_object(j, NULL);
			line_sum_cells(&f->sum[k], emit_cell, j);
			emit_value(j, "error_seconds",
				   value_real(compared_function_error(&c->run[k], &f->sum[k])));
			emit_end(j);
		}
		emit_end(j);
		emit_end(j);
	}
	emit_end(j);
}
