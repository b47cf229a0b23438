/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_parts.h - shared by http.c, http_conn.c, http_send.c and http_reports.c, and included only
 * by them. They are one state machine and call each other.
 *
 * A request belongs to its connection: head -> (a report is made) -> response -> head of the next
 * one. Bodies in memory have a reference count, as a response to several clients is stored once;
 * their sum is http->held. A report is not a body: it goes from the child's pipe to the connection.
 *
 * The page's data is made once for all simultaneous requests, and kept for HTTP_CACHE_MS, or for
 * several times as long as it took: an open page must not keep a core busy with a large journal.
 */
#ifndef CREMA_COLLECTOR_WEB_HTTP_PARTS_H
#define CREMA_COLLECTOR_WEB_HTTP_PARTS_H

#include <microhttpd.h>

#include "collector/loop/job.h"
#include "collector/web/http.h"
#include "collector/web/http_peer.h"

#define HTTP_RUN_MAX 128
#define HTTP_PLAIN "text/plain; charset=utf-8"
#define HTTP_CACHE_MS 1000
#define HTTP_CACHE_TIMES 4
#define HTTP_DATA 4 /* page data kept for this many runs, plain or compressed */
#define HTTP_TEXTS 8
#define HTTP_ADDRESS_BYTES 16

struct http_body {
	struct http *http;
	unsigned int owners;
	struct buf data;
	bool gzip;
	bool fixed; /* not counted: there is one of each, permanently */
};

enum conn_state { CONN_HEAD, CONN_MAKE, CONN_SEND };

struct http_conn {
	struct http *http;
	struct MHD_Connection *connection;
	int fd;
	struct http_peer peer;
	unsigned char address[HTTP_ADDRESS_BYTES];
	enum conn_state state;
	int64_t since_ms; /* start of the state; in CONN_SEND, less the time spent waiting for the
			     child */
	int64_t moved_ms; /* the client last read something */
	uint64_t sent;
	int unsent; /* in CONN_HEAD: previous response's bytes in the kernel, when last checked */
	bool closing, first; /* first: no request was read yet */
	struct request *request;
	struct sending *sending;
	struct http_conn *next, *prev;
};

/* The page's data of a run: being made (job), or kept until until_ms. */
struct http_data {
	struct http *http;
	char run[HTTP_RUN_MAX + 1]; /* "": the last */
	bool gzip;
	struct loop_job *job;
	int64_t began_ms, until_ms;
	struct http_body *body;
};

struct request {
	struct http *http;
	struct http_conn *conn;
	enum http_kind kind;
	struct loop_job *job;	/* for a streamed report */
	struct http_data *data; /* being waited for */
	bool made, gzip;
	bool waiting; /* suspended until the report has more data */
	int64_t waiting_ms;
	int result;
	struct http_body *body; /* the page's data, or the line of a failure */
};

struct http {
	struct http_config config;
	struct http_access *access;
	struct MHD_Daemon *daemon;
	struct loop_watch *watch;
	struct loop_timer *timer, *second;
	struct http_conn *conns;
	unsigned int conns_n; /* without those being closed */
	unsigned int reports; /* being made or streamed */
	uint64_t held;	      /* bytes of all bodies */
	struct http_data data[HTTP_DATA];
	struct http_body *fixed[HTTP_TEXTS][2]; /* plain, gzip */
};

struct http_answer {
	unsigned int code;
	const char *type;
	const char *policy;	  /* NULL: nothing is allowed */
	const char *name, *value; /* an additional header, or NULL */
};

/* http_conn.c: connections, their deadlines, and making room. */

void http_conn_changed(void *arg, struct MHD_Connection *connection, void **context,
		       enum MHD_ConnectionNotificationCode code);
struct http_conn *http_conn_of(struct MHD_Connection *connection);
void http_conn_state(struct http_conn *conn, enum conn_state state);
/* The client has read some bytes. */
void http_conn_moved(struct http_conn *conn, size_t bytes);
/* Only the socket: the client sees it at once. */
void http_conn_reset(struct http_conn *conn);
/* Every HTTP_SWEEP_MS: closes connections beyond a deadline. */
void http_conn_sweep(struct http *http);
/* Closes responses that are not read until `bytes` more may be held. False: not possible. */
bool http_conn_make_room(struct http *http, uint64_t bytes);
/* Closes the streamed report with the slowest reader, if it is beyond HTTP_REPORT_MS. */
bool http_conn_end_report(struct http *http);

/* http_send.c: responses. */

/* Takes over the data's memory. NULL: no memory, or too much would be held; the data is freed. */
struct http_body *http_body_new(struct http *http, struct buf *data, bool gzip, bool fixed);
struct http_body *http_body_own(struct http_body *body); /* adds an owner; returns it */
void http_body_drop(struct http_body *body);		 /* accepts NULL */
/* Stops sending; the connection is about to be closed. */
void http_sending_cancel(struct http_conn *conn);
bool http_wants_gzip(struct MHD_Connection *connection);
/* Takes over the body's memory. */
enum MHD_Result http_respond(struct MHD_Connection *connection, const struct http_answer *as,
			     struct buf *body);
enum MHD_Result http_respond_text(struct MHD_Connection *connection, unsigned int code,
				  const char *text, const char *name, const char *value);
/* The caller keeps its reference. */
enum MHD_Result http_respond_body(struct MHD_Connection *connection, const struct http_answer *as,
				  struct http_body *body);
/* Sends the output of request->job as it arrives. */
enum MHD_Result http_respond_job(struct request *request, const struct http_answer *as);

/* http_reports.c */

bool http_sane_run(const char *run);
/* HTTP_KINDS: not a report. */
enum http_kind http_report_kind(const char *url);
enum MHD_Result http_report_start(struct request *request, enum http_kind kind);
enum MHD_Result http_report_respond(struct request *request);
/* For a request that ends or is about to: cancels its job and resumes it. */
void http_report_cancel(struct request *request);
void http_data_cancel(struct http *http);

#endif
