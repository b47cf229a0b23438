/* SPDX-License-Identifier: BSD-3-Clause */
/* check_time.c - where the tasks' time went: counted ones, or all (facts_shown()). */
#include <math.h>
#include <string.h>

#include "collector/findings/check.h"
#include "collector/metrics/budget.h"

/* A class of the shown tasks' time: if some are not measured, at least `s`. */
struct share {
	struct value seconds;
	double s, percent;
	bool least;
};

/* Whether it is known and reaches the thresholds; else `*verdict` is the result of the check, which
 * is unknown if the time that was not measured decides. `seconds`: of the measured tasks. */
static bool share_of(const struct report *r, struct draft *d, struct value seconds,
		     const char *metric, struct share *out, enum verdict *verdict)
{
	const struct tally *t = facts_shown(r->facts);
	bool known;
	double s = value_number(seconds, &known);

	*verdict = CHECK_IDLE;
	if (!(t->wall > 0))
		return false;
	*out = (struct share){seconds, s, s / t->wall * 100, t->unmeasured_s > 0};
	if (!known || !reaches(s, t->wall, d->check->first, d->check->second)) {
		known = known &&
			!reaches(s + t->unmeasured_s, t->wall, d->check->first, d->check->second);
		*verdict = known ? CHECK_QUIET : draft_unknown(d, metric);
		return false;
	}
	draft_evidence(d, metric, seconds, "s");
	draft_evidence(d, "task_wall_seconds", value_real(t->wall), "s");
	draft_evidence(d, "percent", value_real(out->percent), "%");
	if (out->least)
		draft_evidence(d, "unmeasured_seconds", value_real(t->unmeasured_s), "s");
	if (facts_shows_all(r->facts)) /* not the basis of the metrics */
		draft_evidence(d, "tasks", value_text("all attempts"), "");
	return true;
}

static bool class_share(const struct report *r, struct draft *d, enum crema_time_id id,
			struct share *out, enum verdict *verdict)
{
	return share_of(r, d, tally_class_part(facts_shown(r->facts), id), class_metric(id), out,
			verdict);
}

static const char *least(const struct share *s)
{
	return s->least ? "at least " : "";
}

static void say_share(struct draft *d, const struct share *s, const char *did, const char *what)
{
	draft_sentence(d, "tasks %s %s%s of their time (%s)%s", did, least(s),
		       draft_percent(d, s->percent), draft_human(d, s->seconds, AS_SECONDS), what);
}

/* CPython's own wait functions: their names say nothing about the cause. */
static bool is_interpreter(const struct blocking_row *row)
{
	static const char *const names[] = {"take_gil", "PyThread_acquire_lock_timed",
					    "_PySemaphore_Wait"};

	for (size_t i = 0; row->frames && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(row->frame[0], names[i]))
			return true;
	return row->wait == CREMA_T_gil_wait;
}

/* The call site with the longest waits of a class; NULL: none. CREMA_TIMES: any but sleep. */
static const struct blocking_row *site_of(const struct report *r, unsigned int id)
{
	const struct blocking_row *row;

	for (size_t i = 0; r->blocking && i < r->blocking->rows.n; i++) {
		row = r->blocking->rows.v[i];
		if (is_interpreter(row))
			continue;
		if (id == CREMA_TIMES ? row->wait != CREMA_T_sleep : row->wait == id)
			return row;
	}
	return NULL;
}

static const char *frame_of(const struct blocking_row *row)
{
	return row->frames ? row->frame[0] : NULL;
}

/* "; most at 'futex' (3.2 s)" */
static void say_site(const struct report *r, struct draft *d, enum crema_time_id id)
{
	const struct blocking_row *row = site_of(r, id);
	struct value s;

	if (!row || !frame_of(row))
		return;
	s = value_real((double)row->waits.ns / 1e9);
	draft_evidence(d, "longest_site", value_text(frame_of(row)), "");
	draft_evidence(d, "longest_site_seconds", s, "s");
	draft_sentence_more(d, "; %s of long waits at %s", draft_human(d, s, AS_SECONDS),
			    draft_name(d, frame_of(row)));
}

const char *fullest_host(const struct report *r, double *threads, double *cores)
{
	const struct tracking *tracking = r->facts->tracking;
	const struct worker_track *t;
	const char *worst = NULL;
	double load, most = 0;

	*threads = 0;
	*cores = 1;
	for (t = tracking->v; t < tracking->v + tracking->n; t++) {
		load = t->host_threads / t->host_cores;
		if (!t->worker->host || !isfinite(load) || load < most ||
		    (worst && load <= most && strcmp(t->worker->host, worst) >= 0))
			continue;
		worst = t->worker->host;
		*threads = t->host_threads;
		*cores = t->host_cores;
		most = load;
	}
	return most > 0 ? worst : NULL;
}

/* Suggests as many processes as threads, but no more than cores, and estimates the gain: the
 * computing time is divided by the cores working at once, and nothing waits for the lock. */
static void advise_processes(const struct report *r, struct draft *d)
{
	double threads, cores, busy, n, saved;

	if (!fullest_host(r, &threads, &cores))
		return;
	n = fmin(threads, cores);
	draft_advise(d,
		     "Use processes instead of threads: dask worker --nworkers %.0f --nthreads 1 "
		     "on each node (LocalCluster(n_workers=%.0f, threads_per_worker=1)).",
		     n, n);
	busy = d->costs->class_s[CREMA_T_cpu] + d->costs->class_s[CREMA_T_gil_wait];
	/* with the lock one thread computes at a time */
	saved = fmin(d->costs->class_s[CREMA_T_gil_wait], busy * (1 - 1 / n));
	draft_gain(d, saved, "about %s, if as many cores are free",
		   draft_human(d, value_real(saved), AS_SECONDS));
}

/* Names the holder of the lock, which is more useful than the waiting place. */
static bool say_holder(const struct report *r, struct draft *d)
{
	uint64_t samples, all = r->lines.held_samples;
	double share;
	const struct line_row *row = lines_holder(&r->lines, REMARK_SAMPLES, &share);
	const char *name;

	if (!row)
		return false;
	samples = row->sum.held_samples;
	name = draft_evidence_line(d, row->place, share, samples, all);
	draft_sentence_more(d, "; %s held it for %s of that (%s samples)", draft_name(d, name),
			    draft_line_share(d, share, all),
			    draft_human(d, value_uint(samples), AS_COUNT));
	return true;
}

enum verdict finding_gil_wait(const struct report *r, struct draft *d)
{
	struct value threads = metric_cores_per_worker(r->facts);
	enum verdict verdict;
	struct share s;
	bool known;
	double n;

	if (!class_share(r, d, CREMA_T_gil_wait, &s, &verdict))
		return verdict;
	say_share(d, &s, "waited", " for the interpreter lock");
	n = value_number(threads, &known);
	if (known) {
		draft_evidence(d, "cores_per_worker", threads, "threads");
		draft_sentence_more(d, "; workers had %s thread%s", draft_human(d, threads, AS_IS),
				    n == 1 ? "" : "s");
	}
	if (!say_holder(r, d))
		draft_line(d, r, CREMA_T_gil_wait);
	if (known && n <= 1)
		draft_advise(d, "The workers have one thread each: threads that tasks start, or "
				"the worker's other threads, hold the lock.");
	else
		advise_processes(r, d);
	draft_cost(d, d->costs->class_s[CREMA_T_gil_wait]);
	return draft_found(d, s.percent / 100);
}

/* While a task waits, threads that it started may work for it: their seconds, and the part that
 * waited for a core. Several at once all count, so both are upper bounds. */
static double pool_seconds(const struct tally *t, double *queued)
{
	double wall = (double)t->count[CREMA_C_pool_wall_ns].v / 1e9;

	*queued = wall > 0 ? (double)t->pool[CREMA_T_runqueue].v / 1e9 / wall : 0;
	return wall;
}

#define FEWER_PROGRAMS                                                                             \
	"Start fewer programs (subprocess.run(), os.system()): call a library in the task, or "    \
	"start one program for many chunks."

/* The function with most of `of` seconds of that wait; "" if unknown. */
static const char *mostly_at(const struct report *r, enum crema_time_id id, double of)
{
	const struct blocking_row *row = site_of(r, id);

	return row && frame_of(row) && (double)row->waits.ns / 1e9 * 2 >= of ? frame_of(row) : "";
}

/* Most of it in wait calls for children: subprocess, multiprocessing. */
static bool waits_for_programs(const struct report *r, double of)
{
	const char *function = mostly_at(r, CREMA_T_lock_wait, of);

	return strstr(function, "wait") && (strstr(function, "pid") || strstr(function, "wait4"));
}

enum verdict finding_lock_wait(const struct report *r, struct draft *d)
{
	const struct tally *t = facts_shown(r->facts);
	enum verdict verdict;
	struct share s;
	double queued;
	bool programs;

	if (!class_share(r, d, CREMA_T_lock_wait, &s, &verdict))
		return verdict;
	if (pool_seconds(t, &queued) * 2 >= s.s)
		return CHECK_QUIET; /* it waited for its own threads */
	programs = waits_for_programs(r, s.s);
	say_share(d, &s, "waited",
		  programs ? " for programs that they started"
			   : " for locks other than the interpreter's");
	if (programs) {
		say_site(r, d, CREMA_T_lock_wait);
		draft_advise(d, "%s", FEWER_PROGRAMS);
	} else if (draft_libraries(d, r, s.s)) {
		draft_severity(d, FINDING_NOTE);
		draft_advise(d, "Libraries compute on threads of their own (Polars, ONNX Runtime, "
				"OpenMP, numba), so this is the job's work: give a worker the "
				"cores that these use, and one worker thread (--nthreads 1), or "
				"let them use one (POLARS_MAX_THREADS=1, OMP_NUM_THREADS=1).");
	} else {
		say_site(r, d, CREMA_T_lock_wait);
		if (value_number(metric_cores_per_worker(r->facts), NULL) == 1)
			draft_advise(d,
				     "With one thread per worker, a task waits for other workers "
				     "(distributed.Lock) or for threads that it started: hold the "
				     "lock for less of the task, and see the call sites in 'Long "
				     "waits'.");
	}
	draft_line(d, r, CREMA_T_lock_wait);
	draft_holder(d, blocking_longest(r->blocking, CREMA_T_lock_wait));
	draft_cost(d, d->costs->class_s[CREMA_T_lock_wait]);
	return draft_found(d, s.percent / 100);
}

#define PAGE_BYTES 4096

/* Most of it in fsync, or more syncs than pages read from storage. */
static bool say_synced(const struct tally *t, struct draft *d, double charged, bool in_sync)
{
	struct value calls = sum_value(&t->count[CREMA_C_sync_calls]);
	double syncs = value_number(calls, NULL);

	if (!(syncs >= 1) || (!in_sync && (syncs < 10 || !(syncs > charged / PAGE_BYTES))))
		return false;
	draft_evidence(d, "sync_calls", calls, "calls");
	draft_sentence_more(d, "; %s call%s of fsync waited for the disk",
			    draft_human(d, calls, AS_COUNT), syncs == 1 ? "" : "s");
	return true;
}

/* Hardly anything that tasks read came from storage, and they wrote: the waits were for writing. */
static bool say_written(const struct tally *t, struct draft *d, double charged, bool in_sync)
{
	bool known;
	double written = value_number(sum_value(&t->count[CREMA_C_write_bytes]), &known);
	struct value calls = sum_value(&t->count[CREMA_C_write_calls]);

	if (isnan(charged) || !known || !(written > 0))
		return false;
	if (!say_synced(t, d, charged, in_sync)) {
		if (charged * 100 >= written)
			return false;
		draft_sentence_more(
			d, "; hardly anything was read from storage, but %s write call%s wrote %s",
			draft_human(d, calls, AS_COUNT), value_number(calls, NULL) == 1 ? "" : "s",
			draft_human(d, value_real(written), AS_BYTES));
	}
	draft_evidence(d, "write_calls", calls, "calls");
	draft_evidence(d, "write_bytes", value_real(written), "bytes");
	draft_advise(d, "Write fewer and larger files, each once at the end of the task, without "
			"fsync() and without a flush after each piece; or write to a local disk.");
	return true;
}

/* For mapped files hardly any bytes are in large reads, and small reads are read ahead: then the
 * page cache's share of large reads does not describe the waits. */
static void say_cached(const struct tally *t, struct draft *d, double charged)
{
	struct value large = sum_value(&t->count[CREMA_C_large_read_bytes]);
	struct value cached = sum_value(&t->count[CREMA_C_cached_bytes]);
	struct value percent = value_ratio(cached, large, 100);
	bool known;

	value_number(percent, &known);
	if (!known || charged > value_number(large, NULL))
		return;
	draft_evidence(d, "cached_bytes", cached, "bytes");
	draft_evidence(d, "large_read_bytes", large, "bytes");
	draft_evidence(d, "cached_percent", percent, "%");
	draft_sentence_more(d, "; %s of the bytes from large reads came from the page cache",
			    draft_percent(d, value_number(percent, NULL)));
}

enum verdict finding_storage_wait(const struct report *r, struct draft *d)
{
	const struct tally *t = facts_shown(r->facts);
	enum verdict verdict;
	struct share s;
	double charged;
	bool known;

	if (!class_share(r, d, CREMA_T_storage_wait, &s, &verdict))
		return verdict;
	charged = value_number(sum_value(&t->count[CREMA_C_storage_read_bytes]), &known);
	charged = known ? charged : (double)NAN;
	say_share(d, &s, "waited", " for storage");
	if (!say_written(t, d, charged, strstr(mostly_at(r, CREMA_T_storage_wait, s.s), "sync")))
		say_cached(t, d, charged);
	draft_line(d, r, CREMA_T_storage_wait);
	draft_cost(d, d->costs->class_s[CREMA_T_storage_wait]);
	return draft_found(d, s.percent / 100);
}

enum verdict finding_network_wait(const struct report *r, struct draft *d)
{
	enum verdict verdict;
	struct share s;

	if (!class_share(r, d, CREMA_T_network_wait, &s, &verdict))
		return verdict;
	say_share(d, &s, "waited", " for the network");
	draft_server(d, r);
	draft_line(d, r, CREMA_T_network_wait);
	draft_cost(d, d->costs->class_s[CREMA_T_network_wait]);
	return draft_found(d, s.percent / 100);
}

/* How many threads work per busy worker thread: itself, or those that its task waits for. */
static double threads_each(const struct tally *t)
{
	double queued, pool = pool_seconds(t, &queued);

	return fmax(1, pool / t->wall);
}

/* Time that tasks waited for a core, and for their own threads while these did. */
static struct value queued_seconds(const struct tally *t, double *of_locks)
{
	struct value own = tally_class_part(t, CREMA_T_runqueue);
	double pool = pool_seconds(t, of_locks);

	if (pool * 2 < t->cls[CREMA_T_lock_wait])
		*of_locks = 0;
	return own.type == VALUE_NULL ? own
				      : value_real(own.v.d + *of_locks * t->cls[CREMA_T_lock_wait]);
}

/* Other processes caused it, not these workers. */
static void blame_others(struct draft *d)
{
	draft_severity(d, FINDING_NOTE);
	draft_sentence_more(d, ", so other processes kept the cores busy");
	draft_advise(d, "Other processes use these cores: compare only runs on nodes that are "
			"equally busy.");
}

enum verdict finding_run_queue(const struct report *r, struct draft *d)
{
	const struct tally *t = facts_shown(r->facts);
	double threads, cores, of_locks, each;
	enum verdict verdict;
	struct value queued;
	const char *worst;
	struct share s;

	queued = queued_seconds(t, &of_locks);
	if (!share_of(r, d, queued, of_locks > 0 ? "queued_seconds" : "runqueue_wait_seconds", &s,
		      &verdict))
		return verdict;
	if (of_locks > 0) /* the sum has another name than its part, which is a metric */
		draft_evidence(d, "runqueue_wait_seconds", tally_class_part(t, CREMA_T_runqueue),
			       "s");
	say_share(d, &s, "were ready and waited", " for a core");
	worst = fullest_host(r, &threads, &cores);
	each = threads_each(t);
	if (worst) {
		draft_evidence(d, "host", value_text(worst), "");
		draft_evidence(d, "threads", value_real(threads), "threads");
		draft_evidence(d, "cores", value_real(cores), "cores");
		draft_sentence_more(d, "; %s has %.0f worker thread%s on %.0f cores",
				    draft_name(d, worst), threads, threads == 1 ? "" : "s", cores);
	}
	if (worst && each >= 1.5) {
		draft_evidence(d, "threads_per_task", value_real(each), "threads");
		draft_sentence_more(d, ", and tasks had %s threads of their own running on average",
				    draft_human(d, value_real(each), AS_IS));
	}
	if (worst && draft_libraries(d, r, s.s))
		draft_advise(d, "Libraries keep threads of their own between tasks (ONNX Runtime, "
				"OpenMP, numba, Polars): let them use one (OMP_NUM_THREADS=1, "
				"NUMBA_NUM_THREADS=1, intra_op_num_threads=1), or start fewer "
				"worker threads.");
	else if (worst && threads * each <= cores)
		blame_others(d);
	else if (worst && each < 1.5)
		draft_advise(d,
			     "Start no more worker threads on a node than it has cores: here "
			     "--nworkers %.0f --nthreads 1.",
			     cores);
	draft_cost(d, d->costs->class_s[CREMA_T_runqueue] +
			      of_locks * d->costs->class_s[CREMA_T_lock_wait]);
	return draft_found(d, s.percent / 100);
}

enum verdict finding_sleeping(const struct report *r, struct draft *d)
{
	enum verdict verdict;
	struct share s;

	if (!class_share(r, d, CREMA_T_sleep, &s, &verdict))
		return verdict;
	say_share(d, &s, "slept", "");
	draft_line(d, r, CREMA_T_sleep);
	draft_cost(d, d->costs->class_s[CREMA_T_sleep]);
	draft_gain_most(d, d->f.cost_s);
	return draft_found(d, s.percent / 100);
}

/* An unknown class is in the remainder: then the remainder has no meaning. */
enum verdict finding_unclassified(const struct report *r, struct draft *d)
{
	const struct tally *t = facts_shown(r->facts);
	bool known = !t->unclassified_unknown && (t->timed || !t->unmeasured);
	enum verdict verdict;
	double programs;
	struct share s;
	unsigned int i;

	for (i = 0; i < CREMA_TIMES; i++)
		known = known && !t->class_unknown[i];
	if (!share_of(r, d, known ? value_real(t->unclassified) : value_null(),
		      "unclassified_seconds", &s, &verdict))
		return verdict;
	draft_sentence(d, "%s%s of the tasks' time (%s) is not classified", least(&s),
		       draft_percent(d, s.percent), draft_human(d, s.seconds, AS_SECONDS));
	programs = children_cpu_s(r);
	if (programs >= 1 && programs * 10 >= s.s) {
		draft_evidence(d, "children_cpu_seconds", value_real(programs), "s");
		draft_sentence_more(
			d,
			"; programs that the workers started used at least %s of CPU during the "
			"run, and waits for them in os.system() do not appear in any call",
			draft_human(d, value_real(programs), AS_SECONDS));
		draft_advise(d, "%s", FEWER_PROGRAMS);
		draft_severity(d, FINDING_WARNING);
	}
	draft_cost(d, d->costs->unclassified);
	return draft_found(d, s.percent / 100);
}

/* More cores could have been used while all threads had a task. */
#define BUSY_PERCENT 80
#define TASKS_EACH 10

static void say_more_cores(const struct report *r, struct draft *d)
{
	struct budget b;
	double each;

	if (!budget_build(&b, r->facts) || !(b.threads > 0))
		return;
	each = (double)r->facts->tasks.attempts / b.threads;
	if ((b.thread_seconds - b.idle) * 100 < b.thread_seconds * BUSY_PERCENT ||
	    each < TASKS_EACH)
		return;
	draft_evidence(d, "busy_percent", value_real(100 - b.idle / b.thread_seconds * 100), "%");
	draft_evidence(d, "tasks_per_thread", value_real(each), "tasks");
	draft_advise(d, "The run is CPU-bound and had work queued: faster code or more cores make "
			"it faster, faster storage does not.");
}

/* How much process() itself computes per event; this does not separate loops from arrays. */
static void say_per_event(const struct report *r, struct draft *d)
{
	const struct tally *t = &r->facts->work;
	struct value codecs = value_plus(sum_value(&t->count[CREMA_C_decompress_cpu_ns]),
					 sum_value(&t->count[CREMA_C_compress_cpu_ns]));
	bool known, cpu_known, events_known;
	double rest, cpu = value_number(tally_cpu(t), &cpu_known);
	double events = value_number(metric_total_events(r->facts), &events_known);

	rest = cpu - value_number(codecs, &known) / 1e9;
	if (!r->facts->chunks.attempts || !known || !cpu_known || !events_known || !(events > 0))
		return;
	draft_evidence(d, "cpu_outside_codecs_seconds", value_real(rest), "s");
	draft_sentence_more(d, "; chunks computed %s per event outside codecs",
			    draft_human(d, value_real(rest / events), AS_SECONDS));
}

/* On a busy node computing also means waiting for a core. */
enum verdict finding_cpu_bound(const struct report *r, struct draft *d)
{
	const struct tally *t = facts_shown(r->facts);
	struct value cpu = tally_class_part(t, CREMA_T_cpu);
	struct value queue = tally_class_part(t, CREMA_T_runqueue);
	bool known = cpu.type != VALUE_NULL && queue.type != VALUE_NULL;
	enum verdict verdict;
	struct share s;

	if (!share_of(r, d, known ? value_real(cpu.v.d + queue.v.d) : value_null(),
		      "cpu_and_runqueue_seconds", &s, &verdict))
		return verdict;
	draft_evidence(d, "task_cpu_seconds", cpu, "s");
	draft_evidence(d, "runqueue_wait_seconds", queue, "s");
	say_more_cores(r, d);
	draft_sentence(d, "%s%s of the tasks' time was CPU (%s) or waiting for a core (%s)",
		       least(&s), draft_percent(d, s.percent), draft_human(d, cpu, AS_SECONDS),
		       draft_human(d, queue, AS_SECONDS));
	say_per_event(r, d);
	draft_line(d, r, CREMA_T_cpu);
	draft_cost(d, d->costs->class_s[CREMA_T_cpu] + d->costs->class_s[CREMA_T_runqueue]);
	return draft_found(d, s.percent / 100);
}

enum verdict finding_blocked_site(const struct report *r, struct draft *d)
{
	const struct blocking_row *row = site_of(r, CREMA_TIMES);
	const struct tally *t = &r->facts->all; /* long waits cover every attempt */
	struct value s;

	if (!r->blocking->known)
		return draft_unknown(d, "blocking");
	if (!row || !(t->wall > 0))
		return CHECK_IDLE;
	s = value_real((double)row->waits.ns / 1e9);
	if (!reaches(s.v.d, t->wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	draft_evidence(d, "seconds", s, "s");
	draft_evidence(d, "task_wall_seconds", value_real(t->wall), "s");
	draft_evidence(d, "percent", value_real(s.v.d / t->wall * 100), "%");
	draft_evidence(d, "waits", value_uint(row->waits.calls), "waits");
	draft_evidence(d, "class", value_text(class_name(row->wait)), "");
	draft_sentence(
		d, "%s of the tasks' time (%s) was spent %s at one call site, in %s long wait%s",
		draft_percent(d, s.v.d / t->wall * 100), draft_human(d, s, AS_SECONDS),
		class_words(row->wait), draft_human(d, value_uint(row->waits.calls), AS_COUNT),
		row->waits.calls == 1 ? "" : "s");
	if (frame_of(row)) {
		draft_evidence(d, "function", value_text(frame_of(row)), "");
		draft_sentence_more(d, ", %s", draft_name(d, frame_of(row)));
	}
	if (row->object) {
		draft_evidence(d, "object", value_text(row->object), "");
		draft_sentence_more(d, ", for %s", draft_name(d, row->object));
	}
	draft_waiting_line(d, row);
	draft_cost(d, cost_part(s.v.d, d->costs->task_seconds, d->costs->any));
	return draft_found(d, s.v.d / t->wall);
}
