/* SPDX-License-Identifier: BSD-3-Clause */
/* http_send.c - responses: bodies held in memory, and reports as their child makes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/gzip.h"
#include "collector/web/http_parts.h"

#define BLOCK (32u << 10) /* libmicrohttpd's buffer per response */
#define NOTHING_ALLOWED                                                                            \
	"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* A response being sent; libmicrohttpd owns it. */
struct sending {
	struct http_conn *conn; /* NULL: it is gone */
	struct http_body *body; /* NULL: a job's output, or cancelled */
	bool deflating;
	z_stream z;
	size_t at; /* position in the body that z has taken */
};

/* Bodies */

struct http_body *http_body_new(struct http *http, struct buf *data, bool gzip, bool fixed)
{
	struct http_body *body = NULL;

	if (!data->error && (fixed || http_conn_make_room(http, data->len)))
		body = calloc(1, sizeof(*body));
	if (!body) {
		buf_release(data);
		return NULL;
	}
	*body = (struct http_body){.http = http, .owners = 1, .gzip = gzip, .fixed = fixed};
	body->data = *data;
	memset(data, 0, sizeof(*data));
	http->held += fixed ? 0 : body->data.len;
	return body;
}

struct http_body *http_body_own(struct http_body *body)
{
	body->owners++;
	return body;
}

void http_body_drop(struct http_body *body)
{
	if (!body || --body->owners)
		return;
	body->http->held -= body->fixed ? 0 : body->data.len;
	buf_release(&body->data);
	free(body);
}

/* Sending */

static void sending_drop(struct sending *s)
{
	if (s->deflating && s->body)
		s->body->http->held -= GZIP_STATE;
	if (s->deflating)
		deflateEnd(&s->z);
	s->deflating = false;
	http_body_drop(s->body);
	s->body = NULL;
}

void http_sending_cancel(struct http_conn *conn)
{
	if (conn->sending)
		sending_drop(conn->sending);
}

static void sending_free(void *arg)
{
	struct sending *s = arg;

	if (s->conn)
		s->conn->sending = NULL;
	sending_drop(s);
	free(s);
}

static ssize_t body_next(void *arg, uint64_t at, char *out, size_t max)
{
	struct sending *s = arg;
	size_t n;
	ssize_t got;

	if (!s->conn || !s->body)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (s->deflating) {
		got = gzip_next(&s->z, &s->body->data, &s->at, out, max);
		if (got <= 0)
			return got ? MHD_CONTENT_READER_END_WITH_ERROR
				   : MHD_CONTENT_READER_END_OF_STREAM;
		n = (size_t)got;
	} else {
		n = s->body->data.len - (size_t)at;
		n = n < max ? n : max;
		memcpy(out, s->body->data.data + at, n);
	}
	http_conn_moved(s->conn, n);
	return (ssize_t)n;
}

/* A client must not take a partial response for a complete one, not even with HTTP/1.0: it gets a
 * reset instead of an end. */
static ssize_t broken(struct http_conn *conn)
{
	if (conn)
		http_conn_reset(conn);
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t job_next(void *arg, uint64_t at, char *out, size_t max)
{
	struct sending *s = arg;
	struct request *request = s->conn ? s->conn->request : NULL;
	ssize_t n;

	(void)at;
	if (!request || !request->job || s->conn->closing)
		return broken(s->conn);
	n = loop_job_read(request->job, out, max);
	if (n == -EAGAIN) {
		request->waiting = true;
		request->waiting_ms = loop_now_ms(request->http->config.loop);
		MHD_suspend_connection(s->conn->connection);
		return 0;
	}
	if (n <= 0)
		return n ? broken(s->conn) : MHD_CONTENT_READER_END_OF_STREAM;
	http_conn_moved(s->conn, (size_t)n);
	return n;
}

bool http_wants_gzip(struct MHD_Connection *connection)
{
	return gzip_wanted(
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept-Encoding"));
}

static enum MHD_Result queue(struct sending *s, const struct http_answer *as, uint64_t size,
			     MHD_ContentReaderCallback next, bool gzip)
{
	struct http_conn *conn = s->conn;
	struct MHD_Response *response =
		MHD_create_response_from_callback(size, BLOCK, next, s, sending_free);
	enum MHD_Result result;

	if (!response) {
		s->conn = NULL;
		sending_free(s);
		return MHD_NO;
	}
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
	conn->sending = s;
	http_conn_state(conn, CONN_SEND);
	result = MHD_queue_response(conn->connection, as->code, response);
	MHD_destroy_response(response);
	return result;
}

static struct sending *sending_new(struct MHD_Connection *connection)
{
	struct sending *s = calloc(1, sizeof(*s));

	if (s)
		s->conn = http_conn_of(connection);
	return s;
}

enum MHD_Result http_respond_body(struct MHD_Connection *connection, const struct http_answer *as,
				  struct http_body *body)
{
	struct sending *s = sending_new(connection);

	if (!s)
		return MHD_NO;
	s->body = http_body_own(body);
	if (!body->gzip && as->code == MHD_HTTP_OK && body->data.len > GZIP_SLICE &&
	    http_wants_gzip(connection) && !gzip_begin(&s->z)) {
		s->deflating = true;
		body->http->held += GZIP_STATE;
	}
	return queue(s, as, s->deflating ? MHD_SIZE_UNKNOWN : body->data.len, body_next,
		     body->gzip || s->deflating);
}

enum MHD_Result http_respond_job(struct request *request, const struct http_answer *as)
{
	struct sending *s = sending_new(request->conn->connection);

	return s ? queue(s, as, MHD_SIZE_UNKNOWN, job_next, request->gzip) : MHD_NO;
}

enum MHD_Result http_respond(struct MHD_Connection *connection, const struct http_answer *as,
			     struct buf *data)
{
	struct http *http = http_conn_of(connection)->http;
	struct buf packed = BUF_INIT;
	struct http_body *body;
	enum MHD_Result result;
	bool gzip = as->code == MHD_HTTP_OK && data->len >= GZIP_FROM && data->len <= GZIP_SLICE &&
		    http_wants_gzip(connection);

	if (gzip && !gzip_whole(data, &packed)) {
		buf_release(data);
		*data = packed;
	}
	gzip = gzip && packed.data;
	if (data->len > HTTP_HELD_MAX / HTTP_CONNECTIONS && !http_conn_make_room(http, data->len)) {
		buf_release(data);
		return http_respond_text(connection, 503, "too much is being sent", "Retry-After",
					 "1");
	}
	body = http_body_new(http, data, gzip, false);
	if (!body)
		return MHD_NO;
	result = http_respond_body(connection, as, body);
	http_body_drop(body);
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
