/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_file.c - writes and syncs files without waiting for the disk, by an io_uring that epoll
 * watches.
 *
 * A request is submitted at once. In the call the kernel does what it can do without waiting (a
 * copy into the page cache), and passes the rest to kernel threads.
 */
#include "collector/loop/loop_source.h"

#include <errno.h>

#ifdef CREMA_URING
#include <liburing.h>
#include <stdlib.h>

#define REQUESTS 8u

struct loop_file {
	struct loop *loop;
	void (*fn)(void *arg, int result);
	void *arg;
	struct loop_file *next;
	enum { IDLE, UNDER_WAY, ANSWERED } state;
	int result;
};

struct loop_ring {
	struct io_uring ring;
	struct loop_watch *watch;
	struct loop_file *files;
};

static bool has_operations(struct io_uring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool all = probe && io_uring_opcode_supported(probe, IORING_OP_NOP) &&
		   io_uring_opcode_supported(probe, IORING_OP_WRITE) &&
		   io_uring_opcode_supported(probe, IORING_OP_FSYNC);

	io_uring_free_probe(probe);
	return all;
}

/* A seccomp filter may allow creating a ring but refuse its use. */
static int try_out(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int err;

	io_uring_prep_nop(sqe);
	err = io_uring_submit_and_wait(ring, 1);
	if (err < 0)
		return err;
	err = io_uring_peek_cqe(ring, &cqe);
	if (!err)
		io_uring_cqe_seen(ring, cqe);
	return err;
}

static int open_ring(struct io_uring *ring)
{
	int err = io_uring_queue_init(REQUESTS, ring, 0);

	if (err)
		return err;
	err = has_operations(ring) ? io_uring_ring_dontfork(ring) : -EOPNOTSUPP;
	if (!err)
		err = try_out(ring);
	if (err)
		io_uring_queue_exit(ring);
	return err;
}

/* Takes the kernel's completions without calling anyone. */
static void take_answers(struct loop_ring *ring)
{
	struct io_uring_cqe *cqe;
	struct loop_file *file;

	while (!io_uring_peek_cqe(&ring->ring, &cqe)) {
		file = io_uring_cqe_get_data(cqe);
		file->result = cqe->res;
		file->state = ANSWERED;
		io_uring_cqe_seen(&ring->ring, cqe);
	}
}

static void deliver(struct loop_file *file)
{
	file->state = IDLE;
	file->fn(file->arg, file->result);
}

bool loop_files_answered(const struct loop *loop)
{
	const struct loop_file *file;

	for (file = loop->ring ? loop->ring->files : NULL; file; file = file->next) {
		if (file->state == ANSWERED)
			return true;
	}
	return false;
}

void loop_files_deliver(struct loop *loop)
{
	struct loop_file *file;

	/* fn may free its file and create others, so start over after each call. */
again:
	for (file = loop->ring ? loop->ring->files : NULL; file; file = file->next) {
		if (file->state == ANSWERED) {
			deliver(file);
			goto again;
		}
	}
}

static void on_ready(void *arg)
{
	struct loop *loop = arg;

	take_answers(loop->ring);
	loop_files_deliver(loop);
}

static int start_ring(struct loop *loop)
{
	struct loop_ring *ring = calloc(1, sizeof(*ring));
	int err;

	if (!ring)
		return -ENOMEM;
	err = open_ring(&ring->ring);
	if (err)
		goto out;
	ring->watch = loop_watch_new(loop, ring->ring.ring_fd, on_ready, loop);
	if (!ring->watch) {
		err = -errno;
		io_uring_queue_exit(&ring->ring);
		goto out;
	}
	loop->ring = ring;
	return 0;
out:
	free(ring);
	return err;
}

void loop_files_release(struct loop *loop)
{
	if (!loop->ring)
		return;
	loop_watch_free(loop->ring->watch);
	io_uring_queue_exit(&loop->ring->ring);
	free(loop->ring);
	loop->ring = NULL;
}

struct loop_file *loop_file_new(struct loop *loop, void (*fn)(void *arg, int result), void *arg)
{
	int err = loop->ring ? 0 : start_ring(loop);
	struct loop_file *file;

	if (err) {
		errno = -err;
		return NULL;
	}
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->loop = loop;
	file->fn = fn;
	file->arg = arg;
	file->next = loop->ring->files;
	loop->ring->files = file;
	return file;
}

/* An error of the submission becomes the operation's result. */
static void submit(struct loop_file *file, struct io_uring_sqe *sqe)
{
	int err;

	io_uring_sqe_set_data(sqe, file);
	file->state = UNDER_WAY;
	do
		err = io_uring_submit(&file->loop->ring->ring);
	while (err == -EINTR || err == -EAGAIN);
	if (err < 0) {
		file->result = err;
		file->state = ANSWERED;
	}
}

void loop_file_write(struct loop_file *file, int fd, const void *data, size_t len, uint64_t offset)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&file->loop->ring->ring);

	io_uring_prep_write(sqe, fd, data, (unsigned int)len, offset);
	submit(file, sqe);
}

void loop_file_sync(struct loop_file *file, int fd, bool data_only)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&file->loop->ring->ring);

	io_uring_prep_fsync(sqe, fd, data_only ? IORING_FSYNC_DATASYNC : 0);
	submit(file, sqe);
}

int loop_file_wait(struct loop_file *file)
{
	struct io_uring_cqe *cqe;
	int err;

	while (file->state == UNDER_WAY) {
		err = io_uring_wait_cqe(&file->loop->ring->ring, &cqe);
		if (err && err != -EINTR && err != -EAGAIN)
			return err;
		take_answers(file->loop->ring);
	}
	if (file->state == ANSWERED)
		deliver(file);
	return 0;
}

void loop_file_free(struct loop_file *file)
{
	struct loop_file **p;

	if (!file)
		return;
	for (p = &file->loop->ring->files; *p != file;)
		p = &(*p)->next;
	*p = file->next;
	free(file);
}

#else

bool loop_files_answered(const struct loop *loop)
{
	(void)loop;
	return false;
}

void loop_files_deliver(struct loop *loop)
{
	(void)loop;
}

void loop_files_release(struct loop *loop)
{
	(void)loop;
}

struct loop_file *loop_file_new(struct loop *loop, void (*fn)(void *arg, int result), void *arg)
{
	(void)loop, (void)fn, (void)arg;
	errno = ENOSYS;
	return NULL;
}

/* Unreachable: without io_uring there are no files. */
void loop_file_write(struct loop_file *file, int fd, const void *data, size_t len, uint64_t offset)
{
	(void)file, (void)fd, (void)data, (void)len, (void)offset;
}

void loop_file_sync(struct loop_file *file, int fd, bool data_only)
{
	(void)file, (void)fd, (void)data_only;
}

int loop_file_wait(struct loop_file *file)
{
	(void)file;
	return -ENOSYS;
}

void loop_file_free(struct loop_file *file)
{
	(void)file;
}
#endif
