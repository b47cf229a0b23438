/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeline.h - what a run's workers did over time: bytes by layer, seconds by class, in bins.
 *
 *	timeline_build(&t, run);  timeline_value(&t, HISTORY_read_bytes, bin); timeline_release(&t);
 *
 * Numbers come from the workers' totals (history.h), not from task records: bytes count when they
 * were read, however long the task took. Work between two totals of a worker is spread evenly over
 * the bins between them, in whole bytes. `resolution` is the longest such period of the run, about
 * 1.2 s if nothing was lost. A wait counts when it ends. Layers cover the whole worker, including
 * threads without a task; storage bytes are the kernel's count for the process.
 *
 * The first bin begins with the run and the last one ends with it. Bins are as long as needed to
 * have at most TIMELINE_BINS. If the period between two totals overlaps the run, all of its work
 * belongs to the run. So the sum over the bins is, to the byte, the difference of the totals around
 * the run. Two runs that share a worker both include its work while they overlapped, and in the
 * second between them.
 *
 * A bin is unknown if a worker was alive in it for more than TIMELINE_TAIL_SECONDS after its last
 * known totals. One thread.
 */
#ifndef CREMA_COLLECTOR_RUNS_TIMELINE_H
#define CREMA_COLLECTOR_RUNS_TIMELINE_H

#include "collector/runs/runs.h"

#define TIMELINE_BINS 600u
#define TIMELINE_BIN_NS UINT64_C(1000000000) /* the shortest bin; agents send no more often */
#define TIMELINE_TAIL_SECONDS 2.0

struct timeline {
	double start, stop, bin_seconds; /* UTC; NAN without a clock */
	double resolution;		 /* seconds; NAN: no totals in the run */
	size_t bins;			 /* 0: the run has no times */
	uint64_t start_ns, stop_ns, bin_ns;
	uint64_t *sum[HISTORY_SERIES];
	bool *unknown[HISTORY_SERIES];
	double *workers, *running; /* averages over the bin: workers alive, tasks running */
};

/* 0 or -ENOMEM. Release it in any case. */
int timeline_build(struct timeline *t, const struct run *run);
void timeline_release(struct timeline *t);
/* Bytes or nanoseconds. */
struct value timeline_value(const struct timeline *t, enum history_series s, size_t bin);
/* The last bin may be shorter. */
double timeline_bin_width(const struct timeline *t, size_t bin);

#endif
