/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_count.c - what belongs to a run, which attempt of a key counts and why the others do not,
 * and finding a run by name. */
#include "collector/runs/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/sort.h"

bool run_has_row(const struct run *r, const struct worker *w, const char *span)
{
	size_t i;

	for (i = 0; r->plain && i < r->places.n; i++) {
		if ((!w || r->places.v[i].worker == w) && r->places.v[i].span == span)
			return true;
	}
	if (r->plain)
		return false;
	return r->first_span ? run_has_span(r, span) : !span;
}

enum run_digest run_digest(const struct run *r, const char *span, const char *prefix)
{
	const struct span_part *p = span ? span_part_first(r->model, span) : NULL;
	bool own = false, shared = false;

	if (r->plain)
		return DIGEST_OTHER;
	for (; p; p = p->sibling) {
		if (run_has_span(r, p->name))
			own = true;
		else
			shared |= p->prefixes || p->prefix == prefix;
	}
	return !own ? DIGEST_OTHER : shared ? DIGEST_SHARED : DIGEST_OWN;
}

bool attempt_has_digests(const struct run *r, const struct attempt *a)
{
	const struct worker *w = a->worker;
	const char *span;
	size_t i;

	if (!w->digests_boot_ns || !w->digests_cut)
		return w->digests_boot_ns;
	span = w->digests_whole ? span_part_span(r->model, a->span) : NULL;
	for (i = w->digests.n; span && i-- > 0;) {
		if (w->digests.v[i].span == span)
			return worker_utc(w, w->digests.v[i].boot_ns) >= attempt_end(a);
	}
	return false;
}

static bool worker_alive(const struct worker *w, double start, double stop)
{
	double last = w->goodbye ? worker_utc(w, w->goodbye_boot_ns) : w->last;

	if (isnan(w->first) || w->first > stop)
		return false;
	return (!w->goodbye && !w->silent) || last >= start;
}

double run_until(const struct run *r)
{
	double seen = r->model->selection ? run_surveyed_until(r->model->selection, r) : 0;

	return fmax(seen, fmax(time_or_0(r->start), time_or_0(r->stop)));
}

const struct worker *run_scheduled(const struct run *r)
{
	size_t i;

	for (i = 0; i < r->attempts.n; i++) {
		if (r->attempts.v[i]->worker->scheduler)
			return r->attempts.v[i]->worker;
	}
	return NULL;
}

/* Without Dask a process that did nothing for the run is not one of its workers; with Dask, one of
 * another scheduler is not. */
bool run_has_worker(const struct run *r, const struct worker *w, const struct worker *scheduled)
{
	size_t i;

	for (i = 0; r->plain && i < r->places.n; i++) {
		if (r->places.v[i].worker == w)
			return true;
	}
	if (r->plain || !worker_alive(w, r->from, r->to))
		return false;
	return !scheduled || workers_share_scheduler(w, scheduled);
}

struct value attempt_events(const struct attempt *a)
{
	struct value events = attempt_i64(a, TASK_F_events), start, stop;

	if (events.type != VALUE_NULL || a->state != ATTEMPT_OK || !attempt_is_chunk(a))
		return events;
	start = attempt_i64(a, TASK_F_entrystart);
	stop = attempt_i64(a, TASK_F_entrystop);
	if (start.type == VALUE_NULL || stop.type == VALUE_NULL || stop.v.i < start.v.i)
		return value_null();
	return value_int((int64_t)((uint64_t)stop.v.i - (uint64_t)start.v.i));
}

const char *attempt_state_name(const struct attempt *a)
{
	static const char *const names[] = {
		[ATTEMPT_RUNNING] = "running", [ATTEMPT_OK] = "ok",	[ATTEMPT_ERRED] = "erred",
		[ATTEMPT_KILLED] = "killed",   [ATTEMPT_LOST] = "lost",
	};

	return names[a->state];
}

/* All calls of an actor's method have its name as their key; none repeats another. */
static uint64_t key_of(const struct attempt *a)
{
	if (a->flags & CREMA_TASK_ACTOR)
		return hash_pair(hash_bytes(3, a->worker->id, sizeof(a->worker->id)), a->attempt);
	if ((a->known >> TASK_F_key_hash) & 1)
		return a->key_hash;
	if (a->key)
		return hash_bytes(3, a->key, strlen(a->key));
	return hash_pair(hash_bytes(3, a->worker->id, sizeof(a->worker->id)), a->attempt);
}

static bool same_name(const void *item, const void *key)
{
	return item == key;
}

int runs_count_spans(const struct model *m, size_t *n)
{
	struct table seen = {0};
	void *span;
	size_t i;
	int rc = 0;

	for (i = 0; i < m->attempts.n && !rc; i++) {
		memcpy(&span, &m->attempts.v[i]->span, sizeof(span)); /* interned: the address */
		if (span && !table_find(&seen, hash_pair((uintptr_t)span, 1), same_name, span))
			rc = table_add(&seen, hash_pair((uintptr_t)span, 1), span);
	}
	*n = seen.n;
	table_release(&seen);
	return rc;
}

struct left { /* when workers left, sorted */
	double *v;
	size_t n, cap;
};

struct chain { /* all attempts of one key, oldest first */
	struct attempt **all;
	const uint32_t *wave; /* by index, see waves_of() */
	const struct left *left;
	const struct numbered *v; /* indexes by key */
	size_t n;
};

/* The ok attempt that ended last; NULL if there is none. */
static struct attempt *last_ok(const struct chain *c)
{
	struct attempt *a, *best = NULL;
	size_t i;

	for (i = 0; i < c->n; i++) {
		a = c->all[c->v[i].place];
		if (a->state == ATTEMPT_OK && (!best || attempt_end(a) >= attempt_end(best)))
			best = a;
	}
	return best;
}

static const char *reason_of(const struct attempt *a, bool has_next, const struct attempt *counted)
{
	if (a->abandoned && (a->worker->closing || a->worker->orphan))
		return "shutdown";
	switch (a->state) {
	case ATTEMPT_KILLED:
		return "killed";
	case ATTEMPT_LOST:
		return "lost";
	case ATTEMPT_ERRED:
		return has_next || (counted && attempt_end(counted) > attempt_end(a)) ? "retried"
										      : "erred";
	case ATTEMPT_OK:
		return counted->worker != a->worker && attempt_begin(counted) < attempt_end(a)
			       ? "stolen"
			       : "recomputed";
	default:
		return NULL;
	}
}

static void settle_chain(const struct chain *c)
{
	struct attempt *a, *counted = last_ok(c);
	size_t i;

	for (i = 0; i < c->n; i++) {
		a = c->all[c->v[i].place];
		a->counted = a == counted;
		a->abandoned = !counted && i + 1 == c->n &&
			       (a->state == ATTEMPT_KILLED || a->state == ATTEMPT_LOST);
		a->waste_reason = a->counted ? NULL : reason_of(a, i + 1 < c->n, counted);
	}
}

/* A killed attempt ends when its agent noticed, which may be after the scheduler did. */
#define NOTICED_SECONDS 5.0
static bool outlives(const struct worker *w, double time)
{
	bool killed = w->silent || (w->goodbye_how && !strcmp(w->goodbye_how, "killed"));

	return worker_alive(w, time + (killed ? NOTICED_SECONDS : 0), time);
}

/* Whether a worker may have left between these times. */
static bool has_left(const struct left *left, double from, double to)
{
	size_t low = 0, high = left->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (left->v[middle] < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low < left->n && left->v[low] <= to + NOTICED_SECONDS;
}

/* Dask repeats a success only if its result, or one derived from it, was lost with a worker, or if
 * a client requests it again. If a worker left meanwhile, the latter is certain only if everything
 * requested before had ended, and the worker that had the result is still there. */
static size_t asked_again(const struct chain *c)
{
	const struct attempt *a, *b;
	size_t i, n = 0;

	for (i = 0; i + 1 < c->n; i++) {
		a = c->all[c->v[i].place];
		b = c->all[c->v[i + 1].place];
		n += a->state == ATTEMPT_OK && attempt_end(a) <= attempt_begin(b) &&
		     (c->wave[c->v[i].place] < c->wave[c->v[i + 1].place] ||
		      !has_left(c->left, attempt_end(a), attempt_begin(b))) &&
		     outlives(a->worker, attempt_begin(b));
	}
	return n;
}

/* Counts, for each attempt, how often nothing had been running before it. NULL: no memory. */
static uint32_t *waves_of(const struct run *r)
{
	uint32_t *wave = calloc(r->attempts.n ? r->attempts.n : 1, sizeof(*wave));
	const struct attempt *a;
	double end = 0;
	size_t i;

	for (i = 0; wave && i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		wave[i] = (i ? wave[i - 1] : 0) + (attempt_begin(a) > end);
		end = fmax(end, a->state == ATTEMPT_RUNNING ? (double)INFINITY : attempt_end(a));
	}
	return wave;
}

/* Keys are processed in this many parts, to need less memory at a time. */
#define KEY_PARTS 16u

/* `keyed` has room for a part; 0 or -ENOMEM. */
static int settle_part(struct run *r, const uint8_t *parts, unsigned int part,
		       struct numbered *keyed, const struct chain *like)
{
	struct chain c = *like;
	size_t i, n = 0;

	for (i = 0; i < r->attempts.n; i++) {
		if (parts[i] == part)
			keyed[n++] = (struct numbered){key_of(r->attempts.v[i]), {i}};
	}
	if (sort_numbered(keyed, n))
		return -ENOMEM;
	for (i = 0; i < n; i += c.n) {
		for (c.n = 1; i + c.n < n && keyed[i + c.n].number == keyed[i].number; c.n++)
			;
		c.v = keyed + i;
		settle_chain(&c);
		r->again += r->plain ? 0 : asked_again(&c);
	}
	return 0;
}

/* 0 or -ENOMEM. */
static int settle_all(struct run *r, const uint32_t *wave, const struct left *left)
{
	const struct chain like = {r->attempts.v, wave, left, NULL, 0};
	uint8_t *parts = calloc(r->attempts.n + 1, sizeof(*parts));
	size_t count[KEY_PARTS] = {0}, most = 0, i;
	struct numbered *keyed;
	unsigned int part;
	int rc = 0;

	for (i = 0; parts && i < r->attempts.n; i++) {
		parts[i] = key_of(r->attempts.v[i]) % KEY_PARTS;
		most = ++count[parts[i]] > most ? count[parts[i]] : most;
	}
	keyed = calloc(most + 1, sizeof(*keyed));
	if (!parts || !keyed)
		rc = -ENOMEM;
	for (part = 0; part < KEY_PARTS && !rc; part++)
		rc = settle_part(r, parts, part, keyed, &like);
	free(keyed);
	free(parts);
	return rc;
}

static int by_time(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* When workers ended, or sent their last message. 0 or -ENOMEM. */
static int left_of(const struct model *m, struct left *left)
{
	const struct worker *w;
	double *at;
	size_t i;

	for (i = 0; i < m->workers.n; i++) {
		w = m->workers.v[i];
		if (!w->goodbye && !w->silent)
			continue;
		at = ARRAY_NEW(left);
		if (!at)
			return -ENOMEM;
		*at = w->goodbye ? worker_utc(w, w->goodbye_boot_ns) : w->last;
	}
	if (left->n)
		qsort(left->v, left->n, sizeof(*left->v), by_time);
	return 0;
}

int run_count_attempts(struct run *r)
{
	struct left left = {0};
	uint32_t *wave = waves_of(r), chunk = 0;
	struct attempt *a;
	size_t i;
	int rc = wave ? left_of(r->model, &left) : -ENOMEM;

	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		a->chunk_id = attempt_is_chunk(a) ? ++chunk : 0;
	}
	rc = rc ? rc : settle_all(r, wave, &left);
	free(left.v);
	free(wave);
	return rc;
}

static bool has_span_named(const struct run *r, const char *span)
{
	size_t i;

	for (i = 0; i < run_span_count(r); i++) {
		if (run_span(r, i) && !strcmp(span_part_owner(r->model, run_span(r, i)), span))
			return true;
	}
	return false;
}

/* A span that the user opened may contain parts of later runs. */
static struct run *find_span(const struct runs *runs, const char *span)
{
	const struct span_part *part;
	struct run *found = NULL, *r;

	for (r = runs->v; r < runs->v + runs->n; r++) {
		if (!has_span_named(r, span))
			continue;
		found = found ? found : r;
		part = span_part_find(r->model, r->spans[0]);
		if (part && part->users)
			return r;
	}
	return found;
}

bool runs_means_last(const char *which)
{
	return !which || !*which || !strcmp(which, "last");
}

static struct run *find_last(const struct runs *runs)
{
	struct run *last = &runs->v[runs->n - 1], *r;

	for (r = last; last->kind == RUN_OTHER && r-- > runs->v;) {
		if (r->kind != RUN_OTHER &&
		    (r->running || run_until(r) + RUNS_NEAR_SECONDS > time_or_0(last->start)))
			return r;
	}
	return last;
}

static void tell_other(struct run *r, const struct run *other)
{
	if (r->others.n < sizeof(r->others.ids) / sizeof(*r->others.ids))
		memcpy(r->others.ids[r->others.n], other->id, sizeof(other->id));
	r->others.n++;
}

void runs_tell_others(const struct runs *runs, struct run *r)
{
	double since = time_or_0(r->start);
	const struct run *o;

	r->others.n = 0;
	for (o = runs->v + runs->n; o-- > runs->v;) {
		if (o == r)
			continue;
		if (o > r || o->running || run_until(o) > time_or_0(r->start)) {
			tell_other(r, o);
		} else if (r->kind == RUN_OTHER && o->kind == RUN_OTHER &&
			   run_until(o) + RUNS_GAP_SECONDS > since) {
			tell_other(r, o);
			since = time_or_0(o->start);
		}
	}
}

static bool has_part(const struct run *r, const char *part)
{
	return strstr(r->id, part) || (r->name && strstr(r->name, part));
}

void runs_fit(const struct runs *runs, const char *which, struct run_fits *fits)
{
	size_t i;

	_Static_assert(sizeof(fits->ids[0]) == RUN_ID_BYTES, "model.h does not know of runs");
	if (fits->which)
		return;
	memset(fits, 0, sizeof(*fits));
	fits->which = which ? which : "last";
	for (i = runs->n; i-- > 0;) {
		if (runs_means_last(which) || !has_part(&runs->v[i], which))
			continue;
		if (fits->n < RUN_FITS)
			memcpy(fits->ids[fits->n], runs->v[i].id, RUN_ID_BYTES);
		fits->n++;
	}
}

/* The only run with this name; NULL: none, or several. */
static struct run *find_named(const struct runs *runs, const char *name)
{
	struct run *found = NULL;
	size_t i;

	for (i = 0; i < runs->n; i++) {
		if (!runs->v[i].name || strcmp(runs->v[i].name, name) != 0)
			continue;
		if (found)
			return NULL;
		found = &runs->v[i];
	}
	return found;
}

struct run *runs_find(const struct runs *runs, const char *which)
{
	struct run *found;
	size_t i;

	if (!runs->n)
		return NULL;
	if (runs_means_last(which))
		return find_last(runs);
	for (i = 0; i < runs->n; i++) {
		if (!strcmp(runs->v[i].id, which))
			return &runs->v[i];
	}
	found = find_span(runs, which);
	if (!found)
		found = find_named(runs, which);
	if (found)
		return found;
	for (i = 0; i < runs->n; i++) {
		if (!has_part(&runs->v[i], which))
			continue;
		if (found)
			return NULL;
		found = &runs->v[i];
	}
	return found;
}
