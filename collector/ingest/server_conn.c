/* SPDX-License-Identifier: BSD-3-Clause */
/* server_conn.c - one agent's connection: its bytes, its limits, its end. */
#include "collector/ingest/server_conn.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"

#define TLS_HANDSHAKE 0x16

static const char *const reason_text[] = {
#define REASON(id, text) text,
	SERVER_REASONS
#undef REASON
};

static void agent_left(struct server_conn *conn)
{
	struct server *server = conn->server;

	server->stats.connected--;
	if (server->config.live)
		live_connection(server->config.live, conn->worker, -1);
}

void server_conn_free(struct server_conn *conn)
{
	struct server *server = conn->server;

	server_acks_forget(conn);
	if (conn->next)
		conn->next->prev = conn->prev;
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		server->conns = conn->next;
	server->conn_count--;
	if (conn->state == CONN_OPEN)
		agent_left(conn);
	if (conn->progress)
		server_streams_leave(&server->streams, conn->progress);
	secure_close(&conn->stream);
	buf_release(&conn->hello);
	buf_release(&conn->in);
	auth_forget(conn, sizeof(*conn));
	free(conn);
}

int server_conn_drop(struct server_conn *conn, enum server_reason reason, const char *detail)
{
	struct server *server = conn->server;

	server->stats.refused[reason]++;
	server_log(server, reason, conn->peer, detail ? detail : reason_text[reason]);
	if (conn->state == CONN_OPEN)
		agent_left(conn);
	conn->state = CONN_ENDING;
	conn->backlog = false;
	conn->frame_ms = 0;
	conn->deadline_ms = loop_now_ms(server->config.loop) + server->config.linger_ms;
	buf_release(&conn->in);
	if (server_send_refuse(conn, detail ? detail : reason_text[reason])) {
		server_conn_free(conn);
		return -1;
	}
	loop_stream_pause(conn->stream.stream, false);
	secure_finish(&conn->stream);
	return -1;
}

/* Whether the token is still to be proved. */
static bool is_stranger(const struct server_conn *conn)
{
	return conn->state == CONN_AUTH || conn->state == CONN_PROOF;
}

/* The maximum stored size of a frame in this state. */
static uint32_t size_limit(const struct server_conn *conn, uint8_t type)
{
	if (is_stranger(conn))
		return SERVER_AUTH_BYTES;
	return conn->state == CONN_HELLO || type == CREMA_FRAME_HELLO ? SERVER_HELLO_BYTES
								      : CREMA_FRAME_STORED_MAX;
}

/* Checks a header before its payload has arrived, so that a claimed size costs no memory. */
static bool too_large(const struct server_conn *conn, const uint8_t *p, size_t n)
{
	struct crema_frame_header head;

	if (n < sizeof(head))
		return false;
	memcpy(&head, p, sizeof(head));
	return le32toh(head.magic) == CREMA_WIRE_MAGIC &&
	       (le32toh(head.stored_bytes) > size_limit(conn, head.type) ||
		le32toh(head.raw_bytes) >
			(is_stranger(conn) ? SERVER_AUTH_BYTES : CREMA_FRAME_RAW_MAX));
}

static void stop_reading(struct server_conn *conn)
{
	conn->backlog = true;
	loop_stream_pause(conn->stream.stream, true);
	server_want_retry(conn->server, journal_is_stuck(conn->server->config.journal)
						? conn->server->config.retry_ms
						: 0);
}

/* Always -1. */
static int bad_bytes(struct server_conn *conn, const uint8_t *p, int error)
{
	if (error == -EPROTONOSUPPORT)
		return server_conn_drop(conn, SERVER_bad_version, NULL);
	if (error == -EMSGSIZE)
		return server_conn_drop(conn, SERVER_too_large, NULL);
	if (error == -ENOMEM)
		return server_conn_drop(conn, SERVER_no_memory, NULL);
	if (conn->state == CONN_AUTH && *p == TLS_HANDSHAKE)
		return server_conn_drop(conn, SERVER_bad_tls,
					"it speaks TLS, and no certificate is set up here: see "
					"--tls-cert, or CREMA_TLS=off in its environment");
	return server_conn_drop(conn, SERVER_bad_frame, NULL);
}

/* Opens a sealed record and sets `whole` to its frame. Returns as next_frame(). */
static ssize_t open_sealed(struct server_conn *conn, struct frame *frame, const uint8_t **whole,
			   const uint8_t *p, size_t n)
{
	struct buf *opened = &conn->server->opened;
	ssize_t got = seal_open(&conn->seal_in, opened, p, n,
				FRAME_HEAD_BYTES + size_limit(conn, CREMA_FRAME_DATA));

	if (got == -EBADMSG)
		return server_conn_drop(conn, conn->proved ? SERVER_bad_seal : SERVER_bad_token,
					NULL);
	if (got < 0)
		return got == -EAGAIN ? got : bad_bytes(conn, p, (int)got);
	conn->proved = true;
	*whole = opened->data;
	if (too_large(conn, opened->data, opened->len))
		return server_conn_drop(conn, SERVER_too_large, NULL);
	if (frame_decode(frame, opened->data, opened->len) != (ssize_t)opened->len)
		return server_conn_drop(conn, SERVER_bad_frame, NULL);
	return got;
}

/*
 * The frame that begins at p, verbatim at *whole. Returns the bytes that it takes there; -EAGAIN:
 * incomplete; -1.
 */
static ssize_t next_frame(struct server_conn *conn, struct frame *frame, const uint8_t **whole,
			  const uint8_t *p, size_t n)
{
	uint32_t magic = 0;
	ssize_t got;

	if (conn->seal_in.cipher) {
		if (n < sizeof(magic))
			return -EAGAIN;
		memcpy(&magic, p, sizeof(magic));
		/* No record is that long: it came from an agent without our token. */
		if (conn->proved || le32toh(magic) != CREMA_WIRE_MAGIC)
			return open_sealed(conn, frame, whole, p, n);
	}
	if (too_large(conn, p, n))
		return server_conn_drop(conn, SERVER_too_large, NULL);
	got = frame_decode(frame, p, n);
	*whole = p;
	return got < 0 && got != -EAGAIN ? bad_bytes(conn, p, (int)got) : got;
}

/* Processes whole frames at p. Bytes used or -1. */
static ssize_t consume(struct server_conn *conn, const uint8_t *p, size_t n)
{
	struct frame frame;
	const uint8_t *whole = NULL;
	size_t used = 0;
	ssize_t got;
	int err;

	if (conn->round != conn->server->round) {
		conn->round = conn->server->round;
		conn->spent = 0;
	}
	while (used < n) {
		if (conn->spent >= SERVER_ROUND_BYTES) {
			stop_reading(conn);
			break;
		}
		got = next_frame(conn, &frame, &whole, p + used, n - used);
		if (got == -EAGAIN)
			break;
		if (got < 0)
			return -1;
		err = server_frame(conn, &frame, whole, FRAME_HEAD_BYTES + frame.head.stored_bytes);
		if (err == -EAGAIN) {
			stop_reading(conn);
			break;
		}
		if (err)
			return -1;
		used += (size_t)got;
		if (conn->proved)
			seal_next(&conn->seal_in);
	}
	if (used == n || conn->backlog)
		conn->frame_ms = 0;
	else if (used || !conn->frame_ms)
		conn->frame_ms = loop_now_ms(conn->server->config.loop);
	return (ssize_t)used;
}

int server_conn_resume(struct server_conn *conn)
{
	ssize_t used;

	conn->backlog = false;
	used = consume(conn, conn->in.data, conn->in.len);
	if (used < 0)
		return -1;
	buf_consume(&conn->in, (size_t)used);
	if (!conn->in.len)
		buf_release(&conn->in);
	if (!conn->backlog)
		loop_stream_pause(conn->stream.stream, false);
	return 0;
}

/* 0, or -1: the peer was dropped and may be freed. */
static int on_plain(void *arg, const uint8_t *data, size_t len)
{
	struct server_conn *conn = arg;
	bool fresh = !conn->in.len;
	ssize_t used = 0;

	if (conn->state == CONN_ENDING)
		return 0;
	if (fresh) {
		used = consume(conn, data, len);
		if (used < 0)
			return -1;
	}
	if ((size_t)used < len && buf_add(&conn->in, data + used, len - (size_t)used))
		return server_conn_drop(conn, SERVER_no_memory, NULL);
	return fresh ? 0 : server_conn_resume(conn);
}

static void on_bytes(void *arg, const uint8_t *data, size_t len)
{
	struct server_conn *conn = arg;
	char why[256];

	switch (secure_receive(&conn->stream, data, len, on_plain, conn)) {
	case -EPROTO:
		if (conn->state == CONN_ENDING)
			break;
		snprintf(why, sizeof(why), "%s", tls_why(conn->stream.tls));
		server_conn_drop(conn, SERVER_bad_tls, why);
		break;
	case -ENOBUFS:
		server_conn_drop(conn, SERVER_not_reading, NULL);
		break;
	case -ENOMEM:
		server_conn_drop(conn, SERVER_no_memory, NULL);
	}
}

static void on_closed(void *arg, int error)
{
	struct server_conn *conn = arg;
	struct server *server = conn->server;

	conn->stream.stream = NULL;
	(void)error;
	if (conn->state != CONN_ENDING && conn->in.len && !conn->backlog) {
		server->stats.refused[SERVER_cut]++;
		server_log(server, SERVER_cut, conn->peer, reason_text[SERVER_cut]);
	}
	server_conn_free(conn);
}

const struct loop_stream_ops server_conn_ops = {.bytes = on_bytes, .closed = on_closed};
