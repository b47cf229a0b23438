/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print.h - a gathered run as text or JSON.
 *
 * report_json() writes the run; report_tables() prints the usual sections, each a function of its
 * own. All write into a sink, whose error sticks; nothing is kept between calls.
 */
#ifndef CREMA_COLLECTOR_PRINT_PRINT_H
#define CREMA_COLLECTOR_PRINT_PRINT_H

#include "collector/print/render.h"
#include "collector/report/report.h"

void report_json(const struct report *r, struct json *j);
/* dropped.c: runs of which only the totals are left */
void report_dropped_list(const struct model *m, struct grid *g);
void report_dropped_list_json(const struct model *m, struct json *j);
void report_dropped(const struct dropped_run *d, const struct report_request *req, struct sink *s);
void report_tables(const struct report *r, struct sink *s, bool colour);
/* Every metric of contract/metrics.def by its name, and the run's head. */
void report_tables_metrics(const struct report *r, struct sink *s, bool colour);
void report_tables_head(const struct report *r, struct sink *s, bool colour);
void report_tables_timing(const struct facts *f, struct sink *s, bool colour);
/* The counted attempts that took longest. */
void report_tables_slowest(const struct report *r, struct sink *s, bool colour);
void report_tables_numbers(const struct report *r, struct sink *s, bool colour);
void report_tables_rows(const struct report *r, struct sink *s, bool colour);
void report_tables_health(const struct report *r, struct sink *s, bool colour);

#endif
