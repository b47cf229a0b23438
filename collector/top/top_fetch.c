/* SPDX-License-Identifier: BSD-3-Clause */
/* top_fetch.c - one request at a time over libcurl's multi interface. */
#include "collector/top/top_fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/auth.h"
#include "common/net.h"
#include "common/proof.h"
#include "common/socket_owner.h"
#include "common/tls_settings.h"
#include "wire.h"

#define UNAUTHORIZED 401
#define FORBIDDEN 403
#define PATH "/live.json"

struct fetch {
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct buf body;
	struct auth_token token;
	struct tls_settings tls;
	bool https, running;
	bool again;	    /* retry with another nonce */
	bool asked, proven; /* the collector requires a proof; this request has one */
	uint8_t server_nonce[AUTH_NONCE_BYTES], nonce[AUTH_NONCE_BYTES];
	bool ours;  /* the peer is a process of this user or of root on this machine */
	bool owned; /* `owner` is known */
	uid_t owner;
	CURLcode result;
	char at[300], url[340], token_path[PATH_MAX], error[CURL_ERROR_SIZE];
};

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	struct fetch *fetch = arg;

	(void)size; /* always 1 */
	if (fetch->body.len + n > FETCH_BYTES_MAX || buf_add(&fetch->body, data, n))
		return 0;
	return n;
}

static size_t take_head(char *data, size_t size, size_t n, void *arg)
{
	static const char name[] = "WWW-Authenticate: ";
	struct fetch *fetch = arg;
	char line[512];

	(void)size;
	snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) ? n : sizeof(line) - 1), data);
	if (!strncasecmp(line, name, sizeof(name) - 1) &&
	    proof_field(line + sizeof(name) - 1, "nonce", fetch->server_nonce, AUTH_NONCE_BYTES))
		fetch->asked = true;
	return n;
}

/* Identifies the peer before anything is sent: by its socket of this connection, or by the
 * listening one while the connection is not accepted yet. */
static int look_at_peer(void *arg, char *remote, char *local, int remote_port, int local_port)
{
	struct net_address from = {.port = (uint16_t)local_port},
			   to = {.port = (uint16_t)remote_port};
	struct sockaddr_storage ours, theirs;
	struct fetch *fetch = arg;

	snprintf(from.host, sizeof(from.host), "%s", local);
	snprintf(to.host, sizeof(to.host), "%s", remote);
	fetch->ours = fetch->owned = false;
	if (net_socket_address(&from, &ours) || net_socket_address(&to, &theirs) ||
	    !socket_is_loopback((void *)&ours) || !socket_is_loopback((void *)&theirs))
		return CURL_PREREQFUNC_OK;
	fetch->owned = !socket_owner((void *)&theirs, (void *)&ours, &fetch->owner);
	if (!fetch->owned) {
		fetch->owned = !socket_owner((void *)&theirs, NULL, &fetch->owner);
		/* Accepted meanwhile: then the listener may be another one by now. */
		if (!socket_owner((void *)&theirs, (void *)&ours, &fetch->owner))
			fetch->owned = true;
	}
	fetch->ours = fetch->owned && fetch->owner != OWNER_NOBODY &&
		      (fetch->owner == geteuid() || fetch->owner == 0);
	return CURL_PREREQFUNC_OK;
}

static void set_options(struct fetch *fetch)
{
	CURL *easy = fetch->easy;

	curl_easy_setopt(easy, CURLOPT_URL, fetch->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	if (fetch->tls.on) {
		/* As Dask does: a peer with a certificate of the cluster's own authority
		 * belongs to it. */
		curl_easy_setopt(easy, CURLOPT_CAINFO, fetch->tls.ca);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)FETCH_SECONDS);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fetch->error);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_head);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch);
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, look_at_peer);
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, fetch);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "crema top");
}

struct fetch *fetch_new(const char *at, const char *token_file, char *why, size_t size)
{
	bool https = !strncmp(at, "https://", 8);
	struct net_address address;
	struct fetch *fetch;

	at += https ? 8 : 0;
	if (net_parse(&address, at, CREMA_DEFAULT_HTTP) || address.kind != NET_TCP) {
		snprintf(why, size, "--http: '%.200s' is not ADDR:PORT", at);
		return NULL;
	}
	if (!address.host[0] || !strcmp(address.host, "0.0.0.0"))
		snprintf(address.host, sizeof(address.host), "127.0.0.1");
	snprintf(why, size, "out of memory");
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch)
		return NULL;
	net_text(fetch->at, sizeof(fetch->at), &address);
	snprintf(fetch->url, sizeof(fetch->url), "http%s://%s" PATH, https ? "s" : "", fetch->at);
	fetch->https = https;
	if (https && tls_settings_from_environment(&fetch->tls, "scheduler", why, size)) {
		free(fetch);
		return NULL;
	}
	if (auth_token_path(fetch->token_path, sizeof(fetch->token_path), token_file))
		fetch->token_path[0] = '\0';
	curl_global_init(CURL_GLOBAL_DEFAULT);
	fetch->multi = curl_multi_init();
	fetch->easy = curl_easy_init();
	if (!fetch->multi || !fetch->easy) {
		fetch_free(fetch);
		return NULL;
	}
	set_options(fetch);
	return fetch;
}

void fetch_free(struct fetch *fetch)
{
	if (!fetch)
		return;
	if (fetch->running)
		curl_multi_remove_handle(fetch->multi, fetch->easy);
	curl_easy_cleanup(fetch->easy);
	curl_multi_cleanup(fetch->multi);
	curl_slist_free_all(fetch->headers);
	buf_release(&fetch->body);
	free(fetch);
	curl_global_cleanup();
}

static struct proof proof_of(const struct fetch *fetch)
{
	return (struct proof){&fetch->token, "GET", PATH, fetch->server_nonce, fetch->nonce};
}

/* Puts the proof for the nonce that the collector gave to this connection into the request's
 * head. */
static int put_proof(struct fetch *fetch)
{
	char nonce[2 * AUTH_NONCE_BYTES + 1], mac[2 * AUTH_MAC_BYTES + 1], line[256];
	struct proof proof = proof_of(fetch);
	uint8_t raw[AUTH_MAC_BYTES];
	int err = auth_random(fetch->nonce, sizeof(fetch->nonce));

	if (!err)
		err = proof_mac(&proof, raw);
	if (err)
		return err;
	proof_hex(nonce, fetch->nonce, sizeof(fetch->nonce));
	proof_hex(mac, raw, sizeof(raw));
	snprintf(line, sizeof(line), "Authorization: %s nonce=%s, mac=%s", PROOF_SCHEME, nonce,
		 mac);
	curl_slist_free_all(fetch->headers);
	fetch->headers = curl_slist_append(NULL, line);
	/* Sealed data cannot be compressed. */
	curl_easy_setopt(fetch->easy, CURLOPT_ACCEPT_ENCODING, NULL);
	curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->headers);
	return fetch->headers ? 0 : -ENOMEM;
}

static int start(struct fetch *fetch)
{
	buf_clear(&fetch->body);
	fetch->error[0] = '\0';
	fetch->asked = false;
	if (curl_multi_add_handle(fetch->multi, fetch->easy) != CURLM_OK)
		return -ENOMEM;
	fetch->running = true;
	return 0;
}

/* If a proof was required before, it is sent at once: the connection and its nonce stay. */
int fetch_start(struct fetch *fetch)
{
	int err = fetch->proven ? put_proof(fetch) : 0;

	fetch->again = false;
	return err ? err : start(fetch);
}

bool fetch_running(const struct fetch *fetch)
{
	return fetch->running;
}

static long status_of(const struct fetch *fetch)
{
	long status = 0;

	curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

/* A proof is required: retries with one, if there is a token. */
static bool try_proof(struct fetch *fetch)
{
	long status = status_of(fetch);

	if (fetch->result != CURLE_OK || (status != UNAUTHORIZED && status != FORBIDDEN) ||
	    !fetch->asked || fetch->again || auth_token_read(&fetch->token, fetch->token_path))
		return false;
	fetch->again = fetch->proven = true;
	return !put_proof(fetch) && !start(fetch);
}

bool fetch_wait(struct fetch *fetch, int fd, int ms)
{
	struct curl_waitfd input = {.fd = fd, .events = CURL_WAIT_POLLIN};
	CURLMsg *message;
	int running, left;

	curl_multi_perform(fetch->multi, &running);
	if (!fetch->running || running) {
		curl_multi_poll(fetch->multi, fd < 0 ? NULL : &input, fd >= 0, ms, NULL);
		curl_multi_perform(fetch->multi, &running);
	}
	while ((message = curl_multi_info_read(fetch->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		fetch->result = message->data.result;
		curl_multi_remove_handle(fetch->multi, fetch->easy);
		fetch->running = false;
		return !try_proof(fetch);
	}
	return false;
}

static void explain_token(const struct fetch *fetch, char *why, size_t size)
{
	struct auth_token token;
	char text[PATH_MAX + 256];
	int err = auth_token_read(&token, fetch->token_path);

	if (!fetch->asked)
		snprintf(why, size,
			 "%s asks for the token itself, which crema never sends: it is not a crema "
			 "collector, or it is an older one",
			 fetch->at);
	else if (err)
		snprintf(why, size, "the collector at %s asks for its token: %s", fetch->at,
			 auth_explain(text, sizeof(text), err, fetch->token_path));
	else
		snprintf(why, size,
			 "the collector at %s has a different token than '%s'; give the "
			 "collector's with "
			 "--token-file",
			 fetch->at, fetch->token_path);
}

/* Accepts a response of the collector, not of another process listening in its place. */
static const struct buf *judge(struct fetch *fetch, char *why, size_t size)
{
	struct proof proof = proof_of(fetch);
	const char *type = NULL;

	curl_easy_getinfo(fetch->easy, CURLINFO_CONTENT_TYPE, &type);
	if (fetch->proven && type && !strcmp(type, PROOF_TYPE)) {
		if (!proof_open(&proof, &fetch->body))
			return &fetch->body;
	} else if (fetch->https || fetch->ours) {
		return &fetch->body;
	}
	if (fetch->owned)
		snprintf(why, size,
			 "the program that answers at %s belongs to another user (uid %u) and does "
			 "not prove that it knows the token: it is not your collector",
			 fetch->at, (unsigned int)fetch->owner);
	else
		snprintf(why, size,
			 "the program that answers at %s does not prove that it knows the token: "
			 "it is not your collector, or it is an older one",
			 fetch->at);
	return NULL;
}

const struct buf *fetch_answer(struct fetch *fetch, char *why, size_t size)
{
	long status = status_of(fetch);

	if (fetch->result == CURLE_OK && status == 200)
		return judge(fetch, why, size);
	if (fetch->result == CURLE_COULDNT_CONNECT)
		snprintf(why, size,
			 "no collector at %s: start 'crema collect', or give its address with "
			 "--http",
			 fetch->at);
	else if (fetch->result != CURLE_OK)
		snprintf(why, size,
			 "no collector at %s: %s; start 'crema collect' or give its address with "
			 "--http",
			 fetch->at,
			 fetch->error[0] ? fetch->error : curl_easy_strerror(fetch->result));
	else if (status == UNAUTHORIZED || (status == FORBIDDEN && fetch->asked))
		explain_token(fetch, why, size);
	else if (status == FORBIDDEN)
		snprintf(why, size,
			 "the collector at %s accepts only requests to its address: give a number "
			 "instead of a name with --http, and the collector's port",
			 fetch->at);
	else
		snprintf(why, size,
			 "%s answers with status %ld: it is not a crema collector, or it is an "
			 "older one",
			 fetch->at, status);
	return NULL;
}

const char *fetch_from(const struct fetch *fetch)
{
	return fetch->at;
}
