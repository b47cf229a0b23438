/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_parts.h - what http.c and http_reports.c share; nobody else includes it.
 *
 * A report is made in a child process while its request is suspended. The page's data is made once
 * for all who ask at the same time, and kept for HTTP_CACHE_MS, or for several times as long as it
 * took: a page that stands open must not keep a core busy with a large journal.
 */
#ifndef COLLECTOR_HTTP_PARTS_H
#define COLLECTOR_HTTP_PARTS_H

#include <microhttpd.h>

#include "collector/serve/http.h"

#define HTTP_RUN_MAX 128
#define HTTP_PLAIN "text/plain; charset=utf-8"
#define HTTP_CACHE_MS 1000
#define HTTP_CACHE_TIMES 4

struct request {
	struct http *http;
	struct MHD_Connection *connection;
	struct request *next, *prev;
	struct http_job *job;
	enum http_kind kind;
	bool waits; /* for the job of another request: the same data */
	bool made;
	int result;
	int64_t began_ms;
	char run[HTTP_RUN_MAX + 1]; /* "": the last */
	struct buf body;
};

struct http {
	struct http_config config;
	struct http_access *access;
	struct MHD_Daemon *daemon;
	struct loop_watch *watch;
	struct loop_timer *timer;
	struct request *requests;
	unsigned int jobs;
	struct {
		char run[HTTP_RUN_MAX + 1];
		int64_t until_ms;
		struct buf body;
	} cache;
};

struct http_answer {
	unsigned int code;
	const char *type;
	const char *policy;	  /* NULL: it may do nothing */
	const char *name, *value; /* one more header, or NULL */
};

/* Takes the body's memory. */
enum MHD_Result http_respond(struct MHD_Connection *connection, const struct http_answer *as,
			     struct buf *body);
enum MHD_Result http_respond_text(struct MHD_Connection *connection, unsigned int code,
				  const char *text, const char *name, const char *value);

bool http_sane_run(const char *run);
/* HTTP_KINDS: no report is there. */
enum http_kind http_report_kind(const char *url);
enum MHD_Result http_report_start(struct request *request, enum http_kind kind);
enum MHD_Result http_report_respond(struct request *request);
void http_report_cancel(struct request *request);

#endif
