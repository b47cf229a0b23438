/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_peer.h - the peer of a connection to the status page, determined once for each.
 *
 * It is part of struct http_conn (http_parts.h). For the loop's thread.
 */
#ifndef CREMA_COLLECTOR_WEB_HTTP_PEER_H
#define CREMA_COLLECTOR_WEB_HTTP_PEER_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/auth.h"

struct http_peer {
	uint16_t port; /* ours; 0: not determined yet */
	bool known;    /* uid is the peer's: a connection over loopback */
	uid_t uid;
	char who[64]; /* "uid 1000", else its address */
	bool has_nonce;
	uint8_t nonce[AUTH_NONCE_BYTES]; /* ours, see proof.h */
};

/* NULL: not our connection. */
struct http_peer *http_peer_of(struct MHD_Connection *connection);
/* Whether it is a process of this collector's user or of root, which can read the journal
 * anyway. */
bool http_peer_is_ours(const struct http_peer *peer);

#endif
