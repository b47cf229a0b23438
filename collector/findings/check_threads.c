/* SPDX-License-Identifier: BSD-3-Clause */
/* check_threads.c - threads with and without a task. */
#include <math.h>
#include <stdlib.h>

#include "collector/findings/check.h"

/* Thread-seconds that there were, and those with a task: of all attempts that can be measured. */
static enum verdict occupancy(const struct report *r, struct remark *d, double *all, double *busy)
{
	double wall, cores;
	bool known;

	wall = value_number(metric_wall_time(r->facts), &known);
	if (!known)
		return remark_unknown(d, "wall_time");
	cores = value_number(metric_total_cores(r->facts), &known);
	if (!known)
		return remark_unknown(d, "total_cores");
	if (!r->facts->all.timed || r->facts->all.wall_ns.unknown)
		return remark_unknown(d, "tasks: wall_seconds");
	*all = wall * cores;
	*busy = r->facts->all.wall;
	return CHECK_QUIET;
}

/* Threads at the peak; false: unknown. */
static bool most_threads(const struct report *r, double *threads)
{
	bool workers, cores;

	*threads = value_number(metric_peak_workers(r->facts), &workers) *
		   value_number(metric_cores_per_worker(r->facts), &cores);
	return workers && cores;
}

enum verdict finding_idle_threads(const struct report *r, struct remark *d)
{
	double all, busy, idle;
	enum verdict verdict = occupancy(r, d, &all, &busy);
	struct fresh fresh;

	if (verdict != CHECK_QUIET)
		return verdict;
	idle = all - busy;
	if (!reaches(idle, all, d->check->first, d->check->second))
		return CHECK_QUIET;
	remark_see_metric(d, r, "total_cores", "threads");
	remark_see_metric(d, r, "wall_time", "s");
	remark_see(d, "idle_thread_seconds", value_real(idle), "s");
	remark_see(d, "task_wall_seconds_all", value_real(busy), "s");
	remark_see(d, "percent", value_real(idle / all * 100), "%");
	remark_say(d, "threads had no task for %s of the time: %s of %s thread-seconds",
		   remark_percent(d, idle / all * 100), remark_human(d, value_real(idle), AS_IS),
		   remark_human(d, value_real(all), AS_IS));
	remark_see(d, "thread_seconds", value_real(all), "s");
	if (fresh_workers(r, &fresh) && fresh.workers && fresh.cpu >= 1)
		remark_say_more(d,
				"; fresh workers imported Python modules meanwhile: %s of CPU "
				"outside of tasks",
				remark_human(d, value_real(fresh.cpu), AS_SECONDS));
	return remark_found(d, idle / all);
}

enum verdict finding_low_cpu_efficiency(const struct report *r, struct remark *d)
{
	const struct tally *t = &r->facts->all;
	double all, busy, cpu, most;
	const char *reason = "without a task";
	enum verdict verdict = occupancy(r, d, &all, &busy);
	unsigned int i;
	bool known;

	if (verdict != CHECK_QUIET)
		return verdict;
	cpu = value_number(metric_total_cpu_time_true_all(r->facts), &known);
	if (!known)
		return remark_unknown(d, "total_cpu_time_true_all");
	if (!(all > 0) || cpu * 100 >= all * d->check->first || all - cpu < d->check->second)
		return CHECK_QUIET;
	for (i = 0, most = all - busy; i < CREMA_TIMES; i++) {
		if (i != CREMA_T_cpu && t->cls[i] > most)
			reason = class_words(i), most = t->cls[i];
	}
	remark_see_metric(d, r, "total_cpu_time_true_all", "s");
	remark_see(d, "thread_seconds", value_real(all), "s");
	remark_see(d, "percent", value_real(cpu / all * 100), "%");
	remark_say(d, "threads used %s of their time as CPU: %s of %s thread-seconds",
		   remark_percent(d, cpu / all * 100), remark_human(d, value_real(cpu), AS_IS),
		   remark_human(d, value_real(all), AS_IS));
	if (most > 0) {
		remark_see(d, "most", value_text(reason), "");
		remark_see(d, "most_seconds", value_real(most), "s");
		remark_see(d, "most_percent", value_real(most / all * 100), "%");
		remark_say_more(d, "; they were %s for %s", reason,
				remark_percent(d, most / all * 100));
	}
	return remark_found(d, (all - cpu) / all);
}

enum verdict finding_more_workers(const struct report *r, struct remark *d)
{
	const struct tally *t = &r->facts->tasks;
	double all, busy, threads, each, computing;
	enum verdict verdict = occupancy(r, d, &all, &busy);
	bool known, queue_known;

	if (verdict != CHECK_QUIET)
		return verdict;
	computing = value_number(tally_class(t, CREMA_T_cpu), &known) +
		    value_number(tally_class(t, CREMA_T_runqueue), &queue_known);
	if (!known || !queue_known)
		return remark_unknown(d, "task_cpu_seconds");
	if (!most_threads(r, &threads) || !(threads > 0))
		return remark_unknown(d, "peak_workers");
	each = (double)t->attempts / threads;
	if (!reaches(busy, all, d->check->first, 0) || each < d->check->second ||
	    computing * 2 <= t->wall)
		return CHECK_QUIET;
	remark_see(d, "busy_percent", value_real(busy / all * 100), "%");
	remark_see(d, "threads", value_real(threads), "threads");
	remark_see(d, "num_tasks", value_uint(t->attempts), "tasks");
	remark_see(d, "tasks_per_thread", value_real(each), "tasks");
	remark_see(d, "computing_percent", value_real(computing / t->wall * 100), "%");
	remark_say(
		d,
		"%s thread%s had a task for %s of the time and %s tasks each; %s of it was CPU or "
		"waiting for a core",
		remark_human(d, value_real(threads), AS_IS), threads == 1 ? "" : "s",
		remark_percent(d, busy / all * 100), remark_human(d, value_real(each), AS_IS),
		remark_percent(d, computing / t->wall * 100));
	return remark_found(d, 0);
}

enum verdict finding_few_chunks(const struct report *r, struct remark *d)
{
	double threads, chunks = (double)r->facts->chunks.attempts;
	struct value wall = metric_wall_time(r->facts);

	if (!r->facts->chunks.attempts || r->run->running)
		return CHECK_IDLE;
	if (!most_threads(r, &threads))
		return remark_unknown(d, "cores_per_worker");
	if (wall.type == VALUE_NULL)
		return remark_unknown(d, "wall_time");
	if (chunks * 100 >= threads * d->check->first ||
	    value_number(wall, NULL) < d->check->second)
		return CHECK_QUIET;
	remark_see(d, "num_chunks", value_real(chunks), "chunks");
	remark_see(d, "threads", value_real(threads), "threads");
	remark_see(d, "wall_time", wall, "s");
	remark_say(d, "%.0f chunk%s for %s threads: %.0f of them never had one", chunks,
		   chunks == 1 ? "" : "s", remark_human(d, value_real(threads), AS_IS),
		   ceil(threads - chunks));
	return remark_found(d, (threads - chunks) / threads);
}

enum verdict finding_late_workers(const struct report *r, struct remark *d)
{
	struct value average = metric_avg_workers(r->facts), peak = metric_peak_workers(r->facts);
	struct value wall = metric_wall_time(r->facts);
	double share = value_number(value_ratio(average, peak, 100), NULL);

	if (average.type == VALUE_NULL || peak.type == VALUE_NULL)
		return remark_unknown(d, "peak_workers");
	if (wall.type == VALUE_NULL)
		return remark_unknown(d, "wall_time");
	if (share > d->check->first || value_number(wall, NULL) < d->check->second)
		return CHECK_QUIET;
	remark_see(d, "avg_workers", average, "workers");
	remark_see(d, "peak_workers", peak, "workers");
	remark_see(d, "wall_time", wall, "s");
	remark_say(d, "there were %s workers on average, and %s at the peak",
		   remark_human(d, average, AS_IS), remark_human(d, peak, AS_COUNT));
	return remark_found(d, 1 - share / 100);
}

/* Measured attempts by begin, as the run has them, and their ends, sorted. */
struct ends {
	uint64_t *v;
	size_t n, cap;
};

static bool has_times(const struct attempt *a)
{
	return a->begin_ns && a->end_ns && !(a->flags & CREMA_TASK_ASYNC);
}

static int by_time(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

static int ends_of(const struct run *run, struct ends *e)
{
	uint64_t *at;
	size_t i;

	for (i = 0; i < run->attempts.n; i++) {
		if (!has_times(run->attempts.v[i]))
			continue;
		at = ARRAY_NEW(e);
		if (!at)
			return -1;
		*at = run->attempts.v[i]->end_ns;
	}
	if (e->n)
		qsort(e->v, e->n, sizeof(*e->v), by_time);
	return 0;
}

struct tail {
	double seconds, idle; /* after the last time that half of the threads were busy */
	bool ever;
	uint64_t now;
	long busy;
};

static void tail_step(struct tail *t, uint64_t ns, double threads, int step)
{
	double length = t->now && ns > t->now ? (double)(ns - t->now) / 1e9 : 0;

	t->seconds += length;
	t->idle += length * (threads - (double)t->busy);
	if (length > 0 && (double)t->busy * 2 >= threads) {
		t->seconds = t->idle = 0;
		t->ever = true;
	}
	t->now = ns > t->now ? ns : t->now;
	t->busy += step;
}

/* One that begins where another ends leaves no gap. */
static struct tail tail_of(const struct run *run, const struct ends *e, double threads)
{
	struct tail t = {0};
	size_t i, k = 0;

	for (i = 0; i < run->attempts.n; i++) {
		if (!has_times(run->attempts.v[i]))
			continue;
		for (; k < e->n && e->v[k] < run->attempts.v[i]->begin_ns; k++)
			tail_step(&t, e->v[k], threads, -1);
		tail_step(&t, run->attempts.v[i]->begin_ns, threads, 1);
	}
	for (; k < e->n; k++)
		tail_step(&t, e->v[k], threads, -1);
	return t;
}

enum verdict finding_tail(const struct report *r, struct remark *d)
{
	double threads, wall = r->facts->wall_time;
	struct ends e = {0};
	struct tail t = {0};

	if (r->run->running || !(wall > 0))
		return CHECK_IDLE;
	if (!most_threads(r, &threads))
		return remark_unknown(d, "cores_per_worker");
	if (ends_of(r->run, &e))
		d->no_memory = true;
	else
		t = tail_of(r->run, &e, threads);
	free(e.v);
	if (!t.ever || !reaches(t.seconds, wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	remark_see(d, "tail_seconds", value_real(t.seconds), "s");
	remark_see(d, "wall_time", value_real(wall), "s");
	remark_see(d, "percent", value_real(t.seconds / wall * 100), "%");
	remark_see(d, "threads", value_real(threads), "threads");
	remark_see(d, "tail_idle_thread_seconds", value_real(t.idle), "s");
	remark_say(d,
		   "for the last %s of the wall time (%s) less than half of the %s threads had a "
		   "task: %s thread-seconds without one",
		   remark_percent(d, t.seconds / wall * 100),
		   remark_human(d, value_real(t.seconds), AS_SECONDS),
		   remark_human(d, value_real(threads), AS_IS),
		   remark_human(d, value_real(t.idle), AS_IS));
	return remark_found(d, t.seconds / wall);
}
