/* SPDX-License-Identifier: BSD-3-Clause */
/* overlap.c - unions of pool threads' calls. */
#include "shim/count/overlap.h"

#include "shim/count/thread.h"
#include "shim/libc/sys.h"

/* overlap_active: how many calls are under way (top 16 bits) and since when at least one has been
 * (48 bits of ns). One word, so that the last to leave takes the start time with it. */
#define SINCE_BITS CREMA_OVERLAP_SINCE_BITS
#define SINCE_MASK ((1ull << SINCE_BITS) - 1)
#define ONE (1ull << SINCE_BITS)

static uint64_t now_ns(void)
{
	return ticks_ns(ticks() - crema_shm->armed_tsc) & SINCE_MASK;
}

void overlap_enter(struct crema_task *task, enum crema_overlap c)
{
	uint64_t *word = &task->overlap_active[c], old = LOAD(word), next;

	do
		next = old >> SINCE_BITS ? old + ONE : ONE | now_ns();
	while (!__atomic_compare_exchange_n(word, &old, next, 0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
}

void overlap_leave(struct crema_task *task, enum crema_overlap c, uint64_t waited_ns)
{
	uint64_t *word = &task->overlap_active[c], old = LOAD(word);

	if (waited_ns && c != CREMA_OVERLAP_REQUEST)
		ADD(&task->overlap_waited_ns[c], waited_ns);
	do
		if (!(old >> SINCE_BITS))
			return;
	while (!__atomic_compare_exchange_n(word, &old, old - ONE, 0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	if (old >> SINCE_BITS == 1)
		ADD(&task->overlap_union_ns[c], (now_ns() - old) & SINCE_MASK);
}

void overlap_mark(const struct crema_task *task, struct overlap_mark *m)
{
	for (int c = 0; c < CREMA_OVERLAPS; c++) {
		uint64_t word = LOAD(&task->overlap_active[c]);

		m->waited_ns[c] =
			c == CREMA_OVERLAP_REQUEST ? 0 : LOAD(&task->overlap_waited_ns[c]);
		m->union_ns[c] = LOAD(&task->overlap_union_ns[c]);
		if (word >> SINCE_BITS)
			m->union_ns[c] += (now_ns() - word) & SINCE_MASK;
	}
}

uint64_t overlap_since(const struct crema_task *task, const struct overlap_mark *m,
		       enum crema_overlap c, uint64_t waited_ns)
{
	struct overlap_mark now;
	uint64_t most;

	overlap_mark(task, &now);
	most = now.union_ns[c] - m->union_ns[c];
	if (c != CREMA_OVERLAP_REQUEST && now.waited_ns[c] - m->waited_ns[c] < most)
		most = now.waited_ns[c] - m->waited_ns[c];
	return most < waited_ns ? most : waited_ns;
}
