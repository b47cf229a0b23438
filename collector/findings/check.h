/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - what the checks share.
 *
 * A check looks at a report and either fills a draft and returns FOUND, or returns QUIET (there is
 * nothing to say), IDLE (the run has nothing of what it looks at) or draft_unknown() (an input is
 * unknown). It never guesses: an unknown input gives no finding. Each number of its sentence is
 * also evidence.
 *
 * Texts of a draft live in the arena of the list; no function here fails, want of memory sticks in
 * the draft.
 */
#ifndef CREMA_COLLECTOR_FINDINGS_CHECK_H
#define CREMA_COLLECTOR_FINDINGS_CHECK_H

#include "collector/findings/findings.h"
#include "collector/report/report_parts.h"

enum verdict { CHECK_QUIET, CHECK_FOUND, CHECK_IDLE, CHECK_UNKNOWN };

struct check;

struct draft {
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
	enum verdict (*make)(const struct report *r, struct draft *d);
};

__attribute__((format(printf, 2, 3))) void draft_say(struct draft *d, const char *fmt, ...);
/* Adds to what was said. */
__attribute__((format(printf, 2, 3))) void draft_say_more(struct draft *d, const char *fmt, ...);
/* Instead of the table's. */
__attribute__((format(printf, 2, 3))) void draft_advise(struct draft *d, const char *fmt, ...);
void draft_see(struct draft *d, const char *name, struct value v, const char *unit);
/* A metric by its id as evidence; returns its value. */
struct value draft_see_metric(struct draft *d, const struct report *r, const char *id,
			      const char *unit);
enum verdict draft_found(struct draft *d, double weight);
enum verdict draft_unknown(struct draft *d, const char *input);

/* Texts for sentences. */
const char *draft_human(struct draft *d, struct value v, enum human as);
const char *draft_percent(struct draft *d, double percent); /* "41 %", "3.2 %" */
const char *draft_name(struct draft *d, const char *name);  /* quoted, short, printable */
const char *draft_upper(struct draft *d, const char *text); /* LZMA */

/* "waiting for storage", "computing" */
const char *class_words(unsigned int id);

/* Is `part` at least `percent` of `whole` and at least `amount`? */
bool reaches(double part, double whole, double percent, double amount);

#define FINDING(id, severity, first, second, looks_at, when, advice)                               \
	enum verdict finding_##id(const struct report *r, struct draft *d);
#include "findings.def"
#undef FINDING

#endif
