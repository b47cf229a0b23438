/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lend.h - a thread without a task reads a file that a task has opened: the task owns the read.
 *
 * So reads of libraries with threads of their own (libarrow's) find their task. The thread works
 * for it as a pool thread during the call only: bytes, storage bytes, CPU and waits of the call go
 * there. Costs two boundaries of a segment (a few us), in such threads only.
 *
 * A word per descriptor, private memory. A descriptor that the opener's task has left open belongs
 * to it as long as its record is not sent, then to nobody.
 */
#ifndef CREMA_SHIM_COUNT_LEND_H
#define CREMA_SHIM_COUNT_LEND_H

#include "shim/count/thread.h"

struct lend {
	uint32_t owner; /* OWNER_NONE: nothing was lent */
	struct owner before;
};

/* fd was opened by this thread. */
void lend_opened(int fd);
void lend_forget(int fd);

/* Lends this thread, which has no task, to the one that opened fd, until lend_end(). */
void lend_begin(struct lend *l, int fd);
void lend_end(struct lend *l);

/* The same around a call that reads fd ahead: that is charged to the thread which asks for it. */
void advise_begin(struct lend *l, int fd);
void advise_end(struct lend *l);

#endif
