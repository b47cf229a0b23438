/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs_consume.h - joins spans, or parts of them, if one consumes the results of the other.
 *
 * Part of runs_build(). A merge belongs to the chunks and merges whose results it takes. What a
 * chunk takes (the transfer of the processor) belongs to the first chunks that took it. Other tasks
 * belong to a run of coffea if all results that they take are that run's. A span that the user
 * opened is a run: it joins nothing. Only merges of coffea and what its crema.measure() submitted
 * join it; merges that Dask put into another span of the user leave that one only if nothing that
 * they take was made there. The producers of a key are those of the consumer's scheduler that began
 * last before it.
 *
 * While a client keeps a result, Dask puts tasks of later calls that have its group's name into its
 * span. If neither a crema.measure() nor coffea identifies their call, the only evidence is that
 * spans that began later made what they take. Then nothing is joined, and the report mentions it.
 */
#ifndef CREMA_COLLECTOR_RUNS_RUNS_CONSUME_H
#define CREMA_COLLECTOR_RUNS_RUNS_CONSUME_H

#include "collector/runs/runs.h"

#define SPAN_FROM 4u

struct task_span {
	const char *id;
	const struct span_part *part;
	const struct worker *worker; /* of the first attempt */
	struct attempts attempts;    /* sorted by begin; moved away once a run has them */
	bool chunks, preprocessing, claimed;
	bool lambdas;	   /* and nothing else */
	bool names_graphs; /* its agents name the graphs of coffea's tasks (span_part.h) */
	double begin, end;
	struct task_span *from[SPAN_FROM]; /* some of the spans whose results it takes */
	size_t run;			   /* that has it, see group_spans() */
	bool later;			   /* spans in `from` began after it */
	struct task_span *lent_to;	   /* an earlier span with tasks that take its results */
	struct task_span *leader;  /* of the spans that belong together, see span_leader() */
	struct task_span *next;	   /* with the same leader, in a ring */
	struct task_span *scatter; /* the transfer that these chunks were the first to take */
	bool taken;		   /* it is the `scatter` of some chunks */
	bool users;		   /* of a leader: the user opened one of the spans */
};

struct task_spans { /* sorted by begin */
	struct task_span *v;
	size_t n, cap;
};

/* On entry each span is its own leader, and a ring. 0 or -ENOMEM. */
int spans_join(const struct model *m, struct task_spans *spans);
struct task_span *span_leader(struct task_span *s);
/* 0: a whole span */
char span_kind(const struct task_span *s);
bool spans_share_scheduler(const struct task_span *a, const struct task_span *b);

#endif
