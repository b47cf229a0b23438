/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_facts.c - adds up the attempts of a run. */
#include "collector/metrics/groups.h"
#include "collector/metrics/metrics_hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void chunk_spreads(struct facts *f, const struct attempt *a, const struct classes *c)
{
	struct value events = c->events, delta;
	struct value time = attempt_f64(a, TASK_F_coffea_processtime);

	delta = value_minus(attempt_u64(a, TASK_F_rss_stop_bytes),
			    attempt_u64(a, TASK_F_rss_start_bytes));
	spread_add(&f->chunk_time, time);
	spread_add(&f->chunk_wall, c->wall);
	spread_add(&f->chunk_events, events);
	spread_add(&f->chunk_memory, delta);
	if (events.type == VALUE_INT && !events.v.i)
		return; /* no value per event */
	spread_add(&f->time_per_event, value_ratio(time, events, 1));
	spread_add(&f->memory_per_event, value_ratio(delta, events, 1));
}

/* Whether every worker with counted attempts in the run has sent its digests. */
static bool have_digests(const struct run *r)
{
	size_t i, counted = 0;

	for (i = 0; i < r->attempts.n; i++) {
		if (!r->attempts.v[i]->counted)
			continue;
		counted++;
		if (!attempt_has_digests(r, r->attempts.v[i]))
			return false;
	}
	return counted && r->first_span;
}

static void window_add(struct window *w, const struct attempt *a)
{
	if (!a->begin_ns || !a->end_ns) {
		w->unknown++;
		return;
	}
	if (!w->n || a->begin_ns < w->first_ns)
		w->first_ns = a->begin_ns;
	if (!w->n || a->end_ns > w->last_ns)
		w->last_ns = a->end_ns;
	w->n++;
}

/* toolz.pipe is the function of a node in dask-awkward's and dask-histogram's tree reductions. */
static bool is_tree_node(const struct attempt *a)
{
	const char *function = a->c.shared ? a->c.shared->function : NULL;

	return function && !strcmp(function, "pipe");
}

enum task_class attempt_class(const struct facts *f, const struct attempt *a)
{
	if (attempt_is_chunk(a))
		return TASK_WORK;
	if (a->flags & CREMA_TASK_PREPROCESSING)
		return TASK_PREPROCESSING;
	if (a->flags & CREMA_TASK_MERGE || (f->lazy && is_tree_node(a)))
		return TASK_MERGE;
	return f->lazy ? TASK_WORK : TASK_OTHER;
}

/* 0 or -ENOMEM. */
static int add_counted(struct facts *f, const struct attempt *a, const struct classes *c,
		       enum task_class class)
{
	int rc = groups_take(f->workers, a->worker, a, c);

	tally_take(&f->tasks, a, c);
	if (attempt_is_chunk(a)) {
		tally_take(&f->chunks, a, c);
		chunk_spreads(f, a, c);
		rc = rc ? rc : groups_take(f->datasets, a->dataset, a, c);
	}
	if (class == TASK_WORK) {
		tally_take(&f->work, a, c);
		window_add(&f->work_window, a);
	} else if (class == TASK_PREPROCESSING) {
		tally_take(&f->preprocessing, a, c);
		window_add(&f->preprocessing_window, a);
	} else {
		tally_take(class == TASK_MERGE ? &f->merges : &f->others, a, c);
	}
	return rc;
}

/* coffea's Runner passes a WorkItem to the task that does all of a chunk; a graph has none. */
static bool is_lazy(const struct run *r)
{
	const struct attempt *a;
	bool lazy = false;
	size_t i;

	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		if (!attempt_is_chunk(a))
			continue;
		if (!(a->flags & CREMA_TASK_TREE_READ))
			return false;
		lazy = true;
	}
	return lazy;
}

/* In a lazy graph only the reading task has a dataset: CPU is known if there is only one. */
static void set_dataset_cpu(const struct facts *f)
{
	struct tally *dataset;
	size_t i;

	for (i = 0; f->lazy && i < f->datasets->n; i++) {
		dataset = &f->datasets->v[i].t;
		dataset->own[CREMA_T_cpu] = f->work.own[CREMA_T_cpu];
		dataset->pool[CREMA_T_cpu] = f->work.pool[CREMA_T_cpu];
		dataset->own[CREMA_T_cpu].unknown += f->datasets->n > 1;
	}
}

bool facts_shows_all(const struct facts *f)
{
	return f->all.wall > 2 * f->tasks.wall;
}

const struct tally *facts_shown(const struct facts *f)
{
	return facts_shows_all(f) ? &f->all : &f->tasks;
}

bool facts_shows(const struct facts *f, const struct attempt *a)
{
	return a->counted || facts_shows_all(f);
}

const struct groups *facts_datasets_shown(const struct facts *f)
{
	return f->datasets_all ? f->datasets_all : f->datasets;
}

/* 0 or -ENOMEM. Only after all are summed is it known whether all are shown. */
static int group_all(struct facts *f)
{
	const struct attempt *a;
	struct classes c;
	size_t i;
	int rc = 0;

	f->datasets_all = calloc(1, sizeof(*f->datasets_all));
	if (!f->datasets_all)
		return -ENOMEM;
	for (i = 0; i < f->run->attempts.n && !rc; i++) {
		a = f->run->attempts.v[i];
		if (!attempt_is_chunk(a))
			continue;
		attempt_classes(a, &c);
		rc = groups_take(f->datasets_all, a->dataset, a, &c);
	}
	return rc;
}

/* 0 or -ENOMEM. */
static int add_attempt(struct facts *f, const struct attempt *a)
{
	enum task_class class = attempt_class(f, a);
	struct classes c;

	attempt_classes(a, &c);
	tally_take(&f->all, a, &c);
	if (attempt_is_chunk(a)) {
		tally_take(&f->chunks_all, a, &c);
		f->chunks_failed += a->state == ATTEMPT_ERRED || a->state == ATTEMPT_KILLED ||
				    a->state == ATTEMPT_LOST;
	}
	if (class == TASK_WORK && prefix_add(f, a))
		return -ENOMEM;
	if (a->waste_reason)
		tally_take(&f->wasted, a, &c);
	return a->counted ? add_counted(f, a, &c, class) : 0;
}

int facts_build(struct facts *f, const struct run *run)
{
	size_t i;
	int rc = 0;

	memset(f, 0, sizeof(*f));
	f->datasets = calloc(1, sizeof(*f->datasets));
	f->workers = calloc(1, sizeof(*f->workers));
	if (!f->datasets || !f->workers)
		return -ENOMEM;
	f->run = run;
	if (run_state_find(run, &f->state))
		return -ENOMEM;
	f->lazy = is_lazy(run);
	f->wall_time = run->wall;
	f->wall_time_source = "workers";
	for (i = 0; i < run->attempts.n && !rc; i++)
		rc = add_attempt(f, run->attempts.v[i]);
	if (!rc && facts_shows_all(f))
		rc = group_all(f);
	if (rc)
		return rc;
	set_dataset_cpu(f);
	f->dask = have_digests(run);
	f->tracking = tracking_build(run);
	f->hosts = hosts_build(run);
	return f->tracking && f->hosts ? 0 : -ENOMEM;
}

void facts_client_wall(struct facts *f, double seconds)
{
	f->wall_time = seconds;
	f->wall_time_source = "client";
}

void facts_release(struct facts *f)
{
	free(f->processors.v);
	groups_free(f->datasets);
	groups_free(f->datasets_all);
	groups_free(f->workers);
	tracking_free(f->tracking);
	hosts_free(f->hosts);
	memset(f, 0, sizeof(*f));
}
