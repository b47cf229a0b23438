/* SPDX-License-Identifier: BSD-3-Clause */
/* check_time.c - what tasks spent their time on: counted ones, or all (facts_shown()). */
#include "collector/findings/check.h"

/* A class of the shown tasks' time. */
struct share {
	struct value seconds;
	double s, wall, percent;
};

/* Said where it is not what the metrics are of. */
static void see_basis(const struct report *r, struct remark *d)
{
	if (facts_shows_all(r->facts))
		remark_see(d, "tasks", value_text("all attempts"), "");
}

/* Whether it is known and reaches the thresholds; else `*verdict` is what the check returns. */
static bool share_of(const struct report *r, struct remark *d, struct value seconds,
		     const char *metric, struct share *out, enum verdict *verdict)
{
	const struct tally *t = facts_shown(r->facts);
	bool known;

	*verdict = CHECK_IDLE;
	if (!t->timed || !(t->wall > 0))
		return false;
	out->seconds = seconds;
	out->s = value_number(out->seconds, &known);
	out->wall = t->wall;
	out->percent = out->s / t->wall * 100;
	*verdict = known ? CHECK_QUIET : remark_unknown(d, metric);
	if (!known || !reaches(out->s, t->wall, d->check->first, d->check->second))
		return false;
	remark_see(d, metric, out->seconds, "s");
	remark_see(d, "task_wall_seconds", value_real(out->wall), "s");
	remark_see(d, "percent", value_real(out->percent), "%");
	see_basis(r, d);
	return true;
}

static void say_share(struct remark *d, const struct share *s, const char *did, const char *what)
{
	remark_say(d, "tasks %s %s of their time (%s)%s", did, remark_percent(d, s->percent),
		   remark_human(d, s->seconds, AS_SECONDS), what);
}

/* The call site with the longest waits of a class; NULL: none. CREMA_TIMES: any but sleep. */
static const struct blocking_row *site_of(const struct report *r, unsigned int id)
{
	const struct blocking_row *row;
	size_t i;

	for (i = 0; r->blocking && i < r->blocking->rows.n; i++) {
		row = r->blocking->rows.v[i];
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
static void say_site(const struct report *r, struct remark *d, enum crema_time_id id)
{
	const struct blocking_row *row = site_of(r, id);
	struct value s;

	if (!row || !frame_of(row))
		return;
	s = value_real((double)row->waits.ns / 1e9);
	remark_see(d, "longest_site", value_text(frame_of(row)), "");
	remark_see(d, "longest_site_seconds", s, "s");
	remark_say_more(d, "; %s of long waits at %s", remark_human(d, s, AS_SECONDS),
			remark_name(d, frame_of(row)));
}

enum verdict finding_gil_wait(const struct report *r, struct remark *d)
{
	struct value threads = metric_cores_per_worker(r->facts);
	enum verdict verdict;
	struct share s;
	bool known;
	double n;

	if (!share_of(r, d, tally_class(facts_shown(r->facts), CREMA_T_gil_wait),
		      "gil_wait_seconds", &s, &verdict))
		return verdict;
	say_share(d, &s, "waited", " for the interpreter lock");
	n = value_number(threads, &known);
	if (known) {
		remark_see(d, "cores_per_worker", threads, "threads");
		remark_say_more(d, "; workers had %s thread%s", remark_human(d, threads, AS_IS),
				n == 1 ? "" : "s");
	}
	if (known && n <= 1)
		remark_advise(d, "The workers have one thread each: the lock is held by threads "
				 "that tasks start themselves, or by the worker's own.");
	return remark_found(d, s.percent / 100);
}

enum verdict finding_lock_wait(const struct report *r, struct remark *d)
{
	enum verdict verdict;
	struct share s;

	if (!share_of(r, d, tally_class(facts_shown(r->facts), CREMA_T_lock_wait),
		      "lock_wait_seconds", &s, &verdict))
		return verdict;
	say_share(d, &s, "waited", " for locks other than the interpreter's");
	say_site(r, d, CREMA_T_lock_wait);
	return remark_found(d, s.percent / 100);
}

enum verdict finding_storage_wait(const struct report *r, struct remark *d)
{
	const struct tally *t = facts_shown(r->facts);
	struct value large = sum_value(&t->count[CREMA_C_large_read_bytes]);
	struct value cached = sum_value(&t->count[CREMA_C_cached_bytes]);
	struct value percent = value_ratio(cached, large, 100);
	enum verdict verdict;
	struct share s;
	bool known;

	if (!share_of(r, d, tally_class(t, CREMA_T_storage_wait), "storage_wait_seconds", &s,
		      &verdict))
		return verdict;
	say_share(d, &s, "waited", " for storage");
	value_number(percent, &known);
	if (known) {
		remark_see(d, "cached_bytes", cached, "bytes");
		remark_see(d, "large_read_bytes", large, "bytes");
		remark_see(d, "cached_percent", percent, "%");
		remark_say_more(d, "; %s of what large reads returned was in the page cache",
				remark_percent(d, value_number(percent, NULL)));
	}
	return remark_found(d, s.percent / 100);
}

/* The server whose answers took longest in all. */
static void say_server(const struct report *r, struct remark *d)
{
	const struct server_sum *s, *worst = NULL;
	struct value mean;
	double sum, most = 0;
	size_t i;

	for (i = 0; i < r->servers.n; i++) {
		s = &r->servers.v[i];
		sum = value_number(s->latency_sum_ns, NULL);
		if (s->server && sum > most)
			worst = s, most = sum;
	}
	mean = worst ? value_seconds(value_ratio(worst->latency_sum_ns, worst->requests, 1))
		     : value_null();
	if (mean.type == VALUE_NULL)
		return;
	remark_see(d, "server", value_text(worst->server), "");
	remark_see(d, "requests", worst->requests, "requests");
	remark_see(d, "mean_latency_seconds", mean, "s");
	remark_say_more(d, "; %s answered %s request%s in %s on average",
			remark_name(d, worst->server), remark_human(d, worst->requests, AS_COUNT),
			value_number(worst->requests, NULL) == 1 ? "" : "s",
			remark_human(d, mean, AS_SECONDS));
}

enum verdict finding_network_wait(const struct report *r, struct remark *d)
{
	enum verdict verdict;
	struct share s;

	if (!share_of(r, d, tally_class(facts_shown(r->facts), CREMA_T_network_wait),
		      "network_wait_seconds", &s, &verdict))
		return verdict;
	say_share(d, &s, "waited", " for the network");
	say_server(r, d);
	return remark_found(d, s.percent / 100);
}

/* Threads of the run's workers on one host, and its cores. */
static double threads_on(const struct report *r, const char *host, double *cores)
{
	const struct worker_track *t;
	double threads = 0;
	size_t i;

	for (i = 0, *cores = 0; i < r->facts->tracking->n; i++) {
		t = &r->facts->tracking->v[i];
		if (t->worker->host != host)
			continue;
		threads += value_number(t->cores, NULL);
		*cores = value_number(t->worker->cores, NULL);
	}
	return threads;
}

enum verdict finding_run_queue(const struct report *r, struct remark *d)
{
	const char *host, *worst = NULL;
	double threads, cores, most = 0, most_threads = 0, most_cores = 0;
	enum verdict verdict;
	struct share s;
	size_t i;

	if (!share_of(r, d, tally_class(facts_shown(r->facts), CREMA_T_runqueue),
		      "runqueue_wait_seconds", &s, &verdict))
		return verdict;
	say_share(d, &s, "were ready and waited", " for a core");
	for (i = 0; i < r->facts->tracking->n; i++) {
		host = r->facts->tracking->v[i].worker->host;
		threads = threads_on(r, host, &cores);
		if (host && cores > 0 && threads / cores > most) {
			worst = host, most = threads / cores;
			most_threads = threads, most_cores = cores;
		}
	}
	if (worst) {
		remark_see(d, "host", value_text(worst), "");
		remark_see(d, "threads", value_real(most_threads), "threads");
		remark_see(d, "cores", value_real(most_cores), "cores");
		remark_say_more(d, "; %s has %.0f worker threads on %.0f cores",
				remark_name(d, worst), most_threads, most_cores);
	}
	return remark_found(d, s.percent / 100);
}

enum verdict finding_sleeping(const struct report *r, struct remark *d)
{
	enum verdict verdict;
	struct share s;

	if (!share_of(r, d, tally_class(facts_shown(r->facts), CREMA_T_sleep), "sleep_seconds", &s,
		      &verdict))
		return verdict;
	say_share(d, &s, "slept", "");
	return remark_found(d, s.percent / 100);
}

/* A class that is unknown is in the remainder: then the remainder says nothing. */
enum verdict finding_unclassified(const struct report *r, struct remark *d)
{
	const struct tally *t = facts_shown(r->facts);
	bool known = !t->unclassified_unknown;
	enum verdict verdict;
	struct share s;
	unsigned int i;

	for (i = 0; i < CREMA_TIMES; i++)
		known = known && !t->class_unknown[i];
	if (!share_of(r, d, known ? value_real(t->unclassified) : value_null(),
		      "unclassified_seconds", &s, &verdict))
		return verdict;
	remark_say(d, "%s of the time of tasks (%s) is in no class", remark_percent(d, s.percent),
		   remark_human(d, s.seconds, AS_SECONDS));
	return remark_found(d, s.percent / 100);
}

/* On a busy node computing is waiting for a core, too. */
enum verdict finding_cpu_bound(const struct report *r, struct remark *d)
{
	const struct tally *t = facts_shown(r->facts);
	struct value cpu = tally_class(t, CREMA_T_cpu), queue = tally_class(t, CREMA_T_runqueue);
	bool known = cpu.type != VALUE_NULL && queue.type != VALUE_NULL;
	enum verdict verdict;
	struct share s;

	if (!share_of(r, d, known ? value_real(cpu.v.d + queue.v.d) : value_null(),
		      "cpu_and_runqueue_seconds", &s, &verdict))
		return verdict;
	remark_see(d, "task_cpu_seconds", cpu, "s");
	remark_see(d, "runqueue_wait_seconds", queue, "s");
	remark_say(d, "%s of the time of tasks was CPU (%s) or waiting for a core (%s)",
		   remark_percent(d, s.percent), remark_human(d, cpu, AS_SECONDS),
		   remark_human(d, queue, AS_SECONDS));
	return remark_found(d, s.percent / 100);
}

enum verdict finding_blocked_site(const struct report *r, struct remark *d)
{
	const struct blocking_row *row = site_of(r, CREMA_TIMES);
	const struct tally *t = &r->facts->all; /* long waits are of every attempt */
	struct value s;

	if (!r->blocking->known)
		return remark_unknown(d, "blocking");
	if (!row || !(t->wall > 0))
		return CHECK_IDLE;
	s = value_real((double)row->waits.ns / 1e9);
	if (!reaches(s.v.d, t->wall, d->check->first, d->check->second))
		return CHECK_QUIET;
	remark_see(d, "seconds", s, "s");
	remark_see(d, "task_wall_seconds", value_real(t->wall), "s");
	remark_see(d, "percent", value_real(s.v.d / t->wall * 100), "%");
	remark_see(d, "waits", value_uint(row->waits.calls), "waits");
	remark_see(d, "class", value_text(class_name(row->wait)), "");
	remark_say(d,
		   "%s of the time of tasks (%s) was spent %s at one call site, in %s long wait%s",
		   remark_percent(d, s.v.d / t->wall * 100), remark_human(d, s, AS_SECONDS),
		   class_words(row->wait), remark_human(d, value_uint(row->waits.calls), AS_COUNT),
		   row->waits.calls == 1 ? "" : "s");
	if (frame_of(row)) {
		remark_see(d, "function", value_text(frame_of(row)), "");
		remark_say_more(d, ", %s", remark_name(d, frame_of(row)));
	}
	if (row->object) {
		remark_see(d, "object", value_text(row->object), "");
		remark_say_more(d, ", for %s", remark_name(d, row->object));
	}
	return remark_found(d, s.v.d / t->wall);
}
