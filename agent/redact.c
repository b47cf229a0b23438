/* SPDX-License-Identifier: BSD-3-Clause */
/* redact.c - turns names into keyed hashes. */
#include "agent/redact.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "switch.h"

#define SCHEME_BYTES 8 /* root, https, s3, davs ... */
#define SCHEME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789+."

static const char purpose[] = "crema: hidden names";

int redact_init(struct redact *r)
{
	char path[PATH_MAX];
	struct auth_token token;

	memset(r, 0, sizeof(*r));
	r->on = crema_switch(getenv("CREMA_REDACT_KEYS"), 0) != 0; /* an unknown word hides them */
	if (!r->on)
		return 0;
	if (auth_token_path(path, sizeof(path), NULL) || auth_token_read(&token, path))
		return auth_random(r->key, sizeof(r->key));
	return auth_digest(token.text, token.len, purpose, sizeof(purpose), r->key);
}

/* Never the name itself: 0 if it cannot be hashed. */
static uint64_t digest(const struct redact *r, const void *p, size_t n)
{
	uint8_t mac[AUTH_MAC_BYTES];
	uint64_t v = 0;

	if (auth_digest(r->key, sizeof(r->key), p, n, mac) == 0)
		memcpy(&v, mac, sizeof(v));
	return v;
}

static struct text hidden(struct redact *r, const char *kind, uint64_t v)
{
	char *out = r->text[r->next++ % REDACT_TEXTS];
	int n = snprintf(out, REDACT_TEXT_BYTES, "%s-%016" PRIx64, kind, v);

	return (struct text){out, (size_t)n};
}

/* "root://file" for a file on a server: the scheme decides what its bytes mean. */
static void kind_of_file(struct text name, char *kind, size_t size)
{
	const char *end = memmem(name.ptr, name.len, "://", 3);
	int n = end ? (int)(end - name.ptr) : 0;

	if (n > SCHEME_BYTES || strspn(name.ptr, SCHEME_LETTERS) < (size_t)n)
		n = 0;
	snprintf(kind, size, "%.*s%sfile", n, name.ptr, n ? "://" : "");
}

struct text redact_file(struct redact *r, struct text name)
{
	char kind[SCHEME_BYTES + sizeof("://file")];

	if (!r || !r->on || !name.ptr)
		return name;
	kind_of_file(name, kind, sizeof(kind));
	return hidden(r, kind, digest(r, name.ptr, name.len));
}

struct text redact_words(const struct redact *r, struct text words)
{
	return r && r->on ? (struct text){NULL, 0} : words;
}

uint64_t redact_key_hash(struct redact *r, uint64_t hash)
{
	return r && r->on ? digest(r, &hash, sizeof(hash)) : hash;
}

struct text redact_key(struct redact *r, struct text key, uint64_t hash)
{
	if (!r || !r->on || !key.ptr)
		return key;
	return hidden(r, "key", redact_key_hash(r, hash));
}
