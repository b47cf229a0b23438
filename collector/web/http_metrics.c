/* SPDX-License-Identifier: BSD-3-Clause */
/* http_metrics.c - the cluster's counters and state, and the collector's own health, in the format
 * of Prometheus. */
#include "collector/web/http_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/procfs.h"
#include "common/rows.h"
#include "version.h"

/* Text format */

static void metric_head(struct sink *s, const char *name, const char *type, const char *help)
{
	sink_printf(s, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value, escaped. */
static void metric_label(struct sink *s, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			sink_put(s, "\\", 1);
		if (*text == '\n')
			sink_puts(s, "\\n");
		else
			sink_put(s, text, 1);
	}
}

/* "1.500000000\n" */
static void metric_seconds(struct sink *s, uint64_t ns)
{
	sink_printf(s, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000u, ns % 1000000000u);
}

/* A metric with one series and no labels. */
static void metric_uint(struct sink *s, const char *name, const char *type, const char *help,
			uint64_t value)
{
	metric_head(s, name, type, help);
	sink_printf(s, "%s %" PRIu64 "\n", name, value);
}

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

/* The cluster's state */

static void put_cluster(struct sink *s, const struct live_cluster *c)
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
	metric_head(s, "crema_records_lost_at_least_total", "counter",
		    "records that never arrived: numbers missing from a worker's streams, without "
		    "those that it refused; a worker that went silent may have lost more");
	if (!c->losses_unknown)
		sink_sample(s, "crema_records_lost_at_least_total", (double)c->records_lost);
	metric_head(s, "crema_records_lost_total", "counter",
		    "the same, absent while a worker is silent or lost");
	if (!c->silent && !c->lost && !c->losses_unknown)
		sink_sample(s, "crema_records_lost_total", (double)c->records_lost);
	metric_uint(s, "crema_records_bad_total", "counter", "records that could not be understood",
		    c->records_bad);
}

static void put_doing(struct sink *s, enum live_doing doing, const struct live_cluster *c,
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

void http_metrics_progress(struct sink *s, const struct live_progress *p)
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
	uint64_t bytes;

	return procfs_rss(getpid(), &bytes) ? (double)bytes : (double)NAN;
}

static void put_collector(struct sink *s, const struct http_metrics *from)
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
	if (from->watch) {
		watch_metrics(from->watch, s);
		return;
	}
	put_agents(s, from->server);
	put_journal(s, from->journal, from->journal_dir);
}

/* Counters of the workers */

static bool unseen(const struct live_cluster *c, unsigned int i)
{
	return c->workers_counted && c->without[i] == c->workers_counted;
}

/* labels: "" or {a="b"} */
static void put_value(struct sink *s, const struct live_cluster *c, const char *name,
		      const char *labels, unsigned int i, bool ns)
{
	if (unseen(c, i))
		return;
	sink_printf(s, "%s%s ", name, labels);
	if (ns)
		metric_seconds(s, c->total[i]);
	else
		sink_printf(s, "%" PRIu64 "\n", c->total[i]);
}

/* The amount's public name; true: it is in ns, and exported in seconds. */
static bool amount_name(char *out, size_t size, const struct row_amount *amount)
{
	size_t n = strlen(amount->name);
	bool ns = n > 3 && !strcmp(amount->name + n - 3, "_ns");

	snprintf(out, size, "worker_%s_%.*s%s", amount->part, (int)(ns ? n - 3 : n), amount->name,
		 ns ? "_seconds" : "");
	return ns;
}

static void put_counts(struct sink *s, const struct live_cluster *c)
{
	const struct row_count *count;
	char name[96];
	unsigned int i;

	for (i = 0; i < CREMA_COUNTS; i++) {
		count = &row_counts[i];
		snprintf(name, sizeof(name), "crema_%s_total", count->name);
		metric_head(s, name, "counter", count->help);
		put_value(s, c, name, "{owner=\"task\"}", LIVE_TASK + i, count->ns);
		put_value(s, c, name, "{owner=\"unattributed\"}", LIVE_REST + i, count->ns);
	}
}

static void put_times(struct sink *s, const struct live_cluster *c)
{
	static const char name[] = "crema_task_seconds_total";
	char labels[96];
	unsigned int i;

	metric_head(s, name, "counter",
		    "time that threads spent on tasks, by class: CPU, or what they waited for; "
		    "thread: the task's own or a pool's");
	for (i = 0; i < CREMA_TIMES; i++) {
		snprintf(labels, sizeof(labels), "{class=\"%s\",thread=\"own\"}", row_times[i].id);
		put_value(s, c, name, labels, LIVE_OWN + i, true);
		snprintf(labels, sizeof(labels), "{class=\"%s\",thread=\"pool\"}", row_times[i].id);
		put_value(s, c, name, labels, LIVE_POOL + i, true);
	}
}

/* process: getrusage of the workers; seen: threads that the shim knows; children: ended ones */
static void put_amounts(struct sink *s, const struct live_cluster *c)
{
	char name[112], amount[96];
	unsigned int i;
	bool ns;

	for (i = 0; i < CREMA_TOTALS_AMOUNTS; i++) {
		ns = amount_name(amount, sizeof(amount), &row_amounts[i]);
		snprintf(name, sizeof(name), "crema_%s_total", amount);
		metric_head(s, name, "counter", row_amounts[i].help);
		put_value(s, c, name, "", LIVE_AMOUNT + i, ns);
	}
}

static void put_plain(struct sink *s, const struct live_cluster *c)
{
	char name[96];
	unsigned int i;

	for (i = 0; i < CREMA_TOTALS_NUMBERS; i++) {
		snprintf(name, sizeof(name), "crema_%s_total", row_totals[i].name);
		metric_head(s, name, "counter", row_totals[i].help);
		put_value(s, c, name, "", LIVE_PLAIN + i, false);
	}
}

static void put_one_incomplete(struct sink *s, const struct live_cluster *c, const char *name,
			       unsigned int at)
{
	sink_printf(s, "crema_workers_incomplete{value=\"%s\"} %" PRIu64 "\n", name,
		    c->without[at]);
}

static void put_incomplete(struct sink *s, const struct live_cluster *c)
{
	char name[96];
	unsigned int i;

	metric_head(s, "crema_workers_incomplete", "gauge",
		    "workers, including ended ones, that could not count this value of tasks: the "
		    "total lacks it");
	for (i = 0; i < CREMA_TIMES; i++) {
		snprintf(name, sizeof(name), "%s_seconds", row_times[i].id);
		put_one_incomplete(s, c, name, LIVE_OWN + i);
	}
	for (i = 0; i < CREMA_COUNTS; i++)
		put_one_incomplete(s, c, row_counts[i].name, LIVE_TASK + i);
	for (i = 0; i < CREMA_TOTALS_AMOUNTS; i++) {
		amount_name(name, sizeof(name), &row_amounts[i]);
		put_one_incomplete(s, c, name, LIVE_AMOUNT + i);
	}
}

static void put_prefixes(struct sink *s, const struct live *live)
{
	static const char *const status[LIVE_STATUSES] = {
		[LIVE_OK] = "ok",
		[LIVE_ERRED] = "erred",
		[LIVE_KILLED] = "killed",
		[LIVE_OTHER] = "unknown",
	};
	const struct live_prefix *prefix[LIVE_PREFIXES + 1];
	size_t i, n = live_prefixes(live, prefix);
	unsigned int k;

	metric_head(s, "crema_tasks_total", "counter",
		    "ended attempts whose record has arrived, by Dask's task prefix and how they "
		    "ended");
	for (i = 0; i < n; i++) {
		for (k = 0; k < LIVE_STATUSES; k++) {
			sink_puts(s, "crema_tasks_total{prefix=\"");
			metric_label(s, prefix[i]->name);
			sink_printf(s, "\",status=\"%s\"} %" PRIu64 "\n", status[k],
				    prefix[i]->ended[k]);
		}
	}
	metric_head(s, "crema_task_wall_seconds_total", "counter",
		    "their wall time; for killed ones until the last update");
	for (i = 0; i < n; i++) {
		sink_puts(s, "crema_task_wall_seconds_total{prefix=\"");
		metric_label(s, prefix[i]->name);
		sink_puts(s, "\"} ");
		metric_seconds(s, prefix[i]->wall_ns);
	}
}

static void put_live(struct sink *s, struct live *live, const struct live_cluster *c)
{
	struct live_progress progress;

	put_prefixes(s, live);
	metric_uint(s, "crema_events_total", "counter",
		    "events of successful chunks, as reported by coffea", c->events);
	metric_uint(s, "crema_chunks_total", "counter", "chunks that ended well", c->chunks);
	put_plain(s, c);
	put_times(s, c);
	put_counts(s, c);
	put_amounts(s, c);
	put_incomplete(s, c);
	put_cluster(s, c);
	put_doing(s, live_doing(live, c), c, live_longest_call(live));
	live_progress(live, &progress);
	http_metrics_progress(s, &progress);
}

void http_metrics(const struct http_metrics *from, struct buf *out)
{
	struct sink s = {.out = out};
	struct live_cluster c;

	live_cluster(from->live, &c);
	if (!c.unread)
		put_live(&s, from->live, &c);
	put_collector(&s, from);
	if (from->run && from->run->len)
		sink_put(&s, (const char *)from->run->data, from->run->len);
	if (s.error)
		out->error = s.error;
}
