/* SPDX-License-Identifier: BSD-3-Clause */
/* file_owner.c - owners of opened files. */
#include "shim/count/file_owner.h"

#include <errno.h>

#include "shim/count/fd.h"
#include "shim/count/task.h"

/* 0, or the name of the task that opened it. */
static uint64_t openers[FD_TABLE];

void file_owner_forget(int fd)
{
	if (LOAD(&openers[fd]))
		STORE(&openers[fd], 0);
}

void file_owner_opened(int fd)
{
	uint32_t owner = segment_owner();

	if (owner != OWNER_NONE && (unsigned int)fd < FD_TABLE)
		STORE(&openers[fd], task_name(owner));
}

void file_owner_begin(struct file_owner *l, int fd)
{
	uint64_t name = (unsigned int)fd < FD_TABLE ? LOAD(&openers[fd]) : 0;

	l->owner = name ? task_ref_name(name) : OWNER_NONE;
	if (l->owner != OWNER_NONE)
		l->before = segment_begin(l->owner, 1);
}

void file_owner_end(struct file_owner *l)
{
	if (l->owner == OWNER_NONE)
		return;
	segment_end(l->before);
	task_unref(l->owner);
}

void file_owner_unseen(int fd)
{
	if ((unsigned int)fd < FD_TABLE)
		task_unseen_name(LOAD(&openers[fd]));
}

void advise_begin(struct file_owner *l, int fd)
{
	struct crema_thread *t = thread_self();

	l->owner = OWNER_NONE;
	if (unlikely(!t))
		file_owner_unseen(fd);
	if (t && t->owner == OWNER_NONE && fd_lookup(fd).kind == FD_DATA)
		file_owner_begin(l, fd);
}

void advise_end(struct file_owner *l)
{
	int saved = errno;

	file_owner_end(l);
	errno = saved;
}
