/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secure.h - a stream of the loop with optional TLS.
 *
 * Data sent before the handshake completes is queued, at most LOOP_SEND_QUEUE bytes. For the
 * loop's thread.
 */
#ifndef CREMA_COLLECTOR_LOOP_SECURE_H
#define CREMA_COLLECTOR_LOOP_SECURE_H

#include "collector/loop/loop.h"
#include "common/buf.h"
#include "common/tls.h"

struct secure {
	struct loop_stream *stream; /* NULL: gone */
	struct tls *tls;	    /* NULL: plain */
	struct buf waiting;	    /* plain bytes */
};

/* 0, -ENOBUFS (see loop.h), -ENOMEM or -EPROTO (tls_why()). */
int secure_send(struct secure *s, const void *data, size_t n);
/*
 * Feeds received bytes; `plain` gets the plain text, possibly in several calls. `plain` may
 * free the connection and s: it then returns -1, and so does this function. 0, -1, -EPROTO,
 * -ENOMEM or -ENOBUFS.
 */
int secure_receive(struct secure *s, const uint8_t *data, size_t n,
		   int (*plain)(void *arg, const uint8_t *data, size_t n), void *arg);
/* Nothing more will be sent. */
void secure_finish(struct secure *s);
/* Closes at once and frees everything; set a stream that is gone to NULL first. */
void secure_close(struct secure *s);

#endif
