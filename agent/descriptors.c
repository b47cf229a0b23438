/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptors.c - checks /proc/PID/fd. */
#include "agent/descriptors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "unseen_io.h"

/* The shim saw who made the ring: one that only watches descriptors. */
static bool only_polls(const struct crema_shm *m, unsigned long fd)
{
	for (int i = 0; i < CREMA_SHM_POLL_RINGS; i++)
		if (__atomic_load_n(&m->io_uring_polls[i], __ATOMIC_RELAXED) == fd + 1)
			return true;
	return false;
}

/* What a descriptor with that link does, by enum crema_unseen_io; 0: nothing unseen. */
static uint32_t way_of(const struct crema_shm *m, const char *name, const char *link)
{
	if (!strcmp(link, "anon_inode:[io_uring]"))
		return only_polls(m, strtoul(name, NULL, 10)) ? 0 : CREMA_UNSEEN_RING;
	return crema_is_gpu_device(link) ? CREMA_UNSEEN_GPU : 0;
}

static uint32_t ways_of(const struct crema_shm *m, int pid)
{
	char path[32], link[32];
	const struct dirent *e;
	uint32_t ways = 0;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		ways |= way_of(m, e->d_name, link);
	}
	if (dir)
		closedir(dir);
	return ways;
}

void descriptors_look(struct descriptors *d, const struct view *v, int pid)
{
	uint32_t known = __atomic_load_n(&v->shm->unseen_io, __ATOMIC_RELAXED), ways;
	uint64_t start = clock_mono_ns();

	if (start < d->next_ns || !(~known & (CREMA_UNSEEN_RING | CREMA_UNSEEN_GPU)))
		return;
	ways = ways_of(v->shm, pid) & ~known;
	if (ways)
		crema_unseen_io(v->shm, ways, 1);
	d->next_ns = start + 256 * (clock_mono_ns() - start);
}
