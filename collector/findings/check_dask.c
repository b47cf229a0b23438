/* SPDX-License-Identifier: BSD-3-Clause */
/* check_dask.c - the cost of Dask, Python and process starts. */
#include <math.h>

#include "collector/findings/check.h"

/* Shorter tasks do not overlap even if they are submitted together: Dask starts one per
 * millisecond. */
#define OVERLAPPING_SECONDS 0.005

enum verdict finding_tiny_tasks(const struct report *r, struct draft *d)
{
	const struct tally *t = &r->facts->tasks;
	struct value cores = metric_total_cores(r->facts);
	double mean, threads;
	bool known;

	if (!t->timed)
		return CHECK_IDLE;
	if (t->wall_ns.unknown)
		return draft_unknown(d, "task_wall_seconds");
	/* whole nanoseconds: their sum is exact */
	mean = (double)t->wall_ns.v / (double)t->attempts / 1e9;
	if ((double)t->attempts < d->check->first || mean > d->check->second / 1e3)
		return CHECK_QUIET;
	draft_evidence(d, "num_tasks", value_uint(t->attempts), "tasks");
	draft_evidence(d, "mean_seconds", value_real(mean), "s");
	draft_evidence(d, "task_wall_seconds", value_real(t->wall), "s");
	draft_sentence(d, "%s tasks took %s on average, %s in total",
		       draft_human(d, value_uint(t->attempts), AS_COUNT),
		       draft_human(d, value_real(mean), AS_SECONDS),
		       draft_human(d, value_real(t->wall), AS_SECONDS));
	threads = value_number(cores, &known) * r->facts->wall_time;
	if (known && threads > 0) {
		draft_evidence(d, "thread_seconds", value_real(threads), "s");
		draft_sentence_more(d, " of %s thread-seconds",
				    draft_human(d, value_real(threads), AS_IS));
		draft_cost(d, r->facts->wall_time * (1 - t->wall / threads));
		if (mean >= OVERLAPPING_SECONDS && one_by_one(r, d))
			draft_advise(d, "The tasks ran one by one: submit them together "
					"(client.map, or one compute() for all), gather the "
					"results afterwards, and put more work into each task.");
	}
	return draft_found(d, 0);
}

enum verdict finding_serialization(const struct report *r, struct draft *d)
{
	struct value all = metric_total_serialization_overhead_seconds(r->facts);
	const struct tally *t = &r->facts->tasks;
	size_t others = run_concurrent(r->run);
	double s;
	bool known;

	if (r->run->plain)
		return CHECK_IDLE;
	s = value_number(all, &known);
	if (!known)
		return draft_unknown(d, "total_serialization_overhead_seconds");
	if (!reaches(s, t->wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence_metric(d, r, "serialization_time_seconds", "s");
	draft_evidence_metric(d, r, "deserialization_time_seconds", "s");
	draft_evidence_metric(d, r, "transfer_serialize_seconds", "s");
	draft_evidence_metric(d, r, "transfer_deserialize_seconds", "s");
	draft_evidence(d, "task_wall_seconds", value_real(t->wall), "s");
	draft_evidence(d, "percent", value_real(s / t->wall * 100), "%");
	draft_sentence(d,
		       "Dask serialized objects for %s and deserialized them for %s; tasks took %s",
		       draft_human(d, metric_serialization_time_seconds(r->facts), AS_SECONDS),
		       draft_human(d, metric_deserialization_time_seconds(r->facts), AS_SECONDS),
		       draft_human(d, value_real(t->wall), AS_SECONDS));
	if (others) {
		draft_evidence(d, "concurrent_runs", value_uint(others), "");
		draft_sentence_more(d,
				    "; transfers of %zu other run%s on these workers are included",
				    others, others == 1 ? "" : "s");
	}
	draft_cost(d, s / value_number(metric_peak_workers(r->facts), NULL));
	return draft_found(d, s / t->wall);
}

/* Dask measures them in CPU time of the collecting thread, so they are part of what tasks and the
 * event loop computed. Dask drops values that go backward between two threads. The previous run may
 * have collected between the same probes: only what must belong to this run counts. */
enum verdict finding_gc_pauses(const struct report *r, struct draft *d)
{
	double s, cpu;
	bool known;

	if (r->run->plain)
		return CHECK_IDLE;
	s = value_number(digests_collected(r->facts), &known);
	if (!known)
		return draft_unknown(d, "gc_seconds");
	cpu = value_number(metric_total_cpu_time_true_all(r->facts), &known);
	if (!known)
		return draft_unknown(d, "total_cpu_time_true_all");
	if (!reaches(s, cpu, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "collected_seconds", value_real(s), "s");
	draft_evidence_metric(d, r, "total_cpu_time_true_all", "s");
	draft_evidence(d, "percent", value_real(s / cpu * 100), "%");
	draft_sentence(d,
		       "Python's full garbage collections took at least %s of CPU; relative to the "
		       "tasks' %s, this is %s",
		       draft_human(d, value_real(s), AS_SECONDS),
		       draft_human(d, value_real(cpu), AS_SECONDS),
		       draft_percent(d, s / cpu * 100));
	draft_half(d, r); /* the collector runs inside any code that creates objects */
	draft_cost_least(d, cost_of_cpu(d->costs, s));
	return draft_found(d, fmin(s / cpu, 1));
}

enum verdict finding_python_heavy(const struct report *r, struct draft *d)
{
	const struct tally *t = &r->facts->work;
	struct value cpu = tally_cpu(t), events = metric_total_events(r->facts);
	struct value codecs = value_plus(sum_value(&t->count[CREMA_C_decompress_cpu_ns]),
					 sum_value(&t->count[CREMA_C_compress_cpu_ns]));
	double all, rest, n, each;
	bool known;

	if (!r->facts->chunks.attempts)
		return CHECK_IDLE;
	all = value_number(cpu, &known);
	if (!known)
		return draft_unknown(d, "total_cpu_time_true");
	rest = all - value_number(codecs, &known) / 1e9;
	if (!known)
		return draft_unknown(d, "decompression_time_seconds");
	n = value_number(events, &known);
	if (!known)
		return draft_unknown(d, "total_events");
	if (!(n > 0))
		return CHECK_IDLE;
	each = rest / n * 1e6;
	if (each < d->check->first || rest < d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "total_cpu_time_true", cpu, "s");
	draft_evidence(d, "cpu_outside_codecs_seconds", value_real(rest), "s");
	draft_evidence(d, "total_events", events, "events");
	draft_evidence(d, "microseconds_per_event", value_real(each), "us");
	draft_sentence(d, "chunks used %s of CPU for each of %s events outside codecs, %s in total",
		       draft_human(d, value_real(each / 1e6), AS_SECONDS),
		       draft_human(d, events, AS_COUNT),
		       draft_human(d, value_real(rest), AS_SECONDS));
	if (!draft_habit(d, r))
		draft_line(d, r, CREMA_T_cpu);
	draft_cost(d, cost_of_cpu(d->costs, rest));
	return draft_found(d, all > 0 ? rest / all : 0);
}

enum verdict finding_process_start(const struct report *r, struct draft *d)
{
	double life = 0, start = 0;
	const struct worker *w;
	bool a, b;
	size_t i, n = 0;

	if (!r->run->plain)
		return CHECK_IDLE;
	for (i = 0; i < r->run->workers.n; i++) {
		w = r->run->workers.v[i];
		value_number(worker_life(w), &a);
		value_number(worker_startup(w), &b);
		if (!a || !b)
			continue;
		n++;
		life += value_number(worker_life(w), NULL);
		start += value_number(worker_startup(w), NULL);
	}
	if (!n)
		return draft_unknown(d, "startup_seconds");
	if (!reaches(start, life, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "processes", value_uint(n), "processes");
	draft_evidence(d, "startup_seconds", value_real(start), "s");
	draft_evidence(d, "process_life_seconds", value_real(life), "s");
	draft_evidence(d, "percent", value_real(start / life * 100), "%");
	draft_sentence(d, "startup and imports took %s of the lifetime (%s) of %zu process%s",
		       draft_percent(d, start / life * 100),
		       draft_human(d, value_real(start), AS_SECONDS), n, n == 1 ? "" : "es");
	draft_cost(d, r->facts->wall_time * start / life);
	return draft_found(d, start / life);
}
