/* SPDX-License-Identifier: BSD-3-Clause */
/* segment.c - work segments: what is charged at their ends, and folding. */
#define _GNU_SOURCE
#include "shim/count/segment.h"

#include <string.h>

#include "shim/count/clock.h"
#include "shim/count/extent.h"
#include "shim/count/runqueue.h"
#include "shim/count/file_row.h"
#include "shim/libc/sys.h"
#include "shim/count/task.h"

/* Which files this segment touched, and what bracketed calls were charged for them. Private: if a
 * task is killed, only the files' storage bytes lack this, the task's do not. */
static __thread struct {
	uint32_t row, rows;
	uint64_t charged_bytes;
} touched;

void segment_touches(uint32_t row)
{
	if (row && row == touched.row)
		return;
	touched.row = row;
	touched.rows++;
}

void segment_charged(uint64_t bytes)
{
	touched.charged_bytes += bytes;
}

/* What was charged outside bracketed calls (small reads, page faults). If the segment touched one
 * file, that file gets it; with several files the span's rest row gets it. */
static void charge_rest(struct crema_thread *t, uint64_t storage_bytes)
{
	uint32_t row;

	if (storage_bytes > touched.charged_bytes && task_slot(t->owner)) {
		row = touched.rows == 1 && touched.row ? touched.row
						       : file_rest_row(task_slot(t->owner)->span);
		ADD(&crema_shm->file[row - 1].storage_read_bytes,
		    storage_bytes - touched.charged_bytes);
	}
}

/* Takes it in one instruction: a signal handler may count in between. */
static void move(uint64_t *from, uint64_t *to, uint64_t *total)
{
	uint64_t v = LOAD(from);

	if (!v)
		return;
	v = __atomic_exchange_n(from, 0, __ATOMIC_RELAXED);
	if (to)
		ADD(to, v);
	ADD(total, v);
}

void thread_flush_file(struct crema_thread *t)
{
	extent_flush(t);
	if (t->file_row) {
		struct crema_file *f = &crema_shm->file[t->file_row - 1];
		struct crema_opened *o =
			t->file_opened ? &crema_shm->opened[t->file_opened - 1] : NULL;

		move(&t->file_read_calls, o ? &o->read_calls : NULL, &f->read_calls);
		move(&t->file_read_bytes, o ? &o->read_bytes : NULL, &f->read_bytes);
	}
	t->file_row = t->file_opened = 0;
}

/* Reads all but the run queue's delay; returns the thread's turn. */
static uint64_t clocks_take(struct boundary *b)
{
	struct rusage ru;
	uint64_t turn;

	b->tick = ticks();
	b->cpu_ns = clock_cpu_asked_ns();
	turn = clock_usage(&ru);
	b->inblock = (uint64_t)ru.ru_inblock;
	b->oublock = (uint64_t)ru.ru_oublock;
	b->nvcsw = (uint64_t)ru.ru_nvcsw;
	b->nivcsw = (uint64_t)ru.ru_nivcsw;
	b->majflt = (uint64_t)ru.ru_majflt;
	return turn;
}

/* Of the calling thread, whose block is t: nothing is held (runqueue.h) afterwards. */
static void boundary_take(struct crema_thread *t, struct boundary *b)
{
	uint64_t turn;
	int times = 0;

	do {
		turn = clocks_take(b);
		runqueue_settle(t, turn);
		b->runqueue_ns = runqueue_ns_at(turn, b->tick, b->cpu_ns);
	} while (runqueue_read_again(b->tick, &times));
}

static void segment_charge(struct crema_thread *t, const struct boundary *b, uint64_t pieces)
{
	uint64_t *time = t->seg.time, *count = t->seg.count;

	time[CREMA_T_cpu] += b->cpu_ns - t->base_cpu_ns;
	if (unlikely(b->runqueue_ns < 0))
		task_time_unknown(t->owner, CREMA_T_runqueue);
	else if (likely(t->base_runqueue_ns != CREMA_BASE_UNKNOWN))
		time[CREMA_T_runqueue] += (uint64_t)b->runqueue_ns - t->base_runqueue_ns;
	count[CREMA_C_storage_read_bytes] += (b->inblock - t->base_inblock) * 512;
	charge_rest(t, (b->inblock - t->base_inblock) * 512);
	count[CREMA_C_storage_write_bytes] += (b->oublock - t->base_oublock) * 512;
	count[CREMA_C_voluntary_switches] += b->nvcsw - t->base_nvcsw;
	count[CREMA_C_involuntary_switches] += b->nivcsw - t->base_nivcsw;
	count[CREMA_C_major_faults] += b->majflt - t->base_majflt;
	if (t->is_pool) {
		count[CREMA_C_pool_segments] += pieces;
		count[CREMA_C_pool_wall_ns] += ticks_ns(b->tick - t->base_tick);
	}
}

static void segment_base(struct crema_thread *t, const struct boundary *b)
{
	t->base_tick = b->tick;
	t->base_cpu_ns = b->cpu_ns;
	t->base_runqueue_ns = b->runqueue_ns >= 0 ? (uint64_t)b->runqueue_ns : CREMA_BASE_UNKNOWN;
	t->base_inblock = b->inblock;
	t->base_oublock = b->oublock;
	t->base_nvcsw = b->nvcsw;
	t->base_nivcsw = b->nivcsw;
	t->base_majflt = b->majflt;
}

__thread struct section_carry section_carry;

/* Moves the block's counts to their owner. `folding` is set meanwhile: if the process dies in these
 * few nanoseconds, the numbers of the block may be in both places, and the agent reports that. */
void segment_fold(struct crema_thread *t)
{
	struct crema_totals *totals = &crema_shm->totals;
	struct crema_task *task = task_slot(t->owner);
	uint64_t *total_time = t->owner == OWNER_NONE ? totals->unattributed.time
			       : t->is_pool	      ? totals->tasks_pool_time
						      : totals->tasks.time;
	uint64_t *total_count =
		t->owner == OWNER_NONE ? totals->unattributed.count : totals->tasks.count;
	uint64_t *task_time = !task ? NULL : t->is_pool ? task->pool_time : task->own.time;

	__atomic_store_n(&t->folding, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	thread_flush_file(t);
	if (unlikely(section_carry.to != NULL) && section_carry.owner == t->owner)
		counters_add(section_carry.to, &t->seg);
	for (int i = 0; i < CREMA_TIMES; i++)
		move(&t->seg.time[i], task_time ? &task_time[i] : NULL, &total_time[i]);
	for (int i = 0; i < CREMA_COUNTS; i++)
		move(&t->seg.count[i], task ? &task->own.count[i] : NULL, &total_count[i]);
	if (task && task_is_done(t->owner))
		__atomic_fetch_add(&task->version, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&t->folding, 0, __ATOMIC_RELEASE);
}

/* b: the end of the current segment and the start of the next. */
static void next_segment(struct crema_thread *t, uint32_t owner, uint32_t is_pool, uint64_t pieces,
			 const struct boundary *b)
{
	if (t->owner != OWNER_NONE)
		segment_charge(t, b, pieces);
	memset(&touched, 0, sizeof(touched));
	segment_fold(t);
	segment_base(t, b);
	if (unlikely(b->runqueue_ns < 0))
		task_time_unknown(owner, CREMA_T_runqueue);
	t->is_pool = is_pool;
	__atomic_store_n(&t->owner, owner, __ATOMIC_RELEASE);
}

static void switch_to(struct crema_thread *t, uint32_t owner, uint32_t is_pool, uint64_t pieces)
{
	struct boundary b;

	memset(&b, 0, sizeof(b));
	if (t->owner != OWNER_NONE || owner != OWNER_NONE)
		boundary_take(t, &b);
	next_segment(t, owner, is_pool, pieces, &b);
}

void segment_last(struct crema_thread *t, struct boundary *b)
{
	memset(b, 0, sizeof(*b));
	if (t->owner != OWNER_NONE)
		boundary_take(t, b);
	else
		clocks_take(b);
	next_segment(t, OWNER_NONE, 0, 1, b);
}

/* Ends the current segment and begins one for `owner`. */
static void segment_switch(struct crema_thread *t, uint32_t owner, uint32_t is_pool)
{
	switch_to(t, owner, is_pool, 1);
}

void segment_cut(struct crema_thread *t)
{
	switch_to(t, t->owner, t->is_pool, 0);
}

static struct owner begin_without_block(uint32_t owner, uint32_t is_pool)
{
	struct owner before = thread_refused.work;

	if (!thread_refused.yes)
		return before;
	thread_refused.work = (struct owner){owner, is_pool};
	task_unblocked(owner);
	return before;
}

struct owner segment_begin(uint32_t owner, uint32_t is_pool)
{
	struct crema_thread *t = thread_self();
	struct owner before;

	if (unlikely(!t))
		return begin_without_block(owner, is_pool);
	before.owner = t->owner;
	before.is_pool = t->is_pool;
	segment_switch(t, owner, is_pool);
	return before;
}

uint64_t segment_end(struct owner before)
{
	struct crema_thread *t = thread_self();

	if (unlikely(!t)) {
		thread_refused.work = before;
		return 0;
	}
	segment_switch(t, before.owner, before.is_pool);
	return t->base_tick;
}

uint32_t segment_owner(void)
{
	struct crema_thread *t = thread_self();

	return likely(t != NULL) ? t->owner : thread_refused.work.owner;
}

uint32_t segment_span(void)
{
	struct crema_task *task = task_slot(segment_owner());

	return task ? task->span : 0;
}
