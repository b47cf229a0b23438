/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http.h - the status page: libmicrohttpd inside our loop, without threads.
 *
 *   GET /status.json           the collector's state; `crema page` has none
 *   GET /live.json             the cluster's state, see live.h
 *   GET /metrics               the same for Prometheus, see http_metrics.h
 *   GET /                      the report page; requests live.json and data.json every few seconds
 *   GET /data.json?run=ID      its data for a run; without run: the last one
 *   GET /report.json?run=ID    a run as JSON
 *   GET /report.txt?run=ID     a run as on the terminal
 *   GET /runs.json             the list of runs; the page requests it when the list is opened
 *
 * GET and HEAD only; gzip if the client accepts it. A child process (loop/job.h) makes and
 * compresses reports, and they are streamed, so a large one delays no agent and takes no memory
 * here. One that fails half-way ends without its last chunk, by a reset.
 *
 * A client that sends no request, or does not read its response, is disconnected after a while, and
 * at once if there are too many connections or too much is held in memory: first those of the
 * address with the most connections.
 *
 * See http_access.h for access control. All addresses are relative, so a proxy may serve the page
 * below any path.
 */
#ifndef CREMA_COLLECTOR_WEB_HTTP_H
#define CREMA_COLLECTOR_WEB_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "collector/emit/emit.h"
#include "collector/loop/loop.h"
#include "common/auth.h"
#include "common/buf.h"

#define HTTP_CONNECTIONS 80 /* beyond this, one is closed for each new one: see http_conn.c */
#define HTTP_CLOSING 16	    /* in addition: connections being closed */
#define HTTP_JOBS 2	    /* reports made or streamed at the same time; the same for data.json */
#define HTTP_JOB_MS 60000   /* until a report begins */
#define HTTP_DATA_TIMES 3   /* data.json may take this many times as long: it is shared */

#define HTTP_HEAD_MS 5000    /* for the head of the first request */
#define HTTP_IDLE_MS 15000   /* without a next request, or without reading any of a response */
#define HTTP_ANSWER_MS 60000 /* for a whole response, plus a ms for each HTTP_SLOWEST bytes */
#define HTTP_SLOWEST 16
#define HTTP_REPORT_MS 20000 /* how long a reader may keep a report if another one is requested */
#define HTTP_STILL_MS 1000   /* a reader idle for this long is closed first to make room */
#define HTTP_SWEEP_MS 500

#define HTTP_HELD_MAX (64u << 20) /* bytes of all responses; half for small ones */
#define HTTP_SMALL (HTTP_HELD_MAX / 2 / HTTP_CONNECTIONS)
#define HTTP_SEND_BYTES (256 << 10) /* that the kernel buffers for each */

struct http;

/* A small response that is made in the loop's thread: it must be quick. */
struct http_text {
	const char *url, *type;
	void (*make)(void *arg, struct buf *out); /* appends it */
	const char *policy;			  /* of a page with scripts; NULL: allow nothing */
	bool fixed;				  /* made once */
};

enum http_kind { HTTP_TEXT, HTTP_JSON, HTTP_PAGE, HTTP_RUNS, HTTP_KINDS }; /* of reports */

struct http_config {
	struct loop *loop;
	int listen_fd;			/* owned from the call on, also on failure */
	const struct auth_token *token; /* NULL: there is none; must outlive the server */
	bool open;			/* on loopback: processes of this user need no token */
	bool bearer;			/* the token itself is accepted over plain http */
	const char *cert, *key;		/* PEM: https; NULL: http */
	const struct http_text *texts;	/* must outlive the server */
	size_t texts_n;
	/*
	 * Writes a report, in a child process, so it may be slow. run NULL: the last one. 0, or
	 * -errno with one line in out->out instead; -ENOENT: no such run.
	 */
	int (*report)(void *arg, enum http_kind kind, const char *run, struct sink *out);
	void *arg;
	int64_t job_ms; /* 0: HTTP_JOB_MS */
};

/* Whether libmicrohttpd supports TLS: that of portable builds does not. */
bool http_has_tls(void);

/* NULL with *error = -errno. */
struct http *http_start(const struct http_config *config, int *error);
void http_stop(struct http *http);

#endif
