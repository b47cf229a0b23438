/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs_consume.h - spans, or parts of them, that belong together because one consumes the other.
 *
 * Part of runs_build(). A merge belongs to the chunks and merges whose results it takes; what a
 * chunk takes (the processor on its way) belongs to the first chunks that took it; other tasks
 * belong to a run of coffea if all the results that they take are that run's. A span that the user
 * opened is a run: it joins nothing, and only merges of coffea join it, and what its
 * crema.measure() submitted. The producers of a key are those of the consumer's scheduler that
 * began last before it.
 *
 * While a client keeps a result, Dask puts tasks of later calls that have its group's name into its
 * span. Where neither a crema.measure() nor coffea tells whose they are, only spans that began
 * later and made what they take do: nothing is joined, and the report tells it.
 */
#ifndef CREMA_COLLECTOR_RUNS_RUNS_CONSUME_H
#define CREMA_COLLECTOR_RUNS_RUNS_CONSUME_H

#include "collector/runs/runs.h"

#define SPAN_FROM 4u

struct task_span {
	const char *id;
	const struct span_part *part;
	const struct worker *worker; /* of the first attempt */
	struct attempts attempts;    /* by begin; gone once a run has them */
	bool chunks, preprocessing, claimed;
	bool lambdas;	   /* and nothing else */
	bool names_graphs; /* its agents name the graphs of coffea's tasks (span_part.h) */
	double begin, end;
	struct task_span *from[SPAN_FROM]; /* some of those whose results it takes */
	size_t run;			   /* that took it, see group_spans() */
	bool later;			   /* they are of spans that began after it */
	struct task_span *lent_to;	   /* such a one has tasks that take its results */
	struct task_span *leader;	   /* of what belongs together, see span_leader() */
	struct task_span *next;		   /* of the same leader, in a ring */
	struct task_span *scatter;	   /* what these chunks were the first to take */
	bool taken;			   /* is that of some */
	bool users; /* of a leader: one of them is a span that the user opened */
};

struct task_spans { /* by begin */
	struct task_span *v;
	size_t n, cap;
};

/* Each span leads itself before, and is a ring. 0 or -ENOMEM. */
int spans_join(const struct model *m, struct task_spans *spans);
struct task_span *span_leader(struct task_span *s);
/* 0: a whole span */
char span_kind(const struct task_span *s);
bool spans_share_scheduler(const struct task_span *a, const struct task_span *b);

#endif
