/* SPDX-License-Identifier: BSD-3-Clause */
/* http_status.c - the numbers of server and journal as JSON. */
#include "collector/serve/http_status.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "version.h"

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *error_text(int error)
{
	return error ? json_string(log_error(error)) : json_null();
}

static void add_agent(void *arg, const struct server_agent *agent)
{
	json_t *object = json_object();
	json_t *host = json_string(agent->host); /* NULL if an agent sent no UTF-8 */

	json_object_set_new(object, "worker", json_string(agent->worker));
	json_object_set_new(object, "peer", json_string(agent->peer));
	json_object_set_new(object, "host", host && agent->host[0] ? host : json_null());
	if (host && !agent->host[0])
		json_decref(host);
	set(object, "pid", agent->pid);
	set(object, "records", agent->records);
	set(object, "bytes", agent->bytes);
	set(object, "next", agent->next);
	json_array_append_new(arg, object);
}

static json_t *journal_json(struct journal *journal, const struct retain *retain, const char *dir)
{
	struct retain_result kept;
	struct retain_config bounds;
	json_t *object = json_object();
	struct journal_stats stats;

	journal_get_stats(journal, &stats);
	json_object_set_new(object, "state", json_string(stats.error ? "stuck" : "ok"));
	json_object_set_new(object, "error", error_text(stats.error));
	json_object_set_new(object, "sync_error", error_text(stats.sync_error));
	json_object_set_new(object, "dir", json_string(dir));
	set(object, "segments", stats.segments);
	set(object, "frames", stats.frames);
	set(object, "bytes", stats.bytes);
	set(object, "queued_bytes", stats.queued_bytes);
	retain_get(retain, &kept, &bounds);
	json_object_set_new(object, "keep_seconds",
			    bounds.keep_ns ? json_real((double)bounds.keep_ns / 1e9) : json_null());
	json_object_set_new(object, "max_bytes",
			    bounds.max_bytes ? json_integer((json_int_t)bounds.max_bytes)
					     : json_null());
	json_object_set_new(object, "over", *kept.over ? json_string(kept.over) : json_null());
	json_object_set_new(object, "writes_by", json_string(stats.ring ? "io_uring" : "pwrite"));
	set(object, "failures", stats.failures);
	set(object, "syncs", stats.syncs);
	set(object, "unsynced_bytes", stats.unsynced_bytes);
	json_object_set_new(object, "slowest_sync_seconds",
			    json_real((double)stats.slowest_sync_ns / 1e9));
	return object;
}

void http_status(const struct server *server, struct journal *journal, const struct retain *retain,
		 const char *dir, uint64_t started_mono_ns, struct buf *out)
{
	json_t *root = json_object(), *refused = json_object(), *agents = json_array();
	struct server_stats stats;
	unsigned int i;
	char *text;

	server_get_stats(server, &stats);
	json_object_set_new(root, "version", json_string(CREMA_VERSION));
	json_object_set_new(root, "uptime_seconds",
			    json_real((double)(clock_mono_ns() - started_mono_ns) / 1e9));
	set(root, "workers_connected", stats.connected);
	set(root, "workers_seen", stats.workers);
	set(root, "connections", stats.connections);
	set(root, "frames", stats.frames);
	set(root, "records", stats.records);
	set(root, "bytes", stats.bytes);
	set(root, "duplicate_records", stats.duplicate_records);
	set(root, "missing_records", stats.missing_records);
	for (i = 0; i < SERVER_REASON_COUNT; i++)
		set(refused, server_reason_id(i), stats.refused[i]);
	json_object_set_new(root, "refused", refused);
	set(root, "refused_total", server_refused_total(&stats));
	json_object_set_new(root, "journal", journal_json(journal, retain, dir));
	server_each_agent(server, add_agent, agents);
	json_object_set_new(root, "agents", agents);
	text = json_dumps(root, JSON_INDENT(1));
	if (text) {
		buf_add(out, text, strlen(text));
		buf_add(out, "\n", 1);
	}
	free(text);
	json_decref(root);
}
