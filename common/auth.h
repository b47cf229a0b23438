/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth.h - the shared token and the proof of its possession.
 *
 * The token is a line of text in a file that only its owner may read. It is never sent: what is
 * sent is HMAC-SHA256 of it and of the start of the connection. Each use has a separate label, so a
 * proof for one use is worthless for another. No state; any thread.
 */
#ifndef CREMA_COMMON_AUTH_H
#define CREMA_COMMON_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire.h"

#define AUTH_TOKEN_MAX 256
#define AUTH_TOKEN_MIN 16
#define AUTH_NONCE_BYTES 32
#define AUTH_MAC_BYTES 32

struct auth_token {
	char text[AUTH_TOKEN_MAX + 1];
	size_t len; /* 0: no token */
};

/*
 * The token file: `given` if not NULL, else $CREMA_TOKEN_FILE, else $XDG_CONFIG_HOME/crema/token,
 * else ~/.config/crema/token. 0, -ENAMETOOLONG or -ENOENT (no HOME).
 */
int auth_token_path(char *out, size_t size, const char *given);
/*
 * Reads up to `size` bytes of a file that only its owner may read, without blanks at the end:
 * their number, or an error as below.
 */
ssize_t auth_secret_read(char *text, size_t size, const char *path);
/*
 * Reads it: 0, -ENOENT, -EACCES (no permission), -EPERM (group or others can read it, or it belongs
 * to another user), -EINVAL (too short or too long for a token) or -errno.
 */
int auth_token_read(struct auth_token *t, const char *path);
/* Reads it, or creates directory (0700) and file (0600) if it is absent. Safe against races. */
int auth_token_make(struct auth_token *t, const char *path);
/* Replaces it: the old one is useless from now on. */
int auth_token_renew(struct auth_token *t, const char *path);
/* A line for users about an error of the two above: what failed and what to do. Returns out. */
const char *auth_explain(char *out, size_t size, int error, const char *path);

/* Fills p with random bytes: 0 or -errno. */
int auth_random(void *p, size_t n);
/* HMAC-SHA256(token, label, a NUL, then p[0..n)); out has AUTH_MAC_BYTES. 0,
 * -EINVAL (more than 256 bytes together) or -ENOMEM. */
int auth_derive(const struct auth_token *t, const char *label, const void *p, size_t n,
		uint8_t *out);

/* The start of an agent's connection. Proof and keys cover all of it, including the offer of
 * versions. */
struct auth_start {
	uint8_t min, max, version; /* the collector's offer, the agent's choice */
	uint8_t collector_nonce[AUTH_NONCE_BYTES], agent_nonce[AUTH_NONCE_BYTES];
	uint8_t worker[CREMA_WORKER_ID_BYTES];
};
struct auth_keys {
	uint8_t proof[AUTH_MAC_BYTES];					/* the collector's */
	uint8_t to_collector[AUTH_MAC_BYTES], to_agent[AUTH_MAC_BYTES]; /* for seal.h */
};
/* 0 or -ENOMEM. */
int auth_keys(const struct auth_token *t, const struct auth_start *start, struct auth_keys *keys);
/* Overwrites a secret; the compiler cannot omit it. */
void auth_forget(void *p, size_t n);

/* Protocol 1: the agent's proof. 0 or -ENOMEM. Nonces have AUTH_NONCE_BYTES, worker 16. */
int auth_mac(const struct auth_token *t, const uint8_t *collector_nonce, const uint8_t *agent_nonce,
	     const uint8_t *worker, uint8_t *mac);
/* HMAC-SHA256 of anything; out has AUTH_MAC_BYTES. 0 or -ENOMEM. */
int auth_digest(const void *key, size_t key_bytes, const void *p, size_t n, uint8_t *out);
/* Compares in constant time. */
bool auth_equal(const void *a, const void *b, size_t n);

#endif
