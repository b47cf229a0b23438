/* SPDX-License-Identifier: BSD-3-Clause */
/* report_tables.c - the head of the terminal report and the sections that are only metrics. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collector/findings/findings.h"
#include "collector/report/report_parts.h"

/* One line of a section: a label and up to three metrics by id; NULL: an empty cell. */
struct line {
	const char *label;
	struct {
		const char *id;
		enum human as;
	} cell[3];
};

struct section {
	const char *title;
	const char *column[4]; /* with '<' or '>' */
	const struct line *lines;
	size_t n;
};

static const struct line throughput[] = {
	{"requested, as coffea counts",
	 {{"overall_rate_mbs", AS_MBS}, {"overall_rate_gbps", AS_GBPS}}},
	{"returned by read calls", {{"read_rate_mbs", AS_MBS}}},
	{"from storage", {{"storage_read_rate_mbs", AS_MBS}}},
	{"decompressed", {{"decompressed_rate_mbs", AS_MBS}}},
};

static const struct line events[] = {
	{"events, chunks", {{"total_events", AS_COUNT}, {"num_chunks", AS_COUNT}}},
	{"columns read", {{"num_columns", AS_COUNT}}},
	{"event rate, by wall time", {{"event_rate_wall_khz", AS_KHZ}}},
	{"event rate, per core", {{"event_rate_core_hz", AS_HZ}}},
};

static const struct line efficiency[] = {
	{"time in process() / CPU of chunks",
	 {{"total_cpu_time", AS_SECONDS}, {"total_cpu_time_true", AS_SECONDS}}},
	{"  per chunk",
	 {{"avg_cpu_time_per_chunk", AS_SECONDS}, {"avg_cpu_time_per_chunk_true", AS_SECONDS}}},
	{"  per event",
	 {{"time_per_event_seconds", AS_SECONDS}, {"cpu_time_per_event_seconds", AS_SECONDS}}},
	{"event rate, aggregated",
	 {{"event_rate_agg_khz", AS_KHZ}, {"event_rate_agg_khz_true", AS_KHZ}}},
	{"core efficiency", {{"core_efficiency", AS_SHARE}, {"core_efficiency_true", AS_SHARE}}},
	{"speedup", {{"speedup_factor", AS_TIMES}, {"speedup_factor_true", AS_TIMES}}},
	{"efficiency ratio",
	 {{"efficiency_ratio_percent", AS_PERCENT}, {"efficiency_ratio_percent_true", AS_PERCENT}}},
};

static const struct line volume[] = {
	{"requested, as coffea counts", {{"total_bytes_read_coffea", AS_BYTES}}},
	{"returned by read calls",
	 {{"read_bytes", AS_BYTES}, {"read_bytes_all", AS_BYTES}, {"read_calls", AS_COUNT}}},
	{"  of it after the task's end", {{"late_bytes", AS_BYTES}}},
	{"mapped (mmap)", {{"mapped_bytes", AS_BYTES}}},
	{"from storage", {{"disk_read_bytes", AS_BYTES}, {"disk_read_bytes_all", AS_BYTES}}},
	{"from the network", {{"network_read_bytes", AS_BYTES}}},
	{"into codecs, compressed",
	 {{"bytes_read_compressed", AS_BYTES},
	  {"bytes_read_compressed_all", AS_BYTES},
	  {"decompress_calls", AS_COUNT}}},
	{"out of codecs",
	 {{"bytes_read_uncompressed", AS_BYTES}, {"bytes_read_uncompressed_all", AS_BYTES}}},
	{"compression ratio", {{"compression_ratio", AS_TIMES}}},
	{"Python imports, beside all this", {{"import_read_bytes", AS_BYTES}}},
	{"written to storage",
	 {{"disk_write_bytes", AS_BYTES}, {"disk_write_bytes_all", AS_BYTES}}},
};

static const struct line resources[] = {
	{"workers: average, most", {{"avg_workers", AS_IS}, {"peak_workers", AS_COUNT}}},
	{"threads: per worker, all", {{"cores_per_worker", AS_IS}, {"total_cores", AS_IS}}},
	{"memory of a worker: average, peak",
	 {{"avg_memory_per_worker_bytes", AS_BYTES}, {"peak_memory_per_worker_bytes", AS_BYTES}}},
	{"  of its limit: average, most",
	 {{"avg_memory_utilization_percent", AS_PERCENT},
	  {"max_memory_utilization_percent", AS_PERCENT}}},
	{"  pressure (above 80 %)", {{"memory_pressure", AS_YES}}},
	{"threads with a task", {{"avg_cpu_utilization_percent", AS_PERCENT}}},
	{"CPU of a worker (100 % = a core)", {{"avg_worker_cpu_percent", AS_PERCENT}}},
};

static const struct line fine[] = {
	{"CPU of tasks", {{"cpu_time_seconds", AS_SECONDS}, {"cpu_time_seconds_true", AS_SECONDS}}},
	{"not CPU / storage and network",
	 {{"io_time_seconds", AS_SECONDS}, {"io_time_seconds_true", AS_SECONDS}}},
	{"processor: CPU",
	 {{"processor_cpu_time_seconds", AS_SECONDS},
	  {"processor_cpu_time_seconds_true", AS_SECONDS}}},
	{"processor: not CPU", {{"processor_noncpu_time_seconds", AS_SECONDS}}},
	{"processor: CPU share", {{"processor_cpu_percentage", AS_PERCENT}}},
	{"overhead: CPU",
	 {{"overhead_cpu_time_seconds", AS_SECONDS},
	  {"overhead_cpu_time_seconds_true", AS_SECONDS}}},
	{"overhead: not CPU", {{"overhead_noncpu_time_seconds", AS_SECONDS}}},
	{"decompress: Dask's frames / codecs",
	 {{"dask_decompress_seconds", AS_SECONDS}, {"decompression_time_seconds", AS_SECONDS}}},
	{"compress: Dask's frames / codecs",
	 {{"dask_compress_seconds", AS_SECONDS}, {"compression_time_seconds", AS_SECONDS}}},
	{"serialize", {{"serialization_time_seconds", AS_SECONDS}}},
	{"deserialize", {{"deserialization_time_seconds", AS_SECONDS}}},
	{"inputs found in memory", {{"total_bytes_memory_read_dask", AS_BYTES}}},
	{"spilled: read back", {{"dask_spill_read_bytes", AS_BYTES}}},
	{"spilled: written", {{"dask_spill_write_bytes", AS_BYTES}}},
};

#define LINES(a) a, sizeof(a) / sizeof(*(a))

static const struct section sections[] = {
	{"Throughput", {"<", ">", ">", NULL}, LINES(throughput)},
	{"Events", {"<", ">", ">", NULL}, LINES(events)},
	{"Efficiency", {"<", ">coffea: wall", ">true: CPU", NULL}, LINES(efficiency)},
	{"Data volume by layer", {"<", ">counted", ">all attempts", ">calls"}, LINES(volume)},
	{"Resources", {"<", ">", ">", NULL}, LINES(resources)},
};

static const struct section fine_section = {
	"Fine metrics", {"<", ">Dask says", ">crema measured", NULL}, LINES(fine)};

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
			if (l->cell[k].id)
				grid_value(&g, metric_value(f, l->cell[k].id), l->cell[k].as);
			else
				grid_text(&g, "");
		}
	}
	grid_print(&g);
}

/* Where the wall time of counted tasks went. */
static void put_timing(const struct facts *f, struct sink *s, bool colour)
{
	static const struct {
		const char *label, *id;
	} rows[] = {
		{"CPU, own thread", "task_cpu_seconds"},
		{"waiting for a core", "runqueue_wait_seconds"},
		{"waiting for the interpreter lock", "gil_wait_seconds"},
		{"waiting for other locks", "lock_wait_seconds"},
		{"waiting for the network", "network_wait_seconds"},
		{"waiting for storage", "storage_wait_seconds"},
		{"asleep", "sleep_seconds"},
		{"not classified", "unclassified_seconds"},
		{"wall time of tasks", "task_wall_seconds"},
		{"CPU of pool threads, beside it", "task_pool_cpu_seconds"},
	};
	static const char bar[] = "####################";
	struct value v, wall = metric_task_wall_seconds(f);
	struct grid g;
	double share;
	bool known;
	int n;
	size_t i;

	table_section(s, colour, "Timing: where the time of counted tasks went");
	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">", ">of wall", "<", NULL);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		v = metric_value(f, rows[i].id);
		share = value_number(value_ratio(v, wall, 100), &known);
		grid_text(&g, rows[i].label);
		grid_value(&g, v, AS_SECONDS);
		if (known)
			grid_printf(&g, "%.1f %%", share);
		else
			grid_text(&g, "");
		n = known ? (int)lround(fmin(fmax(share, 0), 100) / 5) : 0;
		grid_printf(&g, "%.*s", i + 2 < sizeof(rows) / sizeof(*rows) ? n : 0, bar);
	}
	grid_print(&g);
	for (i = 0, n = 0; i < CREMA_TIMES; i++) {
		if (f->tasks.class_unknown[i])
			sink_printf(s, "%s%s", n++ ? " " : "  not classified includes unknown: ",
				    class_name((unsigned int)i));
	}
	if (n)
		sink_puts(s, "\n");
}

static void put_stack(const struct run *r, struct sink *s)
{
	const struct worker *w = r->workers.n ? r->workers.v[0] : NULL;
	const struct {
		const char *name, *version;
	} stack[] = {
		{"Python", w ? w->python : NULL},
		{"Dask", w ? w->distributed : NULL},
		{"coffea", w ? w->coffea : NULL},
		{"uproot", w ? w->uproot : NULL},
	};
	size_t i;
	int n = 0;

	for (i = 0; i < sizeof(stack) / sizeof(*stack); i++) {
		if (stack[i].version)
			sink_printf(s, "%s%s %.40s", n++ ? ", " : "  ", stack[i].name,
				    stack[i].version);
	}
	if (n)
		sink_puts(s, "\n");
}

void report_tables_head(const struct report *r, struct sink *s, bool colour)
{
	const struct facts *f = r->facts;
	char when[40], a[HUMAN_BYTES];

	sink_printf(s, "%srun %s%s", colour ? "\033[1m" : "", r->run->id, colour ? "\033[0m" : "");
	if (iso_time(r->run->start, when, sizeof(when)))
		sink_printf(s, "   began %.10s %.8s UTC", when, when + 11);
	if (r->run->running)
		sink_puts(s, "   still running");
	sink_printf(s, "\n  wall time %s (%s)\n", human(metric_wall_time(f), AS_SECONDS, a),
		    strcmp(f->wall_time_source, "client") ? "first to last task on the workers"
							  : "measured by the client");
	sink_printf(s, "  %zu of %zu attempts at tasks counted", f->tasks.attempts,
		    f->all.attempts);
	if (f->wasted.attempts)
		sink_printf(s, ", %zu wasted", f->wasted.attempts);
	sink_printf(s, ", %zu worker%s\n", r->run->workers.n, r->run->workers.n == 1 ? "" : "s");
	put_stack(r->run, s);
}

void report_tables_numbers(const struct report *r, struct sink *s, bool colour)
{
	size_t i;

	report_tables_head(r, s, colour);
	if (r->findings)
		findings_text(r->findings, s, colour);
	for (i = 0; i < sizeof(sections) / sizeof(*sections); i++)
		put_section(&sections[i], r->facts, s, colour);
	put_timing(r->facts, s, colour);
	put_section(&fine_section, r->facts, s, colour);
}

void report_tables(const struct report *r, struct sink *s, bool colour)
{
	report_tables_numbers(r, s, colour);
	report_tables_rows(r, s, colour);
	report_tables_health(r, s, colour);
}
