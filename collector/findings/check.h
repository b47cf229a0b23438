/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - what the checks share.
 *
 * A check looks at a report and either fills a remark and returns FOUND, or returns QUIET (there is
 * nothing to say), IDLE (the run has nothing of what it looks at) or remark_unknown() (an input is
 * unknown). It never guesses: an unknown input gives no finding. Each number of its sentence is
 * also evidence.
 *
 * Texts of a remark live in the arena of the list; no function here fails, want of memory sticks in
 * the remark.
 */
#ifndef CREMA_COLLECTOR_FINDINGS_CHECK_H
#define CREMA_COLLECTOR_FINDINGS_CHECK_H

#include "collector/findings/cost.h"
#include "collector/findings/findings.h"
#include "collector/findings/task_kinds.h"
#include "collector/report/report.h"

enum verdict { CHECK_QUIET, CHECK_FOUND, CHECK_IDLE, CHECK_UNKNOWN };

struct check;

struct remark {
	struct finding f;
	const struct check *check;
	const struct costs *costs;
	const struct kinds *kinds;
	struct arena *arena;
	const char *unknown;
	bool no_memory;
};

struct check {
	const char *id;
	enum finding_severity severity;
	double first, second;
	const char *advice;
	enum verdict (*make)(const struct report *r, struct remark *d);
};

__attribute__((format(printf, 2, 3))) void remark_say(struct remark *d, const char *fmt, ...);
/* Adds to what was said. */
__attribute__((format(printf, 2, 3))) void remark_say_more(struct remark *d, const char *fmt, ...);
/* Instead of the table's. */
__attribute__((format(printf, 2, 3))) void remark_advise(struct remark *d, const char *fmt, ...);
void remark_see(struct remark *d, const char *name, struct value v, const char *unit);
/* A metric by its id as evidence; returns its value. */
struct value remark_see_metric(struct remark *d, const struct report *r, const char *id,
			       const char *unit);
/* How many seconds of the run's wall time it explains; NAN: unknown. */
void remark_cost(struct remark *d, double seconds);
/* At least so much: the rest cannot be told. */
void remark_cost_least(struct remark *d, double seconds);
/* What the advice would save: seconds of the wall time (NAN: unknown), and a text. */
__attribute__((format(printf, 3, 4))) void remark_gain(struct remark *d, double seconds,
						       const char *fmt, ...);
/* As much as it costs, and no more. */
void remark_gain_most(struct remark *d, double seconds);
/* For this run: a note where nobody can change it. */
void remark_severity(struct remark *d, enum finding_severity severity);
enum verdict remark_found(struct remark *d, double weight);
enum verdict remark_unknown(struct remark *d, const char *input);

/* "; 61 % +- 5 % of it at 'analysis.py:42 process' (312 samples)": the line with most sampled time
 * of a class of time. Nothing below REMARK_SAMPLES. */
#define REMARK_SAMPLES 30u
void remark_line(struct remark *d, const struct report *r, enum crema_time_id id);
/* "; 73 % +- 5 % of the sampled CPU was at 'analysis.py:42 process'", of a line with half of it:
 * where what costs no line of its own comes from. */
void remark_half(struct remark *d, const struct report *r);
/* "; 79 % +- 2 % of it in DataFrame.apply, called at 'analysis.py:42 process'": a habit with at
 * least half of the sampled CPU, and its advice; false: there is none. */
bool remark_habit(struct remark *d, const struct report *r);
/* A line with its share of a class as evidence; returns its name. */
const char *remark_see_line(struct remark *d, const struct line_place *place, double share,
			    uint64_t samples, uint64_t of_samples);
/* "61 % +- 5 %": a share of that number of samples. */
const char *remark_line_share(struct remark *d, double share, uint64_t of_samples);

/* Texts for sentences. */
const char *remark_human(struct remark *d, struct value v, enum human as);
const char *remark_percent(struct remark *d, double percent); /* "41 %", "3.2 %" */
const char *remark_name(struct remark *d, const char *name);  /* quoted, short, printable */
const char *remark_list(struct remark *d, const char *list, const char *name); /* 'a', 'name' */
const char *remark_integer(struct remark *d, double n);	      /* as Python reads it: 50_000 */
const char *remark_upper(struct remark *d, const char *text); /* LZMA */

/* Dataset, file and range of a chunk, as far as it has them: ", dataset 'a', file 'b', entries 0 to
 * 9". `what` begins the evidence's names: "slowest_". */
void remark_place(struct remark *d, const struct attempt *a, const char *what);

/* Whether chunks used the codec for other things than baskets: ROOT has no such codec, or baskets
 * are the smaller part of what it unpacked. */
bool codec_is_beside_baskets(const struct report *r, const struct codec_sum *c);
/* What reading and unpacking baskets explains, seconds. */
double cost_of_baskets(const struct report *r, const struct costs *c);

/* The line of the user's code whose descriptors have most of a number (CREMA_OPENED_N_) over all
 * files: its short name, quoted, the number in *n, and both as evidence. NULL: no line has half of
 * `all`. */
const char *remark_opened_by(struct remark *d, const struct report *r, size_t number, double all,
			     double *n);

/* CPU in the habits that load files, by samples; seconds. 0: none was seen. */
double loading_cpu(const struct lines *l);

/* What tasks that read Python modules took longer than others of their kind, and how many did. */
double import_seconds(const struct kinds *k, size_t *tasks);

/* The host with the most threads for its cores, and both; NULL: no host's cores are known. */
const char *fullest_host(const struct report *r, double *threads, double *cores);

/* Did the run's tasks hardly ever run two at a time, while none waited on a worker? */
bool one_by_one(const struct report *r, const struct remark *d);

/* "waiting for storage", "computing" */
const char *class_words(unsigned int id);

/* Is `part` at least `percent` of `whole` and at least `amount`? */
bool reaches(double part, double whole, double percent, double amount);

/* Evidence of the line whose columns have most of a number (CREMA_COLUMN_N_), at least that much:
 * its name, and the line; NULL: there is none. */
const char *remark_reader(const struct report *r, struct remark *d, size_t number, double least,
			  const struct read_line **line);

/* Workers whose threads without a task read Python modules, over their lives. */
struct fresh {
	size_t workers;
	double cpu, tasks_cpu, import_bytes; /* outside of tasks, of tasks; seconds */
};
/* false: not known. */
bool fresh_workers(const struct report *r, struct fresh *f);

#define FINDING(id, severity, first, second, looks_at, when, advice)                               \
	enum verdict finding_##id(const struct report *r, struct remark *d);
#include "findings.def"

#endif
