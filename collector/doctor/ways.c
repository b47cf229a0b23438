/* SPDX-License-Identifier: BSD-3-Clause */
/* ways.c - ways to read a file (ways.h). */
#include "collector/doctor/ways.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/procfs.h"

#define TRIES 3
#define SLOT ((size_t)128 << 10) /* scattered reads: one in each */
#define SCATTERED 5003		 /* bytes of each, at an unaligned offset */
#define SMALL 12289
#define LARGE ((size_t)768 << 10)
#define SETTLE_NS 10000000
#define SETTLES 100

/* The part that one thread reads: [at, at + bytes) of the file. */
struct part {
	const struct cold *c;
	const struct way *way;
	int fd, error;
	size_t at, bytes;
	struct way_result r;
	pthread_t thread;
};

struct way {
	const char *name;
	int (*read)(struct part *p); /* adds the touched bytes to p->r.needed_bytes; 0 or -errno */
	int advice, map_advice;
	size_t threads;
	bool warm, direct;
};

/* Blocks of at most `step` bytes, until the part's end. */
static int read_on(struct part *p, size_t step, bool at_position)
{
	char *block = malloc(step);
	int rc = block ? 0 : -ENOMEM;
	ssize_t n;

	if (!rc && at_position && lseek(p->fd, (off_t)p->at, SEEK_SET) < 0)
		rc = -errno;
	for (size_t done = 0; !rc && done < p->bytes; done += (size_t)n) {
		size_t want = p->bytes - done < step ? p->bytes - done : step;

		n = at_position ? read(p->fd, block, want)
				: pread(p->fd, block, want, (off_t)(p->at + done));
		rc = n > 0 ? 0 : n < 0 ? -errno : -ENODATA;
	}
	free(block);
	p->r.needed_bytes = p->bytes;
	return rc;
}

static int read_small(struct part *p)
{
	return read_on(p, SMALL, true);
}

static int read_large(struct part *p)
{
	return read_on(p, LARGE + 3, false);
}

static int read_vectors(struct part *p)
{
	char *block = malloc(LARGE);
	struct iovec v[] = {{block, 511}, {block + 511, 70001}, {block + 70512, LARGE - 70512}};
	int rc = block ? 0 : -ENOMEM;
	ssize_t n;

	if (!rc && lseek(p->fd, (off_t)p->at, SEEK_SET) < 0)
		rc = -errno;
	for (size_t done = 0; !rc && done < p->bytes; done += (size_t)n) {
		n = readv(p->fd, v, 3);
		rc = n > 0 ? 0 : n < 0 ? -errno : -ENODATA;
		n = n > 0 ? n : 0;
	}
	free(block);
	p->r.needed_bytes = p->bytes;
	return rc;
}

/* The slots in an order that read-ahead does not recognize as sequential. */
static size_t slot(const struct part *p, size_t i)
{
	size_t n = p->bytes / SLOT;

	return p->at + (i * 37 + 11) % n * SLOT + i * 613 % (SLOT - SCATTERED);
}

static size_t pages_of(const struct part *p, size_t at, size_t n)
{
	size_t page = p->c->page;

	return ((at + n - 1) / page - at / page + 1) * page;
}

static int read_scattered(struct part *p)
{
	char block[SCATTERED];

	for (size_t i = 0; i < p->bytes / SLOT; i++) {
		size_t at = slot(p, i);
		ssize_t n = pread(p->fd, block, sizeof(block), (off_t)at);

		if (n != (ssize_t)sizeof(block))
			return n < 0 ? -errno : -ENODATA;
		p->r.needed_bytes += pages_of(p, at, sizeof(block));
	}
	return 0;
}

static int map_part(struct part *p, volatile const char **map)
{
	void *at = mmap(NULL, p->bytes, PROT_READ, MAP_SHARED, p->fd, (off_t)p->at);

	if (at == MAP_FAILED)
		return -errno;
	madvise(at, p->bytes, p->way->map_advice);
	*map = at;
	return 0;
}

static int read_mapped(struct part *p)
{
	volatile const char *map;
	int rc = map_part(p, &map);

	for (size_t i = 0; !rc && i < p->bytes; i += p->c->page)
		(void)map[i];
	if (!rc)
		munmap((void *)(uintptr_t)map, p->bytes);
	p->r.needed_bytes = p->bytes;
	return rc;
}

static int read_mapped_scattered(struct part *p)
{
	volatile const char *map;
	int rc = map_part(p, &map);

	for (size_t i = 0; !rc && i < p->bytes / SLOT; i++) {
		(void)map[slot(p, i) - p->at];
		p->r.needed_bytes += p->c->page;
	}
	if (!rc)
		munmap((void *)(uintptr_t)map, p->bytes);
	return rc;
}

static int read_direct(struct part *p)
{
	int flags = fcntl(p->fd, F_GETFL), rc;
	char *block = aligned_alloc(COLD_MIB, COLD_MIB);
	ssize_t n = 0;

	rc = !block ? -ENOMEM : fcntl(p->fd, F_SETFL, flags | O_DIRECT) < 0 ? -EOPNOTSUPP : 0;
	for (size_t done = 0; !rc && done < p->bytes; done += (size_t)n) {
		n = pread(p->fd, block, COLD_MIB, (off_t)(p->at + done));
		rc = n > 0 ? 0 : n == 0 ? -ENODATA : errno == EINVAL ? -EOPNOTSUPP : -errno;
	}
	fcntl(p->fd, F_SETFL, flags);
	free(block);
	p->r.needed_bytes = p->bytes;
	return rc;
}

static const struct way ways[] = {
	{"small reads", read_small, POSIX_FADV_NORMAL, MADV_NORMAL, 1, false, false},
	{"large reads", read_large, POSIX_FADV_SEQUENTIAL, MADV_NORMAL, 1, false, false},
	{"vectors", read_vectors, POSIX_FADV_NORMAL, MADV_NORMAL, 1, false, false},
	{"scattered reads", read_scattered, POSIX_FADV_RANDOM, MADV_NORMAL, 1, false, false},
	{"mapped", read_mapped, POSIX_FADV_NORMAL, MADV_NORMAL, 1, false, false},
	{"mapped scattered", read_mapped_scattered, POSIX_FADV_RANDOM, MADV_RANDOM, 1, false,
	 false},
	{"mapped read ahead", read_mapped_scattered, POSIX_FADV_NORMAL, MADV_NORMAL, 1, false,
	 false},
	{"threads", read_scattered, POSIX_FADV_RANDOM, MADV_NORMAL, COLD_FDS, false, false},
	{"threads mapped", read_mapped_scattered, POSIX_FADV_RANDOM, MADV_RANDOM, COLD_FDS, false,
	 false},
	{"direct reads", read_direct, POSIX_FADV_NORMAL, MADV_NORMAL, 1, false, true},
	{"cached reads", read_large, POSIX_FADV_NORMAL, MADV_NORMAL, 1, true, false},
};

size_t ways_count(void)
{
	return sizeof(ways) / sizeof(ways[0]);
}

const char *ways_name(size_t way)
{
	return ways[way].name;
}

static uint64_t charged_here(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) ? 0 : (uint64_t)u.ru_inblock * 512;
}

static void *read_part(void *arg)
{
	struct part *p = arg;
	uint64_t before = charged_here();

	p->error = p->way->read(p);
	p->r.charged_bytes = charged_here() - before;
	return NULL;
}

/* What it has read, for any process. */
static bool device_bytes(const struct cold *c, uint64_t *bytes)
{
	char text[512];
	uint64_t sectors;

	if (!c->device ||
	    procfs_slurp(text, sizeof(text), "/sys/dev/block/%u:%u/stat", major(c->device),
			 minor(c->device)) <= 0 ||
	    sscanf(text, "%*u %*u %" SCNu64, &sectors) != 1)
		return false;
	*bytes = sectors * 512;
	return true;
}

/* Read-ahead may be in progress when a read returns. */
static ssize_t settled(const struct cold *c, size_t at, size_t n)
{
	ssize_t now = cold_resident(c, at, n), before = -1;

	for (int i = 0; i < SETTLES && now >= 0 && now != before; i++) {
		nanosleep(&(struct timespec){0, SETTLE_NS}, NULL);
		before = now;
		now = cold_resident(c, at, n);
	}
	return now;
}

void ways_judge(struct way_result *all, const struct way_result *thread, size_t threads)
{
	bool pages = true;

	for (size_t i = 0; i < threads; i++) {
		pages = pages && thread[i].charged_bytes == thread[i].fetched_bytes &&
			thread[i].fetched_bytes >= thread[i].needed_bytes;
	}
	/* A file system may keep compressed data in its own cache, and read nothing. */
	all->by_device = !pages && all->has_device && all->charged_bytes == all->device_bytes &&
			 (all->charged_bytes || all->device_seen);
	all->right = pages || all->by_device;
	all->truth_bytes = all->by_device			    ? all->device_bytes
			   : all->fetched_bytes > all->needed_bytes ? all->fetched_bytes
								    : all->needed_bytes;
}

static int run_threads(struct part *part, size_t threads)
{
	int rc = 0;

	for (size_t i = 0; i < threads; i++) {
		posix_fadvise(part[i].fd, 0, 0, part[i].way->advice);
		rc = pthread_create(&part[i].thread, NULL, read_part, &part[i]);
		if (rc) {
			while (i--)
				pthread_join(part[i].thread, NULL);
			return -rc;
		}
	}
	for (size_t i = 0; i < threads; i++) {
		pthread_join(part[i].thread, NULL);
		rc = rc ? rc : part[i].error;
	}
	return rc;
}

/* What came into the cache; for a single thread, also by read-ahead after its part. */
static int find_fetched(struct cold *c, struct part *part, size_t threads, ssize_t before)
{
	for (size_t i = 0; i < threads; i++) {
		struct way_result *r = &part[i].r;
		ssize_t now = threads > 1 ? settled(c, part[i].at, part[i].bytes)
					  : settled(c, 0, c->size);

		if (now < 0)
			return (int)now;
		if (part[i].way->direct)
			r->fetched_bytes = part[i].bytes;
		else
			r->fetched_bytes = (uint64_t)(now > before ? now - before : 0);
		if (part[i].way->warm)
			r->needed_bytes = 0;
	}
	return 0;
}

static int try_once(struct cold *c, const struct way *way, struct way_result *all)
{
	struct part part[COLD_FDS] = {0};
	struct way_result each[COLD_FDS];
	uint64_t device = 0, device_after = 0;
	ssize_t before = 0;
	int rc;

	for (size_t i = 0; i < way->threads; i++)
		part[i] = (struct part){.c = c,
					.way = way,
					.fd = c->fd[i],
					.at = c->bytes / way->threads * i,
					.bytes = c->bytes / way->threads};
	rc = way->warm ? run_threads(part, way->threads) : cold_drop(c);
	if (rc)
		return rc;
	if (way->warm)
		before = settled(c, 0, c->size);
	part[0].r = (struct way_result){0};
	*all = (struct way_result){.has_device = device_bytes(c, &device),
				   .device_seen = c->device_seen};
	rc = run_threads(part, way->threads);
	rc = rc ? rc : find_fetched(c, part, way->threads, before);
	all->has_device = all->has_device && device_bytes(c, &device_after);
	all->device_bytes = device_after - device;
	for (size_t i = 0; i < way->threads; i++) {
		each[i] = part[i].r;
		all->charged_bytes += each[i].charged_bytes;
		all->needed_bytes += each[i].needed_bytes;
		all->fetched_bytes += each[i].fetched_bytes;
	}
	ways_judge(all, each, way->threads);
	c->device_seen |= all->by_device;
	return rc;
}

int ways_try(struct cold *c, size_t way, struct way_result *r)
{
	int rc = 0;

	c->why[0] = '\0';
	/* Repeated, since memory may have been short, and others may use the device. */
	for (int i = 0; i < TRIES; i++) {
		rc = try_once(c, &ways[way], r);
		if (rc || r->right)
			break;
	}
	if (rc == -EOPNOTSUPP && ways[way].direct) {
		*r = (struct way_result){.skipped = true};
		return 0;
	}
	if (rc && !c->why[0])
		snprintf(c->why, sizeof(c->why), "%s: %s", ways[way].name, log_error(rc));
	return rc;
}
