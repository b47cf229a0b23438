/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * budget.h - splits the threads' time: threads x wall time = CPU + waits + unclassified + idle.
 *
 * It covers all attempts, counted or not, because all of them kept threads busy. The parts add up
 * to thread_seconds. An unknown part (NAN) is 0 in that sum, and its time is in unclassified.
 * Asynchronous tasks and tasks of other processes keep threads from other tasks, and nothing but
 * their wall time is known: it is a part of its own, and the other parts do not include it. If the
 * tasks' time exceeds the threads' time (a worker that was seen late), the tasks' time is the whole
 * and idle is 0.
 */
#ifndef CREMA_COLLECTOR_METRICS_BUDGET_H
#define CREMA_COLLECTOR_METRICS_BUDGET_H

#include "collector/metrics/metrics.h"

struct budget {
	double wall_seconds, threads; /* of the run; threads: average */
	double thread_seconds;	      /* their product: the whole */
	double class_s[CREMA_TIMES];  /* cpu and the waits; NAN: unknown */
	double unclassified, unmeasured, idle;
};

/* False: the wall time, the threads or the time of tasks is unknown. */
bool budget_build(struct budget *b, const struct facts *f);
/* {"wall_seconds", "threads", "thread_seconds", "cpu", ..., "unclassified", "unmeasured", "idle"}
 * or null. */
void budget_emit(const struct facts *f, const char *name, struct json *j);

#endif
