/* SPDX-License-Identifier: BSD-3-Clause */
/* top_fetch.c - one request at a time over libcurl's multi interface. */
#include "collector/top/top_fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth.h"
#include "common/net.h"
#include "common/tls_settings.h"
#include "wire.h"

#define UNAUTHORIZED 401

struct fetch {
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct buf body;
	struct auth_token token;
	struct tls_settings tls;
	bool running, has_token;
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

static void set_options(struct fetch *fetch)
{
	CURL *easy = fetch->easy;

	curl_easy_setopt(easy, CURLOPT_URL, fetch->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	if (fetch->tls.on) {
		/* As Dask does: who has a certificate of the cluster's own authority belongs to it.
		 */
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
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "crema top");
}

struct fetch *fetch_new(const char *at, const char *token_file, char *why, size_t size)
{
	bool https = !strncmp(at, "https://", 8);
	struct net_address address;
	struct fetch *fetch;

	at += https ? 8 : 0;
	if (net_parse(&address, at, CREMA_DEFAULT_HTTP) || address.kind != NET_TCP) {
		snprintf(why, size, "--http: '%.200s' is no ADDR:PORT", at);
		return NULL;
	}
	if (!address.host[0] || !strcmp(address.host, "0.0.0.0"))
		snprintf(address.host, sizeof(address.host), "127.0.0.1");
	snprintf(why, size, "out of memory");
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch)
		return NULL;
	net_text(fetch->at, sizeof(fetch->at), &address);
	snprintf(fetch->url, sizeof(fetch->url), "http%s://%s/live.json", https ? "s" : "",
		 fetch->at);
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

int fetch_start(struct fetch *fetch)
{
	buf_clear(&fetch->body);
	fetch->error[0] = '\0';
	if (curl_multi_add_handle(fetch->multi, fetch->easy) != CURLM_OK)
		return -ENOMEM;
	fetch->running = true;
	return 0;
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

/* The token was asked for: once more with it, if there is one that was not tried yet. */
static bool try_token(struct fetch *fetch)
{
	char header[AUTH_TOKEN_MAX + 32];

	if (fetch->result != CURLE_OK || status_of(fetch) != UNAUTHORIZED || fetch->has_token ||
	    auth_token_read(&fetch->token, fetch->token_path))
		return false;
	snprintf(header, sizeof(header), "Authorization: Bearer %s", fetch->token.text);
	fetch->headers = curl_slist_append(NULL, header);
	if (!fetch->headers)
		return false;
	fetch->has_token = true;
	curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->headers);
	return !fetch_start(fetch);
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
		return !try_token(fetch);
	}
	return false;
}

static void explain_token(const struct fetch *fetch, char *why, size_t size)
{
	struct auth_token token;
	char text[PATH_MAX + 256];
	int err = auth_token_read(&token, fetch->token_path);

	if (err)
		snprintf(why, size, "the collector at %s asks for its token: %s", fetch->at,
			 auth_explain(text, sizeof(text), err, fetch->token_path));
	else
		snprintf(why, size,
			 "the collector at %s has another token than '%s'; give its own with "
			 "--token-file",
			 fetch->at, fetch->token_path);
}

const struct buf *fetch_answer(struct fetch *fetch, char *why, size_t size)
{
	long status = status_of(fetch);

	if (fetch->result == CURLE_OK && status == 200)
		return &fetch->body;
	if (fetch->result != CURLE_OK)
		snprintf(why, size,
			 "no collector at %s: %s; start 'crema collect' or give its address with "
			 "--http",
			 fetch->at,
			 fetch->error[0] ? fetch->error : curl_easy_strerror(fetch->result));
	else if (status == UNAUTHORIZED)
		explain_token(fetch, why, size);
	else if (status == 403)
		snprintf(why, size,
			 "the collector at %s wants to be asked by its address: give a number "
			 "instead of a name with --http",
			 fetch->at);
	else
		snprintf(why, size,
			 "%s answers with status %ld: it is no crema collector, or an older one",
			 fetch->at, status);
	return NULL;
}

const char *fetch_from(const struct fetch *fetch)
{
	return fetch->at;
}
