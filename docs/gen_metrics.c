/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_metrics.c - prints docs/metrics.md from contract/metrics.def. */
#include <stdio.h>
#include <string.h>

struct metric {
	const char *id, *alias, *unit, *kind, *source, *rows, *help;
};

#define GROUP(id, title)
#define METRIC(id, alias, unit, kind, group, source, rows, help)                                   \
	{#id, alias, unit, #kind, #source, rows, help},

static const struct metric table[] = {
#include "metrics.def"
};

static const char *const head =
	"# Metrics of a run\n"
	"\n"
	"Made from `contract/metrics.def` by `make docs`; do not edit.\n"
	"\n"
	"`crema report --json -` prints them under `metrics`. Any value may be null, which means\n"
	"unknown and never 0. An alias is the name in roastcoffea 0.1.2; it is written beside the "
	"id\n"
	"with the same value.\n"
	"\n"
	"- Without a suffix a metric holds **counted** attempts: of each key the last one that "
	"ended\n"
	"  well. `_all` holds every attempt.\n"
	"- `_true` puts real CPU time, of the task's own thread and of the pool threads that "
	"worked for\n"
	"  it, where coffea has the wall time around process().\n"
	"- Source **workers**: counted by crema in the worker processes. **coffea**: what coffea "
	"says in\n"
	"  the result of each chunk; unknown with savemetrics=False, and crema's own stand beside "
	"it.\n"
	"  **dask**: what Dask's workers say, restricted to the run's spans. **estimate**: worked "
	"out\n"
	"  from what workers know of a number that only the scheduler has.\n"
	"- Rows: the rows of the checklist of the reference documents that a metric answers.\n"
	"\n"
	"| metric | unit | source | rows | what it is |\n"
	"|---|---|---|---|---|\n";

static const char *const tail =
	"\n"
	"## Beside the metrics\n"
	"\n"
	"| rows | where in the JSON |\n"
	"|---|---|\n"
	"| 32-41 | `tracking_data`: worker_counts, worker_memory, worker_memory_limit, "
	"worker_cores, "
	"worker_active_tasks, worker_executing, worker_nbytes, worker_occupancy, worker_last_seen; "
	"the estimated ones are named in `tracking_data.estimated` |\n"
	"| 45 | every timestamp in `tracking_data`: ISO 8601, UTC; `start` and `stop` of tasks: "
	"UTC "
	"epoch seconds |\n"
	"| 46-54, 56, 57 | each row of `chunks`: chunk_id, events, processing_time_seconds, "
	"memory_start_gb, memory_end_gb, memory_delta_gb (1 GB = 1e9 bytes), dataset, filename, "
	"entrystart, entrystop, time_per_event_seconds, memory_per_event_bytes |\n"
	"| | `tasks`: every attempt, with `counted` and `waste_reason` |\n"
	"| | `workers`, `files`, `codecs`, `completeness` |\n"
	"\n"
	"A task's `unclassified_seconds` is its wall time minus its known time classes, never "
	"clamped;\n"
	"`unclassified_includes` names the classes that are unknown and therefore in it.\n"
	"`storage_wait_seconds` is an estimate (the remainder) where `storage_wait_estimated` is "
	"true:\n"
	"its page faults waited for storage, and they show in no call.\n"
	"\n"
	"An attempt that is not counted has a `waste_reason`: killed or lost (its worker is gone), "
	"erred\n"
	"(it failed and nothing came after it), retried (it failed and something did), recomputed\n"
	"(another one ended well later), stolen (the same at the same time on another worker).\n";

/* A table cell must not hold a bar. */
static void put_cell(const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			putchar('\\');
		putchar(*text);
	}
}

int main(void)
{
	const struct metric *m;
	size_t i;

	fputs(head, stdout);
	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		m = &table[i];
		printf("| `%s`", m->id);
		if (*m->alias)
			printf(", `%s`", m->alias);
		printf(" | %s%s | %s | %s | ", m->unit,
		       strcmp(m->kind, "TREE") ? ""
		       : *m->unit	       ? ", list"
					       : "list",
		       m->source, m->rows);
		put_cell(m->help);
		puts(" |");
	}
	fputs(tail, stdout);
	return fflush(stdout) || ferror(stdout);
}
