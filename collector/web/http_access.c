/* SPDX-License-Identifier: BSD-3-Clause */
/* http_access.c - users, links, cookies, proofs, and the Host of a request. */
#include "collector/web/http_access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "collector/web/http_parts.h"
#include "collector/web/http_peer.h"
#include "common/net.h"
#include "common/proof.h"
#include "common/socket_owner.h"

#define SESSIONS 64 /* the oldest is dropped */
#define CODES 64    /* used ones that have not expired yet */
#define SESSION_BYTES 32
#define HTTP_80 80

struct session {
	uint8_t id[SESSION_BYTES];
	char who[sizeof(((struct http_peer *)NULL)->who)];
};

struct http_access {
	struct http_access_config config;
	int64_t began_s;
	struct session session[SESSIONS];
	size_t sessions; /* ever made; the last SESSIONS of them are kept */
	struct {
		uint8_t id[16];
		int64_t until_s;
	} used[CODES];
};

struct http_access *http_access_new(const struct http_access_config *config)
{
	struct http_access *access = calloc(1, sizeof(*access));

	if (!access)
		return NULL;
	access->config = *config;
	access->began_s = time(NULL);
	return access;
}

void http_access_free(struct http_access *access)
{
	free(access);
}

/* Host */

bool http_access_own_host(const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct net_address a;

	/* net_parse() accepts "tcp://" and a zone, but a Host header must not have them. */
	if (!host || strpbrk(host, "/ %") || net_parse(&a, host, HTTP_80) || a.kind != NET_TCP ||
	    a.port != port)
		return false;
	if (strchr(a.host, ':'))
		return host[0] == '[' && inet_pton(AF_INET6, a.host, &in6.sin6_addr) == 1 &&
		       socket_is_loopback((const struct sockaddr *)&in6);
	if (host[0] == '[')
		return false;
	return !strcasecmp(a.host, "localhost") ||
	       (inet_pton(AF_INET, a.host, &in.sin_addr) == 1 &&
		socket_is_loopback((const struct sockaddr *)&in));
}

struct heads {
	unsigned int hosts;
	bool forwarded;
};

static enum MHD_Result count_head(void *arg, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	static const char *const forwarding[] = {"Forwarded", "Via", "X-Real-IP",
						 "X-ProxyContextPath"};
	struct heads *heads = arg;

	(void)kind;
	(void)value;
	heads->hosts += !strcasecmp(name, "Host");
	heads->forwarded |= !strncasecmp(name, "X-Forwarded", strlen("X-Forwarded"));
	for (size_t i = 0; i < sizeof(forwarding) / sizeof(forwarding[0]); i++)
		heads->forwarded |= !strcasecmp(name, forwarding[i]);
	return MHD_YES;
}

/* Whether the process at the other end requests it for itself, not for others. */
static bool is_direct(struct MHD_Connection *connection, const struct http_peer *peer)
{
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
	struct heads heads = {0};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_head, &heads);
	return heads.hosts == 1 && !heads.forwarded && http_access_own_host(host, peer->port);
}

/* Sessions */

static void cookie_name(const struct http_peer *peer, char out[24])
{
	/* All ports of a host share its cookies. */
	snprintf(out, 24, "crema-%u", peer->port);
}

/* The cookie's user must be the one who opened the link: a stolen cookie is useless elsewhere. */
static bool has_session(const struct http_access *access, struct MHD_Connection *connection,
			const struct http_peer *peer)
{
	uint8_t id[SESSION_BYTES];
	const char *cookie;
	char name[24];

	cookie_name(peer, name);
	cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, name);
	if (!cookie || strlen(cookie) != 2 * sizeof(id) || !proof_unhex(id, sizeof(id), cookie))
		return false;
	for (size_t i = 0; i < SESSIONS && i < access->sessions; i++) {
		const struct session *session = &access->session[i];

		if (auth_equal(session->id, id, sizeof(id)) && !strcmp(session->who, peer->who))
			return true;
	}
	return false;
}

/* Marks it as used. */
static bool take_code(struct http_access *access, const char *code, uint16_t port)
{
	int64_t now = time(NULL), made;
	size_t i, room = CODES;
	uint8_t id[16];

	if (!access->config.token ||
	    proof_code_check(access->config.token, port, code, &made, id) ||
	    made < access->began_s || made > now + PROOF_SKEW_S || made < now - PROOF_CODE_S)
		return false;
	for (i = 0; i < CODES; i++) {
		if (access->used[i].until_s < now)
			room = i;
		else if (!memcmp(access->used[i].id, id, sizeof(id)))
			return false;
	}
	if (room == CODES)
		return false;
	memcpy(access->used[room].id, id, sizeof(id));
	access->used[room].until_s = made + PROOF_CODE_S;
	return true;
}

static const struct session *new_session(struct http_access *access, const struct http_peer *peer)
{
	struct session *session = &access->session[access->sessions % SESSIONS];

	if (auth_random(session->id, sizeof(session->id)))
		return NULL;
	memcpy(session->who, peer->who, sizeof(session->who));
	access->sessions++;
	return session;
}

/* Proofs */

static bool proof_of(const struct http_access *access, struct MHD_Connection *connection,
		     const char *method, const char *url, struct proof *proof,
		     uint8_t nonce[AUTH_NONCE_BYTES], uint8_t mac[AUTH_MAC_BYTES])
{
	const char *given =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
	struct http_peer *peer = http_peer_of(connection);

	if (!access->config.token || !peer || !peer->has_nonce ||
	    !proof_field(given, "nonce", nonce, AUTH_NONCE_BYTES) ||
	    !proof_field(given, "mac", mac, AUTH_MAC_BYTES))
		return false;
	*proof = (struct proof){access->config.token, method, url, peer->nonce, nonce};
	return true;
}

static bool has_proof(const struct http_access *access, struct MHD_Connection *connection,
		      const char *method, const char *url)
{
	uint8_t nonce[AUTH_NONCE_BYTES], mac[AUTH_MAC_BYTES], want[AUTH_MAC_BYTES];
	struct proof proof;

	return proof_of(access, connection, method, url, &proof, nonce, mac) &&
	       !proof_mac(&proof, want) && auth_equal(mac, want, sizeof(want));
}

int http_access_seal(const struct http_access *access, struct MHD_Connection *connection,
		     const char *method, const char *url, struct buf *body)
{
	uint8_t nonce[AUTH_NONCE_BYTES], mac[AUTH_MAC_BYTES];
	struct proof proof;

	return proof_of(access, connection, method, url, &proof, nonce, mac)
		       ? proof_seal(&proof, body)
		       : -EACCES;
}

static bool has_bearer(const struct http_access *access, struct MHD_Connection *connection)
{
	const char *given =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
	const struct auth_token *token = access->config.token;

	return token && (access->config.https || access->config.bearer) && given &&
	       !strncmp(given, "Bearer ", 7) && strlen(given + 7) == token->len &&
	       auth_equal(given + 7, token->text, token->len);
}

/* Verdicts */

static enum http_verdict check(const struct http_access *access, struct MHD_Connection *connection,
			       const struct http_peer *peer, const char *method, const char *url)
{
	bool ours = access->config.open && http_peer_is_ours(peer);

	if (ours && is_direct(connection, peer))
		return HTTP_GRANTED;
	if (has_session(access, connection, peer) || has_bearer(access, connection))
		return HTTP_GRANTED;
	if (has_proof(access, connection, method, url))
		return HTTP_SEALED;
	return ours ? HTTP_FOREIGN : HTTP_DENIED;
}

enum http_verdict http_access_check(struct http_access *access, struct MHD_Connection *connection,
				    const char *method, const char *url)
{
	const char *code = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "code");
	const struct http_peer *peer = http_peer_of(connection);
	enum http_verdict verdict = HTTP_DENIED;

	if (peer)
		verdict = check(access, connection, peer, method, url);
	if (!code || !peer)
		return verdict;
	return verdict == HTTP_GRANTED || take_code(access, code, peer->port) ? HTTP_LED_BACK
									      : HTTP_STALE;
}

/* Responses */

/* Redirects to the link without its code: relative, as a proxy before us may have removed a part of
 * the path. */
static enum MHD_Result lead_back(struct http_access *access, struct MHD_Connection *connection,
				 const struct http_peer *peer, const char *url)
{
	const char *run = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "run");
	const struct session *session = new_session(access, peer);
	char where[256], name[24], id[2 * SESSION_BYTES + 1], cookie[160];
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!session)
		return MHD_NO;
	cookie_name(peer, name);
	proof_hex(id, session->id, sizeof(session->id));
	snprintf(cookie, sizeof(cookie), "%s=%s; HttpOnly; SameSite=Strict%s", name, id,
		 access->config.https ? "; Secure" : "");
	url = url[1] ? url + 1 : "./";
	if (run && http_sane_run(run))
		snprintf(where, sizeof(where), "%s?run=%s", url, run);
	else
		snprintf(where, sizeof(where), "%s", url);
	response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Location", where);
	MHD_add_response_header(response, "Set-Cookie", cookie);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	result = MHD_queue_response(connection, MHD_HTTP_SEE_OTHER, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result http_access_respond(struct http_access *access, struct MHD_Connection *connection,
				    const char *url, enum http_verdict verdict)
{
	struct http_peer *peer = http_peer_of(connection);
	char nonce[2 * AUTH_NONCE_BYTES + 1], ask[128], text[256];

	if (!peer)
		return MHD_NO;
	if (verdict == HTTP_LED_BACK)
		return lead_back(access, connection, peer, url);
	if (!access->config.token) {
		snprintf(text, sizeof(text),
			 "this page is for processes of uid %u that use its address: there is no "
			 "token to log in with (--insecure)",
			 (unsigned int)geteuid());
		return http_respond_text(connection, 403, text, NULL, NULL);
	}
	if (!peer->has_nonce && auth_random(peer->nonce, sizeof(peer->nonce)))
		return MHD_NO;
	peer->has_nonce = true;
	proof_hex(nonce, peer->nonce, sizeof(peer->nonce));
	snprintf(ask, sizeof(ask), "%s nonce=%s%s", PROOF_SCHEME, nonce,
		 access->config.https || access->config.bearer ? ", Bearer" : "");
	snprintf(text, sizeof(text), "%s: open a link of 'crema token --link'",
		 verdict == HTTP_STALE ? "this link was used before or is too old"
		 : verdict == HTTP_FOREIGN
			 ? "the request came through a proxy, or used another name or port"
			 : "this page is for its owner and for users with the token");
	return http_respond_text(connection, verdict == HTTP_FOREIGN ? 403 : 401, text,
				 "WWW-Authenticate", ask);
}
