/* SPDX-License-Identifier: BSD-3-Clause */
/* run_state.c - see run_state.h; its sentences are in run_state_out.c. */
#include "collector/runs/run_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PERCENT 100.0

double run_stall_seconds = 30;

static bool is_there(const struct worker *w)
{
	return !w->goodbye && !w->silent;
}

static const struct probe *last_probe(const struct worker *w)
{
	return w->probes.n ? &w->probes.v[w->probes.n - 1] : NULL;
}

static bool is_paused(const struct probe *p)
{
	return p && p->status && strstr(p->status, "paused");
}

/* Since when it has been paused continuously, according to samples. */
static double paused_since(const struct worker *w)
{
	size_t i = w->probes.n;

	while (i > 0 && is_paused(&w->probes.v[i - 1]))
		i--;
	return i < w->probes.n ? w->probes.v[i].time : (double)NAN;
}

static void look_at_paused(const struct worker *w, struct run_state *s)
{
	const struct probe *p = last_probe(w);
	double since = paused_since(w);

	s->paused++;
	s->paused_percent =
		fmax(s->paused_percent, p->memory_bytes / p->memory_limit_bytes * PERCENT);
	s->paused_since = fmin(s->paused_since, since);
}

/* Waiting tasks on workers are the run's only if no later run has had tasks there. */
static void look_at_workers(const struct run *r, struct run_state *s)
{
	bool latest = !(r->others.next_start < (double)INFINITY);
	const struct worker *w;
	const struct probe *p;
	size_t i;

	for (i = 0; i < r->workers.n; i++) {
		w = r->workers.v[i];
		p = last_probe(w);
		s->silent += w->silent;
		if (!is_there(w))
			continue;
		s->workers++;
		if (!p || r->plain)
			continue;
		if (is_paused(p))
			look_at_paused(w, s);
		if (latest && !isnan(p->ready))
			s->waiting = time_or_0(s->waiting) + p->ready;
	}
}

/* Its row among the calls that the worker reported for its tasks; NULL: none. */
static const struct doing *doing_of(const struct attempt *a)
{
	const struct worker *w = a->worker;
	size_t i;

	for (i = 0; i < w->doing.n && is_there(w); i++) {
		if (w->doing.v[i].attempt == a->attempt && w->doing.v[i].since_boot_ns)
			return &w->doing.v[i];
	}
	return NULL;
}

static void look_at_call(const struct attempt *a, struct run_state *s)
{
	const struct doing *doing = doing_of(a);
	double since = doing ? worker_utc(a->worker, doing->since_boot_ns) : (double)NAN;

	if (s->in_call && !(since < fmin(s->stuck_since, (double)INFINITY)))
		return;
	s->in_call = a;
	s->stuck = doing;
	s->stuck_since = since;
}

static void look_at_attempts(const struct run *r, struct run_state *s)
{
	const struct attempt *a;
	size_t i;

	s->since = (double)NAN;
	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		s->since = fmax(s->since, attempt_begin(a)); /* fmax ignores NAN */
		if (a->state == ATTEMPT_RUNNING) {
			look_at_call(a, s);
			continue;
		}
		s->since = fmax(s->since, attempt_end(a));
		if (a->waste_reason && !strcmp(a->waste_reason, "erred")) {
			s->failed = s->failed ? s->failed : a;
			s->failures++;
		}
		s->unfinished += a->abandoned;
		s->doubtful += a->abandoned && s->silent > a->worker->silent;
	}
}

static int by_number(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

/* Of attempts that have ended, in seconds; 0 if none has. -ENOMEM. */
static int median_wall(const struct run *r, double *median)
{
	double *walls = calloc(r->attempts.n ? r->attempts.n : 1, sizeof(*walls));
	const struct attempt *a;
	size_t i, n = 0;

	if (!walls)
		return -ENOMEM;
	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		if (a->state != ATTEMPT_RUNNING && a->known >> TASK_F_wall_ns & 1)
			walls[n++] = (double)a->wall_ns / 1e9;
	}
	qsort(walls, n, sizeof(*walls), by_number);
	*median = n ? walls[(n - 1) / 2] : 0;
	free(walls);
	return 0;
}

/* Running tasks compute: whether their workers have used CPU since the last begin or end. */
static bool is_computing(const struct run *r, const struct run_state *s)
{
	double cpu = 0;
	const struct worker *w;
	const struct sample *p;
	size_t i, k, n, busy = 0;

	for (i = 0; i < r->workers.n; i++) {
		w = r->workers.v[i];
		double sum = 0;

		for (k = w->samples.n, n = 0; k > 0; k--) {
			p = &w->samples.v[k - 1];
			if (!(p->time > s->since))
				break;
			if (!isnan(p->cpu_percent)) {
				sum += p->cpu_percent;
				n++;
			}
		}
		if (is_there(w) && n) {
			cpu += sum / (double)n;
			busy++;
		}
	}
	return busy && cpu >= RUN_STALL_CPU_PERCENT * (double)(r->running ? r->running : 1);
}

/* Running tasks read, write, receive or send. */
static bool is_moving(const struct run *r, const struct run_state *s)
{
	const struct worker *w;
	size_t i;

	for (i = 0; i < r->workers.n; i++) {
		w = r->workers.v[i];
		if (is_there(w) && w->moved_boot_ns &&
		    s->now - worker_utc(w, w->moved_boot_ns) < run_stall_seconds)
			return true;
	}
	return false;
}

static int judge_open(const struct run *r, struct run_state *s)
{
	double quiet = s->now - s->since, median = 0;
	int rc = 0;

	s->id = RUN_STATE_RUNNING;
	if (!(quiet >= run_stall_seconds))
		return 0;
	rc = median_wall(r, &median);
	if (rc || quiet < RUN_STALL_MEDIANS * median || is_computing(r, s) || is_moving(r, s))
		return rc;
	s->id = RUN_STATE_STALLED;
	s->why = r->running ? RUN_WHY_IN_CALL : s->paused ? RUN_WHY_PAUSED : RUN_WHY_UNKNOWN;
	return 0;
}

/* Tasks of t that had not succeeded before: lost results are computed again. */
static uint64_t not_done(const struct run *r, const struct taken *t)
{
	uint64_t hash[MODEL_TAKEN_KEYS], *at, left = t->tasks;
	const struct attempt *a;
	size_t i, n = t->keys;

	memcpy(hash, t->key_hash, n * sizeof(*hash));
	qsort(hash, n, sizeof(*hash), run_key_order);
	for (i = 0; n && left && i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		if (a->state != ATTEMPT_OK)
			continue;
		at = bsearch(&a->key_hash, hash, n, sizeof(*hash), run_key_order);
		if (!at)
			continue;
		memmove(at, at + 1, (size_t)(hash + n - at - 1) * sizeof(*hash));
		n--;
		left--;
	}
	return left;
}

/* A client that continues has taken back tasks that it no longer needs. */
static bool went_on(const struct run *r, const struct taken *t)
{
	size_t i;

	for (i = 0; i < r->attempts.n && !t->client_left; i++) {
		if (attempt_begin(r->attempts.v[i]) > t->time + RUN_WENT_ON_SECONDS)
			return true;
	}
	return false;
}

/* Counts what the scheduler took back from the run's spans before it ended; *left: because the
 * client was gone. */
static void look_at_taken(const struct run *r, struct run_state *s, bool *left)
{
	const struct worker *w;
	const struct taken *t;
	size_t i, k;

	for (i = 0; i < r->workers.n; i++) {
		w = r->workers.v[i];
		for (k = 0; k < w->taken.n; k++) {
			t = &w->taken.v[k];
			if (!run_has_dask_span(r, t->span) || !(t->time >= r->start) ||
			    t->time >= r->others.next_start || went_on(r, t))
				continue;
			s->taken_back += not_done(r, t);
			*left |= t->client_left;
		}
	}
}

static bool cluster_was_closed(const struct run *r)
{
	size_t i;

	for (i = 0; i < r->workers.n; i++) {
		if (!r->workers.v[i]->closing && !r->workers.v[i]->orphan)
			return false;
	}
	return r->workers.n > 0;
}

/* Tasks that ended after that time: their clients no longer wait for them. */
static double ended_since(const struct run *r, double time)
{
	double n = 0;
	size_t i;

	for (i = 0; i < r->attempts.n; i++)
		n += r->attempts.v[i]->state == ATTEMPT_OK && attempt_end(r->attempts.v[i]) > time;
	return n;
}

/* Uses the last answer of its scheduler if none of the scheduler's workers is present any more and
 * the last to go was not closed. Only one worker queries the scheduler: the others may have worked
 * on after that one ended. */
static void look_at_client(const struct run *r, struct run_state *s)
{
	const struct worker *w, *last = NULL, *asker = NULL;
	const struct model *m = r->model;
	size_t i;

	for (i = 0; i < m->workers.n; i++) {
		w = m->workers.v[i];
		if (!r->workers.n || !workers_share_scheduler(w, r->workers.v[0]))
			continue;
		if (is_there(w))
			return;
		if (!last || w->last > last->last)
			last = w;
		if (w->told.known && (!asker || w->last > asker->last))
			asker = w;
	}
	if (asker && asker->told.clients > 0 && !last->closing && !last->orphan)
		s->client_waits =
			fmax(0, asker->told.unfinished -
					ended_since(r, worker_utc(asker, asker->told.boot_ns)));
}

/* Counts tasks that waited on workers when these closed, if nothing of the run began afterwards:
 * Dask gives them to other workers if there are any. Ctrl-C, too, closes workers before the client
 * has left. */
static void look_at_closed(const struct run *r, struct run_state *s)
{
	double begun = (double)-INFINITY;
	const struct worker *w;
	const struct probe *p;
	size_t i;

	if (r->plain || r->others.next_start < (double)INFINITY)
		return;
	for (i = 0; i < r->attempts.n; i++)
		begun = fmax(begun, attempt_begin(r->attempts.v[i]));
	for (i = 0; i < r->workers.n; i++) {
		w = r->workers.v[i];
		p = last_probe(w);
		if (w->closing && p && p->time >= begun && p->ready > 0)
			s->unfinished += (size_t)p->ready;
	}
}

static void judge_over(const struct run *r, struct run_state *s)
{
	bool left = false;

	look_at_taken(r, s, &left);
	if (!s->taken_back)
		look_at_closed(r, s);
	look_at_client(r, s);
	s->id = RUN_STATE_INTERRUPTED;
	if (s->failures) {
		s->id = RUN_STATE_FAILED;
		s->why = RUN_WHY_TASK_FAILED;
	} else if (s->taken_back) {
		s->why = left ? RUN_WHY_CLIENT_LEFT : RUN_WHY_TAKEN_BACK;
	} else if (s->client_waits > 0 && !cluster_was_closed(r) &&
		   !(r->others.next_start < (double)INFINITY)) {
		s->id = RUN_STATE_STALLED;
		s->why = RUN_WHY_NO_WORKER;
	} else if (s->unfinished) {
		s->why = cluster_was_closed(r) ? RUN_WHY_CLOSED : RUN_WHY_WORKERS_GONE;
	} else {
		s->id = RUN_STATE_FINISHED;
	}
}

int run_state_find(const struct run *r, struct run_state *s)
{
	memset(s, 0, sizeof(*s));
	s->run = r;
	s->now = r->model->newest;
	s->waiting = s->paused_percent = s->paused_since = (double)NAN;
	s->stuck_since = s->client_waits = (double)NAN;
	look_at_workers(r, s);
	look_at_attempts(r, s);
	if (r->running || s->waiting > 0)
		return judge_open(r, s);
	judge_over(r, s);
	return 0;
}
