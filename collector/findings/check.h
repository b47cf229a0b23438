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

#include "collector/findings/findings.h"
#include "collector/report/report.h"

enum verdict { CHECK_QUIET, CHECK_FOUND, CHECK_IDLE, CHECK_UNKNOWN };

struct check;

struct remark {
	struct finding f;
	const struct check *check;
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
enum verdict remark_found(struct remark *d, double weight);
enum verdict remark_unknown(struct remark *d, const char *input);

/* Texts for sentences. */
const char *remark_human(struct remark *d, struct value v, enum human as);
const char *remark_percent(struct remark *d, double percent); /* "41 %", "3.2 %" */
const char *remark_name(struct remark *d, const char *name);  /* quoted, short, printable */
const char *remark_upper(struct remark *d, const char *text); /* LZMA */

/* "waiting for storage", "computing" */
const char *class_words(unsigned int id);

/* Is `part` at least `percent` of `whole` and at least `amount`? */
bool reaches(double part, double whole, double percent, double amount);

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
#undef FINDING

#endif
