/* SPDX-License-Identifier: BSD-3-Clause */
/* page_tasks.c - single tasks: the stream by thread, chunk time against events, the slowest. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/page/page.h"

struct lane {
	const struct worker *worker;
	uint64_t thread;
	uint64_t longest_ns;
	size_t place; /* among those shown, from 1; 0: not shown */
};

struct lanes {
	struct lane **v;
	size_t n, cap;
	struct table table;
	struct arena arena;
};

static bool same_lane(const void *item, const void *key)
{
	const struct lane *a = item, *b = key;

	return a->worker == b->worker && a->thread == b->thread;
}

static struct lane *lane_of(struct lanes *l, const struct attempt *a, bool make)
{
	struct lane key = {.worker = a->worker}, *lane, **at;
	uint64_t h;

	key.thread = attempt_u64(a, TASK_F_thread).v.u; /* 0: unknown */
	h = hash_pair((uint64_t)(uintptr_t)key.worker, key.thread);
	lane = table_find(&l->table, h, same_lane, &key);
	if (lane || !make)
		return lane;
	lane = arena_get(&l->arena, sizeof(*lane));
	at = lane ? ARRAY_NEW(l) : NULL;
	if (!at || table_add(&l->table, h, lane))
		return NULL;
	*lane = key;
	*at = lane;
	return lane;
}

static uint64_t wall_of(const struct attempt *a)
{
	return a->end_ns > a->begin_ns ? a->end_ns - a->begin_ns : 0;
}

static int by_longest(const void *a, const void *b)
{
	const struct lane *x = *(struct lane *const *)a, *y = *(struct lane *const *)b;

	if (x->longest_ns != y->longest_ns)
		return x->longest_ns > y->longest_ns ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int by_name(const void *a, const void *b)
{
	const struct lane *x = *(struct lane *const *)a, *y = *(struct lane *const *)b;
	int c = strcmp(x->worker->label, y->worker->label);

	return c ? c : x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int by_wall(const void *a, const void *b)
{
	const struct attempt *x = *(struct attempt *const *)a, *y = *(struct attempt *const *)b;
	uint64_t p = wall_of(x), q = wall_of(y);

	return p != q ? (p > q ? -1 : 1) : x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int by_begin(const void *a, const void *b)
{
	const struct attempt *x = *(struct attempt *const *)a, *y = *(struct attempt *const *)b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The threads with the longest tasks, in the order of their names. */
static size_t choose_lanes(struct lanes *l)
{
	size_t i, shown;

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_longest);
	shown = l->n < PAGE_LANES ? l->n : PAGE_LANES;
	if (shown)
		qsort(l->v, shown, sizeof(*l->v), by_name);
	for (i = 0; i < shown; i++)
		l->v[i]->place = i + 1;
	return shown;
}

/* [key, lane, begin, length, state, counted, chunk, classes in the order of "classes"..., rest] */
static void put_bar(const struct run *run, const struct attempt *a, size_t lane, struct json *j)
{
	struct classes c;
	unsigned int i;
	bool known;
	double d;

	attempt_classes(a, &c);
	emit_array(j, NULL);
	page_name(j, NULL, a->key);
	emit_value(j, NULL, value_uint(lane));
	page_micro(j, NULL, a->begin - run->start);
	page_micro(j, NULL, (double)wall_of(a) / 1e9);
	emit_value(j, NULL, value_text(attempt_state_name(a)));
	emit_value(j, NULL, value_bool(a->counted));
	emit_value(j, NULL, value_bool(attempt_is_chunk(a)));
	for (i = 0; i <= CREMA_TIMES; i++) {
		d = value_number(i < CREMA_TIMES ? c.cls[i] : c.unclassified, &known);
		page_micro(j, NULL, known ? d : (double)NAN);
	}
	emit_end(j);
}

static void put_stream(const struct report *r, struct json *j)
{
	const struct run *run = r->run;
	struct lanes lanes = {.table = {0}};
	const struct attempt **v = calloc(run->attempts.n + 1, sizeof(*v)), *a;
	struct lane *lane;
	size_t i, shown, n = 0;

	for (i = 0; v && i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		lane = lane_of(&lanes, a, true);
		if (!lane)
			break;
		if (wall_of(a) > lane->longest_ns)
			lane->longest_ns = wall_of(a);
	}
	if (!v || i < run->attempts.n)
		j->sink->error = -ENOMEM;
	shown = choose_lanes(&lanes);
	for (i = 0; v && !j->sink->error && i < run->attempts.n; i++) {
		lane = lane_of(&lanes, run->attempts.v[i], false);
		if (lane->place && isfinite(run->attempts.v[i]->begin))
			v[n++] = run->attempts.v[i];
	}
	if (n > PAGE_BARS) {
		qsort(v, n, sizeof(*v), by_wall);
		n = PAGE_BARS;
		qsort(v, n, sizeof(*v), by_begin);
	}
	emit_object(j, "stream");
	emit_value(j, "lanes_total", value_uint(lanes.n));
	emit_value(j, "total", value_uint(run->attempts.n));
	emit_array(j, "lanes");
	for (i = 0; i < shown; i++)
		page_name(j, NULL, lanes.v[i]->worker->label);
	emit_end(j);
	emit_array(j, "bars");
	for (i = 0; i < n; i++)
		put_bar(run, v[i], lane_of(&lanes, v[i], false)->place - 1, j);
	emit_end(j);
	emit_end(j);
	table_release(&lanes.table);
	arena_release(&lanes.arena);
	free(lanes.v);
	free(v);
}

/* [events, wall, datasets' index, key] */
static void put_point(const struct attempt *a, size_t dataset, struct json *j)
{
	bool known;
	double wall = value_number(value_seconds(attempt_wall_ns(a)), &known);

	emit_array(j, NULL);
	emit_value(j, NULL, attempt_events(a));
	page_micro(j, NULL, known ? wall : (double)NAN);
	emit_value(j, NULL, value_uint(dataset));
	emit_end(j);
}

struct names_list {
	const char **v;
	size_t n, cap;
};

static size_t index_of(struct names_list *list, const char *name)
{
	const char **at;
	size_t i;

	for (i = 0; i < list->n && list->v[i] != name; i++)
		;
	if (i == list->n) {
		at = ARRAY_NEW(list);
		if (at)
			*at = name;
	}
	return i;
}

/* The slowest third, and of the others each so-many-th in the order of their begin. */
static size_t choose_points(const struct attempt **v, size_t n)
{
	const size_t slowest = PAGE_POINTS / 3, sample = PAGE_POINTS - slowest;
	size_t i;

	if (n <= PAGE_POINTS)
		return n;
	qsort(v, n, sizeof(*v), by_wall);
	qsort(v + slowest, n - slowest, sizeof(*v), by_begin);
	for (i = 0; i < sample; i++)
		v[slowest + i] = v[slowest + (n - slowest) * i / sample];
	return PAGE_POINTS;
}

static void put_scatter(const struct report *r, struct json *j)
{
	const struct run *run = r->run;
	const struct attempt **v = calloc(run->attempts.n + 1, sizeof(*v)), *a;
	struct names_list datasets = {0};
	size_t i, n = 0, total;

	if (!v) {
		j->sink->error = -ENOMEM;
		return;
	}
	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (a->counted && attempt_is_chunk(a))
			v[n++] = a;
	}
	total = n;
	n = choose_points(v, n);
	emit_object(j, "scatter");
	emit_value(j, "total", value_uint(total));
	emit_array(j, "points");
	for (i = 0; i < n; i++)
		put_point(v[i], index_of(&datasets, v[i]->dataset), j);
	emit_end(j);
	emit_array(j, "datasets");
	for (i = 0; i < datasets.n; i++)
		page_name(j, NULL, datasets.v[i]);
	emit_end(j);
	emit_end(j);
	free(datasets.v);
	free(v);
}

static void put_slow(const struct attempt *a, struct json *j)
{
	struct classes c;
	unsigned int i;

	attempt_classes(a, &c);
	emit_object(j, NULL);
	page_name(j, "key", a->key);
	page_name(j, "prefix", a->prefix);
	page_name(j, "worker", a->worker->label);
	emit_value(j, "status", value_text(attempt_state_name(a)));
	page_name(j, "waste_reason", a->waste_reason);
	emit_value(j, "wall_seconds", c.wall);
	emit_value(j, "events", attempt_is_chunk(a) ? attempt_events(a) : value_null());
	emit_value(j, "read_bytes", count_of(&a->c, CREMA_C_read_bytes));
	emit_object(j, "classes");
	for (i = 0; i < CREMA_TIMES; i++)
		emit_value(j, class_name(i), c.cls[i]);
	emit_value(j, "unclassified", c.unclassified);
	emit_end(j);
	emit_end(j);
}

static void put_slowest(const struct report *r, struct json *j)
{
	const struct run *run = r->run;
	const struct attempt **v = calloc(run->attempts.n + 1, sizeof(*v));
	size_t i;

	if (!v) {
		j->sink->error = -ENOMEM;
		return;
	}
	for (i = 0; i < run->attempts.n; i++)
		v[i] = run->attempts.v[i];
	if (run->attempts.n)
		qsort(v, run->attempts.n, sizeof(*v), by_wall);
	emit_object(j, "slowest");
	emit_value(j, "total", value_uint(run->attempts.n));
	emit_array(j, "rows");
	for (i = 0; i < run->attempts.n && i < PAGE_ROWS / 2; i++)
		put_slow(v[i], j);
	emit_end(j);
	emit_end(j);
	free(v);
}

void page_tasks(const struct report *r, struct json *j)
{
	put_stream(r, j);
	put_scatter(r, j);
	put_slowest(r, j);
}
