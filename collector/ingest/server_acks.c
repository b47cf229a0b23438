/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_acks.c - acknowledges exactly what the journal has written.
 *
 * Records journaled in this round are "pending". At the round's end they get a ticket, the number
 * of bytes that the journal has taken so far, and are "writing" until the journal has written that
 * many. Records that become pending meanwhile wait for the next ticket. A journal that writes at
 * once settles all in the same round; one that uses the ring does so a round or more later.
 */
#include "collector/ingest/server_conn.h"

void server_acks_advance(struct server *server, struct server_progress *progress, uint64_t next)
{
	progress->next = next;
	if (progress->is_pending)
		return;
	progress->is_pending = true;
	progress->next_pending = server->acks.pending.progress;
	server->acks.pending.progress = progress;
}

void server_acks_want(struct server_conn *conn)
{
	if (conn->is_pending)
		return;
	conn->is_pending = true;
	conn->next_pending = conn->server->acks.pending.conns;
	conn->server->acks.pending.conns = conn;
}

void server_acks_forget(struct server_conn *conn)
{
	struct server_acks *acks = &conn->server->acks;
	struct server_conn **p;

	for (p = &acks->pending.conns; conn->is_pending && *p; p = &(*p)->next_pending) {
		if (*p != conn)
			continue;
		*p = conn->next_pending;
		break;
	}
	for (p = &acks->writing.conns; conn->is_writing && *p; p = &(*p)->next_writing) {
		if (*p != conn)
			continue;
		*p = conn->next_writing;
		break;
	}
	conn->is_pending = conn->is_writing = false;
}

static void issue_ticket(struct server *server)
{
	struct server_acks *acks = &server->acks;
	struct server_progress *progress;
	struct server_conn *conn;

	while ((progress = acks->pending.progress)) {
		acks->pending.progress = progress->next_pending;
		progress->is_pending = false;
		progress->writing = progress->next;
		progress->next_writing = acks->writing.progress;
		acks->writing.progress = progress;
	}
	while ((conn = acks->pending.conns)) {
		acks->pending.conns = conn->next_pending;
		conn->is_pending = false;
		conn->is_writing = true;
		conn->next_writing = acks->writing.conns;
		acks->writing.conns = conn;
	}
	acks->ticket = journal_taken(server->config.journal);
	acks->any_writing = true;
}

static void release_written(struct server *server)
{
	struct server_acks *acks = &server->acks;
	struct server_progress *progress;
	struct server_conn *conn;

	acks->any_writing = false;
	while ((progress = acks->writing.progress)) {
		acks->writing.progress = progress->next_writing;
		progress->written = progress->writing;
	}
	while ((conn = acks->writing.conns)) {
		acks->writing.conns = conn->next_writing;
		conn->is_writing = false;
		if (conn->state == CONN_OPEN)
			server_send_ack(conn);
	}
}

void server_acks_settle(struct server *server)
{
	struct server_acks *acks = &server->acks;

	for (;;) {
		if (acks->any_writing && journal_written(server->config.journal) >= acks->ticket)
			release_written(server);
		if (acks->any_writing || (!acks->pending.progress && !acks->pending.conns))
			break;
		issue_ticket(server);
	}
}
