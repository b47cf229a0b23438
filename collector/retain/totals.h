/* SPDX-License-Identifier: BSD-3-Clause */
/* totals.h - writes the totals of completed runs (runs/run_totals.h). For a child process. */
#ifndef CREMA_COLLECTOR_RETAIN_TOTALS_H
#define CREMA_COLLECTOR_RETAIN_TOTALS_H

#include "collector/runs/run_totals.h"
#include "collector/runs/read_runs.h"

/* A run counts as completed once none of its tasks has run for this long. */
#define TOTALS_SETTLED_SECONDS 60.0

/* Writes the missing ones, reading each run once: 0 or -errno. */
int totals_update(const struct runs_source *source, uint64_t late_ns);
/* The remains of a run whose attempts are in memory, allocated in the arena of `to`: 0 or
 * -ENOMEM. */
int totals_make(struct model *to, const struct run *r, struct dropped_run *d, const char *why);
/*
 * Reads runs of a survey completely, as many at a time as fit in source->whole_bytes, until late_ns
 * after the first. take() gets each of them once; r NULL: it is gone, or time ran out.
 */
typedef int (*totals_visitor)(void *arg, const struct run *r, size_t place);
int totals_read(const struct runs_source *source, const struct runs *runs, const size_t *places,
		size_t n, uint64_t late_ns, totals_visitor take, void *arg);

#endif
