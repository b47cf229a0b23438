/* SPDX-License-Identifier: BSD-3-Clause */
/* section_row.c - rows of sections and gauges, and what is written into them. */
#include "shim/count/section_row.h"

#include <string.h>

#include "shim/count/cut_text.h"
#include "shim/count/row_write.h"
#include "shim/count/section.h"
#include "shim/count/section_task.h"
#include "shim/count/task.h"

enum {
	PLAIN = CREMA_SHM_SECTIONS_BY_DATASET, /* from here on rows without a dataset */
	NAMED = CREMA_SHM_SECTIONS - CREMA_SHM_SECTIONS_OTHER,
	LAST = CREMA_SHM_SECTIONS - 1,
	LOOKS = 32, /* for a row with a dataset: a full table must not make sections slow */
};

static int same_path(uint32_t id, const char *path, uint32_t bytes)
{
	const char *text = arena_text(id);

	return !strncmp(text, path, bytes) && !text[bytes];
}

/* The row of what did not fit, of this span; if none is left, the one for all spans. */
static struct crema_section *other_row(const struct crema_task *task, uint32_t flags)
{
	struct crema_section *r;

	for (uint32_t i = NAMED; i < LAST; i++) {
		r = &crema_shm->section[i];
		if (!r->state) {
			r->span = task->span;
			r->flags = flags;
			__atomic_store_n(&r->state, 2, __ATOMIC_RELEASE);
		}
		if (r->span == task->span && r->flags == flags)
			return r;
	}
	r = &crema_shm->section[LAST];
	__atomic_store_n(&r->state, 2, __ATOMIC_RELEASE);
	return r;
}

/* The key of both kinds of rows. */
struct key {
	const char *path;
	uint32_t bytes, span, prefix, flags, dataset;
	uint64_t hash;
};

static struct key key_of(const struct crema_task *task, const char *path, uint32_t bytes,
			 uint32_t flags)
{
	return (struct key){
		path, bytes, task->span, task->prefix, flags, 0, arena_hash(path, bytes)};
}

/* A text for a new row; 0: the row must not be made. */
static uint32_t new_path(const struct key *k)
{
	uint64_t *of_dataset = &crema_shm->section_dataset_rows;
	uint32_t id;

	if (k->dataset ? *of_dataset >= CREMA_SHM_SECTION_DATASETS
		       : crema_shm->section_rows - *of_dataset >= CREMA_SHM_SECTION_NAMES)
		return 0;
	id = arena_bulk_id(k->path, k->bytes);
	crema_shm->section_rows += id != 0;
	*of_dataset += id && k->dataset;
	return id;
}

#define IS(r, k)                                                                                   \
	((r)->state && (r)->hash == (k)->hash && (r)->span == (k)->span &&                         \
	 (r)->prefix == (k)->prefix && (r)->flags == (k)->flags &&                                 \
	 same_path((r)->path, (k)->path, (k)->bytes))

/* Resets the row but keeps its seq; `more`: the additional part of one kind of row. */
#define MAKE(r, k, id, more)                                                                       \
	do {                                                                                       \
		uint64_t seq = (r)->seq;                                                           \
		row_write_begins(&(r)->seq);                                                       \
		memset((char *)(r) + sizeof(seq), 0, sizeof(*(r)) - sizeof(seq));                  \
		(r)->number = crema_shm->section_rows;                                             \
		(r)->path = (id);                                                                  \
		(r)->span = (k)->span;                                                             \
		(r)->prefix = (k)->prefix;                                                         \
		(r)->flags = (k)->flags;                                                           \
		(r)->hash = (k)->hash;                                                             \
		more;                                                                              \
		__atomic_store_n(&(r)->state, 2, __ATOMIC_RELEASE);                                \
		row_write_ends(&(r)->seq);                                                         \
	} while (0)

/* No thread has it open, and all its numbers are safe. */
#define CAN_GO(r, is_open) ((r)->seq == LOAD(&(r)->safe_seq) && !(is_open))

/* Finds or makes a row among n rows from `first` on, of which it checks `looks`; NULL: no room. */
static struct crema_section *row_among(const struct key *k, uint32_t first, uint32_t n,
				       uint32_t looks)
{
	struct crema_section *room = NULL, *idle = NULL;
	uint32_t at = (uint32_t)k->hash + 31 * k->dataset, id;

	for (uint32_t i = 0; i < looks; i++, at++) {
		struct crema_section *r = &crema_shm->section[first + at % n];

		if (IS(r, k) && r->dataset == k->dataset)
			return r;
		if (!r->state) {
			room = r;
			break;
		}
		if (!idle && CAN_GO(r, r->begun != r->count + r->broken))
			idle = r;
	}
	room = room ? room : idle;
	id = room ? new_path(k) : 0;
	if (!id)
		return NULL;
	MAKE(room, k, id, room->dataset = k->dataset);
	return room;
}

struct crema_section *section_row(const struct crema_task *task, const char *path, uint32_t bytes,
				  uint32_t flags)
{
	struct key k = key_of(task, path, bytes, flags);
	struct crema_section *r;

	k.dataset = task->dataset;
	if (k.dataset) {
		r = row_among(&k, 0, PLAIN, LOOKS);
		if (r)
			return r;
		k.dataset = 0;
		k.flags |= CREMA_SECTION_BEYOND;
	}
	r = row_among(&k, PLAIN, NAMED - PLAIN, NAMED - PLAIN);
	return r ? r : other_row(task, flags);
}

struct crema_gauge *gauge_row(const struct crema_task *task, const char *path, uint32_t bytes,
			      uint32_t flags)
{
	const struct key k = key_of(task, path, bytes, flags);
	struct crema_gauge *room = NULL, *idle = NULL;
	uint32_t at = (uint32_t)k.hash, id;

	for (uint32_t i = 0; i < CREMA_SHM_GAUGES; i++, at++) {
		struct crema_gauge *g = &crema_shm->gauge[at % CREMA_SHM_GAUGES];

		if (IS(g, &k))
			return g;
		if (!g->state) {
			room = g;
			break;
		}
		if (!idle && CAN_GO(g, g->open))
			idle = g;
	}
	room = room ? room : idle;
	id = room ? new_path(&k) : 0;
	if (!id) {
		crema_shm->unmeasured.values++;
		return NULL;
	}
	MAKE(room, &k, id, (void)0);
	return room;
}

void gauge_begun(struct crema_gauge *g)
{
	if (!g)
		return;
	row_write_begins(&g->seq);
	g->open++;
	row_write_ends(&g->seq);
}

void row_begun(struct crema_section *r)
{
	row_write_begins(&r->seq);
	r->begun++;
	row_write_ends(&r->seq);
}

static void add_wall(struct crema_section *r, uint64_t ns)
{
	uint32_t *bucket = &r->wall_bucket[crema_wall_bucket(ns)];

	r->wall_ns += ns;
	if (!r->path)
		return; /* many names: a spread would mean nothing */
	r->wall_min_ns = r->count > 1 && r->wall_min_ns < ns ? r->wall_min_ns : ns;
	r->wall_max_ns = r->wall_max_ns > ns ? r->wall_max_ns : ns;
	*bucket += *bucket != UINT32_MAX; /* the buckets' sum is then too low: readers see it */
}

static void add_numbers(struct crema_section *r, const struct crema_task *task,
			const struct row_delta *d)
{
	add_wall(r, d->wall_ns);
	r->time_unknown |= LOAD(&task->time_unknown);
	r->count_unknown |= LOAD(&task->count_unknown);
	r->fs_mask |= LOAD(&task->fs_mask);
	for (int i = 0; i < CREMA_TIMES; i++) {
		r->pool_time[i] += d->pool_time[i];
		r->own.time[i] += d->own->time[i];
	}
	for (int i = 0; i < CREMA_COUNTS; i++)
		r->own.count[i] += d->own->count[i];
	if (LOAD(&task->flags) & CREMA_TASK_POOL_UNSEEN)
		r->unsure = 1;
}

void row_add(struct crema_section *r, const struct crema_task *task, const struct row_delta *d,
	     uint32_t untold)
{
	row_write_begins(&r->seq);
	r->count++;
	if (!untold || r->path)
		add_numbers(r, task, d);
	row_write_ends(&r->seq);
	section_task_add(task, r->path, r->flags, d->wall_ns);
}

void row_broken(struct crema_section *r, struct crema_gauge *g)
{
	uint64_t *seq = r ? &r->seq : g ? &g->seq : NULL;

	if (!seq)
		return;
	row_write_begins(seq);
	if (r)
		r->broken++;
	else
		g->broken++;
	if (g)
		g->open--;
	row_write_ends(seq);
}

static void stat_add(struct crema_stat *s, double v)
{
	s->min = s->count && s->min < v ? s->min : v;
	s->max = s->count && s->max > v ? s->max : v;
	s->sum += v;
	s->last = v;
	s->count++;
}

void gauge_value(struct crema_gauge *g, int stat, double value)
{
	row_write_begins(&g->seq);
	stat_add(&g->stat[stat], value);
	row_write_ends(&g->seq);
}

void gauge_memory(struct crema_gauge *g, double begin, double end, double peak)
{
	if (!g)
		return;
	row_write_begins(&g->seq);
	g->open--;
	stat_add(&g->stat[0], begin);
	stat_add(&g->stat[1], end);
	stat_add(&g->stat[2], end - begin);
	if (peak > 0)
		stat_add(&g->stat[3], peak);
	row_write_ends(&g->seq);
}

/* A name as a path on its own; 0 if there is none. */
static uint32_t single_path(char *path, const char *name, size_t bytes)
{
	size_t n = 0;

	bytes = cut_text(name, bytes, SECTION_NAME_BYTES);
	for (size_t i = 0; i < bytes; i++) {
		if (name[i] == '/' || name[i] == '\\')
			path[n++] = '\\';
		path[n++] = name[i];
	}
	return (uint32_t)n;
}

void section_found(const struct crema_task *task, const char *name, size_t bytes, uint64_t wall_ns)
{
	char path[2 * SECTION_NAME_BYTES];
	uint32_t n = single_path(path, name, bytes);
	struct crema_section *r = n ? section_row(task, path, n, CREMA_SECTION_FOUND) : NULL;

	if (!r)
		return;
	row_write_begins(&r->seq);
	r->begun++;
	r->count++;
	if (r->path)
		add_wall(r, wall_ns);
	row_write_ends(&r->seq);
	section_task_add(task, r->path, r->flags, wall_ns);
}

void section_found_memory(const struct crema_task *task, const char *name, size_t bytes,
			  double delta)
{
	char path[2 * SECTION_NAME_BYTES];
	uint32_t n = single_path(path, name, bytes);
	struct crema_gauge *g =
		n ? gauge_row(task, path, n, CREMA_SECTION_MEMORY | CREMA_SECTION_FOUND) : NULL;

	if (g)
		gauge_value(g, 2, delta);
}

void section_found_value(const struct crema_task *task, const char *name, size_t bytes,
			 uint32_t flags, double value)
{
	uint32_t n = (uint32_t)cut_text(name, bytes, SECTION_NAME_BYTES);
	struct crema_gauge *g = n ? gauge_row(task, name, n, flags | CREMA_SECTION_FOUND) : NULL;

	if (g)
		gauge_value(g, 0, value);
}

void section_value(const char *name, size_t bytes, double value)
{
	struct crema_thread *t = thread_self();
	const struct crema_task *task = t ? task_slot(t->owner) : NULL;
	struct crema_gauge *g;

	if (!task) {
		crema_shm->unmeasured.outside++;
		return;
	}
	bytes = cut_text(name, bytes, SECTION_NAME_BYTES);
	if (!bytes || value - value != 0) {
		crema_shm->unmeasured.values++;
		return;
	}
	g = gauge_row(task, name, (uint32_t)bytes, 0);
	if (g)
		gauge_value(g, 0, value);
}
