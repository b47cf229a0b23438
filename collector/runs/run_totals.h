/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_totals.h - the totals of runs that are over, so that the list of runs and dropping old ones
 * read none of their records.
 *
 * DIR/footers/00000000000000000000-runs.crema is a frame file of RUN_TOTALS, one for each run: what
 * would be left of it if it were dropped (dropped.h), and how many records each of its spans had.
 * A survey (selection.h) believes the totals that its own version of crema wrote of a run with the
 * same id, the same spans and as many records in each. Nothing depends on the file: without it the
 * records are read.
 */
#ifndef CREMA_COLLECTOR_RUNS_RUN_TOTALS_H
#define CREMA_COLLECTOR_RUNS_RUN_TOTALS_H

#include "collector/model/dropped.h"
#include "collector/runs/runs.h"

#define RUN_TOTALS_FILE "00000000000000000000-runs.crema"

struct selection;

/* Into m->totals: 0 or -ENOMEM. */
int run_totals_read(struct model *m, const char *dir, const char *const *more);
/* What the survey knows of each run: r->counts, r->first_segment ... and r->totals. 0 or -ENOMEM.
 */
int run_totals_find(struct selection *s, struct runs *runs);
/* Takes them out of m->totals: they are the caller's, and the arena's. */
struct dropped_run *run_totals_take(struct model *m, const struct dropped_run *totals);
/* How many attempts a surveyed run has at most. */
uint64_t run_counted(const struct run *r);

#endif
