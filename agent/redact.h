/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redact.h - CREMA_REDACT_KEYS: task keys and file names leave the agent only as keyed hashes.
 *
 * "key-" or "file-" and 16 hex digits of HMAC-SHA256; for a file on a server "root://file-", so
 * that reports recognize it. The key of the hash is made from the shared token: all agents of a
 * collector send the same hash for the same name and sums over workers stay right, while no one
 * without the token can test names. Without a token the key is random, and each agent's hashes
 * differ.
 *
 * These stay readable: prefixes and functions of tasks, spans, datasets, columns, trees, sections,
 * servers, hosts, libraries.
 */
#ifndef CREMA_AGENT_REDACT_H
#define CREMA_AGENT_REDACT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth.h"
#include "common/pack.h"

#define REDACT_TEXTS 8 /* results that are valid at the same time */
#define REDACT_TEXT_BYTES 40

struct redact {
	bool on;
	uint8_t key[AUTH_MAC_BYTES];
	char text[REDACT_TEXTS][REDACT_TEXT_BYTES];
	unsigned int next;
};

/* Reads the environment. 0 or -errno: then nothing may be sent. */
int redact_init(struct redact *r);
/* The name itself if it is unknown or nothing is hidden. Valid for REDACT_TEXTS calls. */
struct text redact_file(struct redact *r, struct text name);
/* Free text may hold any name: unknown if names are hidden. */
struct text redact_words(const struct redact *r, struct text words);
/* `hash`: of the whole key; its text may be cut. */
struct text redact_key(struct redact *r, struct text key, uint64_t hash);
/* Replaces the plain hash, which would allow guessing a key. */
uint64_t redact_key_hash(struct redact *r, uint64_t hash);

#endif
