/* SPDX-License-Identifier: BSD-3-Clause */
/* column.c - rows of columns, and which of them each thread is reading. */
#include "shim/count/column.h"

#include <string.h>

#include "shim/count/point.h"
#include "shim/count/row_write.h"
#include "shim/count/segment.h"
#include "shim/count/task.h"
#include "shim/libc/sys.h"

enum {
	VISITS = 64, /* of all threads */
	NAMED = CREMA_SHM_COLUMNS - CREMA_SHM_COLUMNS_OTHER,
	LAST = CREMA_SHM_COLUMNS - 1,
	LOOKS = 48, /* for a row: a full table must not make reads slow */
};

/* --- rows */

static void make(struct crema_column *r, const struct crema_column *key)
{
	row_write_begins(&r->seq);
	memset((char *)r + sizeof(r->seq), 0, sizeof(*r) - sizeof(r->seq));
	r->number = crema_shm->column_rows++;
	r->column = key->column;
	r->tree = key->tree;
	r->dataset = key->dataset;
	r->span = key->span;
	r->flags = key->flags;
	__atomic_store_n(&r->state, 2, __ATOMIC_RELEASE);
	row_write_ends(&r->seq);
}

static int is(const struct crema_column *r, const struct crema_column *key)
{
	return r->column == key->column && r->tree == key->tree && r->dataset == key->dataset &&
	       r->span == key->span && (r->flags & CREMA_COLUMN_KIND) == key->flags;
}

/* The row of what did not fit, of this span; if none is left, the one for all spans. */
static struct crema_column *other_row(uint32_t span)
{
	struct crema_column key = {.span = span, .flags = CREMA_COLUMN_BEYOND}, *r;

	for (uint32_t i = NAMED; i < LAST; i++) {
		r = &crema_shm->column[i];
		if (!r->state)
			make(r, &key);
		if (r->span == span)
			return r;
	}
	r = &crema_shm->column[LAST];
	key.span = 0;
	if (!r->state)
		make(r, &key);
	return r;
}

struct crema_column *column_row(const struct crema_task *task, uint32_t name, uint32_t tree,
				uint32_t flags)
{
	const struct crema_column key = {.column = name,
					 .tree = tree,
					 .dataset = task->dataset,
					 .span = task->span,
					 .flags = flags};
	uint32_t at = name * 2654435761u + tree * 40503u + key.dataset * 97u + key.span * 31u;
	struct crema_column *idle = NULL;

	for (uint32_t i = 0; i < LOOKS && (name || flags); i++, at++) {
		struct crema_column *r = &crema_shm->column[at % NAMED];

		if (r->state && is(r, &key))
			return r;
		if (!r->state || (!idle && !r->open && r->seq == LOAD(&r->safe_seq)))
			idle = r;
		if (!r->state)
			break;
	}
	if (!idle || crema_shm->column_rows >= CREMA_SHM_COLUMN_ROWS)
		return other_row(task->span);
	make(idle, &key);
	return idle;
}

void column_add(struct crema_column *row, enum crema_column_number number, uint64_t n)
{
	row_write_begins(&row->seq);
	row->counted[number] += n;
	row_write_ends(&row->seq);
}

void column_basket(struct crema_column *row, uint64_t bytes, uint64_t raw_bytes)
{
	row_write_begins(&row->seq);
	row->baskets++;
	row->basket_bytes += bytes;
	row->basket_raw_bytes += raw_bytes;
	row_write_ends(&row->seq);
}

void column_asked_by(struct crema_column *row, const struct crema_line *line)
{
	uint32_t kept = row->lines < CREMA_COLUMN_LINES ? row->lines : CREMA_COLUMN_LINES;

	for (uint32_t i = 0; i < kept; i++)
		if (row->line[i].file == line->file && row->line[i].line == line->line)
			return;
	if (!line->file || row->lines > CREMA_COLUMN_LINES)
		return;
	row_write_begins(&row->seq);
	if (kept < CREMA_COLUMN_LINES)
		row->line[kept] = *line;
	row->lines++;
	row_write_ends(&row->seq);
}

void column_unsure(struct crema_column *row, uint32_t flag)
{
	row_write_begins(&row->seq);
	row->flags |= flag;
	row_write_ends(&row->seq);
}

/* --- what is read now */

struct column_visit {
	struct column_visit *outer; /* of this thread; of a free one: the next free */
	struct crema_column *row;
	uint64_t task; /* name of it */
	uint64_t network_wait_ns;
	struct column_asked inner; /* of the visits inside */
	struct point since;
};

static struct column_visit pool[VISITS], *free_list;
static uint32_t pool_used;

static __thread struct {
	struct column_visit *top;
	uint32_t epoch;
} mine;

static struct column_visit *top(void)
{
	return mine.epoch == shim_epoch ? mine.top : NULL;
}

static void set_top(struct column_visit *v)
{
	mine.top = v;
	mine.epoch = shim_epoch;
}

void column_forget(void)
{
	free_list = NULL;
	pool_used = 0;
	mine.top = NULL;
}

struct crema_column *column_current(void)
{
	return top() ? top()->row : NULL;
}

static struct column_visit *take(void)
{
	struct column_visit *v = free_list;

	if (v)
		free_list = v->outer;
	else if (pool_used < VISITS)
		v = &pool[pool_used++];
	return v;
}

static void give_back(struct column_visit *v)
{
	row_write_begins(&v->row->seq);
	v->row->open--;
	row_write_ends(&v->row->seq);
	set_top(v->outer);
	v->outer = free_list;
	free_list = v;
}

/* Charges what the task has counted since the visit was entered or resumed. */
static void charge(struct column_visit *v, const struct crema_task *task, const struct point *now)
{
	struct crema_column *r = v->row;
	struct point d = *now;

	point_subtract(&d, &v->since);
	v->network_wait_ns += d.own.time[CREMA_T_network_wait];
	d.own.time[CREMA_T_cpu] += d.pool_time[CREMA_T_cpu];
	row_write_begins(&r->seq);
	r->wall_ns += ticks_ns(now->tick - v->since.tick);
	r->time_unknown |= LOAD(&task->time_unknown);
	r->count_unknown |= LOAD(&task->count_unknown);
	r->fs_mask |= LOAD(&task->fs_mask);
	if (LOAD(&task->flags) & CREMA_TASK_POOL_UNSEEN)
		r->flags |= CREMA_COLUMN_UNSURE;
#define COLUMN_TIME(name, cell, title, id, help) r->name += d.own.time[CREMA_T_##id];
#define COLUMN_COUNT(name, cell, title, unit, id, help) r->name += d.own.count[CREMA_C_##id];
#include "rows.def"
	row_write_ends(&r->seq);
}

/* The task's numbers now; 0 if this thread cannot determine its part of them. */
static int look(struct crema_thread *t, struct point *now)
{
	if (t->is_pool) {
		now->tick = ticks();
		return 0;
	}
	segment_cut(t);
	point_take(t, task_slot(t->owner), now);
	return 1;
}

struct column_visit *column_enter(struct crema_column *row)
{
	struct crema_thread *t = thread_self();
	struct column_visit *outer = top(), *v;

	if (outer && outer->row == row)
		return NULL;
	v = t && task_slot(t->owner) ? take() : NULL;
	if (!v) {
		crema_shm->unmeasured.columns++;
		return NULL;
	}
	v->row = row;
	v->task = task_name(t->owner);
	v->network_wait_ns = 0;
	v->inner = (struct column_asked){.known = 1};
	v->outer = outer;
	if (look(t, &v->since) && outer && outer->task == v->task)
		charge(outer, task_slot(t->owner), &v->since);
	row_write_begins(&row->seq);
	row->open++;
	if (t->is_pool)
		row->flags |= CREMA_COLUMN_UNSURE;
	row_write_ends(&row->seq);
	set_top(v);
	return v;
}

static void asked_for(struct column_visit *v, const struct column_asked *all)
{
	const struct column_asked *inner = &v->inner;
	struct crema_column *r = v->row;

	row_write_begins(&r->seq);
	if (!all->known || !inner->known)
		r->flags |= CREMA_COLUMN_UNASKED;
	r->requests += all->requests - inner->requests;
	r->requested_ranges += all->ranges - inner->ranges;
	r->requested_bytes += all->bytes - inner->bytes;
	if (all->requests > inner->requests && v->network_wait_ns &&
	    (!r->wait_min_ns || v->network_wait_ns < r->wait_min_ns))
		r->wait_min_ns = v->network_wait_ns;
	row_write_ends(&r->seq);
}

static void asked_within(struct column_asked *outer, const struct column_asked *asked)
{
	outer->known &= asked->known;
	outer->requests += asked->requests;
	outer->ranges += asked->ranges;
	outer->bytes += asked->bytes;
}

void column_leave(struct column_visit *v, const struct column_asked *asked)
{
	struct crema_thread *t = thread_self();
	struct column_visit *outer;
	struct point now;

	if (top() != v) {
		crema_shm->unmeasured.columns++; /* another thread, or another order */
		return;
	}
	outer = v->outer && v->outer->task == v->task ? v->outer : NULL;
	if (!t || task_name(t->owner) != v->task) {
		crema_shm->unmeasured.columns++;
	} else if (look(t, &now)) {
		charge(v, task_slot(t->owner), &now);
		if (outer)
			outer->since = now;
	} else {
		column_add(v->row, CREMA_COLUMN_N_wall_ns, ticks_ns(now.tick - v->since.tick));
	}
	asked_for(v, asked);
	if (outer)
		asked_within(&outer->inner, asked);
	give_back(v);
}
