/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.c - addresses as text, without libc's formatting. */
#include "shim/count/peer.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "shim/count/digits.h"
#include "shim/libc/sys.h"
#include "shim/shim.h"

static char *put_v4(char *p, const uint8_t *a)
{
	for (int i = 0; i < 4; i++) {
		if (i)
			*p++ = '.';
		p = put_number(p, a[i], 10);
	}
	return p;
}

static unsigned int group(const uint8_t *a, int i)
{
	return (unsigned int)a[2 * i] << 8 | a[2 * i + 1];
}

/* The longest run of two or more zero groups is "::". */
static void longest_zeros(const uint8_t *a, int *from, int *n)
{
	*from = 8;
	*n = 0;
	for (int i = 0; i < 8; i++) {
		int end = i;

		while (end < 8 && !group(a, end))
			end++;
		if (end - i > 1 && end - i > *n) {
			*from = i;
			*n = end - i;
		}
	}
}

static char *put_v6(char *p, const uint8_t *a)
{
	int from, n;

	longest_zeros(a, &from, &n);
	*p++ = '[';
	for (int i = 0; i < 8; i++) {
		if (i == from) {
			*p++ = ':';
			*p++ = ':';
			i += n - 1;
			continue;
		}
		if (i && i != from + n)
			*p++ = ':';
		p = put_number(p, group(a, i), 16);
	}
	*p++ = ']';
	return p;
}

uint32_t peer_id(int fd)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a;
	socklen_t size = sizeof(a), type_size = sizeof(int);
	char text[64], *p = text;
	const uint8_t *bytes;
	int type = 0;

	memset(&a, 0, sizeof(a));
	if (sys6(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&type, (long)&type_size, 0) < 0 ||
	    type != SOCK_STREAM || SYS3(SYS_getpeername, fd, &a, &size) < 0)
		return 0;
	bytes = (const uint8_t *)&a.v6.sin6_addr;
	if (a.any.sa_family == AF_INET)
		p = put_v4(p, (const uint8_t *)&a.v4.sin_addr);
	else if (a.any.sa_family == AF_INET6 && !memcmp(bytes, mapped, sizeof(mapped)))
		p = put_v4(p, bytes + sizeof(mapped));
	else if (a.any.sa_family == AF_INET6)
		p = put_v6(p, bytes);
	else
		return 0;
	*p++ = ':';
	p = put_number(p, ntohs(a.v4.sin_port), 10); /* sin6_port has the same offset */
	return arena_bulk_id(text, (uint32_t)(p - text));
}
