/* SPDX-License-Identifier: BSD-3-Clause */
/* http_metrics_state.c - the cluster's state now, and the collector's own health. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "collector/web/http_metrics_parts.h"
#include "common/clock.h"
#include "version.h"

/* Unknown: no series. */
static void put_gauge(struct sink *s, const char *name, const char *help, double value)
{
	metric_head(s, name, "gauge", help);
	if (!isnan(value))
		sink_sample(s, name, value);
}

static void put_state(struct sink *s, const char *name, const char *label, const char *state,
		      double value)
{
	char series[160];

	if (isnan(value))
		return;
	snprintf(series, sizeof(series), "%s{%s=\"%s\"}", name, label, state);
	sink_sample(s, series, value);
}

void metrics_cluster(struct sink *s, const struct live_cluster *c)
{
	metric_head(s, "crema_workers", "gauge",
		    "workers without a goodbye: connected (a message in the last 10 s), silent, or "
		    "silent for 10 minutes");
	put_state(s, "crema_workers", "state", "connected", (double)c->connected);
	put_state(s, "crema_workers", "state", "silent", (double)c->silent);
	put_state(s, "crema_workers", "state", "lost", (double)c->lost);
	metric_head(s, "crema_workers_gone_total", "counter", "workers that ended, by how");
	put_state(s, "crema_workers_gone_total", "how", "exit", (double)c->gone_ended);
	put_state(s, "crema_workers_gone_total", "how", "killed", (double)c->gone_killed);
	metric_uint(s, "crema_workers_seen_total", "counter",
		    "worker processes that ever sent a message", c->workers_seen);
	put_gauge(s, "crema_worker_threads", "task threads of connected workers", c->threads);
	put_gauge(s, "crema_tasks_running", "tasks that run on connected workers", c->running);
	metric_head(s, "crema_dask_tasks", "gauge",
		    "tasks that Dask holds on connected workers; excludes those queued in the "
		    "scheduler");
	put_state(s, "crema_dask_tasks", "state", "executing", c->executing);
	put_state(s, "crema_dask_tasks", "state", "ready", c->ready);
	put_state(s, "crema_dask_tasks", "state", "long_running", c->long_running);
	put_state(s, "crema_dask_tasks", "state", "fetching", c->fetching);
	put_gauge(s, "crema_worker_memory_bytes", "resident memory of connected workers",
		  c->rss_bytes);
	put_gauge(s, "crema_worker_memory_limit_bytes", "their limits, if they have one",
		  c->limit_bytes);
	put_gauge(s, "crema_worker_memory_managed_bytes", "data that Dask holds in them",
		  c->managed_bytes);
	put_gauge(s, "crema_worker_memory_spilled_bytes", "data that Dask has spilled to disk",
		  c->spilled_bytes);
	put_gauge(s, "crema_worker_memory_largest_ratio",
		  "resident memory / limit of the worker that is closest to its limit",
		  c->largest_ratio);
	put_gauge(s, "crema_workers_near_memory_limit",
		  "connected workers at 80 % of their limit or more", (double)c->near_limit);
	metric_uint(s, "crema_workers_with_notes", "gauge",
		    "workers, including ended ones, on which something could not be measured",
		    c->with_notes);
	metric_uint(s, "crema_records_lost_at_least_total", "counter",
		    "sequence numbers missing from workers' streams; a worker that went silent may "
		    "have lost more",
		    c->records_lost);
	metric_head(s, "crema_records_lost_total", "counter",
		    "the same, absent while a worker is silent or lost");
	if (!c->silent && !c->lost)
		sink_sample(s, "crema_records_lost_total", (double)c->records_lost);
	metric_uint(s, "crema_records_bad_total", "counter", "records that could not be understood",
		    c->records_bad);
}

void metrics_doing(struct sink *s, enum live_doing doing, const struct live_cluster *c,
		   double longest_call)
{
	int i;

	metric_head(
		s, "crema_state", "gauge",
		"1 for one of: idle; running; stalled (tasks are pending and none starts or ends)");
	for (i = 0; i < LIVE_DOINGS; i++)
		put_state(s, "crema_state", "state", live_doing_name(i),
			  doing == (enum live_doing)i);
	put_gauge(s, "crema_workers_paused", "connected workers that Dask has paused",
		  (double)c->paused);
	put_gauge(s, "crema_tasks_quiet_seconds",
		  "since a task began or ended, or the collector started",
		  doing == LIVE_IDLE ? (double)NAN : c->quiet_seconds);
	put_gauge(s, "crema_longest_call_seconds",
		  "longest time that a task's thread has been in one call, on connected workers: "
		  "'crema stuck' names it",
		  longest_call);
}

void metrics_progress(struct sink *s, const struct live_progress *p)
{
	put_gauge(s, "crema_progress_expected",
		  "chunks, or tasks if no chunk is left, of the unfinished work, as Dask's "
		  "scheduler counts them",
		  p->known ? p->total : (double)NAN);
	put_gauge(s, "crema_progress_done", "how many of them have ended",
		  p->known ? p->done : (double)NAN);
	put_gauge(s, "crema_progress_seconds_left", "until all have ended, at the latest rate",
		  p->seconds_left);
}

/* The collector */

static void put_agents(struct sink *s, const struct server *server)
{
	struct server_stats stats;
	unsigned int i;

	server_get_stats(server, &stats);
	metric_uint(s, "crema_collector_connections_total", "counter", "connections accepted",
		    stats.connections);
	metric_uint(s, "crema_collector_agents_connected", "gauge", "agents past the handshake",
		    stats.connected);
	metric_uint(s, "crema_collector_frames_total", "counter", "frames of records journaled",
		    stats.frames);
	metric_uint(s, "crema_collector_records_total", "counter", "records journaled",
		    stats.records);
	metric_uint(s, "crema_collector_received_bytes_total", "counter",
		    "bytes of these frames as received", stats.bytes);
	metric_uint(s, "crema_collector_duplicate_records_total", "counter",
		    "records that arrived again and were dropped", stats.duplicate_records);
	metric_head(s, "crema_collector_refused_total", "counter", "peers dropped, by reason");
	for (i = 0; i < SERVER_REASON_COUNT; i++)
		sink_printf(s, "crema_collector_refused_total{reason=\"%s\"} %" PRIu64 "\n",
			    server_reason_id(i), stats.refused[i]);
}

static void put_journal(struct sink *s, struct journal *journal, const char *dir)
{
	struct journal_stats stats;
	struct statvfs fs;

	journal_get_stats(journal, &stats);
	metric_uint(s, "crema_journal_written_bytes_total", "counter",
		    "bytes written by this collector", stats.bytes);
	metric_uint(s, "crema_journal_segments_total", "counter",
		    "segments begun by this collector", stats.segments);
	metric_uint(s, "crema_journal_write_failures_total", "counter",
		    "times that writing started to fail", stats.failures);
	metric_uint(s, "crema_journal_syncs_total", "counter", "fdatasync calls", stats.syncs);
	metric_uint(s, "crema_journal_queued_bytes", "gauge", "bytes waiting to be written",
		    stats.queued_bytes);
	metric_uint(s, "crema_journal_stuck", "gauge",
		    "1: the journal cannot be written, and nothing is acknowledged",
		    stats.error != 0);
	metric_uint(s, "crema_journal_sync_failed", "gauge", "1: the latest fdatasync failed",
		    stats.sync_error != 0);
	metric_uint(s, "crema_journal_unsynced_bytes_total", "counter",
		    "acknowledged bytes whose fdatasync failed: they may be lost",
		    stats.unsynced_bytes);
	put_gauge(s, "crema_journal_slowest_sync_seconds", "the slowest fdatasync",
		  (double)stats.slowest_sync_ns / 1e9);
	put_gauge(s, "crema_journal_size_bytes", "all segments in the directory",
		  (double)stats.size_bytes);
	put_gauge(s, "crema_journal_free_bytes", "room on its file system",
		  statvfs(dir, &fs) ? (double)NAN : (double)fs.f_bavail * (double)fs.f_frsize);
}

static double resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;
	double bytes = (double)NAN;

	if (file && fscanf(file, "%*s %lu", &pages) == 1)
		bytes = (double)pages * (double)sysconf(_SC_PAGESIZE);
	if (file)
		fclose(file);
	return bytes;
}

void metrics_collector(struct sink *s, const struct http_metrics *from)
{
	struct rusage used;

	metric_head(s, "crema_build_info", "gauge", "1, with the collector's version");
	sink_puts(s, "crema_build_info{version=\"");
	metric_label(s, CREMA_VERSION);
	sink_puts(s, "\"} 1\n");
	put_gauge(s, "crema_collector_start_time_seconds", "when the collector started, UTC",
		  (double)from->started_real_ns / 1e9);
	getrusage(RUSAGE_SELF, &used);
	metric_head(s, "crema_collector_cpu_seconds_total", "counter", "CPU of the collector");
	sink_printf(s, "crema_collector_cpu_seconds_total %.6f\n",
		    (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
	put_gauge(s, "crema_collector_resident_memory_bytes", "resident memory of the collector",
		  resident_bytes());
	put_agents(s, from->server);
	put_journal(s, from->journal, from->journal_dir);
}
