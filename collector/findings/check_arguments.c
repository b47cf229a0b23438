/* SPDX-License-Identifier: BSD-3-Clause */
/* check_arguments.c - functions and arguments sent with each task, and threads idle meanwhile. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/findings/check.h"

#define ARRIVED_BYTES 1e6 /* between two probes: tasks need less than this anyway */

struct probed {
	double from, to; /* seconds since the run's first task */
};

/* One worker: when much arrived from the scheduler, and how long its threads had tasks then. */
struct arrivals {
	const struct worker *worker;
	double threads, bytes, busy;
	struct probed *v;
	size_t n, cap;
};

static int by_worker(const void *pa, const void *pb)
{
	const struct arrivals *a = pa, *b = pb;

	return a->worker < b->worker ? -1 : a->worker > b->worker;
}

static double since(uint64_t base, uint64_t ns)
{
	return ns > base ? (double)(ns - base) / 1e9 : 0;
}

/* Between two probes within the run: others may include what another run received. Data for the
 * first tasks arrives before they start, so the first probe may be before the run if nothing else
 * ran then. */
static int arrivals_find(struct arrivals *a, const struct run *run, uint64_t base, double length)
{
	const struct worker *w = a->worker;
	struct probed *at, found;
	double before = 0, bytes, start;
	size_t i, k = 0;

	for (i = 0; i < w->outside.n; i++) {
		while (k < w->probes.n && w->probes.v[k].boot_ns < w->outside.v[i].boot_ns)
			k++;
		start = k ? w->probes.v[k - 1].time : w->first;
		bytes = w->outside.v[i].v[OUTSIDE_STREAM] - before;
		before += isnan(bytes) ? 0 : bytes;
		found.to = since(base, worker_utc_ns(w, w->outside.v[i].boot_ns));
		if (!(bytes >= ARRIVED_BYTES) || !(found.to > 0) || found.to > length)
			continue;
		found.from = fmax(0, start - (double)base / 1e9);
		if (!(found.from > 0) &&
		    (run->others.concurrent || !(start >= run->others.last_until)))
			continue;
		at = ARRAY_NEW(a);
		if (!at)
			return -1;
		*at = found;
		a->bytes += bytes;
	}
	return 0;
}

static void add_busy(struct arrivals *a, double begin, double end)
{
	size_t low = 0, high = a->n, middle;

	while (low < high) { /* the first window that ends after the task's start */
		middle = (low + high) / 2;
		if (a->v[middle].to <= begin)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < a->n && a->v[low].from < end; low++)
		a->busy += fmin(end, a->v[low].to) - fmax(begin, a->v[low].from);
}

static double idle_of(const struct arrivals *a)
{
	double all = 0;
	size_t i;

	for (i = 0; i < a->n; i++)
		all += a->v[i].to - a->v[i].from;
	return fmax(0, all * a->threads - a->busy);
}

/* The start of the run's first task, and seconds until the last one ended. */
static uint64_t length_of(const struct run *run, double *length)
{
	uint64_t first = UINT64_MAX, last = 0;
	const struct attempt *a;
	size_t i;

	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (!a->begin_ns || a->end_ns < a->begin_ns)
			continue;
		first = a->begin_ns < first ? a->begin_ns : first;
		last = a->end_ns > last ? a->end_ns : last;
	}
	*length = since(first, last);
	return first;
}

static void add_attempts(const struct run *run, struct arrivals *v, size_t n, uint64_t base)
{
	struct arrivals *at, key = {0};
	const struct attempt *a;
	size_t i;

	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		key.worker = a->worker;
		at = bsearch(&key, v, n, sizeof(*v), by_worker);
		if (at && a->begin_ns && a->end_ns > a->begin_ns)
			add_busy(at, since(base, a->begin_ns), since(base, a->end_ns));
	}
}

/* Bytes that arrived, and thread-seconds without a task meanwhile. */
struct arrived {
	double bytes, idle, threads;
};

/* 0, -1: no memory. */
static int arrived_in(const struct report *r, struct arrived *out)
{
	const struct tracking *all = r->facts->tracking;
	struct arrivals *v = calloc(all->n + 1, sizeof(*v));
	double length;
	uint64_t base = length_of(r->run, &length);
	size_t i;
	int rc = v ? 0 : -1;

	memset(out, 0, sizeof(*out));
	for (i = 0; v && i < all->n; i++) {
		v[i].worker = all->v[i].worker;
		v[i].threads = value_number(all->v[i].cores, NULL);
		if (arrivals_find(&v[i], r->run, base, length))
			rc = -1;
	}
	if (!v)
		return rc;
	qsort(v, all->n, sizeof(*v), by_worker);
	add_attempts(r->run, v, all->n, base);
	for (i = 0; i < all->n; i++) {
		out->bytes += v[i].bytes;
		out->idle += idle_of(&v[i]);
		out->threads += v[i].threads;
		free(v[i].v);
	}
	free(v);
	return rc;
}

enum verdict finding_large_arguments(const struct report *r, struct draft *d)
{
	double each, tasks = (double)r->facts->all.attempts;
	size_t others = run_concurrent(r->run);
	struct arrived a;

	if (r->run->plain || !(tasks > 0))
		return CHECK_IDLE;
	if (metric_task_message_bytes(r->facts).type == VALUE_NULL)
		return draft_unknown(d, "task_message_bytes");
	d->no_memory |= arrived_in(r, &a) < 0;
	each = a.bytes / tasks;
	if (each < d->check->first || a.bytes < d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "arrived_bytes", value_real(a.bytes), "bytes");
	draft_evidence(d, "tasks", value_real(tasks), "tasks");
	draft_evidence(d, "bytes_per_task", value_real(each), "bytes");
	draft_sentence(
		d,
		"the scheduler sent workers at least %s, %s for each of %s tasks: functions and "
		"arguments",
		draft_human(d, value_real(a.bytes), AS_BYTES),
		draft_human(d, value_real(each), AS_BYTES),
		draft_human(d, value_real(tasks), AS_COUNT));
	if (others) {
		draft_evidence(d, "concurrent_runs", value_uint(others), "");
		draft_sentence_more(d, "; those of %zu other run%s on these workers are included",
				    others, others == 1 ? "" : "s");
	}
	if (a.threads > 0 && a.idle > 0) {
		draft_evidence(d, "idle_thread_seconds", value_real(a.idle), "s");
		draft_sentence_more(d, "; while they arrived, threads had no task for %s",
				    draft_human(d, value_real(a.idle), AS_SECONDS));
		draft_cost_least(d, a.idle / a.threads);
	}
	return draft_found(d, 0);
}
