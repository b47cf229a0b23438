/* SPDX-License-Identifier: BSD-3-Clause */
/* http.c - requests and answers of the status page. */
#include "collector/serve/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/serve/http_access.h"
#include "collector/serve/http_parts.h"
#include "collector/serve/http_gzip.h"
#include "collector/serve/http_peer.h"
#include "common/proof.h"

#define MEMORY_PER_CONNECTION (32u << 10)
#define NOTHING_ALLOWED                                                                            \
	"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Gives libmicrohttpd its turn, and asks when it wants the next one. */
static void run(void *arg)
{
	struct http *http = arg;
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(http->daemon);
	if (MHD_get_timeout(http->daemon, &ms) == MHD_YES)
		loop_timer_set(http->timer, ms > 60000 ? 60000 : (int64_t)ms);
	else
		loop_timer_set(http->timer, -1);
}

/* Answers */

enum MHD_Result http_respond(struct MHD_Connection *connection, const struct http_answer *as,
			     struct buf *body)
{
	struct MHD_Response *response;
	enum MHD_Result result;
	bool gzip = as->code == MHD_HTTP_OK && http_gzip(connection, body);

	if (body->error) {
		buf_release(body);
		return MHD_NO;
	}
	response = MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		buf_release(body);
		return MHD_NO;
	}
	memset(body, 0, sizeof(*body));
	MHD_add_response_header(response, "Content-Type", as->type);
	MHD_add_response_header(response, "Content-Security-Policy",
				as->policy ? as->policy : NOTHING_ALLOWED);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	if (gzip)
		MHD_add_response_header(response, "Content-Encoding", "gzip");
	if (as->name)
		MHD_add_response_header(response, as->name, as->value);
	result = MHD_queue_response(connection, as->code, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result http_respond_text(struct MHD_Connection *connection, unsigned int code,
				  const char *text, const char *name, const char *value)
{
	struct http_answer as = {code, HTTP_PLAIN, NULL, name, value};
	struct buf body = BUF_INIT;

	buf_add(&body, text, strlen(text));
	buf_add(&body, "\n", 1);
	return http_respond(connection, &as, &body);
}

/* Requests */

static const struct http_text *text_at(const struct http_config *config, const char *url)
{
	size_t i;

	for (i = 0; i < config->texts_n; i++) {
		if (!strcmp(url, config->texts[i].url))
			return &config->texts[i];
	}
	return NULL;
}

static enum MHD_Result answer(struct request *request, const char *url, const char *method)
{
	struct MHD_Connection *connection = request->connection;
	struct http_answer as = {.code = MHD_HTTP_OK};
	const struct http_text *text;
	enum http_verdict verdict;
	enum http_kind kind;
	struct buf body = BUF_INIT;

	if (request->made)
		return http_report_respond(request);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return http_respond_text(connection, 405, "only GET and HEAD", "Allow",
					 "GET, HEAD");
	verdict = http_access_check(request->http->access, connection, method, url);
	text = text_at(&request->http->config, url);
	kind = http_report_kind(url);
	if (!text && kind == HTTP_KINDS && (verdict == HTTP_GRANTED || verdict == HTTP_LED_BACK))
		return http_respond_text(connection, 404, "no such page", NULL, NULL);
	/* Only small answers are sealed. */
	if (verdict == HTTP_SEALED && !text)
		verdict = HTTP_DENIED;
	if (verdict != HTTP_GRANTED && verdict != HTTP_SEALED)
		return http_access_respond(request->http->access, connection, url, verdict);
	if (text) {
		as.type = text->type;
		as.policy = text->policy;
		text->make(request->http->config.arg, &body);
		if (verdict == HTTP_SEALED) {
			as.type = PROOF_TYPE;
			body.error = http_access_seal(request->http->access, connection, method,
						      url, &body);
		}
		return http_respond(connection, &as, &body);
	}
	return http_report_start(request, kind);
}

static enum MHD_Result handler(void *arg, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *data,
			       size_t *data_size, void **state)
{
	struct http *http = arg;
	struct request *request = *state;

	(void)version;
	(void)data;
	if (!request) {
		/* The first call has the headers only; an answer now would end the connection. */
		request = calloc(1, sizeof(*request));
		if (!request)
			return MHD_NO;
		request->http = http;
		request->connection = connection;
		request->next = http->requests;
		if (request->next)
			request->next->prev = request;
		http->requests = request;
		*state = request;
		return MHD_YES;
	}
	if (*data_size) {
		*data_size = 0;
		return MHD_YES;
	}
	return answer(request, url, method);
}

static void completed(void *arg, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode code)
{
	struct http *http = arg;
	struct request *request = *state;

	(void)connection;
	(void)code;
	if (!request)
		return;
	if (request->next)
		request->next->prev = request->prev;
	if (request->prev)
		request->prev->next = request->next;
	else
		http->requests = request->next;
	buf_release(&request->body);
	free(request);
	*state = NULL;
}

bool http_has_tls(void)
{
	return MHD_is_feature_supported(MHD_FEATURE_TLS) == MHD_YES;
}

struct http *http_start(const struct http_config *config, int *error)
{
	struct http *http = calloc(1, sizeof(*http));
	struct http_access_config access = {.token = config->token,
					    .open = config->open,
					    .https = config->cert,
					    .bearer = config->bearer};
	const union MHD_DaemonInfo *info;
	unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)config->cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)config->key},
		{MHD_OPTION_END, 0, NULL},
	};

	if (config->cert)
		flags |= MHD_USE_TLS;
	else
		tls[0].option = MHD_OPTION_END;

	*error = -ENOMEM;
	if (!http)
		return NULL;
	http->config = *config;
	http->access = http_access_new(&access);
	if (!http->access) {
		free(http);
		return NULL;
	}
	if (!http->config.job_ms)
		http->config.job_ms = HTTP_JOB_MS;
	http->daemon =
		MHD_start_daemon(flags, 0, NULL, NULL, handler, http, MHD_OPTION_LISTEN_SOCKET,
				 config->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
				 (unsigned int)HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
				 (unsigned int)HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				 (size_t)MEMORY_PER_CONNECTION, MHD_OPTION_NOTIFY_COMPLETED,
				 completed, http, MHD_OPTION_NOTIFY_CONNECTION, http_peer_notify,
				 NULL, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!http->daemon) {
		http_access_free(http->access);
		free(http);
		return NULL;
	}
	info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	http->timer = loop_timer_new(config->loop, run, http);
	if (info && http->timer)
		http->watch = loop_watch_new(config->loop, info->epoll_fd, run, http);
	if (!http->watch) {
		http_stop(http);
		return NULL;
	}
	loop_timer_set(http->timer, 0);
	return http;
}

void http_stop(struct http *http)
{
	struct request *request;

	if (!http)
		return;
	for (request = http->requests; request; request = request->next)
		http_report_cancel(request);
	loop_watch_free(http->watch);
	loop_timer_free(http->timer);
	MHD_run(http->daemon);
	MHD_stop_daemon(http->daemon);
	buf_release(&http->cache.body);
	http_access_free(http->access);
	free(http);
}
