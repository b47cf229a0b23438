/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_large.h - large allocations of tasks by Python stack, in a worker's shared memory (shm.h).
 *
 * One thread at a time writes (shim/count/large.h): crema_shm.large_seq is odd meanwhile. Stacks
 * are in the worker's own memory, at crema_shm.large_frames, with the index of the row: they are
 * written before the row gets its number, and stay until another row takes its place.
 */
#ifndef CREMA_CONTRACT_SHM_LARGE_H
#define CREMA_CONTRACT_SHM_LARGE_H

#include <stdint.h>

#include "shm_stacks.h"

#define CREMA_LARGE_ROWS 76u
#define CREMA_LARGE_ROWS_OTHER 8u /* the last of them, without frames: what found no row */
#define CREMA_LARGE_SPANS 24u

/* What the tasks of a span have allocated and not freed. At each new maximum epoch grows; an epoch
 * is never used twice in a process. */
struct crema_large_span {
	uint32_t span, used;
	int64_t live_bytes;
	uint64_t peak_bytes, epoch;
};

/* The same by stack, prefix and dataset. What was live at the maximum: share_bytes, if share_epoch
 * is the span's epoch; otherwise nothing has changed since then, and it is live_bytes. */
struct crema_large_row {
	uint64_t number;  /* of the rows made in the worker's lifetime, from 1; 0: free */
	uint64_t changes; /* grows with each change of the numbers */
	uint32_t span, prefix, dataset;
	uint32_t pool;	     /* 1: by threads that work for tasks of other threads */
	uint32_t at;	     /* index of its span */
	uint32_t depth, cut; /* of its stack; cut: outermost frames are missing */
	uint32_t full;	     /* 1: of several stacks that found no row */
	uint64_t allocations, allocated_bytes;
	int64_t live_bytes, kept_bytes; /* kept: of tasks that have ended */
	uint64_t share_bytes, share_epoch;
};

/* The agents' own: what has become part of their rows so far, of the row with this number. */
struct crema_large_told {
	uint64_t number, changes, allocations, allocated_bytes;
	int64_t live_bytes, kept_bytes;
	uint64_t share_bytes, share_epoch;
};

static inline uint64_t crema_large_share(const struct crema_large_row *r,
					 const struct crema_large_span *s)
{
	int64_t live = r->live_bytes > 0 ? r->live_bytes : 0;

	return r->share_epoch == s->epoch ? r->share_bytes : (uint64_t)live;
}

#endif
