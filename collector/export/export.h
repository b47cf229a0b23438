/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export.h - all outputs except the tables on the terminal, one line each in export_ways.
 *
 * A way writes the run to the path of its option: a file ("-": standard output) or a folder,
 * which it creates. To add one, add its option in contract/options.def, its function, and its
 * line in export.c.
 */
#ifndef CREMA_COLLECTOR_EXPORT_EXPORT_H
#define CREMA_COLLECTOR_EXPORT_EXPORT_H

#include "collector/report/report.h"
#include "common/options.h"

struct export_way {
	enum option_id option;
	const char *name; /* default path: printf format for the run's id */
	/* 0, or -errno with one line in `why`: what failed, on what, what to do. */
	int (*write)(const struct report *r, const char *path, struct buf *why);
};

extern const struct export_way export_ways[];
extern const size_t export_way_count;

int export_json(const struct report *r, const char *path, struct buf *why);
int export_measurement(const struct report *r, const char *path, struct buf *why);
int export_csv(const struct report *r, const char *path, struct buf *why);
int export_sqlite(const struct report *r, const char *path, struct buf *why);
int export_html(const struct report *r, const char *path, struct buf *why);
int export_collapsed(const struct report *r, const char *path, struct buf *why);
int export_collapsed_bytes(const struct report *r, const char *path, struct buf *why);
int export_pprof(const struct report *r, const char *path, struct buf *why);
int export_perfetto(const struct report *r, const char *path, struct buf *why);

#endif
