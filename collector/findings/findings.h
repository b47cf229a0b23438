/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * findings.h - the findings of a run: sentences with numbers, each with its evidence.
 *
 *	struct findings found;
 *	rc = findings_collect(report, &found);		0 or -ENOMEM
 *	for (i = 0; i < found.n; i++) ... found.v[i].sentence ...
 *	findings_release(&found);
 *
 * report_render() has collected them already: report->findings. The list is sorted: highest
 * severity first, then by the seconds of the run's wall time that they explain. Texts belong to
 * the list; values of evidence that are text belong to the run. Sentences contain the run's names
 * shortened and without control characters, but possibly with quotes and HTML: the caller that
 * prints them escapes them. Evidence contains whole names.
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
	const char *name; /* a metric's id, or a description of the value */
	struct value value;
	const char *unit; /* "": none */
};

struct finding {
	const char *id;
	enum finding_severity severity;
	const char *sentence, *advice;
	double cost_s; /* seconds of the run's wall time that it explains (cost.h); NAN: unknown */
	double rank_s; /* its sort key: cost_s, or more (stand_for() in findings.c) */
	double of_s;   /* the run's wall time; NAN: unknown */
	bool cost_is_least; /* it explains more than that by an unknown amount */
	const char *gain;   /* what its advice would save, from this run's numbers; NULL: unknown */
	double gain_s;	    /* the same as seconds of the wall time; NAN: unknown */
	const char *apart;  /* id of a finding that is not its cause here; NULL: none */
	bool beyond;	    /* a note in this run, since it cannot be changed */
	double weight; /* share of the run that it concerns, 0 to 1: used if the cost is unknown */
	const char *left_out_for; /* id of the finding reported instead; NULL: it is reported */
	struct evidence evidence[FINDING_EVIDENCE];
	size_t evidence_count;
};

struct finding_gap { /* a check that could not be made */
	const char *id;
	const char *unknown; /* the first unknown input */
};

struct findings {
	struct finding *v;
	size_t n, cap;
	size_t left_out; /* further ones at the end of v, replaced by a more specific one */
	size_t checks;	 /* in the table = made + idle + gap_count */
	size_t made;	 /* had all inputs */
	size_t idle;	 /* had no data to check in this run, such as chunks or servers */
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

/* Writes "findings", "findings_left_out" and "findings_checked" into the open object. */
void findings_json(const struct findings *f, struct json *j);
/* "costs about 4.0 of 4.6 s; the advice saves about 3 s", "costs at least ...", "costs less than
 * 0.1 of 4.6 s"; "" if unknown. */
#define FINDING_COST_BYTES 160
const char *finding_cost(const struct finding *f, char *out, size_t size);
/* Writes cost (as text), cost_seconds, cost_at_least, of_seconds, gain and gain_seconds into the
 * open object. */
/* All but its evidence. cost: buffer for a text, valid as long as the cells are used. */
void finding_cells(const struct finding *one, char cost[FINDING_COST_BYTES], cell_put put,
		   void *arg);
/* A finding's evidence as the list `name`. */
void finding_evidence_json(const struct finding *one, struct json *j, const char *name);
/* A section of 80 columns. */
void findings_text(const struct findings *f, struct sink *s, bool colour);
/* The `most` most important ones (the first note if there are only notes) in at most `lines` lines,
 * including the title. The most important one is always included: if it does not fit, the later
 * clauses of its sentence are dropped first, then its cost, then its advice. */
void findings_brief(const struct findings *f, size_t most, size_t lines, struct sink *s,
		    bool colour);
/* "no findings: 30 checks were made, ...": the checks made, as a text owned by the list. */
const char *findings_checked(struct findings *f);

#endif
