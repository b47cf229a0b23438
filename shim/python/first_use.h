/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * first_use.h - what running tasks have used before: baskets and clusters (py_uproot.c), columns
 * (py_column.c). A key's two highest bits give its kind: 0 clusters, 1 columns, 2 baskets.
 *
 * A set of keys for each of 64 tasks at most. GIL held; exceptions are cleared.
 */
#ifndef CREMA_SHIM_PYTHON_FIRST_USE_H
#define CREMA_SHIM_PYTHON_FIRST_USE_H

#include <stdint.h>

/* The task's name and owner number (task.h): 1: first use by this task, 0: used again, -1:
 * unknown. */
int first_use(uint64_t task, uint32_t owner, uint64_t key);
/* For a forked child, whose tasks may have the names of its parent's. */
void first_use_forget(void);

#endif
