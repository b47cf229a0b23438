/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_tls.c - a byte stream (net.h) through TLS, over a connected socket. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net.h"
#include "common/tls.h"

/* What the socket does not take now is sent in the next call: a handshake never waits for more. */
static int push(struct stream *s)
{
	const uint8_t *p;
	size_t n = tls_output(s->state, &p);
	ssize_t done;

	if (!n)
		return 0;
	done = send(s->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (done < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	tls_sent(s->state, (size_t)done);
	return 0;
}

static ssize_t secure_read(struct stream *s, void *p, size_t n)
{
	uint8_t cipher[16384];
	ssize_t got, plain;
	int rc;

	do
		got = recv(s->fd, cipher, sizeof(cipher), MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno != EAGAIN)
		return -errno;
	if (got > 0 && tls_feed(s->state, cipher, (size_t)got))
		return -ENOMEM;
	plain = tls_read(s->state, p, n);
	rc = push(s);
	if (plain == -EAGAIN && got == 0)
		return 0; /* cut off without a close message */
	return plain != -EAGAIN || !rc ? plain : rc;
}

static ssize_t secure_write(struct stream *s, const void *p, size_t n)
{
	const uint8_t *left;
	ssize_t done;
	int rc = push(s);

	if (rc)
		return rc;
	if (tls_output(s->state, &left))
		return -EAGAIN; /* the socket is full */
	done = tls_write(s->state, p, n < 65536 ? n : 65536);
	rc = push(s);
	return rc && done > 0 ? rc : done;
}

static void secure_close(struct stream *s)
{
	tls_finish(s->state);
	push(s);
	tls_free(s->state);
	close(s->fd);
}

static const struct stream_ops tls_ops = {
	.read = secure_read,
	.write = secure_write,
	.close = secure_close,
};

int stream_tls(struct stream *s, int fd, struct tls_context *context, const char *name)
{
	s->state = tls_new(context, name);
	if (!s->state)
		return -ENOMEM;
	s->ops = &tls_ops;
	s->fd = fd;
	return 0;
}

const char *stream_why(const struct stream *s)
{
	return s->fd >= 0 && s->ops == &tls_ops ? tls_why(s->state) : "";
}

bool stream_unsent(const struct stream *s)
{
	const uint8_t *p;

	return s->fd >= 0 && s->ops == &tls_ops && tls_output(s->state, &p) > 0;
}
