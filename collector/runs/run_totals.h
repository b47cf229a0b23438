/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_totals.h - the totals of completed runs.
 *
 * With them, listing runs and dropping old ones reads none of their records.
 *
 * DIR/footers/00000000000000000000-runs.crema is a frame file of RUN_TOTALS, one for each run: what
 * would remain of it if it were dropped (dropped.h), and how many records each of its spans had. A
 * survey (selection.h) uses the totals of a run if the same version of crema wrote them and the id,
 * the spans and the number of records in each are the same. The file is optional: without it the
 * records are read.
 */
#ifndef CREMA_COLLECTOR_RUNS_RUN_TOTALS_H
#define CREMA_COLLECTOR_RUNS_RUN_TOTALS_H

#include "collector/model/dropped.h"
#include "collector/runs/runs.h"

#define RUN_TOTALS_FILE "00000000000000000000-runs.crema"

struct selection;

/* Reads them into m->totals: 0 or -ENOMEM. */
int run_totals_read(struct model *m, const char *dir, const char *const *more);
/* Fills in what the survey found about each run: r->counts, r->first_segment ... and r->totals. 0
 * or -ENOMEM. */
int run_totals_find(struct selection *s, struct runs *runs);
/* Removes it from m->totals: it belongs to the caller, and to the arena. */
struct dropped_run *run_totals_take(struct model *m, const struct dropped_run *totals);
/* The maximum number of attempts of a surveyed run. */
uint64_t run_counted(const struct run *r);

#endif
