/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_count.c - what belongs to a run, which attempt of a key counts, why the others do not;
 * finding a run by name. */
#include "collector/model/runs.h"

#include <errno.h>
#include <math.h>
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
	if ((a->known >> TASK_F_events) & 1)
		return value_int(a->events);
	if (a->state == ATTEMPT_OK && attempt_is_chunk(a) &&
	    ((a->known >> TASK_F_entrystart) & 1) && ((a->known >> TASK_F_entrystop) & 1) &&
	    a->entrystop >= a->entrystart)
		return value_int((int64_t)((uint64_t)a->entrystop - (uint64_t)a->entrystart));
	return value_null();
}

const char *attempt_state_name(const struct attempt *a)
{
	static const char *const names[] = {
		[ATTEMPT_RUNNING] = "running", [ATTEMPT_OK] = "ok",	[ATTEMPT_ERRED] = "erred",
		[ATTEMPT_KILLED] = "killed",   [ATTEMPT_LOST] = "lost",
	};

	return names[a->state];
}

/* All attempts of one key in one run: a chain through attempt.next, oldest first. */
struct key_chain {
	uint64_t key;
	struct attempt *first, *last;
};

static uint64_t key_of(const struct attempt *a)
{
	if ((a->known >> TASK_F_key_hash) & 1)
		return a->key_hash;
	if (a->key)
		return hash_bytes(3, a->key, strlen(a->key));
	return hash_pair(hash_bytes(3, a->worker->id, sizeof(a->worker->id)), a->attempt);
}

static bool same_key(const void *item, const void *key)
{
	return ((const struct key_chain *)item)->key == *(const uint64_t *)key;
}

/* The ok attempt that ended last; NULL if none did. */
static struct attempt *last_ok(const struct key_chain *c)
{
	struct attempt *a, *best = NULL;

	for (a = c->first; a; a = a->next) {
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

static void settle_chain(struct key_chain *c)
{
	struct attempt *a, *counted = last_ok(c);

	for (a = c->first; a; a = a->next) {
		a->counted = a == counted;
		a->waste_reason = a->counted ? NULL : reason_of(a, counted);
	}
}

int run_count_attempts(struct run *r)
{
	struct arena arena = {0};
	struct table table = {0};
	struct key_chain *c;
	struct attempt *a;
	uint32_t chunk = 0;
	uint64_t key;
	size_t i;
	int rc = -ENOMEM;

	for (i = 0; i < r->attempts.n; i++) {
		a = r->attempts.v[i];
		a->next = NULL;
		a->chunk_id = attempt_is_chunk(a) ? ++chunk : 0;
		key = key_of(a);
		c = table_find(&table, key, same_key, &key);
		if (!c) {
			c = arena_get(&arena, sizeof(*c));
			if (!c || table_add(&table, key, c))
				goto out;
			c->key = key;
			c->first = c->last = a;
			continue;
		}
		c->last->next = a;
		c->last = a;
	}
	for (i = 0; i < r->attempts.n; i++) {
		key = key_of(r->attempts.v[i]);
		c = table_find(&table, key, same_key, &key);
		if (c && c->first == r->attempts.v[i])
			settle_chain(c);
	}
	rc = 0;
out:
	table_release(&table);
	arena_release(&arena);
	return rc;
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
