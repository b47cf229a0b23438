/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * findings.h - what there is to remark about a run: sentences with numbers, each with its evidence.
 *
 *	struct findings found;
 *	rc = findings_collect(report, &found);		0 or -ENOMEM
 *	for (i = 0; i < found.n; i++) ... found.v[i].sentence ...
 *	findings_release(&found);
 *
 * report_render() has collected them already: report->findings. The list is sorted: highest
 * severity first, then by how much of the run it is about. Texts belong to the list, values of
 * evidence that are text to the run. Sentences hold the run's names shortened and without control
 * characters; they may still hold quotes and HTML: who prints them escapes them. Evidence holds
 * names whole.
 *
 * To add a check: one line in contract/findings.def, one function finding_<id>() in a check_*.c.
 */
#ifndef CREMA_COLLECTOR_FINDINGS_FINDINGS_H
#define CREMA_COLLECTOR_FINDINGS_FINDINGS_H

#include "collector/emit/emit_json.h"
#include "common/table.h"

#define FINDING_EVIDENCE 16

struct report;

enum finding_severity { FINDING_HIGH, FINDING_WARNING, FINDING_NOTE };
#define FINDING_SEVERITIES 3

struct evidence {
	const char *name; /* a metric's id, or what the value is */
	struct value value;
	const char *unit; /* "" = none */
};

struct finding {
	const char *id;
	enum finding_severity severity;
	const char *sentence, *advice;
	double weight; /* share of the run it is about, 0 to 1: orders those of one severity */
	struct evidence evidence[FINDING_EVIDENCE];
	size_t evidence_count;
};

struct finding_gap { /* a check that could not be made */
	const char *id;
	const char *unknown; /* the first input that is unknown */
};

struct findings {
	struct finding *v;
	size_t n, cap;
	size_t checks; /* in the table = made + idle + gap_count */
	size_t made;   /* had all they need */
	size_t idle;   /* had nothing to look at in this run, as chunks or servers */
	size_t idle_cap;
	const char **idle_ids;
	struct finding_gap *gaps;
	size_t gap_count, gap_cap;
	size_t count[FINDING_SEVERITIES];
	struct arena arena;
};

int findings_collect(const struct report *r, struct findings *out);
void findings_release(struct findings *f);
/* "high", "warning", "note" */
const char *finding_severity_name(enum finding_severity severity);

/* Members "findings" and "findings_checked" of the object that is open. */
void findings_json(const struct findings *f, struct json *j);
/* A finding's evidence as the list `name`. */
void finding_evidence_json(const struct finding *one, struct json *j, const char *name);
/* A section of 80 columns. */
void findings_text(const struct findings *f, struct sink *s, bool colour);
/* "nothing to remark: 30 checks were made, ...": what was looked at, as a text of the list's. */
const char *findings_checked(struct findings *f);

#endif
