/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print.h - a gathered run as text or JSON.
 *
 * report_json() writes the run; report_summary() prints the first screen, report_tables() the
 * tables of contract/tables.def, each by a separate function. All write into a sink, whose error
 * sticks; nothing is kept between calls.
 */
#ifndef CREMA_COLLECTOR_PRINT_PRINT_H
#define CREMA_COLLECTOR_PRINT_PRINT_H

#include "collector/print/render.h"
#include "collector/report/report.h"

void report_json(const struct report *r, struct json *j);
/* dropped.c: runs of which only the totals remain */
void report_dropped_list(const struct model *m, struct grid *g, bool named);
void report_dropped_list_json(const struct model *m, struct json *j);
void report_dropped(const struct dropped_run *d, const struct report_request *req, struct sink *s);
/* The run's state, speed, time budget, advice, bytes and completeness on one screen (summary.c).
 * Its last line depends on how the run was requested. */
void report_summary(const struct report *r, const struct report_request *req, struct sink *s,
		    bool colour);
/* The head and these tables (REPORT_TABLE_* bits). */
void report_tables(const struct report *r, uint64_t tables, struct sink *s, bool colour);
/* Every metric of contract/metrics.def by its name, and the run's head. */
void report_tables_metrics(const struct report *r, struct sink *s, bool colour);
/* One line with the run's id, begin and state, and further lines that identify it. */
void report_title(const struct report *r, struct sink *s, bool colour);
void report_tables_head(const struct report *r, struct sink *s, bool colour);
/* Which other runs and calls its numbers include: a paragraph for each, or nothing. */
void report_company(const struct run *r, struct sink *s);

/* One function per table of contract/tables.def. */
#define TABLE(name, help)                                                                          \
	void report_table_##name(const struct report *r, struct sink *s, bool colour);
#include "tables.def"
#undef TABLE

#endif
