/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_uring_poll.c - watches and files of the io_uring loop. */
#include <errno.h>
#include <poll.h>

#include "collector/serve/loop_uring.h"

/* Watches: a poll for one time, asked for again in each round, so it tells of levels as epoll. */

struct watch {
	struct uring_item item;
	void (*fn)(void *arg);
	void *arg;
	int fd;
	bool polling, paused, broken;
};

static bool watch_arm(struct uring_item *item)
{
	struct watch *watch = (struct watch *)item;
	bool want = !item->dead && !watch->paused && !watch->broken;
	struct io_uring_sqe *sqe;

	if (want == watch->polling)
		return true;
	if (!want)
		return uring_cancel(item, OP_POLL);
	sqe = uring_request(item);
	if (!sqe)
		return false;
	io_uring_prep_poll_add(sqe, watch->fd, POLLIN);
	uring_request_done(item, sqe, OP_POLL);
	watch->polling = true;
	return true;
}

static void watch_complete(struct uring_item *item, const struct io_uring_cqe *cqe)
{
	struct watch *watch = (struct watch *)item;

	watch->polling = false;
	watch->broken = cqe->res < 0 && cqe->res != -ECANCELED && cqe->res != -EINTR;
	uring_item_mark(item);
	if (cqe->res > 0 && !item->dead && !watch->paused)
		watch->fn(watch->arg);
}

static void nothing_more(struct uring_item *item)
{
	(void)item;
}

struct loop_handle *uring_watch_new(struct loop *loop, int fd, void (*fn)(void *arg), void *arg)
{
	static const struct uring_kind kind = {watch_arm, watch_complete, nothing_more};
	struct watch *watch = uring_item_new(loop, sizeof(*watch), &kind);

	if (!watch)
		return NULL;
	watch->fn = fn;
	watch->arg = arg;
	watch->fd = fd;
	uring_item_mark(&watch->item);
	return &watch->item.handle;
}

void uring_watch_pause(struct loop_handle *handle, bool paused)
{
	struct watch *watch = (struct watch *)handle;

	watch->paused = paused;
	uring_item_mark(&watch->item);
}

void uring_watch_free(struct loop_handle *handle)
{
	uring_item_free((struct uring_item *)handle);
}

/* Files */

struct file {
	struct uring_item item;
	void (*fn)(void *arg, int result);
	void *arg;
	int fd;
	enum { IDLE, WRITE, SYNC_DATA, SYNC_ALL } wanted;
	const void *data;
	size_t len;
	uint64_t offset;
};

static bool file_arm(struct uring_item *item)
{
	struct file *file = (struct file *)item;
	struct io_uring_sqe *sqe;

	if (item->dead || file->wanted == IDLE)
		return true;
	sqe = uring_request(item);
	if (!sqe)
		return false;
	if (file->wanted == WRITE)
		io_uring_prep_write(sqe, file->fd, file->data, (unsigned int)file->len,
				    file->offset);
	else
		io_uring_prep_fsync(sqe, file->fd,
				    file->wanted == SYNC_DATA ? IORING_FSYNC_DATASYNC : 0);
	uring_request_done(item, sqe, OP_FILE);
	file->wanted = IDLE;
	return true;
}

static void file_complete(struct uring_item *item, const struct io_uring_cqe *cqe)
{
	struct file *file = (struct file *)item;

	if (!item->dead)
		file->fn(file->arg, cqe->res);
}

struct loop_handle *uring_file_new(struct loop *loop, void (*fn)(void *arg, int result), void *arg)
{
	static const struct uring_kind kind = {file_arm, file_complete, nothing_more};
	struct file *file = uring_item_new(loop, sizeof(*file), &kind);

	if (!file)
		return NULL;
	file->fn = fn;
	file->arg = arg;
	return &file->item.handle;
}

void uring_file_write(struct loop_handle *handle, int fd, const void *data, size_t len,
		      uint64_t offset)
{
	struct file *file = (struct file *)handle;

	file->wanted = WRITE;
	file->fd = fd;
	file->data = data;
	file->len = len;
	file->offset = offset;
	uring_item_mark(&file->item);
}

void uring_file_sync(struct loop_handle *handle, int fd, bool data_only)
{
	struct file *file = (struct file *)handle;

	file->wanted = data_only ? SYNC_DATA : SYNC_ALL;
	file->fd = fd;
	uring_item_mark(&file->item);
}

int uring_file_wait(struct loop_handle *handle)
{
	return uring_item_wait((struct uring_item *)handle);
}

void uring_file_free(struct loop_handle *handle)
{
	uring_item_free((struct uring_item *)handle);
}
