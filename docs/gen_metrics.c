/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_metrics.c - prints docs/metrics.md from contract/metrics.def. */
#include <stdio.h>

#include "collector/report/wall.h"

static const char *const head =
	"# Metrics of a run\n"
	"\n"
	"Generated from `contract/metrics.def` by `make docs`; do not edit.\n"
	"\n"
	"`crema report --json -` writes these under `metrics`, `crema report --all-metrics` prints "
	"them by name,\n"
	"the report page shows them in a table, and the collector exports them to Prometheus. Null "
	"means unknown,\n"
	"never 0; Prometheus has no sample then. The second name of a metric is its alias in "
	"roastcoffea 0.1.2.\n"
	"\n"
	"Start with five: `event_rate_wall_khz` (how fast), `budget` (where the threads' time "
	"went), "
	"`core_efficiency_true`\n"
	"(how busy the cores were), `read_amplification` (bytes read per byte used) and "
	"`storage_read_bytes` (what came from disk).\n"
	"\n"
	"- A metric without a suffix covers **counted** attempts: the last successful one of each "
	"key, and each successful\n"
	"  call of an actor's method. `_all` covers every attempt.\n"
	"- `_true` uses CPU time, of the task's own thread and of the pool threads that worked for "
	"it, where coffea uses\n"
	"  the wall time around process().\n"
	"- Source **workers**: counted by crema in the worker processes. **coffea**: reported by "
	"coffea with each chunk;\n"
	"  unknown with savemetrics=False. **dask**: reported by Dask's workers for the run's "
	"spans; null if another run has\n"
	"  tasks of the same prefix in one of them. **estimate**: derived from the workers' "
	"numbers, because only the\n"
	"  scheduler has the exact value.\n"
	"- Prometheus: the gauge of the last finished run, in base units. Metrics that differ only "
	"in their unit share one gauge.\n";

/* Numbers of a run that are not metrics, and how to read some that are. */
static const struct {
	const char *part, *text;
} elsewhere[] = {
	{"`tasks`", "every attempt, with `counted` and `waste_reason`; `start` and `stop` are UTC "
		    "epoch seconds, "
		    "measured with CLOCK_BOOTTIME and CLOCK_MONOTONIC"},
	{"`chunks`",
	 "every attempt at a chunk: chunk_id, events, processing_time_seconds, memory_start_gb, "
	 "memory_end_gb, memory_delta_gb (1 GB = 1e9 bytes), dataset, filename, entrystart, "
	 "entrystop, time_per_event_seconds, memory_per_event_bytes. Its wall time, CPU and bytes "
	 "are those of the whole task, including opening, reading and serializing; only "
	 "`processing_time_seconds` is coffea's time around process()"},
	{"`tracking_data`",
	 "the workers over time: worker_counts, worker_memory, worker_memory_limit, worker_cores, "
	 "worker_active_tasks, worker_executing, worker_nbytes, worker_occupancy, "
	 "worker_last_seen, "
	 "worker_spilled, worker_cpu_occupancy. Timestamps are ISO 8601 in UTC; "
	 "`tracking_data.estimated` names the estimated series. The workers' agents take the "
	 "samples, one per second, not the scheduler"},
	{"`sections`",
	 "`crema.section(name)`: count, wall time, CPU, each kind of wait and bytes of each layer, "
	 "with and without inner sections; shortest, median (within 9.1 %) and longest execution; "
	 "`sections_by_dataset` by dataset. Sections of roastcoffea's track_time and track_section "
	 "are included with their wall time; `@track_metrics` is the section of that name"},
	{"`memory_sections`", "`crema.memory(name)`: resident memory before and after, the "
			      "difference, and the peak if it was a new one "
			      "for the process; roastcoffea's track_memory as well"},
	{"`custom_metrics`", "`crema.metric(name, value)`: count, sum, smallest, largest and last "
			     "value; roastcoffea's record_metric "
			     "and track_bytes as well"},
	{"`blocking`", "native and Python call stacks of long waits, with the line of your code"},
	{"`workers`, `files`, `codecs`, `servers`, `findings`",
	 "one row each; `files` has the file system and storage of a file, `servers` the scheme "
	 "(root, http, https, tcp)"},
	{"`completeness`", "what could not be attributed, and why"},
};

static const char *const tail =
	"\n"
	"- `total_cpu_time` sums the wall time around process() over all threads, so it includes "
	"waits and may exceed\n"
	"  `wall_time`; `total_cpu_time_true` is CPU time.\n"
	"- A `core_efficiency_true` near 1 is a busy cluster; at 0.2 the workers mostly wait, and "
	"`budget` shows for what.\n"
	"- Memory is the resident set of the whole process: interpreter, libraries, other threads "
	"and materialized arrays.\n"
	"  `rss_peak_bytes` of a task is the kernel's high-water mark (VmHWM) if the task raised "
	"it, else the largest of\n"
	"  both ends and four samples per second, a lower bound.\n"
	"- `avg_branches_read_percent` needs the number of branches in a tree, which workers do "
	"not "
	"report. `crema.measure` has\n"
	"  it if roastcoffea's @track_metrics left it in the output.\n"
	"- `per_file` counts each basket once; its share refers to the file's size, roastcoffea's "
	"to the tree's bytes.\n"
	"  `compression_ratio` is decompressed / compressed, in roastcoffea the inverse.\n"
	"- A task's `unclassified_seconds` is its wall time minus its known time classes, never "
	"clamped;\n"
	"  `unclassified_includes` names the classes that are unknown. `storage_wait_seconds` is "
	"an "
	"estimate (the remainder)\n"
	"  if `storage_wait_estimated` is true: page faults waited for storage, and no call shows "
	"them. If another class of\n"
	"  such a task is unknown (waits for a core on a kernel without schedstat), so is "
	"`storage_wait_seconds`.\n"
	"- An attempt that is not counted has a `waste_reason`: killed or lost (its worker died or "
	"disappeared), erred (it failed\n"
	"  and was not repeated), retried (it failed and was repeated), recomputed (a later one "
	"succeeded as well), stolen\n"
	"  (another worker ran it at the same time), shutdown (the cluster was closed).";

/* A table cell must not hold a bar. */
static void put_cell(const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			putchar('\\');
		putchar(*text);
	}
}

static void put_metric(const struct metric *m)
{
	char name[METRIC_PROMETHEUS_BYTES];

	printf("| `%s`", m->id);
	if (*m->alias)
		printf(", `%s`", m->alias);
	printf(" | %s%s | %s | ", m->unit,
	       m->kind != METRIC_TREE ? ""
	       : *m->unit	      ? ", list"
				      : "list",
	       m->source);
	put_cell(m->help);
	metric_prometheus_name(m, name);
	printf(" | %s%s%s |\n", *name ? "`" : "", name, *name ? "`" : "");
}

static void put_group(enum metric_group group)
{
	size_t i;

	printf("\n## %s\n\n", metric_group_titles[group]);
	puts("| metric | unit | source | meaning | Prometheus |");
	puts("|---|---|---|---|---|");
	for (i = 0; i < metric_count; i++) {
		if (metric_table[i].group == group)
			put_metric(&metric_table[i]);
	}
}

int main(void)
{
	enum metric_group group;
	size_t i;

	fputs(head, stdout);
	for (group = 0; group < METRIC_GROUPS; group++)
		put_group(group);
	puts("\n## Wall time of the client\n\nSeconds by part, in `client_wall.parts`; "
	     "the known parts and `rest_seconds` add up to `wall_seconds`.\n\n"
	     "| part | in tables | contents |\n|---|---|---|");
	for (i = 0; i < WALL_PARTS; i++)
		printf("| `%s` | %s | %s |\n", wall_parts[i].id, wall_parts[i].words,
		       wall_parts[i].help);
	puts("\n## Elsewhere in the JSON\n\n| part | contents |\n|---|---|");
	for (i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		printf("| %s | %s |\n", elsewhere[i].part, elsewhere[i].text);
	puts(tail);
	return fflush(stdout) || ferror(stdout);
}
