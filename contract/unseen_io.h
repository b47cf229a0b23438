/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unseen_io.h - workers whose I/O is not done by calls, so that nothing counts it:
 *
 *   io_uring   reads, writes, sends and receives, and the kernel's own threads may be charged for
 *              the storage. The shim finds a ring that is made through libc's syscall(), liburing's
 *              exported functions or the Python package liburing; the agent finds any other one
 *              among the worker's descriptors, a few times a second.
 *   a GPU      GPUDirect Storage (cuFile, which KvikIO uses) moves bytes of files between storage
 *              and a GPU's memory. The shim sees its driver's device being opened; the agent finds
 *              it among the descriptors.
 *
 *   POSIX aio  reads and writes in threads of libc's own. Each request shows its task, or comes
 * from a thread without one, as io_uring's may not: only these tasks are affected, and those that
 * run when such a thread requests something.
 *
 * The first two call crema_unseen_io() on the shared memory. It takes no lock, and any thread may
 * call it more than once.
 */
#ifndef CREMA_CONTRACT_UNSEEN_IO_H
#define CREMA_CONTRACT_UNSEEN_IO_H

#include <string.h>

#include "shm.h"

enum crema_unseen_io {
	CREMA_UNSEEN_RING = 1,
	CREMA_UNSEEN_GPU = 2,
	CREMA_UNSEEN_AIO = 4,
};

/* 1 for a device of GPUDirect Storage. */
static inline int crema_is_gpu_device(const char *path)
{
	static const char begins[] = "/dev/nvidia-fs";

	return !strncmp(path, begins, sizeof(begins) - 1);
}

/* The counts that reads and writes of files belong to. */
#define CREMA_FILE_COUNTS                                                                          \
	(CREMA_COUNT_BIT(read_calls) | CREMA_COUNT_BIT(read_bytes) |                               \
	 CREMA_COUNT_BIT(storage_read_bytes) | CREMA_COUNT_BIT(storage_unsure_bytes) |             \
	 CREMA_COUNT_BIT(storage_write_bytes) | CREMA_COUNT_BIT(write_calls) |                     \
	 CREMA_COUNT_BIT(write_bytes) | CREMA_COUNT_BIT(late_bytes) |                              \
	 CREMA_COUNT_BIT(other_read_calls) | CREMA_COUNT_BIT(other_read_bytes) |                   \
	 CREMA_COUNT_BIT(large_read_bytes) | CREMA_COUNT_BIT(cached_bytes) |                       \
	 CREMA_COUNT_BIT(readahead_bytes))

/* Those that are unknown for the ways in `seen`. */
static inline uint64_t crema_unseen_counts(uint32_t seen)
{
	return (seen ? CREMA_FILE_COUNTS : 0) |
	       (seen & CREMA_UNSEEN_RING ? CREMA_NETWORK_COUNTS : 0);
}

/* `ways` were found; the tasks are another matter. Unknown from now on: for the process and its
 * files. */
static inline void crema_unseen_in_process(struct crema_shm *m, uint32_t ways)
{
	__atomic_fetch_or(&m->unseen_io, ways, __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&m->totals.count_unknown, crema_unseen_counts(ways), __ATOMIC_RELAXED);
}

/* `ways` were found. Unknown from now on: for running tasks, later ones and the process; with
 * ended_too also for tasks whose records are still in their slots. */
static inline void crema_unseen_io(struct crema_shm *m, uint32_t ways, int ended_too)
{
	uint64_t counts = crema_unseen_counts(ways);

	crema_unseen_in_process(m, ways);
	for (uint32_t i = 0; i < CREMA_SHM_TASKS; i++) {
		uint32_t word = __atomic_load_n(&m->slot_word[i], __ATOMIC_SEQ_CST);

		if (word && (ended_too || CREMA_SLOT_STATE(word) != CREMA_SLOT_DONE))
			__atomic_fetch_or(&m->task[i].count_unknown, counts, __ATOMIC_RELAXED);
	}
}

/* A new task's unknown counts. The slot was cleared before: what is found meanwhile is either seen
 * here or marks the slot. */
static inline uint64_t crema_unseen_io_counts(const struct crema_shm *m)
{
	return crema_unseen_counts(__atomic_load_n(&m->unseen_io, __ATOMIC_SEQ_CST) &
				   ~(uint32_t)CREMA_UNSEEN_AIO);
}

#endif
