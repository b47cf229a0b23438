/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - which event loop it is, running it, and handing calls on to it. */
#include "collector/serve/loop_common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef CREMA_URING
struct loop *loop_uring_new(bool multishot)
{
	(void)multishot;
	errno = ENOSYS;
	return NULL;
}
#endif

int loop_kind_parse(enum loop_kind *kind, const char *text)
{
	static const char *const name[] = {"auto", "epoll", "io_uring"};
	size_t i;

	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if (strcmp(text, name[i]) != 0)
			continue;
		*kind = (enum loop_kind)i;
		return 0;
	}
	return -EINVAL;
}

struct loop *loop_new(enum loop_kind kind)
{
	struct loop *loop = NULL;
	int refused = 0;

	if (kind == LOOP_URING || kind == LOOP_URING_SINGLE) {
		loop = loop_uring_new(kind == LOOP_URING);
		refused = loop ? 0 : -errno;
	}
	if (!loop)
		loop = loop_epoll_new();
	if (loop)
		loop->refused = refused;
	return loop;
}

const char *loop_name(const struct loop *loop)
{
	return loop->backend->name;
}

int loop_refused(const struct loop *loop)
{
	return loop->refused;
}

void loop_free(struct loop *loop)
{
	if (loop)
		loop->backend->free(loop);
}

int loop_run(struct loop *loop)
{
	int err = 0;

	while (!err && !loop->stop)
		err = loop->backend->turn(loop, -1);
	if (!err && loop->backend->flush)
		err = loop->backend->flush(loop);
	return err;
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	int err = loop->backend->turn(loop, timeout_ms);

	if (!err && loop->backend->flush)
		err = loop->backend->flush(loop);
	return err;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}

int64_t loop_now_ms(const struct loop *loop)
{
	return loop->now_ms;
}

void loop_set_round_end(struct loop *loop, void (*fn)(void *arg), void *arg)
{
	loop->round_end = fn;
	loop->round_end_arg = arg;
}

/* The types of streams, watches and files are declared for callers only: each is a loop_handle. */

static struct loop_handle *handle_of(void *object)
{
	return object;
}

static const struct loop_backend *backend_of(void *object)
{
	return handle_of(object)->loop->backend;
}

struct loop_stream *loop_stream_new(struct loop *loop, int fd, const struct loop_stream_ops *ops,
				    void *arg)
{
	return (void *)loop->backend->stream_new(loop, fd, ops, arg);
}

int loop_stream_send(struct loop_stream *stream, const void *data, size_t len)
{
	return backend_of(stream)->stream_send(handle_of(stream), data, len);
}

void loop_stream_pause(struct loop_stream *stream, bool paused)
{
	backend_of(stream)->stream_pause(handle_of(stream), paused);
}

void loop_stream_finish(struct loop_stream *stream)
{
	backend_of(stream)->stream_finish(handle_of(stream));
}

void loop_stream_close(struct loop_stream *stream)
{
	if (stream)
		backend_of(stream)->stream_close(handle_of(stream));
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*fn)(void *arg), void *arg)
{
	return (void *)loop->backend->watch_new(loop, fd, fn, arg);
}

void loop_watch_pause(struct loop_watch *watch, bool paused)
{
	backend_of(watch)->watch_pause(handle_of(watch), paused);
}

void loop_watch_free(struct loop_watch *watch)
{
	if (watch)
		backend_of(watch)->watch_free(handle_of(watch));
}

struct loop_file *loop_file_new(struct loop *loop, void (*fn)(void *arg, int result), void *arg)
{
	if (loop->backend->file_new)
		return (void *)loop->backend->file_new(loop, fn, arg);
	errno = ENOSYS;
	return NULL;
}

void loop_file_write(struct loop_file *file, int fd, const void *data, size_t len, uint64_t offset)
{
	backend_of(file)->file_write(handle_of(file), fd, data, len, offset);
}

void loop_file_sync(struct loop_file *file, int fd, bool data_only)
{
	backend_of(file)->file_sync(handle_of(file), fd, data_only);
}

int loop_file_wait(struct loop_file *file)
{
	return backend_of(file)->file_wait(handle_of(file));
}

void loop_file_free(struct loop_file *file)
{
	if (file)
		backend_of(file)->file_free(handle_of(file));
}
