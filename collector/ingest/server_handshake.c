/* SPDX-License-Identifier: BSD-3-Clause */
/* server_handshake.c - from accept to HELLO: versions, the proof of the token, the keys. */
#include "collector/ingest/server_conn.h"

#include <string.h>

#include "common/log.h"
#include "common/pack.h"
#include "ids.h"

#define OLD_AGENT                                                                                  \
	"an agent of an older release, whose connection is not protected: use one release on "     \
	"both ends, or crema collect --old-agents"

int server_send_challenge(struct server_conn *conn)
{
	struct packed_map map;
	msgpack_packer *pk = packed_map_begin(&map);

	/* The oldest version is always offered: its agents get instructions from REFUSE, and we
	 * notice them. */
	pack_kv_u64(pk, "min", CREMA_PROTOCOL_OLDEST);
	pack_kv_u64(pk, "max", CREMA_PROTOCOL);
	pack_kv_bin(pk, "nonce", conn->nonce, sizeof(conn->nonce));
	return server_send(conn, CREMA_FRAME_CHALLENGE, 0, &map);
}

/* mac NULL: we have no token to prove. */
static int send_proof(struct server_conn *conn, const uint8_t *mac)
{
	struct packed_map map;

	pack_kv_bin(packed_map_begin(&map), "mac", mac, AUTH_MAC_BYTES);
	return server_send(conn, CREMA_FRAME_PROOF, 0, &map);
}

/* Proves the token; the agent's next data must be sealed. */
static int prove(struct server_conn *conn, struct text nonce)
{
	struct server *server = conn->server;
	struct auth_start start = {
		CREMA_PROTOCOL_OLDEST, CREMA_PROTOCOL, conn->version, {0}, {0}, {0}};
	struct auth_keys keys;
	int err;

	if (nonce.len != AUTH_NONCE_BYTES)
		return server_conn_drop(conn, SERVER_bad_payload, NULL);
	memcpy(start.collector_nonce, conn->nonce, sizeof(start.collector_nonce));
	memcpy(start.agent_nonce, nonce.ptr, nonce.len);
	memcpy(start.worker, conn->worker, sizeof(start.worker));
	if (auth_keys(server->config.token, &start, &keys))
		return server_conn_drop(conn, SERVER_no_memory, NULL);
	seal_init(&conn->seal_in, server->cipher, keys.to_collector);
	seal_init(&conn->seal_out, server->cipher, keys.to_agent);
	conn->state = CONN_PROOF;
	err = send_proof(conn, keys.proof);
	auth_forget(&keys, sizeof(keys));
	return err;
}

static int take_agent(struct server_conn *conn, struct text nonce)
{
	const struct server_config *config = &conn->server->config;

	if (nonce.ptr && config->token)
		return prove(conn, nonce);
	if (!config->insecure)
		return server_conn_drop(conn, SERVER_bad_token, "the agent has no token");
	conn->state = CONN_HELLO;
	return send_proof(conn, NULL);
}

static int take_old_agent(struct server_conn *conn, struct text nonce, struct text mac)
{
	struct server *server = conn->server;
	const struct server_config *config = &server->config;
	uint8_t want[AUTH_MAC_BYTES];

	if (!config->old_agents)
		return server_conn_drop(conn, SERVER_bad_version, OLD_AGENT);
	if (!config->insecure &&
	    (nonce.len != AUTH_NONCE_BYTES || mac.len != AUTH_MAC_BYTES ||
	     auth_mac(config->token, conn->nonce, (const uint8_t *)nonce.ptr, conn->worker, want) ||
	     !auth_equal(want, mac.ptr, sizeof(want))))
		return server_conn_drop(conn, SERVER_bad_token, NULL);
	if (!server->old_agent_seen)
		log_line("collect: %s has an older release: it is accepted because of "
			 "--old-agents, and its records are not protected (as for all such agents)",
			 conn->peer);
	server->old_agent_seen = true;
	conn->state = CONN_HELLO;
	return 0;
}

int server_auth(struct server_conn *conn, const struct frame *frame)
{
	struct text nonce, mac;
	struct unpack map;
	uint64_t version;
	int err;

	if (server_open_map(conn, frame, &map))
		return -1;
	version = get_u64(&map.root, "version", 0);
	nonce = get_bin(&map.root, "nonce");
	mac = get_bin(&map.root, "mac");
	memcpy(conn->worker, frame->head.worker, sizeof(conn->worker));
	conn->version = (uint8_t)version;
	if (version < CREMA_PROTOCOL_OLDEST || version > CREMA_PROTOCOL)
		err = server_conn_drop(conn, SERVER_bad_version, NULL);
	else if (version == CREMA_PROTOCOL)
		err = take_agent(conn, nonce);
	else
		err = take_old_agent(conn, nonce, mac);
	unpack_release(&map);
	return err;
}
