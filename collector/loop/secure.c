/* SPDX-License-Identifier: BSD-3-Clause */
/* secure.c - connects the loop's streams and TLS. */
#include "collector/loop/secure.h"

#include <errno.h>

/* Sends the output of TLS. */
static int push(struct secure *s)
{
	const uint8_t *p;
	size_t n = tls_output(s->tls, &p);
	int rc;

	if (!n || !s->stream)
		return 0;
	rc = loop_stream_send(s->stream, p, n);
	if (!rc)
		tls_sent(s->tls, n);
	return rc;
}

static int encrypt(struct secure *s)
{
	ssize_t n = 1;

	while (s->waiting.len && n > 0) {
		n = tls_write(s->tls, s->waiting.data, s->waiting.len);
		if (n > 0)
			buf_consume(&s->waiting, (size_t)n);
	}
	if (!s->waiting.len)
		buf_release(&s->waiting);
	return n < 0 && n != -EAGAIN ? (int)n : push(s);
}

int secure_send(struct secure *s, const void *data, size_t n)
{
	if (!s->tls)
		return loop_stream_send(s->stream, data, n);
	if (s->waiting.len + n > LOOP_SEND_QUEUE)
		return -ENOBUFS;
	if (buf_add(&s->waiting, data, n))
		return -ENOMEM;
	return encrypt(s);
}

int secure_receive(struct secure *s, const uint8_t *data, size_t n,
		   int (*plain)(void *arg, const uint8_t *data, size_t n), void *arg)
{
	uint8_t text[16384];
	ssize_t got;

	if (!s->tls)
		return plain(arg, data, n);
	if (tls_feed(s->tls, data, n))
		return -ENOMEM;
	while ((got = tls_read(s->tls, text, sizeof(text))) > 0) {
		if (plain(arg, text, (size_t)got))
			return -1;
	}
	if (got < 0 && got != -EAGAIN) {
		push(s); /* the alert that reports the reason to the peer */
		return (int)got;
	}
	return encrypt(s);
}

void secure_finish(struct secure *s)
{
	if (s->tls) {
		tls_finish(s->tls);
		push(s);
	}
	loop_stream_finish(s->stream);
}

void secure_close(struct secure *s)
{
	loop_stream_close(s->stream);
	s->stream = NULL;
	tls_free(s->tls);
	s->tls = NULL;
	buf_release(&s->waiting);
}
