/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_consume.c - see runs_consume.h. */
#include "collector/runs/runs_consume.h"

#include <errno.h>
#include <stdlib.h>

#include "collector/model/selection.h"

/* Clocks of two hosts differ by less. Graphs are also ordered by number. */
#define CLOCK_SECONDS 0.5

/* A key, and a span that has a task with it. */
struct producer {
	uint64_t key;
	struct task_span *span;
};

struct producers {
	struct producer *v;
	size_t n, cap;
};

char span_kind(const struct task_span *s)
{
	return s->part->kind;
}

/* Tasks of other libraries than coffea. */
static bool is_plain_dask(const struct task_span *s)
{
	return !span_kind(s) || span_kind(s) == 'u';
}

struct task_span *span_leader(struct task_span *s)
{
	while (s->leader != s)
		s = s->leader = s->leader->leader;
	return s;
}

bool spans_share_scheduler(const struct task_span *a, const struct task_span *b)
{
	return workers_share_scheduler(a->worker, b->worker);
}

/* The span that began first becomes the leader. */
static void unite(const struct model *m, struct task_span *a, struct task_span *b)
{
	struct task_span *next;

	a = span_leader(a);
	b = span_leader(b);
	if (a == b || !selection_joins(m, a->id, b->id))
		return;
	next = a->next;
	a->next = b->next;
	b->next = next;
	a->users = b->users = a->users || b->users;
	if (a < b)
		b->leader = a;
	else
		a->leader = b;
}

static int by_key(const void *pa, const void *pb)
{
	const struct producer *a = pa, *b = pb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->span < b->span ? -1 : a->span > b->span;
}

static int collect_producers(const struct task_spans *spans, struct producers *all, bool whole)
{
	struct producer *p;
	struct task_span *s;
	size_t k;

	for (s = spans->v; s < spans->v + spans->n; s++) {
		if ((!span_kind(s) && !s->part->users) != whole)
			continue;
		for (k = 0; k < s->part->keys.n; k++) {
			p = ARRAY_NEW(all);
			if (!p)
				return -ENOMEM;
			*p = (struct producer){s->part->keys.v[k], s};
		}
	}
	if (all->n)
		qsort(all->v, all->n, sizeof(*all->v), by_key);
	return 0;
}

static bool may_feed(const struct task_span *p, const struct task_span *consumer)
{
	if (p == consumer || !spans_share_scheduler(p, consumer) ||
	    p->begin > consumer->begin + (span_kind(consumer) ? CLOCK_SECONDS : 0))
		return false;
	if (span_kind(consumer) == 'u')
		return p->part->graph == consumer->part->graph ||
		       p->part->graph_before == consumer->part->graph;
	return !span_kind(consumer) || p->part->generation <= consumer->part->generation;
}

/* The end of the producers of a key. */
static size_t producers_end(const struct producers *all, uint64_t key)
{
	size_t from = 0, to = all->n, i;

	while (from < to) {
		i = from + (to - from) / 2;
		if (all->v[i].key <= key)
			from = i + 1;
		else
			to = i;
	}
	return from;
}

/* Spans, and so the producers of a key, are sorted by begin: returns the last one that fits. */
static struct task_span *producer_of(const struct producers *all, uint64_t key,
				     const struct task_span *consumer)
{
	size_t i;

	for (i = producers_end(all, key); i > 0 && all->v[i - 1].key == key; i--) {
		if (may_feed(all->v[i - 1].span, consumer))
			return all->v[i - 1].span;
	}
	return NULL;
}

/* All levels of a reduction are in one part: what it made itself does not come from another part,
 * even if an earlier call had the same keys. */
static bool made_it_itself(const struct task_span *consumer, uint64_t key)
{
	return (is_plain_dask(consumer) || consumer->part->users) &&
	       smallest_has(&consumer->part->keys, key);
}

static void note_from(struct task_span *consumer, struct task_span *p)
{
	size_t i;

	if (span_kind(p) == 's') /* the processor is the same, whoever sent it */
		return;
	for (i = 0; i < SPAN_FROM && consumer->from[i] && consumer->from[i] != p; i++)
		;
	if (i < SPAN_FROM)
		consumer->from[i] = p;
}

/* The whole span that the user opened and Dask put these merges into; NULL: it has no other tasks,
 * or the consumer is something else. */
static struct task_span *opened_span(const struct task_spans *spans,
				     const struct task_span *consumer)
{
	struct task_span *s;

	if (span_kind(consumer) != 'm' || !consumer->part->users)
		return NULL;
	for (s = spans->v; s < spans->v + spans->n; s++) {
		if (s->part->users && !span_kind(s) && !s->part->block &&
		    s->part->span == consumer->part->span)
			return s;
	}
	return NULL;
}

/* Merges in a span that the user opened are another one's if all that they take was made there, and
 * none of it here. They never join two spans. */
static void take(const struct model *m, const struct task_spans *spans, const struct producers *all,
		 struct task_span *consumer)
{
	struct task_span *own = opened_span(spans, consumer), *p, *only = NULL;
	bool merges = span_kind(consumer) == 'm', users = consumer->part->users, several = false;
	uint64_t key;
	size_t i;

	for (i = 0; i < consumer->part->consumed.n; i++) {
		key = consumer->part->consumed.v[i];
		p = made_it_itself(consumer, key)		 ? NULL
		    : own && smallest_has(&own->part->keys, key) ? own
								 : producer_of(all, key, consumer);
		if (!p)
			continue;
		note_from(consumer, p);
		if (merges && !users) {
			unite(m, p, consumer);
		} else if (consumer->chunks) {
			if (!p->taken && span_kind(p) == 's' &&
			    selection_joins(m, p->id, consumer->id))
				consumer->scatter = p;
			p->taken = true;
		} else {
			several |= only && span_leader(only) != span_leader(p);
			only = p;
		}
	}
	only = several ? NULL : only;
	if (merges && users)
		only = only ? only : own;
	else if (only && (span_leader(only)->users || consumer->users))
		only = NULL;
	if (only)
		unite(m, only, consumer);
}

/* If some keys were not stored, it may have made itself what it takes. */
static bool made_by_others(const struct task_span *s, uint64_t key)
{
	const struct smallest *keys = &s->part->keys;

	return !smallest_has(keys, key) && (keys->n < SMALLEST_MAX || key < keys->v[keys->n - 1]);
}

static void take_later(const struct producers *whole, struct task_span *s)
{
	const struct smallest *consumed = &s->part->consumed;
	struct task_span *p;
	size_t i, k;

	for (i = 0; i < consumed->n; i++) {
		if (!made_by_others(s, consumed->v[i]))
			continue;
		for (k = producers_end(whole, consumed->v[i]);
		     k > 0 && whole->v[k - 1].key == consumed->v[i]; k--) {
			p = whole->v[k - 1].span;
			if (p->begin <= s->begin || !spans_share_scheduler(p, s))
				continue;
			note_from(s, p);
			s->later = true;
			p->lent_to = s;
		}
	}
}

/* Only for whole spans that the user did not open. */
static int take_all_later(const struct task_spans *spans)
{
	struct producers whole = {0};
	struct task_span *s;
	int rc = collect_producers(spans, &whole, true);

	for (s = spans->v; s < spans->v + spans->n && !rc; s++) {
		if (!span_kind(s) && !s->part->users)
			take_later(&whole, s);
	}
	free(whole.v);
	return rc;
}

/* Joins what one crema.measure() submitted, wherever Dask put it. */
static void join_block(const struct model *m, struct task_spans *spans, struct task_span *s)
{
	struct task_span *p;

	for (p = spans->v; s->part->block && p < spans->v + spans->n; p++) {
		if (p->id == s->part->block || p->part->block == s->part->block)
			unite(m, p, s);
	}
}

int spans_join(const struct model *m, struct task_spans *spans)
{
	struct producers all = {0};
	struct task_span *s;
	int rc = collect_producers(spans, &all, false);

	for (s = spans->v; s < spans->v + spans->n && !rc; s++)
		join_block(m, spans, s);
	for (s = spans->v; s < spans->v + spans->n && !rc; s++) {
		if (!is_plain_dask(s)) /* merges first: they determine what one run is */
			take(m, spans, &all, s);
	}
	for (s = spans->v; s < spans->v + spans->n && !rc; s++) {
		if (is_plain_dask(s))
			take(m, spans, &all, s);
	}
	free(all.v);
	return rc ? rc : take_all_later(spans);
}
