/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compare.h - compares runs: how long each took, how the time scales, which chunk size is best.
 *
 *	compare_load(&c, names, n, source, why);  compare_judge(&c);
 *	compare_text(...) or compare_json(...)  compare_release(&c);
 *
 * A name is the name or a part of the id of a run in the source's directories, DIR for the last run
 * of another state directory, or DIR:RUN. Only the named runs of each directory are read
 * (runs/read_runs.h).
 *
 * Runs did the same work if they processed the same number of events. Otherwise none is called
 * best, and scaling and chunk sizes are not reported. Events per file and columns are compared
 * as well. A difference is reported, as the same events may come from another copy, or be for
 * another analysis.
 */
#ifndef CREMA_COLLECTOR_COMPARE_COMPARE_H
#define CREMA_COLLECTOR_COMPARE_COMPARE_H

#include "collector/emit/emit_json.h"
#include "collector/metrics/metrics.h"
#include "collector/report/lines.h"

struct compare_dir {
	const char *path;
	const char *const *more; /* read with it as one; NULL: none */
	char text[512];		 /* all of them */
	struct model model;
	struct runs runs;
};

struct compared {
	const char *dir;
	const struct run *run;
	struct facts facts;
	bool facts_built;
	bool fixed;	  /* the same workers from begin to end */
	uint64_t content; /* hash of events by file: equal if they are, except for collisions */
	long cores;	  /* total_cores, rounded; 0: unknown */
	double rate;	  /* events per second of wall time; NAN: unknown */
	struct lines lines;
};

/* A function of user code: time of samples whose innermost line of user code is in it. Files with
 * equal base names are treated as one, as runs may have been started in different folders. */
struct compared_function {
	const char *file, *function; /* file: its base name */
	struct line_sum *sum;	     /* by run */
	double change; /* seconds, difference between the runs with least and with most */
};

/* One line of a curve. */
/* Where threads spend time: a time class, or threads without a task. */
enum { COMPARE_NONE = -1, COMPARE_IDLE = CREMA_TIMES };

struct curve_point {
	const struct compared *run, *base;
	struct value speedup, ideal, efficiency; /* of scaling; ratios */
	int grew; /* the class whose time per event grew most; COMPARE_NONE: none */
	struct value grew_seconds; /* s per million events */
	bool best;
};

struct comparison {
	struct compared *run;
	size_t n;
	struct compare_dir *dirs;
	size_t dir_count;
	char refused[256]; /* why no run is called best; "": one is */
	char content[160]; /* how files or columns differ despite equal events; "": they do not */
	const struct compared *best, *next, *best_per_core;
	struct curve_point *scaling, *chunks; /* by cores; by cores, then events per chunk */
	size_t scaling_count, chunks_count;
	ARRAY(struct compared_function) functions; /* largest change first */
};

/* Numbers of a run in a comparison, in this order: metrics by id, and these. */
struct value compared_waiting(const struct compared *c); /* s: wall time of counted tasks - CPU */
struct value
compared_overhead(const struct compared *c); /* s: of counted tasks that are not chunks */
struct value compared_least_workers(const struct compared *c);
/* A metric's value as a number; NAN if unknown. */
double compared_number(const struct compared *c, const char *id);
/* Seconds of a time class, or of threads without a task. */
double compared_class(const struct compared *c, int class);
/* Whether some tasks' classes were not measured: the time of each class is unknown. */
bool compared_unmeasured(const struct compared *c);
/* Its number in the tables: 1, 2, ... */
size_t compared_number_of(const struct comparison *all, const struct compared *c);

struct compare_source {
	const char *dir;
	const char *const *more; /* read with it as one; NULL-terminated, or NULL */
	uint64_t whole_bytes;	 /* smaller journals are read whole; 0: default */
};
/* 0, or -errno with one line in `why`. */
int compare_load(struct comparison *c, char *const *names, size_t n,
		 const struct compare_source *source, struct buf *why);
int compare_judge(struct comparison *c);
/* Part of compare_judge(), compare_release(), compare_text() and compare_json(). */
int compare_functions(struct comparison *c);
void compare_functions_release(struct comparison *c);
void compare_functions_text(const struct comparison *c, struct sink *s, bool colour);
void compare_functions_json(const struct comparison *c, struct json *j);
/* Half the width of the 95 % interval of a function's seconds. */
double compared_function_error(const struct compared *c, const struct line_sum *s);
void compare_release(struct comparison *c);

void compare_text(const struct comparison *c, struct sink *s, bool colour);
/* name: NULL at the top. */
void compare_json(const struct comparison *c, struct json *j, const char *name);
/* For two runs; errors are in the sink. */
void compare_page(const struct comparison *c, struct sink *s);

#endif
