/* SPDX-License-Identifier: BSD-3-Clause */
/* sections.c - sums of sections and gauges over the workers of a run. */
#include "collector/report/sections.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum from { WALL, OWN_TIME, POOL_TIME, COUNTED, COUNTED_NS };

static const struct number {
	const char *name;
	enum from from;
	unsigned int id;
} numbers[] = {
	{"wall_seconds", WALL, 0},
#define TIME(id, name, ...) {#name, OWN_TIME, CREMA_T_##id},
#include "counters.def"
	{"pool_cpu_seconds", POOL_TIME, CREMA_T_cpu},
#define FROM_calls COUNTED
#define FROM_bytes COUNTED
#define FROM_ns COUNTED_NS
#define COUNT(id, unit, name, ...) {#name, FROM_##unit, CREMA_C_##id},
#include "counters.def"
};

#define N SECTION_NUMBERS
_Static_assert(sizeof(numbers) / sizeof(*numbers) == N, "a sum holds every number");

const char *section_number_name(size_t i)
{
	return i < N ? numbers[i].name : NULL;
}

static bool is_seconds(size_t i)
{
	return numbers[i].from != COUNTED;
}

static struct value raw(const struct section_row *row, const struct number *n)
{
	switch (n->from) {
	case WALL:
		return row->wall_ns;
	case OWN_TIME:
		return own_ns(&row->c, (enum crema_time_id)n->id);
	case POOL_TIME:
		return pool_ns(&row->c, (enum crema_time_id)n->id);
	default:
		return count_of(&row->c, (enum crema_count_id)n->id);
	}
}

static bool same_sum(const void *item, const void *key)
{
	const struct section_sum *a = item, *b = key;

	return a->path == b->path && a->prefix == b->prefix && a->thread == b->thread &&
	       a->source == b->source;
}

static uint64_t hash_of(const struct section_sum *s)
{
	return hash_pair(hash_pair((uintptr_t)s->path, (uintptr_t)s->prefix),
			 (uintptr_t)s->thread ^ (uintptr_t)s->source);
}

static struct section_sum *sum_of(struct sections *all, const struct section_row *row)
{
	struct section_sum key = {.path = row->key.path,
				  .prefix = row->key.path ? row->key.prefix : NULL,
				  .thread = row->key.thread,
				  .source = row->key.source};
	struct section_sum *s = table_find(&all->table, hash_of(&key), same_sum, &key), **at;

	if (s)
		return s;
	s = arena_get(&all->arena, sizeof(*s));
	at = s ? ARRAY_NEW(&all->v) : NULL;
	if (!at || table_add(&all->table, hash_of(&key), s)) {
		if (at)
			all->v.n--;
		return NULL;
	}
	key.begun = key.count = key.broken = value_uint(0);
	for (size_t i = 0; i < N; i++)
		key.number[i] = key.inner[i] = value_uint(0);
	*s = key;
	*at = s;
	return s;
}

static int section_take(struct sections *all, const struct section_row *row)
{
	struct section_sum *s = sum_of(all, row);

	if (!s)
		return -ENOMEM;
	s->begun = value_plus(s->begun, row->begun);
	s->count = value_plus(s->count, row->count);
	s->broken = value_plus(s->broken, row->broken);
	for (size_t i = 0; i < N; i++)
		s->number[i] = value_plus(s->number[i], raw(row, &numbers[i]));
	return 0;
}

/* Bytes of the outer section's path: all before the last "/" that no "\" stands before. 0: none. */
static size_t outer_bytes(const char *path)
{
	size_t at = 0;

	for (size_t i = 0; path[i]; i++) {
		if (path[i] == '\\' && path[i + 1])
			i++;
		else if (path[i] == '/')
			at = i;
	}
	return at;
}

static int link_outer(struct sections *all, const struct model *m, struct section_sum *s)
{
	size_t n = s->path ? outer_bytes(s->path) : 0;
	struct section_sum key = *s;
	char *text;

	if (!n)
		return 0;
	text = arena_get(&all->arena, n + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, s->path, n);
	key.path = names_find(&m->names, text);
	s->outer = key.path ? table_find(&all->table, hash_of(&key), same_sum, &key) : NULL;
	if (!s->outer)
		return 0;
	s->outer->has_inner = true;
	for (size_t i = 0; i < N; i++)
		s->outer->inner[i] = value_plus(s->outer->inner[i], s->number[i]);
	return 0;
}

static void stat_join(struct gauge_stat *to, const struct gauge_stat *from)
{
	if (!from->count)
		return;
	if (!to->count) {
		*to = *from;
		return;
	}
	to->min = from->min < to->min ? from->min : to->min;
	to->max = from->max > to->max ? from->max : to->max;
	to->sum += from->sum;
	to->count += from->count;
	to->last = (double)NAN;
}

static bool same_gauge(const void *item, const void *key)
{
	const struct gauge_sum *a = item, *b = key;

	return a->path == b->path && a->prefix == b->prefix && a->kind == b->kind &&
	       a->source == b->source;
}

static int gauge_take(struct sections *all, const struct gauge_row *row)
{
	struct gauge_sum key = {.path = row->key.path,
				.prefix = row->key.prefix,
				.kind = row->key.kind,
				.source = row->key.source,
				.broken = value_uint(0)};
	uint64_t hash = hash_pair(hash_pair((uintptr_t)key.path, (uintptr_t)key.prefix),
				  (uintptr_t)key.kind ^ (uintptr_t)key.source);
	struct gauge_sum *g = table_find(&all->gauge_table, hash, same_gauge, &key), **at;

	if (!g) {
		g = arena_get(&all->arena, sizeof(*g));
		at = g ? ARRAY_NEW(&all->gauges) : NULL;
		if (!at || table_add(&all->gauge_table, hash, g)) {
			if (at)
				all->gauges.n--;
			return -ENOMEM;
		}
		*g = key;
		*at = g;
	}
	g->broken = value_plus(g->broken, row->broken);
	for (size_t i = 0; i < CREMA_GAUGE_STATS; i++)
		stat_join(&g->stat[i], &row->stat[i]);
	return 0;
}

static int by_wall(const void *pa, const void *pb)
{
	const struct section_sum *a = *(struct section_sum *const *)pa;
	const struct section_sum *b = *(struct section_sum *const *)pb;
	double x = value_number(a->number[0], NULL), y = value_number(b->number[0], NULL);

	return x > y ? -1 : x < y ? 1 : strcmp(a->path ? a->path : "", b->path ? b->path : "");
}

static int by_name(const void *pa, const void *pb)
{
	const struct gauge_sum *a = *(struct gauge_sum *const *)pa;
	const struct gauge_sum *b = *(struct gauge_sum *const *)pb;

	return strcmp(a->path ? a->path : "", b->path ? b->path : "");
}

static void take_unmeasured(struct sections *s, const struct run *run)
{
	s->outside = s->refused = s->values = value_uint(0);
	for (size_t i = 0; i < run->workers.n; i++) {
		const struct totals *t = &run->workers.v[i]->totals;

		s->outside = value_plus(s->outside, t->sections_outside);
		s->refused = value_plus(s->refused, t->sections_refused);
		s->values = value_plus(s->values, t->values_refused);
	}
}

int sections_gather(struct sections *s, const struct run *run)
{
	const struct model *m = run->model;
	int rc = 0;

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < m->sections.n && !rc; i++) {
		const struct section_key *k = &m->sections.v[i]->key;

		if (run_has_row(run, k->worker, k->span))
			rc = section_take(s, m->sections.v[i]);
	}
	for (size_t i = 0; i < m->gauges.n && !rc; i++) {
		const struct section_key *k = &m->gauges.v[i]->key;

		if (run_has_row(run, k->worker, k->span))
			rc = gauge_take(s, m->gauges.v[i]);
	}
	for (size_t i = 0; i < s->v.n && !rc; i++)
		rc = link_outer(s, m, s->v.v[i]);
	if (s->v.n)
		qsort(s->v.v, s->v.n, sizeof(*s->v.v), by_wall);
	if (s->gauges.n)
		qsort(s->gauges.v, s->gauges.n, sizeof(*s->gauges.v), by_name);
	take_unmeasured(s, run);
	return rc;
}

void sections_release(struct sections *s)
{
	free(s->v.v);
	free(s->gauges.v);
	table_release(&s->table);
	table_release(&s->gauge_table);
	arena_release(&s->arena);
	memset(s, 0, sizeof(*s));
}

struct value section_number(const struct section_sum *s, size_t i, bool self)
{
	struct value v = self && !s->path ? value_null() : s->number[i];

	if (self && s->has_inner)
		v = value_minus(v, s->inner[i]);
	return is_seconds(i) ? value_seconds(v) : v;
}

struct value section_unclassified(const struct section_sum *s, bool self)
{
	struct value rest = section_number(s, 0, self);

	for (size_t i = 0; i < N; i++) {
		if (numbers[i].from == OWN_TIME)
			rest = value_minus(rest, section_number(s, i, self));
	}
	return rest;
}
