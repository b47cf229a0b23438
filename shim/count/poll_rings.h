/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll_rings.h - io_uring rings that only watch descriptors: what tasks read stays known.
 *
 * The loop that runs a worker creates its ring before the process is armed: it is kept until then.
 * Any thread, any process, no lock.
 */
#ifndef CREMA_SHIM_COUNT_POLL_RINGS_H
#define CREMA_SHIM_COUNT_POLL_RINGS_H

#include <stdint.h>

/* 0: there is no room, so the ring counts as one with I/O. */
int poll_rings_add(uint32_t fd);
/* While arming: stores them in the shared memory, for the agent that starts later. */
void poll_rings_armed(void);

#endif
