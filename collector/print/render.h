/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * render.h - a run as text or JSON, from the frame files of a state directory.
 *
 * report_render() reads everything anew, so it may be called while the files are being written.
 * It keeps no state and no descriptor; one thread at a time per request.
 */
#ifndef CREMA_COLLECTOR_PRINT_RENDER_H
#define CREMA_COLLECTOR_PRINT_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"

#define REPORT_LINE_BYTES 1024

/* One line each, "" = nothing to say. */
struct report_notice {
	char torn[REPORT_LINE_BYTES];	  /* damaged or torn files */
	char coffea[REPORT_LINE_BYTES];	  /* what is wrong with --coffea-report */
	char taskvine[REPORT_LINE_BYTES]; /* the same of --taskvine-log */
	bool taskvine_unreadable;
	bool coffea_unreadable; /* it could not be used at all */
};

struct dropped_run;
struct report;
struct sink;

struct report_request {
	const char *dir;
	const char *run;      /* NULL or "last", else an id */
	uint64_t whole_bytes; /* journals below are read whole (model/selection.h); 0: the usual */
	bool list;	      /* the runs instead of one */
	bool json;
	bool all_metrics; /* each metric by its name instead of the tables */
	bool colour;
	const char *taskvine_log;  /* path; NULL: none */
	const char *coffea_report; /* path; NULL: none */
	double client_wall;	   /* seconds; 0: not said */
	double client_start;	   /* UTC; 0: not said. Averages are over the client's block */
	uint64_t now_ns; /* CLOCK_REALTIME to judge silent workers by; 0: their own times only */
	/* Called when much is in `out`: takes all of it and clears it. NULL: all stays in `out`. */
	int (*flush)(struct buf *out, void *arg);
	void *flush_arg;
	struct report_notice *notice; /* may be NULL */
	/* Takes the run instead of text or JSON: 0, or -errno with one line in `why`. NULL: nobody.
	 */
	int (*use)(const struct report *report, void *arg, struct buf *why);
	/* The same for a run of which only the totals are left (report_dropped_json()); NULL, and
	 * asked to use it: -ENODATA. */
	int (*use_dropped)(const struct dropped_run *run, void *arg, struct buf *why);
	void *use_arg;
};

/*
 * 0, or -errno with one line without a newline in `out` that says why: -ENOENT (no such run, or
 * nothing measured yet), what opendir said, -ENOMEM, or the first error of flush.
 */
int report_render(const struct report_request *req, struct buf *out);

/* What is left of a dropped run as JSON; and the line that says why there is no more, -ENODATA. */
void report_dropped_json(const struct dropped_run *d, struct sink *s);
int report_dropped_refuse(const struct dropped_run *d, struct buf *out);

/* Replaces what is in `out` by one line; returns rc. */
__attribute__((format(printf, 3, 4))) int report_fail(struct buf *out, int rc, const char *fmt,
						      ...);

#endif
