/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.h - removes the shared memory that killed workers and agents left behind. */
#ifndef CREMA_AGENT_SWEEP_H
#define CREMA_AGENT_SWEEP_H

#include <stdint.h>

#define SWEEP_EVERY_NS UINT64_C(60000000000)
#define SWEEP_OLD_NS UINT64_C(60000000000)

/*
 * Looks at the files named as `shm` is, in its directory. One goes if it is this user's, no agent
 * holds its lock, its process has ended, and nobody has signed it for SWEEP_OLD_NS. Returns how
 * many went.
 */
int sweep_shm(const char *shm, uint64_t boot_ns);

#endif
