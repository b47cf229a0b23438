/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls.h - TLS (OpenSSL) as a filter between bytes of a connection and bytes of its user.
 *
 *	received -> tls_feed() -> tls_read() -> plain bytes
 *	plain bytes -> tls_write() -> tls_output() -> to be sent, then tls_sent()
 *
 * It does no I/O itself, so it fits the agent's stream and any loop of the collector. Both ends
 * show a certificate that the same authority has signed, as Dask's own connections do; as there,
 * names in the certificates are not compared with addresses: whoever has one is a member of the
 * cluster. TLS 1.2 or newer.
 *
 * The sessions of one thread may share a context. Functions return -errno; tls_why() has the line
 * for people.
 */
#ifndef CREMA_COMMON_TLS_H
#define CREMA_COMMON_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tls_files { /* PEM */
	const char *ca, *cert;
	const char *key; /* NULL: it is in cert's file */
};

struct tls_context;
struct tls;

/* NULL with one line in `why`: which file is unusable, and why. */
struct tls_context *tls_context_new(const struct tls_files *files, bool server, char *why,
				    size_t size);
void tls_context_free(struct tls_context *context);

/* `name`: of the host that a client connects to, sent to it (SNI) unless it is a number; NULL:
 * none. */
struct tls *tls_new(struct tls_context *context, const char *name);
void tls_free(struct tls *t);

/* Takes received bytes: 0 or -ENOMEM. */
int tls_feed(struct tls *t, const void *p, size_t n);
/* Plain bytes: how many; 0: the peer closed properly; -EAGAIN: none now; -EPROTO: see tls_why(). */
ssize_t tls_read(struct tls *t, void *p, size_t n);
/* Takes plain bytes: how many; -EAGAIN: not before the handshake is done; -EPROTO. */
ssize_t tls_write(struct tls *t, const void *p, size_t n);
/* Notifies the peer that nothing more follows. */
void tls_finish(struct tls *t);
/* The bytes to send, valid until the next call; returns their size. */
size_t tls_output(struct tls *t, const uint8_t **p);
/* This much of it was sent. */
void tls_sent(struct tls *t, size_t n);
/* One line about the last -EPROTO; "" = no error. */
const char *tls_why(const struct tls *t);

#endif
