/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.h - the thread's own counters and its work segments.
 *
 * A thread counts into its block in shared memory without atomics. A segment is a period of work
 * for one owner: a task slot, or none. At its end the block is folded into the owner's slot and
 * into the totals with atomic adds. Segments nest: the inner one interrupts the outer one.
 *
 * All functions: armed process only, any thread, no lock, no allocation, errno untouched.
 */
#ifndef CREMA_SHIM_COUNT_THREAD_H
#define CREMA_SHIM_COUNT_THREAD_H

#include "shim/shim.h"
#include "ticks.h"

#define OWNER_NONE 0u
#define OWNER_REFUSED (CREMA_SHM_TASKS + 1u) /* a task that found no slot: totals only */

struct owner {
	uint32_t owner, is_pool;
};

extern __thread struct crema_thread *thread_block;

/* What the calling thread runs; NULL: the first thread, or unknown. */
extern __thread void *(*thread_routine)(void *);
/* Where the interpreter's code is; empty: unknown. */
extern uintptr_t thread_python_from, thread_python_to;
/* 1 if a library with threads of its own started the calling one, not the interpreter. */
static inline int thread_is_native(void)
{
	uintptr_t at = (uintptr_t)thread_routine;

	return at && LOAD(&thread_python_to) &&
	       (at < LOAD(&thread_python_from) || at >= LOAD(&thread_python_to));
}

struct crema_thread *thread_adopt(void);

/* A thread that found the table of blocks full. What it does is not counted, so the numbers of the
 * tasks that it works for are unknown (task_unblocked). */
extern __thread struct thread_refused {
	uint32_t yes;
	uint32_t freed;	   /* blocks released before it last searched */
	struct owner work; /* in place of the block's owner and is_pool */
} thread_refused;

/* This thread's block; NULL when the table is full (each such thread is counted once). */
static inline struct crema_thread *thread_self(void)
{
	return likely(thread_block != NULL) ? thread_block : thread_adopt();
}

/* Until thread_show(), calls in this thread are not counted: a library's call counts as a whole.
 * NULL: nothing happens. */
extern __thread int thread_hidden;
static inline void thread_hide(const struct crema_thread *t)
{
	if (!t)
		return;
	thread_hidden = 1;
	thread_block = NULL;
}
static inline void thread_show(struct crema_thread *t)
{
	thread_hidden = 0;
	thread_block = t;
}

/* Starts working for `owner`; returns the previous owner. */
struct owner segment_begin(uint32_t owner, uint32_t is_pool);
/* Ends that work and continues for `before`; returns the tick of that, 0 in a thread without a
 * block. */
uint64_t segment_end(struct owner before);
/* The owner that this thread works for now (OWNER_NONE: none). */
uint32_t segment_owner(void);
/* Span (string id) of the task this thread works for. */
uint32_t segment_span(void);

/* Registers every thread the process has; called while arming. */
void thread_register_all(void);
/* Creates the key whose destructor is the thread exit hook; called while arming. */
void thread_key_make(void);
/* Thread start and exit hooks. */
void thread_enter(void);
void thread_leave(void);
/*
 * A thread that a task starts belongs to the task as long as it runs, even after the task's end.
 * The thread takes over the reference to the slot.
 *
 * Some threads outlive their task to serve others. If such a thread is woken from a wait on a lock
 * after its task has ended, another owner has handed it work: it is unattributed from then on.
 */
void thread_inherit(uint32_t owner);
void thread_disinherit(void);
/* For a forked child: it inherited nothing, and has no block. */
void thread_forget(void);
void thread_woken(struct crema_thread *t);
/*
 * The thread `tid` of this block has ended. If it did so without thread_leave() (it existed before
 * the shim), keeps its known numbers, frees the block and returns 1. 0: the block is another
 * thread's by now, or free.
 */
int thread_reap(struct crema_thread *t, uint32_t tid);

/* Adds what this thread read from a file and has not yet added to the file's row. */
void thread_flush_file(struct crema_thread *t);

/* The segment continues with another file row; a bracketed call was charged these storage bytes. */
void segment_touches(uint32_t row);
void segment_charged(uint64_t bytes);

/* Storage blocks of 512 bytes charged to a thread of this process so far; -errno. */
int thread_io(uint32_t tid, uint64_t *inblock, uint64_t *oublock);

static inline uint64_t ticks_ns(uint64_t dt)
{
	return crema_ticks_ns(dt, crema_shm->tsc_mult);
}

#endif
