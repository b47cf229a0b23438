/* SPDX-License-Identifier: BSD-3-Clause */
/* cost.c - divides the wall time of a run among its tasks. */
#include "collector/findings/cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct edge {
	uint64_t ns;
	int step; /* 1: the task starts, -1: it ends */
	size_t task;
};

static bool has_share(const struct attempt *a)
{
	return a->begin_ns && a->end_ns > a->begin_ns &&
	       !(a->flags & (CREMA_TASK_ASYNC | CREMA_TASK_ELSEWHERE));
}

static int by_time(const void *pa, const void *pb)
{
	const struct edge *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->step - b->step;
}

static int by_attempt(const void *pa, const void *pb)
{
	const struct cost *a = pa, *b = pb;

	return a->attempt < b->attempt ? -1 : a->attempt > b->attempt;
}

/* A clock that runs at 1 / n while n tasks run: a task's share is what passes on it. */
static void divide(struct costs *c, const struct edge *edges, size_t n)
{
	uint64_t now = n ? edges[0].ns : 0;
	double clock = 0;
	long running = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		double dt = (double)(edges[i].ns - now) / 1e9;

		if (running > 0) {
			clock += dt / (double)running;
			c->any += dt;
		}
		now = edges[i].ns;
		running += edges[i].step;
		c->v[edges[i].task].seconds -= edges[i].step * clock;
	}
}

/* Seconds of the task's wall time that its CPU in codecs took: pool threads may have used more. */
static double computing(const struct classes *k, enum crema_count_id id, double wall)
{
	double codec = value_number(count_of(&k->detail.c, id), NULL) / 1e9;
	double cpu = k->seconds[CREMA_T_cpu];
	double busy = cpu > 0 ? (cpu + k->seconds[CREMA_T_runqueue]) / cpu : 1;

	return fmin(codec * busy, wall);
}

/* By class: a task's share as its own time was. */
static void classify(struct costs *c)
{
	struct classes k;
	double wall, rate;
	size_t i, t;

	for (i = 0; i < c->n; i++) {
		attempt_classes(c->v[i].attempt, &k);
		wall = value_number(k.wall, NULL);
		if (!(wall > 0))
			continue;
		c->task_seconds += wall;
		rate = c->v[i].seconds / wall;
		for (t = 0; t < CREMA_TIMES; t++)
			c->class_s[t] += rate * k.seconds[t];
		c->unclassified += rate * value_number(k.unclassified, NULL);
		c->cpu_seconds += k.seconds[CREMA_T_cpu];
		c->decompress += rate * computing(&k, CREMA_C_decompress_cpu_ns, wall);
		c->compress += rate * computing(&k, CREMA_C_compress_cpu_ns, wall);
	}
}

int costs_build(struct costs *c, const struct run *run)
{
	const struct attempt *a;
	struct edge *edges;
	size_t i;

	memset(c, 0, sizeof(*c));
	if (!run->attempts.n)
		return 0;
	c->v = calloc(run->attempts.n, sizeof(*c->v));
	edges = calloc(run->attempts.n, 2 * sizeof(*edges));
	if (!c->v || !edges) {
		free(edges);
		costs_release(c);
		return -ENOMEM;
	}
	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (!has_share(a))
			continue;
		edges[2 * c->n] = (struct edge){a->begin_ns, 1, c->n};
		edges[2 * c->n + 1] = (struct edge){a->end_ns, -1, c->n};
		c->v[c->n++].attempt = a;
	}
	qsort(edges, 2 * c->n, sizeof(*edges), by_time);
	divide(c, edges, 2 * c->n);
	free(edges);
	qsort(c->v, c->n, sizeof(*c->v), by_attempt);
	classify(c);
	return 0;
}

void costs_release(struct costs *c)
{
	free(c->v);
	memset(c, 0, sizeof(*c));
}

double cost_of(const struct costs *c, const struct attempt *a)
{
	struct cost key = {.attempt = a}, *at;

	at = c->n ? bsearch(&key, c->v, c->n, sizeof(*c->v), by_attempt) : NULL;
	return at ? at->seconds : 0;
}

double cost_of_cpu(const struct costs *c, double cpu_seconds)
{
	return cost_part(cpu_seconds, c->cpu_seconds,
			 c->class_s[CREMA_T_cpu] + c->class_s[CREMA_T_runqueue]);
}

double cost_part(double part, double whole, double cost)
{
	return whole > 0 && part >= 0 ? fmin(part / whole, 1) * cost : (double)NAN;
}
