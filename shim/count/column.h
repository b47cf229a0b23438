/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * column.h - columns of trees and RNTuples, and what tasks spend on reading each.
 *
 *	v = column_enter(column_row(task, name, tree, 0)); ... column_leave(v, &asked);
 *
 * What the task counts between the two belongs to the column, including pool threads' work that
 * ends meanwhile (segments are cut at both ends). Exclusive: what is read while another column is
 * being read belongs to the inner one alone. A thread that works for a task that runs elsewhere
 * cannot determine its part of the task's numbers: the row gets CREMA_COLUMN_UNSURE, and its times
 * and counts are unknown.
 *
 * Rows are found by span, dataset, tree, name and flags. When the table is full, a row that is not
 * open and whose numbers are safe is reused. What finds no row goes into one row for each span.
 *
 * The caller holds the GIL, which is the only lock; armed process only.
 */
#ifndef CREMA_SHIM_COUNT_COLUMN_H
#define CREMA_SHIM_COUNT_COLUMN_H

#include "shim/count/thread.h"

struct column_visit;

/* What uproot requested from a file, cumulative or as a difference; known 0: uproot does not report
 * it. */
struct column_asked {
	int known;
	uint64_t requests, ranges, bytes;
};

/* name, tree: string ids; name 0 with flags 0: what did not fit. Never NULL. */
struct crema_column *column_row(const struct crema_task *task, uint32_t name, uint32_t tree,
				uint32_t flags);
void column_add(struct crema_column *row, enum crema_column_number number, uint64_t n);
void column_basket(struct crema_column *row, uint64_t bytes, uint64_t raw_bytes);

/* A line of the user's own code requests it; file 0: unknown file. */
void column_asked_by(struct crema_column *row, const struct crema_line *line);

/* flag: CREMA_COLUMN_UN...; some of its numbers are unknown. */
void column_unsure(struct crema_column *row, uint32_t flag);

/* NULL: not measured, because the same column is already open or (counted) too many are. */
struct column_visit *column_enter(struct crema_column *row);
/* asked: since column_enter(). */
void column_leave(struct column_visit *v, const struct column_asked *asked);
/* The column that this thread reads; NULL: none. */
struct crema_column *column_current(void);

/* A forked child: nothing is open. */
void column_forget(void);

#endif
