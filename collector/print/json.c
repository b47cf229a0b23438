/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - the JSON of a run. */
#include <math.h>
#include <string.h>

#include "collector/findings/findings.h"
#include "collector/print/print.h"
#include "collector/report/memory.h"

void run_spans_json(const struct run *r, struct json *j, const char *name)
{
	const char *span;
	size_t i, k;

	emit_array(j, name);
	for (i = 0; i < run_span_count(r); i++) {
		span = span_part_owner(r->model, run_span(r, i));
		for (k = 0; k < i && span_part_owner(r->model, run_span(r, k)) != span; k++)
			;
		if (span && k == i)
			emit_value(j, NULL, value_text(span));
	}
	emit_end(j);
}

static void put_others(const struct run *r, struct json *j)
{
	const struct run_others *o = &r->others;
	size_t i;

	emit_value(j, "other_runs", value_uint(o->n));
	emit_array(j, "other_run_ids");
	for (i = 0; i < o->n && i < RUN_OTHERS; i++)
		emit_value(j, NULL, value_text(o->ids[i]));
	emit_end(j);
	emit_value(j, "takes_results", value_uint(o->sources));
	emit_array(j, "takes_results_of");
	for (i = 0; i < o->sources && i < RUN_OTHERS; i++)
		emit_value(j, NULL, value_text(o->source_ids[i]));
	emit_end(j);
	emit_value(j, "results_taken_by", value_text(*o->lent_to ? o->lent_to : NULL));
	emit_value(j, "ran_again", value_uint(r->again));
	run_company_json(r, j);
}

static void put_prefix(void *j, const char *prefix, const char *shown)
{
	emit_value(j, prefix, value_text(shown));
}

static void put_run(const struct run *r, struct json *j)
{
	char text[40];

	emit_value(j, "run", value_text(r->id));
	emit_object(j, "run_info");
	emit_value(j, "name", value_text(r->name));
	emit_value(j, "kind", value_text(run_kind_name(r)));
	emit_value(j, "start", value_real(r->start));
	emit_value(j, "stop", value_real(r->stop));
	emit_value(j, "start_time", value_text(iso_time(r->start, text, sizeof(text))));
	emit_value(j, "stop_time", value_text(iso_time(r->stop, text, sizeof(text))));
	emit_value(j, "averaged_from", value_real(r->from));
	emit_value(j, "averaged_to", value_real(r->to));
	emit_value(j, "running_attempts", value_uint(r->running));
	run_spans_json(r, j, "spans");
	put_others(r, j);
	emit_end(j);
	emit_object(j, "prefix_names");
	run_prefixes_shown(r, put_prefix, j);
	emit_end(j);
}

static void put_file(const struct file_sum *f, struct json *j, const char *name)
{
	const struct file_cell *c;
	struct layer_values v;

	layers_values(f, &v);
	emit_object(j, name);
	for (c = file_cells; c < file_cells + file_cell_count; c++) {
		if (!name || c->group == FILE_COUNTED)
			emit_value(j, c->name, file_cell_value(c, f, &v));
	}
	if (!name)
		file_opened_json(f, j, "opened_by");
	emit_end(j);
}

/* files + imports + files_rest = what the run's tasks read and were charged, or one is unknown. */
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
#define CELL(column, type, value) emit_value(j, #column, value);
#include "collector/report/cells_codec.def"
#undef CELL
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
	run_state_json(&r->facts->state, j, "state");
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
	read_columns_json(&r->columns, j);
	read_lines_json(&r->read_lines, j);
	blocking_json(r->blocking, r->run, j);
	lines_json(&r->lines, r->run, &r->facts->all, j);
	report_timeline_json(r, j);
	wall_json(r->wall, j, "client_wall");
	worker_memory_json(r->run, j);
	tracking_emit(r->facts, j);
	report_completeness_json(r, j);
	if (r->taskvine)
		taskvine_log_json(r->taskvine, j);
	if (r->coffea)
		put_coffea(r->coffea, j);
	emit_end(j);
}
