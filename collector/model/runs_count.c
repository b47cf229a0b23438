/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_count.c - what belongs to a run, which attempt of a key counts, why the others do not;
 * finding a run by name. */
#include "collector/model/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static bool worker_alive(const struct worker *w, double start, double stop)
{
	double last = w->goodbye ? worker_utc(w, w->goodbye_boot_ns) : w->last;

	if (isnan(w->first) || w->first > stop)
		return false;
	return (!w->goodbye && !w->silent) || last >= start;
}

/* Without Dask a process that did nothing for the run is none of its workers. */
bool run_has_worker(const struct run *r, const struct worker *w)
{
	size_t i;

	for (i = 0; r->plain && i < r->places.n; i++) {
		if (r->places.v[i].worker == w)
			return true;
	}
	return !r->plain && worker_alive(w, r->start, r->stop);
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

static uint64_t key_of(const struct attempt *a)
{
	if ((a->known >> TASK_F_key_hash) & 1)
		return a->key_hash;
	if (a->key)
		return hash_bytes(3, a->key, strlen(a->key));
	return hash_pair(hash_bytes(3, a->worker->id, sizeof(a->worker->id)), a->attempt);
}

/* The ok attempt of a chain that ended last; NULL if none did. */
static struct attempt *last_ok(struct attempt *first)
{
	struct attempt *a, *best = NULL;

	for (a = first; a; a = a->next) {
		if (a->state == ATTEMPT_OK && (!best || a->end >= best->end))
			best = a;
	}
	return best;
}

static const char *reason_of(const struct attempt *a, const struct attempt *counted)
{
	switch (a->state) {
	case ATTEMPT_KILLED:
		return "killed";
	case ATTEMPT_LOST:
		return "lost";
	case ATTEMPT_ERRED:
		return a->next || (counted && counted->end > a->end) ? "retried" : "erred";
	case ATTEMPT_OK:
		return counted->worker != a->worker && counted->begin < a->end ? "stolen"
									       : "recomputed";
	default:
		return NULL;
	}
}

static void settle_chain(struct attempt *first)
{
	struct attempt *a, *counted = last_ok(first);

	for (a = first; a; a = a->next) {
		a->counted = a == counted;
		a->waste_reason = a->counted ? NULL : reason_of(a, counted);
	}
}

/* An attempt of the run, by its place there: they are sorted by their begin. */
struct keyed {
	uint64_t key, place;
};

static int by_key(const void *pa, const void *pb)
{
	const struct keyed *a = pa, *b = pb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

int run_count_attempts(struct run *r)
{
	struct keyed *keyed = calloc(r->attempts.n ? r->attempts.n : 1, sizeof(*keyed));
	struct attempt *a;
	uint32_t chunk = 0;
	size_t i, first = 0;

	if (!keyed)
		return -ENOMEM;
	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		a->chunk_id = attempt_is_chunk(a) ? ++chunk : 0;
		keyed[i] = (struct keyed){key_of(a), i};
	}
	qsort(keyed, r->attempts.n, sizeof(*keyed), by_key);
	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[keyed[i].place];
		if (i + 1 < r->attempts.n && keyed[i + 1].key == keyed[i].key) {
			a->next = r->attempts.v[keyed[i + 1].place];
			continue;
		}
		a->next = NULL;
		settle_chain(r->attempts.v[keyed[first].place]);
		first = i + 1;
	}
	free(keyed);
	return 0;
}

static bool has_span_named(const struct run *r, const char *span)
{
	size_t i;

	for (i = 0; i < sizeof(r->spans) / sizeof(*r->spans); i++) {
		if (r->spans[i] && !strcmp(r->spans[i], span))
			return true;
	}
	return false;
}

struct run *runs_find(const struct runs *runs, const char *which)
{
	struct run *found = NULL;
	size_t i, n, len;

	if (!runs->n)
		return NULL;
	if (!which || !*which || !strcmp(which, "last"))
		return &runs->v[runs->n - 1];
	n = strlen(which);
	for (i = 0; i < runs->n; i++) {
		len = strlen(runs->v[i].id);
		if (!strcmp(runs->v[i].id, which) || has_span_named(&runs->v[i], which))
			return &runs->v[i];
		if (n > len || (strncmp(runs->v[i].id, which, n) != 0 &&
				strcmp(runs->v[i].id + len - n, which) != 0))
			continue;
		if (found)
			return NULL;
		found = &runs->v[i];
	}
	return found;
}
