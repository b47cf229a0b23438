/* SPDX-License-Identifier: BSD-3-Clause */
/* tls.c - OpenSSL between two memory buffers. */
#include "common/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tls_context {
	SSL_CTX *ctx;
	bool server;
};

struct tls {
	SSL *ssl;
	BIO *in, *out; /* owned by ssl */
	bool finished;
	char why[256];
};

/* OpenSSL's own text for the last error. */
static const char *last_error(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return text ? text : "unknown error";
}

static int load(SSL_CTX *ctx, const struct tls_files *f, char *why, size_t size)
{
	const char *key = f->key ? f->key : f->cert;

	ERR_clear_error();
	if (SSL_CTX_load_verify_locations(ctx, f->ca, NULL) != 1)
		snprintf(why, size, "cannot use the authority's certificate '%s': %s", f->ca,
			 last_error());
	else if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1)
		snprintf(why, size, "cannot use the certificate '%s': %s", f->cert, last_error());
	else if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		snprintf(why, size, "cannot use the private key '%s': %s", key, last_error());
	else if (SSL_CTX_check_private_key(ctx) != 1)
		snprintf(why, size, "the private key '%s' is not the key of the certificate '%s'",
			 key, f->cert);
	else
		return 0;
	return -EINVAL;
}

struct tls_context *tls_context_new(const struct tls_files *files, bool server, char *why,
				    size_t size)
{
	struct tls_context *c = calloc(1, sizeof(*c));

	if (c)
		c->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (!c || !c->ctx) {
		snprintf(why, size, "out of memory for TLS");
		free(c);
		return NULL;
	}
	c->server = server;
	SSL_CTX_set_min_proto_version(c->ctx, TLS1_2_VERSION);
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	/* Connections last for days; what a session ticket would save is not worth its memory. */
	SSL_CTX_set_options(c->ctx,
			    SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					 SSL_MODE_RELEASE_BUFFERS);
	if (load(c->ctx, files, why, size)) {
		tls_context_free(c);
		return NULL;
	}
	return c;
}

void tls_context_free(struct tls_context *context)
{
	if (!context)
		return;
	SSL_CTX_free(context->ctx);
	free(context);
}

static bool is_number(const char *name)
{
	struct in6_addr a;

	return inet_pton(AF_INET, name, &a) == 1 || inet_pton(AF_INET6, name, &a) == 1;
}

struct tls *tls_new(struct tls_context *context, const char *name)
{
	struct tls *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ssl = SSL_new(context->ctx);
	t->in = BIO_new(BIO_s_mem());
	t->out = BIO_new(BIO_s_mem());
	if (!t->ssl || !t->in || !t->out) {
		BIO_free(t->in);
		BIO_free(t->out);
		SSL_free(t->ssl);
		free(t);
		return NULL;
	}
	SSL_set_bio(t->ssl, t->in, t->out);
	if (context->server) {
		SSL_set_accept_state(t->ssl);
	} else {
		SSL_set_connect_state(t->ssl);
		if (name && *name && !is_number(name))
			SSL_set_tlsext_host_name(t->ssl, name);
	}
	return t;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t);
}

int tls_feed(struct tls *t, const void *p, size_t n)
{
	return BIO_write(t->in, p, (int)n) == (int)n ? 0 : -ENOMEM;
}

/* The problem with the certificate in plain words, else OpenSSL's text. */
static int broken(struct tls *t)
{
	long verdict = SSL_get_verify_result(t->ssl);
	const char *text = last_error();

	if (verdict != X509_V_OK)
		snprintf(t->why, sizeof(t->why), "the peer's certificate is not accepted: %s",
			 X509_verify_cert_error_string(verdict));
	else
		snprintf(t->why, sizeof(t->why), "no TLS connection: %s", text);
	return -EPROTO;
}

static ssize_t outcome(struct tls *t, int rc)
{
	switch (SSL_get_error(t->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		return broken(t);
	}
}

ssize_t tls_read(struct tls *t, void *p, size_t n)
{
	int rc;

	ERR_clear_error();
	rc = SSL_read(t->ssl, p, (int)n);
	return rc > 0 ? rc : outcome(t, rc);
}

ssize_t tls_write(struct tls *t, const void *p, size_t n)
{
	int rc;

	if (!n)
		return 0;
	ERR_clear_error();
	rc = SSL_write(t->ssl, p, n < (1u << 20) ? (int)n : 1 << 20);
	return rc > 0 ? rc : outcome(t, rc);
}

void tls_finish(struct tls *t)
{
	if (!t->finished && SSL_is_init_finished(t->ssl))
		SSL_shutdown(t->ssl);
	t->finished = true;
}

size_t tls_output(struct tls *t, const uint8_t **p)
{
	char *data;
	long n = BIO_get_mem_data(t->out, &data);

	*p = (const uint8_t *)data;
	return n > 0 ? (size_t)n : 0;
}

void tls_sent(struct tls *t, size_t n)
{
	char scratch[4096];

	while (n) {
		int got = BIO_read(t->out, scratch,
				   n < sizeof(scratch) ? (int)n : (int)sizeof(scratch));

		if (got <= 0)
			return;
		n -= (size_t)got;
	}
}

const char *tls_why(const struct tls *t)
{
	return t->why;
}
