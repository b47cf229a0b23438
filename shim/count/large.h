/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * large.h - which Python stacks hold memory: the large allocations of tasks, each until it is
 * freed.
 *
 * A block that a thread allocates while it works for a task, of large_least bytes or more as
 * requested, is kept in a private table with its task and the row of its stack (shm_large.h). The
 * rows are exact for what is recorded: bytes allocated, live now, live at the span's maximum, and
 * kept, which is live although the task has ended. A block that realloc() moves is from then on its
 * caller's. What finds no room is counted in totals.large_refused.
 *
 * Each task counts the bytes of its blocks (large_allocated_bytes, exact) and those freed while it
 * runs (large_freed_bytes; unknown if a block found no room, or was freed while another thread
 * changed the tables).
 *
 * Smaller blocks cost a comparison; free() of a block that is not recorded costs one look at a
 * filter, and only while any is recorded.
 *
 * Threads: any; in signal handlers, too. One thread at a time changes the tables. Another one tries
 * for microseconds and then leaves it: its allocation is refused, what it frees and the end of its
 * task are settled by the next that changes them. No allocation, no lock, no system call, errno
 * untouched. A forked child is not armed and starts with empty tables.
 */
#ifndef CREMA_SHIM_COUNT_LARGE_H
#define CREMA_SHIM_COUNT_LARGE_H

#include <stddef.h>
#include <stdint.h>

#include "shim/shim.h"

/* Sanitizers bring their own malloc. */
#if defined(__has_feature)
#define LARGE_HAS_FEATURE(x) __has_feature(x)
#else
#define LARGE_HAS_FEATURE(x) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                             \
	!LARGE_HAS_FEATURE(address_sanitizer) && !LARGE_HAS_FEATURE(thread_sanitizer)
#define LARGE_INTERPOSED
#endif

#define LARGE_BITS 13
#define LARGE_BLOCKS (1u << LARGE_BITS)

extern size_t large_least;		   /* SIZE_MAX: nothing is recorded */
extern uint32_t large_live;		   /* recorded blocks */
extern uint8_t large_filter[LARGE_BLOCKS]; /* recorded blocks by large_home() */

static inline uint32_t large_home(const void *p)
{
	return (uint32_t)(((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - LARGE_BITS));
}

/* 0: this block is not recorded. */
static inline int large_may_hold(const void *p)
{
	return unlikely(LOAD(&large_live)) && unlikely(LOAD(&large_filter[large_home(p)]));
}

/* While arming: reads CREMA_LARGE_BYTES. */
void large_begin(void);
/* The interpreter ends: nothing changes from now on. */
void large_end(void);

/* The calling thread was given this block. */
void large_allocated(const void *p, size_t bytes);
/* The block will be freed. */
void large_freed(const void *p);
/*
 * realloc(): large_take() before it, because another thread may be given the address at once; the
 * block is not found until large_moved() (to: where it is now, NULL: freed) or large_stays() (it
 * failed). LARGE_NONE: it is not recorded.
 */
#define LARGE_NONE UINT32_MAX
uint32_t large_take(const void *p);
void large_moved(uint32_t block, const void *to, size_t bytes);
void large_stays(uint32_t block, const void *p);

/* The record of this task is complete. */
void large_task_ends(uint32_t owner);

#endif
