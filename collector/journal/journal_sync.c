/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_sync.c - fdatasync each second without stalling the loop: by a thread, or by io_uring. */
#include "collector/journal/journal_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/loop/loop.h"
#include "common/clock.h"

/* This many segments may wait for a slow disk before the oldest is left to the kernel. */
#define FILES_MAX 64

struct journal_sync {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int (*sync)(int fd);
	int64_t interval_ms;
	char dir[PATH_MAX];
	/* With a loop: no thread. */
	struct loop *loop;
	struct loop_timer *timer;
	struct loop_file *ring;
	enum { RESTING, SYNC_OLD, SYNC_NEWEST, SYNC_DIR } step;
	uint64_t step_ns;
	int dir_fd; /* while the ring uses it */
	/* Protected by the lock: */
	int fd[FILES_MAX]; /* oldest first; the last one is still being written */
	unsigned int files;
	bool dirty, new_name, stop;
	bool round_dirty, round_new_name; /* as of the start of the round */
	uint64_t syncs, slowest_ns;
	int error;
	uint64_t written;	/* the journal's bytes */
	uint64_t round_written; /* as of the start of the round */
	uint64_t kept;		/* of these, the synced ones; not after a failure */
	int failed;		/* until a file added since then was synced */
	bool wants_file;	/* none was added since then */
};

/* The file system does not support the operation: nothing was lost. */
static bool cannot_be_asked(int err)
{
	return err == -EINVAL || err == -ENOSYS || err == -EOPNOTSUPP;
}

/*
 * The kernel reports a write-back failure once and forgets it: the next sync of the same file
 * returns 0. So only another file can show that the disk works again.
 */
static void judge(struct journal_sync *sync, int fd, int err)
{
	bool newest = sync->files && fd == sync->fd[sync->files - 1];

	if (err && !cannot_be_asked(err)) {
		sync->failed = err;
		sync->wants_file = true;
	} else if (newest && !sync->wants_file) {
		sync->failed = 0;
		sync->kept = sync->round_written;
	}
}

static void count(struct journal_sync *sync, int fd, uint64_t start_ns, int err)
{
	uint64_t took = clock_mono_ns() - start_ns;

	pthread_mutex_lock(&sync->lock);
	sync->syncs++;
	sync->error = err;
	if (took > sync->slowest_ns)
		sync->slowest_ns = took;
	judge(sync, fd, err);
	pthread_mutex_unlock(&sync->lock);
}

static void sync_one(struct journal_sync *sync, int fd)
{
	uint64_t start = clock_mono_ns();

	count(sync, fd, start, sync->sync(fd) ? -errno : 0);
}

/* The oldest file has had its final sync. */
static void forget_oldest(struct journal_sync *sync)
{
	close(sync->fd[0]);
	sync->files--;
	for (unsigned int i = 0; i < sync->files; i++)
		sync->fd[i] = sync->fd[i + 1];
}

/* Opened each time: another disk may be mounted there by now. */
static int open_dir(const struct journal_sync *sync)
{
	return open(sync->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void sync_dir(const struct journal_sync *sync)
{
	int fd = open_dir(sync);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* Whatever becomes dirty from here on belongs to the next round. */
static void begin_round(struct journal_sync *sync)
{
	sync->round_dirty = sync->dirty;
	sync->round_new_name = sync->new_name;
	sync->round_written = sync->written;
	sync->dirty = false;
	sync->new_name = false;
}

/* Called with the lock held; releases it while the disk works. */
static void sync_round(struct journal_sync *sync)
{
	int fd;

	begin_round(sync);
	/* Only this thread removes files, so fd[0] does not change while the lock is released. */
	while (sync->files > 1) {
		fd = sync->fd[0];
		pthread_mutex_unlock(&sync->lock);
		sync_one(sync, fd);
		pthread_mutex_lock(&sync->lock);
		forget_oldest(sync);
	}
	fd = sync->files ? sync->fd[0] : -1;
	pthread_mutex_unlock(&sync->lock);
	if (sync->round_dirty && fd >= 0)
		sync_one(sync, fd);
	if (sync->round_new_name)
		sync_dir(sync);
	pthread_mutex_lock(&sync->lock);
}

static void *sync_thread(void *arg)
{
	struct journal_sync *sync = arg;
	struct timespec until;
	int64_t ns;

	pthread_mutex_lock(&sync->lock);
	while (!sync->stop) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		ns = until.tv_nsec + sync->interval_ms * 1000000;
		until.tv_sec += ns / 1000000000;
		until.tv_nsec = ns % 1000000000;
		while (!sync->stop &&
		       pthread_cond_timedwait(&sync->wake, &sync->lock, &until) != ETIMEDOUT)
			;
		sync_round(sync);
	}
	sync_round(sync);
	pthread_mutex_unlock(&sync->lock);
	return NULL;
}

/* The ring's variant: the same round, one step after the other */

static void next_step(struct journal_sync *sync)
{
	sync->step_ns = clock_mono_ns();
	if (sync->files > 1) {
		sync->step = SYNC_OLD;
		loop_file_sync(sync->ring, sync->fd[0], true);
	} else if (sync->round_dirty && sync->files) {
		sync->round_dirty = false;
		sync->step = SYNC_NEWEST;
		loop_file_sync(sync->ring, sync->fd[0], true);
	} else if (sync->round_new_name && (sync->dir_fd = open_dir(sync)) >= 0) {
		sync->round_new_name = false;
		sync->step = SYNC_DIR;
		loop_file_sync(sync->ring, sync->dir_fd, false);
	} else {
		sync->step = RESTING;
		loop_timer_set(sync->timer, sync->interval_ms);
	}
}

static void on_timer(void *arg)
{
	struct journal_sync *sync = arg;

	begin_round(sync);
	next_step(sync);
}

static void on_synced(void *arg, int result)
{
	struct journal_sync *sync = arg;

	if (sync->step == SYNC_DIR)
		close(sync->dir_fd);
	else
		count(sync, sync->fd[0], sync->step_ns, result);
	if (sync->step == SYNC_OLD)
		forget_oldest(sync);
	next_step(sync);
}

static int start_ring(struct journal_sync *sync)
{
	sync->timer = loop_timer_new(sync->loop, on_timer, sync);
	sync->ring = sync->timer ? loop_file_new(sync->loop, on_synced, sync) : NULL;
	if (!sync->ring) {
		loop_timer_free(sync->timer);
		return errno;
	}
	loop_timer_set(sync->timer, sync->interval_ms);
	return 0;
}

/* Waits for the operation in progress; the rest is synced here. */
static void stop_ring(struct journal_sync *sync)
{
	loop_timer_set(sync->timer, -1);
	sync->interval_ms = -1;
	while (sync->step != RESTING && !loop_file_wait(sync->ring))
		;
	pthread_mutex_lock(&sync->lock);
	sync_round(sync);
	pthread_mutex_unlock(&sync->lock);
	loop_file_free(sync->ring);
	loop_timer_free(sync->timer);
}

struct journal_sync *journal_sync_start(struct loop *loop, const char *dir, int64_t interval_ms,
					int (*sync_fn)(int fd))
{
	struct journal_sync *sync = calloc(1, sizeof(*sync));
	pthread_condattr_t attr;
	int err;

	if (!sync)
		return NULL;
	sync->loop = loop;
	strcpy(sync->dir, dir);
	sync->interval_ms = interval_ms;
	sync->sync = sync_fn;
	pthread_mutex_init(&sync->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sync->wake, &attr);
	pthread_condattr_destroy(&attr);
	err = loop ? start_ring(sync) : pthread_create(&sync->thread, NULL, sync_thread, sync);
	if (err) {
		free(sync);
		errno = err;
		return NULL;
	}
	return sync;
}

void journal_sync_file(struct journal_sync *sync, int fd)
{
	pthread_mutex_lock(&sync->lock);
	if (sync->files == FILES_MAX) {
		/* the thread may be using fd[0], but never the second one */
		close(sync->fd[1]);
		sync->files--;
		for (unsigned int i = 1; i < sync->files; i++)
			sync->fd[i] = sync->fd[i + 1];
	}
	sync->fd[sync->files++] = fd;
	sync->dirty = true;
	sync->new_name = true;
	sync->wants_file = false;
	pthread_mutex_unlock(&sync->lock);
}

void journal_sync_dirty(struct journal_sync *sync, uint64_t written)
{
	pthread_mutex_lock(&sync->lock);
	sync->dirty = true;
	sync->written = written;
	pthread_mutex_unlock(&sync->lock);
}

int journal_sync_failed(struct journal_sync *sync, bool *wants_file, uint64_t *unsynced_bytes)
{
	int err;

	pthread_mutex_lock(&sync->lock);
	err = sync->failed;
	*wants_file = sync->wants_file;
	*unsynced_bytes = sync->written - sync->kept;
	pthread_mutex_unlock(&sync->lock);
	return err;
}

void journal_sync_stats(struct journal_sync *sync, uint64_t *syncs, uint64_t *slowest_ns,
			int *error)
{
	pthread_mutex_lock(&sync->lock);
	*syncs = sync->syncs;
	*slowest_ns = sync->slowest_ns;
	*error = sync->error;
	pthread_mutex_unlock(&sync->lock);
}

int journal_sync_stop(struct journal_sync *sync)
{
	int err;

	if (sync->loop) {
		stop_ring(sync);
	} else {
		pthread_mutex_lock(&sync->lock);
		sync->stop = true;
		pthread_cond_signal(&sync->wake);
		pthread_mutex_unlock(&sync->lock);
		pthread_join(sync->thread, NULL);
	}
	err = sync->error;
	while (sync->files)
		close(sync->fd[--sync->files]);
	pthread_cond_destroy(&sync->wake);
	pthread_mutex_destroy(&sync->lock);
	free(sync);
	return err;
}
