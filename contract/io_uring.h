/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io_uring.h - workers that use io_uring: its reads and writes are not calls, so nothing counts
 * them, and the kernel's own threads may be charged for their storage.
 *
 * The shim finds a ring that is made through libc's syscall(), liburing's exported functions or the
 * Python package liburing; the agent finds any other one among the worker's descriptors, a few
 * times a second. Either calls crema_io_uring_seen() on the shared memory. It takes no lock, and
 * any thread may call it more than once.
 */
#ifndef CREMA_CONTRACT_IO_URING_H
#define CREMA_CONTRACT_IO_URING_H

#include "shm.h"

/* The counts that such reads and writes belong to. */
#define CREMA_IO_URING_COUNTS                                                                      \
	(CREMA_COUNT_BIT(read_calls) | CREMA_COUNT_BIT(read_bytes) |                               \
	 CREMA_COUNT_BIT(storage_read_bytes) | CREMA_COUNT_BIT(storage_unsure_bytes) |             \
	 CREMA_COUNT_BIT(storage_write_bytes) | CREMA_COUNT_BIT(write_calls) |                     \
	 CREMA_COUNT_BIT(write_bytes) | CREMA_COUNT_BIT(network_read_bytes) |                      \
	 CREMA_COUNT_BIT(network_write_bytes) | CREMA_COUNT_BIT(late_bytes) |                      \
	 CREMA_COUNT_BIT(other_read_calls) | CREMA_COUNT_BIT(other_read_bytes) |                   \
	 CREMA_COUNT_BIT(large_read_bytes) | CREMA_COUNT_BIT(cached_bytes) |                       \
	 CREMA_COUNT_BIT(readahead_bytes))

/* Unknown from now on: for running tasks, later ones and the process; with ended_too also for tasks
 * whose records are still in their slots. */
static inline void crema_io_uring_seen(struct crema_shm *m, int ended_too)
{
	__atomic_store_n(&m->io_uring, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&m->totals.count_unknown, CREMA_IO_URING_COUNTS, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < CREMA_SHM_TASKS; i++) {
		uint32_t word = __atomic_load_n(&m->slot_word[i], __ATOMIC_SEQ_CST);

		if (word && (ended_too || CREMA_SLOT_STATE(word) != CREMA_SLOT_DONE))
			__atomic_fetch_or(&m->task[i].count_unknown, CREMA_IO_URING_COUNTS,
					  __ATOMIC_RELAXED);
	}
}

/* A new task's unknown counts. The slot was cleared before: a ring that is found meanwhile is
 * either seen here or marks the slot. */
static inline uint64_t crema_io_uring_unknown(const struct crema_shm *m)
{
	return __atomic_load_n(&m->io_uring, __ATOMIC_SEQ_CST) ? CREMA_IO_URING_COUNTS : 0;
}

#endif
