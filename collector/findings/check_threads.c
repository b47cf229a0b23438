/* SPDX-License-Identifier: BSD-3-Clause */
/* check_threads.c - threads with and without a task. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collector/findings/check.h"
#include "common/sort.h"

/* Thread-seconds available, and those with a task: of all attempts that held a thread. */
static enum verdict occupancy(const struct report *r, struct draft *d, double *all, double *busy)
{
	const struct tally *t = &r->facts->all;
	double wall, cores;
	bool known;

	wall = value_number(metric_wall_time(r->facts), &known);
	if (!known)
		return draft_unknown(d, "wall_time");
	cores = value_number(metric_total_cores(r->facts), &known);
	if (!known)
		return draft_unknown(d, "total_cores");
	if (!(t->timed || t->unmeasured_s > 0) || t->wall_ns.unknown)
		return draft_unknown(d, "tasks: wall_seconds");
	*all = wall * cores;
	*busy = t->wall;
	return CHECK_QUIET;
}

#define ONE_BY_ONE_TASKS 4
#define BUSY_CORES_PERCENT 25
#define MORE_TO_DO 1.5

/* The wall time that thread-seconds amount to if all threads share them. */
static double wall_of(const struct report *r, double thread_seconds)
{
	return thread_seconds / value_number(metric_total_cores(r->facts), NULL);
}

/* Threads at the peak; false: unknown. */
static bool most_threads(const struct report *r, double *threads)
{
	bool workers, cores;

	*threads = value_number(metric_peak_workers(r->facts), &workers) *
		   value_number(metric_cores_per_worker(r->facts), &cores);
	return workers && cores;
}

/* Whether Dask reported that tasks waited on a worker for its threads. */
static bool tasks_waited(const struct report *r, const struct worker *w)
{
	size_t i, seen = 0, waited = 0;

	for (i = 0; i < w->probes.n; i++) {
		if (!(w->probes.v[i].time >= r->run->start && w->probes.v[i].time <= r->run->stop))
			continue;
		seen++;
		waited += w->probes.v[i].ready >= 1;
	}
	return waited && waited * 2 >= seen; /* any task waits for a moment before it starts */
}

bool one_by_one(const struct report *r, const struct draft *d)
{
	double threads = value_number(metric_total_cores(r->facts), NULL);
	size_t i;

	if (!(threads > 1.5) || r->facts->tasks.attempts < ONE_BY_ONE_TASKS ||
	    d->costs->any <= 0.95 * r->facts->all.wall)
		return false;
	for (i = 0; i < r->facts->tracking->n; i++) {
		if (tasks_waited(r, r->facts->tracking->v[i].worker))
			return false;
	}
	return true;
}

/* Whether tasks waited for cores that other processes used. If a host has more threads than cores,
 * its own threads used them. */
static bool others_have_cores(const struct report *r)
{
	const struct tally *t = &r->facts->all;
	bool known;
	double queued = value_number(tally_class_part(t, CREMA_T_runqueue), &known), threads, cores;

	return known && fullest_host(r, &threads, &cores) && threads <= cores &&
	       reaches(queued, t->wall, BUSY_CORES_PERCENT, 0);
}

static void say_one_by_one(const struct report *r, struct draft *d, double idle)
{
	draft_advise(d, "The tasks ran one by one: submit them together (client.map, or one "
			"compute() for all), and gather the results afterwards. If each needs "
			"the one before, divide the work by data instead.");
	draft_gain_most(d, wall_of(r, idle));
}

/* Between tasks the scheduler and the client work on the same cores. */
static void blame_busy_cores(struct draft *d)
{
	draft_severity(d, FINDING_NOTE);
	draft_sentence_more(d, "; other processes kept the cores busy, and the scheduler and the "
			       "client need them, too");
}

enum verdict finding_idle_threads(const struct report *r, struct draft *d)
{
	double all, busy, idle;
	enum verdict verdict = occupancy(r, d, &all, &busy);
	struct fresh fresh;

	if (verdict != CHECK_QUIET)
		return verdict;
	idle = all - busy;
	if (!reaches(idle, all, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence_metric(d, r, "total_cores", "threads");
	draft_evidence_metric(d, r, "wall_time", "s");
	draft_evidence(d, "idle_thread_seconds", value_real(idle), "s");
	draft_evidence(d, "task_wall_seconds_all", value_real(busy), "s");
	draft_evidence(d, "percent", value_real(idle / all * 100), "%");
	draft_sentence(d, "threads had no task for %s of the time: %s of %s thread-seconds",
		       draft_percent(d, idle / all * 100), draft_human(d, value_real(idle), AS_IS),
		       draft_human(d, value_real(all), AS_IS));
	draft_evidence(d, "thread_seconds", value_real(all), "s");
	if (fresh_workers(r, &fresh) && fresh.workers && fresh.cpu >= 1)
		draft_sentence_more(d,
				    "; fresh workers imported Python modules meanwhile: %s of CPU "
				    "outside tasks",
				    draft_human(d, value_real(fresh.cpu), AS_SECONDS));
	if (one_by_one(r, d))
		say_one_by_one(r, d, idle);
	else if (others_have_cores(r))
		blame_busy_cores(d);
	draft_cost(d, wall_of(r, idle));
	return draft_found(d, idle / all);
}

enum verdict finding_low_cpu_efficiency(const struct report *r, struct draft *d)
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
		return draft_unknown(d, "total_cpu_time_true_all");
	if (!(all > 0) || cpu * 100 >= all * d->check->first || all - cpu < d->check->second)
		return CHECK_QUIET;
	for (i = 0, most = all - busy; i < CREMA_TIMES; i++) {
		if (i != CREMA_T_cpu && t->cls[i] > most)
			reason = class_words(i), most = t->cls[i];
	}
	draft_evidence_metric(d, r, "total_cpu_time_true_all", "s");
	draft_evidence(d, "thread_seconds", value_real(all), "s");
	draft_evidence(d, "percent", value_real(cpu / all * 100), "%");
	draft_sentence(d,
		       "CPU was busy for %s of the available thread time: %s of %s thread-seconds",
		       draft_percent(d, cpu / all * 100), draft_human(d, value_real(cpu), AS_IS),
		       draft_human(d, value_real(all), AS_IS));
	if (most > 0) {
		draft_evidence(d, "most", value_text(reason), "");
		draft_evidence(d, "most_seconds", value_real(most), "s");
		draft_evidence(d, "most_percent", value_real(most / all * 100), "%");
		draft_sentence_more(d, "; threads were %s for %s", reason,
				    draft_percent(d, most / all * 100));
	}
	draft_cost(d, wall_of(r, all - cpu));
	return draft_found(d, (all - cpu) / all);
}

/* Rounded down to 1, 2 or 5 times a power of ten; below 1: 0. */
static double round_number(double size)
{
	double ten = 1;

	if (!(size >= 1))
		return 0;
	for (; ten * 10 <= size; ten *= 10)
		;
	return ten * (size >= 5 * ten ? 5 : size >= 2 * ten ? 2 : 1);
}

/* With about one chunk per thread, Dask may give two to one worker and none to another. */
#define CHUNKS_PER_THREAD 4

enum verdict finding_few_chunks(const struct report *r, struct draft *d)
{
	double threads, chunks = (double)r->facts->chunks.attempts;
	struct value wall = metric_wall_time(r->facts);
	double events = value_number(metric_total_events(r->facts), NULL), size;

	if (!r->facts->chunks.attempts || r->run->running)
		return CHECK_IDLE;
	if (!most_threads(r, &threads))
		return draft_unknown(d, "cores_per_worker");
	if (chunks * 100 >= threads * d->check->first ||
	    value_number(wall, NULL) < d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "num_chunks", value_real(chunks), "chunks");
	draft_evidence(d, "threads", value_real(threads), "threads");
	draft_evidence(d, "wall_time", wall, "s");
	draft_sentence(d, "%.0f chunk%s for %s threads: %.0f of these threads had no chunk", chunks,
		       chunks == 1 ? "" : "s", draft_human(d, value_real(threads), AS_IS),
		       ceil(threads - chunks));
	size = round_number(events / (threads * CHUNKS_PER_THREAD));
	if (size >= 1) {
		draft_evidence(d, "chunksize", value_real(size), "events");
		draft_advise(d,
			     "Use chunksize=%s (at least %d chunks per thread), or fewer workers.",
			     draft_integer(d, size), CHUNKS_PER_THREAD);
	}
	draft_cost(d, r->facts->wall_time * (threads - chunks) / threads);
	draft_gain_most(d, d->f.cost_s);
	return draft_found(d, (threads - chunks) / threads);
}

enum verdict finding_late_workers(const struct report *r, struct draft *d)
{
	struct value average = metric_avg_workers(r->facts), peak = metric_peak_workers(r->facts);
	struct value wall = metric_wall_time(r->facts);
	double share = value_number(value_ratio(average, peak, 100), NULL);

	if (average.type == VALUE_NULL || peak.type == VALUE_NULL)
		return draft_unknown(d, "peak_workers");
	if (share > d->check->first || value_number(wall, NULL) < d->check->second)
		return CHECK_QUIET;
	draft_evidence(d, "avg_workers", average, "workers");
	draft_evidence(d, "peak_workers", peak, "workers");
	draft_evidence(d, "wall_time", wall, "s");
	draft_sentence(d, "there were %s workers on average, and %s at the peak",
		       draft_human(d, average, AS_IS), draft_human(d, peak, AS_COUNT));
	draft_cost(d, r->facts->wall_time * (1 - share / 100));
	return draft_found(d, 1 - share / 100);
}

/* Attempts that held a thread by begin, as in the run, and their ends, sorted. */
struct ends {
	struct numbered *v;
	size_t n;
};

static bool has_times(const struct attempt *a)
{
	return a->begin_ns && a->end_ns && attempt_holds_thread(a);
}

/* 0 or -ENOMEM. */
static int ends_of(const struct run *run, struct ends *e)
{
	size_t i;

	e->v = calloc(run->attempts.n + 1, sizeof(*e->v));
	if (!e->v)
		return -ENOMEM;
	for (i = 0; i < run->attempts.n; i++) {
		if (has_times(run->attempts.v[i]))
			e->v[e->n++].number = run->attempts.v[i]->end_ns;
	}
	return sort_numbered(e->v, e->n);
}

struct tail {
	double seconds, idle; /* after the last time that more than half of the threads were busy */
	double empty;	      /* no task at all: no long task causes it */
	bool ever;
	uint64_t now;
	long busy;
};

static void tail_step(struct tail *t, uint64_t ns, double threads, int step)
{
	double length = t->now && ns > t->now ? (double)(ns - t->now) / 1e9 : 0;

	t->seconds += length;
	t->idle += length * (threads - (double)t->busy);
	t->empty += t->busy ? 0 : length;
	if (length > 0 && (double)t->busy * 2 > threads) {
		t->seconds = t->idle = t->empty = 0;
		t->ever = true;
	}
	t->now = ns > t->now ? ns : t->now;
	t->busy += step;
}

/* A task that begins when another ends leaves no gap. */
static struct tail tail_of(const struct run *run, const struct ends *e, double threads)
{
	struct tail t = {0};
	size_t i, k = 0;

	for (i = 0; i < run->attempts.n; i++) {
		if (!has_times(run->attempts.v[i]))
			continue;
		for (; k < e->n && e->v[k].number < run->attempts.v[i]->begin_ns; k++)
			tail_step(&t, e->v[k].number, threads, -1);
		tail_step(&t, run->attempts.v[i]->begin_ns, threads, 1);
	}
	for (; k < e->n; k++)
		tail_step(&t, e->v[k].number, threads, -1);
	return t;
}

/* The longest task among those that ended in the tail. */
static const struct attempt *longest_in(const struct run *run, const struct tail *t)
{
	const struct attempt *a, *last = NULL;
	size_t i;

	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (has_times(a) && (double)(t->now - a->end_ns) / 1e9 < t->seconds &&
		    (!last || a->wall_ns > last->wall_ns))
			last = a;
	}
	return last;
}

static double without_queue(const struct attempt *a, double *wall)
{
	*wall = value_number(attempt_wall_ns(a), NULL) / 1e9;
	return *wall - attempt_queued_seconds(a);
}

/* On cores that others keep busy, one of several equal tasks ends last by chance: there the last
 * one must have had more to do than its kind. */
static bool by_chance(const struct run *run, const struct attempt *last)
{
	double own, wall, sum = 0, all = 0;
	size_t i, n = 0;

	for (i = 0; i < run->attempts.n; i++) {
		if (!has_times(run->attempts.v[i]) || run->attempts.v[i]->prefix != last->prefix)
			continue;
		sum += without_queue(run->attempts.v[i], &wall);
		all += wall;
		n++;
	}
	own = without_queue(last, &wall);
	return (all - sum) * 100 >= all * BUSY_CORES_PERCENT && own < sum / (double)n * MORE_TO_DO;
}

/* Describes the last task, and how to make it shorter. */
static void say_last(const struct report *r, struct draft *d, const struct attempt *last,
		     double threads)
{
	double size;

	if (!last->prefix)
		return;
	draft_evidence(d, "last_prefix", value_text(last->prefix), "");
	draft_sentence_more(d, "; the longest of these tasks, %s, took %s",
			    draft_name(d, run_prefix_shown(r->run, last->prefix)),
			    draft_human(d, value_seconds(attempt_wall_ns(last)), AS_SECONDS));
	draft_place(d, last, "last_");
	size = round_number(value_number(attempt_events(last), NULL) / (2 * threads));
	if (!attempt_is_chunk(last) || size < 1)
		return;
	draft_evidence(d, "chunksize", value_real(size), "events");
	draft_advise(d, "Use smaller chunks: chunksize=%s, and begin with the largest files.",
		     draft_integer(d, size));
}

enum verdict finding_tail(const struct report *r, struct draft *d)
{
	double threads, wall = r->facts->wall_time;
	const struct attempt *last;
	struct ends e = {0};
	struct tail t = {0};

	if (r->run->running || !(wall > 0))
		return CHECK_IDLE;
	if (!most_threads(r, &threads))
		return draft_unknown(d, "cores_per_worker");
	if (ends_of(r->run, &e))
		d->no_memory = true;
	else
		t = tail_of(r->run, &e, threads);
	free(e.v);
	if (!t.ever || t.empty * 2 > t.seconds ||
	    !reaches(t.seconds, wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	last = longest_in(r->run, &t);
	if (!last || by_chance(r->run, last))
		return CHECK_QUIET;
	draft_evidence(d, "tail_seconds", value_real(t.seconds), "s");
	draft_evidence(d, "wall_time", value_real(wall), "s");
	draft_evidence(d, "percent", value_real(t.seconds / wall * 100), "%");
	draft_evidence(d, "threads", value_real(threads), "threads");
	draft_evidence(d, "tail_idle_thread_seconds", value_real(t.idle), "s");
	draft_sentence(d,
		       "for the last %s of the wall time (%s) at most half of the %s threads had a "
		       "task: %s thread-seconds without one",
		       draft_percent(d, t.seconds / wall * 100),
		       draft_human(d, value_real(t.seconds), AS_SECONDS),
		       draft_human(d, value_real(threads), AS_IS),
		       draft_human(d, value_real(t.idle), AS_IS));
	say_last(r, d, last, threads);
	draft_cost(d, t.idle / threads);
	draft_gain_most(d, t.idle / threads);
	return draft_found(d, t.seconds / wall);
}
