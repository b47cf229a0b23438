/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.h - slots of task attempts.
 *
 * task_open() claims a slot and returns it as an owner number (slot index + 1) with a reference
 * that task_close() releases. Pool work holds its own references (task_ref, task_unref), so a slot
 * is not reused while any thread may still count for it. A name is an owner number and its attempt
 * in one word: it can be kept anywhere, and task_ref_name() shows whether it still means the same
 * task.
 */
#ifndef CREMA_SHIM_COUNT_TASK_H
#define CREMA_SHIM_COUNT_TASK_H

#include <stddef.h>

#include "shim/count/thread.h"

/* The slot of an owner number; NULL for no owner and for a refused task. */
static inline struct crema_task *task_slot(uint32_t owner)
{
	return owner - 1 < CREMA_SHM_TASKS ? &crema_shm->task[owner - 1] : NULL;
}

static inline int task_is_done(uint32_t owner)
{
	return CREMA_SLOT_STATE(__atomic_load_n(&crema_shm->slot_word[owner - 1],
						__ATOMIC_ACQUIRE)) == CREMA_SLOT_DONE;
}

/* A fresh slot, all zero but attempt, tid and resident set; OWNER_REFUSED when the table is
 * full. */
uint32_t task_open(void);
/* Its wall time starts with the thread's segment if that is the task's, as its CPU time does, and
 * otherwise now. The agent may send the task from now on. */
void task_running(uint32_t owner);
/* Its wall time ends at this tick, that of its segment's end (segment_end()); 0: now. Starts and
 * ends are less than 5 us late, unless the thread lost its core three times while it read the
 * clocks. */
void task_stopped(uint32_t owner, uint64_t tick);
/* The segment has been folded: the record is complete. */
void task_close(uint32_t owner, uint32_t status);

void task_ref(uint32_t owner);
void task_unref(uint32_t owner);

/* A forked child restarts the count of its first thread's executions, and reads its own memory. */
void task_forget(void);

uint64_t task_name(uint32_t owner);
/* The owner number in a name, whether or not it still means that attempt. */
uint32_t task_name_owner(uint64_t name);
/* Owner with a new reference if the named attempt still has its slot, else OWNER_NONE. */
uint32_t task_ref_name(uint64_t name);

/* Counts for a task that another thread works for, directly into its slot; the caller holds a
 * reference. OWNER_NONE: as unattributed. */
void task_add(uint32_t owner, int id, uint64_t n);
/* These counts (CREMA_COUNT_BIT) of the named task (0: none) are unknown; it may have ended. Any
 * thread. */
void task_counts_unknown(uint64_t name, uint64_t counts);
/* The same for counts that are not in the unattributed ones either: the process totals are unknown,
 * too. */
void task_counts_hidden(uint64_t name, uint64_t counts);
/* From now on, and for tasks that run now: these counts (bits) are unknown, and the task gets
 * `flags`. GIL held, or flags 0. */
void tasks_cannot_count(uint64_t counts, uint32_t flags);
/* The same, only for tasks that run now. */
void tasks_running_cannot_count(uint64_t counts, uint32_t flags);
/* How many tasks have begun to run in this process: those that it counts are found running, or have
 * ended. */
uint64_t tasks_begun(void);

void task_time_unknown(uint32_t owner, int time_id);
/* A thread without a block works for the task (OWNER_NONE: nothing happens): all its counts and
 * times are unknown. The caller holds a reference. */
void task_unblocked(uint32_t owner);
/* The same for a named task (0: none), which may have ended, if this thread is one that found no
 * block. */
void task_unseen_name(uint64_t name);
/* Before the first task: these times (bits) are unknown for all tasks. */
void tasks_cannot_time(uint32_t times);

/* Resident set of the process in bytes; 0 = cannot be read. */
uint64_t task_rss_bytes(void);
/* The kernel's high-water mark of it (VmHWM); 0 = cannot be read. */
uint64_t task_max_rss_bytes(void);
/* While arming: finds how much of the high-water mark dates from before this process's exec(). */
void task_memory_begins(void);
/* Keeps a descriptor that makes the resident set four times cheaper. Not in an intercepted call. */
void task_memory_keep(void);

#endif
