/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_series.c - workers, threads and running tasks over time, and memory against its limit.
 *
 * A bin holds the mean over its time, which is exact if starts and ends are. For memory, which is
 * sampled, it holds the largest sample. A task's seconds in each class are spread evenly over its
 * time, so the classes of a bin never exceed the tasks that ran in it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/page/page.h"

/* Seconds spent at a level, by bin. */
struct bins {
	double start, width;
	double v[PAGE_BINS];
};

static void bins_add(struct bins *b, double from, double to, double level)
{
	double at = from - b->start, end = to - b->start, edge;
	size_t i;

	at = at > 0 ? at : 0;
	if (!(b->width > 0) || !(end > at))
		return;
	for (i = (size_t)fmin(at / b->width, PAGE_BINS - 1); i < PAGE_BINS && at < end; i++) {
		edge = (double)(i + 1) * b->width;
		if (edge > at)
			b->v[i] += level * ((edge < end ? edge : end) - at);
		at = edge > at ? edge : at;
	}
}

/* The mean level of each bin in thousandths. */
static void put_bins(const struct bins *b, const char *name, bool known, struct json *j)
{
	size_t i;

	emit_array(j, name);
	for (i = 0; known && b->width > 0 && i < PAGE_BINS; i++)
		emit_value(j, NULL, value_int((int64_t)llround(b->v[i] / b->width * 1000)));
	emit_end(j);
}

static double end_of(const struct worker *w, double otherwise)
{
	if (w->goodbye)
		return worker_utc(w, w->goodbye_boot_ns);
	return w->silent ? w->last : otherwise;
}

/* How many threads were in each class: for all attempts that held one. */
static void put_threads(const struct run *run, double width, struct json *j)
{
	struct bins *bins = calloc(CREMA_TIMES + 1, sizeof(*bins));
	const struct attempt *a;
	struct classes c;
	double begin, end, seconds;
	size_t i, k;

	if (!bins) {
		j->sink->error = -ENOMEM;
		return;
	}
	for (k = 0; k <= CREMA_TIMES; k++)
		bins[k].start = run->start, bins[k].width = width;
	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		begin = attempt_begin(a);
		end = attempt_end(a);
		if (!attempt_holds_thread(a) || !(end > begin))
			continue;
		attempt_classes(a, &c);
		for (k = 0; k <= CREMA_TIMES; k++) {
			seconds = value_number(k < CREMA_TIMES ? c.cls[k]
							       : value_rest(c.unclassified, c.wall),
					       NULL);
			bins_add(&bins[k], begin, end, seconds / (end - begin));
		}
	}
	emit_object(j, "classes");
	for (k = 0; k < CREMA_TIMES; k++)
		put_bins(&bins[k], class_name((unsigned int)k), true, j);
	put_bins(&bins[CREMA_TIMES], "unclassified", true, j);
	emit_end(j);
	free(bins);
}

static void put_levels(const struct report *r, struct json *j)
{
	const struct run *run = r->run;
	double width = (run->stop - run->start) / PAGE_BINS, end;
	struct bins tasks = {.start = run->start, .width = width}, workers = tasks, threads = tasks;
	const struct worker *w;
	bool known = true, threads_known;
	size_t i;

	for (i = 0; i < run->attempts.n; i++)
		bins_add(&tasks, attempt_begin(run->attempts.v[i]), attempt_end(run->attempts.v[i]),
			 1);
	for (i = 0; i < run->workers.n; i++) {
		w = run->workers.v[i];
		end = end_of(w, run->stop);
		bins_add(&workers, w->first, end, 1);
		bins_add(&threads, w->first, end, value_number(w->nthreads, &threads_known));
		known = known && threads_known;
	}
	emit_object(j, "levels");
	page_micro(j, "bin", width);
	put_bins(&tasks, "tasks", true, j);
	put_bins(&workers, "workers", true, j);
	put_bins(&threads, "threads", known, j);
	put_threads(run, width, j);
	emit_end(j);
}

static double largest(const struct series *s)
{
	double d = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		d = fmax(d, s->v[i].value);
	return d;
}

static int by_memory(const void *a, const void *b)
{
	const struct worker_track *x = *(struct worker_track *const *)a;
	const struct worker_track *y = *(struct worker_track *const *)b;
	double p = largest(&x->memory), q = largest(&y->memory);

	return p > q ? -1 : p < q;
}

/* [time, bytes]: all samples, or the largest of each bin. */
static void put_curve(const struct run *run, const struct series *s, struct json *j)
{
	double width = (run->stop - run->start) / PAGE_BINS;
	bool all = s->n <= PAGE_BINS || !(width > 0);
	size_t i, k, best;

	emit_array(j, "points");
	for (i = 0; i < s->n; i = k) {
		best = i;
		for (k = i + 1;
		     !all && k < s->n && floor(s->v[k].time / width) == floor(s->v[i].time / width);
		     k++) {
			if (s->v[k].value > s->v[best].value)
				best = k;
		}
		emit_array(j, NULL);
		page_micro(j, NULL, s->v[best].time - run->start);
		emit_value(j, NULL, value_int((int64_t)s->v[best].value));
		emit_end(j);
	}
	emit_end(j);
}

static void put_memory(const struct report *r, struct json *j)
{
	const struct tracking *t = r->facts->tracking;
	struct worker_track **v = calloc(t->n + 1, sizeof(*v));
	size_t i;

	if (!v) {
		j->sink->error = -ENOMEM;
		return;
	}
	for (i = 0; i < t->n; i++)
		v[i] = &t->v[i];
	if (t->n)
		qsort(v, t->n, sizeof(*v), by_memory);
	emit_object(j, "memory");
	emit_value(j, "total", value_uint(t->n));
	emit_array(j, "workers");
	for (i = 0; i < t->n && i < PAGE_CURVES; i++) {
		emit_object(j, NULL);
		page_name(j, "worker", v[i]->worker->label);
		emit_value(j, "limit_bytes", v[i]->memory_limit);
		emit_value(j, "peak_bytes", value_real(v[i]->peak_rss));
		put_curve(r->run, &v[i]->memory, j);
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
	free(v);
}

void page_series(const struct report *r, struct json *j)
{
	put_levels(r, j);
	put_memory(r, j);
}
