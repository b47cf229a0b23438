/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h - what thread.c and segment.c share: the clocks at a segment's ends and the folding of
 * a block into its owner. All other files need only thread.h.
 *
 * segment.c, task.c, thread.c and thread_inherit.c are one state machine and call each other: a
 * task that begins or ends switches its thread's segment, and a thread that ends hands over its
 * last one.
 */
#ifndef CREMA_SHIM_COUNT_SEGMENT_H
#define CREMA_SHIM_COUNT_SEGMENT_H

#include "shim/count/thread.h"

/* Clocks of the thread at a boundary between segments. The CPU clock is read first: that updates
 * the scheduler's other numbers of this thread. */
struct boundary {
	uint64_t tick, cpu_ns, inblock, oublock, nvcsw, nivcsw, majflt;
	int64_t runqueue_ns;
};

/* Ends the thread's last segment: *b gets its clocks then, except the run queue if the thread
 * worked for no task. */
void segment_last(struct crema_thread *t, struct boundary *b);
/* Ends it and continues the same work: the owner's numbers then contain all counts so far. */
void segment_cut(struct crema_thread *t);
void segment_fold(struct crema_thread *t);

static inline void counters_add(struct crema_counters *to, const struct crema_counters *more)
{
	for (int i = 0; i < CREMA_TIMES; i++)
		to->time[i] += more->time[i];
	for (int i = 0; i < CREMA_COUNTS; i++)
		to->count[i] += more->count[i];
}

/* While this thread works for that owner, its counts also go here; NULL: nowhere. Of a section that
 * is open in it. */
extern __thread struct section_carry {
	struct crema_counters *to;
	uint32_t owner;
} section_carry;

#endif
