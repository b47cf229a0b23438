/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measurement_tracking.c - tracking_data as roastcoffea keeps it. Its plots look for equal times in
 * memory and limit, and in all workers, so the samples are put on one grid: at each moment the
 * sample of the worker that is nearest to it, none if that is farther than NEAR_SECONDS.
 */
#include <math.h>
#include <stddef.h>

#include "collector/export/measurement_parts.h"

#define NEAR_SECONDS 1.5
#define GRID_STEP 0.5	   /* as often as a worker is looked at */
#define GRID_POINTS 7200   /* at most, of each series */
#define ALL_POINTS 2000000 /* at most, of all of them */
#define MICROSECOND 1e-6

struct kind {
	const char *name;
	size_t offset;
	bool whole;
};

#define KIND(name, member, whole)                                                                  \
	{                                                                                          \
		name, offsetof(struct worker_track, member), whole                                 \
	}

static const struct kind kinds[] = {
	KIND("worker_memory", memory, true),
	KIND("worker_memory_limit", limit, true),
	KIND("worker_active_tasks", active, true),
	KIND("worker_cores", nthreads, true),
	KIND("worker_nbytes", nbytes, true),
	KIND("worker_occupancy", occupancy, false),
	KIND("worker_executing", executing, true),
	KIND("worker_last_seen", last_seen, false),
	KIND("worker_cpu", cpu, false),
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

struct moments {
	double start, step;
	size_t n;
};

static struct moments moments_of(const struct facts *f)
{
	const struct run *r = f->run;
	double length = r->to - r->from;
	struct moments m = {.start = r->from};

	if (!(length >= 0))
		return m;
	m.step = fmax(GRID_STEP, length / GRID_POINTS);
	m.step = fmax(m.step, length * (double)(f->tracking->n * KINDS) / ALL_POINTS);
	m.n = (size_t)(length / m.step) + 2; /* the end too */
	return m;
}

static void put_point(struct json *j, double time, struct value v)
{
	char text[40];

	emit_array(j, NULL);
	emit_value(j, NULL, value_text(iso_time(time, text, sizeof(text))));
	emit_value(j, NULL, v);
	emit_end(j);
}

static void put_series(const struct run *r, const struct moments *m, const struct series *s,
		       bool whole, struct json *j)
{
	double t, v;
	size_t i, k = 0;

	for (i = 0; i < m->n && s->n; i++) {
		t = fmin(m->start + (double)i * m->step, r->to);
		while (k + 1 < s->n && fabs(s->v[k + 1].time - t) <= fabs(s->v[k].time - t))
			k++;
		v = s->v[k].value;
		if (fabs(s->v[k].time - t) > NEAR_SECONDS)
			continue;
		put_point(j, t,
			  whole && v >= 0 && v < 1e19 ? value_uint((uint64_t)v) : value_real(v));
		if (t >= r->to)
			break;
	}
}

/* {time: count}; the count before a change is put a microsecond before the one after it. */
static void put_counts(const struct series *s, struct json *j)
{
	char text[40];
	double t;
	size_t i;

	emit_object(j, "worker_counts");
	for (i = 0; i < s->n; i++) {
		t = s->v[i].time;
		if (i + 1 < s->n && s->v[i + 1].time - t < MICROSECOND) {
			if (s->v[i + 1].value == s->v[i].value)
				continue;
			t -= MICROSECOND;
		}
		if (iso_time(t, text, sizeof(text)))
			emit_value(j, text, value_uint((uint64_t)s->v[i].value));
	}
	emit_end(j);
}

void measurement_tracking(const struct facts *f, struct json *j)
{
	const struct tracking *t = f->tracking;
	struct moments m = moments_of(f);
	const struct series *s;
	size_t i, k;

	emit_object(j, "tracking_data");
	put_counts(&t->workers, j);
	for (k = 0; k < KINDS; k++) {
		emit_object(j, kinds[k].name);
		for (i = 0; i < t->n; i++) {
			s = (const struct series *)((const char *)&t->v[i] + kinds[k].offset);
			if (!s->n)
				continue;
			emit_array(j, t->v[i].worker->label);
			put_series(f->run, &m, s, kinds[k].whole, j);
			emit_end(j);
		}
		emit_end(j);
	}
	emit_array(j, "estimated");
	emit_value(j, NULL, value_text("worker_active_tasks"));
	emit_value(j, NULL, value_text("worker_occupancy"));
	emit_end(j);
	emit_end(j);
}
