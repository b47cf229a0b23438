/* SPDX-License-Identifier: BSD-3-Clause */
/* http.c - requests and responses of the status page. */
#include "collector/web/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/emit/gzip.h"
#include "collector/web/http_access.h"
#include "collector/web/http_parts.h"
#include "common/proof.h"

#define MEMORY_PER_CONNECTION (32u << 10)

/* Runs libmicrohttpd, and gets the time of its next run. */
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

static enum MHD_Result respond_fixed(struct request *request, const struct http_text *text,
				     const struct http_answer *as)
{
	struct http *http = request->http;
	size_t i = (size_t)(text - http->config.texts);
	bool gzip = http_wants_gzip(request->conn->connection);
	struct http_body **body = &http->fixed[i][gzip];
	struct buf plain = BUF_INIT, packed = BUF_INIT;

	if (!*body) {
		text->make(http->config.arg, &plain);
		if (gzip && !plain.error && !gzip_whole(&plain, &packed)) {
			buf_release(&plain);
			plain = packed;
		}
		*body = http_body_new(http, &plain, gzip, true);
	}
	return *body ? http_respond_body(request->conn->connection, as, *body) : MHD_NO;
}

static enum MHD_Result respond_made(struct request *request, const struct http_text *text)
{
	struct http_answer as = {.code = MHD_HTTP_OK, .type = text->type, .policy = text->policy};
	struct buf body = BUF_INIT;

	if (text->fixed)
		return respond_fixed(request, text, &as);
	text->make(request->http->config.arg, &body);
	return http_respond(request->conn->connection, &as, &body);
}

static enum MHD_Result respond_sealed(struct request *request, const struct http_text *text,
				      const char *method, const char *url)
{
	struct MHD_Connection *connection = request->conn->connection;
	struct http_answer as = {.code = MHD_HTTP_OK, .type = PROOF_TYPE, .policy = text->policy};
	struct buf body = BUF_INIT;

	text->make(request->http->config.arg, &body);
	body.error = http_access_seal(request->http->access, connection, method, url, &body);
	return http_respond(connection, &as, &body);
}

static enum MHD_Result answer(struct request *request, const char *url, const char *method)
{
	struct MHD_Connection *connection = request->conn->connection;
	const struct http_text *text;
	enum http_verdict verdict;
	enum http_kind kind;

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
	/* Only small responses are sealed. */
	if (verdict == HTTP_SEALED && !text)
		verdict = HTTP_DENIED;
	if (verdict == HTTP_SEALED)
		return respond_sealed(request, text, method, url);
	if (verdict != HTTP_GRANTED)
		return http_access_respond(request->http->access, connection, url, verdict);
	if (text)
		return respond_made(request, text);
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
		struct http_conn *conn = http_conn_of(connection);

		/* The first call has only the headers; a response now would end the connection. */
		request = conn ? calloc(1, sizeof(*request)) : NULL;
		if (!request)
			return MHD_NO;
		request->http = http;
		request->conn = conn;
		conn->request = request;
		http_conn_state(conn, CONN_MAKE);
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
	struct request *request = *state;

	(void)arg;
	(void)connection;
	(void)code;
	if (!request)
		return;
	request->made = true; /* it has ended, so it is not suspended */
	request->waiting = false;
	http_report_cancel(request);
	http_body_drop(request->body);
	request->conn->request = NULL;
	http_conn_state(request->conn, CONN_HEAD);
	free(request);
	*state = NULL;
}

static void on_sweep(void *arg)
{
	struct http *http = arg;

	http_conn_sweep(http);
	if (http->conns)
		loop_timer_set(http->second, HTTP_SWEEP_MS);
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
	http->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, handler, http, MHD_OPTION_LISTEN_SOCKET, config->listen_fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)(HTTP_CONNECTIONS + HTTP_CLOSING),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_PER_CONNECTION,
		MHD_OPTION_NOTIFY_CONNECTION, http_conn_changed, http, MHD_OPTION_NOTIFY_COMPLETED,
		completed, http, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!http->daemon) {
		http_access_free(http->access);
		free(http);
		return NULL;
	}
	info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	http->timer = loop_timer_new(config->loop, run, http);
	http->second = loop_timer_new(config->loop, on_sweep, http);
	if (info && http->timer && http->second)
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
	struct http_conn *conn;
	size_t i;

	if (!http)
		return;
	for (conn = http->conns; conn; conn = conn->next) {
		if (conn->request)
			http_report_cancel(conn->request);
	}
	http_data_cancel(http);
	loop_watch_free(http->watch);
	loop_timer_free(http->timer);
	loop_timer_free(http->second);
	MHD_run(http->daemon);
	MHD_stop_daemon(http->daemon);
	for (i = 0; i < HTTP_TEXTS; i++) {
		http_body_drop(http->fixed[i][0]);
		http_body_drop(http->fixed[i][1]);
	}
	http_access_free(http->access);
	free(http);
}
