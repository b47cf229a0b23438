/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_layers.h - one file over all workers and spans of a run: its bytes, layer by layer.
 *
 * read = read again + bytes of used baskets + other bytes (metadata, and gaps that a read bridges).
 * The three are exact or unknown: they need the workers' complete lists of the extents that they
 * read. layers_add() compares the lists with the row's own counts.
 */
#ifndef CREMA_COLLECTOR_REPORT_FILE_LAYERS_H
#define CREMA_COLLECTOR_REPORT_FILE_LAYERS_H

#include "collector/emit/emit_json.h"
#include "collector/model/model.h"

/* One file over all workers and spans of the run. */
struct file_sum {
	const char *path, *storage, *filesystem;
	const char *name;	    /* as its reader names it; NULL: unknown */
	bool has_rows;		    /* otherwise numbers are null because nothing was read */
	const struct file_row *row; /* the first: names its host, if the file is its own */
	bool several;		    /* other hosts have their own of this path */
	union {
		struct {
#define FILE_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_FILE_NUMBERS];
	};
	const char *dataset;		  /* of all its counted chunks; NULL: none, or several */
	bool datasets;			  /* several */
	uint64_t chunks;		  /* counted chunks of the file */
	struct value requested;		  /* coffea's bytesread of these */
	struct value worker_unique_bytes; /* distinct within each worker and span */
	struct ranges read, baskets;	  /* of all of them */
	bool read_incomplete, baskets_incomplete;
	struct opened_lines opened; /* most read first, sorted by layers_end() */
};

/* Derived values; all may be unknown. */
struct layer_values {
#define FILE_MADE(cell, ...) struct value cell;
#include "rows.def"
};

/* A column of files, in the order of contract/rows.def. */
struct file_cell {
	const char *name, *title; /* title "": not in the page's table */
	enum value_type type;
	enum file_group { FILE_NAMED, FILE_COUNTED, FILE_LAYERED } group;
	enum { FILE_CELL_TEXT, FILE_CELL_NUMBER, FILE_CELL_NS, FILE_CELL_MADE } from;
	size_t at; /* in file_sum, or in layer_values */
};
extern const struct file_cell file_cells[];
extern const size_t file_cell_count;

struct value file_cell_value(const struct file_cell *c, const struct file_sum *f,
			     const struct layer_values *v);

/* Adds the row's numbers from extents, before its size is added. 0 or -ENOMEM. */
int layers_add(struct file_sum *s, const struct file_row *f, bool first);
/* After all rows: sorts the lines that opened it. Numbers unknown for the file are unknown for
 * each. */
void layers_end(struct file_sum *s);
void layers_release(struct file_sum *s);
/* The lines that opened it, as the array `name`. */
void file_opened_json(const struct file_sum *f, struct json *j, const char *name);
void layers_values(const struct file_sum *f, struct layer_values *out);

#endif
