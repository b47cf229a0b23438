/* SPDX-License-Identifier: BSD-3-Clause */
/* http_status.h - the collector's state as JSON. */
#ifndef CREMA_COLLECTOR_WEB_HTTP_STATUS_H
#define CREMA_COLLECTOR_WEB_HTTP_STATUS_H

#include "collector/ingest/server.h"
#include "collector/journal/journal.h"
#include "collector/retain/retain.h"

/*
 * Appends {"version", "uptime_seconds", "workers_connected", "workers_seen", "connections",
 * "frames", "records", "bytes", "duplicate_records", "missing_records", "refused": {reason: count},
 * "refused_total", "journal": {"state": "ok"|"stuck", "error", "sync_error", "unsynced_bytes":
 * acknowledged, but possibly not on disk, "dir", "over": why it is larger than --max-bytes, ...},
 * "agents": [...]}.
 */
void http_status(const struct server *server, struct journal *journal, const struct retain *retain,
		 const char *dir, uint64_t started_mono_ns, struct buf *out);

#endif
