/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retain_choose.h - chooses the runs and segments to drop.
 *
 *	runs_read_each(&c.m, &c.runs, source, choice_see, &c);  choose_runs(&c);
 *	... the totals of the dropped runs ...  choose_segments(&c);  choice_release(&c);
 *
 * It only needs a survey, and keeps each run's position in the journal. To keep a chosen run after
 * all, set why = NULL before choose_segments().
 */
#ifndef CREMA_COLLECTOR_RETAIN_RETAIN_CHOOSE_H
#define CREMA_COLLECTOR_RETAIN_RETAIN_CHOOSE_H

#include "collector/runs/read_runs.h"
#include "collector/retain/retain.h"

struct candidate {
	size_t first, last; /* segments with records of it */
	const char *why;    /* the option because of which it is dropped; NULL: it stays */
};

struct choice {
	const struct retain_config *config;
	struct model m;
	struct runs runs;
	uint64_t now_ns, current_ns;
	struct candidate *run; /* by their indexes in `runs` */
	size_t n;
	size_t first_kept; /* segments before this one are dropped */
	uint64_t bytes;	   /* of all segments */
	char *over;
};

int choice_see(void *choice, const struct run *r, size_t at, size_t n);
void choose_runs(struct choice *c);
void choose_segments(struct choice *c);
void choice_release(struct choice *c);

#endif
