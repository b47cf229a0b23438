/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.h - removes the shared memory that killed workers and agents left behind. */
#ifndef CREMA_AGENT_SWEEP_H
#define CREMA_AGENT_SWEEP_H

#include <stdint.h>

#define SWEEP_EVERY_NS UINT64_C(60000000000)
#define SWEEP_OLD_NS UINT64_C(60000000000)

/*
 * Checks the files in the directory of `shm` that have such a name. Removes a file if it belongs to
 * this user, no agent holds its lock, its process has ended, and its heartbeat is older than
 * SWEEP_OLD_NS. Returns the number of removed files.
 */
int sweep_shm(const char *shm, uint64_t boot_ns);

#endif
