/* SPDX-License-Identifier: BSD-3-Clause */
/* cost.c - divides the wall time of a run among its tasks. */
#include "collector/findings/cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/sort.h"

static bool has_share(const struct attempt *a)
{
	return a->begin_ns && a->end_ns > a->begin_ns && !attempt_is_unmeasured(a);
}

static int by_attempt(const void *pa, const void *pb)
{
	const struct cost *a = pa, *b = pb;

	return a->attempt < b->attempt ? -1 : a->attempt > b->attempt;
}

/* Uses a clock that runs at 1 / n while n tasks run: a task's share is the time that passes on it.
 * Both lists are sorted by time, with indexes of attempts. */
static void divide(struct costs *c, const struct numbered *start, const struct numbered *end,
		   size_t n)
{
	uint64_t now = start->number;
	size_t started = 0, ended = 0;
	const struct numbered *e;
	double clock = 0, dt;
	bool starts;

	while (ended < n) {
		starts = started < n && start[started].number < end[ended].number;
		e = starts ? &start[started] : &end[ended];
		if (started > ended) {
			dt = (double)(e->number - now) / 1e9;
			clock += dt / (double)(started - ended);
			c->any += dt;
		}
		now = e->number;
		c->v[e->place].seconds += starts ? -clock : clock;
		started += starts;
		ended += !starts;
	}
}

/* Seconds of the task's wall time for its CPU in codecs: pool threads may have used more. */
static double computing(const struct classes *k, enum crema_count_id id, double wall)
{
	double codec = value_number(count_of(&k->detail.c, id), NULL) / 1e9;
	double cpu = k->seconds[CREMA_T_cpu];
	double busy = cpu > 0 ? (cpu + k->seconds[CREMA_T_runqueue]) / cpu : 1;

	return fmin(codec * busy, wall);
}

/* Waits of a task that may have been for its baskets. A chunk's baskets come from where its file
 * is. Those of other tasks came from files if that many bytes did; their other waits on servers are
 * for separate requests. */
static double reading(const struct attempt *a, const struct classes *k)
{
	bool know_files, know_baskets;
	double read = value_number(count_of(&k->detail.c, CREMA_C_read_bytes), &know_files);
	double baskets = value_number(count_of(&k->detail.c, CREMA_C_basket_bytes), &know_baskets);

	if (!attempt_is_chunk(a) && !(know_files && know_baskets && read >= baskets))
		return k->seconds[CREMA_T_storage_wait] + k->seconds[CREMA_T_network_wait];
	return k->seconds[k->remote ? CREMA_T_network_wait : CREMA_T_storage_wait];
}

/* Divides a task's share by class, in the ratio of its own time. */
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
		c->reading += rate * reading(c->v[i].attempt, &k);
		c->unclassified += rate * value_number(k.unclassified, NULL);
		c->cpu_seconds += k.seconds[CREMA_T_cpu];
		c->decompress += rate * computing(&k, CREMA_C_decompress_cpu_ns, wall);
		c->compress += rate * computing(&k, CREMA_C_compress_cpu_ns, wall);
	}
}

/* Sorts the starts and ends of `n` tasks, and divides. 0 or -ENOMEM. */
static int divide_run(struct costs *c, const struct run *run, struct numbered *start,
		      struct numbered *end, size_t n)
{
	size_t i;

	if (sort_numbered(start, n) || sort_numbered(end, n))
		return -ENOMEM;
	c->v = calloc(run->attempts.n, sizeof(*c->v));
	if (!c->v)
		return -ENOMEM;
	divide(c, start, end, n);
	for (i = 0; i < run->attempts.n; i++) {
		if (has_share(run->attempts.v[i]))
			c->v[c->n++] = (struct cost){run->attempts.v[i], c->v[i].seconds};
	}
	return 0;
}

int costs_build(struct costs *c, const struct run *run)
{
	struct numbered *start = calloc(run->attempts.n + 1, sizeof(*start));
	struct numbered *end = calloc(run->attempts.n + 1, sizeof(*end));
	const struct attempt *a;
	size_t i, n = 0;
	int rc = start && end ? 0 : -ENOMEM;

	memset(c, 0, sizeof(*c));
	for (i = 0; !rc && i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (!has_share(a))
			continue;
		start[n] = (struct numbered){a->begin_ns, {i}};
		end[n++] = (struct numbered){a->end_ns, {i}};
	}
	if (n)
		rc = divide_run(c, run, start, end, n);
	free(start);
	free(end);
	if (rc)
		return rc;
	classify(c); /* in the run's order: that of addresses differs, and so would the last digits
		      */
	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), by_attempt);
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
