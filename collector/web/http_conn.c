/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_conn.c - the page's connections: their deadlines, and which are closed when there are
 * too many.
 *
 * libmicrohttpd cannot close a connection on request, but notices a socket that was reset.
 */
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "collector/web/http_parts.h"

static int64_t now_ms(const struct http *http)
{
	return loop_now_ms(http->config.loop);
}

struct http_conn *http_conn_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

void http_conn_state(struct http_conn *conn, enum conn_state state)
{
	conn->state = state;
	conn->since_ms = conn->moved_ms = now_ms(conn->http);
	conn->sent = 0;
	/* The end of the response may be in the kernel, but not read by the client. */
	conn->unsent = state == CONN_HEAD && !conn->first ? INT32_MAX : 0;
	if (state != CONN_HEAD)
		conn->first = false;
}

/* Whether a response is still being sent after libmicrohttpd has finished it. */
static bool is_draining(struct http_conn *conn)
{
	int unsent = 0;

	if (!conn->unsent || ioctl(conn->fd, SIOCOUTQ, &unsent))
		return false;
	if (unsent < conn->unsent)
		conn->moved_ms = now_ms(conn->http);
	if (!unsent)
		conn->since_ms = now_ms(conn->http);
	conn->unsent = unsent;
	return unsent != 0;
}

void http_conn_moved(struct http_conn *conn, size_t bytes)
{
	conn->moved_ms = now_ms(conn->http);
	conn->sent += bytes;
}

/* Also discards unread data: an end by shutdown() would look like the end of a response. */
void http_conn_reset(struct http_conn *conn)
{
	const struct sockaddr none = {.sa_family = AF_UNSPEC};

	if (connect(conn->fd, &none, sizeof(none)))
		shutdown(conn->fd, SHUT_RDWR);
}

/* Closes it at once; the client sees a reset. Its memory is free on return. */
static void http_conn_close(struct http_conn *conn)
{
	if (conn->closing)
		return;
	conn->closing = true;
	conn->http->conns_n--;
	http_conn_reset(conn);
	http_sending_cancel(conn);
	if (conn->request)
		http_report_cancel(conn->request);
}

/* Deadlines */

static bool is_reading_report(const struct http_conn *conn)
{
	return conn->state == CONN_SEND && conn->request && conn->request->job &&
	       !conn->request->waiting;
}

static bool is_late(struct http_conn *conn)
{
	bool draining = is_draining(conn);
	int64_t now = now_ms(conn->http), age = now - conn->since_ms;
	const struct request *request = conn->request;

	if (conn->state == CONN_HEAD && !draining)
		return age > (conn->first ? HTTP_HEAD_MS : HTTP_IDLE_MS);
	if (conn->state == CONN_MAKE) /* a job has a separate time limit */
		return !(request && (request->job || request->data)) && age > HTTP_HEAD_MS;
	if (request && request->waiting)
		return false;
	return now - conn->moved_ms > HTTP_IDLE_MS ||
	       age > HTTP_ANSWER_MS + (int64_t)(conn->sent / HTTP_SLOWEST);
}

void http_conn_sweep(struct http *http)
{
	struct http_conn *conn;

	for (conn = http->conns; conn; conn = conn->next) {
		if (!conn->closing && is_late(conn))
			http_conn_close(conn);
	}
}

/* Room */

static bool is_head(const struct http_conn *conn)
{
	return conn->state == CONN_HEAD && !conn->unsent;
}

/* How long none of it was read, if that is long; else its age, with less urgency. */
static int64_t slowness(const struct http_conn *conn, bool heads)
{
	int64_t now = now_ms(conn->http), still = now - conn->moved_ms;

	if (heads || is_head(conn))
		return heads && is_head(conn) ? now - conn->since_ms : -1;
	if (conn->state == CONN_MAKE || (conn->request && conn->request->waiting))
		return 0;
	return still >= HTTP_STILL_MS ? INT32_MAX + still : now - conn->since_ms;
}

static unsigned int of_address(const struct http *http, const struct http_conn *like,
			       unsigned int *heads)
{
	const struct http_conn *conn;
	unsigned int n = 0;

	*heads = 0;
	for (conn = http->conns; conn; conn = conn->next) {
		if (conn->closing ||
		    memcmp(conn->address, like->address, sizeof(like->address)) != 0)
			continue;
		n++;
		*heads += is_head(conn);
	}
	return n;
}

/*
 * Picks a connection of the address with the most. If at least half of its connections have sent no
 * request, picks the oldest of these, so a client that sends its request at once is served, however
 * many stay silent. Else picks the response that is read most slowly.
 */
static struct http_conn *superfluous(const struct http *http)
{
	struct http_conn *conn, *most = NULL, *worst = NULL;
	unsigned int n, heads, best = 0, best_heads = 0;

	for (conn = http->conns; conn; conn = conn->next)
		is_draining(conn);
	for (conn = http->conns; conn; conn = conn->next) {
		if (conn->closing)
			continue;
		n = of_address(http, conn, &heads);
		if (n > best) {
			best = n;
			best_heads = heads;
			most = conn;
		}
	}
	for (conn = most; conn; conn = conn->next) {
		if (conn->closing ||
		    memcmp(conn->address, most->address, sizeof(most->address)) != 0)
			continue;
		/* the newest come first: of equal ones this picks the older */
		if (!worst || slowness(conn, 2 * best_heads >= best) >=
				      slowness(worst, 2 * best_heads >= best))
			worst = conn;
	}
	return worst;
}

bool http_conn_make_room(struct http *http, uint64_t bytes)
{
	struct http_conn *conn, *worst;

	if (bytes <= HTTP_SMALL)
		return true;
	while (http->held + bytes > HTTP_HELD_MAX / 2) {
		worst = NULL;
		for (conn = http->conns; conn; conn = conn->next) {
			if (!conn->closing && conn->sending && conn->state == CONN_SEND &&
			    !(conn->request && conn->request->job) &&
			    now_ms(http) - conn->moved_ms >= HTTP_STILL_MS &&
			    (!worst || conn->moved_ms < worst->moved_ms))
				worst = conn;
		}
		if (!worst)
			return false;
		http_conn_close(worst);
	}
	return true;
}

bool http_conn_end_report(struct http *http)
{
	struct http_conn *conn, *longest = NULL;

	for (conn = http->conns; conn; conn = conn->next) {
		if (!conn->closing && is_reading_report(conn) &&
		    now_ms(http) - conn->since_ms > HTTP_REPORT_MS &&
		    (!longest || conn->since_ms < longest->since_ms))
			longest = conn;
	}
	if (longest)
		http_conn_close(longest);
	return longest != NULL;
}

/* Connecting and disconnecting */

/* For IPv6 the network: a client with one address there has all of them. */
static void set_address(struct http_conn *conn, const struct sockaddr *address)
{
	if (address && address->sa_family == AF_INET)
		memcpy(conn->address, &((const struct sockaddr_in *)address)->sin_addr, 4);
	if (!address || address->sa_family != AF_INET6)
		return;
	memcpy(conn->address, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	if (!IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)address)->sin6_addr))
		memset(conn->address + 8, 0, 8);
}

static void came(struct http *http, struct MHD_Connection *connection, void **context)
{
	struct http_conn *conn = calloc(1, sizeof(*conn));
	const int send_bytes = HTTP_SEND_BYTES;

	if (!conn)
		return;
	*context = conn;
	conn->http = http;
	conn->connection = connection;
	conn->first = true;
	conn->fd =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	set_address(conn, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
				  ->client_addr);
	setsockopt(conn->fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
	http_conn_state(conn, CONN_HEAD);
	conn->next = http->conns;
	if (conn->next)
		conn->next->prev = conn;
	http->conns = conn;
	if (++http->conns_n > HTTP_CONNECTIONS)
		http_conn_close(superfluous(http));
	if (!conn->next)
		loop_timer_set(http->second, HTTP_SWEEP_MS);
}

static void went(struct http_conn *conn)
{
	struct http *http = conn->http;

	http_sending_cancel(conn);
	http->conns_n -= !conn->closing;
	if (conn->next)
		conn->next->prev = conn->prev;
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		http->conns = conn->next;
	free(conn);
}

void http_conn_changed(void *arg, struct MHD_Connection *connection, void **context,
		       enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		came(arg, connection, context);
	else if (*context)
		went(*context);
}
