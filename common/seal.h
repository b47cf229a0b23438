/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seal.h - sealed records: bytes that no one without the key can read, change, repeat or omit.
 *
 * A record is the number of bytes that follow (32 bits, little-endian), the ciphertext, and a tag
 * of 16 bytes: AES-256-GCM, whose nonce is the record's number in its direction and whose
 * additional data is the length. The number is never sent: a record that was dropped, repeated or
 * moved does not open. One key is for one direction of one connection, so no nonce is used twice.
 *
 * The cipher's context is shared by all connections of a thread: a struct seal has 48 bytes and
 * nothing to free.
 */
#ifndef CREMA_COMMON_SEAL_H
#define CREMA_COMMON_SEAL_H

#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"

#define SEAL_KEY_BYTES 32
#define SEAL_HEAD_BYTES 4
#define SEAL_TAG_BYTES 16
#define SEAL_EXTRA_BYTES (SEAL_HEAD_BYTES + SEAL_TAG_BYTES)

struct evp_cipher_ctx_st; /* OpenSSL's EVP_CIPHER_CTX */

struct seal {
	struct evp_cipher_ctx_st *cipher; /* the caller's; NULL: no key yet */
	uint8_t key[SEAL_KEY_BYTES];
	uint64_t count; /* records so far */
};

struct evp_cipher_ctx_st *seal_cipher_new(void); /* NULL: out of memory */
void seal_cipher_free(struct evp_cipher_ctx_st *cipher);

/* key has SEAL_KEY_BYTES. */
void seal_init(struct seal *s, struct evp_cipher_ctx_st *cipher, const uint8_t *key);
/* Appends p[0..n), n > 0, as the next record. 0, -ENOMEM or -EMSGSIZE (above 2 GiB). */
int seal_put(struct seal *s, struct buf *out, const void *p, size_t n);
/*
 * Opens the record at the start of [p, p+n) into plain, which is cleared first, and returns the
 * bytes that it takes. -EAGAIN: more are needed; -EMSGSIZE: it claims more than `most` plain bytes,
 * or none; -EBADMSG: it is not the next record of this key; -ENOMEM. The record counts as received
 * only with seal_next(): until then it can be opened again.
 */
ssize_t seal_open(const struct seal *s, struct buf *plain, const void *p, size_t n, size_t most);
static inline void seal_next(struct seal *s)
{
	s->count++;
}

#endif
