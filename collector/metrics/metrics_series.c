/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_series.c - the workers' series over time: tracking_data in JSON, and point by point. */
#include "collector/metrics/metrics.h"

#include <math.h>
#include <string.h>

void series_emit_point(struct json *j, double time, const char *name, struct value v)
{
	char text[40];

	emit_object(j, NULL);
	emit_value(j, "timestamp", value_text(iso_time(time, text, sizeof(text))));
	emit_value(j, name, v);
	emit_end(j);
}

/* A kind of series of every worker: its offset, the name in each point, whether values are
 * whole. */
struct column {
	const char *name, *point;
	size_t offset;
	bool whole;
};

#define COLUMN(name, point, member, whole)                                                         \
	{                                                                                          \
		name, point, offsetof(struct worker_track, member), whole                          \
	}

static const struct column columns[] = {
	COLUMN("worker_memory", "memory_bytes", memory, true),
	COLUMN("worker_memory_limit", "memory_limit_bytes", limit, true),
	COLUMN("worker_cores", "cores", nthreads, true),
	COLUMN("worker_active_tasks", "active_tasks", active, true),
	COLUMN("worker_executing", "executing", executing, true),
	COLUMN("worker_nbytes", "nbytes", nbytes, true),
	COLUMN("worker_occupancy", "occupancy", occupancy, false),
	COLUMN("worker_spilled", "spilled_bytes", spilled, true),
	COLUMN("worker_cpu_occupancy", "cpu_percent", cpu, false),
};

static struct value value_of(const struct column *c, double v)
{
	return c->whole && v >= 0 && v < 1e19 ? value_uint((uint64_t)v) : value_real(v);
}

static const struct series *series_of(const struct column *c, const struct worker_track *t)
{
	return (const struct series *)((const char *)t + c->offset);
}

static void emit_column(const struct facts *f, const struct column *c, const char *name,
			struct json *j)
{
	const struct series *s;
	size_t i, k;

	emit_object(j, name);
	for (i = 0; i < f->tracking->n; i++) {
		s = series_of(c, &f->tracking->v[i]);
		emit_array(j, f->tracking->v[i].worker->label);
		for (k = 0; k < s->n; k++) {
			series_emit_point(j, s->v[k].time, c->point, value_of(c, s->v[k].value));
		}
		emit_end(j);
	}
	emit_end(j);
}

static void emit_named(const struct facts *f, const char *id, const char *name, struct json *j)
{
	size_t i;

	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		if (!strcmp(columns[i].name, id))
			emit_column(f, &columns[i], name, j);
	}
}

void metric_worker_cpu_occupancy(const struct facts *f, const char *name, struct json *j)
{
	emit_named(f, "worker_cpu_occupancy", name, j);
}

void metric_worker_active_tasks(const struct facts *f, const char *name, struct json *j)
{
	emit_named(f, "worker_active_tasks", name, j);
}

void metric_worker_occupancy(const struct facts *f, const char *name, struct json *j)
{
	emit_named(f, "worker_occupancy", name, j);
}

/* [{timestamp, last_seen, seconds}]: the difference of the two, which grows while a worker is
 * blocked or dead */
static void emit_last_seen(const struct facts *f, struct json *j)
{
	const struct series *s;
	char text[40];
	size_t i, k;

	emit_object(j, "worker_last_seen");
	for (i = 0; i < f->tracking->n; i++) {
		s = &f->tracking->v[i].last_seen;
		emit_array(j, f->tracking->v[i].worker->label);
		for (k = 0; k < s->n; k++) {
			emit_object(j, NULL);
			emit_value(j, "timestamp",
				   value_text(iso_time(s->v[k].time, text, sizeof(text))));
			emit_value(j, "last_seen",
				   value_text(iso_time(s->v[k].value, text, sizeof(text))));
			emit_value(j, "seconds", value_real(s->v[k].time - s->v[k].value));
			emit_end(j);
		}
		emit_end(j);
	}
	emit_end(j);
}

void tracking_emit(const struct facts *f, struct json *j)
{
	const struct series *s = &f->tracking->workers;
	size_t i;

	emit_object(j, "tracking_data");
	emit_array(j, "worker_counts");
	for (i = 0; i < s->n; i++)
		series_emit_point(j, s->v[i].time, "worker_count",
				  value_uint((uint64_t)s->v[i].value));
	emit_end(j);
	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		emit_column(f, &columns[i], columns[i].name, j);
	emit_last_seen(f, j);
	emit_array(j, "estimated");
	emit_value(j, NULL, value_text("worker_active_tasks"));
	emit_value(j, NULL, value_text("worker_occupancy"));
	emit_end(j);
	emit_end(j);
}

void tracking_each(const struct facts *f, tracking_visitor see, void *arg)
{
	const struct tracking *t = f->tracking;
	const struct series *s;
	size_t i, c, k;

	for (k = 0; k < t->workers.n; k++)
		see(arg, NULL, "worker_counts", t->workers.v[k].time,
		    value_uint((uint64_t)t->workers.v[k].value));
	for (i = 0; i < t->n; i++) {
		for (c = 0; c < sizeof(columns) / sizeof(*columns); c++) {
			s = series_of(&columns[c], &t->v[i]);
			for (k = 0; k < s->n; k++)
				see(arg, t->v[i].worker, columns[c].name, s->v[k].time,
				    value_of(&columns[c], s->v[k].value));
		}
		s = &t->v[i].last_seen;
		for (k = 0; k < s->n; k++)
			see(arg, t->v[i].worker, "worker_last_seen", s->v[k].time,
			    value_real(s->v[k].value));
	}
}
