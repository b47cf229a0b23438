/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call.h - publishes to the agent which call the thread is in, since when and on what.
 *
 * Two plain stores before the real call and one after it, into the thread's block. The start is
 * stored before the word and the word is 0 in between. So if a reader finds both unchanged when it
 * reads them again, they belong together.
 */
#ifndef CREMA_SHIM_COUNT_CALL_H
#define CREMA_SHIM_COUNT_CALL_H

#include "calls.h"
#include "shim/libc/sys.h"
#include "shim/shim.h"

static inline void call_begin(struct crema_thread *t, enum crema_call call, uint64_t object,
			      uint64_t start)
{
	__atomic_store_n(&t->call_start, start, __ATOMIC_RELEASE);
	__atomic_store_n(&t->call, crema_call_word(call, object), __ATOMIC_RELEASE);
}

static inline void call_end(struct crema_thread *t)
{
	__atomic_store_n(&t->call, 0, __ATOMIC_RELEASE);
}

#endif
