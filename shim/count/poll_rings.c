/* SPDX-License-Identifier: BSD-3-Clause */
/* poll_rings.c - the descriptors, + 1. */
#include "shim/count/poll_rings.h"

#include <string.h>

#include "shim/shim.h"

static uint32_t before[CREMA_SHM_POLL_RINGS];

int poll_rings_add(uint32_t fd)
{
	uint32_t *rings = shim_armed() ? crema_shm->io_uring_polls : before;

	for (int i = 0; i < CREMA_SHM_POLL_RINGS; i++) {
		uint32_t none = 0;

		if (LOAD(&rings[i]) == fd + 1 ||
		    __atomic_compare_exchange_n(&rings[i], &none, fd + 1, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return 1;
	}
	return 0;
}

void poll_rings_armed(void)
{
	memcpy(crema_shm->io_uring_polls, before, sizeof(before));
}
