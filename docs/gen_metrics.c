/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_metrics.c - prints docs/metrics.md from contract/metrics.def. */
#include <stdio.h>
#include <string.h>

#include "collector/metrics/metrics.h"

static const char *const head[] = {
	"# Metrics of a run",
	"",
	"Made from `contract/metrics.def` by `make docs`; do not edit.",
	"",
	"`crema report --json -` prints them under `metrics`, `crema report --all-metrics` by "
	"name, the",
	"report page in a table, and the collector's `/metrics` for Prometheus. Any value may be "
	"null, which",
	"means unknown and never 0; Prometheus has no sample of it then. An alias is the name in",
	"roastcoffea 0.1.2; it is written beside the id with the same value.",
	"",
	"- Without a suffix a metric holds **counted** attempts: of each key the last one that "
	"ended",
	"  well. `_all` holds every attempt.",
	"- `_true` puts real CPU time, of the task's own thread and of the pool threads that "
	"worked for",
	"  it, where coffea has the wall time around process().",
	"- Source **workers**: counted by crema in the worker processes. **coffea**: what coffea "
	"says in",
	"  the result of each chunk; unknown with savemetrics=False, and crema's own stand beside "
	"it.",
	"  **dask**: what Dask's workers say of the run's spans; null where another run has tasks "
	"of",
	"  the same prefix in one of them. **estimate**: worked out",
	"  from what workers know of a number that only the scheduler has.",
	"- Rows: the rows of the checklist of the reference documents that a metric answers",
	"  (`tests/checklist.txt`; `scripts/checklist-rows` prints those that nothing answers).",
	"- Prometheus: the gauge of the run, in base units. Ids that differ in the unit only are "
	"one gauge.",
};

/* Rows that are no metrics: where they are, or what stands in their place. */
static const struct {
	const char *rows, *text;
} beside[] = {
	{"32-41",
	 "`tracking_data`, always there: worker_counts, worker_memory, worker_memory_limit, "
	 "worker_cores, "
	 "worker_active_tasks, worker_executing, worker_nbytes, worker_occupancy, "
	 "worker_last_seen, and "
	 "beside them worker_spilled and worker_cpu_occupancy; the estimated ones are named in "
	 "`tracking_data.estimated`"},
	{"42-44",
	 "superseded: workers' agents sample each second, whether or not anybody asks; nothing "
	 "runs on the scheduler"},
	{"45", "every timestamp in `tracking_data`: ISO 8601, UTC; `start` and `stop` of tasks: "
	       "UTC epoch "
	       "seconds"},
	{"46-54, 56, 57",
	 "each row of `chunks`: chunk_id, events, processing_time_seconds, memory_start_gb, "
	 "memory_end_gb, memory_delta_gb (1 GB = 1e9 bytes), dataset, filename, entrystart, "
	 "entrystop, "
	 "time_per_event_seconds, memory_per_event_bytes"},
	{"86, 87",
	 "superseded: nothing has to be tried again. Agents repeat their records until the "
	 "collector has acknowledged them, and a report can be made at any time"},
	{"90",
	 "superseded: every number says itself whether it is known, and `completeness` why it is "
	 "not"},
	{"60, 61", "what roastcoffea's @track_metrics has put into a processor's output is read on "
		   "the worker: "
		   "`sections`, `memory_sections` and `custom_metrics` whose `source` is "
		   "roastcoffea; the whole of "
		   "process() is the section \"@track_metrics\""},
	{"91, 92",
	 "superseded: `crema.section(name)` gives `sections`: count, wall, CPU, each "
	 "kind of wait and bytes of "
	 "each layer, inclusive and without inner sections. Those of track_time and "
	 "track_section are there as "
	 "well, with the wall time that they have. `wall_min_seconds`, `wall_median_seconds` "
	 "(within 9.1 %) and `wall_max_seconds` are of single executions; "
	 "`sections_by_dataset` has each dataset's"},
	{"93", "superseded: `crema.memory(name)` gives `memory_sections`: resident memory before "
	       "and after, the "
	       "difference, and the peak where it was a new one of the process. track_memory's are "
	       "there as well"},
	{"94", "superseded: `crema.metric(name, value)` gives `custom_metrics`: count, sum, least, "
	       "most and last of a "
	       "number; those of record_metric and track_bytes are there as well"},
	{"95", "superseded: a checkpoint is an empty `crema.section`, or a `crema.metric`"},
	{"103", "core efficiency near 100 % is a busy machine, 50 % leaves half of it idle, 20 % "
		"means that "
		"workers mostly wait: `Timing` says for what. I/O overhead of 10 % is small, of 50 "
		"% worth "
		"a look at the access pattern, of 80 % the job waits for data"},
	{"111-117",
	 "`crema report --measurement DIR` writes a folder that roastcoffea's loader, tables and "
	 "plots take; the report page has the same over time"},
	{"122", "`/metrics` of `crema collect`: the cluster's counters and the last run's gauges"},
	{"127",
	 "superseded: TaskVine's processes are measured themselves; `crema report --taskvine-log` "
	 "puts its log beside them"},
	{"129", "superseded: tables. A metric, an option, a finding, a counter or a way out is one "
		"line and "
		"one function (docs/hacking.md)"},
	{"121, 131, 132, 134", "`crema report --html` and the collector's http page: workers, task "
			       "stream by thread and by what "
			       "it waited for, over time and in total"},
	{"145",
	 "superseded: `Data volume by layer` has one origin for each number, and says how they "
	 "differ"},
	{"147, 148",
	 "memory is the resident set of the whole process: interpreter, libraries, other "
	 "threads and lazy arrays that were made real are in it, so differences "
	 "accumulate; `rss_peak_bytes` of a task is the peak in its window: the kernel's mark "
	 "(VmHWM) "
	 "where the task raised it, else the highest of both ends and four samples a second, so "
	 "the "
	 "peak may have been higher"},
	{"149", "superseded: `rss_peak_bytes` does not depend on when the garbage collector runs"},
	{"150",
	 "a chunk's wall, CPU and bytes are the whole task's, opening, reading and serializing "
	 "included; `processing_time_seconds` alone is what coffea says of process()"},
	{"151",
	 "superseded: workers come and go by messages of their own, not by sampling; a worker that "
	 "lived for a moment is counted"},
	{"154",
	 "`servers` names the scheme of each server (root, http, https, tcp), `files` the file "
	 "system and storage of each file"},
	{"155", "times are taken by CLOCK_BOOTTIME and CLOCK_MONOTONIC and told in UTC"},
	{"156", "superseded: without Spans (older Dask, or none) runs are told apart by time or "
		"processor, "
		"and only Dask's own metrics are unknown"},
	{"157", "`blocking` has the native call stacks of long waits. For a profile by Python "
		"function use "
		"py-spy or memray: they go together with the preload"},
	{"158", "superseded: sections are activities by names of your own"},
	{"158", "superseded: `crema.section` names activities of your own"},
	{"159",
	 "total_cpu_time adds up the wall time around process() over all threads, so it may exceed "
	 "wall_time, and waiting is in it; total_cpu_time_true has neither"},
	{"160", "`make bench` measures what counting costs, per call and for a real job"},
	{"", "`tasks`: every attempt, with `counted` and `waste_reason`"},
	{"", "`workers`, `files`, `codecs`, `servers`, `sections`, `findings`, `blocking`, "
	     "`completeness`"},
};

static const char *const tail[] = {
	"",
	"`avg_branches_read_percent` needs the number of branches in a tree, which no worker "
	"tells: it is in",
	"`crema.measure`'s metrics where roastcoffea's @track_metrics has left it in the output.",
	"",
	"`per_file` counts the baskets of a file once, however often they were read; its share is "
	"of the",
	"file's size, while roastcoffea's is of the tree's bytes. `compression_ratio` is unpacked "
	"/ packed,",
	"there packed / unpacked.",
	"",
	"A task's `unclassified_seconds` is its wall time minus its known time classes, never "
	"clamped;",
	"`unclassified_includes` names the classes that are unknown and therefore in it.",
	"`storage_wait_seconds` is an estimate (the remainder) where `storage_wait_estimated` is "
	"true:",
	"page faults of the task waited for storage, and show in no call.",
	"",
	"An attempt that is not counted has a `waste_reason`: killed or lost (its worker is gone), "
	"erred",
	"(it failed and nothing came after it), retried (it failed and something did), recomputed",
	"(another one ended well later), stolen (the same at the same time on another worker).",
};

static void put_lines(const char *const *lines, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		puts(lines[i]);
}

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
	printf(" | %s%s | %s | %s | ", m->unit,
	       m->kind != METRIC_TREE ? ""
	       : *m->unit	      ? ", list"
				      : "list",
	       m->source, m->rows);
	put_cell(m->help);
	metric_prometheus_name(m, name);
	printf(" | %s%s%s |\n", *name ? "`" : "", name, *name ? "`" : "");
}

static void put_group(enum metric_group group)
{
	size_t i;

	printf("\n## %s\n\n", metric_group_titles[group]);
	puts("| metric | unit | source | rows | what it is | Prometheus |");
	puts("|---|---|---|---|---|---|");
	for (i = 0; i < metric_count; i++) {
		if (metric_table[i].group == group)
			put_metric(&metric_table[i]);
	}
}

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

int main(void)
{
	enum metric_group group;
	size_t i;

	put_lines(head, COUNT(head));
	for (group = 0; group < METRIC_GROUPS; group++)
		put_group(group);
	puts("\n## Beside the metrics\n\n| rows | where in the JSON, or what stands in its place "
	     "|\n|---|---|");
	for (i = 0; i < COUNT(beside); i++)
		printf("| %s | %s |\n", beside[i].rows, beside[i].text);
	put_lines(tail, COUNT(tail));
	return fflush(stdout) || ferror(stdout);
}
