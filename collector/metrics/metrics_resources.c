/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_resources.c - workers, cores, memory over time. */
#include "collector/metrics/metrics.h"

#include <math.h>
#include <string.h>

#define PRESSURE_PERCENT 80.0
#define SAMPLE_MAX_AGE 2.5 /* how long a sample is valid, in seconds, when workers are combined */

struct value metric_avg_workers(const struct facts *f)
{
	return value_real(series_average(&f->tracking->workers));
}

struct value metric_mean_workers(const struct facts *f)
{
	const struct series *s = &f->tracking->workers;
	double sum = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		sum += s->v[i].value;
	return s->n ? value_real(sum / (double)s->n) : value_null();
}

struct value metric_peak_workers(const struct facts *f)
{
	const struct series *s = &f->tracking->workers;
	double peak = -1;
	size_t i;

	for (i = 0; i < s->n; i++)
		peak = fmax(peak, s->v[i].value);
	return peak < 0 ? value_null() : value_uint((uint64_t)peak);
}

struct value metric_cores_per_worker(const struct facts *f)
{
	struct spread s = {0};
	size_t i;

	for (i = 0; i < f->tracking->n; i++)
		spread_add(&s, f->tracking->v[i].cores);
	return spread_mean(&s);
}

struct value metric_total_cores(const struct facts *f)
{
	bool known;
	double cores = value_number(metric_cores_per_worker(f), &known);

	return known ? value_real(series_average(&f->tracking->workers) * cores) : value_null();
}

struct value metric_avg_memory_per_worker_bytes(const struct facts *f)
{
	struct spread s = {0};
	double avg;
	size_t i;

	for (i = 0; i < f->tracking->n; i++) {
		avg = series_average(&f->tracking->v[i].memory);
		if (!isnan(avg))
			spread_add(&s, value_real(avg));
	}
	return spread_mean(&s);
}

struct value metric_peak_memory_per_worker_bytes(const struct facts *f)
{
	double peak = (double)NAN;
	size_t i;

	for (i = 0; i < f->tracking->n; i++)
		peak = fmax(peak, f->tracking->v[i].peak_rss);
	return isnan(peak) ? value_null() : value_uint((uint64_t)peak);
}

struct value metric_peak_memory_bytes(const struct facts *f)
{
	return metric_peak_memory_per_worker_bytes(f);
}

/* Resident set / limit of every sample of every worker that has a limit. */
static struct spread memory_use(const struct facts *f)
{
	const struct worker_track *t;
	struct spread s = {0};
	size_t i, k;

	for (i = 0; i < f->tracking->n; i++) {
		t = &f->tracking->v[i];
		if (t->memory_limit.type == VALUE_NULL)
			continue;
		for (k = 0; k < t->memory.n; k++)
			spread_add(&s, value_ratio(value_real(t->memory.v[k].value),
						   t->memory_limit, 100));
	}
	return s;
}

struct value metric_avg_memory_utilization_percent(const struct facts *f)
{
	struct spread s = memory_use(f);

	return spread_mean(&s);
}

struct value metric_min_memory_utilization_percent(const struct facts *f)
{
	struct spread s = memory_use(f);

	return s.n ? value_real(s.min) : value_null();
}

struct value metric_max_memory_utilization_percent(const struct facts *f)
{
	struct spread s = memory_use(f);

	return s.n ? value_real(s.max) : value_null();
}

struct value metric_memory_pressure(const struct facts *f)
{
	struct spread s = memory_use(f);

	return s.n ? value_bool(s.max > PRESSURE_PERCENT) : value_null();
}

struct value metric_spilled_bytes(const struct facts *f)
{
	const struct series *s;
	double sum = 0, peak;
	bool known = false;
	size_t i, k;

	for (i = 0; i < f->tracking->n; i++) {
		s = &f->tracking->v[i].spilled;
		for (k = 0, peak = 0; k < s->n; k++)
			peak = fmax(peak, s->v[k].value);
		known = known || s->n;
		sum += peak;
	}
	return known ? value_uint((uint64_t)sum) : value_null();
}

/* The newest value at or before t that is recent enough; NAN. */
static double series_at(const struct series *s, double t)
{
	size_t low = 0, high = s->n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (s->v[mid].time <= t)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || s->v[low - 1].time < t - SAMPLE_MAX_AGE)
		return (double)NAN;
	return s->v[low - 1].value;
}

/* At time t over all workers, in percent; NAN if no worker has a value. */
static double memory_at(const struct facts *f, double t)
{
	struct spread s = {0};
	double rss;
	size_t i;

	for (i = 0; i < f->tracking->n; i++) {
		rss = series_at(&f->tracking->v[i].memory, t);
		if (!isnan(rss) && f->tracking->v[i].memory_limit.type != VALUE_NULL)
			spread_add(&s, value_ratio(value_real(rss), f->tracking->v[i].memory_limit,
						   100));
	}
	return s.n ? s.mean : (double)NAN;
}

static double cpu_at(const struct facts *f, double t)
{
	double executing = 0, threads = 0, e, n;
	size_t i;

	for (i = 0; i < f->tracking->n; i++) {
		e = series_at(&f->tracking->v[i].executing, t);
		n = series_at(&f->tracking->v[i].nthreads, t);
		if (isnan(e) || isnan(n))
			continue;
		executing += e;
		threads += n;
	}
	return threads > 0 ? executing / threads * 100 : (double)NAN;
}

static void emit_timeline(const struct facts *f, const char *name, struct json *j,
			  double (*at)(const struct facts *, double))
{
	double time, v;
	size_t i;

	emit_array(j, name);
	for (i = 0; !isnan(time = tracking_moment(f->run, i)); i++) {
		v = at(f, time);
		if (!isnan(v))
			series_emit_point(j, time, "percent", value_real(v));
	}
	emit_end(j);
}

void metric_memory_utilization_percent(const struct facts *f, const char *name, struct json *j)
{
	emit_timeline(f, name, j, memory_at);
}

void metric_cpu_utilization_percent(const struct facts *f, const char *name, struct json *j)
{
	emit_timeline(f, name, j, cpu_at);
}

struct value metric_avg_cpu_utilization_percent(const struct facts *f)
{
	struct spread sum = {0};
	double time, percent;
	size_t i;

	for (i = 0; !isnan(time = tracking_moment(f->run, i)); i++) {
		percent = cpu_at(f, time);
		if (!isnan(percent))
			spread_add(&sum, value_real(percent));
	}
	return spread_mean(&sum);
}

struct value metric_avg_worker_cpu_percent(const struct facts *f)
{
	struct spread sum = {0};
	size_t i, k;

	for (i = 0; i < f->tracking->n; i++) {
		for (k = 0; k < f->tracking->v[i].cpu.n; k++)
			spread_add(&sum, value_real(f->tracking->v[i].cpu.v[k].value));
	}
	return spread_mean(&sum);
}

struct value metric_worker_tracking_interval(const struct facts *f)
{
	return value_real(f->tracking->interval);
}

struct value metric_track_workers(const struct facts *f)
{
	size_t i;

	for (i = 0; i < f->tracking->n; i++) {
		if (f->tracking->v[i].memory.n || f->tracking->v[i].executing.n)
			return value_bool(true);
	}
	return value_bool(false);
}
