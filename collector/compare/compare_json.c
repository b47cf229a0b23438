/* SPDX-License-Identifier: BSD-3-Clause */
/* compare_json.c - a comparison of runs, for programs. */
#include <stdio.h>
#include <string.h>

#include "collector/compare/compare.h"
#include "common/rows.h"

/* For each run, with the names from docs/metrics.md. */
static const char *const ids[] = {
	"wall_time",
	"total_events",
	"num_chunks",
	"num_columns",
	"chunk_events_mean",
	"chunk_events_max",
	"avg_workers",
	"peak_workers",
	"cores_per_worker",
	"total_cores",
	"task_wall_seconds",
	"task_cpu_seconds",
	"task_pool_cpu_seconds",
#define CPU(name)
#define PLAIN(name) #name,
#define ESTIMATED(name) #name,
#define TIME(id, name, column, ...) column(name)
#include "counters.def"
	"unclassified_seconds",
	"idle_thread_seconds",
	"worker_imbalance",
	"core_efficiency",
	"core_efficiency_true",
	"cpu_time_per_event_seconds",
	"decompression_time_seconds",
	"preprocessing_task_seconds",
	"event_rate_wall_khz",
	"event_rate_core_hz",
	"overall_rate_mbs",
	"read_rate_mbs",
	"storage_read_rate_mbs",
	"decompressed_rate_mbs",
	"total_bytes_read_coffea",
	"read_bytes",
	"network_read_bytes",
	"disk_read_bytes",
	"basket_bytes",
	"bytes_read_uncompressed",
	"requested_outside_percent",
	"chunk_wall_mean_seconds",
	"chunk_wall_max_seconds",
	"wasted_attempts",
	"wasted_wall_seconds",
};

static void put_run(const struct compared *r, struct json *j)
{
	size_t i;

	emit_object(j, NULL);
	emit_value(j, "run", value_text(r->run->id));
	emit_value(j, "directory", value_text(r->dir));
	emit_value(j, "running_attempts", value_uint(r->run->running));
	emit_value(j, "least_workers", compared_least_workers(r));
	emit_value(j, "workers_fixed", value_bool(r->fixed));
	emit_value(j, "task_wait_seconds", compared_waiting(r));
	emit_value(j, "overhead_task_seconds", compared_overhead(r));
	for (i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		emit_value(j, ids[i], metric_value(&r->facts, ids[i]));
	metric_per_worker(&r->facts, "per_worker", j);
	emit_end(j);
}

/* "gil_wait": its column without the unit */
static void put_grew(int class, struct json *j)
{
	char name[40];

	if (class == COMPARE_NONE || class == COMPARE_IDLE) {
		emit_value(j, "grew_most", value_text(class == COMPARE_IDLE ? "idle" : NULL));
		return;
	}
	snprintf(name, sizeof(name), "%.*s",
		 (int)(strlen(row_times[class].name) - strlen("_seconds")), row_times[class].name);
	emit_value(j, "grew_most", value_text(name));
}

static void put_points(const struct curve_point *p, size_t n, bool scaling, struct json *j)
{
	size_t i;

	for (i = 0; i < n; i++) {
		emit_object(j, NULL);
		emit_value(j, "run", value_text(p[i].run->run->id));
		emit_value(j, "total_cores", metric_value(&p[i].run->facts, "total_cores"));
		emit_value(j, "chunk_events_mean",
			   metric_value(&p[i].run->facts, "chunk_events_mean"));
		emit_value(j, "event_rate_wall_khz", value_real(p[i].run->rate / 1000));
		if (scaling) {
			emit_value(j, "base", value_text(p[i].base->run->id));
			emit_value(j, "speedup", p[i].speedup);
			emit_value(j, "ideal_speedup", p[i].ideal);
			emit_value(j, "scaling_efficiency", p[i].efficiency);
			put_grew(p[i].grew, j);
			emit_value(j, "grew_seconds_per_million_events", p[i].grew_seconds);
		} else {
			emit_value(j, "best", value_bool(p[i].best));
		}
		emit_end(j);
	}
}

void compare_json(const struct comparison *c, struct json *j, const char *name)
{
	size_t i;

	emit_object(j, name);
	emit_array(j, "runs");
	for (i = 0; i < c->n; i++)
		put_run(&c->run[i], j);
	emit_end(j);
	emit_value(j, "best", value_text(c->best ? c->best->run->id : NULL));
	emit_value(j, "next", value_text(c->next ? c->next->run->id : NULL));
	emit_value(j, "best_per_core",
		   value_text(c->best_per_core ? c->best_per_core->run->id : NULL));
	emit_value(j, "refused", value_text(*c->refused ? c->refused : NULL));
	emit_value(j, "differs", value_text(*c->content ? c->content : NULL));
	compare_functions_json(c, j);
	emit_array(j, "scaling");
	put_points(c->scaling, c->scaling_count, true, j);
	emit_end(j);
	emit_array(j, "chunk_sizes");
	put_points(c->chunks, c->chunks_count, false, j);
	emit_end(j);
	emit_end(j);
}
