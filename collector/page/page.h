/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.h - the report as one self-contained HTML file, and the same page live.
 *
 * page_write() writes page.html with everything in it: style, d3's modules, our script, the run's
 * data as JSON. page_live() is the same without data: its script requests `data.json` next to it
 * every few seconds, which page_data() makes. Nothing else is loaded: the policy in the page allows
 * the two scripts and the style by their hashes and, if live, connections to its own server.
 *
 * The data is bounded for any run: series have at most PAGE_BINS bins, lists the N most important
 * rows and their "total", names at most PAGE_NAME_BYTES. All names are hostile: here they are JSON
 * ("<" is escaped, so no element can end), and the script only turns them into text.
 */
#ifndef CREMA_COLLECTOR_PAGE_PAGE_H
#define CREMA_COLLECTOR_PAGE_PAGE_H

#include "collector/page/page_live.h"
#include "collector/report/report.h"

#define PAGE_BINS 240
#define PAGE_LANES 64  /* threads in the task stream */
#define PAGE_BARS 2500 /* tasks in it; with more: the longest ones, and cells for all */
#define PAGE_LONGEST 200
#define PAGE_CELLS 120	 /* of each thread */
#define PAGE_POINTS 1500 /* chunks in the scatter plot */
#define PAGE_COLUMNS 200 /* of trees */
#define PAGE_ROWS 40	 /* of files, datasets, codecs, slowest tasks */
#define PAGE_WORKERS 48	 /* rows of workers */
#define PAGE_STACKS 400
#define PAGE_FLAME_WORKERS 12 /* with a separate part of the stacks; the busiest */
#define PAGE_CURVES 7	      /* workers' memory */
#define PAGE_NAME_BYTES 120

/* The first error is in the sink. */
void page_write(const struct report *r, struct sink *s);

void page_data(const struct report *r, struct json *j);
/* page.html with other data: the script draws a comparison (collector/compare/compare_page.c). */
void page_put(struct sink *s, const struct buf *data);
/* "classes" and "layers": the parts of charts. */
void page_terms(struct json *j);

/* Parts of page_data(). */
void page_tasks(const struct report *r, struct json *j);
void page_stream(const struct report *r, struct json *j);
void page_series(const struct report *r, struct json *j);
void page_workers(const struct report *r, struct json *j);
void page_lines(const struct report *r, struct json *j);
void page_source(const struct report *r, struct json *j);
void page_files(const struct report *r, struct json *j);
/* For attempts: qsort() comparison of pointers to them; wall time from begin to end. */
int page_longest_first(const void *a, const void *b);
int page_earliest_first(const void *a, const void *b);
/* Moves the `most` longest ones to the front, by page_longest_first; the others stay in order after
 * them. 0 or -ENOMEM. Linear in n. */
int page_slowest(const struct attempt **v, size_t n, size_t most);
uint64_t page_task_ns(const struct attempt *a);
/* One of a table's "columns": its head, and how the script formats it; without a title, nothing. */
void page_column(struct json *j, const char *name, const char *title, const char *way);
/* Cut in the middle to PAGE_NAME_BYTES; NULL becomes null. */
void page_name(struct json *j, const char *name, const char *text);
/* Microseconds since the run's start, or of a duration; null if not finite. */
void page_micro(struct json *j, const char *name, double seconds);
/* "classes": seconds by class, of attempts with measured classes; "unclassified", "unmeasured". */
void page_classes(const struct tally *t, struct json *j);

#endif
