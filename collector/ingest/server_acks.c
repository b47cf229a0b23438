/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_acks.c - acknowledges what the journal has written, and nothing else.
 *
 * What was journaled in this round is "fresh". At the round's end it is given a ticket, the number
 * of bytes that the journal has taken so far, and is "leaving" until the journal has written that
 * many; what becomes fresh meanwhile waits for the next ticket. A journal that writes at once
 * settles all in the same round; one that writes in the ring does so a round or more later.
 */
#include "collector/ingest/server_conn.h"

void server_acks_advance(struct server *server, struct server_progress *progress, uint64_t next)
{
	progress->next = next;
	if (progress->is_fresh)
		return;
	progress->is_fresh = true;
	progress->next_fresh = server->acks.fresh.progress;
	server->acks.fresh.progress = progress;
}

void server_acks_want(struct server_conn *conn)
{
	if (conn->is_fresh)
		return;
	conn->is_fresh = true;
	conn->next_fresh = conn->server->acks.fresh.conns;
	conn->server->acks.fresh.conns = conn;
}

void server_acks_forget(struct server_conn *conn)
{
	struct server_acks *acks = &conn->server->acks;
	struct server_conn **p;

	for (p = &acks->fresh.conns; conn->is_fresh && *p; p = &(*p)->next_fresh) {
		if (*p != conn)
			continue;
		*p = conn->next_fresh;
		break;
	}
	for (p = &acks->leaving.conns; conn->is_leaving && *p; p = &(*p)->next_leaving) {
		if (*p != conn)
			continue;
		*p = conn->next_leaving;
		break;
	}
	conn->is_fresh = conn->is_leaving = false;
}

static void depart(struct server *server)
{
	struct server_acks *acks = &server->acks;
	struct server_progress *progress;
	struct server_conn *conn;

	while ((progress = acks->fresh.progress)) {
		acks->fresh.progress = progress->next_fresh;
		progress->is_fresh = false;
		progress->leaving = progress->next;
		progress->next_leaving = acks->leaving.progress;
		acks->leaving.progress = progress;
	}
	while ((conn = acks->fresh.conns)) {
		acks->fresh.conns = conn->next_fresh;
		conn->is_fresh = false;
		conn->is_leaving = true;
		conn->next_leaving = acks->leaving.conns;
		acks->leaving.conns = conn;
	}
	acks->ticket = journal_taken(server->config.journal);
	acks->any_leaving = true;
}

static void arrive(struct server *server)
{
	struct server_acks *acks = &server->acks;
	struct server_progress *progress;
	struct server_conn *conn;

	acks->any_leaving = false;
	while ((progress = acks->leaving.progress)) {
		acks->leaving.progress = progress->next_leaving;
		progress->written = progress->leaving;
	}
	while ((conn = acks->leaving.conns)) {
		acks->leaving.conns = conn->next_leaving;
		conn->is_leaving = false;
		if (conn->state == CONN_OPEN)
			server_send_ack(conn);
	}
}

void server_acks_settle(struct server *server)
{
	struct server_acks *acks = &server->acks;

	for (;;) {
		if (acks->any_leaving && journal_written(server->config.journal) >= acks->ticket)
			arrive(server);
		if (acks->any_leaving || (!acks->fresh.progress && !acks->fresh.conns))
			break;
		depart(server);
	}
}
