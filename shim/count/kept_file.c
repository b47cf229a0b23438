/* SPDX-License-Identifier: BSD-3-Clause */
/* kept_file.c - see kept_file.h. */
#define _GNU_SOURCE
#include "shim/count/kept_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "shim/libc/sys.h"
#include "shim/shim.h"

static int fd_of(struct kept_file *k)
{
	int fd = LOAD(&k->fd) - 1;
	struct stat st;

	if (fd < 0)
		return -1;
	if (SYS2(SYS_fstat, fd, &st) == 0 && st.st_dev == k->dev && st.st_ino == k->ino)
		return fd;
	STORE(&k->fd, 0);
	return -1;
}

void kept_file_drop(struct kept_file *k)
{
	int fd = fd_of(k);

	STORE(&k->fd, 0);
	if (fd >= 0)
		sys_close(fd);
}

void kept_file_open(struct kept_file *k, const char *path)
{
	int low = sys_open(path, O_RDONLY | O_CLOEXEC, 0), fd = -1;
	struct stat st;

	kept_file_drop(k);
	for (int from = 960; low >= 0 && fd < 0 && from >= 240; from -= 240)
		fd = (int)SYS3(SYS_fcntl, low, F_DUPFD_CLOEXEC, from);
	if (low >= 0)
		sys_close(low);
	if (fd < 0 || SYS2(SYS_fstat, fd, &st) < 0)
		return;
	k->dev = st.st_dev;
	k->ino = st.st_ino;
	STORE(&k->fd, fd + 1);
}

long kept_file_read(struct kept_file *k, const char *path, char *buf, size_t size)
{
	int fd = fd_of(k);
	long n = fd >= 0 ? SYS4(SYS_pread64, fd, buf, size - 1, 0) : -1;

	if (n <= 0)
		return sys_slurp(path, buf, size);
	buf[n] = 0;
	return n;
}
