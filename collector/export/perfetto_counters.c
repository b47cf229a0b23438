/* SPDX-License-Identifier: BSD-3-Clause */
/* perfetto_counters.c - counters of a worker over time, in a trace. */
#include "collector/export/perfetto.h"

#include <math.h>

/* Bytes of a layer as bits per second; layers hold each other, so each has a counter of its own. */
static const struct {
	enum history_series series;
	const char *name;
} layers[] = {
	{HISTORY_read_bytes, "read calls, Gbit/s"},
	{HISTORY_storage_read_bytes, "from storage, Gbit/s"},
	{HISTORY_network_read_bytes, "from the network, Gbit/s"},
	{HISTORY_decompress_out_bytes, "out of codecs, Gbit/s"},
};

static void put_counter(struct trace *t, size_t pid, const char *name, double time,
			const char *member, double v)
{
	if (isnan(time) || isnan(v) || time < 0)
		return;
	trace_event(t, name, "C", pid, (uint64_t)(time * 1e9));
	emit_object(t->json, "args");
	emit_value(t->json, member, value_real(v));
	emit_end(t->json);
	emit_end(t->json);
}

static void put_samples(struct trace *t, const struct worker *w, size_t pid)
{
	const struct run *run = t->report->run;
	const struct sample *s;
	const struct probe *p;
	size_t i;

	for (i = 0; i < w->samples.n; i++) {
		s = &w->samples.v[i];
		if (!tracking_has(run, s->time))
			continue;
		put_counter(t, pid, "memory, bytes", s->time, "resident", s->rss_bytes);
		put_counter(t, pid, "CPU, %", s->time, "process", s->cpu_percent);
	}
	for (i = 0; i < w->probes.n; i++) {
		p = &w->probes.v[i];
		if (!tracking_has(run, p->time))
			continue;
		put_counter(t, pid, "tasks executing", p->time, "executing", p->executing);
		put_counter(t, pid, "tasks ready", p->time, "ready", p->ready);
	}
}

/* When the series of a point was read: some come with the worker's own snapshot. */
static uint64_t point_ns(const struct worker *w, const struct history_point *p,
			 enum history_series s)
{
	return worker_utc_ns(w,
			     history_is_sampled(s) && p->snapshot_ns ? p->snapshot_ns : p->boot_ns);
}

/* What was done between two points, per second: false where one of them does not say. */
static bool rate(const struct worker *w, const struct history_point *a,
		 const struct history_point *b, enum history_series s, double *out)
{
	uint64_t from = point_ns(w, a, s), to = point_ns(w, b, s);

	if (!((a->known >> s) & 1) || !((b->known >> s) & 1) || !from || to <= from ||
	    b->v[s] < a->v[s])
		return false;
	*out = (double)(b->v[s] - a->v[s]) / ((double)(to - from) / 1e9);
	return true;
}

static bool overlaps(const struct run *run, const struct worker *w, const struct history_point *a,
		     const struct history_point *b)
{
	return worker_utc(w, b->boot_ns) > run->start && worker_utc(w, a->boot_ns) < run->stop;
}

static void put_layers(struct trace *t, const struct worker *w, size_t pid, size_t k)
{
	const struct history *h = &w->history;
	enum history_series s = layers[k].series;
	bool shown = false;
	uint64_t end = 0;
	double v;
	size_t i;

	for (i = 1; i < h->n; i++) {
		if (!overlaps(t->report->run, w, &h->v[i - 1], &h->v[i]) ||
		    !rate(w, &h->v[i - 1], &h->v[i], s, &v))
			continue;
		put_counter(t, pid, layers[k].name, (double)point_ns(w, &h->v[i - 1], s) / 1e9,
			    "rate", v * 8 / 1e9);
		end = point_ns(w, &h->v[i], s);
		shown = true;
	}
	/* after the run: not told, and a counter keeps its last value */
	if (shown)
		put_counter(t, pid, layers[k].name, (double)end / 1e9, "rate", 0);
}

/* An event of the classes' counter, when its first part is put; the parts follow. */
static void put_part(struct trace *t, size_t pid, uint64_t utc_ns, bool *any, size_t s, double v)
{
	if (!*any) {
		trace_event(t, "tasks' time, s/s", "C", pid, utc_ns);
		emit_object(t->json, "args");
	}
	*any = true;
	emit_value(t->json, history_name((enum history_series)s), value_real(v));
}

static void end_parts(struct trace *t, bool any)
{
	if (any) {
		emit_end(t->json);
		emit_end(t->json);
	}
}

/* Classes add up to the tasks' wall time: one counter with a part for each. */
static void put_classes(struct trace *t, const struct worker *w, size_t pid)
{
	const struct history *h = &w->history;
	bool shown[HISTORY_SERIES] = {false}, any;
	uint64_t end_ns = 0;
	size_t i, s;
	double v;

	for (i = 1; i < h->n; i++) {
		if (!overlaps(t->report->run, w, &h->v[i - 1], &h->v[i]))
			continue;
		for (s = 0, any = false; s < HISTORY_SERIES; s++) {
			if (!history_is_class((enum history_series)s) ||
			    s == HISTORY_pool_cpu_seconds ||
			    !rate(w, &h->v[i - 1], &h->v[i], (enum history_series)s, &v))
				continue;
			put_part(t, pid, worker_utc_ns(w, h->v[i - 1].boot_ns), &any, s, v / 1e9);
			shown[s] = true;
		}
		end_parts(t, any);
		if (any)
			end_ns = worker_utc_ns(w, h->v[i].boot_ns);
	}
	/* as for the layers */
	for (s = 0, any = false; s < HISTORY_SERIES; s++) {
		if (shown[s])
			put_part(t, pid, end_ns, &any, s, 0);
	}
	end_parts(t, any);
}

void trace_counters(struct trace *t, const struct worker *w, size_t pid)
{
	size_t k;

	put_samples(t, w, pid);
	for (k = 0; k < sizeof(layers) / sizeof(*layers); k++)
		put_layers(t, w, pid, k);
	put_classes(t, w, pid);
}
