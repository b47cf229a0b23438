/* SPDX-License-Identifier: BSD-3-Clause */
/* seal.c - sealed records: AES-256-GCM with counted nonces. */
#include "common/seal.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <string.h>

#define NONCE_BYTES 12

struct evp_cipher_ctx_st *seal_cipher_new(void)
{
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();

	/* Once: from now on only keys and nonces change, which avoids looking up the cipher
	 * again. */
	if (cipher && EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, NULL, NULL) != 1) {
		EVP_CIPHER_CTX_free(cipher);
		cipher = NULL;
	}
	return cipher;
}

void seal_cipher_free(struct evp_cipher_ctx_st *cipher)
{
	EVP_CIPHER_CTX_free(cipher);
}

void seal_init(struct seal *s, struct evp_cipher_ctx_st *cipher, const uint8_t *key)
{
	s->cipher = cipher;
	memcpy(s->key, key, sizeof(s->key));
	s->count = 0;
}

/* Key, nonce and the length before the record. */
static int begin(const struct seal *s, const void *head, bool encrypt)
{
	uint8_t nonce[NONCE_BYTES] = {0};
	uint64_t count = htole64(s->count);
	int n;

	memcpy(nonce + NONCE_BYTES - sizeof(count), &count, sizeof(count));
	return EVP_CipherInit_ex(s->cipher, NULL, NULL, s->key, nonce, encrypt) == 1 &&
			       EVP_CipherUpdate(s->cipher, NULL, &n, head, SEAL_HEAD_BYTES) == 1
		       ? 0
		       : -ENOMEM;
}

int seal_put(struct seal *s, struct buf *out, const void *p, size_t n)
{
	uint32_t head = htole32((uint32_t)(n + SEAL_TAG_BYTES));
	unsigned char *at;
	int done, rest;

	if (!n || n > INT_MAX - SEAL_TAG_BYTES)
		return -EMSGSIZE;
	if (buf_reserve(out, n + SEAL_EXTRA_BYTES))
		return out->error;
	at = out->data + out->len;
	memcpy(at, &head, sizeof(head));
	if (begin(s, at, true) ||
	    EVP_EncryptUpdate(s->cipher, at + SEAL_HEAD_BYTES, &done, p, (int)n) != 1 ||
	    EVP_EncryptFinal_ex(s->cipher, at + SEAL_HEAD_BYTES + done, &rest) != 1 ||
	    EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_GCM_GET_TAG, SEAL_TAG_BYTES,
				at + SEAL_HEAD_BYTES + n) != 1)
		return -ENOMEM;
	out->len += n + SEAL_EXTRA_BYTES;
	seal_next(s);
	return 0;
}

ssize_t seal_open(const struct seal *s, struct buf *plain, const void *p, size_t n, size_t most)
{
	const unsigned char *at = p;
	unsigned char tag[SEAL_TAG_BYTES];
	uint32_t size;
	size_t text;
	int done, rest;

	if (n < SEAL_HEAD_BYTES)
		return -EAGAIN;
	memcpy(&size, at, sizeof(size));
	size = le32toh(size);
	if (size <= SEAL_TAG_BYTES || size - SEAL_TAG_BYTES > most)
		return -EMSGSIZE;
	if (n - SEAL_HEAD_BYTES < size)
		return -EAGAIN;
	text = size - SEAL_TAG_BYTES;
	buf_clear(plain);
	if (buf_reserve(plain, text))
		return plain->error;
	memcpy(tag, at + SEAL_HEAD_BYTES + text, sizeof(tag));
	if (begin(s, at, false) ||
	    EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_GCM_SET_TAG, sizeof(tag), tag) != 1 ||
	    EVP_DecryptUpdate(s->cipher, plain->data, &done, at + SEAL_HEAD_BYTES, (int)text) != 1)
		return -ENOMEM;
	if (EVP_DecryptFinal_ex(s->cipher, plain->data + done, &rest) != 1)
		return -EBADMSG;
	plain->len = text;
	return (ssize_t)(SEAL_HEAD_BYTES + size);
}
