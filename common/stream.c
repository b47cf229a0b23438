/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - the plain byte stream (net.h). */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net.h"

static ssize_t plain_read(struct stream *s, void *p, size_t n)
{
	ssize_t got;

	do
		got = recv(s->fd, p, n, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static ssize_t plain_write(struct stream *s, const void *p, size_t n)
{
	ssize_t done;

	do
		done = send(s->fd, p, n, MSG_NOSIGNAL);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}

static void plain_close(struct stream *s)
{
	close(s->fd);
}

static const struct stream_ops plain_ops = {
	.read = plain_read,
	.write = plain_write,
	.close = plain_close,
};

void stream_plain(struct stream *s, int fd)
{
	s->ops = &plain_ops;
	s->fd = fd;
	s->state = NULL;
}

ssize_t stream_read(struct stream *s, void *p, size_t n)
{
	return s->fd < 0 ? -ENOTCONN : s->ops->read(s, p, n);
}

ssize_t stream_write(struct stream *s, const void *p, size_t n)
{
	return s->fd < 0 ? -ENOTCONN : s->ops->write(s, p, n);
}

void stream_close(struct stream *s)
{
	if (s->fd >= 0 && s->ops)
		s->ops->close(s);
	s->fd = -1;
}
