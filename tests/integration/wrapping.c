/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrapping.c - a preload that counts as I/O profilers do: it wraps calls, gets the next function
 * with dlsym(RTLD_NEXT), locks a mutex for its counters, and writes them when the process ends. For
 * test_preloads.py its counts of files named *.bin are independent values to compare with.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long calls, bytes, mapped, opens;

static void *next(void **at, const char *name)
{
	if (!*at)
		*at = dlsym(RTLD_NEXT, name);
	return *at;
}
#define NEXT(name) ((__typeof__(&name))next(&next_##name, #name))

static int is_data(int fd)
{
	char link[64], path[1024];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	return n > 4 && !memcmp(path + n - 4, ".bin", 4);
}

static void add(long long *number, long long by, int fd)
{
	if (by < 0 || !is_data(fd))
		return;
	pthread_mutex_lock(&lock);
	*number += by;
	if (number == &bytes)
		calls++;
	pthread_mutex_unlock(&lock);
}

static void *next_read, *next_pread, *next_pread64, *next_mmap, *next_mmap64, *next_open,
	*next_open64, *next_openat;

ssize_t read(int fd, void *b, size_t n)
{
	ssize_t r = NEXT(read)(fd, b, n);

	add(&bytes, r, fd);
	return r;
}

ssize_t pread(int fd, void *b, size_t n, off_t o)
{
	ssize_t r = NEXT(pread)(fd, b, n, o);

	add(&bytes, r, fd);
	return r;
}

ssize_t pread64(int fd, void *b, size_t n, off64_t o)
{
	ssize_t r = NEXT(pread64)(fd, b, n, o);

	add(&bytes, r, fd);
	return r;
}

void *mmap(void *a, size_t n, int p, int f, int fd, off_t o)
{
	void *r = NEXT(mmap)(a, n, p, f, fd, o);

	if (fd >= 0 && r != MAP_FAILED)
		add(&mapped, (long long)n, fd);
	return r;
}

void *mmap64(void *a, size_t n, int p, int f, int fd, off64_t o)
{
	void *r = NEXT(mmap64)(a, n, p, f, fd, o);

	if (fd >= 0 && r != MAP_FAILED)
		add(&mapped, (long long)n, fd);
	return r;
}

#define OPEN(name, before, call)                                                                   \
	int name(before const char *path, int flags, ...)                                          \
	{                                                                                          \
		va_list ap;                                                                        \
		int r, mode;                                                                       \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = va_arg(ap, int);                                                            \
		va_end(ap);                                                                        \
		r = NEXT(name) call;                                                               \
		add(&opens, 1, r);                                                                 \
		return r;                                                                          \
	}
#define NOTHING
#define DIRECTORY int dir,
OPEN(open, NOTHING, (path, flags, mode))
OPEN(open64, NOTHING, (path, flags, mode))
OPEN(openat, DIRECTORY, (dir, path, flags, mode))

__attribute__((destructor)) static void tell(void)
{
	const char *place = getenv("WRAPPING_OUT");
	char path[1024];
	FILE *f;

	if (!place || !opens)
		return;
	snprintf(path, sizeof(path), "%s.%d", place, (int)getpid());
	f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "{\"calls\": %lld, \"bytes\": %lld, \"mapped\": %lld, \"opens\": %lld}\n", calls,
		bytes, mapped, opens);
	fclose(f);
}
