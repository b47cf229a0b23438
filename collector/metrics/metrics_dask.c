/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_dask.c - Dask's fine metrics of the run's spans, as reported by its workers. */
#include "collector/metrics/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST(metric, activity, unit, processor)                                                  \
	struct value metric_##metric(const struct facts *f)                                        \
	{                                                                                          \
		return digests_sum(f, activity, unit, processor);                                  \
	}

DIGEST(cpu_time_seconds, "thread-cpu", "seconds", -1)
DIGEST(io_time_seconds, "thread-noncpu", "seconds", -1)
DIGEST(executor_time_seconds, "executor", "seconds", -1)
DIGEST(other_time_seconds, "other", "seconds", -1)
DIGEST(total_bytes_memory_read_dask, "memory-read", "bytes", -1)
DIGEST(memory_read_count, "memory-read", "count", -1)
DIGEST(processor_cpu_time_seconds, "thread-cpu", "seconds", 1)
DIGEST(processor_noncpu_time_seconds, "thread-noncpu", "seconds", 1)
DIGEST(overhead_cpu_time_seconds, "thread-cpu", "seconds", 0)
DIGEST(overhead_noncpu_time_seconds, "thread-noncpu", "seconds", 0)

struct value metric_processor_cpu_percentage(const struct facts *f)
{
	struct value cpu = metric_processor_cpu_time_seconds(f);

	return value_ratio(cpu, value_plus(cpu, metric_processor_noncpu_time_seconds(f)), 100);
}

struct value metric_processor_noncpu_percentage(const struct facts *f)
{
	struct value rest = metric_processor_noncpu_time_seconds(f);

	return value_ratio(rest, value_plus(rest, metric_processor_cpu_time_seconds(f)), 100);
}

struct value metric_dask_total_compression_overhead_seconds(const struct facts *f)
{
	return value_plus(metric_dask_compress_seconds(f), metric_dask_decompress_seconds(f));
}

struct value metric_total_serialization_overhead_seconds(const struct facts *f)
{
	return value_plus(metric_serialization_time_seconds(f),
			  metric_deserialization_time_seconds(f));
}

void metric_processor_prefixes(const struct facts *f, const char *name, struct json *j)
{
	size_t i, k;

	emit_array(j, name);
	for (i = 0; i < f->processors.n; i++) {
		for (k = 0; k < i && f->processors.v[k].prefix != f->processors.v[i].prefix; k++)
			;
		if (k == i)
			emit_value(j, NULL, value_text(f->processors.v[i].prefix));
	}
	emit_end(j);
}

/* Digests of the run summed over workers and spans, by prefix, context, activity and unit. */
struct rows {
	struct digest *v;
	size_t n, cap;
};

static int by_names(const void *pa, const void *pb)
{
	const struct digest *a = pa, *b = pb;
	int c = text_order(a->prefix, b->prefix);

	if (!c)
		c = text_order(a->activity, b->activity);
	if (!c)
		c = text_order(a->unit, b->unit);
	return c ? c : text_order(a->context, b->context);
}

/* Sorts by names and sums rows with equal names. */
static void fold(struct rows *rows)
{
	size_t i, kept = 0;

	if (!rows->n)
		return;
	qsort(rows->v, rows->n, sizeof(*rows->v), by_names);
	for (i = 1; i < rows->n; i++) {
		if (!by_names(&rows->v[kept], &rows->v[i]))
			rows->v[kept].value += rows->v[i].value;
		else
			rows->v[++kept] = rows->v[i];
	}
	rows->n = kept + 1;
}

/* Also sums rows that differ only in their context (and prefix). */
static void fold_names(struct rows *rows, bool prefixes)
{
	size_t i;

	for (i = 0; i < rows->n; i++) {
		rows->v[i].context = NULL;
		if (prefixes)
			rows->v[i].prefix = NULL;
	}
	fold(rows);
}

/* The run's digests of one worker, or of all. */
static void gather(const struct facts *f, const struct worker *only, struct rows *rows,
		   struct json *j)
{
	const struct model *m = f->run->model;
	const struct worker *w;
	struct digest *d;
	size_t i, k;

	for (i = 0; i < m->workers.n; i++) {
		w = m->workers.v[i];
		for (k = 0; k < w->digests.n && (!only || only == w); k++) {
			if (run_digest(f->run, w->digests.v[k].span, w->digests.v[k].prefix) !=
			    DIGEST_OWN)
				continue;
			d = ARRAY_NEW(rows);
			if (!d) {
				j->sink->error = -ENOMEM;
				return;
			}
			*d = w->digests.v[k];
		}
	}
	fold(rows);
}

void metric_span_metrics(const struct facts *f, const char *name, struct json *j)
{
	struct rows rows = {0};
	size_t i;

	if (!f->dask) {
		emit_value(j, name, value_null());
		return;
	}
	gather(f, NULL, &rows, j);
	emit_array(j, name);
	for (i = 0; i < rows.n; i++) {
		emit_array(j, NULL);
		emit_value(j, NULL, value_text(rows.v[i].context));
		emit_value(j, NULL, value_text(rows.v[i].prefix));
		emit_value(j, NULL, value_text(rows.v[i].activity));
		emit_value(j, NULL, value_text(rows.v[i].unit));
		emit_value(j, NULL, value_real(rows.v[i].value));
		emit_end(j);
	}
	emit_end(j);
	free(rows.v);
}

static const char *member(const char *s)
{
	return s ? s : "unknown";
}

/* activity -> unit -> value for rows from i to n with the same prefix; returns the next index */
static size_t emit_activities(const struct rows *rows, size_t i, struct json *j)
{
	const char *prefix = rows->v[i].prefix, *activity = NULL;
	const struct digest *d;
	bool open = false;

	for (; i < rows->n && rows->v[i].prefix == prefix; i++) {
		d = &rows->v[i];
		if (!open || d->activity != activity) {
			if (open)
				emit_end(j);
			emit_object(j, member(d->activity));
			activity = d->activity;
			open = true;
		}
		emit_value(j, member(d->unit), value_real(d->value));
	}
	if (open)
		emit_end(j);
	return i;
}

void metric_per_task_metrics(const struct facts *f, const char *name, struct json *j)
{
	struct rows rows = {0};
	size_t i = 0;

	if (!f->dask) {
		emit_value(j, name, value_null());
		return;
	}
	gather(f, NULL, &rows, j);
	fold_names(&rows, false);
	emit_object(j, name);
	while (i < rows.n) {
		emit_object(j, member(rows.v[i].prefix));
		i = emit_activities(&rows, i, j);
		emit_end(j);
	}
	emit_end(j);
	free(rows.v);
}

void digests_emit_activities(const struct facts *f, const struct worker *w, const char *name,
			     struct json *j)
{
	struct rows rows = {0};

	if (!w->digests_boot_ns) {
		emit_value(j, name, value_null());
		return;
	}
	gather(f, w, &rows, j);
	fold_names(&rows, true);
	emit_object(j, name);
	if (rows.n)
		emit_activities(&rows, 0, j);
	emit_end(j);
	free(rows.v);
}
