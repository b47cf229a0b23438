/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http_metrics.h - the whole cluster for Prometheus, in its text format 0.0.4.
 *
 * Names: crema_, base units, _total on counters only. Labels have few, disjoint values: owner,
 * class, thread, prefix (LIVE_PREFIXES and "other"), status, state, how, reason, value, version;
 * never a file, key, worker, host, process or run. All series of a label exist from the start, at
 * 0; those of a prefix from its first task.
 *
 * Unknown: a total that no worker could count is absent. Otherwise it is the sum over those that
 * could, and crema_workers_incomplete{value=...} is the number of those that could not: 0 means the
 * sum is exact. A page that has read no journal yet has only metrics of its own.
 */
#ifndef CREMA_COLLECTOR_WEB_HTTP_METRICS_H
#define CREMA_COLLECTOR_WEB_HTTP_METRICS_H

#include "collector/emit/emit.h"
#include "collector/ingest/server.h"
#include "collector/journal/journal.h"
#include "collector/live/live.h"
#include "collector/watch/watch.h"

#define HTTP_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct http_metrics {
	struct live *live;
	const struct watch *watch; /* of `crema page`, which has none of the next three; or NULL */
	const struct server *server;
	struct journal *journal;
	const char *journal_dir;
	uint64_t started_real_ns;
	const struct buf
		*run; /* gauges of the last finished run in the same format; may be empty */
};

/* Appends all of it. */
void http_metrics(const struct http_metrics *from, struct buf *out);
/* The part about unfinished work. */
void http_metrics_progress(struct sink *s, const struct live_progress *p);

#endif
