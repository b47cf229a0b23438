/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_epoll_stream.c - streams of the epoll loop: receiving, the send queue, ending. */
#include "collector/serve/loop_epoll.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct epoll_stream {
	struct epoll_source source;
	const struct loop_stream_ops *ops;
	void *arg;
	uint8_t *out;
	size_t out_len, out_cap;
	struct epoll_stream *next_dirty;
	bool dirty, paused, finishing, shut;
};

void epoll_stream_release(struct epoll_stream *stream)
{
	struct epoll_stream **p;

	if (stream->source.dead)
		return;
	for (p = &epoll_loop_of(&stream->source)->dirty; stream->dirty && *p;
	     p = &(*p)->next_dirty) {
		if (*p == stream) {
			*p = stream->next_dirty;
			break;
		}
	}
	free(stream->out);
	stream->out = NULL;
	epoll_source_free(&stream->source);
}

static void stream_break(struct epoll_stream *stream, int error)
{
	const struct loop_stream_ops *ops = stream->ops;
	void *arg = stream->arg;

	epoll_stream_release(stream);
	ops->closed(arg, error);
}

static int stream_update(struct epoll_stream *stream)
{
	return epoll_source_watch(&stream->source,
				  (uint32_t)(stream->paused ? EPOLLRDHUP : EPOLLIN) |
					  (stream->out_len ? (uint32_t)EPOLLOUT : 0));
}

/* Sends what the socket takes. 0 or -errno. */
static int stream_push(struct epoll_stream *stream)
{
	ssize_t n;

	if (stream->out_len) {
		n = send(stream->source.fd, stream->out, stream->out_len,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		stream->out_len -= (size_t)n;
		memmove(stream->out, stream->out + n, stream->out_len);
	}
	if (stream->out_len)
		return 0;
	free(stream->out);
	stream->out = NULL;
	stream->out_cap = 0;
	if (stream->finishing && !stream->shut) {
		stream->shut = true;
		shutdown(stream->source.fd, SHUT_WR);
	}
	return 0;
}

static void stream_flush(struct epoll_stream *stream)
{
	bool had = stream->out_len > 0;
	int err = stream_push(stream);

	if (!err)
		err = stream_update(stream);
	if (err)
		stream_break(stream, err);
	else if (had && !stream->out_len && stream->ops->writable)
		stream->ops->writable(stream->arg);
}

void epoll_stream_ready(struct epoll_source *source, uint32_t events)
{
	struct epoll_stream *stream = (struct epoll_stream *)source;
	ssize_t n;

	if (events & EPOLLOUT) {
		stream_flush(stream);
		if (source->dead)
			return;
	}
	/* Else peers that give up and come again would pile up while everything is paused. */
	if (stream->paused) {
		if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
			stream_break(stream, -ECONNRESET);
		return;
	}
	if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		return;
	n = recv(source->fd, epoll_loop_of(source)->buffer, LOOP_READ_MAX, MSG_DONTWAIT);
	if (n > 0)
		stream->ops->bytes(stream->arg, epoll_loop_of(source)->buffer, (size_t)n);
	else if (n == 0)
		stream_break(stream, 0);
	else if (errno != EAGAIN && errno != EINTR)
		stream_break(stream, -errno);
}

struct loop_handle *epoll_stream_new(struct loop *loop, int fd, const struct loop_stream_ops *ops,
				     void *arg)
{
	struct epoll_stream *stream;

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return NULL;
	stream = epoll_source_new(loop, sizeof(*stream), fd, epoll_stream_ready);
	if (!stream)
		return NULL;
	stream->source.owns_fd = true;
	stream->ops = ops;
	stream->arg = arg;
	return &stream->source.handle;
}

static void stream_mark(struct epoll_stream *stream)
{
	struct epoll_loop *loop = epoll_loop_of(&stream->source);

	if (stream->dirty)
		return;
	stream->dirty = true;
	stream->next_dirty = loop->dirty;
	loop->dirty = stream;
}

int epoll_stream_send(struct loop_handle *handle, const void *data, size_t len)
{
	struct epoll_stream *stream = (struct epoll_stream *)handle;
	size_t cap = stream->out_cap ? stream->out_cap : 256;
	uint8_t *out;

	if (len > LOOP_SEND_QUEUE - stream->out_len)
		return -ENOBUFS;
	while (cap < stream->out_len + len)
		cap *= 2;
	if (cap != stream->out_cap) {
		out = realloc(stream->out, cap);
		if (!out)
			return -ENOMEM;
		stream->out = out;
		stream->out_cap = cap;
	}
	memcpy(stream->out + stream->out_len, data, len);
	stream->out_len += len;
	stream_mark(stream);
	return 0;
}

void epoll_stream_pause(struct loop_handle *handle, bool paused)
{
	struct epoll_stream *stream = (struct epoll_stream *)handle;

	stream->paused = paused;
	stream_update(stream);
}

void epoll_stream_finish(struct loop_handle *handle)
{
	struct epoll_stream *stream = (struct epoll_stream *)handle;

	stream->finishing = true;
	stream_mark(stream);
}

void epoll_stream_close(struct loop_handle *handle)
{
	struct epoll_stream *stream = (struct epoll_stream *)handle;

	if (stream->out_len)
		stream_push(stream);
	epoll_stream_release(stream);
}

void epoll_stream_send_all(struct epoll_loop *loop)
{
	struct epoll_stream *stream;

	while ((stream = loop->dirty)) {
		loop->dirty = stream->next_dirty;
		stream->dirty = false;
		stream_flush(stream);
	}
}
