/* SPDX-License-Identifier: BSD-3-Clause */
/* net.c - addresses, sockets and the plain byte stream. */
#include "common/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int parse_port(const char *s, uint16_t *port)
{
	unsigned long v = 0;

	if (!*s || strlen(s) > 5)
		return -EINVAL;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		v = v * 10 + (unsigned long)(*s - '0');
	}
	if (v > 65535)
		return -EINVAL;
	*port = (uint16_t)v;
	return 0;
}

static int parse_host(struct net_address *a, const char *s, size_t n)
{
	if (n >= sizeof(a->host))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] <= ' ' || s[i] == '/' || s[i] == 127)
			return -EINVAL;
	memcpy(a->host, s, n);
	a->host[n] = '\0';
	return 0;
}

int net_parse(struct net_address *a, const char *text, uint16_t default_port)
{
	const char *end, *colon;

	memset(a, 0, sizeof(*a));
	a->port = default_port;
	if (strncmp(text, "dir:", 4) == 0) {
		text += 4;
		a->kind = NET_DIR;
		if (text[0] != '/' || strlen(text) >= sizeof(a->path))
			return -EINVAL;
		memcpy(a->path, text, strlen(text) + 1);
		return 0;
	}
	a->kind = NET_TCP;
	if (strncmp(text, "tcp://", 6) == 0)
		text += 6;
	if (!*text)
		return -EINVAL;
	if (text[0] == '[') {
		end = strchr(text, ']');
		if (!end || end == text + 1 || parse_host(a, text + 1, (size_t)(end - text) - 1))
			return -EINVAL;
		if (end[1] == '\0')
			return default_port ? 0 : -EINVAL;
		return end[1] == ':' ? parse_port(end + 2, &a->port) : -EINVAL;
	}
	colon = strchr(text, ':');
	if (!colon)
		return default_port ? parse_host(a, text, strlen(text)) : -EINVAL;
	/* A bare v6 address has several colons and no port. */
	if (strchr(colon + 1, ':'))
		return default_port ? parse_host(a, text, strlen(text)) : -EINVAL;
	if (parse_host(a, text, (size_t)(colon - text)))
		return -EINVAL;
	return parse_port(colon + 1, &a->port);
}

char *net_text(char *out, size_t size, const struct net_address *a)
{
	if (a->kind == NET_DIR)
		snprintf(out, size, "dir:%s", a->path);
	else if (strchr(a->host, ':'))
		snprintf(out, size, "[%s]:%u", a->host, a->port);
	else
		snprintf(out, size, "%s:%u", a->host, a->port);
	return out;
}

/* Numbers first: they need no lookup and never block. */
static int lookup(const struct net_address *a, int flags, struct addrinfo **out)
{
	struct addrinfo hints;
	char port[8];
	int rc;

	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = flags | AI_NUMERICSERV | AI_NUMERICHOST;
	snprintf(port, sizeof(port), "%u", a->port);
	rc = getaddrinfo(a->host[0] ? a->host : NULL, port, &hints, out);
	if (rc == EAI_NONAME && a->host[0]) {
		hints.ai_flags &= ~AI_NUMERICHOST;
		rc = getaddrinfo(a->host, port, &hints, out);
	}
	if (rc == 0)
		return 0;
	if (rc == EAI_SYSTEM && errno)
		return -errno;
	return rc == EAI_MEMORY ? -ENOMEM : rc == EAI_AGAIN ? -EHOSTUNREACH : -ENOENT;
}

int net_connect(const struct net_address *a)
{
	struct addrinfo *list, *ai;
	int rc = lookup(a, 0, &list);
	int fd = -1, on = 1;

	if (rc)
		return rc;
	rc = -EHOSTUNREACH;
	for (ai = list; ai; ai = ai->ai_next) {
		fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			rc = -errno;
			continue;
		}
		if (connect(fd, ai->ai_addr, ai->ai_addrlen) == 0 || errno == EINPROGRESS)
			break;
		rc = -errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		return rc;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	return fd;
}

int net_connected(int fd)
{
	int error = 0;
	socklen_t n = sizeof(error);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		return -errno;
	return -error;
}

int net_listen(const struct net_address *a, int backlog)
{
	struct addrinfo *list, *ai;
	int rc = lookup(a, AI_PASSIVE, &list);
	int fd = -1, on = 1;

	if (rc)
		return rc;
	rc = -EADDRNOTAVAIL;
	for (ai = list; ai; ai = ai->ai_next) {
		fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			rc = -errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, backlog) == 0)
			break;
		rc = -errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd < 0 ? rc : fd;
}

void net_name(const struct sockaddr *sa, socklen_t n, struct net_address *a)
{
	char port[8] = "0";

	memset(a, 0, sizeof(*a));
	if (getnameinfo(sa, n, a->host, sizeof(a->host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		parse_port(port, &a->port);
}

int net_socket_address(const struct net_address *a, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	in->sin_port = htons(a->port); /* same offset in both families */
	out->ss_family = AF_INET;
	if (inet_pton(AF_INET, a->host, &in->sin_addr) == 1)
		return 0;
	out->ss_family = AF_INET6;
	return inet_pton(AF_INET6, a->host, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
}

int net_accept(int fd, char *peer, size_t peer_size)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	struct net_address a;
	int on = 1;
	int c = accept4(fd, (struct sockaddr *)&ss, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (c < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (peer && peer_size) {
		net_name((struct sockaddr *)&ss, n, &a);
		net_text(peer, peer_size, &a);
	}
	return c;
}

int net_local(int fd, struct net_address *a)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);

	if (getsockname(fd, (struct sockaddr *)&ss, &n) < 0)
		return -errno;
	net_name((struct sockaddr *)&ss, n, a);
	return 0;
}
