/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - when a task's thread waits for a lock while an event loop waits for the response to that
 * task's request, the thread really waits for the network.
 *
 * fsspec, s3fs and the like run one loop for all tasks: the task's thread waits for an event; the
 * loop, which has no task, waits in epoll. Two clocks show which part is the network: the task's
 * (how long its thread has been in lock waits) and the loop's (how long it has been blocked). A
 * request is under way from its first write to the last bytes received on its socket before the
 * next write. Both clocks are noted at the write and at each receive; what passed on both of them
 * in between was a wait for the network, and parallel requests count once. So none of these is
 * counted as the network: the loop's own work, a lock wait that no request of the task spans,
 * another task's request. fsspec waits one second at a time: bytes may also end what was already
 * charged as lock waits; that part is moved.
 *
 * What has no response yet is a lock wait until its next bytes come.
 *
 * No locks. A task's clock is written by its own thread; the rest by the loop's.
 */
#ifndef CREMA_SHIM_COUNT_LOOP_H
#define CREMA_SHIM_COUNT_LOOP_H

#include <stdint.h>

/* The slot of `owner` begins to mean the named task. */
void loop_task_begins(uint32_t owner, uint64_t name);
/* The task's own thread begins, and ends, a lock wait. */
void loop_lock_begins(uint32_t owner);
void loop_lock_ends(uint32_t owner);
/* 1 if loop_take() has something to return. */
int loop_answered(uint32_t owner);
/* What responses have ended since the last call: ns of the last lock wait, and of earlier ones. */
void loop_take(uint32_t owner, uint64_t *of_last_ns, uint64_t *of_earlier_ns);

/* 1 if the calling thread is a loop that has written requests for tasks. */
int loop_is_this_thread(void);
/* The loop was blocked for this long. */
void loop_waited(uint64_t ns);

/* The loop writes on fd for the named task (0: unattributed), or receives bytes for it (0 bytes:
 * the end). */
void loop_wrote(int fd, uint64_t name);
void loop_received(int fd, uint64_t name, uint64_t bytes);

#endif
