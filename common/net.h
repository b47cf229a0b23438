/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.h - addresses, sockets, and a byte stream that may use TLS.
 *
 * All sockets are non-blocking and close-on-exec; the caller polls. Only net_connect() may block:
 * in the name lookup, and only if the host is not a number.
 */
#ifndef CREMA_COMMON_NET_H
#define CREMA_COMMON_NET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum net_kind { NET_TCP, NET_DIR };

struct net_address {
	enum net_kind kind;
	char host[256]; /* without brackets; "" = any address (listen) */
	uint16_t port;
	char path[PATH_MAX]; /* NET_DIR */
};

/*
 * "HOST:PORT", "[V6]:PORT", "HOST" (default_port, unless that is 0), ":PORT", "dir:PATH" (an
 * absolute path), "tcp://HOST:PORT". 0 or -EINVAL.
 */
int net_parse(struct net_address *a, const char *text, uint16_t default_port);
/* "host:port", "[v6]:port" or "dir:path" into out; returns out. */
char *net_text(char *out, size_t size, const struct net_address *a);

/* Starts to connect: a descriptor (wait for POLLOUT, then net_connected()) or -errno. */
int net_connect(const struct net_address *a);
/* The outcome of a started connect: 0 or -errno. */
int net_connected(int fd);
/* A listening socket or -errno (-ENOENT: unknown host name). Port 0: any. */
int net_listen(const struct net_address *a, int backlog);
/* Accepts one connection; peer (may be NULL) gets "host:port". A descriptor, -EAGAIN or -errno. */
int net_accept(int fd, char *peer, size_t peer_size);
/* The address a socket is bound to; fills host and port. 0 or -errno. */
int net_local(int fd, struct net_address *a);
/* Converts a socket address to numbers, and back: 0 or -EINVAL if it is not a number. */
void net_name(const struct sockaddr *sa, socklen_t n, struct net_address *a);
int net_socket_address(const struct net_address *a, struct sockaddr_storage *out);

struct stream;
struct stream_ops {
	/* Bytes read; 0: the peer closed; -EAGAIN: poll first; -errno. */
	ssize_t (*read)(struct stream *s, void *p, size_t n);
	/* Bytes accepted (may be fewer than n); -EAGAIN; -errno (no SIGPIPE). */
	ssize_t (*write)(struct stream *s, const void *p, size_t n);
	/* Closes the descriptor and frees the state. */
	void (*close)(struct stream *s);
};
struct stream {
	const struct stream_ops *ops;
	int fd;	     /* for polling; -1: closed */
	void *state; /* the layer's own */
};

/* A stream over a connected socket, which the stream owns from now on. */
void stream_plain(struct stream *s, int fd);
struct tls_context;
/* The same through TLS (tls.h), as the client of `name`: 0 or -ENOMEM, and then the caller still
 * owns fd. */
int stream_tls(struct stream *s, int fd, struct tls_context *context, const char *name);
/* One line about what TLS rejected; "" = nothing. */
const char *stream_why(const struct stream *s);
/* True if TLS has bytes that wait for the socket: poll for writing, too, and read. */
bool stream_unsent(const struct stream *s);
ssize_t stream_read(struct stream *s, void *p, size_t n);
ssize_t stream_write(struct stream *s, const void *p, size_t n);
void stream_close(struct stream *s); /* a second call does nothing */

#endif
