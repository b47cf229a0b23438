/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_workflow.c - throughput, events, bytes by layer, wasted work. */
#include "collector/metrics/metrics.h"

#include <math.h>
#include <string.h>

METRIC_COUNT(read_bytes, tasks, read_bytes)
METRIC_COUNT(read_bytes_all, all, read_bytes)
METRIC_COUNT(read_calls, tasks, read_calls)
METRIC_COUNT(late_bytes, tasks, late_bytes)
METRIC_COUNT(import_read_bytes, tasks, import_read_bytes)
METRIC_COUNT(mapped_bytes, tasks, mapped_bytes)
METRIC_COUNT(disk_write_bytes, tasks, storage_write_bytes)
METRIC_COUNT(disk_write_bytes_all, all, storage_write_bytes)
METRIC_COUNT(network_read_bytes, tasks, network_read_bytes)
METRIC_COUNT(network_write_bytes, tasks, network_write_bytes)
METRIC_COUNT(write_bytes, tasks, write_bytes)
METRIC_COUNT(bytes_read_compressed, chunks, decompress_in_bytes)
METRIC_COUNT(bytes_read_uncompressed, chunks, decompress_out_bytes)
METRIC_COUNT(bytes_read_compressed_all, chunks_all, decompress_in_bytes)
METRIC_COUNT(bytes_read_uncompressed_all, chunks_all, decompress_out_bytes)
METRIC_COUNT(decompress_calls, chunks, decompress_calls)
METRIC_COUNT(wasted_read_bytes, wasted, read_bytes)

struct value metric_disk_read_bytes(const struct facts *f)
{
	return sum_value(&f->tasks.storage_read);
}

struct value metric_disk_read_bytes_all(const struct facts *f)
{
	return sum_value(&f->all.storage_read);
}

struct value metric_storage_known_bytes(const struct facts *f)
{
	return sum_known(&f->tasks.storage_known);
}

struct value metric_compression_ratio(const struct facts *f)
{
	return value_ratio(metric_bytes_read_uncompressed(f), metric_bytes_read_compressed(f), 1);
}

struct value metric_total_bytes_read_coffea(const struct facts *f)
{
	return f->chunks.attempts ? sum_value(&f->chunks.bytesread) : value_null();
}

struct value metric_wall_time(const struct facts *f)
{
	return value_real(f->wall_time);
}

struct value metric_state(const struct facts *f)
{
	return value_text(run_state_name(f->state.id));
}

struct value metric_wall_time_source(const struct facts *f)
{
	return value_text(isnan(f->wall_time) ? NULL : f->wall_time_source);
}

struct value metric_workers_wall_time(const struct facts *f)
{
	return value_real(f->run->wall);
}

struct value metric_averaged_seconds(const struct facts *f)
{
	const struct run *r = f->run;

	return value_real(run_has_block(r) ? r->to - r->from : r->wall);
}

/* a / wall_time * factor */
static struct value per_wall(const struct facts *f, struct value a, double factor)
{
	return value_ratio(a, metric_wall_time(f), factor);
}

struct value metric_overall_rate_gbps(const struct facts *f)
{
	return per_wall(f, metric_total_bytes_read_coffea(f), 8 / 1e9);
}

struct value metric_overall_rate_mbs(const struct facts *f)
{
	return per_wall(f, metric_total_bytes_read_coffea(f), 1 / 1e6);
}

struct value metric_read_rate_mbs(const struct facts *f)
{
	return per_wall(f, metric_read_bytes(f), 1 / 1e6);
}

struct value metric_storage_read_rate_mbs(const struct facts *f)
{
	return per_wall(f, metric_disk_read_bytes(f), 1 / 1e6);
}

struct value metric_decompressed_rate_mbs(const struct facts *f)
{
	return per_wall(f, metric_bytes_read_uncompressed(f), 1 / 1e6);
}

struct value metric_storage_write_rate_mbs(const struct facts *f)
{
	return per_wall(f, metric_disk_write_bytes(f), 1 / 1e6);
}

struct value metric_network_read_rate_mbs(const struct facts *f)
{
	return per_wall(f, metric_network_read_bytes(f), 1 / 1e6);
}

struct value metric_network_write_rate_mbs(const struct facts *f)
{
	return per_wall(f, metric_network_write_bytes(f), 1 / 1e6);
}

struct value metric_total_events(const struct facts *f)
{
	return f->chunks.attempts ? sum_value(&f->chunks.events) : value_null();
}

struct value metric_event_rate_wall_khz(const struct facts *f)
{
	return per_wall(f, metric_total_events(f), 1e-3);
}

struct value metric_event_rate_core_hz(const struct facts *f)
{
	return value_ratio(per_wall(f, metric_total_events(f), 1), metric_total_cores(f), 1);
}

struct value metric_event_rate_core_khz(const struct facts *f)
{
	return value_ratio(per_wall(f, metric_total_events(f), 1), metric_total_cores(f), 1e-3);
}

struct value metric_num_chunks(const struct facts *f)
{
	return value_uint(f->chunks.attempts);
}

struct value metric_num_chunks_all(const struct facts *f)
{
	return value_uint(f->chunks_all.attempts);
}

struct value metric_num_failed_chunks(const struct facts *f)
{
	return value_uint(f->chunks_failed);
}

struct value metric_num_tasks(const struct facts *f)
{
	return value_uint(f->tasks.attempts);
}

struct value metric_num_attempts(const struct facts *f)
{
	return value_uint(f->all.attempts);
}

struct value metric_wasted_attempts(const struct facts *f)
{
	return value_uint(f->wasted.attempts);
}

struct value metric_wasted_wall_seconds(const struct facts *f)
{
	return value_seconds(sum_value(&f->wasted.wall_ns));
}

struct value metric_wasted_cpu_seconds(const struct facts *f)
{
	return tally_cpu(&f->wasted);
}

void metric_waste(const struct facts *f, const char *name, struct json *j)
{
	static const char *const reasons[] = {"killed",	    "lost",   "erred",	 "retried",
					      "recomputed", "stolen", "shutdown"};
	const struct run *r = f->run;
	struct tally t;
	size_t i, k;

	emit_object(j, name);
	for (k = 0; k < sizeof(reasons) / sizeof(*reasons); k++) {
		memset(&t, 0, sizeof(t));
		for (i = 0; i < r->attempts.n; i++) {
			if (r->attempts.v[i]->waste_reason &&
			    !strcmp(r->attempts.v[i]->waste_reason, reasons[k]))
				tally_add(&t, r->attempts.v[i]);
		}
		emit_object(j, reasons[k]);
		emit_value(j, "attempts", value_uint(t.attempts));
		emit_value(j, "wall_seconds", value_seconds(sum_value(&t.wall_ns)));
		emit_value(j, "cpu_seconds", tally_cpu(&t));
		emit_value(j, "read_bytes", sum_value(&t.count[CREMA_C_read_bytes]));
		emit_value(j, "storage_read_bytes", sum_value(&t.storage_read));
		emit_end(j);
	}
	emit_end(j);
}
