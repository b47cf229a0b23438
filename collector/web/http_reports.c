/* SPDX-License-Identifier: BSD-3-Clause */
/* http_reports.c - reports on request: streamed ones, and the page's data, made once for all
 * clients. */
#include <errno.h>
#include <string.h>

#include "collector/emit/gzip.h"
#include "collector/web/http_parts.h"

#define LINE_BYTES 4096 /* of a failure */

static const struct {
	const char *url, *type;
} kinds[HTTP_KINDS] = {
	[HTTP_TEXT] = {"/report.txt", HTTP_PLAIN},
	[HTTP_JSON] = {"/report.json", "application/json"},
	[HTTP_PAGE] = {"/data.json", "application/json"},
	[HTTP_RUNS] = {"/runs.json", "application/json"},
};

enum http_kind http_report_kind(const char *url)
{
	unsigned int i;

	for (i = 0; i < HTTP_KINDS && strcmp(url, kinds[i].url) != 0; i++)
		;
	return (enum http_kind)i;
}

bool http_sane_run(const char *run)
{
	size_t n = strlen(run);

	return n && n <= HTTP_RUN_MAX && !strchr("-/", run[0]) &&
	       strspn(run, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:+-") ==
		       n;
}

/* Resumes a request that was suspended until there is a response or a failure. */
static void wake(struct request *request, int result)
{
	request->made = true;
	request->result = result;
	MHD_resume_connection(request->conn->connection);
	loop_timer_set(request->http->timer, 0);
}

static enum MHD_Result busy(struct request *request)
{
	return http_respond_text(request->conn->connection, 503, "busy with other reports",
				 "Retry-After", "2");
}

struct wanted {
	const struct http_config *config;
	enum http_kind kind;
	const char *run;
};

static int make(void *arg, struct sink *out)
{
	const struct wanted *w = arg;

	return w->config->report(w->config->arg, w->kind, w->run, out);
}

static struct loop_job *start_job(struct http *http, enum http_kind kind, const char *run,
				  struct loop_job_call *call)
{
	struct wanted wanted = {&http->config, kind, *run ? run : NULL};

	call->fn = make;
	call->arg = &wanted;
	call->ms = http->config.job_ms * (kind == HTTP_PAGE ? HTTP_DATA_TIMES : 1);
	return loop_job_start(http->config.loop, call);
}

/* Streamed reports */

static void end_job(struct request *request)
{
	loop_job_cancel(request->job);
	request->job = NULL;
	request->http->reports--;
}

/* The line with the reason, in place of a report. */
static void take_line(struct request *request)
{
	char line[LINE_BYTES];
	ssize_t n = loop_job_read(request->job, line, sizeof(line));
	struct buf text = BUF_INIT;

	if (n > 0) {
		buf_add(&text, line, (size_t)n);
		buf_add(&text, "\n", 1);
		request->body = http_body_new(request->http, &text, false, false);
	}
	end_job(request);
}

static void on_ready(void *arg)
{
	struct request *request = arg;
	int failure;

	if (!request->made) {
		failure = loop_job_failure(request->job);
		if (failure)
			take_line(request);
		wake(request, failure);
		return;
	}
	/* the time that the child needed does not count for the reader */
	request->waiting = false;
	request->conn->since_ms += loop_now_ms(request->http->config.loop) - request->waiting_ms;
	http_conn_moved(request->conn, 0);
	MHD_resume_connection(request->conn->connection);
	loop_timer_set(request->http->timer, 0);
}

static enum MHD_Result start_report(struct request *request, const char *run)
{
	struct http *http = request->http;
	struct loop_job_call call = {.gzip = request->gzip, .ready = on_ready, .done_arg = request};

	if (http->reports < HTTP_JOBS || http_conn_end_report(http))
		request->job = start_job(http, request->kind, run, &call);
	if (!request->job)
		return busy(request);
	http->reports++;
	MHD_suspend_connection(request->conn->connection);
	return MHD_YES;
}

/* The page's data */

static bool is_fresh(const struct http_data *data)
{
	return data->body && loop_now_ms(data->http->config.loop) < data->until_ms;
}

static void keep(struct http_data *data, struct buf *out)
{
	int64_t now = loop_now_ms(data->http->config.loop);
	int64_t ms = HTTP_CACHE_TIMES * (now - data->began_ms);

	data->until_ms = now + (ms > HTTP_CACHE_MS ? ms : HTTP_CACHE_MS);
	data->body = http_body_new(data->http, out, data->gzip, false);
}

static void data_made(void *arg, int result, struct buf *out)
{
	struct http_data *data = arg;
	struct http_body *line = NULL;
	struct http_conn *conn;

	data->job = NULL;
	if (!result) {
		keep(data, out);
		line = data->body;
		result = line ? 0 : -ENOBUFS;
	} else if (out->len) {
		buf_add(out, "\n", 1);
		line = http_body_new(data->http, out, false, false);
	}
	for (conn = data->http->conns; conn; conn = conn->next) {
		if (!conn->request || conn->request->data != data)
			continue;
		conn->request->data = NULL;
		conn->request->body = line ? http_body_own(line) : NULL;
		wake(conn->request, result);
	}
	if (line != data->body)
		http_body_drop(line);
}

/* Existing data, or data being made; else a free entry; NULL: too many are being made. */
static struct http_data *data_of(struct http *http, const char *run, bool gzip)
{
	struct http_data *data, *oldest = NULL;
	unsigned int made = 0;

	for (data = http->data; data < http->data + HTTP_DATA; data++) {
		data->http = http;
		if ((data->job || is_fresh(data)) && data->gzip == gzip && !strcmp(data->run, run))
			return data;
		made += data->job != NULL;
		if (!data->job && (!oldest || data->until_ms < oldest->until_ms))
			oldest = data;
	}
	if (made >= HTTP_JOBS)
		return NULL;
	http_body_drop(oldest->body);
	oldest->body = NULL;
	strcpy(oldest->run, run);
	oldest->gzip = gzip;
	return oldest;
}

static enum MHD_Result start_data(struct request *request, const char *run)
{
	struct http *http = request->http;
	struct http_data *data = data_of(http, run, request->gzip);
	struct loop_job_call call = {.gzip = request->gzip, .done = data_made, .done_arg = data};

	if (data && data->body && !data->job) {
		request->body = http_body_own(data->body);
		return http_report_respond(request);
	}
	if (data && !data->job) {
		data->began_ms = loop_now_ms(http->config.loop);
		data->job = start_job(http, HTTP_PAGE, data->run, &call);
	}
	if (!data || !data->job)
		return busy(request);
	request->data = data;
	MHD_suspend_connection(request->conn->connection);
	return MHD_YES;
}

void http_data_cancel(struct http *http)
{
	struct http_data *data;

	for (data = http->data; data < http->data + HTTP_DATA; data++) {
		if (data->job)
			loop_job_cancel(data->job);
		http_body_drop(data->body);
		data->job = NULL;
		data->body = NULL;
	}
}

/* Both */

enum MHD_Result http_report_start(struct request *request, enum http_kind kind)
{
	struct MHD_Connection *connection = request->conn->connection;
	const char *run = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "run");

	if (run && !strcmp(run, "last"))
		run = NULL;
	if (run && !http_sane_run(run))
		return http_respond_text(connection, 400, "not a run id", NULL, NULL);
	request->kind = kind;
	request->gzip = http_wants_gzip(connection);
	return kind == HTTP_PAGE ? start_data(request, run ? run : "")
				 : start_report(request, run ? run : "");
}

enum MHD_Result http_report_respond(struct request *request)
{
	struct MHD_Connection *connection = request->conn->connection;
	struct http_answer as = {.code = MHD_HTTP_OK, .type = kinds[request->kind].type};

	if (request->result == -ECANCELED)
		return MHD_NO;
	if (request->result == -ETIMEDOUT)
		return http_respond_text(connection, 503, "the report took too long", NULL, NULL);
	if (request->result == -ENOBUFS)
		return http_respond_text(connection, 503, "too much is being sent", "Retry-After",
					 "1");
	if (request->result && !request->body)
		return http_respond_text(connection, 500, "the report failed", NULL, NULL);
	if (request->result) {
		as.code = request->result == -ENOENT ? 404 : 500;
		as.type = HTTP_PLAIN;
	}
	return request->body ? http_respond_body(connection, &as, request->body)
			     : http_respond_job(request, &as);
}

void http_report_cancel(struct request *request)
{
	bool suspended = request->data || (request->job && (!request->made || request->waiting));

	request->data = NULL;
	if (request->job)
		end_job(request);
	request->waiting = false;
	if (suspended)
		wake(request, -ECANCELED);
}
