/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_table.h - tables for people: aligned columns, human units, plain text.
 *
 *	grid_init(&g, sink, colour);
 *	grid_columns(&g, "<file", ">read", ">storage", NULL);   '<' left, '>' right; "" = no title
 *	grid_text(&g, path);  grid_value(&g, v, AS_BYTES); ...   cell after cell, row after row
 *	grid_print(&g);                                          and is empty again
 *
 * A table that is wider than the sink shortens the names in its left-aligned columns
 * (emit_names.h), the widest first. If that is not enough, each cell gets a line. Numbers and
 * titles are never cut. Control characters become '?'. An unknown value prints "unknown". `colour`
 * makes titles bold and unknown values dim, and has no other effect.
 */
#ifndef CREMA_COLLECTOR_EMIT_EMIT_TABLE_H
#define CREMA_COLLECTOR_EMIT_EMIT_TABLE_H

#include "collector/emit/emit.h"

#define GRID_COLUMNS 10
#define HUMAN_BYTES 32

enum human {
	AS_IS,	    /* text unchanged, whole numbers, others with 4 digits */
	AS_COUNT,   /* 400,000 */
	AS_BYTES,   /* 55.94 MB (powers of 1000) */
	AS_MIB,	    /* a number of MiB, unscaled */
	AS_SECONDS, /* 1.106 s, 23.1 ms, 2 m 05 s */
	AS_PERCENT, /* 46.9 % */
	AS_SHARE,   /* the same for 0.469 */
	AS_MBS,
	AS_GBPS,
	AS_KHZ,
	AS_HZ,
	AS_TIMES, /* 1.87x */
	AS_YES,	  /* yes, no */
};

/* `out` has HUMAN_BYTES; longer texts are cut. Returns out. */
char *human(struct value v, enum human as, char *out);

/* Highlighting of a cell if there is colour; NULL: none. */
#define STYLE_GOOD "\033[32m"
#define STYLE_WAIT "\033[33m"
#define STYLE_BAD "\033[1;31m"

struct grid_cell {
	char *text;
	const char *style;
};

struct grid {
	struct sink *sink;
	bool colour;
	unsigned int columns, at;
	bool right[GRID_COLUMNS];
	const char *title[GRID_COLUMNS];
	const char *style; /* for the next cell */
	struct {
		struct grid_cell *v;
		size_t n, cap;
	} cells;
};

void grid_init(struct grid *g, struct sink *sink, bool colour);
__attribute__((sentinel)) void grid_columns(struct grid *g, const char *first, ...);
void grid_text(struct grid *g, const char *text);
__attribute__((format(printf, 2, 3))) void grid_printf(struct grid *g, const char *fmt, ...);
void grid_value(struct grid *g, struct value v, enum human as);
/* Highlights the next cell. */
void grid_style(struct grid *g, const char *style);
/* Fills the row with empty cells. */
void grid_end_row(struct grid *g);
void grid_print(struct grid *g);

/* A title line with a blank line before it. */
void table_section(struct sink *s, bool colour, const char *title);
/* The line after a table of n rows with at most `shown` in it, if there are more. */
void table_more(struct sink *s, size_t n, size_t shown);

#endif
