/* SPDX-License-Identifier: BSD-3-Clause */
/* proof.c - MACs, keys and sealed responses from the token. */
#include "common/proof.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SALT_BYTES 32
#define TAG_BYTES 16
#define HEAD_BYTES (SALT_BYTES + TAG_BYTES)

/* HMAC over a purpose, which no other use of the token has, the request, and more. */
static int digest(const struct proof *p, const char *purpose, const uint8_t *salt, uint8_t *out)
{
	struct buf text = BUF_INIT;
	int rc;

	buf_add(&text, purpose, strlen(purpose) + 1);
	buf_add(&text, p->method, strlen(p->method) + 1);
	buf_add(&text, p->path, strlen(p->path) + 1);
	buf_add(&text, p->server_nonce, AUTH_NONCE_BYTES);
	buf_add(&text, p->client_nonce, AUTH_NONCE_BYTES);
	if (salt)
		buf_add(&text, salt, SALT_BYTES);
	rc = text.error ? text.error
			: auth_digest(p->token->text, p->token->len, text.data, text.len, out);
	buf_release(&text);
	return rc;
}

int proof_mac(const struct proof *p, uint8_t mac[AUTH_MAC_BYTES])
{
	return digest(p, "crema page: request", NULL, mac);
}

/* One key seals one response (the salt is new each time), so the IV is a constant. */
static int crypt_body(const uint8_t *key, bool seal, uint8_t *body, size_t n, uint8_t *tag)
{
	static const uint8_t iv[12];
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	int got, end, rc = -EACCES;

	if (!cipher || n > INT_MAX) {
		EVP_CIPHER_CTX_free(cipher);
		return -ENOMEM;
	}
	if (EVP_CipherInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, iv, seal) &&
	    (seal || EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag)) &&
	    EVP_CipherUpdate(cipher, body, &got, body, (int)n) &&
	    EVP_CipherFinal_ex(cipher, body + got, &end) &&
	    (!seal || EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, tag)))
		rc = 0;
	EVP_CIPHER_CTX_free(cipher);
	return rc;
}

int proof_seal(const struct proof *p, struct buf *body)
{
	uint8_t head[HEAD_BYTES], key[AUTH_MAC_BYTES];
	int rc = body->error ? body->error : auth_random(head, SALT_BYTES);

	if (!rc)
		rc = digest(p, "crema page: answer", head, key);
	if (!rc)
		rc = buf_reserve(body, HEAD_BYTES);
	if (!rc)
		rc = crypt_body(key, true, body->data, body->len, head + SALT_BYTES);
	OPENSSL_cleanse(key, sizeof(key));
	return rc ? rc : buf_add(body, head, sizeof(head));
}

int proof_open(const struct proof *p, struct buf *body)
{
	uint8_t head[HEAD_BYTES], key[AUTH_MAC_BYTES];
	int rc;

	if (body->error || body->len < HEAD_BYTES)
		return body->error ? body->error : -EACCES;
	body->len -= HEAD_BYTES;
	memcpy(head, body->data + body->len, sizeof(head));
	rc = digest(p, "crema page: answer", head, key);
	if (!rc)
		rc = crypt_body(key, false, body->data, body->len, head + SALT_BYTES);
	OPENSSL_cleanse(key, sizeof(key));
	if (rc)
		buf_clear(body);
	return rc;
}

/* Text */

void proof_hex(char *out, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", p[i]);
}

static int nibble(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool proof_unhex(uint8_t *out, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++, text += 2) {
		if (nibble(text[0]) < 0 || nibble(text[1]) < 0)
			return false;
		out[i] = (uint8_t)(nibble(text[0]) << 4 | nibble(text[1]));
	}
	return nibble(*text) < 0;
}

bool proof_field(const char *header, const char *name, uint8_t *out, size_t n)
{
	size_t length = strlen(name);

	if (!header || strncasecmp(header, PROOF_SCHEME " ", sizeof(PROOF_SCHEME)) != 0)
		return false;
	for (header += sizeof(PROOF_SCHEME); *header; header += strcspn(header, " ,")) {
		header += strspn(header, " ,");
		if (!strncmp(header, name, length) && header[length] == '=')
			return proof_unhex(out, n,
					   header + length + 1 + (header[length + 1] == '"'));
	}
	return false;
}

/* Codes: time, identity, and the MAC over both and the port. */

static int code_mac(const struct auth_token *token, uint16_t port, const uint8_t head[24],
		    uint8_t mac[AUTH_MAC_BYTES])
{
	static const char purpose[] = "crema page: link";
	uint8_t text[sizeof(purpose) + 24 + 2];

	memcpy(text, purpose, sizeof(purpose));
	memcpy(text + sizeof(purpose), head, 24);
	text[sizeof(text) - 2] = (uint8_t)(port >> 8);
	text[sizeof(text) - 1] = (uint8_t)port;
	return auth_digest(token->text, token->len, text, sizeof(text), mac);
}

int proof_code(const struct auth_token *token, uint16_t port, int64_t now_s,
	       char out[PROOF_CODE_BYTES])
{
	uint8_t code[24 + AUTH_MAC_BYTES];
	int rc = auth_random(code + 8, 16);

	for (int i = 0; i < 8; i++)
		code[i] = (uint8_t)((uint64_t)now_s >> (56 - 8 * i));
	if (!rc)
		rc = code_mac(token, port, code, code + 24);
	if (!rc)
		proof_hex(out, code, sizeof(code));
	return rc;
}

int proof_code_check(const struct auth_token *token, uint16_t port, const char *text,
		     int64_t *made_s, uint8_t id[16])
{
	uint8_t code[24 + AUTH_MAC_BYTES], mac[AUTH_MAC_BYTES];
	uint64_t made = 0;
	int rc;

	if (strlen(text) != 2 * sizeof(code) || !proof_unhex(code, sizeof(code), text))
		return -EACCES;
	rc = code_mac(token, port, code, mac);
	if (rc)
		return rc;
	if (!auth_equal(mac, code + 24, sizeof(mac)))
		return -EACCES;
	for (int i = 0; i < 8; i++)
		made = made << 8 | code[i];
	*made_s = (int64_t)made;
	memcpy(id, code + 8, 16);
	return 0;
}
