/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_outside.c - what Dask's workers did outside of tasks during the run: serializing and
 * deserializing results sent to other workers and to the client, spilling by the memory monitor,
 * receiving from the scheduler, and full garbage collections.
 *
 * Dask reports no task and no span for it, so it belongs to the worker: the difference of the
 * probes around the run, which are half a second apart. Two runs at the same time on a worker both
 * include it; concurrent_runs counts such runs.
 */
#include "collector/metrics/metrics.h"

#include <math.h>

#define BORN_SECONDS 1.0 /* a worker's first probe comes with its first message */

/* The time of the last probe at or before t; NAN: none. */
static double probe_before(const struct worker *w, double t)
{
	double found = (double)NAN;
	size_t i;

	for (i = 0; i < w->probes.n && w->probes.v[i].time <= t; i++)
		found = w->probes.v[i].time;
	return found;
}

/* Of the first probe at or after t, else of the last one: the worker has left, or sends more
 * soon. */
static double probe_after(const struct worker *w, double t)
{
	size_t i;

	for (i = 0; i < w->probes.n; i++) {
		if (w->probes.v[i].time >= t)
			return w->probes.v[i].time;
	}
	return w->probes.n ? w->probes.v[i - 1].time : (double)NAN;
}

/* The value in the probe of that time; 0 before the first. */
static double said_at(const struct worker *w, enum outside_series s, double t)
{
	double found = 0;
	size_t i;

	for (i = 0; i < w->outside.n && worker_utc(w, w->outside.v[i].boot_ns) <= t; i++)
		found = w->outside.v[i].v[s];
	return found;
}

static bool worked(const struct run *r, const struct worker *w)
{
	size_t i;

	for (i = 0; i < r->attempts.n; i++) {
		if (r->attempts.v[i]->worker == w)
			return true;
	}
	return false;
}

/* NAN: unknown */
static double outside_of(const struct run *r, const struct worker *w, enum outside_series s)
{
	double before = probe_before(w, r->from), after = probe_after(w, r->to);

	if (isnan(after))
		return worked(r, w) ? (double)NAN : 0;
	if (isnan(before) && !(w->first >= r->from - BORN_SECONDS))
		return (double)NAN;
	return said_at(w, s, after) - (isnan(before) ? 0 : said_at(w, s, before));
}

struct value digests_outside(const struct facts *f, enum outside_series s)
{
	double sum = 0;
	size_t i;

	for (i = 0; f->dask && i < f->run->workers.n; i++)
		sum += outside_of(f->run, f->run->workers.v[i], s);
	return f->dask ? value_real(sum) : value_null();
}

/* What was collected between two probes, less the time between them that is outside of the run: a
 * process collects in one thread at a time. */
static double collected_between(const struct worker *w, double from, double to, double outside)
{
	double s = said_at(w, OUTSIDE_GC, to) - said_at(w, OUTSIDE_GC, from);

	return isnan(s) ? s : fmax(0, s - fmax(0, outside));
}

/* At least; NAN: unknown */
static double collected_in(const struct run *r, const struct worker *w)
{
	double before = probe_before(w, r->from), after = probe_after(w, r->to);
	double first = probe_after(w, r->from), last = probe_before(w, r->to);
	double early = r->from - (isnan(before) ? w->first : before), late = after - r->to;

	if (isnan(after) || isnan(outside_of(r, w, OUTSIDE_GC)))
		return outside_of(r, w, OUTSIDE_GC);
	if (isnan(before)) /* collections before the first message are unknown */
		before = -INFINITY;
	if (!(last >= first))
		return collected_between(w, before, after, fmax(0, early) + fmax(0, late));
	return collected_between(w, before, first, early) + collected_between(w, first, last, 0) +
	       collected_between(w, last, after, late);
}

struct value digests_collected(const struct facts *f)
{
	double sum = 0;
	size_t i;

	for (i = 0; f->dask && i < f->run->workers.n; i++)
		sum += collected_in(f->run, f->run->workers.v[i]);
	return f->dask ? value_real(sum) : value_null();
}

/* The tasks' part, by their spans, plus the workers' own. */
static struct value both(const struct facts *f, const char *activity, const char *unit,
			 enum outside_series s)
{
	return value_plus(digests_sum(f, activity, unit, -1), digests_outside(f, s));
}

#define OUTSIDE(metric, series)                                                                    \
	struct value metric_##metric(const struct facts *f)                                        \
	{                                                                                          \
		return digests_outside(f, OUTSIDE_##series);                                       \
	}

#define BOTH(metric, activity, unit, series)                                                       \
	struct value metric_##metric(const struct facts *f)                                        \
	{                                                                                          \
		return both(f, activity, unit, OUTSIDE_##series);                                  \
	}

struct value metric_concurrent_runs(const struct facts *f)
{
	return f->run->plain ? value_null() : value_uint(run_concurrent(f->run));
}

OUTSIDE(transfer_serialize_seconds, SERIALIZE)
OUTSIDE(transfer_deserialize_seconds, DESERIALIZE)
OUTSIDE(transfer_compress_seconds, COMPRESS)
OUTSIDE(transfer_decompress_seconds, DECOMPRESS)
BOTH(dask_compress_seconds, "compress", "seconds", COMPRESS)
BOTH(dask_decompress_seconds, "decompress", "seconds", DECOMPRESS)
BOTH(serialization_time_seconds, "serialize", "seconds", SERIALIZE)
BOTH(deserialization_time_seconds, "deserialize", "seconds", DESERIALIZE)
BOTH(dask_spill_read_bytes, "disk-read", "bytes", DISK_READ)
BOTH(dask_spill_write_bytes, "disk-write", "bytes", DISK_WRITE)
OUTSIDE(gc_seconds, GC)
OUTSIDE(task_message_bytes, STREAM)
