/* SPDX-License-Identifier: BSD-3-Clause */
/* runs.c - groups attempts into runs by their spans. */
#include "collector/model/dropped.h"
#include "collector/model/runs_plain.h"
#include "collector/model/selection.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct span {
	const char *id;
	struct attempts attempts;
	bool chunks, preprocessing, claimed;
	bool scatter; /* lambda tasks only */
	double begin;
};

struct spans {
	struct span *v;
	size_t n, cap;
};

bool attempt_is_chunk(const struct attempt *a)
{
	return (a->flags & CREMA_TASK_CHUNK) && !(a->flags & CREMA_TASK_MERGE);
}

bool run_has_span(const struct run *r, const char *span)
{
	return span && (span == r->spans[0] || span == r->spans[1] || span == r->spans[2]);
}

static int by_start(const void *pa, const void *pb)
{
	const struct run *a = pa, *b = pb;
	double x = time_or_0(a->start), y = time_or_0(b->start);

	if (x != y)
		return x < y ? -1 : 1;
	return strcmp(a->id, b->id);
}

static bool same_span(const void *item, const void *key)
{
	return ((const struct span *)item)->id == key;
}

static int push(struct attempts *list, struct attempt *a)
{
	struct attempt **at = ARRAY_NEW(list);

	if (!at)
		return -ENOMEM;
	*at = a;
	return 0;
}

static int span_take(struct span *s, struct attempt *a)
{
	if (!s->attempts.n) {
		s->begin = time_or_0(a->begin);
		s->scatter = true;
	}
	if (!a->prefix || strcmp(a->prefix, "lambda"))
		s->scatter = false;
	if (attempt_is_chunk(a))
		s->chunks = true;
	if (a->flags & CREMA_TASK_PREPROCESSING)
		s->preprocessing = true;
	return push(&s->attempts, a);
}

/* attempts sorted by begin; so are the spans that come out. */
static int collect_spans(struct model *m, struct spans *spans)
{
	struct table index = {0};
	struct span *s;
	struct attempt *a;
	size_t i, max = 0;
	int rc = runs_count_spans(m, &max);

	spans->v = calloc(max ? max : 1, sizeof(*spans->v)); /* fixed: the index points into it */
	if (!spans->v)
		return -ENOMEM;
	for (i = 0; i < m->attempts.n && !rc; i++) {
		a = m->attempts.v[i];
		if (!a->span || attempt_is_plain(a))
			continue;
		s = table_find(&index, hash_pair((uintptr_t)a->span, 1), same_span, a->span);
		if (!s) {
			s = &spans->v[spans->n++];
			s->id = a->span;
			rc = table_add(&index, hash_pair((uintptr_t)a->span, 1), s);
		}
		if (!rc)
			rc = span_take(s, a);
	}
	table_release(&index);
	return rc;
}

static bool same_dataset_file(const void *item, const void *key)
{
	const struct attempt *a = item, *b = key;

	return a->dataset == b->dataset && a->filename == b->filename;
}

static uint64_t hash_dataset_file(const struct attempt *a)
{
	return hash_pair((uintptr_t)a->dataset, (uintptr_t)a->filename);
}

/* Does the preprocessing `p` name every (dataset, file) of the chunks of `s`? */
static int covers(const struct span *p, const struct span *s)
{
	struct table set = {0};
	struct attempt *a;
	size_t i;
	int rc = 1;

	for (i = 0; i < p->attempts.n; i++) {
		a = p->attempts.v[i];
		if (!(a->flags & CREMA_TASK_PREPROCESSING) ||
		    table_find(&set, hash_dataset_file(a), same_dataset_file, a))
			continue;
		if (table_add(&set, hash_dataset_file(a), a)) {
			table_release(&set);
			return -ENOMEM;
		}
	}
	for (i = 0; i < s->attempts.n && rc; i++) {
		a = s->attempts.v[i];
		if (attempt_is_chunk(a) &&
		    !table_find(&set, hash_dataset_file(a), same_dataset_file, a))
			rc = 0;
	}
	table_release(&set);
	return rc;
}

/* The first list is moved, not copied. */
static int run_take(struct run *r, struct span *s)
{
	size_t i;
	int rc = 0;

	if (!r->attempts.n) {
		free(r->attempts.v);
		r->attempts = s->attempts;
		s->attempts = (struct attempts){0};
		return 0;
	}
	for (i = 0; i < s->attempts.n && !rc; i++)
		rc = push(&r->attempts, s->attempts.v[i]);
	return rc;
}

static struct run *run_new(struct runs *runs, struct model *m, enum run_kind kind)
{
	struct run *r = ARRAY_NEW(runs);

	if (!r)
		return NULL;
	r->model = m;
	r->kind = kind;
	return r;
}

/*
 * DaskExecutor first sends the processor to the workers, as a task that is a lambda. If it ends
 * before the chunks are submitted, Dask gives it a span of its own: it belongs to what follows.
 */
static int claim_scatter(struct run *r, struct spans *spans, size_t i)
{
	struct span *p;
	size_t j;

	for (j = i; j > 0 && i - j < 4; j--) { /* another user's span may lie between */
		p = &spans->v[j - 1];
		if (p->claimed || !p->scatter || spans->v[i].begin - p->begin > SCATTER_SECONDS ||
		    !selection_joins(r->model, p->id, spans->v[i].id))
			continue;
		p->claimed = true;
		r->spans[2] = p->id;
		if (!r->spans[1])
			r->first_span = p->id;
		return run_take(r, p);
	}
	return 0;
}

/* Runs of coffea: each processing span with its preprocessing. */
static int group_processing(struct runs *runs, struct model *m, struct spans *spans, size_t i)
{
	struct span *s = &spans->v[i];
	struct run *r = run_new(runs, m, RUN_COFFEA);
	size_t j;
	int rc = 0;

	if (!r)
		return -ENOMEM;
	r->spans[0] = r->first_span = s->id;
	s->claimed = true;
	for (j = i; j > 0 && !s->preprocessing; j--) {
		struct span *p = &spans->v[j - 1];

		if (p->claimed || p->chunks || !p->preprocessing ||
		    !selection_joins(m, p->id, s->id))
			continue;
		rc = covers(p, s);
		if (rc < 0)
			return rc;
		if (!rc)
			continue;
		p->claimed = true;
		r->spans[1] = r->first_span = p->id;
		rc = run_take(r, p);
		if (rc)
			return rc;
		break;
	}
	return rc < 0 ? rc : claim_scatter(r, spans, i) ? -ENOMEM : run_take(r, s);
}

static int group_spans(struct runs *runs, struct model *m, struct spans *spans)
{
	struct run *r;
	size_t i;
	int rc = 0;

	for (i = 0; i < spans->n && !rc; i++) {
		if (spans->v[i].chunks)
			rc = group_processing(runs, m, spans, i);
	}
	for (i = 0; i < spans->n && !rc; i++) {
		if (spans->v[i].claimed)
			continue;
		r = run_new(runs, m, spans->v[i].preprocessing ? RUN_PREPROCESSING : RUN_OTHER);
		if (!r)
			return -ENOMEM;
		r->spans[0] = r->first_span = spans->v[i].id;
		rc = run_take(r, &spans->v[i]);
	}
	return rc;
}

/* Tasks without a span, in order of time. */
static int group_gaps(struct runs *runs, struct model *m)
{
	struct run *r = NULL;
	struct attempt *a;
	double end = 0, chunk_end = 0;
	size_t i;

	for (i = 0; i < m->attempts.n; i++) {
		a = m->attempts.v[i];
		if (a->span)
			continue;
		if (!r || time_or_0(a->begin) > end + RUNS_GAP_SECONDS ||
		    ((a->flags & CREMA_TASK_PREPROCESSING) && r->kind == RUN_COFFEA &&
		     time_or_0(a->begin) > chunk_end)) {
			r = run_new(runs, m, RUN_OTHER);
			if (!r)
				return -ENOMEM;
			end = chunk_end = 0;
		}
		if (attempt_is_chunk(a)) {
			r->kind = RUN_COFFEA;
			chunk_end = fmax(chunk_end, time_or_0(a->end));
		} else if ((a->flags & CREMA_TASK_PREPROCESSING) && r->kind == RUN_OTHER) {
			r->kind = RUN_PREPROCESSING;
		}
		end = fmax(end, time_or_0(a->end));
		if (push(&r->attempts, a))
			return -ENOMEM;
	}
	return 0;
}

int runs_build(struct runs *runs, struct model *m)
{
	struct spans spans = {0};
	size_t i;
	int rc;

	memset(runs, 0, sizeof(*runs));
	rc = dropped_filter(m);
	if (rc)
		return rc;
	if (m->attempts.n)
		qsort(m->attempts.v, m->attempts.n, sizeof(*m->attempts.v), attempts_by_begin);
	rc = collect_spans(m, &spans);
	if (!rc)
		rc = group_spans(runs, m, &spans);
	if (!rc)
		rc = group_gaps(runs, m);
	if (!rc)
		rc = runs_group_plain(runs, m);
	for (i = 0; i < spans.n; i++)
		free(spans.v[i].attempts.v);
	free(spans.v);
	table_release(&m->attempt_table); /* nothing more is fed */
	arena_release(&m->page_arena);
	model_process_lives(m);
	for (i = 0; i < runs->n && !rc; i++)
		rc = run_settle(&runs->v[i]);
	if (!rc && runs->n)
		qsort(runs->v, runs->n, sizeof(*runs->v), by_start);
	return rc;
}

void runs_release(struct runs *runs)
{
	size_t i;

	for (i = 0; i < runs->n; i++) {
		free(runs->v[i].attempts.v);
		free(runs->v[i].workers.v);
		free(runs->v[i].places.v);
	}
	free(runs->v);
	memset(runs, 0, sizeof(*runs));
}

const char *run_kind_name(const struct run *r)
{
	static const char *const names[] = {"coffea", "preprocessing", "other"};

	return names[r->kind];
}
