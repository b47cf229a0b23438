/* SPDX-License-Identifier: BSD-3-Clause */
/* check_balance.c - work by worker and by dataset. */
#include <stdlib.h>

#include "collector/findings/check.h"

#define WHOLE_RUN_SECONDS 1.5 /* tolerance for presence all the time: samples come each second */

struct load {
	const struct worker *worker;
	double seconds, queued, threads; /* queued: the part waiting for a core */
};
struct loads {
	struct load *v;
	size_t n, cap;
};

static int by_worker(const void *pa, const void *pb)
{
	const struct load *a = pa, *b = pb;

	return a->worker < b->worker ? -1 : a->worker > b->worker;
}

/* Workers that were present all the time with a known number of threads, sorted by address. */
static int loads_of(const struct report *r, struct loads *l)
{
	const struct worker_track *t;
	struct load *at;
	size_t i;

	for (i = 0; i < r->facts->tracking->n; i++) {
		t = &r->facts->tracking->v[i];
		if (!(t->worker->first <= r->run->start + WHOLE_RUN_SECONDS) ||
		    !(t->worker->last >= r->run->stop - WHOLE_RUN_SECONDS) ||
		    t->cores.type != VALUE_UINT || !t->cores.v.u)
			continue;
		at = ARRAY_NEW(l);
		if (!at)
			return -1;
		*at = (struct load){t->worker, 0, 0, (double)t->cores.v.u};
	}
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_worker);
	return 0;
}

static void add_work(const struct report *r, struct loads *l)
{
	const struct attempt *a;
	struct load key, *at;
	size_t i;

	for (i = 0; i < r->run->attempts.n; i++) {
		a = r->run->attempts.v[i];
		if (!attempt_holds_thread(a))
			continue;
		key.worker = a->worker;
		at = bsearch(&key, l->v, l->n, sizeof(*l->v), by_worker);
		if (!at)
			continue;
		at->seconds += value_number(attempt_wall_ns(a), NULL) / 1e9;
		at->queued += attempt_queued_seconds(a);
	}
}

/* Compares the busiest worker with the mean, per thread. */
static enum verdict judge_workers(const struct loads *l, struct draft *d)
{
	const struct load *busiest = l->v;
	double sum = 0, own = 0, one, most = -1, mean;
	size_t i;

	for (i = 0; i < l->n; i++) {
		one = l->v[i].seconds / l->v[i].threads;
		sum += one;
		own += one - l->v[i].queued / l->v[i].threads;
		if (one > most)
			busiest = &l->v[i], most = one;
	}
	mean = sum / (double)l->n;
	if (!reaches(most, mean, d->check->first, 0) || most - mean < d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "worker", value_text(busiest->worker->label), "");
	draft_evidence(d, "workers", value_uint(l->n), "workers");
	draft_evidence(d, "busiest_seconds_per_thread", value_real(most), "s");
	draft_evidence(d, "mean_seconds_per_thread", value_real(mean), "s");
	draft_sentence(d, "each thread of %s worked for %s; the mean of %zu workers is %s",
		       draft_name(d, busiest->worker->label),
		       draft_human(d, value_real(most), AS_SECONDS), l->n,
		       draft_human(d, value_real(mean), AS_SECONDS));
	draft_cost(d, most - mean);
	own = most - busiest->queued / busiest->threads - own / (double)l->n;
	if (own < d->check->second / 2) /* its tasks only waited longer for a core */
		draft_severity(d, FINDING_NOTE);
	return draft_found(d, (most - mean) / most);
}

enum verdict finding_worker_imbalance(const struct report *r, struct draft *d)
{
	enum verdict verdict = CHECK_IDLE;
	struct loads l = {0};

	if (loads_of(r, &l)) {
		d->no_memory = true;
	} else if (r->facts->all.wall_ns.unknown) {
		verdict = draft_unknown(d, "tasks: wall_seconds");
	} else if (l.n >= 2 && !one_by_one(r, d)) {
		add_work(r, &l);
		verdict = judge_workers(&l, d);
	}
	free(l.v);
	return verdict;
}

struct dataset {
	const char *name;
	double seconds, events;
};
struct datasets {
	struct dataset **v;
	size_t n, cap;
	struct table table;
};

static bool same_dataset(const void *item, const void *key)
{
	return ((const struct dataset *)item)->name == key;
}

static struct dataset *dataset_of(struct datasets *sets, struct draft *d, const char *name)
{
	uint64_t hash = hash_pair((uintptr_t)name, 1);
	struct dataset *s = table_find(&sets->table, hash, same_dataset, name);

	if (s)
		return s;
	s = TABLE_NEW(&sets->table, hash, d->arena, sets);
	if (!s)
		return NULL;
	s->name = name;
	return s;
}

/* Sums by dataset: 0, -1 without memory; `*unknown` names the unknown input. Without chunks that
 * import: which dataset a fresh worker begins with is chance. */
static int datasets_of(const struct run *run, struct datasets *sets, struct draft *d,
		       const char **unknown)
{
	struct value wall, events;
	const struct attempt *a;
	struct dataset *s;
	size_t i;

	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (!a->counted || !attempt_is_chunk(a) || attempt_imports(a))
			continue;
		wall = attempt_wall_ns(a);
		events = attempt_events(a);
		if (wall.type == VALUE_NULL || events.type == VALUE_NULL) {
			*unknown =
				wall.type == VALUE_NULL ? "chunks: wall_seconds" : "total_events";
			return 0;
		}
		s = dataset_of(sets, d, a->dataset);
		if (!s)
			return -1;
		s->seconds += value_number(wall, NULL) / 1e9;
		s->events += value_number(events, NULL);
	}
	return 0;
}

static enum verdict judge_datasets(const struct datasets *sets, struct draft *d)
{
	double seconds = 0, events = 0, fair, most = 0, share, events_share;
	const struct dataset *s, *worst = NULL;
	size_t i;

	for (i = 0; i < sets->n; i++) {
		seconds += sets->v[i]->seconds;
		events += sets->v[i]->events;
	}
	if (!(events > 0))
		return CHECK_IDLE;
	for (i = 0; i < sets->n; i++) {
		s = sets->v[i];
		fair = seconds * s->events / events;
		if (s->seconds * 100 >= fair * d->check->first &&
		    s->seconds - fair >= d->check->second && s->seconds - fair > most)
			worst = s, most = s->seconds - fair;
	}
	if (!worst)
		return CHECK_QUIET;
	share = worst->seconds / seconds * 100;
	events_share = worst->events / events * 100;
	draft_evidence(d, "dataset", value_text(worst->name ? worst->name : "unknown"), "");
	draft_evidence(d, "wall_seconds", value_real(worst->seconds), "s");
	draft_evidence(d, "percent_of_time", value_real(share), "%");
	draft_evidence(d, "events", value_real(worst->events), "events");
	draft_evidence(d, "percent_of_events", value_real(events_share), "%");
	draft_sentence(d, "dataset %s took %s of the chunks' time (%s) for %s of the events",
		       draft_name(d, worst->name), draft_percent(d, share),
		       draft_human(d, value_real(worst->seconds), AS_SECONDS),
		       draft_percent(d, events_share));
	draft_cost(d, cost_part(most, d->costs->task_seconds, d->costs->any));
	return draft_found(d, most / seconds);
}

enum verdict finding_dataset_imbalance(const struct report *r, struct draft *d)
{
	enum verdict verdict = CHECK_IDLE;
	struct datasets sets = {0};
	const char *unknown = NULL;

	if (datasets_of(r->run, &sets, d, &unknown))
		d->no_memory = true;
	else if (unknown)
		verdict = draft_unknown(d, unknown);
	else if (sets.n >= 2)
		verdict = judge_datasets(&sets, d);
	table_release(&sets.table);
	free(sets.v);
	return verdict;
}
