/* SPDX-License-Identifier: BSD-3-Clause */
/* packed.c - a ring of files, and what becomes unknown when a task writes one. */
#define _GNU_SOURCE
#include "shim/count/packed.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "shim/count/codec.h"
#include "shim/count/task.h"
#include "shim/libc/sys.h"

#define FILES 1024u

static struct {
	uint64_t dev, ino;
} files[FILES];
static uint32_t marked; /* in total */

int packed_is(uint64_t dev, uint64_t ino)
{
	uint32_t n = __atomic_load_n(&marked, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n && i < FILES; i++)
		if (LOAD(&files[i].ino) == ino && LOAD(&files[i].dev) == dev)
			return 1;
	return 0;
}

int packed_mark(const char *path)
{
	int fd = sys_open(path, O_PATH | O_CLOEXEC, 0);
	struct stat st;
	int ok = fd >= 0 && !SYS2(SYS_fstat, fd, &st);

	if (fd >= 0)
		sys_close(fd);
	if (!ok || packed_is(st.st_dev, st.st_ino))
		return 0;
	STORE(&files[marked % FILES].dev, (uint64_t)st.st_dev);
	STORE(&files[marked % FILES].ino, (uint64_t)st.st_ino);
	__atomic_store_n(&marked, marked + 1, __ATOMIC_RELEASE);
	return 1;
}

void packed_written(uint32_t owner)
{
	struct crema_task *task = task_slot(owner);

	if (task)
		__atomic_fetch_or(&task->count_unknown, CODEC_COUNTS(compress), __ATOMIC_RELAXED);
	__atomic_fetch_or(&crema_shm->totals.count_unknown, CODEC_COUNTS(compress),
			  __ATOMIC_RELAXED);
}
