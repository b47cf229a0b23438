/* SPDX-License-Identifier: BSD-3-Clause */
/* emit_table.c - aligned columns of text. */
#include "collector/emit/emit_table.h"

#include "collector/model/model_table.h"

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

/* Width on a terminal: code points. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static char *clean(char *s)
{
	char *p;

	for (p = s; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	}
	return s;
}

void grid_text(struct grid *g, const char *text)
{
	char **at = ARRAY_NEW(&g->cells);
	char *copy = strdup(text ? text : "unknown");

	if (!at || !copy) {
		g->sink->error = -ENOMEM;
		free(copy);
		return;
	}
	*at = clean(copy);
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

void grid_end_row(struct grid *g)
{
	while (g->at && !g->sink->error)
		grid_text(g, "");
}

/* Cuts the middle out, so that `to` columns are left; the end of a path says most. */
static void shorten(char *s, size_t to)
{
	size_t n = width(s), head = to / 3, keep, i, bytes = 0;
	char *tail = s;

	if (n <= to || to < 8)
		return;
	keep = to - head - 2;
	for (i = 0; i < head; bytes++) {
		if ((s[bytes + 1] & 0xc0) != 0x80)
			i++;
	}
	for (i = 0; i < n - keep; tail++) {
		if ((tail[1] & 0xc0) != 0x80)
			i++;
	}
	memmove(s + bytes + 2, tail, strlen(tail) + 1);
	memcpy(s + bytes, "..", 2);
}

/* Widths of all columns; the widest left column gives way until the table fits. */
static void fit(struct grid *g, size_t *w)
{
	size_t i, total = INDENT, widest = GRID_COLUMNS;
	unsigned int c;

	for (c = 0; c < g->columns; c++)
		w[c] = width(g->title[c]);
	for (i = 0; i < g->cells.n; i++) {
		c = (unsigned int)(i % g->columns);
		if (width(g->cells.v[i]) > w[c])
			w[c] = width(g->cells.v[i]);
	}
	for (c = 0; c < g->columns; c++) {
		total += w[c] + (c ? SPACE : 0);
		if (!g->right[c] && (widest == GRID_COLUMNS || w[c] > w[widest]))
			widest = c;
	}
	if (total <= TABLE_WIDTH || widest == GRID_COLUMNS)
		return;
	total -= TABLE_WIDTH;
	w[widest] = w[widest] > total + 12 ? w[widest] - total : 12;
	for (i = widest; i < g->cells.n; i += g->columns)
		shorten(g->cells.v[i], w[widest]);
}

static void put_cell(struct grid *g, const char *text, size_t w, bool right, bool last,
		     const char *style)
{
	size_t pad = w > width(text) ? w - width(text) : 0;

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

static void put_row(struct grid *g, const char *const *cells, const size_t *w, const char *style)
{
	unsigned int c, last = g->columns;

	while (last > 1 && !*cells[last - 1])
		last--;
	sink_printf(g->sink, "%*s", INDENT, "");
	for (c = 0; c < last; c++) {
		if (c)
			sink_printf(g->sink, "%*s", SPACE, "");
		put_cell(g, cells[c], w[c], g->right[c], c + 1 == last,
			 style			       ? style
			 : strcmp(cells[c], "unknown") ? NULL
						       : DIM);
	}
	sink_puts(g->sink, "\n");
}

void grid_print(struct grid *g)
{
	size_t w[GRID_COLUMNS] = {0}, i;
	const char *row[GRID_COLUMNS];
	bool titles = false;
	unsigned int c;

	fit(g, w);
	for (c = 0; c < g->columns; c++)
		titles = titles || *g->title[c];
	if (titles)
		put_row(g, g->title, w, DIM);
	for (i = 0; i + g->columns <= g->cells.n; i += g->columns) {
		for (c = 0; c < g->columns; c++)
			row[c] = g->cells.v[i + c];
		put_row(g, row, w, NULL);
	}
	for (i = 0; i < g->cells.n; i++)
		free(g->cells.v[i]);
	free(g->cells.v);
	memset(&g->cells, 0, sizeof(g->cells));
	g->at = 0;
}

void table_section(struct sink *s, bool colour, const char *title)
{
	sink_printf(s, "\n%s%s%s\n", colour ? BOLD : "", title, colour ? RESET : "");
}
