/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - calls that only block, and what a lock wait really was. */
#include "shim/count/op.h"

#include <errno.h>

#include "shim/count/blocked.h"
#include "shim/count/loop.h"
#include "shim/count/request.h"
#include "shim/count/runqueue.h"
#include "shim/count/task.h"
#include "shim/count/timer.h"

static const char *runtime_start;
static size_t runtime_bytes;

void wait_set_runtime(const void *start, size_t bytes)
{
	runtime_start = start;
	runtime_bytes = bytes;
}

static int wait_class(const void *object)
{
	size_t offset = (size_t)((const char *)object - runtime_start);

	return runtime_start && offset < runtime_bytes ? CREMA_T_gil_wait : CREMA_T_lock_wait;
}

static void class_begin(struct op *op, int time_id)
{
	struct crema_task *task;

	op->t = thread_self();
	op->time_id = time_id;
	op->pool_of = op->waits_for = NULL;
	op->charges = 0;
	op->may_move = 0;
	if (op->t && op->t->owner == OWNER_NONE) {
		if (time_id == CREMA_T_network_wait && loop_is_this_thread())
			op_bracket(op, -1);
		else
			op->t = NULL;
	}
	if (!op->t || op->t->owner == OWNER_NONE)
		return;
	task = task_slot(op->t->owner);
	if (task && op->t->is_pool && time_id == CREMA_T_network_wait) {
		op->pool_of = task;
		overlap_enter(task, CREMA_OVERLAP_NETWORK);
	} else if (task && !op->t->is_pool && time_id == CREMA_T_lock_wait) {
		op->waits_for = task;
		overlap_mark(task, &op->mark);
		loop_lock_begins(op->t->owner);
	}
	op_bracket(op, time_id);
}

void wait_begin(struct op *op, const void *object)
{
	class_begin(op, wait_class(object));
}

void block_begin(struct op *op, int time_id)
{
	class_begin(op, time_id);
}

/* Of a lock wait of `waited` ns: the part that was really a loop's wait for the response to the
 * task's request. Such parts of earlier lock waits are moved. */
static uint64_t charge_requests(struct op *op, uint64_t waited)
{
	uint64_t *time = op->t->seg.time, last, earlier;

	loop_take(op->t->owner, &last, &earlier);
	if (last > waited)
		last = waited;
	if (earlier > time[CREMA_T_lock_wait])
		earlier = time[CREMA_T_lock_wait];
	time[CREMA_T_lock_wait] -= earlier;
	time[CREMA_T_network_wait] += last + earlier;
	return last;
}

/* Of a lock wait of `waited` ns: the part that was really the pool's wait for storage or the
 * network. */
static uint64_t charge_overlap(struct op *op, uint64_t waited)
{
	static const int classes[CREMA_OVERLAPS] = {[CREMA_OVERLAP_STORAGE] = CREMA_T_storage_wait,
						    [CREMA_OVERLAP_NETWORK] = CREMA_T_network_wait,
						    [CREMA_OVERLAP_REQUEST] = CREMA_T_network_wait};
	static const struct blocked_on nothing;
	uint64_t part, sum = 0, answer = 0;

	for (int c = 0; op->waits_for && c < CREMA_OVERLAPS; c++) {
		part = overlap_since(op->waits_for, &op->mark, (enum crema_overlap)c, waited - sum);
		op->t->seg.time[classes[c]] += part;
		sum += part;
		answer += c == CREMA_OVERLAP_REQUEST ? part : 0;
	}
	if (op->waits_for) {
		part = charge_requests(op, waited - sum);
		sum += part;
		answer += part;
	}
	/* Pool threads' waits have their own records; no other thread waits for these. */
	blocked_saw(op->t, CREMA_T_network_wait, answer, &nothing);
	return sum;
}

static int overlaps(struct op *op)
{
	for (int c = 0; op->waits_for && c < CREMA_OVERLAPS; c++)
		if (overlap_since(op->waits_for, &op->mark, (enum crema_overlap)c, 1))
			return 1;
	return op->waits_for && loop_answered(op->t->owner);
}

/* These waits determine what a task's lock wait is, so they must be exact at once: none is held. */
static uint64_t pool_or_loop_waited(struct op *op, const struct op_end *e)
{
	uint64_t waited = e->gross_ns ? e->gross_ns - runqueue_of_wait(op->t, e) : 0;

	if (op->pool_of) {
		overlap_leave(op->pool_of, CREMA_OVERLAP_NETWORK,
			      op->time_id == CREMA_T_network_wait ? waited : 0);
		op->t->seg.time[op->time_id] += waited;
	} else {
		loop_waited(waited);
	}
	return waited;
}

/* The part of a long wait that is charged to its own class. What may be moved is not held: its
 * delay would be subtracted from the class that it was in. */
static uint64_t waited_itself(struct op *op, const struct op_end *e)
{
	uint64_t waited;

	if (!e->gross_ns)
		return 0;
	if (!op->may_move && !overlaps(op) && runqueue_hold(op->t, op->time_id, e))
		return 0;
	waited = e->gross_ns - runqueue_of_wait(op->t, e);
	waited -= charge_overlap(op, waited);
	op->t->seg.time[op->time_id] += waited;
	return waited;
}

/* *waited: what is charged already. Returns 1 if it blocked. */
static int end_on(struct op *op, int result, const struct blocked_on *on, uint64_t *waited)
{
	struct op_end e = op_end(op);
	int of_nobody = op->t->owner == OWNER_NONE;

	if (op->waits_for)
		loop_lock_ends(op->t->owner);
	*waited = op->pool_of || of_nobody ? pool_or_loop_waited(op, &e) : waited_itself(op, &e);
	if (op->time_id == CREMA_T_gil_wait)
		blocked_saw_gil(op->t, *waited, op->start, result == ETIMEDOUT);
	else if (!of_nobody)
		blocked_saw(op->t, op->time_id, *waited, on);
	return e.gross_ns != 0;
}

int wait_end(struct op *op, int result)
{
	static const struct blocked_on nothing;
	uint64_t waited;

	return end_on(op, result, &nothing, &waited);
}

void wait_end_woken(struct op *op, int result)
{
	int saved = errno;

	if (wait_end(op, result) && !result && op->time_id == CREMA_T_lock_wait)
		thread_woken(op->t);
	errno = saved;
}

void lookup_begin(struct op *op)
{
	class_begin(op, CREMA_T_network_wait);
	thread_hide(op->t);
}

void lookup_end(struct op *op, const char *host)
{
	struct blocked_on on = {.on = CREMA_ON_HOST, .host = host};
	uint64_t elapsed = ticks_ns(ticks() - op->start), waited;

	thread_show(op->t);
	op->t->seg.count[CREMA_C_lookup_calls]++;
	op->t->seg.count[CREMA_C_lookup_ns] += elapsed;
	end_on(op, 0, &on, &waited);
}

void poll_end(struct op *op, int result, int time_id)
{
	static const struct blocked_on nothing;
	uint64_t waited;

	if (time_id >= 0)
		op->time_id = time_id;
	else if (!result && op->time_id == CREMA_T_network_wait && !timer_under_way(op->t) &&
		 !request_under_way(op->t->owner))
		op->may_move = 1;
	if (op->may_move || (!result && op->time_id == CREMA_T_lock_wait))
		op->time_id = CREMA_T_sleep;
	end_on(op, 0, &nothing, &waited);
	if (op->may_move && waited && op->t->owner != OWNER_NONE)
		timer_slept(op->t, waited);
}

int wait_matters(void)
{
	struct crema_thread *t = thread_self();

	return t && (t->owner != OWNER_NONE || loop_is_this_thread());
}
