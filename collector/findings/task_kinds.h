/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task_kinds.h - counted tasks by kind (Dask's prefix), shortest first, for medians.
 *
 *	kinds_build(&k, run);  for (i = 0; i < k.n; i += kind_count(&k, i)) ...  kinds_release(&k);
 *
 * Asynchronous tasks, tasks of other processes and tasks without a wall time are left out.
 */
#ifndef CREMA_COLLECTOR_FINDINGS_TASK_KINDS_H
#define CREMA_COLLECTOR_FINDINGS_TASK_KINDS_H

#include "collector/runs/runs.h"

struct kinds {
	struct attempt *const *attempts; /* the run's */
	uint32_t *place;		 /* indexes into it; by prefix, then by wall time */
	size_t n;
};

/* 0 or -ENOMEM. */
int kinds_build(struct kinds *k, const struct run *run);
void kinds_release(struct kinds *k);
const struct attempt *kind_at(const struct kinds *k, size_t i);
/* How many tasks of one kind there are from `first` on. */
size_t kind_count(const struct kinds *k, size_t first);
/* Seconds of the middle one of `n` from `first`, the lower of two. */
double kind_median(const struct kinds *k, size_t first, size_t n);
double attempt_seconds(const struct attempt *a);

#endif
