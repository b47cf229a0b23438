/* SPDX-License-Identifier: BSD-3-Clause */
/* point.h - a task's numbers at one moment. For a task's own thread, whose segment has just been
 * cut. */
#ifndef CREMA_SHIM_COUNT_POINT_H
#define CREMA_SHIM_COUNT_POINT_H

#include "shim/count/thread.h"

struct point {
	uint64_t tick;
	uint64_t pool_time[CREMA_TIMES];
	struct crema_counters own;
};

static inline void point_take(const struct crema_thread *t, const struct crema_task *task,
			      struct point *p)
{
	p->tick = t->base_tick;
	for (int i = 0; i < CREMA_TIMES; i++) {
		p->pool_time[i] = LOAD(&task->pool_time[i]);
		p->own.time[i] = LOAD(&task->own.time[i]);
	}
	for (int i = 0; i < CREMA_COUNTS; i++)
		p->own.count[i] = LOAD(&task->own.count[i]);
}

/* The numbers, not the tick. */
static inline void point_subtract(struct point *end, const struct point *begin)
{
	for (int i = 0; i < CREMA_TIMES; i++) {
		end->pool_time[i] -= begin->pool_time[i];
		end->own.time[i] -= begin->own.time[i];
	}
	for (int i = 0; i < CREMA_COUNTS; i++)
		end->own.count[i] -= begin->own.count[i];
}

#endif
