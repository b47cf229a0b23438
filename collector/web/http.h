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
 *   GET /runs.json             the list of runs; the page asks for it when it is opened there
 *
 * GET and HEAD only; gzip for those who accept it. Reports are made, and compressed, in a child
 * process (loop/job.h) and streamed, so a large one holds up no agent and takes no memory here. One
 * that fails half-way ends without its last chunk, by a reset.
 *
 * Whoever sends no request, or takes no answer, is closed after a while, and at once when there are
 * too many connections or too much is held: those of the address that has most of them first.
 *
 * Who may read all this: http_access.h. All addresses are relative: a proxy may serve the page
 * below a path of its own.
 */
#ifndef CREMA_COLLECTOR_WEB_HTTP_H
#define CREMA_COLLECTOR_WEB_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "collector/emit/emit.h"
#include "collector/loop/loop.h"
#include "common/auth.h"
#include "common/buf.h"

#define HTTP_CONNECTIONS 80 /* of more, one is closed for each new one: see http_conn.c */
#define HTTP_CLOSING 16	    /* beyond these: those that are being closed */
#define HTTP_JOBS 2	    /* reports made or streamed at the same time; the same of data.json */
#define HTTP_JOB_MS 60000   /* until a report begins */
#define HTTP_DATA_TIMES 3   /* as long may data.json take: it is made once for all who ask */

#define HTTP_HEAD_MS 5000    /* for the first request's head */
#define HTTP_IDLE_MS 15000   /* without a next request, or without taking anything of an answer */
#define HTTP_ANSWER_MS 60000 /* for a whole answer, and a ms more for each HTTP_SLOWEST bytes */
#define HTTP_SLOWEST 16
#define HTTP_REPORT_MS                                                                             \
	20000		   /* a reader may keep a report that long when another one is asked for */
#define HTTP_STILL_MS 1000 /* a reader idle for this long is closed first to make room */
#define HTTP_SWEEP_MS 500

#define HTTP_HELD_MAX (64u << 20) /* bytes of all answers: half for small ones, half for others */
#define HTTP_SMALL (HTTP_HELD_MAX / 2 / HTTP_CONNECTIONS)
#define HTTP_SEND_BYTES (256 << 10) /* that the kernel holds of each */

struct http;

/* A small answer that is made in the loop's thread: quick. */
struct http_text {
	const char *url, *type;
	void (*make)(void *arg, struct buf *out); /* appends it */
	const char *policy; /* of a page with scripts; NULL: nothing is allowed */
	bool fixed;	    /* made once */
};

enum http_kind { HTTP_TEXT, HTTP_JSON, HTTP_PAGE, HTTP_RUNS, HTTP_KINDS }; /* of reports */

struct http_config {
	struct loop *loop;
	int listen_fd;			/* owned from the call on, also when it fails */
	const struct auth_token *token; /* NULL: there is none; must outlive the server */
	bool open;		       /* on loopback: for processes of this user without a token */
	bool bearer;		       /* the token itself may come over plain http */
	const char *cert, *key;	       /* PEM: https; NULL: http */
	const struct http_text *texts; /* must outlive the server */
	size_t texts_n;
	/*
	 * Writes a report; in a child process, as slow as it likes. run NULL: the last one.
	 * 0, or -errno with one line about it in out->out instead; -ENOENT: no such run.
	 */
	int (*report)(void *arg, enum http_kind kind, const char *run, struct sink *out);
	void *arg;
	int64_t job_ms; /* 0: HTTP_JOB_MS */
};

/* Whether libmicrohttpd can do TLS: the one of portable builds cannot. */
bool http_has_tls(void);

/* NULL with *error = -errno. */
struct http *http_start(const struct http_config *config, int *error);
void http_stop(struct http *http);

#endif
