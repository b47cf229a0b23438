/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overlap.h - when a task's thread waits for a lock while its pool threads wait for storage (or the
 * network), the thread really waits for storage (or the network).
 *
 * Pool threads report when a call that may block begins and ends, and how long it really waited.
 * The slot keeps the time during which at least one of them was in such a call (the union) and the
 * sum of their waits. Of a lock wait, min(union, sum, wait) over its duration is the pool's: the
 * union alone would also count calls that only copied, the sum alone would count parallel waits
 * twice.
 *
 * A request (shim/count/request.h) that other threads answer is a wait from beginning to end: for
 * these only the union counts, also while they are under way.
 *
 * Any thread, atomics only.
 */
#ifndef CREMA_SHIM_COUNT_OVERLAP_H
#define CREMA_SHIM_COUNT_OVERLAP_H

#include "shm.h"

void overlap_enter(struct crema_task *task, enum crema_overlap c);
void overlap_leave(struct crema_task *task, enum crema_overlap c, uint64_t waited_ns);
struct overlap_mark {
	uint64_t union_ns[CREMA_OVERLAPS], waited_ns[CREMA_OVERLAPS];
};
void overlap_mark(const struct crema_task *task, struct overlap_mark *m);
/* How much of a wait of `waited_ns` since the mark was really the pool's wait of class c. */
uint64_t overlap_since(const struct crema_task *task, const struct overlap_mark *m,
		       enum crema_overlap c, uint64_t waited_ns);

#endif
