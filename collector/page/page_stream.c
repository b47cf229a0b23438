/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page_stream.c - tasks by thread: each as a bar; if there are too many, cells of time for all of
 * them, and the longest as bars above.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/page/page.h"

#define PARTS (CREMA_TIMES + 1) /* the classes and the rest */

struct lane {
	const struct worker *worker;
	uint64_t thread;
	uint64_t longest_ns;
	size_t place; /* index among those shown, from 1; 0: not shown */
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
	struct lane key = {.worker = a->worker}, *lane;
	uint64_t h;

	key.thread = attempt_u64(a, TASK_F_thread).v.u; /* 0: unknown */
	h = hash_pair((uint64_t)(uintptr_t)key.worker, key.thread);
	lane = table_find(&l->table, h, same_lane, &key);
	if (lane || !make)
		return lane;
	lane = TABLE_NEW(&l->table, h, &l->arena, l);
	if (!lane)
		return NULL;
	*lane = key;
	return lane;
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

/* The threads with the longest tasks, sorted by name. */
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

/* [key, lane, begin, length, state, counted, kind (enum task_class), classes in the order of
 * "classes"..., rest] */
static void put_bar(const struct facts *f, const struct attempt *a, size_t lane, struct json *j)
{
	struct classes c;
	unsigned int i;
	bool known;
	double d;

	attempt_classes(a, &c);
	emit_array(j, NULL);
	page_name(j, NULL, a->key);
	emit_value(j, NULL, value_uint(lane));
	page_micro(j, NULL, attempt_begin(a) - f->run->start);
	page_micro(j, NULL, (double)page_task_ns(a) / 1e9);
	emit_value(j, NULL, value_text(attempt_state_name(a)));
	emit_value(j, NULL, value_bool(a->counted));
	emit_value(j, NULL, value_uint(attempt_class(f, a)));
	for (i = 0; i <= CREMA_TIMES; i++) {
		d = value_number(i < CREMA_TIMES ? c.cls[i] : value_rest(c.unclassified, c.wall),
				 &known);
		page_micro(j, NULL, known ? d : (double)NAN);
	}
	emit_end(j);
}

/* Spreads a task's seconds in each part evenly over its time. */
static void add_cells(double *cell, const struct run *run, const struct attempt *a)
{
	double width = (run->stop - run->start) / PAGE_CELLS, begin = attempt_begin(a) - run->start;
	double end = begin + (double)page_task_ns(a) / 1e9, part[PARTS], from, to;
	struct classes c;
	unsigned int k;
	size_t i;

	if (!(width > 0) || !(end > begin))
		return;
	attempt_classes(a, &c);
	for (k = 0; k < PARTS; k++)
		part[k] = value_number(
			k < CREMA_TIMES ? c.cls[k] : value_rest(c.unclassified, c.wall), NULL);
	for (i = (size_t)(fmax(begin, 0) / width); i < PAGE_CELLS && (double)i * width < end; i++) {
		from = fmax(begin, (double)i * width);
		to = fmin(end, (double)(i + 1) * width);
		for (k = 0; k < PARTS && to > from; k++)
			cell[i * PARTS + k] += part[k] * (to - from) / (end - begin);
	}
}

/* Thousandths of each cell's time in each part: an array by lane, cell and part. */
static int put_cells(const struct run *run, const struct lanes *lanes, size_t shown,
		     const struct attempt **v, size_t n, struct json *j)
{
	double *cell = calloc(shown * PAGE_CELLS * PARTS, sizeof(*cell));
	double width = (run->stop - run->start) / PAGE_CELLS;
	size_t i, k;

	if (!cell)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		k = lane_of((struct lanes *)(uintptr_t)lanes, v[i], false)->place - 1;
		add_cells(cell + k * PAGE_CELLS * PARTS, run, v[i]);
	}
	emit_array(j, "cells");
	for (i = 0; i < shown; i++) {
		emit_array(j, NULL);
		for (k = 0; k < PAGE_CELLS * PARTS; k++)
			emit_value(j, NULL,
				   value_int((int64_t)lround(cell[i * PAGE_CELLS * PARTS + k] /
							     width * 1000)));
		emit_end(j);
	}
	emit_end(j);
	page_micro(j, "cell", width);
	free(cell);
	return 0;
}

/* Those on the shown threads. */
static size_t choose_tasks(const struct run *run, struct lanes *lanes, const struct attempt **v)
{
	size_t i, n = 0;

	for (i = 0; i < run->attempts.n; i++) {
		if (lane_of(lanes, run->attempts.v[i], false)->place &&
		    isfinite(attempt_begin(run->attempts.v[i])))
			v[n++] = run->attempts.v[i];
	}
	return n;
}

static void put_stream(const struct facts *f, struct lanes *lanes, const struct attempt **v,
		       struct json *j)
{
	const struct run *run = f->run;
	size_t i, shown = choose_lanes(lanes), n = choose_tasks(run, lanes, v);

	emit_object(j, "stream");
	emit_value(j, "lanes_total", value_uint(lanes->n));
	emit_value(j, "total", value_uint(run->attempts.n));
	emit_value(j, "in_lanes", value_uint(n));
	emit_array(j, "lanes");
	for (i = 0; i < shown; i++)
		page_name(j, NULL, lanes->v[i]->worker->label);
	emit_end(j);
	if (n > PAGE_BARS) {
		if (put_cells(run, lanes, shown, v, n, j))
			j->sink->error = -ENOMEM;
		if (page_slowest(v, n, PAGE_LONGEST))
			j->sink->error = -ENOMEM;
		n = PAGE_LONGEST;
		qsort(v, n, sizeof(*v), page_earliest_first);
	}
	emit_array(j, "bars");
	for (i = 0; i < n; i++)
		put_bar(f, v[i], lane_of(lanes, v[i], false)->place - 1, j);
	emit_end(j);
	emit_end(j);
}

void page_stream(const struct report *r, struct json *j)
{
	const struct run *run = r->run;
	struct lanes lanes = {.table = {0}};
	const struct attempt **v = calloc(run->attempts.n + 1, sizeof(*v));
	struct lane *lane;
	size_t i;

	for (i = 0; v && i < run->attempts.n; i++) {
		lane = lane_of(&lanes, run->attempts.v[i], true);
		if (!lane)
			break;
		if (page_task_ns(run->attempts.v[i]) > lane->longest_ns)
			lane->longest_ns = page_task_ns(run->attempts.v[i]);
	}
	if (!v || i < run->attempts.n)
		j->sink->error = -ENOMEM;
	else
		put_stream(r->facts, &lanes, v, j);
	table_release(&lanes.table);
	arena_release(&lanes.arena);
	free(lanes.v);
	free(v);
}
