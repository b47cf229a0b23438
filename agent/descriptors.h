/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * descriptors.h - finds what does I/O without calls (contract/unseen_io.h) among a worker's
 * descriptors: io_uring rings that code with its own system calls has made, and the device of
 * GPUDirect Storage. What is closed again between two checks is missed.
 */
#ifndef CREMA_AGENT_DESCRIPTORS_H
#define CREMA_AGENT_DESCRIPTORS_H

#include "common/view.h"

struct descriptors {
	uint64_t next_ns; /* CLOCK_MONOTONIC: not before */
};

/* Call before reading slots: then tasks that ended since the last check are marked, too. Checks
 * take at most 1/256 of the time. */
void descriptors_look(struct descriptors *d, const struct view *v, int pid);

#endif
