/* SPDX-License-Identifier: BSD-3-Clause */
/* server.c - accepts agents; rounds, timers and statistics. */
#include "collector/ingest/server_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "ids.h"

#define NOTE_MS 10000
#define DRAIN_MS 20
#define REST_BYTES (256u << 10) /* if a round has more, more frames are waiting */

/* Rounds */

static void round_end(void *arg)
{
	struct server *server = arg;
	struct journal *journal = server->config.journal;

	server->round++;
	if (!journal_is_stuck(journal))
		journal_flush(journal);
	server_acks_settle(server);
	if (journal_is_stuck(journal))
		server_want_retry(server, server->config.retry_ms);
	/* Waking up and writing for each frame would cost as much as its records. */
	if (server->round_bytes && server->round_bytes < REST_BYTES)
		loop_rest(server->config.loop, SERVER_REST_NS);
	server->round_bytes = 0;
}

void server_want_retry(struct server *server, int64_t ms)
{
	if (server->retry_set && ms)
		return;
	server->retry_set = true;
	loop_timer_set(server->retry, ms);
}

static void on_retry(void *arg)
{
	struct server *server = arg;
	struct server_conn *conn, *next;

	server->retry_set = false;
	if (journal_is_stuck(server->config.journal) && journal_flush(server->config.journal)) {
		server_want_retry(server, server->config.retry_ms);
		return;
	}
	for (conn = server->conns; conn; conn = next) {
		next = conn->next;
		if (conn->backlog)
			server_conn_resume(conn);
	}
}

static void on_sweep(void *arg)
{
	struct server *server = arg;
	struct server_conn *conn, *next;
	int64_t now = loop_now_ms(server->config.loop);

	loop_timer_set(server->sweep, server->config.sweep_ms);
	server_calibration_check(server, false);
	for (conn = server->conns; conn; conn = next) {
		next = conn->next;
		if (conn->state == CONN_ENDING && now >= conn->deadline_ms)
			server_conn_free(conn);
		else if (conn->deadline_ms && now >= conn->deadline_ms)
			server_conn_drop(conn, SERVER_too_slow, "no handshake in time");
		else if (conn->frame_ms && now - conn->frame_ms >= server->config.frame_ms)
			server_conn_drop(conn, SERVER_too_slow, "an unfinished frame");
	}
	if (now >= server->note_ms) {
		server->note_ms = now + NOTE_MS;
		server_note_refused(server);
	}
}

/* Accepting */

static void peer_name(int fd, char *out, size_t size)
{
	struct sockaddr_storage address = {0};
	socklen_t len = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "";

	snprintf(out, size, "a local peer");
	if (getpeername(fd, (struct sockaddr *)&address, &len))
		return;
	if (address.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&address;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(out, size, "%s:%u", host, ntohs(in->sin_port));
	} else if (address.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&address;

		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof(host));
		snprintf(out, size, "[%s]:%u", host, ntohs(in->sin6_port));
	}
}

/* Detects a peer whose host died silently within about two minutes. */
static void set_socket(int fd)
{
	int on = 1, idle = 60, interval = 15, tries = 4;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

/* At the limit, drops the peer that has waited longest without proving the token. */
static bool make_room(struct server *server)
{
	struct server_conn *conn, *oldest = NULL;

	if (server->conn_count < server->config.max_connections)
		return true;
	for (conn = server->conns; conn; conn = conn->next) {
		if (conn->state != CONN_OPEN)
			oldest = conn;
	}
	server->stats.refused[SERVER_too_many]++;
	server_log(server, SERVER_too_many, oldest ? oldest->peer : "a new peer",
		   "too many connections");
	if (!oldest)
		return false;
	server_conn_free(oldest);
	return true;
}

void server_accept(void *arg, int fd)
{
	struct server *server = arg;
	struct server_conn *conn = NULL;

	server->stats.connections++;
	if (make_room(server))
		conn = calloc(1, sizeof(*conn));
	if (!conn || auth_random(conn->nonce, sizeof(conn->nonce)))
		goto out;
	peer_name(fd, conn->peer, sizeof(conn->peer));
	set_socket(fd);
	if (server->config.tls)
		conn->stream.tls = tls_new(server->config.tls, NULL);
	if (!server->config.tls || conn->stream.tls)
		conn->stream.stream =
			loop_stream_new(server->config.loop, fd, &server_conn_ops, conn);
	if (!conn->stream.stream)
		goto out;
	conn->server = server;
	conn->deadline_ms = loop_now_ms(server->config.loop) + server->config.handshake_ms;
	conn->next = server->conns;
	if (conn->next)
		conn->next->prev = conn;
	server->conns = conn;
	server->conn_count++;
	server_send_challenge(conn);
	return;
out:
	if (conn)
		tls_free(conn->stream.tls);
	free(conn);
	close(fd);
}

/* The whole */

static void default_to(int64_t *value, int64_t fallback)
{
	if (!*value)
		*value = fallback;
}

struct server *server_new(const struct server_config *config)
{
	struct server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->config = *config;
	if (!server->config.max_connections)
		server->config.max_connections = SERVER_CONNECTIONS;
	default_to(&server->config.handshake_ms, SERVER_HANDSHAKE_MS);
	default_to(&server->config.frame_ms, SERVER_FRAME_MS);
	default_to(&server->config.linger_ms, SERVER_LINGER_MS);
	default_to(&server->config.log_ms, SERVER_LOG_MS);
	default_to(&server->config.retry_ms, SERVER_RETRY_MS);
	default_to(&server->config.sweep_ms, SERVER_SWEEP_MS);
	server->sweep = loop_timer_new(config->loop, on_sweep, server);
	server->retry = loop_timer_new(config->loop, on_retry, server);
	server->cipher = seal_cipher_new();
	if (!server->sweep || !server->retry || !server->cipher) {
		seal_cipher_free(server->cipher);
		loop_timer_free(server->sweep);
		loop_timer_free(server->retry);
		free(server);
		return NULL;
	}
	server->note_ms = loop_now_ms(config->loop) + NOTE_MS;
	server_calibration_check(server, true);
	loop_timer_set(server->sweep, server->config.sweep_ms);
	loop_set_round_end(config->loop, round_end, server);
	return server;
}

void server_free(struct server *server)
{
	if (!server)
		return;
	while (server->conns)
		server_conn_free(server->conns);
	journal_heads(server->config.journal, NULL, NULL, 0, 0);
	loop_set_round_end(server->config.loop, NULL, NULL);
	loop_timer_free(server->sweep);
	loop_timer_free(server->retry);
	server_streams_release(&server->streams);
	server_calibration_release(&server->calibration);
	buf_release(&server->scratch);
	buf_release(&server->out);
	buf_release(&server->starts);
	buf_release(&server->sealed);
	buf_release(&server->opened);
	seal_cipher_free(server->cipher);
	free(server);
}

void server_drain(struct server *server, int64_t max_ms)
{
	int64_t end = loop_now_ms(server->config.loop) + max_ms;
	uint64_t before;

	do {
		before = server->stats.records + server->stats.duplicate_records;
		if (loop_turn(server->config.loop, DRAIN_MS))
			return;
	} while ((server->acks.any_writing ||
		  server->stats.records + server->stats.duplicate_records != before) &&
		 loop_now_ms(server->config.loop) < end);
}
