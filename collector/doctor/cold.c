/* SPDX-License-Identifier: BSD-3-Clause */
/* cold.c - files outside the page cache (cold.h). */
#include "collector/doctor/cold.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define DROP_TRIES 10
#define PAUSE_NS 20000000

__attribute__((format(printf, 3, 4))) static int fail(struct cold *c, int error, const char *format,
						      ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(c->why, sizeof(c->why), format, ap);
	va_end(ap);
	return error;
}

size_t cold_size(uint64_t free_bytes)
{
	uint64_t n = free_bytes / 2 / COLD_MIB * COLD_MIB;

	return n < COLD_LEAST ? 0 : n > COLD_MOST ? COLD_MOST : (size_t)n;
}

/* Blocks that a file system can neither compress nor deduplicate. */
static void fill(uint64_t *block, uint64_t *state)
{
	for (size_t i = 0; i < COLD_MIB / sizeof(*block); i++) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		block[i] = *state;
	}
}

/* direct: bypasses the page cache, which also drops the pages in it. */
static int put(struct cold *c, bool direct)
{
	uint64_t *block = aligned_alloc(COLD_MIB, COLD_MIB);
	uint64_t state = clock_boot_ns() ^ (uint64_t)getpid() << 40 ^ 1;
	int flags = fcntl(c->fd[0], F_GETFL), rc = block ? 0 : -ENOMEM;
	ssize_t n;

	if (direct && !rc && fcntl(c->fd[0], F_SETFL, flags | O_DIRECT) < 0)
		rc = -errno;
	for (size_t at = 0; !rc && at < c->bytes; at += (size_t)n) {
		if (at % COLD_MIB == 0)
			fill(block, &state);
		n = pwrite(c->fd[0], (char *)block + at % COLD_MIB, COLD_MIB - at % COLD_MIB,
			   (off_t)at);
		rc = n > 0 ? 0 : n < 0 ? -errno : -ENOSPC;
	}
	if (direct)
		fcntl(c->fd[0], F_SETFL, flags);
	if (!rc && fsync(c->fd[0]) < 0)
		rc = -errno;
	free(block);
	return rc;
}

/* While it has a name, no signal may end us; then only the kernel can. */
static int open_nameless(struct cold *c, const char *folder)
{
	char path[PATH_MAX];
	sigset_t all, before;
	int rc = 0;

	if (snprintf(path, sizeof(path), "%s/.crema-calibrate-XXXXXX", folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	c->fd[0] = mkostemp(path, O_CLOEXEC);
	if (c->fd[0] < 0)
		rc = -errno;
	for (int i = 1; !rc && i < COLD_FDS; i++) {
		c->fd[i] = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		rc = c->fd[i] < 0 ? -errno : 0;
	}
	if (c->fd[0] >= 0 && unlink(path) < 0 && !rc)
		rc = -errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int make(struct cold *c, const char *path)
{
	struct statvfs v;
	uint64_t room;
	int rc;

	c->made = true;
	if (statvfs(path, &v) < 0)
		return fail(c, -errno, "cannot see how much is free on '%s': %s", path,
			    log_error(errno));
	room = (uint64_t)v.f_bavail * v.f_frsize;
	c->bytes = c->size = cold_size(room);
	rc = open_nameless(c, path);
	if (rc == -EROFS || rc == -EACCES)
		return fail(c, rc, "cannot write in '%s': %s; give a file there that you own", path,
			    log_error(rc));
	if (rc)
		return fail(c, rc, "cannot make a file in '%s': %s", path, log_error(rc));
	if (!c->bytes)
		return fail(c, -ENOSPC, "%.1f MiB are free on '%s': a calibration needs %zu",
			    (double)room / (double)COLD_MIB, path, 2 * COLD_LEAST / COLD_MIB);
	log_line("doctor: writing a file of %zu MiB in '%s'; it is removed at the end",
		 c->bytes / COLD_MIB, path);
	rc = put(c, false);
	return rc ? fail(c, rc, "cannot write %zu MiB in '%s': %s", c->bytes / COLD_MIB, path,
			 log_error(rc))
		  : 0;
}

/* The kernel reports the cached pages of a file only to its owner or to those who may write to
 * it. */
static int take(struct cold *c, const char *path, const struct stat *st)
{
	off_t hole;

	if (geteuid() && st->st_uid != geteuid() && access(path, W_OK))
		return fail(c, -EPERM,
			    "'%s' belongs to another user: the kernel does not show which of its "
			    "pages are cached",
			    path);
	if (st->st_size < (off_t)COLD_LEAST)
		return fail(c, -EINVAL, "'%s' is smaller than %zu MiB", path,
			    COLD_LEAST / COLD_MIB);
	c->bytes = (size_t)st->st_size < COLD_MOST ? (size_t)st->st_size / COLD_MIB * COLD_MIB
						   : COLD_MOST;
	c->size = ((size_t)st->st_size + c->page - 1) / c->page * c->page;
	for (int i = 0; i < COLD_FDS; i++) {
		c->fd[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (c->fd[i] < 0)
			return fail(c, -errno, "cannot open '%s': %s", path, log_error(errno));
	}
	hole = lseek(c->fd[0], 0, SEEK_HOLE);
	if (hole >= 0 && hole < (off_t)c->bytes)
		return fail(c, -EINVAL, "'%s' has holes: give another file", path);
	log_line("doctor: reading %zu MiB of '%s'", c->bytes / COLD_MIB, path);
	return 0;
}

int cold_open(struct cold *c, const char *path)
{
	struct stat st;

	*c = (struct cold)COLD_INIT;
	c->page = (size_t)sysconf(_SC_PAGESIZE);
	if (stat(path, &st) < 0)
		return fail(c, -errno, "cannot use '%s': %s", path, log_error(errno));
	if (S_ISDIR(st.st_mode))
		return make(c, path);
	if (S_ISREG(st.st_mode))
		return take(c, path, &st);
	return fail(c, -EINVAL, "'%s' is neither a folder nor a file", path);
}

void cold_close(struct cold *c)
{
	for (int i = 0; i < COLD_FDS; i++)
		if (c->fd[i] >= 0)
			close(c->fd[i]);
}

ssize_t cold_resident(const struct cold *c, size_t at, size_t n)
{
	size_t pages = n / c->page, in = 0;
	unsigned char *seen = malloc(pages);
	void *map = mmap(NULL, n, PROT_READ, MAP_SHARED, c->fd[0], (off_t)at);
	int rc = !seen ? -ENOMEM : map == MAP_FAILED || mincore(map, n, seen) ? -errno : 0;

	for (size_t i = 0; !rc && i < pages; i++)
		in += seen[i] & 1;
	if (map != MAP_FAILED)
		munmap(map, n);
	free(seen);
	return rc ? rc : (ssize_t)(in * c->page);
}

static ssize_t try_to_drop(const struct cold *c)
{
	ssize_t left = -1;

	for (int i = 0; i < DROP_TRIES && left; i++) {
		if (i)
			nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
		posix_fadvise(c->fd[0], 0, 0, POSIX_FADV_DONTNEED);
		left = cold_resident(c, 0, c->size);
		if (left < 0)
			break;
	}
	return left;
}

int cold_drop(struct cold *c)
{
	ssize_t left = try_to_drop(c);

	/* Pages mapped elsewhere stay, unless they are written past the cache. */
	if (left > 0 && c->made && !put(c, true))
		left = cold_resident(c, 0, c->size);
	if (left < 0)
		return fail(c, (int)left, "cannot see what is in the page cache: %s",
			    log_error((int)left));
	if (left)
		return fail(c, -EBUSY,
			    "%zu KiB stay in the page cache: only a file larger than memory "
			    "would be read from storage here",
			    (size_t)left / 1024);
	return 0;
}
