/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_settle.c - derives a run's times, name and workers from its attempts. */
#include "collector/runs/runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int attempts_by_begin(const void *pa, const void *pb)
{
	const struct attempt *a = *(struct attempt *const *)pa, *b = *(struct attempt *const *)pb;
	double x = time_or_0(attempt_begin(a)), y = time_or_0(attempt_begin(b));
	int c;

	if (x != y)
		return x < y ? -1 : 1;
	c = memcmp(a->worker->id, b->worker->id, sizeof(a->worker->id));
	if (c)
		return c;
	return a->attempt < b->attempt ? -1 : a->attempt > b->attempt;
}

void attempts_sort(struct attempt **v, size_t n)
{
	size_t i;

	for (i = 1; i < n && attempts_by_begin(&v[i - 1], &v[i]) <= 0; i++)
		;
	if (i < n) /* those of one span are sorted already */
		qsort(v, n, sizeof(*v), attempts_by_begin);
}

static void name_run(struct run *r)
{
	const struct attempt *first = r->attempts.v[0];
	uint64_t hash;
	time_t t = (time_t)time_or_0(r->start);
	struct tm tm;
	char text[20] = "00000000-000000";

	if (r->first_span)
		hash = hash_bytes(7, r->first_span, strlen(r->first_span));
	else
		hash = hash_pair(hash_bytes(7, first->worker->id, sizeof(first->worker->id)),
				 first->attempt);
	if (gmtime_r(&t, &tm))
		strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm);
	snprintf(r->id, sizeof(r->id), "%.15s-%04x", text, (unsigned int)(hash & 0xffff));
}

/* Those that ran one of its tasks, whatever they report, and those that could have. */
static int find_workers(struct run *r)
{
	const struct worker *scheduled = run_scheduled(r);
	struct model *m = r->model;
	bool *used = calloc(m->workers.n + 1, sizeof(*used));
	struct worker **at;
	size_t i;
	int rc = 0;

	if (!used)
		return -ENOMEM;
	for (i = 0; i < r->attempts.n; i++)
		used[r->attempts.v[i]->worker->place] = true;
	r->workers.n = 0;
	for (i = 0; i < m->workers.n && !rc; i++) {
		if (!used[i] && !run_has_worker(r, m->workers.v[i], scheduled))
			continue;
		at = ARRAY_NEW(&r->workers);
		if (at)
			*at = m->workers.v[i];
		else
			rc = -ENOMEM;
	}
	free(used);
	return rc;
}

bool run_take_block(struct run *r, double from, double to)
{
	if (!(from <= r->start + RUN_BLOCK_SECONDS) || !(to >= r->stop - RUN_BLOCK_SECONDS))
		return false;
	r->from = fmin(from, r->start);
	r->to = fmax(to, r->stop);
	if (find_workers(r))
		r->model->error = -ENOMEM;
	return true;
}

/* The name with which its workers were started. */
static const char *given_name(const struct run *r)
{
	const char *name = r->attempts.n ? r->attempts.v[0]->worker->run_name : NULL, *other;
	size_t i;

	for (i = 1; i < r->attempts.n && name; i++) {
		other = r->attempts.v[i]->worker->run_name;
		if (!other || strcmp(other, name) != 0)
			return NULL;
	}
	return name;
}

int run_settle(struct run *r)
{
	struct attempt *a;
	uint64_t first = UINT64_MAX, last = 0;
	size_t i;

	attempts_sort(r->attempts.v, r->attempts.n);
	r->start = r->stop = (double)NAN;
	r->running = 0;
	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		r->start = fmin(r->start, attempt_begin(a)); /* fmin and fmax ignore NAN */
		r->stop = fmax(r->stop, fmax(attempt_end(a), attempt_begin(a)));
		first = a->begin_ns && a->begin_ns < first ? a->begin_ns : first;
		last = a->end_ns > last ? a->end_ns : last;
		r->running += a->state == ATTEMPT_RUNNING;
	}
	r->wall = first <= last ? (double)(last - first) / 1e9 : (double)NAN;
	r->from = r->start;
	r->to = r->stop;
	name_run(r);
	r->name = given_name(r);
	if (find_workers(r))
		return -ENOMEM;
	return run_count_attempts(r);
}
