/* SPDX-License-Identifier: BSD-3-Clause */
/* tables.c - the terminal report, and its sections that consist only of metrics. */
#include <stdio.h>
#include <string.h>

#include "collector/findings/findings.h"
#include "collector/emit/emit_text.h"
#include "collector/print/print.h"

/* One line of a section: a label and up to three metrics by id; NULL: an empty cell. */
struct line {
	const char *label;
	const char *cell[3];
};

struct section {
	const char *title;
	const char *column[4]; /* with '<' or '>' */
	const struct line *lines;
	size_t n;
};

static const struct line throughput[] = {
	{"requested, as coffea counts", {"overall_rate_mbs", "overall_rate_gbps"}},
	{"read from files", {"read_rate_mbs"}},
	{"from storage", {"storage_read_rate_mbs"}},
	{"from the network", {"network_read_rate_mbs"}},
	{"decompressed", {"decompressed_rate_mbs"}},
};

static const struct line events[] = {
	{"events, chunks", {"total_events", "num_chunks"}},
	{"attempts at chunks that failed", {"num_failed_chunks"}},
	{"columns read", {"num_columns"}},
	{"event rate, by wall time", {"event_rate_wall_khz"}},
	{"event rate, per core", {"event_rate_core_hz"}},
};

static const struct line phases[] = {
	{"preprocessing", {"preprocessing_elapsed_seconds", "preprocessing_task_seconds"}},
	{"processing", {"processing_elapsed_seconds", "processing_task_seconds"}},
	{"merging", {NULL, "merging_task_seconds"}},
	{"threads without a task", {NULL, "idle_thread_seconds"}},
};

static const struct line efficiency[] = {
	{"time in process() / CPU of chunks", {"total_cpu_time", "total_cpu_time_true"}},
	{"  per chunk", {"avg_cpu_time_per_chunk", "avg_cpu_time_per_chunk_true"}},
	{"  per event", {"time_per_event_seconds", "cpu_time_per_event_seconds"}},
	{"event rate, aggregated", {"event_rate_agg_khz", "event_rate_agg_khz_true"}},
	{"core efficiency", {"core_efficiency", "core_efficiency_true"}},
	{"speedup", {"speedup_factor", "speedup_factor_true"}},
	{"efficiency ratio", {"efficiency_ratio_percent", "efficiency_ratio_percent_true"}},
};

static const struct line volume[] = {
	{"requested, as coffea counts", {"total_bytes_read_coffea"}},
	{"read from files", {"read_bytes", "read_bytes_all", "read_calls"}},
	{"  after the task's end", {"late_bytes"}},
	{"mapped (mmap)", {"mapped_bytes"}},
	{"from storage", {"disk_read_bytes", "disk_read_bytes_all"}},
	{"from the network", {"network_read_bytes"}},
	{"sent to the network", {"network_write_bytes"}},
	{"compressed input",
	 {"bytes_read_compressed", "bytes_read_compressed_all", "decompress_calls"}},
	{"decompressed", {"bytes_read_uncompressed", "bytes_read_uncompressed_all"}},
	{"compression ratio", {"compression_ratio"}},
	{"used share of files", {"avg_bytes_read_percent"}},
	{"Python imports (not included)", {"import_read_bytes"}},
	{"written to storage", {"disk_write_bytes", "disk_write_bytes_all"}},
};

static const struct line resources[] = {
	{"workers: average, peak", {"avg_workers", "peak_workers"}},
	{"threads: per worker, all", {"cores_per_worker", "total_cores"}},
	{"memory of a worker: average, peak",
	 {"avg_memory_per_worker_bytes", "peak_memory_per_worker_bytes"}},
	{"  of its limit: average, peak",
	 {"avg_memory_utilization_percent", "max_memory_utilization_percent"}},
	{"  pressure (above 80 %)", {"memory_pressure"}},
	{"threads with a task", {"avg_cpu_utilization_percent"}},
	{"CPU of a worker (100 % = a core)", {"avg_worker_cpu_percent"}},
	{"busiest worker / mean", {"worker_imbalance"}},
	{"spilled by Dask, peak", {"spilled_bytes"}},
	{"network of the hosts: in, out", {"host_net_read_bytes", "host_net_write_bytes"}},
	{"  busiest second of a host", {"host_net_read_peak_mbs", "host_net_write_peak_mbs"}},
	{"disks of the hosts: read, written", {"host_disk_read_bytes", "host_disk_write_bytes"}},
	{"  busiest second of a host", {"host_disk_read_peak_mbs", "host_disk_write_peak_mbs"}},
};

static const struct line fine[] = {
	{"CPU of tasks", {"cpu_time_seconds", "cpu_time_seconds_true"}},
	{"not CPU / storage and network", {"io_time_seconds", "io_time_seconds_true"}},
	{"processor: CPU", {"processor_cpu_time_seconds", "processor_cpu_time_seconds_true"}},
	{"processor: not CPU", {"processor_noncpu_time_seconds"}},
	{"processor: CPU share", {"processor_cpu_percentage"}},
	{"overhead: CPU", {"overhead_cpu_time_seconds", "overhead_cpu_time_seconds_true"}},
	{"overhead: not CPU", {"overhead_noncpu_time_seconds"}},
	{"decompress: Dask's frames / codecs",
	 {"dask_decompress_seconds", "decompression_time_seconds"}},
	{"compress: Dask's frames / codecs", {"dask_compress_seconds", "compression_time_seconds"}},
	{"serialize", {"serialization_time_seconds"}},
	{"deserialize", {"deserialization_time_seconds"}},
	{"serialize: transfers, whole workers", {"transfer_serialize_seconds"}},
	{"deserialize: transfers, whole workers", {"transfer_deserialize_seconds"}},
	{"inputs found in memory", {"total_bytes_memory_read_dask"}},
	{"spilled: read back", {"dask_spill_read_bytes"}},
	{"spilled: written", {"dask_spill_write_bytes"}},
};

#define LINES(a) a, sizeof(a) / sizeof(*(a))

static void put_metric(struct grid *g, const struct facts *f, const char *id)
{
	const struct metric *m = metric_find(id);
	const struct metric_unit *u = m ? metric_unit(m->unit) : NULL;
	struct value v = metric_value(f, id);

	if (v.type == VALUE_BOOL && u && u->as == AS_YES)
		grid_style(g, v.v.b ? STYLE_BAD : STYLE_GOOD);
	grid_value(g, v, u ? u->as : AS_IS);
}

static void put_section(const struct section *sec, const struct facts *f, struct sink *s,
			bool colour)
{
	const struct line *l;
	struct grid g;
	size_t i, k;

	table_section(s, colour, sec->title);
	grid_init(&g, s, colour);
	grid_columns(&g, sec->column[0], sec->column[1], sec->column[2], sec->column[3], NULL);
	for (i = 0; i < sec->n; i++) {
		l = &sec->lines[i];
		grid_text(&g, l->label);
		for (k = 0; k + 1 < g.columns; k++) {
			if (l->cell[k])
				put_metric(&g, f, l->cell[k]);
			else
				grid_text(&g, "");
		}
	}
	grid_print(&g);
}

void report_table_findings(const struct report *r, struct sink *s, bool colour)
{
	if (r->findings)
		findings_text(r->findings, s, colour);
}

void report_table_throughput(const struct report *r, struct sink *s, bool colour)
{
	put_section(&(const struct section){"Throughput", {"<", ">", ">", NULL}, LINES(throughput)},
		    r->facts, s, colour);
}

void report_table_events(const struct report *r, struct sink *s, bool colour)
{
	put_section(&(const struct section){"Events", {"<", ">", ">", NULL}, LINES(events)},
		    r->facts, s, colour);
}

void report_table_phases(const struct report *r, struct sink *s, bool colour)
{
	put_section(&(const struct section){"Phases",
					    {"<", ">first start to last end",
					     ">summed over threads", NULL},
					    LINES(phases)},
		    r->facts, s, colour);
}

void report_table_efficiency(const struct report *r, struct sink *s, bool colour)
{
	put_section(&(const struct section){"Efficiency",
					    {"<", ">coffea: wall", ">true: CPU", NULL},
					    LINES(efficiency)},
		    r->facts, s, colour);
}

void report_table_bytes(const struct report *r, struct sink *s, bool colour)
{
	put_section(&(const struct section){"Data volume by layer",
					    {"<", ">counted", ">all attempts", ">calls"},
					    LINES(volume)},
		    r->facts, s, colour);
}

/* Of all processes on the run's hosts; omitted if nothing was read. */
static void put_mounts(struct sink *s, const char *name, struct value read, struct value sent)
{
	char a[HUMAN_BYTES], b[HUMAN_BYTES];

	if (!(value_number(read, NULL) > 0 || value_number(sent, NULL) > 0))
		return;
	text_paragraph(s, "  ", "%s: the server sent %s for %s read (all processes)", name,
		       human(sent, AS_BYTES, a), human(read, AS_BYTES, b));
}

void report_table_resources(const struct report *r, struct sink *s, bool colour)
{
	put_section(&(const struct section){"Resources", {"<", ">", ">", NULL}, LINES(resources)},
		    r->facts, s, colour);
	put_mounts(s, "NFS", metric_host_nfs_read_bytes(r->facts),
		   metric_host_nfs_server_read_bytes(r->facts));
	put_mounts(s, "Lustre", metric_host_lustre_read_bytes(r->facts),
		   metric_host_lustre_server_read_bytes(r->facts));
}

void report_table_fine(const struct report *r, struct sink *s, bool colour)
{
	put_section(&(const struct section){"Fine metrics",
					    {"<", ">Dask reports", ">crema measured", NULL},
					    LINES(fine)},
		    r->facts, s, colour);
}

static void (*const printers[REPORT_TABLES])(const struct report *, struct sink *, bool) = {
#define TABLE(name, help) report_table_##name,
#include "tables.def"
#undef TABLE
};

const struct report_table_name report_table_names[REPORT_TABLES] = {
#define TABLE(name, help) {#name, help},
#include "tables.def"
#undef TABLE
};

static uint64_t table_named(const char *name, size_t n)
{
	size_t i;

	if (n == strlen("all") && !memcmp(name, "all", n))
		return REPORT_ALL_TABLES;
	for (i = 0; i < REPORT_TABLES; i++) {
		if (strlen(report_table_names[i].name) == n &&
		    !memcmp(report_table_names[i].name, name, n))
			return 1ull << i;
	}
	return 0;
}

uint64_t report_tables_named(const char *list, char *why, size_t size)
{
	uint64_t found = 0, one;
	size_t n, i;

	for (;; list += n + 1) {
		n = strcspn(list, ",");
		one = table_named(list, n);
		if (!one)
			break;
		found |= one;
		if (!list[n])
			return found;
	}
	snprintf(why, size, "there is no table '%.*s'; use all", (int)n, list);
	for (i = 0; i < REPORT_TABLES; i++) {
		n = strlen(why);
		snprintf(why + n, size - n, ", %s", report_table_names[i].name);
	}
	return 0;
}

void report_tables(const struct report *r, uint64_t tables, struct sink *s, bool colour)
{
	size_t i;

	report_tables_head(r, s, colour);
	for (i = 0; i < REPORT_TABLES; i++) {
		if (tables >> i & 1)
			printers[i](r, s, colour);
	}
}
