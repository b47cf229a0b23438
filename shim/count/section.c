/* SPDX-License-Identifier: BSD-3-Clause */
/* section.c - what is open in each thread, and what is measured at both ends. */
#include "shim/count/section.h"

#include <string.h>

#include "shim/count/cut_text.h"
#include "shim/count/point.h"
#include "shim/count/section_row.h"
#include "shim/count/segment.h"
#include "shim/count/task.h"

enum { OPEN = 256 };

struct section_open {
	struct section_open *outer; /* of this thread; of a free one: the next free */
	uint64_t token, task;
	uint32_t memory, is_pool,
		untold; /* untold: counted in the row of those that did not fit, or inside one */
	struct crema_section *row;
	struct crema_gauge *gauge;
	struct section_carry carry; /* the one before */
	uint64_t rss_bytes, max_rss_bytes;
	struct point begin; /* of a pool thread: what it has counted since */
	uint32_t path_bytes;
	char path[SECTION_PATH_BYTES];
};

static struct section_open pool[OPEN], *free_list;
static uint32_t pool_used;
static uint64_t tokens;

static __thread struct {
	struct section_open *top;
	uint32_t epoch;
} mine;

static struct section_open *top(void)
{
	return mine.epoch == shim_epoch ? mine.top : NULL;
}

static void set_top(struct section_open *s)
{
	mine.top = s;
	mine.epoch = shim_epoch;
}

void section_forget(void)
{
	free_list = NULL;
	pool_used = 0;
	mine.top = NULL;
	section_carry.to = NULL;
}

static struct section_open *take(void)
{
	struct section_open *s = free_list;
	uint32_t depth = 0;

	for (const struct section_open *o = top(); o; o = o->outer)
		depth++;
	if (depth >= SECTION_DEPTH)
		return NULL;
	if (s)
		free_list = s->outer;
	else if (pool_used < OPEN)
		s = &pool[pool_used++];
	return s;
}

static void give_back(struct section_open *s)
{
	section_carry = s->carry;
	set_top(s->outer);
	s->token = 0;
	s->outer = free_list;
	free_list = s;
}

static void drop(struct section_open *s)
{
	if (s->memory)
		row_broken(NULL, s->gauge);
	else
		row_broken(s->row, NULL);
	give_back(s);
}

/* "outer/name"; 0 if it does not fit. */
static int put_path(struct section_open *s, const struct section_open *outer, const char *name,
		    size_t bytes)
{
	size_t n = outer ? outer->path_bytes : 0;

	bytes = cut_text(name, bytes, SECTION_NAME_BYTES);
	if (n)
		memcpy(s->path, outer->path, n);
	if (n)
		s->path[n++] = '/';
	for (size_t i = 0; i < bytes; i++) {
		if (n + 2 > SECTION_PATH_BYTES)
			return 0;
		if (name[i] == '/' || name[i] == '\\')
			s->path[n++] = '\\';
		s->path[n++] = name[i];
	}
	s->path_bytes = (uint32_t)n;
	return n > 0;
}

static void measure_begin(struct section_open *s, struct crema_thread *t)
{
	segment_cut(t);
	if (!t->is_pool) {
		point_take(t, task_slot(t->owner), &s->begin);
		return;
	}
	s->begin.tick = t->base_tick;
	memset(&s->begin.own, 0, sizeof(s->begin.own));
	section_carry.to = &s->begin.own;
	section_carry.owner = t->owner;
}

static void measure_end(struct section_open *s, struct crema_thread *t)
{
	const struct crema_task *task = task_slot(t->owner);
	struct row_delta d;
	struct point end;

	segment_cut(t);
	if (s->is_pool) {
		end.own = s->begin.own;
		memset(end.pool_time, 0, sizeof(end.pool_time));
		if (s->carry.to)
			counters_add(s->carry.to, &s->begin.own);
	} else {
		point_take(t, task, &end);
		point_subtract(&end, &s->begin);
	}
	d.wall_ns = ticks_ns(t->base_tick - s->begin.tick);
	d.own = &end.own;
	d.pool_time = end.pool_time;
	row_add(s->row, task, &d, s->untold);
}

uint64_t section_begin(const char *name, size_t bytes, int memory)
{
	struct crema_thread *t = thread_self();
	struct crema_task *task = t ? task_slot(t->owner) : NULL;
	const struct section_open *outer;
	struct section_open *s;

	if (!task) {
		crema_shm->unmeasured.outside++;
		return 0;
	}
	s = take();
	for (outer = top(); outer && outer->memory != (uint32_t)memory;)
		outer = outer->outer;
	if (!s || !name || !put_path(s, outer, name, bytes)) {
		crema_shm->unmeasured.refused++;
		if (s) {
			s->outer = free_list;
			free_list = s;
		}
		return 0;
	}
	s->token = ++tokens;
	s->task = task_name(t->owner);
	s->memory = (uint32_t)memory;
	s->is_pool = t->is_pool;
	s->carry = section_carry;
	s->outer = top();
	if (memory) {
		s->gauge = gauge_row(task, s->path, s->path_bytes, CREMA_SECTION_MEMORY);
		gauge_begun(s->gauge);
		s->rss_bytes = task_rss_bytes();
		s->max_rss_bytes = task_max_rss_bytes();
	} else {
		s->row = section_row(task, s->path, s->path_bytes,
				     t->is_pool ? CREMA_SECTION_POOL : 0);
		s->untold = outer && (outer->untold || !outer->row->path);
		row_begun(s->row);
		measure_begin(s, t);
	}
	set_top(s);
	return s->token;
}

static void memory_end(struct section_open *s)
{
	double begin = (double)s->rss_bytes, end = (double)task_rss_bytes();
	uint64_t max = task_max_rss_bytes();

	if (!s->rss_bytes || end <= 0) {
		row_broken(NULL, s->gauge);
		return;
	}
	gauge_memory(s->gauge, begin, end, max > s->max_rss_bytes ? (double)max : 0);
}

void section_end(uint64_t token)
{
	struct crema_thread *t = thread_self();
	struct section_open *s;

	for (s = top(); s && s->token != token;)
		s = s->outer;
	if (!s || !token)
		return;
	while (top() != s)
		drop(top());
	if (!t || task_name(t->owner) != s->task || t->is_pool != s->is_pool) {
		drop(s);
		return;
	}
	if (s->memory)
		memory_end(s);
	else
		measure_end(s, t);
	give_back(s);
}

struct section_open *section_enter(void)
{
	struct section_open *before = top();

	set_top(NULL);
	return before;
}

void section_leave(struct section_open *before)
{
	while (top())
		drop(top());
	set_top(before);
}
