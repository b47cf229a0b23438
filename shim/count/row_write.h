/* SPDX-License-Identifier: BSD-3-Clause */
/* row_write.h - a row that one thread at a time writes: seq is odd meanwhile, and a reader that
 * finds it changed reads again. */
#ifndef CREMA_SHIM_COUNT_ROW_WRITE_H
#define CREMA_SHIM_COUNT_ROW_WRITE_H

#include "shim/shim.h"

static inline void row_write_begins(uint64_t *seq)
{
	STORE(seq, *seq + 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void row_write_ends(uint64_t *seq)
{
	__atomic_store_n(seq, *seq + 1, __ATOMIC_RELEASE);
}

#endif
