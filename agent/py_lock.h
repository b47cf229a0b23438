/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * py_lock.h - which thread holds a threading.Lock or RLock of another process, by reading its
 * memory.
 *
 * An RLock stores its owner. A Lock does not: its holder is the thread with a frame in the body of
 * a `with` of this lock. That frame keeps the lock's __exit__ on its stack of values, and how many
 * values are there is read from the code's table of exceptions (of 3.10: the frame's blocks). Who
 * called acquire() without `with` cannot be found. Pure functions over `read`, no allocation.
 */
#ifndef CREMA_AGENT_PY_LOCK_H
#define CREMA_AGENT_PY_LOCK_H

#include "agent/py_stack.h"

struct py_lock {
	uint64_t object; /* address of the Lock or RLock; 0: none */
	uint64_t type;
	bool stores_owner; /* it is an RLock */
};

/* The lock for which a thread waits on that semaphore. The frame is its innermost. False: it waits
 * for something else, for a condition, or that is unknown. */
bool py_lock_of(const struct py_process *p, uint64_t semaphore, const struct py_frame *frame,
		struct py_lock *lock);
/* The ident of the thread that owns an RLock, as py_thread_ident(). 0: none, or unknown. */
uint64_t py_lock_owner(const struct py_process *p, const struct py_lock *lock);
/* The ident of the thread with that state; 0: unknown. */
uint64_t py_thread_ident(const struct py_process *p, uint64_t thread_state);
/* True if one of these frames, innermost first, is in the body of a `with` of the lock. Not if it
 * waits for a condition there: that releases the lock meanwhile. */
bool py_lock_is_within(const struct py_process *p, const struct py_lock *lock,
		       const struct py_frame *frame, size_t frames);

#endif
