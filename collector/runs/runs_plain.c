/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_plain.c - groups the attempts of processes without Dask. */
#include "collector/runs/runs_plain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The current run of one processor. */
struct current {
	const char *span; /* of its first chunk */
	size_t length;	  /* of the part before the "." */
	size_t run;	  /* index: the array of runs moves */
	double begin, end;
	struct table ended; /* successful attempts, by key */
};

/* Fetches of one file's metadata that no chunk has followed yet. */
struct fetches {
	const struct attempt *of; /* the first one: dataset and file */
	struct attempts attempts;
};

struct grouping {
	struct model *model;
	struct runs *runs;
	struct arena arena;
	ARRAY(struct current) current;
	struct table fetches;
	ARRAY(struct fetches *) all_fetches;
};

bool attempt_is_plain(const struct attempt *a)
{
	return a->span && !strncmp(a->span, SPAN_PLAIN, sizeof(SPAN_PLAIN) - 1);
}

static struct current *current_of(struct grouping *g, const char *span)
{
	size_t length = strcspn(span, "."), i;

	for (i = 0; i < g->current.n; i++) {
		if (g->current.v[i].length == length &&
		    !strncmp(g->current.v[i].span, span, length))
			return &g->current.v[i];
	}
	return NULL;
}

static bool same_file(const void *item, const void *key)
{
	const struct fetches *f = item;
	const struct attempt *a = key;

	return f->of->dataset == a->dataset && f->of->filename == a->filename;
}

static struct fetches *fetches_of(struct grouping *g, const struct attempt *a)
{
	return table_find(&g->fetches, hash_pair((uintptr_t)a->dataset, (uintptr_t)a->filename),
			  same_file, a);
}

static int take_fetch(struct grouping *g, struct attempt *a)
{
	struct fetches *f = fetches_of(g, a), **all;
	struct attempt **at;

	if (!f) {
		f = arena_get(&g->arena, sizeof(*f));
		all = f ? ARRAY_NEW(&g->all_fetches) : NULL;
		if (!all || table_add(&g->fetches,
				      hash_pair((uintptr_t)a->dataset, (uintptr_t)a->filename), f))
			return -ENOMEM;
		*all = f;
		f->of = a;
	}
	at = ARRAY_NEW(&f->attempts);
	if (!at)
		return -ENOMEM;
	*at = a;
	return 0;
}

static bool same_key(const void *item, const void *key)
{
	const struct attempt *a = item, *b = key;

	return a->key_hash == b->key_hash;
}

static bool begins_anew(struct grouping *g, const struct current *c, const struct attempt *a)
{
	const struct attempt *before = table_find(&c->ended, a->key_hash, same_key, a);
	const struct fetches *f = fetches_of(g, a);
	const struct attempt *fetch = f && f->attempts.n ? f->attempts.v[f->attempts.n - 1] : NULL;
	double begin = time_or_0(attempt_begin(a));

	if (before && time_or_0(attempt_end(before)) <= begin && c->end <= begin)
		return true;
	if (fetch && time_or_0(attempt_begin(fetch)) > c->begin)
		return true;
	return begin > c->end + PLAIN_IDLE_SECONDS;
}

static struct run *run_add(struct grouping *g, enum run_kind kind, const char *span)
{
	struct run *r = ARRAY_NEW(g->runs);

	if (!r)
		return NULL;
	r->model = g->model;
	r->kind = kind;
	r->plain = true;
	r->spans[0] = r->first_span = span;
	return r;
}

static int push(struct run *r, struct attempt *a)
{
	struct attempt **at = ARRAY_NEW(&r->attempts);
	struct run_place *p;
	size_t i;

	if (!at)
		return -ENOMEM;
	*at = a;
	for (i = 0; i < r->places.n; i++) {
		if (r->places.v[i].worker == a->worker && r->places.v[i].span == a->span)
			return 0;
	}
	p = ARRAY_NEW(&r->places);
	if (!p)
		return -ENOMEM;
	*p = (struct run_place){a->worker, a->span};
	return 0;
}

static int take_chunk(struct grouping *g, struct attempt *a)
{
	struct current *c = current_of(g, a->span);
	struct fetches *f = fetches_of(g, a);
	struct run *r;
	size_t i;

	if (!c || begins_anew(g, c, a)) {
		if (!c)
			c = ARRAY_NEW(&g->current);
		if (!c || !run_add(g, RUN_COFFEA, a->span))
			return -ENOMEM;
		table_release(&c->ended);
		*c = (struct current){.span = a->span,
				      .length = strcspn(a->span, "."),
				      .run = g->runs->n - 1,
				      .begin = time_or_0(attempt_begin(a))};
	}
	c->end = fmax(c->end, time_or_0(attempt_end(a)));
	r = &g->runs->v[c->run];
	for (i = 0; f && i < f->attempts.n; i++) {
		if (push(r, f->attempts.v[i]))
			return -ENOMEM;
	}
	if (f)
		f->attempts.n = 0;
	if (a->state == ATTEMPT_OK && table_add(&c->ended, a->key_hash, a))
		return -ENOMEM;
	return push(r, a);
}

static int by_begin(const void *pa, const void *pb)
{
	double x = time_or_0(attempt_begin(*(struct attempt *const *)pa));
	double y = time_or_0(attempt_begin(*(struct attempt *const *)pb));

	return x < y ? -1 : x > y;
}

/* Takes metadata without a chunk. */
static int take_rest(struct grouping *g)
{
	struct attempts rest = {0};
	struct attempt **at;
	struct run *r = NULL;
	double end = 0;
	size_t i, k;
	int rc = 0;

	for (i = 0; i < g->all_fetches.n && !rc; i++) {
		for (k = 0; k < g->all_fetches.v[i]->attempts.n && !rc; k++) {
			at = ARRAY_NEW(&rest);
			rc = at ? 0 : -ENOMEM;
			if (at)
				*at = g->all_fetches.v[i]->attempts.v[k];
		}
	}
	if (rest.n)
		qsort(rest.v, rest.n, sizeof(*rest.v), by_begin);
	for (i = 0; i < rest.n && !rc; i++) {
		if (!r || time_or_0(attempt_begin(rest.v[i])) > end + RUNS_GAP_SECONDS)
			r = run_add(g, RUN_PREPROCESSING, rest.v[i]->span);
		rc = r ? push(r, rest.v[i]) : -ENOMEM;
		end = fmax(end, time_or_0(attempt_end(rest.v[i])));
	}
	free(rest.v);
	return rc;
}

int runs_group_plain(struct runs *runs, struct model *m)
{
	struct grouping g = {.model = m, .runs = runs};
	struct attempt *a;
	size_t i;
	int rc = 0;

	for (i = 0; i < m->attempts.n && !rc; i++) {
		a = m->attempts.v[i];
		if (!attempt_is_plain(a))
			continue;
		rc = a->flags & CREMA_TASK_PREPROCESSING ? take_fetch(&g, a) : take_chunk(&g, a);
	}
	if (!rc)
		rc = take_rest(&g);
	for (i = 0; i < g.current.n; i++)
		table_release(&g.current.v[i].ended);
	for (i = 0; i < g.all_fetches.n; i++)
		free(g.all_fetches.v[i]->attempts.v);
	free(g.current.v);
	free(g.all_fetches.v);
	table_release(&g.fetches);
	arena_release(&g.arena);
	return rc;
}
