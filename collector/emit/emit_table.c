/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_table.c - aligned columns of text. */
#include "collector/emit/emit_table.h"

#include "collector/emit/emit_names.h"
#include "collector/emit/emit_text.h"
#include "common/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RESET "\033[0m"

#define INDENT 2
#define SPACE 2
#define LEAST_LEFT 8

void grid_init(struct grid *g, struct sink *sink, bool colour)
{
	memset(g, 0, sizeof(*g));
	g->sink = sink;
	g->colour = colour;
}

void grid_columns(struct grid *g, const char *first, ...)
{
	const char *c;
	va_list ap;

	g->columns = 0;
	va_start(ap, first);
	for (c = first; c && g->columns < GRID_COLUMNS; c = va_arg(ap, const char *)) {
		g->right[g->columns] = c[0] == '>';
		g->title[g->columns++] = c + 1;
	}
	va_end(ap);
}

void grid_text(struct grid *g, const char *text)
{
	char *copy = strdup(text ? text : "unknown");
	struct grid_cell *at = copy ? ARRAY_NEW(&g->cells) : NULL;

	if (!at) {
		g->sink->error = -ENOMEM;
		free(copy);
		return;
	}
	*at = (struct grid_cell){text_clean(copy), g->style};
	g->style = NULL;
	g->at = (g->at + 1) % g->columns;
}

void grid_printf(struct grid *g, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	grid_text(g, text);
}

void grid_value(struct grid *g, struct value v, enum human as)
{
	char text[HUMAN_BYTES];

	if (v.type == VALUE_TEXT)
		grid_text(g, v.v.s);
	else
		grid_text(g, human(v, as, text));
}

void grid_style(struct grid *g, const char *style)
{
	g->style = style;
}

void grid_end_row(struct grid *g)
{
	while (g->at && !g->sink->error)
		grid_text(g, "");
}

/* The widest left-aligned column that can still shrink, or GRID_COLUMNS. */
static unsigned int widest_left(const struct grid *g, const size_t *w)
{
	unsigned int c, found = GRID_COLUMNS;

	for (c = 0; c < g->columns; c++) {
		if (!g->right[c] && w[c] > LEAST_LEFT && w[c] > text_width(g->title[c]) &&
		    (found == GRID_COLUMNS || w[c] > w[found]))
			found = c;
	}
	return found;
}

/* Computes all widths; the widest left-aligned columns shrink until the table fits. False: it
 * does not. */
static bool fit(const struct grid *g, size_t *w, size_t *natural)
{
	size_t i, total = INDENT;
	unsigned int c;

	for (c = 0; c < g->columns; c++)
		w[c] = text_width(g->title[c]);
	for (i = 0; i < g->cells.n; i++) {
		c = (unsigned int)(i % g->columns);
		if (text_width(g->cells.v[i].text) > w[c])
			w[c] = text_width(g->cells.v[i].text);
	}
	memcpy(natural, w, g->columns * sizeof(*w));
	for (c = 0; c < g->columns; c++)
		total += w[c] + (c ? SPACE : 0);
	while (total > sink_columns(g->sink)) {
		c = widest_left(g, w);
		if (c == GRID_COLUMNS)
			return false;
		w[c]--;
		total--;
	}
	return true;
}

/* A table that does not fit without cutting numbers: one line per cell. */
static void print_tall(struct grid *g)
{
	const char *cell, *title;
	size_t i;

	for (i = 0; i < g->cells.n; i++) {
		cell = g->cells.v[i].text;
		title = g->title[i % g->columns];
		if (i % g->columns == 0)
			text_paragraph(g->sink, "  ", "%s", cell);
		else if (*cell)
			text_paragraph(g->sink, "      ", "%s%s%s", title, *title ? ": " : "",
				       cell);
	}
}

static void put_cell(struct grid *g, const char *text, size_t w, bool right, bool last,
		     const char *style)
{
	size_t pad = w > text_width(text) ? w - text_width(text) : 0;

	if (right)
		sink_printf(g->sink, "%*s", (int)pad, "");
	if (style && g->colour && *text)
		sink_puts(g->sink, style);
	sink_puts(g->sink, text);
	if (style && g->colour && *text)
		sink_puts(g->sink, RESET);
	if (!right && !last)
		sink_printf(g->sink, "%*s", (int)pad, "");
}

static void put_row(struct grid *g, const struct grid_cell *cells, const size_t *w)
{
	unsigned int c, last = g->columns;

	while (last > 1 && !*cells[last - 1].text)
		last--;
	sink_printf(g->sink, "%*s", INDENT, "");
	for (c = 0; c < last; c++) {
		if (c)
			sink_printf(g->sink, "%*s", SPACE, "");
		put_cell(g, cells[c].text, w[c], g->right[c], c + 1 == last,
			 cells[c].style			    ? cells[c].style
			 : strcmp(cells[c].text, "unknown") ? NULL
							    : DIM);
	}
	sink_puts(g->sink, "\n");
}

static void put_titles(struct grid *g, const size_t *w)
{
	struct grid_cell row[GRID_COLUMNS];
	unsigned int c;

	for (c = 0; c < g->columns; c++)
		row[c] = (struct grid_cell){(char *)g->title[c], DIM};
	put_row(g, row, w);
}

static void release(struct grid *g)
{
	size_t i;

	for (i = 0; i < g->cells.n; i++)
		free(g->cells.v[i].text);
	free(g->cells.v);
	memset(&g->cells, 0, sizeof(g->cells));
	g->at = 0;
}

/* Shortens the names of a column to `to` columns; returns the width they take. */
static size_t shorten_column(struct grid *g, unsigned int c, size_t to)
{
	size_t rows = g->cells.n / g->columns, i, width, most = text_width(g->title[c]);
	char **names = calloc(rows ? rows : 1, sizeof(*names));

	for (i = 0; names && i < rows; i++)
		names[i] = g->cells.v[i * g->columns + c].text;
	if (!names || names_shorten(names, rows, to))
		g->sink->error = -ENOMEM;
	free(names);
	for (i = 0; i < rows; i++) {
		width = text_width(g->cells.v[i * g->columns + c].text);
		most = width > most ? width : most;
	}
	return most;
}

/* Shortens the columns that had to shrink; width left over by one goes to the next. */
static void shorten(struct grid *g, size_t *w, const size_t *natural)
{
	unsigned int c;
	size_t left = 0;

	for (c = 0; c < g->columns; c++) {
		if (w[c] >= natural[c])
			continue;
		left += w[c];
		w[c] = shorten_column(g, c, left < natural[c] ? left : natural[c]);
		left -= w[c] < left ? w[c] : left;
	}
}

void grid_print(struct grid *g)
{
	size_t w[GRID_COLUMNS] = {0}, natural[GRID_COLUMNS], i;
	bool titles = false;
	unsigned int c;

	if (!fit(g, w, natural)) {
		print_tall(g);
		release(g);
		return;
	}
	shorten(g, w, natural);
	for (c = 0; c < g->columns; c++)
		titles = titles || *g->title[c];
	if (titles)
		put_titles(g, w);
	for (i = 0; i + g->columns <= g->cells.n; i += g->columns)
		put_row(g, &g->cells.v[i], w);
	release(g);
}

void table_section(struct sink *s, bool colour, const char *title)
{
	sink_printf(s, "\n%s%s%s\n", colour ? BOLD : "", title, colour ? RESET : "");
}

void table_more(struct sink *s, size_t n, size_t shown)
{
	if (n > shown)
		sink_printf(s, "  and %zu more\n", n - shown);
}
