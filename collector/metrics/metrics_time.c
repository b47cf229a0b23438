/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_time.c - CPU, efficiency, and where the time of tasks went. */
#include "collector/metrics/metrics.h"

#include <string.h>

#include "common/rows.h"

const char *class_name(unsigned int id)
{
	return row_times[id].short_name;
}

#define TEXT(name) #name
#define METRIC_PLAIN(name) TEXT(name)
#define METRIC_ESTIMATED(name) TEXT(name)
#define METRIC_CPU(name) TEXT(task_##name)

const char *class_metric(unsigned int id)
{
	static const char *const metrics[CREMA_TIMES] = {
#define TIME(id, name, column, ...) METRIC_##column(name),
#include "counters.def"
	};

	return metrics[id];
}

/* Each needs its line in metrics.def, which declares its prototype. */
#define CLASS(metric, id)                                                                          \
	struct value metric_##metric(const struct facts *f)                                        \
	{                                                                                          \
		return tally_class(&f->tasks, CREMA_T_##id);                                       \
	}
#define PLAIN(id, name) CLASS(name, id)
#define ESTIMATED(id, name) CLASS(name, id)
#define CPU(id, name) CLASS(task_##name, id)
#define TIME(id, name, column, ...) column(id, name)
#include "counters.def"

struct value metric_total_cpu_time(const struct facts *f)
{
	if (!f->chunks.attempts || f->chunks.processtime_unknown)
		return value_null();
	return value_real(f->chunks.processtime);
}

struct value metric_total_cpu_time_true(const struct facts *f)
{
	return f->chunks.attempts ? tally_cpu(&f->work) : value_null();
}

struct value metric_total_cpu_time_true_all(const struct facts *f)
{
	return tally_cpu(&f->all);
}

struct value metric_event_rate_agg_khz(const struct facts *f)
{
	return value_ratio(metric_total_events(f), metric_total_cpu_time(f), 1e-3);
}

struct value metric_event_rate_agg_khz_true(const struct facts *f)
{
	return value_ratio(metric_total_events(f), metric_total_cpu_time_true(f), 1e-3);
}

struct value metric_avg_cpu_time_per_chunk(const struct facts *f)
{
	return value_ratio(metric_total_cpu_time(f), metric_num_chunks(f), 1);
}

struct value metric_avg_cpu_time_per_chunk_true(const struct facts *f)
{
	return value_ratio(metric_total_cpu_time_true(f), metric_num_chunks(f), 1);
}

/* seconds / (wall_time * total_cores) */
static struct value efficiency(const struct facts *f, struct value seconds)
{
	return value_ratio(value_ratio(seconds, metric_wall_time(f), 1), metric_total_cores(f), 1);
}

struct value metric_core_efficiency(const struct facts *f)
{
	return efficiency(f, metric_total_cpu_time(f));
}

struct value metric_core_efficiency_true(const struct facts *f)
{
	return efficiency(f, metric_total_cpu_time_true(f));
}

struct value metric_fine_cpu_efficiency(const struct facts *f)
{
	return efficiency(f, metric_cpu_time_seconds(f));
}

struct value metric_speedup_factor(const struct facts *f)
{
	return value_ratio(metric_total_cpu_time(f), metric_wall_time(f), 1);
}

struct value metric_speedup_factor_true(const struct facts *f)
{
	return value_ratio(metric_total_cpu_time_true(f), metric_wall_time(f), 1);
}

struct value metric_io_overhead_percent(const struct facts *f)
{
	return value_ratio(metric_io_time_seconds(f), metric_wall_time(f), 100);
}

struct value metric_io_overhead_percent_true(const struct facts *f)
{
	return value_ratio(metric_io_time_seconds_true(f), metric_wall_time(f), 100);
}

struct value metric_efficiency_ratio_percent(const struct facts *f)
{
	return value_ratio(metric_event_rate_wall_khz(f), metric_event_rate_agg_khz(f), 100);
}

struct value metric_efficiency_ratio_percent_true(const struct facts *f)
{
	return value_ratio(metric_event_rate_wall_khz(f), metric_event_rate_agg_khz_true(f), 100);
}

struct value metric_task_wall_seconds(const struct facts *f)
{
	return tally_wall(&f->tasks);
}

struct value metric_task_pool_cpu_seconds(const struct facts *f)
{
	return value_seconds(sum_value(&f->tasks.pool[CREMA_T_cpu]));
}

struct value metric_unclassified_seconds(const struct facts *f)
{
	return tally_unclassified(&f->tasks);
}

struct value metric_unclassified_over_50ms_seconds(const struct facts *f)
{
	return f->tasks.unclassified_unknown ? value_null()
					     : value_real(f->tasks.unclassified_long);
}

void metric_unclassified_includes(const struct facts *f, const char *name, struct json *j)
{
	int i;

	emit_array(j, name);
	for (i = 0; i < CREMA_TIMES; i++) {
		if (tally_lacks(&f->tasks, (enum crema_time_id)i))
			emit_value(j, NULL, value_text(class_name((unsigned int)i)));
	}
	emit_end(j);
}

struct value metric_cpu_time_seconds_true(const struct facts *f)
{
	return tally_cpu(&f->tasks);
}

struct value metric_io_time_seconds_true(const struct facts *f)
{
	return value_plus(metric_storage_wait_seconds(f), metric_network_wait_seconds(f));
}

struct value metric_compression_time_seconds(const struct facts *f)
{
	return value_seconds(sum_value(&f->tasks.count[CREMA_C_compress_cpu_ns]));
}

struct value metric_decompression_time_seconds(const struct facts *f)
{
	return value_seconds(sum_value(&f->tasks.count[CREMA_C_decompress_cpu_ns]));
}

struct value metric_decompression_wall_seconds(const struct facts *f)
{
	return value_seconds(sum_value(&f->tasks.count[CREMA_C_decompress_wall_ns]));
}

struct value metric_total_compression_overhead_seconds(const struct facts *f)
{
	return value_plus(metric_compression_time_seconds(f), metric_decompression_time_seconds(f));
}

struct value metric_processor_cpu_time_seconds_true(const struct facts *f)
{
	return tally_cpu(&f->work);
}

struct value metric_overhead_cpu_time_seconds_true(const struct facts *f)
{
	return value_minus(tally_cpu(&f->tasks), tally_cpu(&f->work));
}
