/* SPDX-License-Identifier: BSD-3-Clause */
/* report_json.c - the JSON of a run. */
#include <math.h>
#include <string.h>

#include "collector/findings/findings.h"
#include "collector/report/report_parts.h"

static void put_run(const struct run *r, struct json *j)
{
	static const char *const kinds[] = {"coffea", "preprocessing", "other"};
	char text[40];
	size_t i;

	emit_value(j, "run", value_text(r->id));
	emit_object(j, "run_info");
	emit_value(j, "kind", value_text(kinds[r->kind]));
	emit_value(j, "start", value_real(r->start));
	emit_value(j, "stop", value_real(r->stop));
	emit_value(j, "start_time", value_text(iso_time(r->start, text, sizeof(text))));
	emit_value(j, "stop_time", value_text(iso_time(r->stop, text, sizeof(text))));
	emit_value(j, "running_attempts", value_uint(r->running));
	emit_array(j, "spans");
	for (i = 0; i < sizeof(r->spans) / sizeof(*r->spans); i++) {
		if (r->spans[i])
			emit_value(j, NULL, value_text(r->spans[i]));
	}
	emit_end(j);
	emit_end(j);
}

/* read_bytes = reread + read_basket + outside_basket; = large_read + small_read */
static void put_layers(const struct file_sum *f, struct json *j)
{
	const struct file_layers *l = &f->layers;
	struct layer_values v;

	layers_values(l, f->read_bytes, f->mapped_bytes, &v);
	emit_value(j, "name", value_text(f->name));
	emit_value(j, "chunks", value_uint(l->chunks));
	emit_value(j, "requested_bytes", l->requested);
	emit_value(j, "unique_bytes", v.unique_bytes);
	emit_value(j, "reread_bytes", v.reread_bytes);
	emit_value(j, "worker_reread_bytes", v.worker_reread_bytes);
	emit_value(j, "basket_calls", l->basket_calls);
	emit_value(j, "basket_bytes", l->basket_bytes);
	emit_value(j, "basket_raw_bytes", l->basket_raw_bytes);
	emit_value(j, "unique_basket_bytes", v.unique_basket_bytes);
	emit_value(j, "read_basket_bytes", v.read_basket_bytes);
	emit_value(j, "outside_basket_bytes", v.outside_bytes);
	emit_value(j, "large_read_bytes", l->large_read_bytes);
	emit_value(j, "cached_bytes", l->cached_bytes);
	emit_value(j, "readahead_bytes", l->readahead_bytes);
	emit_value(j, "small_read_bytes", v.small_read_bytes);
	emit_value(j, "read_amplification", v.amplification);
	emit_value(j, "requested_amplification", v.requested_amplification);
}

static void put_file(const struct file_sum *f, struct json *j, const char *name)
{
	emit_object(j, name);
	if (!name) {
		emit_value(j, "path", value_text(f->path));
		emit_value(j, "filesystem", value_text(f->filesystem));
		emit_value(j, "storage", value_text(f->storage));
		emit_value(j, "size_bytes", f->size_bytes);
	}
	emit_value(j, "read_calls", f->read_calls);
	emit_value(j, "read_bytes", f->read_bytes);
	emit_value(j, "write_calls", f->write_calls);
	emit_value(j, "write_bytes", f->write_bytes);
	emit_value(j, "mapped_bytes", f->mapped_bytes);
	emit_value(j, "storage_read_bytes", f->storage_read_bytes);
	emit_value(j, "storage_wait_seconds", value_seconds(f->storage_wait_ns));
	if (!name) {
		emit_value(j, "requests", f->requests);
		emit_value(j, "network_read_bytes", f->network_read_bytes);
		emit_value(j, "latency_sum_s", value_seconds(f->latency_sum_ns));
		emit_value(j, "latency_max_s", value_seconds(f->latency_max_ns));
		put_layers(f, j);
	}
	emit_end(j);
}

/* files + imports + files_rest = what the run's tasks read and were charged. */
static void put_files(const struct report *r, struct json *j)
{
	size_t i;

	emit_array(j, "files");
	for (i = 0; i < r->files.n; i++)
		put_file(&r->files.v[i], j, NULL);
	emit_end(j);
	put_file(&r->imports, j, "imports");
	put_file(&r->rest, j, "files_rest");
}

static void put_codecs(const struct report *r, struct json *j)
{
	const struct codec_sum *c;
	size_t i;

	emit_array(j, "codecs");
	for (i = 0; i < r->codecs.n; i++) {
		c = &r->codecs.v[i];
		emit_object(j, NULL);
		emit_value(j, "codec", value_text(c->codec));
		emit_value(j, "library", value_text(c->library));
		emit_value(j, "calls", c->decompress.calls);
		emit_value(j, "in_bytes", c->decompress.in_bytes);
		emit_value(j, "out_bytes", c->decompress.out_bytes);
		emit_value(j, "cpu_seconds", value_seconds(c->decompress.cpu_ns));
		emit_value(j, "wall_seconds", value_seconds(c->decompress.wall_ns));
		emit_value(j, "compress_calls", c->compress.calls);
		emit_value(j, "compress_in_bytes", c->compress.in_bytes);
		emit_value(j, "compress_out_bytes", c->compress.out_bytes);
		emit_value(j, "compress_cpu_seconds", value_seconds(c->compress.cpu_ns));
		emit_value(j, "compress_wall_seconds", value_seconds(c->compress.wall_ns));
		emit_end(j);
	}
	emit_end(j);
}

static void put_coffea(const struct coffea_report *c, struct json *j)
{
	const struct coffea_field *f;
	size_t i;

	emit_object(j, "coffea_report");
	emit_value(j, "problem", value_text(*c->line ? c->line : NULL));
	for (i = 0; c->read && i < COFFEA_FIELDS; i++) {
		f = &c->field[i];
		emit_object(j, f->name);
		emit_value(j, "coffea", f->theirs);
		emit_value(j, "workers", f->ours);
		emit_value(j, "agrees",
			   f->verdict == COFFEA_UNKNOWN ? value_null()
							: value_bool(f->verdict == COFFEA_AGREES));
		emit_end(j);
	}
	emit_end(j);
}

void report_json(const struct report *r, struct json *j)
{
	emit_object(j, NULL);
	put_run(r->run, j);
	if (r->findings)
		findings_json(r->findings, j);
	emit_object(j, "metrics");
	metrics_emit(r->facts, j);
	emit_end(j);
	report_task_rows(r->run, j);
	report_chunk_rows(r->run, j);
	report_workers_json(r, j);
	put_files(r, j);
	put_codecs(r, j);
	report_bytes_json(r, j);
	report_servers_json(r, j);
	sections_json(&r->sections, j);
	blocking_json(r->blocking, r->run, j);
	report_timeline_json(r, j);
	tracking_emit(r->facts, j);
	report_completeness_json(r, j);
	if (r->taskvine)
		taskvine_log_json(r->taskvine, j);
	if (r->coffea)
		put_coffea(r->coffea, j);
	emit_end(j);
}
