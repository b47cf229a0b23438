/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proof.h - the token on the status page's side: possession is proved, the token is never sent.
 *
 * A client sends a request, gets 401 with a nonce that the server has made for this connection
 * ("WWW-Authenticate: Crema nonce=HEX"), and repeats the request with its own nonce and a MAC over
 * both, the method and the path ("Authorization: Crema nonce=HEX, mac=HEX"). The response is sealed
 * (AES-256-GCM) with a key from the token and both nonces. So what is intercepted or obtained from
 * a client is useless elsewhere, a relay between both sides can read nothing, and only a server
 * that has the token can respond. The length of a response is not hidden.
 *
 * A code belongs to a link: it proves that its maker had the token at some time, for one port. No
 * state; any thread. 0 or -errno; -EACCES: the proof failed.
 */
#ifndef CREMA_COMMON_PROOF_H
#define CREMA_COMMON_PROOF_H

#include "common/auth.h"
#include "common/buf.h"

#define PROOF_SCHEME "Crema"
#define PROOF_HEX (2 * AUTH_MAC_BYTES + 1)
#define PROOF_TYPE "application/vnd.crema.sealed"
#define PROOF_CODE_S 300 /* lifetime of a link */
#define PROOF_SKEW_S 60	 /* its maker's clock may be ahead by this */
#define PROOF_CODE_BYTES (16 + 32 + 2 * AUTH_MAC_BYTES + 1)

/* What both sides of one request share. Nonces have AUTH_NONCE_BYTES. */
struct proof {
	const struct auth_token *token;
	const char *method, *path;
	const uint8_t *server_nonce, *client_nonce;
};

int proof_mac(const struct proof *p, uint8_t mac[AUTH_MAC_BYTES]);
/* In place; the body grows by a few bytes. */
int proof_seal(const struct proof *p, struct buf *body);
int proof_open(const struct proof *p,
	       struct buf *body); /* -EACCES: not by this token, or not for us */

void proof_hex(char *out, const uint8_t *p, size_t n); /* 2 * n characters and NUL */
/* Exactly n bytes of hex at text, and then no more hex. False: anything else. */
bool proof_unhex(uint8_t *out, size_t n, const char *text);
/* NAME=VALUE or NAME="VALUE" after the scheme's word in a header; n bytes of hex. */
bool proof_field(const char *header, const char *name, uint8_t *out, size_t n);

/* now_s: UTC. */
int proof_code(const struct auth_token *token, uint16_t port, int64_t now_s,
	       char out[PROOF_CODE_BYTES]);
/* -EACCES: forged or for another token or port; else *made_s is when it was made, and `id` (16
 * bytes) identifies it. */
int proof_code_check(const struct auth_token *token, uint16_t port, const char *code,
		     int64_t *made_s, uint8_t id[16]);

#endif
