/* SPDX-License-Identifier: BSD-3-Clause */
/* check_memory.c - memory of the workers: limits, growth, spilling. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collector/findings/check.h"
#include "collector/report/memory.h"
#include "common/sort.h"

enum verdict finding_memory_limit(const struct report *r, struct draft *d)
{
	struct value most = metric_max_memory_utilization_percent(r->facts);
	const struct worker_track *t, *worst = NULL;
	double share, highest = -1;
	bool known, limited = false;
	size_t i, k, above = 0;

	for (i = 0; i < r->facts->tracking->n; i++) {
		t = &r->facts->tracking->v[i];
		limited |= t->memory_limit.type != VALUE_NULL;
		for (k = 0, share = -1; k < t->memory.n; k++)
			share = t->memory.v[k].value > share ? t->memory.v[k].value : share;
		share = value_number(value_ratio(value_real(share), t->memory_limit, 100), &known);
		above += known && share > d->check->first;
		if (known && share > highest)
			worst = t, highest = share;
	}
	if (!limited)
		return CHECK_IDLE;
	value_number(most, &known);
	if (!known || !worst)
		return draft_unknown(d, "max_memory_utilization_percent");
	if (!(highest > d->check->first))
		return CHECK_QUIET;
	draft_evidence(d, "max_memory_utilization_percent", value_real(highest), "%");
	draft_evidence(d, "memory_limit_bytes", worst->memory_limit, "bytes");
	draft_evidence(d, "worker", value_text(worst->worker->label), "");
	draft_evidence(d, "workers_above", value_uint(above), "workers");
	draft_sentence(d,
		       "%zu of %zu workers exceeded %s of their memory limit; %s reached %s of %s",
		       above, r->facts->tracking->n, draft_percent(d, d->check->first),
		       draft_name(d, worst->worker->label), draft_percent(d, highest),
		       draft_human(d, worst->memory_limit, AS_BYTES));
	return draft_found(d, highest / 100);
}

#define GROWTH_TASKS 10

struct edges {
	struct numbered *v; /* attempts by worker (the index), then by end */
	size_t n;
};

/* 0 or -ENOMEM. */
static int edges_of(const struct run *run, struct edges *e)
{
	const struct attempt *a;
	size_t i;
	int rc;

	e->v = calloc(run->attempts.n + 1, sizeof(*e->v));
	if (!e->v)
		return -ENOMEM;
	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (a->known >> TASK_F_rss_stop_bytes & 1 && a->end_ns)
			e->v[e->n++] = (struct numbered){a->end_ns, {.item = a}};
	}
	rc = sort_numbered(e->v, e->n);
	for (i = 0; i < e->n; i++)
		e->v[i].number = ((const struct attempt *)e->v[i].item)->worker->place;
	return rc ? rc : sort_numbered(e->v, e->n);
}

static int by_size(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* Median of the resident sets in one fifth of a worker's tasks. */
static double fifth(struct draft *d, const struct numbered *v, size_t n, size_t which)
{
	size_t from = n * which / 5, to = n * (which + 1) / 5, i;
	uint64_t *rss = calloc(to - from, sizeof(*rss));
	double median;

	if (!rss) {
		d->no_memory = true;
		return 0;
	}
	for (i = from; i < to; i++)
		rss[i - from] = attempt_u64(v[i].item, TASK_F_rss_stop_bytes).v.u; /* known */
	qsort(rss, to - from, sizeof(*rss), by_size);
	median = (double)rss[(to - from - 1) / 2];
	free(rss);
	return median;
}

struct growth {
	const struct worker *worker;
	size_t tasks; /* between the middles of the two fifths */
	double early, late;
};

/* It kept growing: the second half of the period has at least a quarter of the growth. */
static bool grows(struct draft *d, const struct numbered *v, size_t n, struct growth *g)
{
	double middle = fifth(d, v, n, 2);

	g->worker = ((const struct attempt *)v[0].item)->worker;
	g->early = fifth(d, v, n, 1);
	g->late = fifth(d, v, n, 4);
	g->tasks = n * 3 / 5;
	return g->late > middle && middle > g->early &&
	       g->late - middle >= (g->late - g->early) / 4;
}

/* A worker that has just begun to load modules and to fill caches grows, too. If the limit is this
 * many times further away than the worker has come, only a different run reaches it. */
#define FAR_TASKS 50
#define SOON_TASKS 20 /* a user's real job is this much longer than a trial run */

/* The growth may be free blocks of malloc: then no object was left behind. */
static void say_held(const struct report *r, struct draft *d, const struct growth *g)
{
	struct worker_memory m = worker_memory(r->run, g->worker);
	bool known;
	double kept = value_number(m.kept, &known);

	if (!known || kept < (g->late - g->early) / 2)
		return;
	draft_evidence(d, "kept_bytes", m.kept, "bytes");
	draft_sentence_more(d, "; %s are free in malloc's heaps", draft_human(d, m.kept, AS_BYTES));
	draft_advise(d,
		     "No object holds them: have malloc return them between chunks, "
		     "client.run(lambda: __import__('ctypes').CDLL('libc.so.6').malloc_trim(0)).");
}

static size_t tasks_of(const struct run *run, const struct worker *w, const char *prefix)
{
	const struct attempt *a;
	size_t n = 0;

	for (size_t i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		n += a->worker == w && a->prefix == prefix && a->end_ns;
	}
	return n;
}

/* The growth may be large blocks that one line allocates. */
static void say_keeper(const struct report *r, struct draft *d, const struct growth *g, double each)
{
	const char *prefix, *name;
	int64_t bytes;
	const struct line_place *p = lines_keeper(&r->lines, g->worker, &bytes, &prefix);
	size_t tasks = p ? tasks_of(r->run, g->worker, prefix) : 0;
	double kept = tasks ? (double)bytes / (double)tasks : 0;

	if (kept <= 0 || kept < each / 2)
		return;
	name = draft_code_line(d, "kept_line", p);
	draft_evidence(d, "kept_line_bytes", value_uint((uint64_t)bytes), "bytes");
	draft_evidence(d, "kept_bytes_per_task", value_real(kept), "bytes");
	draft_sentence_more(d, "; %s stay with each task of %s: %s",
			    draft_human(d, value_real(kept), AS_BYTES),
			    draft_name(d, run_prefix_shown(r->run, prefix)), draft_name(d, name));
	draft_advise(d,
		     "What %s allocates is in use after its task: look for what refers to it (a "
		     "cache, a global list, the task's result), and drop it.",
		     draft_name(d, name));
}

static enum verdict say_growth(const struct report *r, struct draft *d, const struct growth *g)
{
	double each = (g->late - g->early) / (double)g->tasks, left, limit;
	const struct worker_track *t;
	bool known;
	size_t i;

	draft_evidence(d, "worker", value_text(g->worker->label), "");
	draft_evidence(d, "early_rss_bytes", value_real(g->early), "bytes");
	draft_evidence(d, "late_rss_bytes", value_real(g->late), "bytes");
	draft_evidence(d, "bytes_per_task", value_real(each), "bytes");
	draft_sentence(d, "the memory of %s grew from %s to %s, %s per task",
		       draft_name(d, g->worker->label),
		       draft_human(d, value_real(g->early), AS_BYTES),
		       draft_human(d, value_real(g->late), AS_BYTES),
		       draft_human(d, value_real(each), AS_BYTES));
	for (i = 0; i < r->facts->tracking->n; i++) {
		t = &r->facts->tracking->v[i];
		limit = value_number(t->memory_limit, &known);
		if (t->worker != g->worker || !known || limit <= g->late)
			continue;
		left = floor((limit - g->late) / each);
		draft_evidence(d, "memory_limit_bytes", t->memory_limit, "bytes");
		draft_evidence(d, "tasks_left", value_real(left), "tasks");
		if (left <= SOON_TASKS * (double)g->tasks)
			draft_severity(d, FINDING_HIGH);
		else if (left > FAR_TASKS * (double)g->tasks)
			draft_severity(d, FINDING_NOTE);
		draft_sentence_more(d, "; at this rate it reaches its limit of %s in %s tasks",
				    draft_human(d, t->memory_limit, AS_BYTES),
				    draft_human(d, value_real(left), AS_COUNT));
	}
	say_keeper(r, d, g, each);
	say_held(r, d, g);
	return draft_found(d, (g->late - g->early) / g->late);
}

enum verdict finding_memory_growth(const struct report *r, struct draft *d)
{
	struct growth g, worst = {0};
	enum verdict verdict = CHECK_IDLE;
	struct edges e = {0};
	size_t i, n;

	if (edges_of(r->run, &e))
		d->no_memory = true;
	for (i = 0; !d->no_memory && i < e.n; i += n) {
		for (n = 1; i + n < e.n && e.v[i + n].number == e.v[i].number; n++)
			;
		if (n < GROWTH_TASKS)
			continue;
		verdict = CHECK_QUIET;
		if (grows(d, e.v + i, n, &g) &&
		    reaches(g.late - g.early, g.early, d->check->first, d->check->second) &&
		    g.late - g.early > worst.late - worst.early)
			worst = g;
	}
	if (worst.worker)
		verdict = say_growth(r, d, &worst);
	else if (!e.n && r->run->attempts.n)
		verdict = draft_unknown(d, "rss_stop_bytes");
	free(e.v);
	return verdict;
}

/* Where Dask begins to spill, in percent of the limit. */
#define SPILL_PERCENT 60

static struct value limit_of(const struct report *r, const struct worker *w)
{
	for (size_t i = 0; i < r->facts->tracking->n; i++)
		if (r->facts->tracking->v[i].worker == w)
			return r->facts->tracking->v[i].memory_limit;
	return value_null();
}

enum verdict finding_allocator_holds(const struct report *r, struct draft *d)
{
	struct worker_memory m, worst = {0};
	double kept, resident, share, most = 0;
	bool known, any = false, unread = false;

	for (size_t i = 0; i < r->run->workers.n; i++) {
		m = worker_memory(r->run, r->run->workers.v[i]);
		kept = value_number(m.kept, &known);
		unread |= !known && m.samples >= MEMORY_READINGS;
		any |= known;
		if (!known)
			continue;
		resident = value_number(m.resident, NULL);
		if (kept > most && reaches(kept, resident, d->check->first, d->check->second)) {
			worst = m;
			most = kept;
		}
	}
	if (!worst.worker)
		return any ? CHECK_QUIET : unread ? draft_unknown(d, "worker_memory") : CHECK_IDLE;
	draft_evidence(d, "worker", value_text(worst.worker->label), "");
	draft_evidence(d, "kept_bytes", worst.kept, "bytes");
	draft_evidence(d, "resident_bytes", worst.resident, "bytes");
	draft_sentence(d, "%s of the %s of %s were free in malloc's heaps all the time",
		       draft_human(d, worst.kept, AS_BYTES),
		       draft_human(d, worst.resident, AS_BYTES),
		       draft_name(d, worst.worker->label));
	draft_gain(d, (double)NAN, "%s of memory", draft_human(d, worst.kept, AS_BYTES));
	share = value_number(value_ratio(worst.resident, limit_of(r, worst.worker), 100), &known);
	if (known && share > SPILL_PERCENT)
		draft_severity(d, FINDING_WARNING);
	return draft_found(d, most / value_number(worst.resident, NULL));
}

/* The most that the run's workers had spilled to disk, each at its own time: Dask's spans only
 * include what was spilled while a task ended. Unknown if no worker reports it. */
static struct value most_spilled(const struct run *run)
{
	struct value sum = value_null();
	const struct worker *w;
	double most;
	size_t i, k;

	for (i = 0; i < run->workers.n; i++) {
		w = run->workers.v[i];
		for (k = 0, most = -1; k < w->probes.n; k++) {
			if (w->probes.v[k].time >= run->start && w->probes.v[k].time <= run->stop)
				most = fmax(most, w->probes.v[k].spilled_bytes);
		}
		if (most >= 0)
			sum = value_real(value_number(sum, NULL) + most);
	}
	return sum;
}

/* Each worker spills in its event loop, while a task ends or for its memory monitor: meanwhile it
 * starts no task. */
static void say_disk(const struct report *r, struct draft *d)
{
	struct value in = digests_outside(r->facts, OUTSIDE_DISK_READ_TIME);
	struct value out = digests_outside(r->facts, OUTSIDE_DISK_WRITE_TIME);
	struct value s = value_plus(digests_sum(r->facts, "disk-write", "seconds", -1),
				    digests_sum(r->facts, "disk-read", "seconds", -1));
	double seconds, workers;
	bool known, workers_known;

	s = value_plus(s, value_plus(in, out));
	seconds = value_number(s, &known);
	workers = value_number(metric_peak_workers(r->facts), &workers_known);
	if (!known || !workers_known || !(seconds > 0))
		return;
	draft_evidence(d, "disk_seconds", s, "s");
	draft_sentence_more(d, "; writing and reading them took %s", draft_human(d, s, AS_SECONDS));
	draft_cost_least(d, seconds / workers);
}

enum verdict finding_spill(const struct report *r, struct draft *d)
{
	struct value out = metric_dask_spill_write_bytes(r->facts), held = most_spilled(r->run);
	double bytes, most;
	bool known;

	if (r->run->plain)
		return CHECK_IDLE;
	bytes = value_number(out, &known);
	most = value_number(held, NULL);
	if (fmax(bytes, most) < d->check->first)
		return known ? CHECK_QUIET : draft_unknown(d, "dask_spill_write_bytes");
	draft_sentence(d, "Dask spilled results to disk: ");
	if (known) {
		draft_evidence(d, "dask_spill_write_bytes", out, "bytes");
		draft_sentence_more(d, "%s written", draft_human(d, out, AS_BYTES));
	}
	if (held.type != VALUE_NULL) {
		draft_evidence(d, "most_spilled_bytes", held, "bytes");
		draft_sentence_more(d, "%sworkers held up to %s of them", known ? ", " : "",
				    draft_human(d, held, AS_BYTES));
	}
	say_disk(r, d);
	return draft_found(d, 0);
}
