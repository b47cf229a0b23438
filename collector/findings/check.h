/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - shared parts of the checks.
 *
 * A check examines a report. It fills in a struct draft and returns FOUND, or returns QUIET (no
 * finding), IDLE (the run has no such data) or draft_unknown() (an input is unknown). It never
 * guesses: with an unknown input there is no finding. Each number in its sentence is also evidence.
 *
 * Texts of a draft are in the arena of the list. No function here fails: lack of memory sticks in
 * the draft.
 */
#ifndef CREMA_COLLECTOR_FINDINGS_CHECK_H
#define CREMA_COLLECTOR_FINDINGS_CHECK_H

#include "collector/findings/cost.h"
#include "collector/findings/findings.h"
#include "collector/findings/task_kinds.h"
#include "collector/report/report.h"

enum verdict { CHECK_QUIET, CHECK_FOUND, CHECK_IDLE, CHECK_UNKNOWN };

struct check;

/* A finding under construction. */
struct draft {
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
	enum verdict (*make)(const struct report *r, struct draft *d);
};

__attribute__((format(printf, 2, 3))) void draft_sentence(struct draft *d, const char *fmt, ...);
/* Appends to the sentence. */
__attribute__((format(printf, 2, 3))) void draft_sentence_more(struct draft *d, const char *fmt,
							       ...);
/* Replaces the table's advice. */
__attribute__((format(printf, 2, 3))) void draft_advise(struct draft *d, const char *fmt, ...);
void draft_evidence(struct draft *d, const char *name, struct value v, const char *unit);
/* Adds a metric by its id as evidence; returns its value. */
struct value draft_evidence_metric(struct draft *d, const struct report *r, const char *id,
				   const char *unit);
/* Sets how many seconds of the run's wall time it explains; NAN: unknown. */
void draft_cost(struct draft *d, double seconds);
/* At least this many seconds: the rest is unknown. */
void draft_cost_least(struct draft *d, double seconds);
/* Sets what the advice would save: seconds of the wall time (NAN: unknown), and a text. */
__attribute__((format(printf, 3, 4))) void draft_gain(struct draft *d, double seconds,
						      const char *fmt, ...);
/* A gain of at most these seconds. */
void draft_gain_most(struct draft *d, double seconds);
/* Sets the severity for this run: a note if it cannot be changed. */
void draft_severity(struct draft *d, enum finding_severity severity);
enum verdict draft_found(struct draft *d, double weight);
enum verdict draft_unknown(struct draft *d, const char *input);

/* "; 'host:1094' answered 40 requests in 2.5 ms on average": the server with the longest time of
 * answers in total, and what to do if it computes them. */
void draft_server(struct draft *d, const struct report *r);

/* "; 61 % +- 5 % of it at 'analysis.py:42 process' (312 samples)": the line with most sampled time
 * of a class of time. It adds nothing for fewer than REMARK_SAMPLES samples. */
#define REMARK_SAMPLES 30u
void draft_line(struct draft *d, const struct report *r, enum crema_time_id id);
/* "; the longest wait was for a lock held at 'analysis.py:88 merge' (14 of 16 samples)", if known.
 */
void draft_holder(struct draft *d, const struct blocking_row *row);
/* ", at 'analysis.py:42 process'", and its lock's holder. */
void draft_waiting_line(struct draft *d, const struct blocking_row *row);
/* "; 73 % +- 5 % of the sampled CPU was at 'analysis.py:42 process'", for a line with at least half
 * of it: it locates costs that have no line themselves. */
void draft_half(struct draft *d, const struct report *r);
/* "; 79 % +- 2 % of it in DataFrame.apply, called at 'analysis.py:42 process'": adds a habit with
 * at least half of the sampled CPU, and its advice; false: there is none. */
bool draft_habit(struct draft *d, const struct report *r);
/* Adds a line with its share of a class as evidence; returns its name. */
const char *draft_evidence_line(struct draft *d, const struct line_place *place, double share,
				uint64_t samples, uint64_t of_samples);
/* Adds a line and its file ("<evidence>_file") as evidence; returns "analysis.py:42 process". */
const char *draft_code_line(struct draft *d, const char *evidence, const struct line_place *place);
/* "61 % +- 5 %": a share of that number of samples. */
const char *draft_line_share(struct draft *d, double share, uint64_t of_samples);

/* ", and threads of these workers that belong to no task used 1.4 s of CPU meanwhile", if that is
 * at least half of what tasks waited. */
bool draft_libraries(struct draft *d, const struct report *r, double waited_s);

/* Texts for sentences. */
const char *draft_human(struct draft *d, struct value v, enum human as);
const char *draft_percent(struct draft *d, double percent); /* "41 %", "3.2 %" */
const char *draft_name(struct draft *d, const char *name);  /* quoted, shortened, printable */
const char *draft_list(struct draft *d, const char *list, const char *name); /* 'a', 'name' */
const char *draft_integer(struct draft *d, double n);	    /* in Python's notation: 50_000 */
const char *draft_upper(struct draft *d, const char *text); /* LZMA */

/* Dataset, file and range of a chunk, as far as known: ", dataset 'a', file 'b', entries 0 to 9".
 * `what` is the prefix of the evidence's names: "slowest_". */
void draft_place(struct draft *d, const struct attempt *a, const char *what);

/* Whether chunks used the codec for other data than baskets: ROOT does not have the codec, or
 * baskets are the smaller part of its output. */
bool codec_is_beside_baskets(const struct report *r, const struct codec_sum *c);
/* What reading and decompressing baskets explains, seconds. */
double cost_of_baskets(const struct report *r, const struct costs *c);

/* The line of user code whose descriptors have most of a number (CREMA_OPENED_N_) over all
 * files: its short name, quoted, and the number in *n. Adds both as evidence. NULL: no line
 * has half of `all`. */
const char *draft_opened_by(struct draft *d, const struct report *r, size_t number, double all,
			    double *n);

/* CPU in habits that load files, from samples, in seconds; 0: none seen. */
double loading_cpu(const struct lines *l);

/* True if it read Python modules, as the first task of a fresh worker does. */
bool attempt_imports(const struct attempt *a);
/* Extra time of tasks that read Python modules over others of their kind, and their number. */
double import_seconds(const struct kinds *k, size_t *tasks);

/* The host that had the most threads per core at one time, the first of equal ones by name, and
 * both numbers; NULL: no host's cores are known. */
const char *fullest_host(const struct report *r, double *threads, double *cores);

/* Whether the run's tasks hardly ever ran two at a time, while none waited on a worker. */
bool one_by_one(const struct report *r, const struct draft *d);

/* "waiting for storage", "computing" */
const char *class_words(unsigned int id);

/* Whether `part` is at least `percent` of `whole` and at least `amount`. */
bool reaches(double part, double whole, double percent, double amount);

/* Adds evidence of the line whose columns have most of a number (CREMA_COLUMN_N_), and at least
 * that much: its name, and the line; NULL: there is none. */
const char *draft_reader(const struct report *r, struct draft *d, size_t number, double least,
			 const struct read_line **line);

/* Workers whose threads without a task read Python modules, from shortly before the run to its end.
 */
struct fresh {
	size_t workers;
	double cpu, tasks_cpu, import_bytes; /* outside of tasks, of tasks; seconds */
};
/* False: unknown. */
bool fresh_workers(const struct report *r, struct fresh *f);
/* CPU of the workers' child processes that ended during the run, s; NAN: unknown. At least: those
 * of the time before a worker's first totals in the run, about a second, are left out. */
double children_cpu_s(const struct report *r);

#define FINDING(id, severity, first, second, looks_at, when, advice)                               \
	enum verdict finding_##id(const struct report *r, struct draft *d);
#include "findings.def"

#endif
