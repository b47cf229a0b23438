/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_tracking.c - samples of the run's workers: series, and tracking_data in JSON. */
#include "collector/metrics/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLE_MARGIN 0.5 /* seconds before and after a run in which samples still apply to it */
#define GRID_POINTS 7200  /* maximum: each point is computed for each worker */

static int add_point(struct series *s, double time, double value)
{
	struct point *p;

	if (isnan(value) || isnan(time))
		return 0;
	p = ARRAY_NEW(s);
	if (!p)
		return -ENOMEM;
	*p = (struct point){time, value};
	return 0;
}

double series_average(const struct series *s)
{
	double area = 0, span;
	size_t i;

	if (!s->n)
		return (double)NAN;
	span = s->v[s->n - 1].time - s->v[0].time;
	if (span <= 0)
		return s->v[0].value;
	for (i = 1; i < s->n; i++)
		area += (s->v[i].value + s->v[i - 1].value) / 2 * (s->v[i].time - s->v[i - 1].time);
	return area / span;
}

bool tracking_has(const struct run *r, double t)
{
	return t >= r->from - SAMPLE_MARGIN && t <= r->to + SAMPLE_MARGIN;
}

static int track_samples(const struct run *r, struct worker_track *t)
{
	const struct worker *w = t->worker;
	const struct sample *s;
	size_t i;
	int rc = 0;

	for (i = 0; i < w->samples.n && !rc; i++) {
		s = &w->samples.v[i];
		if (!tracking_has(r, s->time))
			continue;
		t->peak_rss = fmax(t->peak_rss, s->rss_bytes);
		rc = add_point(&t->memory, s->time, s->rss_bytes);
		if (!rc)
			rc = add_point(&t->cpu, s->time, s->cpu_percent);
	}
	return rc;
}

static int track_probes(const struct run *r, struct worker_track *t)
{
	const struct worker *w = t->worker;
	const struct probe *p;
	double active;
	size_t i;
	int rc = 0;

	for (i = 0; i < w->probes.n && !rc; i++) {
		p = &w->probes.v[i];
		if (p->nthreads >= 0 && p->nthreads < 1e9)
			t->cores = value_uint((uint64_t)p->nthreads);
		if (!isnan(p->memory_limit_bytes) && p->memory_limit_bytes < 1e19)
			t->memory_limit = value_uint((uint64_t)p->memory_limit_bytes);
		if (!tracking_has(r, p->time))
			continue;
		active = p->executing + p->ready;
		rc = add_point(&t->limit, p->time, p->memory_limit_bytes);
		rc = rc ? rc : add_point(&t->nthreads, p->time, p->nthreads);
		rc = rc ? rc : add_point(&t->executing, p->time, p->executing);
		rc = rc ? rc : add_point(&t->active, p->time, active);
		rc = rc ? rc : add_point(&t->nbytes, p->time, p->nbytes_managed);
		rc = rc ? rc : add_point(&t->spilled, p->time, p->spilled_bytes);
		rc = rc ? rc : add_point(&t->occupancy, p->time, active * t->mean_task_wall);
	}
	return rc;
}

static void raise_peak(struct worker_track *k, struct value rss)
{
	if (rss.type == VALUE_UINT)
		k->peak_rss = fmax(k->peak_rss, (double)rss.v.u);
}

/* Indexes of the tracks, from 1, by the workers' indexes in the model: the caller frees it. */
static size_t *track_places(const struct run *r, const struct tracking *t)
{
	size_t *place = calloc(r->model->workers.n + 1, sizeof(*place)), i;

	for (i = 0; place && i < t->n; i++)
		place[t->v[i].worker->place] = i + 1;
	return place;
}

/* Task starts and ends add what samples miss: short peaks, and how long tasks take. */
static int track_tasks(const struct run *r, struct tracking *t)
{
	struct worker_track *k;
	struct attempt *a;
	double seconds;
	size_t i, j;
	bool known;
	size_t *place = track_places(r, t);
	double *wall = calloc(t->n + 1, sizeof(*wall));
	size_t *n = calloc(t->n + 1, sizeof(*n));
	int rc = place && wall && n ? 0 : -ENOMEM;

	for (i = 0; !rc && i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		if (!place[a->worker->place])
			continue;
		j = place[a->worker->place] - 1;
		k = &t->v[j];
		raise_peak(k, attempt_u64(a, TASK_F_rss_peak_bytes));
		raise_peak(k, attempt_u64(a, TASK_F_rss_start_bytes));
		raise_peak(k, attempt_u64(a, TASK_F_rss_stop_bytes));
		seconds = value_number(value_seconds(attempt_wall_ns(a)), &known);
		if (a->counted && known) {
			wall[j] += seconds;
			n[j]++;
		}
	}
	for (i = 0; !rc && i < t->n; i++)
		t->v[i].mean_task_wall = n[i] ? wall[i] / (double)n[i] : (double)NAN;
	free(place);
	free(wall);
	free(n);
	return rc;
}

static double grid_step(const struct run *r)
{
	return fmax(1, (r->to - r->from) / GRID_POINTS);
}

double tracking_moment(const struct run *r, size_t i)
{
	double step = grid_step(r), last = ceil((r->to - r->from) / step);

	return (double)i <= last ? fmin(r->from + (double)i * step, r->to) : (double)NAN;
}

/* The time of the worker's last message, until it left. */
static int track_last_seen(const struct run *r, struct worker_track *t)
{
	const struct worker *w = t->worker;
	double end = w->goodbye ? worker_utc(w, w->goodbye_boot_ns) : (double)INFINITY, at;
	size_t i, k = 0;
	int rc = 0;

	for (i = 0; (at = tracking_moment(r, i)) <= end && !rc; i++) {
		while (k < w->probes.n && w->probes.v[k].time <= at)
			k++;
		if (k)
			rc = add_point(&t->last_seen, at, w->probes.v[k - 1].time);
	}
	return rc;
}

/* Workers or threads that come (negative: leave). */
struct change {
	double time, step;
};

/* Who leaves at that time leaves first. */
static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->time < y->time || x->time > y->time)
		return x->time < y->time ? -1 : 1;
	return x->step < y->step ? -1 : x->step > y->step;
}

/* Until its last message if it is gone: 1 or 2 changes. */
static size_t add_life(struct change *c, const struct worker *w, double step)
{
	c[0] = (struct change){w->first, step};
	if (!w->goodbye && !w->silent)
		return 1;
	c[1] = (struct change){w->goodbye ? worker_utc(w, w->goodbye_boot_ns) : w->last, -step};
	return 2;
}

static double most_at_once(const struct run *r, struct change *c, size_t n)
{
	double now = 0, most = 0;
	size_t i;

	qsort(c, n, sizeof(*c), by_time);
	for (i = 0; i < n && (c[i].time <= r->from || c[i].time < r->to); i++) {
		if (c[i].time > r->from)
			most = fmax(most, now);
		now += c[i].step;
	}
	return isnan(now) ? now : fmax(most, now);
}

static int by_host(const void *a, const void *b)
{
	const struct worker_track *const *x = a, *const *y = b;
	uintptr_t m = (uintptr_t)(*x)->worker->host, n = (uintptr_t)(*y)->worker->host;

	return m < n ? -1 : m > n;
}

/* A worker that replaced another one adds no threads. 0 or -ENOMEM. */
static int count_threads(const struct run *r, struct tracking *t)
{
	struct worker_track **track = calloc(t->n + 1, sizeof(*track));
	struct change *c = calloc(2 * t->n + 1, sizeof(*c));
	int rc = track && c ? 0 : -ENOMEM;
	size_t i, k, n;
	double most, cores;

	for (i = 0; !rc && i < t->n; i++)
		track[i] = &t->v[i];
	if (!rc)
		qsort(track, t->n, sizeof(*track), by_host);
	for (i = 0; !rc && i < t->n;) {
		cores = (double)NAN;
		for (n = 0, k = i; k < t->n && !by_host(&track[i], &track[k]); k++) {
			n += add_life(c + n, track[k]->worker, value_number(track[k]->cores, NULL));
			cores = fmax(cores, value_number(track[k]->worker->cores, NULL));
		}
		most = most_at_once(r, c, n);
		for (; i < k; i++) {
			track[i]->host_threads = most;
			track[i]->host_cores = cores;
		}
	}
	free(track);
	free(c);
	return rc;
}

/* The number of workers: each second (in a run above two hours: GRID_POINTS times), and just before
 * and after each change. */
static int count_workers(const struct run *r, struct series *out)
{
	struct change *c = calloc(2 * r->workers.n + 1, sizeof(*c));
	double step = grid_step(r), t, now = 0;
	size_t n = 0, i, k = 0;
	int rc = 0;

	if (!c)
		return -ENOMEM;
	for (i = 0; i < r->workers.n; i++)
		n += add_life(c + n, r->workers.v[i], 1);
	qsort(c, n, sizeof(*c), by_time);
	while (k < n && c[k].time <= r->from)
		now += c[k++].step;
	for (i = 0; !rc && r->from + (double)i * step < r->to; i++) {
		t = r->from + (double)i * step;
		for (; k < n && c[k].time <= t && !rc; k++) {
			rc = add_point(out, c[k].time, now);
			now += c[k].step;
			rc = rc ? rc : add_point(out, c[k].time, now);
		}
		rc = rc ? rc : add_point(out, t, now);
	}
	for (; k < n && c[k].time < r->to && !rc; k++) {
		rc = add_point(out, c[k].time, now);
		now += c[k].step;
		rc = rc ? rc : add_point(out, c[k].time, now);
	}
	free(c);
	return rc ? rc : add_point(out, r->to, now);
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int median_interval(const struct tracking *t, double *median)
{
	struct {
		double *v;
		size_t n, cap;
	} d = {0};
	double *at;
	size_t i, k;

	*median = (double)NAN;
	for (i = 0; i < t->n; i++) {
		for (k = 1; k < t->v[i].memory.n; k++) {
			at = ARRAY_NEW(&d);
			if (!at) {
				free(d.v);
				return -ENOMEM;
			}
			*at = t->v[i].memory.v[k].time - t->v[i].memory.v[k - 1].time;
		}
	}
	if (d.n) {
		qsort(d.v, d.n, sizeof(*d.v), by_number);
		*median = d.v[d.n / 2];
	}
	free(d.v);
	return 0;
}

struct tracking *tracking_build(const struct run *run)
{
	struct tracking *t = calloc(1, sizeof(*t));
	size_t i;

	if (!t)
		return NULL;
	t->v = calloc(run->workers.n + 1, sizeof(*t->v));
	if (!t->v)
		goto fail;
	t->n = run->workers.n;
	for (i = 0; i < t->n; i++) {
		t->v[i].worker = run->workers.v[i];
		t->v[i].cores = run->workers.v[i]->nthreads;
		t->v[i].memory_limit = run->workers.v[i]->memory_limit_bytes;
		t->v[i].peak_rss = t->v[i].mean_task_wall = (double)NAN;
	}
	if (track_tasks(run, t))
		goto fail;
	for (i = 0; i < t->n; i++) {
		if (track_samples(run, &t->v[i]) || track_probes(run, &t->v[i]))
			goto fail;
	}
	if ((!isnan(run->from) && count_workers(run, &t->workers)) || count_threads(run, t))
		goto fail;
	for (i = 0; i < t->n; i++) {
		if (track_last_seen(run, &t->v[i]))
			goto fail;
	}
	if (!median_interval(t, &t->interval))
		return t;
fail:
	tracking_free(t);
	return NULL;
}

void tracking_free(struct tracking *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; t->v && i < t->n; i++) {
		free(t->v[i].memory.v);
		free(t->v[i].cpu.v);
		free(t->v[i].limit.v);
		free(t->v[i].nthreads.v);
		free(t->v[i].executing.v);
		free(t->v[i].active.v);
		free(t->v[i].nbytes.v);
		free(t->v[i].last_seen.v);
		free(t->v[i].occupancy.v);
		free(t->v[i].spilled.v);
	}
	free(t->v);
	free(t->workers.v);
	free(t);
}

const char *iso_time(double utc, char *out, size_t size)
{
	double whole = floor(utc);
	long micro;
	time_t t;
	struct tm tm;
	size_t n;

	if (isnan(utc) || fabs(utc) > 1e15)
		return NULL;
	micro = (long)((utc - whole) * 1e6);
	t = (time_t)whole;
	if (!gmtime_r(&t, &tm))
		return NULL;
	n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, size - n, ".%06ld+00:00", micro);
	return out;
}
