/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_company.c - finds the other runs on a run's workers, and those whose results its tasks
 * take. */
#include "collector/runs/runs_consume.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* If both ran at the same time, their tasks would be on the same workers. */
static bool share_workers(const struct worker *a, const struct worker *b)
{
	return a && b && workers_share_scheduler(a, b);
}

static void meet(struct run *a, struct run *b, double until)
{
	if (time_or_0(b->start) < until) {
		a->others.concurrent++;
		b->others.concurrent++;
		return;
	}
	a->others.next_start = fmin(a->others.next_start, b->start);
	b->others.last_until = fmax(b->others.last_until, until);
}

int runs_tell_company(struct runs *runs)
{
	const struct worker **of = calloc(runs->n ? runs->n : 1, sizeof(*of));
	double until;
	size_t i, k;

	if (!of)
		return -ENOMEM;
	for (i = 0; i < runs->n; i++) {
		/* without Dask all numbers of a worker belong to its tasks */
		of[i] = runs->v[i].plain ? NULL : runs->v[i].attempts.v[0]->worker;
		if (of[i] && run_scheduled(&runs->v[i]))
			of[i] = run_scheduled(&runs->v[i]);
		runs->v[i].others.next_start = (double)INFINITY;
	}
	for (i = 0; i < runs->n; i++) {
		until = runs->v[i].running ? (double)INFINITY : run_until(&runs->v[i]);
		for (k = i + 1; k < runs->n; k++) {
			if (!share_workers(of[i], of[k]))
				continue;
			meet(&runs->v[i], &runs->v[k], until);
			if (time_or_0(runs->v[k].start) >= until)
				break;
		}
	}
	free(of);
	return 0;
}

size_t run_concurrent(const struct run *r)
{
	return r->others.concurrent + (r->from < r->others.last_until) +
	       (r->to > r->others.next_start);
}

static void take_from(struct run *r, const struct run *from)
{
	struct run_others *o = &r->others;
	size_t i;

	for (i = 0; i < o->sources && i < RUN_OTHERS; i++) {
		if (!strcmp(o->source_ids[i], from->id))
			return;
	}
	if (i < RUN_OTHERS)
		memcpy(o->source_ids[i], from->id, sizeof(from->id));
	o->sources = i + 1; /* beyond the ids that are stored: at least one more */
}

void runs_tell_sources(struct runs *runs, const struct task_spans *spans)
{
	const struct task_span *s;
	size_t i;

	for (s = spans->v; s < spans->v + spans->n; s++) {
		for (i = 0; i < SPAN_FROM && s->from[i]; i++) {
			if (s->run != s->from[i]->run)
				take_from(&runs->v[s->run], &runs->v[s->from[i]->run]);
		}
		if (s->later)
			runs->v[s->run].others.later = true;
		if (s->lent_to && s->lent_to->run != s->run)
			memcpy(runs->v[s->run].others.lent_to, runs->v[s->lent_to->run].id,
			       RUN_ID_BYTES);
	}
}
