/* SPDX-License-Identifier: BSD-3-Clause */
/* http_peer.c - the peer of a connection. */
#include "collector/web/http_peer.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collector/web/http_parts.h"
#include "common/net.h"
#include "common/socket_owner.h"

static void look(struct http_peer *peer, int fd)
{
	struct sockaddr_storage ours = {0}, theirs = {0};
	socklen_t ours_n = sizeof(ours), theirs_n = sizeof(theirs);
	const struct sockaddr *local = (void *)&ours, *remote = (void *)&theirs;
	struct net_address address;

	snprintf(peer->who, sizeof(peer->who), "unknown");
	if (net_local(fd, &address) || getsockname(fd, (void *)&ours, &ours_n) ||
	    getpeername(fd, (void *)&theirs, &theirs_n))
		return;
	peer->port = address.port;
	net_name(remote, theirs_n, &address);
	snprintf(peer->who, sizeof(peer->who), "%.60s", address.host);
	if (!socket_is_loopback(local) || !socket_is_loopback(remote))
		return;
	/* The peer's socket is the other one of this connection. */
	peer->known = !socket_owner(remote, local, &peer->uid) && peer->uid != OWNER_NOBODY;
	if (peer->known)
		snprintf(peer->who, sizeof(peer->who), "uid %u", (unsigned int)peer->uid);
}

struct http_peer *http_peer_of(struct MHD_Connection *connection)
{
	struct http_conn *conn = http_conn_of(connection);

	if (!conn)
		return NULL;
	if (!conn->peer.port)
		look(&conn->peer, conn->fd);
	return &conn->peer;
}

bool http_peer_is_ours(const struct http_peer *peer)
{
	return peer->known && (peer->uid == geteuid() || peer->uid == 0);
}
