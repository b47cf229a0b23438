/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_slow.c - a worker whose tasks all take longer than the same tasks elsewhere.
 *
 * Waiting for a core is not counted: a busy node is a matter of run_queue.
 */
#include <errno.h>
#include <stdlib.h>

#include "collector/findings/check.h"
#include "collector/findings/task_kinds.h"

#define LEAST_TASKS 10	/* of a kind */
#define LEAST_OTHERS 5	/* of them on other workers */
#define LEAST_THERE 3	/* of them on this one */
#define LEAST_TIMES 1.5 /* the median: its fastest task there */

struct timed {
	const struct attempt *a;
	double own; /* seconds, without waiting for a core */
};
struct slow {
	const struct attempt *a; /* its slowest */
	size_t n, of;
	double median, there, excess, cost;
};

static double own_seconds(const struct attempt *a)
{
	struct classes c;

	attempt_classes(a, &c);
	return attempt_seconds(a) - c.seconds[CREMA_T_runqueue];
}

static int by_own(const void *pa, const void *pb)
{
	const struct timed *a = pa, *b = pb;

	return a->own < b->own ? -1 : a->own > b->own;
}

static int by_worker(const void *pa, const void *pb)
{
	const struct timed *a = pa, *b = pb;

	if (a->a->worker != b->a->worker)
		return a->a->worker < b->a->worker ? -1 : 1;
	return by_own(pa, pb);
}

/* Tasks of one worker, the fastest first, beside the median of their kind. */
static void judge(const struct timed *v, size_t n, size_t of, double median, const struct remark *d,
		  struct slow *worst)
{
	struct slow s = {v[n - 1].a, n, of, median, v[(n - 1) / 2].own, 0, 0};
	size_t i;

	if (n < LEAST_THERE || of - n < LEAST_OTHERS || v[0].own < median * LEAST_TIMES ||
	    s.there * 100 < median * d->check->first)
		return;
	for (i = 0; i < n; i++) {
		s.excess += v[i].own - median;
		s.cost += cost_of(d->costs, v[i].a) * (v[i].own - median) / attempt_seconds(v[i].a);
	}
	if (s.excess >= d->check->second && s.excess > worst->excess)
		*worst = s;
}

/* One kind; false without memory. */
static bool look_at(const struct attempt *const *v, size_t of, const struct remark *d,
		    struct slow *worst)
{
	struct timed *t = calloc(of, sizeof(*t));
	double median;
	size_t i, n;

	if (!t)
		return false;
	for (i = 0; i < of; i++)
		t[i] = (struct timed){v[i], own_seconds(v[i])};
	qsort(t, of, sizeof(*t), by_own);
	median = t[(of - 1) / 2].own;
	qsort(t, of, sizeof(*t), by_worker);
	for (i = 0; i < of; i += n) {
		for (n = 1; i + n < of && t[i + n].a->worker == t[i].a->worker; n++)
			;
		judge(t + i, n, of, median, d, worst);
	}
	free(t);
	return true;
}

static enum verdict say_slow(const struct report *r, struct remark *d, const struct slow *s)
{
	remark_see(d, "worker", value_text(s->a->worker->label), "");
	remark_see(d, "prefix", value_text(s->a->prefix ? s->a->prefix : "unknown"), "");
	remark_see(d, "tasks", value_uint(s->n), "tasks");
	remark_see(d, "tasks_of_all", value_uint(s->of), "tasks");
	remark_see(d, "median_seconds", value_real(s->there), "s");
	remark_see(d, "median_of_all_seconds", value_real(s->median), "s");
	remark_see(d, "excess_seconds", value_real(s->excess), "s");
	remark_say(d,
		   "the %zu tasks %s on %s took longer than elsewhere: their median is %s, that of "
		   "all %zu is %s (without waits for a core)",
		   s->n, remark_name(d, run_prefix_shown(r->run, s->a->prefix)),
		   remark_name(d, s->a->worker->label),
		   remark_human(d, value_real(s->there), AS_SECONDS), s->of,
		   remark_human(d, value_real(s->median), AS_SECONDS));
	remark_cost(d, s->cost);
	remark_gain_most(d, s->cost);
	return remark_found(d, r->facts->tasks.wall > 0 ? s->excess / r->facts->tasks.wall : 0);
}

enum verdict finding_slow_worker(const struct report *r, struct remark *d)
{
	enum verdict verdict = CHECK_IDLE;
	struct slow worst = {0};
	struct kinds k;
	size_t i, n;

	d->no_memory = kinds_build(&k, r->run) != 0;
	for (i = 0; i < k.n && !d->no_memory; i += n) {
		n = kind_count(&k, i);
		if (n < LEAST_TASKS)
			continue;
		verdict = CHECK_QUIET;
		d->no_memory = !look_at(k.v + i, n, d, &worst);
	}
	if (worst.a && !d->no_memory)
		verdict = say_slow(r, d, &worst);
	kinds_release(&k);
	return verdict;
}
