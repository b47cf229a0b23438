/* SPDX-License-Identifier: BSD-3-Clause */
/* request.c - a task's requests that other threads send and receive. */
#include "shim/count/request.h"

#include "shim/count/overlap.h"
#include "shim/count/task.h"

void request_begin(uint64_t name)
{
	uint32_t owner = task_ref_name(name);
	struct crema_task *task = task_slot(owner);

	if (!task)
		return;
	overlap_enter(task, CREMA_OVERLAP_REQUEST);
	task_unref(owner);
}

void request_end(uint64_t name)
{
	uint32_t owner = task_ref_name(name);
	struct crema_task *task = task_slot(owner);

	if (!task)
		return;
	overlap_leave(task, CREMA_OVERLAP_REQUEST, 0);
	task_unref(owner);
}

int request_under_way(uint32_t owner)
{
	const struct crema_task *task = task_slot(owner);

	return task && crema_request_under_way(task);
}

/* Claimed first: a reader that sees only the claim misses bytes, and counts none twice. */
void request_received(uint64_t name, uint64_t bytes)
{
	uint32_t owner = task_ref_name(name);
	struct crema_task *task = task_slot(owner);

	if (owner == OWNER_NONE || !bytes) { /* its record is already gone */
		task_unref(owner);
		return;
	}
	__atomic_fetch_add(&crema_shm->totals.claimed_network_read_bytes, bytes, __ATOMIC_RELEASE);
	__atomic_fetch_add(&crema_shm->totals.tasks.count[CREMA_C_network_read_bytes], bytes,
			   __ATOMIC_RELEASE);
	if (!task)
		return;
	ADD(&task->own.count[CREMA_C_network_read_bytes], bytes);
	if (task_is_done(owner))
		__atomic_fetch_add(&task->version, 1, __ATOMIC_RELEASE);
	task_unref(owner);
}
