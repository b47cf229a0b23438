/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * budget.h - where the threads' time went: threads x wall time = CPU + waits + unclassified + idle.
 *
 * Of all attempts, counted or not, because all of them kept threads busy. The parts add up to
 * thread_seconds; a part that is unknown (NAN) is 0 in that sum and its time is in unclassified.
 * Asynchronous tasks and tasks of other processes hold no thread and are not in it: their threads
 * are idle. Where tasks took longer than there were threads (a worker that was seen late), their
 * time is the whole and nothing was idle.
 */
#ifndef CREMA_COLLECTOR_METRICS_BUDGET_H
#define CREMA_COLLECTOR_METRICS_BUDGET_H

#include "collector/metrics/metrics.h"

struct budget {
	double wall_seconds, threads; /* of the run; threads: on average */
	double thread_seconds;	      /* their product: the whole */
	double class_s[CREMA_TIMES];  /* cpu and the waits; NAN: unknown */
	double unclassified, idle;
};

/* false: the wall time, the threads or the time of tasks are unknown. */
bool budget_build(struct budget *b, const struct facts *f);
/* {"wall_seconds", "threads", "thread_seconds", "cpu", ..., "unclassified", "idle"} or null. */
void budget_emit(const struct facts *f, const char *name, struct json *j);

#endif
