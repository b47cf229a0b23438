/* SPDX-License-Identifier: BSD-3-Clause */
/* sections.c - sums of sections and gauges over the workers of a run. */
#include "collector/report/report.h"

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
	       a->source == b->source && a->dataset == b->dataset && a->beyond == b->beyond;
}

static uint64_t hash_of(const struct section_sum *s)
{
	return hash_pair(hash_pair((uintptr_t)s->path, (uintptr_t)s->prefix),
			 hash_pair((uintptr_t)s->thread ^ (uintptr_t)s->source,
				   (uintptr_t)s->dataset + s->beyond));
}

static struct section_sum *sum_of(struct sections *all, struct section_list *list,
				  const struct section_key *row)
{
	bool apart = list == &all->by_dataset;
	struct section_sum key = {.path = row->path,
				  .prefix = row->path ? row->prefix : NULL,
				  .thread = row->thread,
				  .source = row->source,
				  .dataset = apart ? row->dataset : NULL,
				  .beyond = apart && row->beyond};
	struct section_sum *s = table_find(&list->table, hash_of(&key), same_sum, &key);

	if (s)
		return s;
	s = TABLE_NEW(&list->table, hash_of(&key), &all->arena, &list->v);
	if (!s)
		return NULL;
	for (size_t i = 0; i < CREMA_SECTION_NUMBERS; i++)
		key.row[i] = row_section[i].merge == ROW_SUM ? value_uint(0) : value_null();
	for (size_t i = 0; i < N; i++)
		key.number[i] = key.inner[i] = value_uint(0);
	*s = key;
	return s;
}

static int section_take(struct sections *all, struct section_list *list,
			const struct section_row *row)
{
	struct section_sum *s = sum_of(all, list, &row->key);

	if (!s)
		return -ENOMEM;
	report_merge(s->row, row->number, row_section, CREMA_SECTION_NUMBERS, false);
	for (size_t i = 0; i < CREMA_WALL_BUCKETS; i++)
		s->wall_bucket[i] += row->wall_bucket[i];
	for (size_t i = 0; i < N; i++)
		s->number[i] = value_plus(s->number[i], raw(row, &numbers[i]));
	return 0;
}

/* Length of the outer section's path: up to the last "/" that does not follow a "\". 0: none. */
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
	s->outer = key.path ? table_find(&all->all.table, hash_of(&key), same_sum, &key) : NULL;
	if (!s->outer)
		return 0;
	s->outer->has_inner = true;
	for (size_t i = 0; i < N; i++)
		s->outer->inner[i] = value_plus(s->outer->inner[i], s->number[i]);
	return 0;
}

static void stat_join(struct crema_stat *to, const struct crema_stat *from)
{
	if (!from->count)
		return;
	if (!to->count) {
		*to = *from;
		return;
	}
#define JOIN_SUM(a, b) ((a) + (b))
#define JOIN_LEAST(a, b) ((b) < (a) ? (b) : (a))
#define JOIN_MOST(a, b) ((b) > (a) ? (b) : (a))
#define JOIN_LATEST(a, b) ((double)NAN)
#define GAUGE_NUMBER(name, type, merge, help) to->name = JOIN_##merge(to->name, from->name);
#include "rows.def"
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
	struct gauge_sum *g = table_find(&all->gauge_table, hash, same_gauge, &key);

	if (!g) {
		g = TABLE_NEW(&all->gauge_table, hash, &all->arena, &all->gauges);
		if (!g)
			return -ENOMEM;
		*g = key;
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
	int by_path = strcmp(a->path ? a->path : "", b->path ? b->path : "");

	if (x != y)
		return x > y ? -1 : 1;
	return by_path ? by_path
		       : strcmp(a->dataset ? a->dataset : "", b->dataset ? b->dataset : "");
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
	s->beyond = value_uint(0);
	for (size_t i = 0; i < m->sections.n && !rc; i++) {
		const struct section_key *k = &m->sections.v[i]->key;

		if (!run_has_row(run, k->worker, k->span))
			continue;
		rc = section_take(s, &s->all, m->sections.v[i]);
		if (!rc)
			rc = section_take(s, &s->by_dataset, m->sections.v[i]);
		if (k->beyond)
			s->beyond = value_plus(s->beyond, m->sections.v[i]->count);
	}
	for (size_t i = 0; i < m->gauges.n && !rc; i++) {
		const struct section_key *k = &m->gauges.v[i]->key;

		if (run_has_row(run, k->worker, k->span))
			rc = gauge_take(s, m->gauges.v[i]);
	}
	for (size_t i = 0; i < s->all.v.n && !rc; i++)
		rc = link_outer(s, m, s->all.v.v[i]);
	if (s->all.v.n) {
		qsort(s->all.v.v, s->all.v.n, sizeof(*s->all.v.v), by_wall);
		qsort(s->by_dataset.v.v, s->by_dataset.v.n, sizeof(*s->by_dataset.v.v), by_wall);
	}
	if (s->gauges.n)
		qsort(s->gauges.v, s->gauges.n, sizeof(*s->gauges.v), by_name);
	take_unmeasured(s, run);
	return rc;
}

void sections_release(struct sections *s)
{
	free(s->all.v.v);
	free(s->by_dataset.v.v);
	free(s->gauges.v);
	table_release(&s->all.table);
	table_release(&s->by_dataset.table);
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

static const char *const spread_names[] = {"wall_min_seconds", "wall_median_seconds",
					   "wall_max_seconds"};

const char *section_spread_name(size_t i)
{
	return i < sizeof(spread_names) / sizeof(*spread_names) ? spread_names[i] : NULL;
}

/* The duration of this rank, from 1; NAN above the range of the buckets. */
static double ranked_ns(const struct section_sum *s, uint64_t rank, uint64_t n, double min,
			double max)
{
	uint64_t seen = 0;
	double middle;
	size_t i = 0;

	if (rank == 1 || rank == n)
		return rank == 1 ? min : max;
	while (i < CREMA_WALL_BUCKETS && (seen += s->wall_bucket[i]) < rank)
		i++;
	if (i >= CREMA_WALL_BUCKETS - 1)
		return (double)NAN;
	middle = i ? 1024 * exp2(((double)i - 0.5) / 4) : 512;
	return middle < min ? min : middle > max ? max : middle;
}

struct value section_spread(const struct section_sum *s, size_t i)
{
	double min = value_number(s->wall_min_ns, NULL), max = value_number(s->wall_max_ns, NULL);
	uint64_t n = 0;

	for (size_t k = 0; k < CREMA_WALL_BUCKETS; k++)
		n += s->wall_bucket[k];
	if (!n || s->count.type == VALUE_NULL || (double)n != value_number(s->count, NULL) ||
	    s->wall_min_ns.type == VALUE_NULL || s->wall_max_ns.type == VALUE_NULL)
		return value_null();
	if (i != 1)
		return value_seconds(i ? s->wall_max_ns : s->wall_min_ns);
	return value_real(
		(ranked_ns(s, (n + 1) / 2, n, min, max) + ranked_ns(s, n / 2 + 1, n, min, max)) /
		2e9);
}

struct value section_cell(const struct section_sum *s, size_t i)
{
	return row_section_cells[i].ns ? value_seconds(s->row[i]) : s->row[i];
}

const char *const gauge_number_names[CREMA_GAUGE_NUMBERS] = {
#define GAUGE_NUMBER(name, ...) #name,
#include "rows.def"
};

void gauge_values(const struct crema_stat *s, struct value v[CREMA_GAUGE_NUMBERS])
{
	size_t i = 0;

#define GAUGE_NUMBER(name, type, ...) v[i++] = value_##type(s->name);
#include "rows.def"
	for (i = 1; i < CREMA_GAUGE_NUMBERS && !s->count; i++)
		v[i] = value_null();
}
