/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * render.h - a run as text or JSON, from the frame files of a state directory.
 *
 * report_render() reads all files each time, so it may be called while they are being written. It
 * keeps no state and no descriptor. One thread at a time per request.
 */
#ifndef CREMA_COLLECTOR_PRINT_RENDER_H
#define CREMA_COLLECTOR_PRINT_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"

#define REPORT_LINE_BYTES 1024

/* One line each, "": nothing. */
struct report_notice {
	char torn[REPORT_LINE_BYTES];	  /* damaged or torn files */
	char coffea[REPORT_LINE_BYTES];	  /* what is wrong with --coffea-report */
	char taskvine[REPORT_LINE_BYTES]; /* the same for --taskvine-log */
	char client[REPORT_LINE_BYTES];	  /* the same for --client-record */
	bool taskvine_unreadable;
	bool client_unreadable;
	bool coffea_unreadable; /* it could not be used at all */
};

enum report_table {
#define TABLE(name, help) REPORT_TABLE_##name,
#include "tables.def"
#undef TABLE
	REPORT_TABLES
};
#define REPORT_ALL_TABLES ((1ull << REPORT_TABLES) - 1)

struct report_table_name {
	const char *name, *help;
};
extern const struct report_table_name report_table_names[REPORT_TABLES];
/* Bits for "files,codecs" or "all"; 0, with one line in `why`, for an unknown name. */
uint64_t report_tables_named(const char *list, char *why, size_t size);

struct dropped_run;
struct model;
struct report;
struct sink;

struct report_request {
	const char *dir;
	const char *const *more; /* read with it as one; NULL-terminated, or NULL */
	const char *run;	 /* NULL or "last", else an id or name */
	uint64_t whole_bytes; /* smaller journals are read whole (runs/read_runs.h); 0: default */
	bool usual_dir;	      /* the user named no directory */
	bool pass_over;	      /* leaves out what cannot be read of several journals, with a note */
	bool list;	      /* list all runs instead of one */
	bool json;
	bool all_metrics;   /* each metric by its name instead of the tables */
	uint64_t tables;    /* bits 1 << REPORT_TABLE_*; 0: the first screen */
	unsigned int width; /* columns of the terminal; 0: 80 */
	bool colour;
	const char *taskvine_log;  /* path; NULL: none */
	const char *coffea_report; /* path; NULL: none */
	const char *client_record; /* path; NULL: that of `crema run`, if there is one */
	double client_wall;	   /* seconds; 0: unknown */
	double client_start;	   /* UTC; 0: unknown. Averages are over the client's block */
	uint64_t now_ns; /* CLOCK_REALTIME for judging silent workers; 0: only their own times */
	/* Called when `out` is large: takes all of it and clears it. NULL: all stays in `out`. */
	int (*flush)(struct buf *out, void *arg);
	void *flush_arg;
	struct report_notice *notice; /* may be NULL */
	/* Takes the run instead of text or JSON: 0, or -errno with one line in `why`. May be
	 * NULL. */
	int (*use)(const struct report *report, void *arg, struct buf *why);
	/* The same for a run of which only the totals remain (report_dropped_json()); if NULL while
	 * `use` is set: -ENODATA. */
	int (*use_dropped)(const struct dropped_run *run, void *arg, struct buf *why);
	void *use_arg;
};

/*
 * 0, or -errno with one line without a newline in `out`: -ENOENT (no such run, or nothing measured
 * yet), the error of opendir, -ENOMEM, or the first error of flush.
 */
int report_render(const struct report_request *req, struct buf *out);

/* The remains of a dropped run as JSON; and the line that explains why there is no more,
 * -ENODATA. */
void report_dropped_json(const struct dropped_run *d, struct sink *s);
int report_dropped_refuse(const struct dropped_run *d, struct buf *out);

/* Why `which` (NULL: the last) is not exactly one run of `dir` (dirs_text()): -ENOENT, or -ENODATA
 * if it was dropped. */
int report_no_run(const struct model *m, const char *which, const char *dir, struct buf *out);

/* Replaces `out` by one line; returns rc. */
__attribute__((format(printf, 3, 4))) int report_fail(struct buf *out, int rc, const char *fmt,
						      ...);

#endif
