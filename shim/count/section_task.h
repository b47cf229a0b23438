/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * section_task.h - the sections of a single task, by path: how many ended, and how long they took.
 *
 * They are in a table that all tasks share, as a list that begins in the task's slot; a row becomes
 * free with the slot. What finds no room is counted in the slot: the table holds
 * CREMA_SHM_TASK_SECTIONS rows, a task at most CREMA_TASK_SECTIONS. GIL held.
 */
#ifndef CREMA_SHIM_COUNT_SECTION_TASK_H
#define CREMA_SHIM_COUNT_SECTION_TASK_H

#include "shim/shim.h"

/* Adds one that has ended. path: a string id, 0: it got none; flags: as in the section's row. */
void section_task_add(const struct crema_task *task, uint32_t path, uint32_t flags,
		      uint64_t wall_ns);

#endif
