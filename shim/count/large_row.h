/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * large_row.h - rows of large allocations by stack (shm_large.h), and their sums.
 *
 * The caller has entered (large.c): one thread at a time, and the sequence number is odd.
 */
#ifndef CREMA_SHIM_COUNT_LARGE_ROW_H
#define CREMA_SHIM_COUNT_LARGE_ROW_H

#include "shim/shim.h"

struct large_stack {
	const struct crema_task *task;
	const struct crema_py_frame *frame;
	uint64_t hash; /* byte_sample_hash() */
	uint32_t pool, depth, cut;
};

/* While arming. */
void large_rows_begin(void);
/* 1, and the index of its row: if there is no other, one for stacks that found none. 0: no room. */
int large_row_of(const struct large_stack *s, uint16_t *row);
void large_row_allocate(uint16_t row, uint64_t bytes);
void large_row_free(uint16_t row, uint64_t bytes);
void large_row_keep(uint16_t row, int64_t bytes);

#endif
