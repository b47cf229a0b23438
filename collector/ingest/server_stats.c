/* SPDX-License-Identifier: BSD-3-Clause */
/* server_stats.c - the server's log lines, notes in the journal, and numbers. */
#include "collector/ingest/server_conn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"

static const char *const reason_id[] = {
#define REASON(id, text) #id,
	SERVER_REASONS
#undef REASON
};

void server_log(struct server *server, enum server_reason reason, const char *peer,
		const char *detail)
{
	int64_t now = loop_now_ms(server->config.loop);
	char more[64] = "";

	if (now < server->log[reason].next_ms) {
		server->log[reason].silent++;
		return;
	}
	if (server->log[reason].silent)
		snprintf(more, sizeof(more), " (and %" PRIu64 " before)",
			 server->log[reason].silent);
	log_line("collect: dropped %s: %s%s", peer, detail, more);
	server->log[reason].silent = 0;
	server->log[reason].next_ms = now + server->config.log_ms;
}

uint64_t server_refused_total(const struct server_stats *stats)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < SERVER_REASON_COUNT; i++)
		sum += stats->refused[i];
	return sum;
}

void server_note_refused(struct server *server)
{
	uint64_t total = server_refused_total(&server->stats);
	char text[SERVER_REASON_COUNT * 40];
	size_t used = 0;
	unsigned int i;

	if (total == server->refused_noted)
		return;
	for (i = 0; i < SERVER_REASON_COUNT; i++) {
		if (server->stats.refused[i])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%" PRIu64,
						 used ? " " : "", reason_id[i],
						 server->stats.refused[i]);
	}
	if (!journal_note(server->config.journal, "refused", text))
		server->refused_noted = total;
}

void server_get_stats(const struct server *server, struct server_stats *stats)
{
	*stats = server->stats;
	stats->workers = server->streams.workers.n;
}

void server_each_agent(const struct server *server,
		       void (*fn)(void *arg, const struct server_agent *agent), void *arg)
{
	const struct server_conn *conn;
	struct server_agent agent;

	for (conn = server->conns; conn; conn = conn->next) {
		if (conn->state != CONN_OPEN)
			continue;
		memset(&agent, 0, sizeof(agent));
		agent.peer = conn->peer;
		agent.host = conn->host;
		agent.pid = conn->pid;
		agent.records = conn->records;
		agent.bytes = conn->bytes;
		agent.next = conn->progress->next;
		frame_hex(agent.worker, conn->worker);
		fn(arg, &agent);
	}
}

const char *server_reason_id(enum server_reason reason)
{
	return reason_id[reason];
}
