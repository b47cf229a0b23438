/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.c - removes the shared memory that killed workers and agents left behind. */
#include "agent/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/procfs.h"
#include "common/view.h"
#include "shm.h"

#define HEAD_BYTES offsetof(struct crema_shm, agent_stream_seq)

static bool is_name(const char *name)
{
	size_t n = view_name_bytes(name);

	return n && !name[n];
}

/* Only the head is read; in a union, for its alignment. */
static bool is_dead(int fd, uint64_t boot_ns)
{
	union {
		unsigned char bytes[HEAD_BYTES];
		uint64_t align;
	} head;
	uint64_t beat, armed, start;
	uint32_t pid;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size != (off_t)sizeof(struct crema_shm) ||
	    pread(fd, head.bytes, HEAD_BYTES, 0) != (ssize_t)HEAD_BYTES)
		return false;
#define FIELD_OF(var, field)                                                                       \
	memcpy(&(var), head.bytes + offsetof(struct crema_shm, field), sizeof(var))
	FIELD_OF(beat, agent_heartbeat_boot_ns);
	FIELD_OF(armed, armed_boot_ns);
	FIELD_OF(start, start_ticks);
	FIELD_OF(pid, pid);
#undef FIELD_OF
	if (beat < armed)
		beat = armed;
	/* A heartbeat from the future is from another boot. */
	if (beat <= boot_ns && boot_ns - beat < SWEEP_OLD_NS)
		return false;
	return pid > 0 && pid <= INT32_MAX && procfs_ended((int)pid, start);
}

int sweep_shm(const char *shm, uint64_t boot_ns)
{
	char dir[PATH_MAX];
	struct dirent *e;
	int swept = 0;
	char *slash;
	DIR *d;

	if (snprintf(dir, sizeof(dir), "%s", shm) >= (int)sizeof(dir))
		return 0;
	slash = strrchr(dir, '/');
	if (!slash || !is_name(slash + 1))
		return 0;
	*(slash == dir ? slash + 1 : slash) = '\0';
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		int fd = is_name(e->d_name) ? openat(dirfd(d), e->d_name,
						     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
					    : -1;

		if (fd < 0)
			continue;
		if (is_dead(fd, boot_ns) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
		    unlinkat(dirfd(d), e->d_name, 0) == 0)
			swept++;
		close(fd);
	}
	if (d)
		closedir(d);
	return swept;
}
