/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose.h - makes one task record from its slot and the thread blocks that work for it.
 *
 * Works on copies; texts stay views into the copy or the arena. Every value that cannot be trusted
 * or was not measured stays unknown.
 */
#ifndef CREMA_AGENT_COMPOSE_H
#define CREMA_AGENT_COMPOSE_H

#include "agent/fskinds.h"
#include "common/task.h"
#include "common/view.h"

/* Numbers of current work that only the kernel has: the largest values ever seen. */
struct compose_live {
	uint64_t cpu[2], runqueue[2]; /* own thread, pool threads; totals of the attempt */
	uint64_t storage_read, storage_write;
};

struct compose {
	const struct view *view;
	const struct fskinds *kinds;
	int pid;		   /* 0: the worker has ended, do not query the kernel */
	uint64_t mono_ns, boot_ns; /* now; for a dead worker: its last update */
	struct buf *text;	   /* for sections, valid until the next task; NULL: none */
};

/*
 * Fills the record (type and rev are the caller's) from the copied slot. `state`: RUNNING or DONE.
 * The blocks of threads are added if `blocks`. `live` is raised to what is found and used. With
 * `killed` a running task gets status killed and a stop.
 */
void compose_task(const struct compose *c, struct task_record *r, const struct crema_task *t,
		  uint32_t slot, uint32_t state, bool blocks, bool killed,
		  struct compose_live *live);
/* A sum that changes whenever a counter of the slot does. */
uint64_t compose_sum(const struct crema_task *t);

#endif
