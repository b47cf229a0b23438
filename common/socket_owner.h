/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket_owner.h - which user a TCP socket of this machine belongs to, according to the kernel.
 *
 * For a connection: the user of the process that made the socket (connect) or took it (accept). The
 * query uses a socket of NETLINK_SOCK_DIAG; if there are none, /proc/self/net/tcp, which takes
 * longer the more sockets a machine has, so at most OWNER_READS times in a second. Neither blocks.
 * Not for concurrent use.
 */
#ifndef CREMA_COMMON_SOCKET_OWNER_H
#define CREMA_COMMON_SOCKET_OWNER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define OWNER_READS 20
/* All users that do not exist in a namespace have this number: it proves nothing. */
#define OWNER_NOBODY 65534

/*
 * The owner of the socket whose own address is `local` and whose peer is `remote`; of the listening
 * one if that is NULL. 0; -ENOENT: there is none, or no process has it (yet, or any more); -EAGAIN:
 * too many queries; -errno.
 */
int socket_owner(const struct sockaddr *local, const struct sockaddr *remote, uid_t *uid);
/* Only the second way. */
int socket_owner_read(const struct sockaddr *local, const struct sockaddr *remote, uid_t *uid);
/* 127.0.0.0/8, ::1, and the former in the notation of the latter's family. */
bool socket_is_loopback(const struct sockaddr *address);

#endif
