/* SPDX-License-Identifier: BSD-3-Clause */
/* listen.c - the collector's listening sockets. */
#include "collector/loop/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"

#define BACKLOG 1024

static int cannot(const char *command, const char *on, int err)
{
	log_line("%s: cannot listen on '%s': %s", command, on, log_error(err));
	return err;
}

int listen_open(const char *command, enum option_id option, const char *given, uint16_t port,
		char *text, size_t size, struct net_address *address)
{
	const char *flag = option_table[option].flag;
	int fd, err = net_parse(address, given, port);

	if (!err && address->kind != NET_TCP)
		err = -EINVAL;
	if (err) {
		log_line("%s: %s: '%s' is not ADDR:PORT", command, flag, given);
		return err;
	}
	fd = net_listen(address, BACKLOG);
	if (fd == -ENOENT) {
		log_line("%s: %s: no address is known for '%s'", command, flag, given);
		return fd;
	}
	if (fd < 0)
		return cannot(command, given, fd);
	err = net_local(fd, address);
	if (err) {
		close(fd);
		return cannot(command, given, err);
	}
	net_text(text, size, address);
	return fd;
}

bool listen_is_loopback(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t len = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &len))
		return false;
	if (address.ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)&address)->sin_addr.s_addr) >> 24 == 127;
	return address.ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address)->sin6_addr);
}
