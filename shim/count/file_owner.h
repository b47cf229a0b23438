/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_owner.h - when a thread without a task reads a file that a task has opened, the task owns
 * the read.
 *
 * So reads of libraries with their own threads (libarrow's) find their task. The thread works for
 * it as a pool thread only during the call: bytes, storage bytes, CPU and waits of the call go
 * there. This costs two segment boundaries (a few us), in such threads only.
 *
 * A word per descriptor, private memory. A descriptor that the opener's task has left open belongs
 * to the task until its record is sent; then it is unattributed.
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

/* This thread, which has no task, works for the one that opened fd, until file_owner_end(). */
void file_owner_begin(struct file_owner *l, int fd);
void file_owner_end(struct file_owner *l);

/* This thread has no block and reads fd: the numbers of the task that opened it are unknown. */
void file_owner_unseen(int fd);

/* The same as begin and end around a call that reads fd ahead: that is charged to the thread that
 * requests it. */
void advise_begin(struct file_owner *l, int fd);
void advise_end(struct file_owner *l);

#endif
