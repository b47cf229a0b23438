/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_slow.c - a worker whose tasks all take longer than the same tasks elsewhere.
 *
 * Waiting for a core is not counted: run_queue reports busy nodes.
 */
#include <errno.h>
#include <stdlib.h>

#include "collector/findings/check.h"
#include "common/sort.h"

#define LEAST_TASKS 10	/* of a kind */
#define LEAST_OTHERS 5	/* of them on other workers */
#define LEAST_THERE 3	/* of them on this one */
#define LEAST_TIMES 1.5 /* times the median, for its fastest task there */

struct slow {
	const struct attempt *a; /* its slowest */
	size_t n, of;
	double median, there, excess, cost;
};

/* Without waiting for a core. */
static double own_seconds(const struct attempt *a)
{
	return attempt_seconds(a) - attempt_queued_seconds(a);
}

/* Compares the tasks of one worker, fastest first, with the median of their kind. */
static void judge(const struct numbered *v, size_t n, size_t of, double median,
		  const struct draft *d, struct slow *worst)
{
	struct slow s = {v[n - 1].item, n, of, median, own_seconds(v[(n - 1) / 2].item), 0, 0};
	const struct attempt *a;
	double excess;
	size_t i;

	if (n < LEAST_THERE || of - n < LEAST_OTHERS ||
	    own_seconds(v[0].item) < median * LEAST_TIMES ||
	    s.there * 100 < median * d->check->first)
		return;
	for (i = 0; i < n; i++) {
		a = v[i].item;
		excess = own_seconds(a) - median;
		s.excess += excess;
		s.cost += cost_of(d->costs, a) * excess / attempt_seconds(a);
	}
	if (s.excess >= d->check->second && s.excess > worst->excess)
		*worst = s;
}

/* Sorts one kind by worker, fastest first, and finds its median. 0 or -ENOMEM. */
static int sort_tasks(struct numbered *v, const struct kinds *k, size_t first, size_t n,
		      double *median)
{
	const struct attempt *a;
	size_t i;
	int rc;

	for (i = 0; i < n; i++) {
		a = kind_at(k, first + i);
		v[i] = (struct numbered){sort_real(own_seconds(a)), {.item = a}};
	}
	rc = sort_numbered(v, n);
	*median = own_seconds(v[(n - 1) / 2].item);
	for (i = 0; i < n; i++)
		v[i].number = ((const struct attempt *)v[i].item)->worker->place;
	return rc ? rc : sort_numbered(v, n);
}

/* Checks one kind; false without memory. */
static bool look_at(size_t first, size_t of, const struct draft *d, struct slow *worst)
{
	struct numbered *v = calloc(of, sizeof(*v));
	double median = 0;
	size_t i, n;
	bool ok = v && !sort_tasks(v, d->kinds, first, of, &median);

	for (i = 0; ok && i < of; i += n) {
		for (n = 1; i + n < of && v[i + n].number == v[i].number; n++)
			;
		judge(v + i, n, of, median, d, worst);
	}
	free(v);
	return ok;
}

static enum verdict say_slow(const struct report *r, struct draft *d, const struct slow *s)
{
	draft_evidence(d, "worker", value_text(s->a->worker->label), "");
	draft_evidence(d, "prefix", value_text(s->a->prefix ? s->a->prefix : "unknown"), "");
	draft_evidence(d, "tasks", value_uint(s->n), "tasks");
	draft_evidence(d, "tasks_of_all", value_uint(s->of), "tasks");
	draft_evidence(d, "median_seconds", value_real(s->there), "s");
	draft_evidence(d, "median_of_all_seconds", value_real(s->median), "s");
	draft_evidence(d, "excess_seconds", value_real(s->excess), "s");
	draft_sentence(
		d,
		"the %zu tasks %s on %s took longer than elsewhere: their median is %s, that of "
		"all %zu is %s (without waits for a core)",
		s->n, draft_name(d, run_prefix_shown(r->run, s->a->prefix)),
		draft_name(d, s->a->worker->label),
		draft_human(d, value_real(s->there), AS_SECONDS), s->of,
		draft_human(d, value_real(s->median), AS_SECONDS));
	draft_cost(d, s->cost);
	draft_gain_most(d, s->cost);
	return draft_found(d, r->facts->tasks.wall > 0 ? s->excess / r->facts->tasks.wall : 0);
}

enum verdict finding_slow_worker(const struct report *r, struct draft *d)
{
	enum verdict verdict = CHECK_IDLE;
	const struct kinds *k = d->kinds;
	struct slow worst = {0};
	size_t i, n;

	for (i = 0; i < k->n && !d->no_memory; i += n) {
		n = kind_count(k, i);
		if (n < LEAST_TASKS)
			continue;
		verdict = CHECK_QUIET;
		d->no_memory = !look_at(i, n, d, &worst);
	}
	if (worst.a && !d->no_memory)
		verdict = say_slow(r, d, &worst);
	return verdict;
}
