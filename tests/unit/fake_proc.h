/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_proc.h - /proc and /sys with text that a test provides.
 *
 * Replaces open(), fopen() and access() for the whole program: while fake_proc is set, paths below
 * /proc and /sys are looked up there, and missing ones do not exist. One thread.
 */
#ifndef TESTS_FAKE_PROC_H
#define TESTS_FAKE_PROC_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

struct fake_file {
	const char *path; /* NULL: end of the list */
	const char *text;
};
static const struct fake_file *fake_proc;

static inline bool is_faked(const char *path)
{
	return fake_proc && (strncmp(path, "/proc", 5) == 0 || strncmp(path, "/sys", 4) == 0);
}

static inline const char *fake_text(const char *path)
{
	for (const struct fake_file *f = fake_proc; f->path; f++)
		if (strcmp(f->path, path) == 0)
			return f->text;
	errno = ENOENT;
	return NULL;
}

int open(const char *path, int flags, ...)
{
	const char *text;
	mode_t mode = 0;
	va_list ap;
	int fd;

	if (!is_faked(path)) {
		va_start(ap, flags);
		if (flags & (O_CREAT | O_TMPFILE))
			mode = va_arg(ap, mode_t);
		va_end(ap);
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	}
	text = fake_text(path);
	fd = text ? (int)syscall(SYS_memfd_create, "fake", MFD_CLOEXEC) : -1;
	if (fd >= 0 && (write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		return -1;
	return fd;
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
	int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT;
	int fd;

	flags |= mode[0] == 'w' ? O_TRUNC : mode[0] == 'a' ? O_APPEND : 0;
	fd = open(path, flags | O_CLOEXEC, 0666);
	return fd < 0 ? NULL : fdopen(fd, mode);
}

int access(const char *path, int mode)
{
	if (is_faked(path))
		return fake_text(path) ? 0 : -1;
	return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

#endif
