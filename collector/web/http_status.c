/* SPDX-License-Identifier: BSD-3-Clause */
/* http_status.c - the numbers of server and journal as JSON. */
#include "collector/web/http_status.h"

#include "collector/emit/emit_json.h"
#include "common/clock.h"
#include "common/log.h"
#include "version.h"

static struct value error_text(int error)
{
	return value_text(error ? log_error(error) : NULL);
}

static struct value text_or_null(const char *text)
{
	return value_text(*text ? text : NULL);
}

static struct value bound(uint64_t value)
{
	return value ? value_uint(value) : value_null();
}

static void put_agent(void *arg, const struct server_agent *agent)
{
	struct json *j = arg;

	emit_object(j, NULL);
	emit_value(j, "worker", value_text(agent->worker));
	emit_value(j, "peer", value_text(agent->peer));
	emit_value(j, "host", text_or_null(agent->host));
	emit_value(j, "pid", value_uint(agent->pid));
	emit_value(j, "records", value_uint(agent->records));
	emit_value(j, "bytes", value_uint(agent->bytes));
	emit_value(j, "next", value_uint(agent->next));
	emit_end(j);
}

static void put_journal(struct json *j, struct journal *journal, const struct retain *retain,
			const char *dir)
{
	struct retain_result kept;
	struct retain_config bounds;
	struct journal_stats stats;

	journal_get_stats(journal, &stats);
	retain_get(retain, &kept, &bounds);
	emit_object(j, "journal");
	emit_value(j, "state", value_text(stats.error ? "stuck" : "ok"));
	emit_value(j, "error", error_text(stats.error));
	emit_value(j, "sync_error", error_text(stats.sync_error));
	emit_value(j, "dir", value_text(dir));
	emit_value(j, "segments", value_uint(stats.segments));
	emit_value(j, "frames", value_uint(stats.frames));
	emit_value(j, "bytes", value_uint(stats.bytes));
	emit_value(j, "queued_bytes", value_uint(stats.queued_bytes));
	emit_value(j, "keep_seconds", value_seconds(bound(bounds.keep_ns)));
	emit_value(j, "max_bytes", bound(bounds.max_bytes));
	emit_value(j, "over", text_or_null(kept.over));
	emit_value(j, "writes_by", value_text(stats.ring ? "io_uring" : "pwrite"));
	emit_value(j, "failures", value_uint(stats.failures));
	emit_value(j, "syncs", value_uint(stats.syncs));
	emit_value(j, "unsynced_bytes", value_uint(stats.unsynced_bytes));
	emit_value(j, "slowest_sync_seconds", value_seconds(value_uint(stats.slowest_sync_ns)));
	emit_end(j);
}

static void put_refused(struct json *j, const struct server_stats *stats)
{
	unsigned int i;

	emit_object(j, "refused");
	for (i = 0; i < SERVER_REASON_COUNT; i++)
		emit_value(j, server_reason_id(i), value_uint(stats->refused[i]));
	emit_end(j);
	emit_value(j, "refused_total", value_uint(server_refused_total(stats)));
}

void http_status(const struct server *server, struct journal *journal, const struct retain *retain,
		 const char *dir, uint64_t started_mono_ns, struct buf *out)
{
	struct sink sink = {.out = out};
	struct server_stats stats;
	struct json json, *j = &json;

	server_get_stats(server, &stats);
	emit_init(j, &sink);
	emit_object(j, NULL);
	emit_value(j, "version", value_text(CREMA_VERSION));
	emit_value(j, "uptime_seconds",
		   value_seconds(value_uint(clock_mono_ns() - started_mono_ns)));
	emit_value(j, "workers_connected", value_uint(stats.connected));
	emit_value(j, "workers_seen", value_uint(stats.workers));
	emit_value(j, "connections", value_uint(stats.connections));
	emit_value(j, "frames", value_uint(stats.frames));
	emit_value(j, "records", value_uint(stats.records));
	emit_value(j, "bytes", value_uint(stats.bytes));
	emit_value(j, "duplicate_records", value_uint(stats.duplicate_records));
	emit_value(j, "missing_records", value_uint(stats.missing_records));
	put_refused(j, &stats);
	put_journal(j, journal, retain, dir);
	emit_array(j, "agents");
	server_each_agent(server, put_agent, j);
	emit_end(j);
	emit_end(j);
	if (sink.error)
		out->error = sink.error;
}
