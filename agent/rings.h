/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rings.h - finds io_uring rings among a worker's descriptors (io_uring.h): code that makes system
 * calls directly creates them without an intercepted call. A ring that is closed again between two
 * checks is missed.
 */
#ifndef CREMA_AGENT_RINGS_H
#define CREMA_AGENT_RINGS_H

#include "common/view.h"

struct rings {
	uint64_t next_ns; /* CLOCK_MONOTONIC: not before */
};

/* Call before reading slots: then tasks that ended since the last check are marked, too. Checks
 * take at most 1/256 of the time. */
void rings_look(struct rings *r, const struct view *v, int pid);

#endif
