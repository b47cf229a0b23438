/* SPDX-License-Identifier: BSD-3-Clause */
/* page_tasks.c - single tasks: time of chunks by dataset, the slowest. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/page/page.h"

uint64_t page_task_ns(const struct attempt *a)
{
	return a->end_ns > a->begin_ns ? a->end_ns - a->begin_ns : 0;
}

int page_longest_first(const void *a, const void *b)
{
	const struct attempt *x = *(struct attempt *const *)a, *y = *(struct attempt *const *)b;
	uint64_t p = page_task_ns(x), q = page_task_ns(y);

	return p != q ? (p > q ? -1 : 1) : page_earliest_first(a, b);
}

int page_earliest_first(const void *a, const void *b)
{
	double x = attempt_begin(*(struct attempt *const *)a);
	double y = attempt_begin(*(struct attempt *const *)b);

	return x < y ? -1 : x > y;
}

/* [events, wall, index of the dataset, begin] */
static void put_point(const struct run *run, const struct attempt *a, size_t dataset,
		      struct json *j)
{
	bool known;
	double wall = value_number(value_seconds(attempt_wall_ns(a)), &known);

	emit_array(j, NULL);
	emit_value(j, NULL, attempt_events(a));
	page_micro(j, NULL, known ? wall : (double)NAN);
	emit_value(j, NULL, value_uint(dataset));
	page_micro(j, NULL, attempt_begin(a) - run->start);
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

/* A heap of indexes into a list. On top is the one to drop first: the last of the longest so
 * far. */
struct heap {
	const struct attempt **v;
	size_t *place, n;
};

/* In the order of a stable sort by page_longest_first. */
static bool is_behind(const struct heap *h, size_t a, size_t b)
{
	int c = page_longest_first(&h->v[a], &h->v[b]);

	return c ? c > 0 : a > b;
}

static void sink_down(struct heap *h, size_t i)
{
	size_t child, place = h->place[i];

	for (; 2 * i + 1 < h->n; i = child) {
		child = 2 * i + 1;
		if (child + 1 < h->n && is_behind(h, h->place[child + 1], h->place[child]))
			child++;
		if (!is_behind(h, h->place[child], place))
			break;
		h->place[i] = h->place[child];
	}
	h->place[i] = place;
}

static int by_place(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

/* Moves those at the indexes (ascending) to the front; the others stay in order after them. */
static void take_to_front(const struct heap *h, const struct attempt **taken, size_t n)
{
	size_t i, k = h->n, to = n;

	for (i = n; i-- > 0;) {
		if (k && h->place[k - 1] == i)
			taken[--k] = h->v[i];
		else
			h->v[--to] = h->v[i];
	}
	memcpy(h->v, taken, h->n * sizeof(*taken));
}

int page_slowest(const struct attempt **v, size_t n, size_t most)
{
	struct heap h = {.v = v, .n = most < n ? most : n};
	const struct attempt **taken = calloc(h.n + 1, sizeof(*taken));
	int rc = -ENOMEM;
	size_t i;

	h.place = calloc(h.n + 1, sizeof(*h.place));
	if (!taken || !h.place)
		goto out;
	for (i = 0; i < h.n; i++)
		h.place[i] = i;
	for (i = h.n / 2; i-- > 0;)
		sink_down(&h, i);
	for (i = h.n; h.n && i < n; i++) {
		if (!is_behind(&h, h.place[0], i))
			continue;
		h.place[0] = i;
		sink_down(&h, 0);
	}
	qsort(h.place, h.n, sizeof(*h.place), by_place);
	take_to_front(&h, taken, n);
	qsort(v, h.n, sizeof(*v), page_longest_first);
	rc = 0;
out:
	free(h.place);
	free(taken);
	return rc;
}

/* Among those with the same begin the longest comes first. */
static void order_equal_begins(const struct attempt **v, size_t n)
{
	size_t i, k;

	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && attempt_begin(v[k]) == attempt_begin(v[i]); k++)
			;
		if (k - i > 1)
			qsort(v + i, k - i, sizeof(*v), page_longest_first);
	}
}

/* The slowest third, and every n-th of the others in the order of their begin. */
static int choose_points(const struct attempt **v, size_t *n)
{
	const size_t slowest = PAGE_POINTS / 3, sample = PAGE_POINTS - slowest;
	size_t i;

	if (*n <= PAGE_POINTS)
		return 0;
	if (page_slowest(v, *n, slowest))
		return -ENOMEM;
	order_equal_begins(v + slowest, *n - slowest);
	for (i = 0; i < sample; i++)
		v[slowest + i] = v[slowest + (*n - slowest) * i / sample];
	*n = PAGE_POINTS;
	return 0;
}

struct chunk_wall {
	const char *dataset; /* equal names have equal pointers */
	uint64_t ns;
};

static int by_dataset_and_wall(const void *a, const void *b)
{
	const struct chunk_wall *x = a, *y = b;

	if (x->dataset != y->dataset)
		return (uintptr_t)x->dataset < (uintptr_t)y->dataset ? -1 : 1;
	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* The known wall times of all chunks, by dataset and length; returns their number. */
static size_t sort_walls(const struct attempt **v, size_t n, struct chunk_wall *walls)
{
	struct value wall;
	size_t i, known = 0;

	for (i = 0; i < n; i++) {
		wall = attempt_wall_ns(v[i]);
		if (wall.type == VALUE_UINT)
			walls[known++] = (struct chunk_wall){v[i]->dataset, wall.v.u};
	}
	if (known)
		qsort(walls, known, sizeof(*walls), by_dataset_and_wall);
	return known;
}

/* How many precede the key in the order of sort_walls(). */
static size_t walls_below(const struct chunk_wall *walls, size_t n, struct chunk_wall key)
{
	size_t from = 0, middle;

	while (from < n) {
		middle = from + (n - from) / 2;
		if (by_dataset_and_wall(&walls[middle], &key) < 0)
			from = middle + 1;
		else
			n = middle;
	}
	return from;
}

/* [name, chunks, median of their wall times]: of all chunks, not only the shown ones. */
static void put_chunk_dataset(const char *name, const struct chunk_wall *walls, size_t n,
			      struct json *j)
{
	size_t first = walls_below(walls, n, (struct chunk_wall){name, 0});
	size_t end = walls_below(walls, n, (struct chunk_wall){name, UINT64_MAX});
	double median = (double)NAN;

	if (end > first)
		median = ((double)walls[first + (end - first - 1) / 2].ns +
			  (double)walls[first + (end - first) / 2].ns) /
			 2e9;
	emit_array(j, NULL);
	page_name(j, NULL, name);
	emit_value(j, NULL, value_uint(end - first));
	page_micro(j, NULL, median);
	emit_end(j);
}

static void put_scatter(const struct report *r, struct json *j)
{
	const struct run *run = r->run;
	const struct attempt **v = calloc(run->attempts.n + 1, sizeof(*v)), *a;
	struct chunk_wall *walls = calloc(run->attempts.n + 1, sizeof(*walls));
	struct names_list datasets = {0};
	size_t i, n = 0, total, known;

	if (!v || !walls) {
		j->sink->error = -ENOMEM;
		goto out;
	}
	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (facts_shows(r->facts, a) && attempt_is_chunk(a))
			v[n++] = a;
	}
	total = n;
	known = sort_walls(v, n, walls);
	if (choose_points(v, &n))
		j->sink->error = -ENOMEM;
	emit_object(j, "scatter");
	emit_value(j, "total", value_uint(total));
	emit_array(j, "points");
	for (i = 0; i < n; i++)
		put_point(run, v[i], index_of(&datasets, v[i]->dataset), j);
	emit_end(j);
	emit_array(j, "datasets");
	for (i = 0; i < datasets.n; i++)
		put_chunk_dataset(datasets.v[i], walls, known, j);
	emit_end(j);
	emit_end(j);
out:
	free(datasets.v);
	free(walls);
	free(v);
}

static void put_slow(const struct run *run, const struct attempt *a, struct json *j)
{
	char key[KEY_SHOWN_BYTES];
	struct classes c;
	unsigned int i;

	attempt_classes(a, &c);
	emit_object(j, NULL);
	page_name(j, "key", run_key_shown(run, a, key));
	page_name(j, "prefix", run_prefix_shown(run, a->prefix));
	page_name(j, "worker", a->worker->label);
	emit_value(j, "status", value_text(attempt_state_name(a)));
	page_name(j, "waste_reason", a->waste_reason);
	emit_value(j, "wall_seconds", c.wall);
	emit_value(j, "events", attempt_is_chunk(a) ? attempt_events(a) : value_null());
	emit_value(j, "read_bytes", count_of(&a->c, CREMA_C_read_bytes));
	emit_object(j, "classes");
	for (i = 0; i < CREMA_TIMES; i++)
		emit_value(j, class_name(i), c.cls[i]);
	emit_value(j, "unclassified", value_rest(c.unclassified, c.wall));
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
	if (page_slowest(v, run->attempts.n, PAGE_ROWS / 2))
		j->sink->error = -ENOMEM;
	emit_object(j, "slowest");
	emit_value(j, "total", value_uint(run->attempts.n));
	emit_array(j, "rows");
	for (i = 0; i < run->attempts.n && i < PAGE_ROWS / 2; i++)
		put_slow(run, v[i], j);
	emit_end(j);
	emit_end(j);
	free(v);
}

void page_tasks(const struct report *r, struct json *j)
{
	put_scatter(r, j);
	put_slowest(r, j);
}
