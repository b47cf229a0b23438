/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_owner.h - a thread without a task reads a file that a task has opened: the task owns the
 * read.
 *
 * So reads of libraries with threads of their own (libarrow's) find their task. The thread works
 * for it as a pool thread during the call only: bytes, storage bytes, CPU and waits of the call go
 * there. Costs two boundaries of a segment (a few us), in such threads only.
 *
 * A word per descriptor, private memory. A descriptor that the opener's task has left open belongs
 * to it as long as its record is not sent, then to nobody.
 */
#ifndef CREMA_SHIM_COUNT_FILE_OWNER_H
#define CREMA_SHIM_COUNT_FILE_OWNER_H

#include "shim/count/thread.h"

struct file_owner {
	uint32_t owner; /* OWNER_NONE: the thread has not changed its owner */
	struct owner before;
};

/* fd was opened by this thread. */
void file_owner_opened(int fd);
void file_owner_forget(int fd);

/* Lends this thread, which has no task, to the one that opened fd, until file_owner_end(). */
void file_owner_begin(struct file_owner *l, int fd);
void file_owner_end(struct file_owner *l);

/* The same around a call that reads fd ahead: that is charged to the thread which asks for it. */
void advise_begin(struct file_owner *l, int fd);
void advise_end(struct file_owner *l);

#endif
