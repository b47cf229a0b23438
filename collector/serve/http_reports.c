/* SPDX-License-Identifier: BSD-3-Clause */
/* http_reports.c - reports on request: jobs, those who wait for them, and the page's data kept. */
#include <errno.h>
#include <string.h>

#include "collector/serve/http_job.h"
#include "collector/serve/http_parts.h"

static const struct {
	const char *url, *type;
} kinds[HTTP_KINDS] = {
	[HTTP_TEXT] = {"/report.txt", HTTP_PLAIN},
	[HTTP_JSON] = {"/report.json", "application/json"},
	[HTTP_PAGE] = {"/data.json", "application/json"},
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

static void wake(struct request *request, int result)
{
	request->waits = false;
	request->made = true;
	request->result = result;
	MHD_resume_connection(request->connection);
}

static bool same_data(const struct request *a, const struct request *b)
{
	return a->kind == HTTP_PAGE && b->kind == HTTP_PAGE && !strcmp(a->run, b->run);
}

static void keep(struct http *http, const struct request *request)
{
	int64_t now = loop_now_ms(http->config.loop), ms = HTTP_CACHE_TIMES;

	ms *= now - request->began_ms;
	buf_clear(&http->cache.body);
	if (buf_add(&http->cache.body, request->body.data, request->body.len))
		return;
	memcpy(http->cache.run, request->run, sizeof(request->run));
	http->cache.until_ms = now + (ms > HTTP_CACHE_MS ? ms : HTTP_CACHE_MS);
}

static void report_made(void *arg, int result, struct buf *out)
{
	struct request *request = arg, *other;
	struct http *http = request->http;

	request->job = NULL;
	request->body = *out;
	memset(out, 0, sizeof(*out));
	http->jobs--;
	if (request->kind == HTTP_PAGE && !result)
		keep(http, request);
	for (other = http->requests; other; other = other->next) {
		if (!other->waits || !same_data(request, other))
			continue;
		buf_add(&other->body, request->body.data, request->body.len);
		wake(other, result);
	}
	wake(request, result);
	loop_timer_set(http->timer, 0);
}

/* Whether somebody's job makes the same data already. */
static bool under_way(const struct request *request)
{
	const struct request *other;

	for (other = request->http->requests; other; other = other->next) {
		if (other->job && same_data(request, other))
			return true;
	}
	return false;
}

enum MHD_Result http_report_start(struct request *request, enum http_kind kind)
{
	struct MHD_Connection *connection = request->connection;
	struct http *http = request->http;
	struct http_job_call call = {
		.fn = http->config.report, .arg = http->config.arg, .kind = kind};
	const char *run = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "run");

	if (run && !strcmp(run, "last"))
		run = NULL;
	if (run && !http_sane_run(run))
		return http_respond_text(connection, 400, "that is no run id", NULL, NULL);
	request->kind = kind;
	request->began_ms = loop_now_ms(http->config.loop);
	memcpy(request->run, run ? run : "", run ? strlen(run) + 1 : 1);
	call.run = run ? request->run : NULL;
	if (kind == HTTP_PAGE && request->began_ms < http->cache.until_ms &&
	    !strcmp(http->cache.run, request->run)) {
		buf_add(&request->body, http->cache.body.data, http->cache.body.len);
		return http_report_respond(request);
	}
	request->waits = under_way(request);
	if (!request->waits) {
		if (http->jobs < HTTP_JOBS)
			request->job = http_job_start(http->config.loop, &call, http->config.job_ms,
						      report_made, request);
		if (!request->job)
			return http_respond_text(connection, 503, "busy with other reports",
						 "Retry-After", "2");
		http->jobs++;
	}
	MHD_suspend_connection(connection);
	return MHD_YES;
}

enum MHD_Result http_report_respond(struct request *request)
{
	struct MHD_Connection *connection = request->connection;
	struct http_answer as = {.code = MHD_HTTP_OK, .type = kinds[request->kind].type};

	if (request->result == -ETIMEDOUT)
		return http_respond_text(connection, 503, "the report took too long", NULL, NULL);
	if (request->result && !request->body.len)
		return http_respond_text(connection, 500, "the report failed", NULL, NULL);
	if (request->result) {
		buf_add(&request->body, "\n", 1);
		as.code = request->result == -ENOENT ? 404 : 500;
		as.type = HTTP_PLAIN;
	}
	return http_respond(connection, &as, &request->body);
}

void http_report_cancel(struct request *request)
{
	if (request->job)
		http_job_cancel(request->job);
	if (request->job || request->waits)
		wake(request, -ETIMEDOUT);
	request->job = NULL;
}
