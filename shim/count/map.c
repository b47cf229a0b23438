/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c - files mapped into memory. */
#include "shim/count/op.h"

#include <sys/mman.h>

#include "shim/count/fd.h"
#include "shim/count/task.h"

void map_end(int fd, size_t length, int prot)
{
	struct crema_thread *t = thread_self();
	struct crema_task *task;
	struct fd_info info;

	if (!t || !(prot & PROT_READ) || prot & PROT_EXEC)
		return;
	info = fd_lookup(fd);
	if (info.kind != FD_DATA)
		return;
	t->seg.count[CREMA_C_mapped_bytes] += length;
	if (info.row) {
		ADD(&crema_shm->file[info.row - 1].mapped_bytes, length);
		segment_touches(info.row);
	}
	task = task_slot(t->owner);
	if (task)
		__atomic_fetch_or(&task->fs_mask, 1u << info.filesystem, __ATOMIC_RELAXED);
}
