/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_facts.c - adds up the attempts of a run. */
#include "collector/metrics/groups.h"
#include "collector/metrics/metrics_hosts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONG_TASK_SECONDS 0.05

struct value attempt_wall_ns(const struct attempt *a)
{
	return attempt_u64(a, TASK_F_wall_ns);
}

/* Of a worker that died the kernel's charge is known as of the last look only, up to a second
 * before. */
static bool storage_is_sampled(const struct attempt *a)
{
	return a->state == ATTEMPT_KILLED || a->state == ATTEMPT_LOST;
}

static struct value storage_read(const struct attempt *a, struct value charged)
{
	return a->c.shared->fs_unknown || storage_is_sampled(a) ? value_null() : charged;
}

struct value attempt_storage_read(const struct attempt *a)
{
	return storage_read(a, count_of(&a->c, CREMA_C_storage_read_bytes));
}

/* At least this: what was charged outside calls on unproven file systems, as of the last look. */
static struct value storage_known(const struct attempt *a, struct value all, struct value unsure)
{
	if (all.type == VALUE_NULL || unsure.type == VALUE_NULL || !a->c.shared->fs_unknown)
		return all;
	return value_uint(all.v.u > unsure.v.u ? all.v.u - unsure.v.u : 0);
}

struct value attempt_storage_known(const struct attempt *a)
{
	return storage_known(a, count_of(&a->c, CREMA_C_storage_read_bytes),
			     count_of(&a->c, CREMA_C_storage_unsure_bytes));
}

/*
 * Page faults of mapped files and libraries are in no call: a task that had them waited for storage
 * as long as the other classes leave over, but at least for what its calls show.
 */
static void estimate_storage(const struct attempt *a, struct classes *c, double rest)
{
	double measured = c->seconds[CREMA_T_storage_wait];

	if (!(a->flags & CREMA_TASK_FAULT_STORAGE))
		return;
	rest += measured;
	c->storage_estimated = true;
	c->seconds[CREMA_T_storage_wait] = rest > measured ? rest : measured;
	c->cls[CREMA_T_storage_wait] = value_real(c->seconds[CREMA_T_storage_wait]);
	c->unknown &= ~(1u << CREMA_T_storage_wait);
}

void attempt_classes(const struct attempt *a, struct classes *c)
{
	bool wall_known;
	double rest, wall;
	int i;

	attempt_detail(a, &c->detail);
	c->unknown = 0;
	c->storage_estimated = false;
	c->unclassified = value_null();
	c->events = attempt_is_chunk(a) ? attempt_events(a) : value_null();
	c->wall = value_seconds(attempt_wall_ns(a));
	wall = rest = value_number(c->wall, &wall_known);
	for (i = 0; i < CREMA_TIMES; i++) {
		if (c->detail.c.own_known >> i & 1) {
			c->seconds[i] = (double)c->detail.c.own[i] / 1e9;
			c->cls[i] = value_real(c->seconds[i]);
		} else {
			c->seconds[i] = 0;
			c->cls[i] = value_null();
			c->unknown |= 1u << i;
		}
		rest -= c->seconds[i];
	}
	if (!wall_known)
		return;
	estimate_storage(a, c, rest);
	rest = wall;
	for (i = 0; i < CREMA_TIMES; i++)
		rest -= c->seconds[i];
	c->unclassified = value_real(rest);
}

/* One of each; `known` has a bit for each. Without a branch: an attempt is in half a dozen sums. */
static void sums_add(struct sum *s, const uint64_t *v, uint64_t known, unsigned int n)
{
	unsigned int i;
	uint64_t is;

	for (i = 0; i < n; i++) {
		is = known >> i & 1;
		s[i].n++;
		s[i].v += v[i] & -is;
		s[i].unknown += !is;
	}
}

static void sum_add(struct sum *s, struct value v)
{
	s->n++;
	if (v.type == VALUE_UINT)
		s->v += v.v.u;
	else if (v.type == VALUE_INT && v.v.i >= 0)
		s->v += (uint64_t)v.v.i;
	else
		s->unknown++;
}

struct value sum_value(const struct sum *s)
{
	return s->unknown ? value_null() : value_uint(s->v);
}

struct value sum_known(const struct sum *s)
{
	return s->n && s->unknown == s->n ? value_null() : value_uint(s->v);
}

static void tally_time(struct tally *t, const struct attempt *a, const struct classes *c)
{
	const struct counters *counters = &c->detail.c;
	bool known;
	double wall, v;
	int i;

	/* Interleaved in the event loop, its wall overlaps; in another process, nothing else is
	 * known. */
	if (a->flags & (CREMA_TASK_ASYNC | CREMA_TASK_ELSEWHERE))
		return;
	t->timed++;
	wall = value_number(c->wall, NULL);
	t->wall += wall;
	for (i = 0; i < CREMA_TIMES; i++) {
		t->cls[i] += c->seconds[i];
		t->class_unknown[i] += c->unknown >> i & 1;
	}
	sums_add(t->own, counters->own, counters->own_known, CREMA_TIMES);
	sums_add(t->pool, counters->pool, counters->pool_known, CREMA_TIMES);
	v = value_number(c->unclassified, &known);
	t->unclassified += v;
	t->unclassified_unknown += !known;
	if (wall > LONG_TASK_SECONDS)
		t->unclassified_long += v;
}

bool file_is_remote(const char *name)
{
	return name && strstr(name, "://") && strncmp(name, "file://", 7) != 0;
}

static void tally_came_add(struct tally *t, const struct attempt_detail *d)
{
	if (!file_is_remote(d->filename)) {
		sum_add(&t->file_read, count_of(&d->c, CREMA_C_read_bytes));
		return;
	}
	sum_add(&t->server_network, count_of(&d->c, CREMA_C_network_read_bytes));
	sum_add(&t->server_baskets, count_of(&d->c, CREMA_C_basket_bytes));
}

void tally_take(struct tally *t, const struct attempt *a, const struct classes *c)
{
	const struct attempt_detail *d = &c->detail;
	struct value charged = count_of(&d->c, CREMA_C_storage_read_bytes);
	bool known;

	t->attempts++;
	sum_add(&t->wall_ns, attempt_wall_ns(a));
	sums_add(t->count, d->c.count, d->c.count_known, CREMA_COUNTS);
	sum_add(&t->storage_read, storage_read(a, charged));
	sum_add(&t->storage_known,
		storage_known(a, charged, count_of(&d->c, CREMA_C_storage_unsure_bytes)));
	if (attempt_is_chunk(a)) {
		tally_came_add(t, d);
		sum_add(&t->events, c->events);
		sum_add(&t->bytesread, detail_knows(d, TASK_F_coffea_bytesread)
					       ? value_uint(d->coffea_bytesread)
					       : value_null());
		known = detail_knows(d, TASK_F_coffea_processtime) &&
			isfinite(d->coffea_processtime);
		t->processtime += known ? d->coffea_processtime : 0;
		t->processtime_unknown += !known;
	}
	tally_time(t, a, c);
}

void tally_add(struct tally *t, const struct attempt *a)
{
	struct classes c;

	attempt_classes(a, &c);
	tally_take(t, a, &c);
}

struct value tally_class(const struct tally *t, enum crema_time_id id)
{
	return t->class_unknown[id] ? value_null() : value_real(t->cls[id]);
}

struct value tally_wall(const struct tally *t)
{
	return t->unclassified_unknown ? value_null() : value_real(t->wall);
}

struct value tally_unclassified(const struct tally *t)
{
	return t->unclassified_unknown ? value_null() : value_real(t->unclassified);
}

struct value tally_cpu(const struct tally *t)
{
	return value_seconds(
		value_plus(sum_value(&t->own[CREMA_T_cpu]), sum_value(&t->pool[CREMA_T_cpu])));
}

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
		return; /* nothing per event */
	spread_add(&f->time_per_event, value_ratio(time, events, 1));
	spread_add(&f->memory_per_event, value_ratio(delta, events, 1));
}

/* Did every worker that has counted attempts in the run say its digests? */
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

/* toolz.pipe is what a node of dask-awkward's and dask-histogram's tree reductions runs. */
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

/* coffea's Runner hands a WorkItem to the task that does all of a chunk; a graph has none. */
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

/* Of a lazy graph only the task that reads names its dataset: CPU is known of an only one. */
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

/* 0 or -ENOMEM. That all are to be shown is known when all were added up. */
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
