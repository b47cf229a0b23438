/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_stream.c - streams: receiving, the send queue, ending. */
#include "collector/loop/loop_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct loop_stream {
	struct loop_source source;
	const struct loop_stream_ops *ops;
	void *arg;
	uint8_t *out;
	size_t out_len, out_cap;
	struct loop_stream *next_dirty;
	bool dirty, paused, finishing, shut;
};

void loop_stream_release(struct loop_stream *stream)
{
	struct loop_stream **p;

	if (stream->source.dead)
		return;
	for (p = &stream->source.loop->dirty; stream->dirty && *p; p = &(*p)->next_dirty) {
		if (*p == stream) {
			*p = stream->next_dirty;
			break;
		}
	}
	free(stream->out);
	stream->out = NULL;
	loop_source_free(&stream->source);
}

static void stream_break(struct loop_stream *stream, int error)
{
	const struct loop_stream_ops *ops = stream->ops;
	void *arg = stream->arg;

	loop_stream_release(stream);
	ops->closed(arg, error);
}

static int stream_update(struct loop_stream *stream)
{
	return loop_source_watch(&stream->source,
				 (uint32_t)(stream->paused ? EPOLLRDHUP : EPOLLIN) |
					 (stream->out_len ? (uint32_t)EPOLLOUT : 0));
}

/* Sends as much as the socket accepts. 0 or -errno. */
static int stream_push(struct loop_stream *stream)
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

static void stream_flush(struct loop_stream *stream)
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

void loop_stream_ready(struct loop_source *source, uint32_t events)
{
	struct loop_stream *stream = (struct loop_stream *)source;
	ssize_t n;

	if (events & EPOLLOUT) {
		stream_flush(stream);
		if (source->dead)
			return;
	}
	/* Otherwise peers that give up and reconnect would pile up while everything is paused. */
	if (stream->paused) {
		if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
			stream_break(stream, -ECONNRESET);
		return;
	}
	if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		return;
	n = recv(source->fd, source->loop->buffer, LOOP_READ_MAX, MSG_DONTWAIT);
	if (n > 0)
		stream->ops->bytes(stream->arg, source->loop->buffer, (size_t)n);
	else if (n == 0)
		stream_break(stream, 0);
	else if (errno != EAGAIN && errno != EINTR)
		stream_break(stream, -errno);
}

struct loop_stream *loop_stream_new(struct loop *loop, int fd, const struct loop_stream_ops *ops,
				    void *arg)
{
	struct loop_stream *stream;

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return NULL;
	stream = loop_source_new(loop, sizeof(*stream), fd, loop_stream_ready);
	if (!stream)
		return NULL;
	stream->source.owns_fd = true;
	stream->ops = ops;
	stream->arg = arg;
	return stream;
}

static void stream_mark(struct loop_stream *stream)
{
	struct loop *loop = stream->source.loop;

	if (stream->dirty)
		return;
	stream->dirty = true;
	stream->next_dirty = loop->dirty;
	loop->dirty = stream;
}

int loop_stream_send(struct loop_stream *stream, const void *data, size_t len)
{
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

void loop_stream_pause(struct loop_stream *stream, bool paused)
{
	stream->paused = paused;
	stream_update(stream);
}

void loop_stream_finish(struct loop_stream *stream)
{
	stream->finishing = true;
	stream_mark(stream);
}

void loop_stream_close(struct loop_stream *stream)
{
	if (!stream)
		return;
	if (stream->out_len)
		stream_push(stream);
	loop_stream_release(stream);
}

void loop_stream_send_all(struct loop *loop)
{
	struct loop_stream *stream;

	while ((stream = loop->dirty)) {
		loop->dirty = stream->next_dirty;
		stream->dirty = false;
		stream_flush(stream);
	}
}
