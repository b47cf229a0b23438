/* SPDX-License-Identifier: BSD-3-Clause */
/* rings.c - checks /proc/PID/fd. */
#include "agent/rings.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "io_uring.h"

/* The shim saw who made the ring: one that only watches descriptors. */
static bool only_polls(const struct crema_shm *m, unsigned long fd)
{
	for (int i = 0; i < CREMA_SHM_POLL_RINGS; i++)
		if (__atomic_load_n(&m->io_uring_polls[i], __ATOMIC_RELAXED) == fd + 1)
			return true;
	return false;
}

static bool has_ring(const struct crema_shm *m, int pid)
{
	static const char ring[] = "anon_inode:[io_uring]";
	char path[32], link[sizeof(ring)];
	const struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir)))
		found = readlinkat(dirfd(dir), e->d_name, link, sizeof(link)) == sizeof(ring) - 1 &&
			!memcmp(link, ring, sizeof(ring) - 1) &&
			!only_polls(m, strtoul(e->d_name, NULL, 10));
	if (dir)
		closedir(dir);
	return found;
}

void rings_look(struct rings *r, const struct view *v, int pid)
{
	uint64_t start = clock_mono_ns();

	if (start < r->next_ns || __atomic_load_n(&v->shm->io_uring, __ATOMIC_RELAXED))
		return;
	if (has_ring(v->shm, pid))
		crema_io_uring_seen(v->shm, 1);
	r->next_ns = start + 256 * (clock_mono_ns() - start);
}
