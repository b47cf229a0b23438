/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h - events, for every file of the shim that keeps something about them.
 *
 * Each event is one function in notify.c: a fixed list of direct calls. The code that sees the
 * event calls it here; the notified files do not depend on each other. A file that starts to keep
 * something by descriptor or by task adds its line there.
 *
 * Armed process only, except notify_forked*(); any thread, no lock, no allocation.
 */
#ifndef CREMA_SHIM_PYTHON_NOTIFY_H
#define CREMA_SHIM_PYTHON_NOTIFY_H

#include <stdint.h>

/* fd means something else from now on; this thread has opened it; all from first to last. */
void notify_fd_closed(int fd);
void notify_fd_opened(int fd);
/* What open() of that path has returned. */
void notify_opened(int fd, const char *path);
void notify_fds_closed(unsigned int first, unsigned int last);

/* A task's start, and its end: its segment has been folded. */
void notify_task_begins(uint32_t owner);
void notify_task_ends(uint32_t owner, uint32_t status);

/* The thread that forked, in a child that is not armed and has no other threads: its thread-local
 * memory is about its parent. Before another thread can arm the child. */
void notify_forked_thread(void);
/* A forked child is about to be armed: private memory about its parent's shared memory and threads
 * is meaningless here. GIL held. */
void notify_forked(void);

#endif
