/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows.h - contract/rows.def and counters.def as tables, in the order of their enums in ids.h.
 *
 * A row's struct has them as members and, over the same memory, as number[]: code that treats all
 * alike loops over a table. Static, any thread.
 */
#ifndef CREMA_COMMON_ROWS_H
#define CREMA_COMMON_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "ids.h"

enum row_merge { ROW_SUM, ROW_MAX, ROW_LATEST, ROW_LEAST, ROW_MOST };

struct row_number {
	const char *name; /* on the wire */
	enum row_merge merge;
};

/* Bits: what must be true before a number of a file is known (`seen` of rows.def). */
enum row_seen {
	ROW_ALWAYS = 0,
	ROW_LOCAL = 1,
	ROW_PROVEN = 2,
	ROW_SIZED = 4,
	ROW_NO_URING = 8, /* the process does not use io_uring; it may be found later */
	ROW_CALLS = ROW_LOCAL | ROW_NO_URING,
	ROW_CHARGED = ROW_PROVEN | ROW_NO_URING,
	ROW_FOUND = ROW_NO_URING,
};

extern const struct row_number row_file[CREMA_FILE_VALUES];
extern const uint8_t row_file_seen[CREMA_FILE_NUMBERS];
extern const struct row_number row_codec[CREMA_CODEC_NUMBERS];
extern const struct row_number row_server[CREMA_SERVER_NUMBERS];
extern const struct row_number row_section[CREMA_SECTION_NUMBERS];
extern const struct row_number row_column[CREMA_COLUMN_NUMBERS];

/* Source of a column's number: the hook itself, or a time or count of the task, which may be
 * unknown. */
struct row_column_from {
	enum { ROW_HOOK, ROW_TIME, ROW_COUNT } kind;
	uint8_t id;
};
extern const struct row_column_from row_column_from[CREMA_COLUMN_NUMBERS];

/* The columns of a section's own numbers; cell "": it has none. */
struct row_cell {
	const char *cell;
	bool ns; /* seconds in public */
};
extern const struct row_cell row_section_cells[CREMA_SECTION_NUMBERS];
extern const char *const row_gauge_parts[CREMA_GAUGE_STATS];

/* For the worker so far: exact sums. `name` is also the name in /metrics. */
struct row_total {
	const char *name, *help;
	bool of_worker; /* in the report of each worker, not only of the run */
};
struct row_amount {
	const char *part, *name, *help; /* `name` in the map `part` */
};
extern const struct row_total row_totals[CREMA_TOTALS_NUMBERS];
extern const struct row_amount row_amounts[CREMA_TOTALS_AMOUNTS];

/* Numbers of a process or a host at one time: names on the wire. */
extern const char *const row_sample[CREMA_SAMPLE_NUMBERS];
extern const char *const row_host[CREMA_HOST_NUMBERS];

/* contract/counters.def, which explains the columns. */
struct row_time {
	const char *id, *name, *short_name, *head, *words, *label, *part;
	char mark;
};
struct row_count {
	const char *id, *name, *help;
	bool ns; /* seconds in public */
};
/* Bytes of tasks and of threads without a task together. */
struct row_layer {
	const char *id, *name, *label; /* name: of its count */
};
/* Bytes by sampled stack. */
struct row_line_bytes {
	const char *id, *shown, *counted; /* counted: the exact number's name */
	enum crema_time_id wait;
};
extern const struct row_line_bytes row_line_bytes[CREMA_LINES_BYTES];
/* Large allocations by stack. */
struct row_line_large {
	const char *id, *shown;
	enum { LARGE_SUM, LARGE_NOW, LARGE_PEAK } kind;
};
extern const struct row_line_large row_line_large[CREMA_LINES_LARGE];
extern const struct row_time row_times[CREMA_TIMES];
extern const struct row_count row_counts[CREMA_COUNTS];
extern const struct row_layer row_layers[CREMA_LAYERS];

/* Bytes that were read, mapped, received, written and sent, from counts by crema_count_id. */
uint64_t rows_moved_bytes(const uint64_t *count);

#endif
