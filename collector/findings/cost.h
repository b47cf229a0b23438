/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost.h - how much of a run's wall time each task and each kind of waiting explains.
 *
 * Every moment of the run is divided equally among the tasks running then, so a task that keeps all
 * others waiting explains more of the wall time than one among many. The shares of all tasks add up
 * to the time in which any task ran. A task's share is divided in the ratio of its own time: a wait
 * of 30 % of its time explains 30 % of its share.
 *
 *	costs_build(&c, run);
 *	c.class_s[CREMA_T_gil_wait] ... cost_of(&c, attempt)
 *	costs_release(&c);
 *
 * Tasks without a start or an end, asynchronous ones and tasks of other processes have no share.
 */
#ifndef CREMA_COLLECTOR_FINDINGS_COST_H
#define CREMA_COLLECTOR_FINDINGS_COST_H

#include "collector/metrics/metrics.h"

struct cost {
	const struct attempt *attempt;
	double seconds;
};

struct costs {
	struct cost *v; /* by attempt */
	size_t n;
	double any;	     /* seconds in which any task ran: the sum of all shares */
	double task_seconds; /* wall time of these tasks */
	double class_s[CREMA_TIMES], unclassified;
	/* waits on the sources of baskets: storage, a server, or either */
	double reading;
	double cpu_seconds; /* CPU of these tasks' own threads */
	/* CPU in codecs, including its part of the waits for a core */
	double decompress, compress;
};

/* 0 or -ENOMEM. */
int costs_build(struct costs *c, const struct run *run);
void costs_release(struct costs *c);
/* A task's share of the wall time, seconds; 0 if it has none. */
double cost_of(const struct costs *c, const struct attempt *a);
/* What this much CPU of tasks explains, including its part of the waits for a core. */
double cost_of_cpu(const struct costs *c, double cpu_seconds);
/* What `part` of `whole` (seconds, bytes) explains if the whole explains `cost`; NAN: unknown. */
double cost_part(double part, double whole, double cost);

#endif
