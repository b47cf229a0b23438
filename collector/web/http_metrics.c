/* SPDX-License-Identifier: BSD-3-Clause */
/* http_metrics.c - counters of the cluster as Prometheus reads them; gauges: http_metrics_state.c.
 */
#include "collector/web/http_metrics.h"

#include <inttypes.h>
#include <string.h>

#include "collector/web/http_metrics_parts.h"
#include "common/rows.h"

/* Text format */

void metric_head(struct sink *s, const char *name, const char *type, const char *help)
{
	sink_printf(s, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metric_label(struct sink *s, const char *text)
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

void metric_seconds(struct sink *s, uint64_t ns)
{
	sink_printf(s, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000u, ns % 1000000000u);
}

void metric_uint(struct sink *s, const char *name, const char *type, const char *help,
		 uint64_t value)
{
	metric_head(s, name, type, help);
	sink_printf(s, "%s %" PRIu64 "\n", name, value);
}

/* What the workers count */

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

/* "x_ns" is told in seconds. */
static bool counter_name(char *out, size_t size, const char *part, const char *id)
{
	size_t n = strlen(id);
	bool ns = n > 3 && !strcmp(id + n - 3, "_ns");

	snprintf(out, size, "crema_%s%.*s%s_total", part, (int)(ns ? n - 3 : n), id,
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

	metric_head(
		s, name, "counter",
		"what threads did for tasks, by class: on the core, or waiting for what; thread: "
		"the task's own or a pool's");
	for (i = 0; i < CREMA_TIMES; i++) {
		snprintf(labels, sizeof(labels), "{class=\"%s\",thread=\"own\"}", row_times[i].id);
		put_value(s, c, name, labels, LIVE_OWN + i, true);
		snprintf(labels, sizeof(labels), "{class=\"%s\",thread=\"pool\"}", row_times[i].id);
		put_value(s, c, name, labels, LIVE_POOL + i, true);
	}
}

/* process: getrusage of the workers; seen: the threads the shim knows; children: ended ones */
static void put_amounts(struct sink *s, const struct live_cluster *c)
{
	char name[96], part[32];
	unsigned int i;
	bool ns;

	for (i = 0; i < CREMA_TOTALS_AMOUNTS; i++) {
		snprintf(part, sizeof(part), "worker_%s_", row_amounts[i].part);
		ns = counter_name(name, sizeof(name), part, row_amounts[i].name);
		metric_head(s, name, "counter", row_amounts[i].help);
		put_value(s, c, name, "", LIVE_AMOUNT + i, ns);
	}
}

static void put_plain(struct sink *s, const struct live_cluster *c)
{
	char name[96];
	unsigned int i;

	for (i = 0; i < CREMA_TOTALS_NUMBERS; i++) {
		counter_name(name, sizeof(name), "", row_totals[i].name);
		metric_head(s, name, "counter", row_totals[i].help);
		put_value(s, c, name, "", LIVE_PLAIN + i, false);
	}
}

static void put_one_incomplete(struct sink *s, const struct live_cluster *c, const char *before,
			       const char *id, const char *behind, unsigned int at)
{
	sink_printf(s, "crema_workers_incomplete{value=\"%s%s%s\"} %" PRIu64 "\n", before, id,
		    behind, c->without[at]);
}

static void put_incomplete(struct sink *s, const struct live_cluster *c)
{
	char part[32];
	unsigned int i;

	metric_head(s, "crema_workers_incomplete", "gauge",
		    "workers, gone ones included, that could not count this value of tasks: it is "
		    "missing from the total");
	for (i = 0; i < CREMA_TIMES; i++)
		put_one_incomplete(s, c, "", row_times[i].id, "_seconds", LIVE_OWN + i);
	for (i = 0; i < CREMA_COUNTS; i++)
		put_one_incomplete(s, c, "", row_counts[i].id, "", LIVE_TASK + i);
	for (i = 0; i < CREMA_TOTALS_AMOUNTS; i++) {
		snprintf(part, sizeof(part), "worker_%s_", row_amounts[i].part);
		put_one_incomplete(s, c, part, row_amounts[i].name, "", LIVE_AMOUNT + i);
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
		    "their wall time; of killed ones until the last sign of life");
	for (i = 0; i < n; i++) {
		sink_puts(s, "crema_task_wall_seconds_total{prefix=\"");
		metric_label(s, prefix[i]->name);
		sink_puts(s, "\"} ");
		metric_seconds(s, prefix[i]->wall_ns);
	}
}

void http_metrics(const struct http_metrics *from, struct buf *out)
{
	struct sink s = {.out = out};
	struct live_progress progress;
	struct live_cluster c;

	live_cluster(from->live, &c);
	put_prefixes(&s, from->live);
	metric_uint(&s, "crema_events_total", "counter",
		    "events of successful chunks, as reported by coffea", c.events);
	metric_uint(&s, "crema_chunks_total", "counter", "chunks that ended well", c.chunks);
	put_plain(&s, &c);
	put_times(&s, &c);
	put_counts(&s, &c);
	put_amounts(&s, &c);
	put_incomplete(&s, &c);
	metrics_cluster(&s, &c);
	metrics_doing(&s, live_doing(from->live, &c), &c, live_longest_call(from->live));
	live_progress(from->live, &progress);
	metrics_progress(&s, &progress);
	metrics_collector(&s, from);
	if (from->run && from->run->len)
		sink_put(&s, (const char *)from->run->data, from->run->len);
	if (s.error)
		out->error = s.error;
}
