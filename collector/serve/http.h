/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http.h - the status page: libmicrohttpd inside our loop, without threads.
 *
 *   GET /status.json           what the collector does now
 *   GET /live.json             what the cluster does now, see live.h
 *   GET /metrics               the same for Prometheus, see http_metrics.h
 *   GET /                      the report page; it asks for the next two every few seconds
 *   GET /data.json?run=ID      what it draws of a run; without run: the last one
 *   GET /report.json?run=ID    a run as JSON
 *   GET /report.txt?run=ID     a run as on the terminal
 *
 * GET and HEAD only; gzip for those who accept it. Reports are made in a child process
 * (http_job.h), so that a large journal never holds up the agents. Who may read all this:
 * http_access.h. All addresses are relative: a proxy may serve the page below a path of its own.
 */
#ifndef COLLECTOR_HTTP_H
#define COLLECTOR_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "collector/serve/http_job.h"
#include "collector/serve/loop.h"
#include "common/auth.h"
#include "common/buf.h"

#define HTTP_CONNECTIONS 64
#define HTTP_IDLE_S 15
#define HTTP_JOBS 2 /* reports made at the same time; more are answered 503 */
#define HTTP_JOB_MS 60000

struct http;

/* A small answer that is made in the loop's thread: quick. */
struct http_text {
	const char *url, *type;
	void (*make)(void *arg, struct buf *out); /* appends it */
	const char *policy; /* of a page with scripts; NULL: nothing is allowed */
};

struct http_config {
	struct loop *loop;
	int listen_fd;			/* owned from the call on, also when it fails */
	const struct auth_token *token; /* NULL: there is none; must outlive the server */
	bool open;			/* on loopback: for processes of this user without a token */
	bool bearer;			/* the token itself may come over plain http */
	const char *cert, *key;		/* PEM: https; NULL: http */
	const struct http_text *texts;	/* must outlive the server */
	size_t texts_n;
	/*
	 * Appends a report; in a child process, as slow as it likes. run NULL: the last one.
	 * 0, or -errno with one line about it instead; -ENOENT: no such run.
	 */
	int (*report)(void *arg, enum http_kind kind, const char *run, struct buf *out);
	void *arg;
	int64_t job_ms; /* 0: HTTP_JOB_MS */
};

/* Whether libmicrohttpd can do TLS: the one of portable builds cannot. */
bool http_has_tls(void);

/* NULL with *error = -errno. */
struct http *http_start(const struct http_config *config, int *error);
void http_stop(struct http *http);

#endif
