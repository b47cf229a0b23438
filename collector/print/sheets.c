/* SPDX-License-Identifier: BSD-3-Clause */
/* sheets.c - a run as flat tables. */
#include "collector/print/sheets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/findings/findings.h"
#include "collector/print/sheet_maker.h"
#include "collector/report/columns.h"
#include "collector/report/memory.h"

#define COLUMN(name, type, value) sheet_column_add(k, #name, VALUE_##type, NULL);
#define LIST_COLUMN(name, put) sheet_column_add(k, #name, VALUE_TEXT, NULL);

/* The run: "run", "run_info" and the numbers of "metrics". */
static void run_columns(struct sheet_maker *k)
{
	const struct metric *m;
	size_t i;

	sheet_column_add(k, "name", VALUE_TEXT, NULL);
	sheet_column_add(k, "kind", VALUE_TEXT, NULL);
	sheet_column_add(k, "start", VALUE_REAL, NULL);
	sheet_column_add(k, "stop", VALUE_REAL, NULL);
	sheet_column_add(k, "start_time", VALUE_TEXT, "");
	sheet_column_add(k, "stop_time", VALUE_TEXT, "");
	sheet_column_add(k, "averaged_from", VALUE_REAL, NULL);
	sheet_column_add(k, "averaged_to", VALUE_REAL, NULL);
	sheet_column_add(k, "running_attempts", VALUE_UINT, NULL);
	sheet_column_add(k, "spans", VALUE_TEXT, NULL);
	for (i = 0; i < metric_count; i++) {
		m = &metric_table[i];
		if (m->kind != METRIC_TREE)
			sheet_column_add(k, m->id, m->kind == METRIC_TEXT ? VALUE_TEXT : VALUE_NULL,
					 m->unit);
	}
}

static void run_rows(struct sheet_maker *k)
{
	const struct report *r = k->report;
	char start[40], stop[40];
	size_t i;

	sheet_row_begin(k);
	sheet_cell(k, value_text(r->run->name));
	sheet_cell(k, value_text(run_kind_name(r->run)));
	sheet_cell(k, value_real(r->run->start));
	sheet_cell(k, value_real(r->run->stop));
	sheet_cell(k, value_text(iso_time(r->run->start, start, sizeof(start))));
	sheet_cell(k, value_text(iso_time(r->run->stop, stop, sizeof(stop))));
	sheet_cell(k, value_real(r->run->from));
	sheet_cell(k, value_real(r->run->to));
	sheet_cell(k, value_uint(r->run->running));
	PUT_LIST(spans, run_spans_json(r->run, j, member))
	for (i = 0; i < metric_count; i++) {
		if (metric_table[i].kind != METRIC_TREE)
			sheet_cell(k, metric_table[i].num(r->facts));
	}
	sheet_row_end(k);
}

static void worker_columns(struct sheet_maker *k)
{
#define CELL COLUMN
#define LIST LIST_COLUMN
#include "collector/report/cells_worker.def"
#undef CELL
#undef LIST
}

static void worker_rows(struct sheet_maker *k)
{
	const struct run *run = k->report->run;
	const struct host_sample *h;
	const struct worker *w;
	struct balance balance, *b = &balance;
	size_t i;

	for (i = 0; i < run->workers.n; i++) {
		w = run->workers.v[i];
		h = w->hosts.n ? &w->hosts.v[w->hosts.n - 1] : NULL;
		worker_balance(w, b);
		sheet_row_begin(k);
#define CELL(name, type, value) sheet_cell(k, value);
#define LIST PUT_LIST
#include "collector/report/cells_worker.def"
#undef CELL
#undef LIST
		if (sheet_row_end(k))
			return;
	}
}

static void table_columns(struct sheet_maker *k, const struct column *c, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		sheet_column_add(k, c[i].name, c[i].type, NULL);
}

static void table_cells(struct sheet_maker *k, const struct column *c, size_t n,
			const struct attempt *a, const struct classes *classes)
{
	size_t i;

	for (i = 0; i < n; i++)
		sheet_cell(k, column_value(&c[i], a, classes));
}

static void task_columns_of(struct sheet_maker *k)
{
	table_columns(k, task_columns, task_column_count);
	sheet_column_add(k, "unclassified_includes", VALUE_TEXT, NULL);
}

static void chunk_columns_of(struct sheet_maker *k)
{
	task_columns_of(k);
	table_columns(k, chunk_columns, chunk_column_count);
	sheet_column_add(k, "columns", VALUE_TEXT, NULL);
	sheet_column_add(k, "sections", VALUE_TEXT, NULL);
}

static void attempt_rows(struct sheet_maker *k, bool chunks)
{
	const struct run *run = k->report->run;
	const struct attempt *a;
	struct classes c;
	size_t i;

	for (i = 0; i < run->attempts.n; i++) {
		a = run->attempts.v[i];
		if (chunks && !attempt_is_chunk(a))
			continue;
		attempt_classes(a, &c);
		sheet_row_begin(k);
		table_cells(k, task_columns, task_column_count, a, &c);
		PUT_LIST(unclassified_includes, task_classes_json(&c, j, member))
		if (chunks) {
			table_cells(k, chunk_columns, chunk_column_count, a, &c);
			PUT_LIST(columns, chunk_lines_json(j, member, a->columns))
			PUT_LIST(sections, chunk_sections_json(j, member, c.detail.sections))
		}
		if (sheet_row_end(k))
			return;
	}
}

static void task_rows(struct sheet_maker *k)
{
	attempt_rows(k, false);
}

static void chunk_rows(struct sheet_maker *k)
{
	attempt_rows(k, true);
}

static void file_columns(struct sheet_maker *k)
{
	size_t i;

	sheet_column_add(k, "kind", VALUE_TEXT, NULL);
	for (i = 0; i < file_cell_count; i++)
		sheet_column_add(k, file_cells[i].name, file_cells[i].type, NULL);
	sheet_column_add(k, "opened_by", VALUE_TEXT, NULL);
}

static void file_row(struct sheet_maker *k, const struct file_sum *f, const char *kind)
{
	const struct file_cell *c;
	struct layer_values v;
	bool data = !strcmp(kind, "data");

	layers_values(f, &v);
	sheet_row_begin(k);
	sheet_cell(k, value_text(kind));
	for (c = file_cells; c < file_cells + file_cell_count; c++)
		sheet_cell(k, data || c->group == FILE_COUNTED ? file_cell_value(c, f, &v)
							       : value_null());
	if (!data)
		sheet_cell(k, value_null());
	else
		PUT_LIST(opened_by, file_opened_json(f, j, member))
	sheet_row_end(k);
}

static void file_rows(struct sheet_maker *k)
{
	const struct report *r = k->report;
	size_t i;

	for (i = 0; i < r->files.n && !k->rc; i++)
		file_row(k, &r->files.v[i], "data");
	if (!k->rc)
		file_row(k, &r->imports, "imports");
	if (!k->rc)
		file_row(k, &r->rest, "rest");
}

static void finding_columns(struct sheet_maker *k)
{
	char cost[FINDING_COST_BYTES];

	finding_cells(&(struct finding){.id = NULL}, cost, sheet_put_column, k);
	sheet_column_add(k, "evidence", VALUE_TEXT, NULL);
}

static void finding_rows(struct sheet_maker *k)
{
	const struct findings *found = k->report->findings;
	char cost[FINDING_COST_BYTES];

	for (size_t i = 0; found && i < found->n && !k->rc; i++) {
		sheet_row_begin(k);
		finding_cells(&found->v[i], cost, sheet_put_cell, k);
		PUT_LIST(evidence, finding_evidence_json(&found->v[i], j, member))
		sheet_row_end(k);
	}
}

static void codec_columns(struct sheet_maker *k)
{
#define CELL COLUMN
#include "collector/report/cells_codec.def"
#undef CELL
}

static void codec_rows(struct sheet_maker *k)
{
	const struct codec_sum *c;
	size_t i;

	for (i = 0; i < k->report->codecs.n && !k->rc; i++) {
		c = &k->report->codecs.v[i];
		sheet_row_begin(k);
#define CELL(name, type, value) sheet_cell(k, value);
#include "collector/report/cells_codec.def"
#undef CELL
		sheet_row_end(k);
	}
}

static void server_columns(struct sheet_maker *k)
{
#define CELL COLUMN
#define LIST LIST_COLUMN
#include "collector/report/cells_server.def"
#undef CELL
#undef LIST
}

static void server_rows(struct sheet_maker *k)
{
	const struct server_sum *s;
	size_t i;

	for (i = 0; i < k->report->servers.n && !k->rc; i++) {
		s = &k->report->servers.v[i];
		sheet_row_begin(k);
#define CELL(name, type, value) sheet_cell(k, value);
#define LIST PUT_LIST
#include "collector/report/cells_server.def"
#undef CELL
#undef LIST
		sheet_row_end(k);
	}
}

static void read_column_columns(struct sheet_maker *k)
{
#define CELL COLUMN
#define LIST LIST_COLUMN
#include "collector/report/cells_column.def"
#undef CELL
#undef LIST
}

static void read_column_rows(struct sheet_maker *k)
{
	const struct read_columns *c = &k->report->columns;
	const struct column_sum *s;
	size_t i;

	for (i = 0; i < c->v.n && !k->rc; i++) {
		s = c->v.v[i];
		sheet_row_begin(k);
#define CELL(name, type, value) sheet_cell(k, value);
#define LIST PUT_LIST
#include "collector/report/cells_column.def"
#undef CELL
#undef LIST
		sheet_row_end(k);
	}
}

static void read_line_columns(struct sheet_maker *k)
{
#define CELL COLUMN
#define LIST LIST_COLUMN
#include "collector/report/cells_read_line.def"
#undef CELL
#undef LIST
}

static void read_line_rows(struct sheet_maker *k)
{
	const struct read_lines *l = &k->report->read_lines;

	for (size_t i = 0; i < l->v.n && !k->rc; i++) {
		const struct read_line *s = l->v.v[i];

		sheet_row_begin(k);
#define CELL(name, type, value) sheet_cell(k, value);
#define LIST PUT_LIST
#include "collector/report/cells_read_line.def"
#undef CELL
#undef LIST
		sheet_row_end(k);
	}
}

static void sample_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "worker_id", VALUE_TEXT, NULL);
	sheet_column_add(k, "worker", VALUE_TEXT, NULL);
	sheet_column_add(k, "source", VALUE_TEXT, NULL);
#define CELL(name, type, process, dask, host) sheet_column_add(k, #name, VALUE_##type, NULL);
#include "collector/report/cells_sample.def"
#undef CELL
}

static void sample_begin(struct sheet_maker *k, const struct worker *w, const char *source)
{
	sheet_row_begin(k);
	sheet_cell(k, value_text(w->hex));
	sheet_cell(k, value_text(w->label));
	sheet_cell(k, value_text(source));
}

#define NONE value_null()
#define EACH(member, pointer, source, cells)                                                       \
	for (i = 0; i < w->member.n && !k->rc; i++) {                                              \
		pointer = &w->member.v[i];                                                         \
		if (!tracking_has(k->report->run, w->member.v[i].time))                            \
			continue;                                                                  \
		sample_begin(k, w, source);                                                        \
		cells(k, pointer);                                                                 \
		sheet_row_end(k);                                                                  \
	}

static void process_cells(struct sheet_maker *k, const struct sample *s)
{
#define CELL(name, type, process, dask, host) sheet_cell(k, process);
#include "collector/report/cells_sample.def"
#undef CELL
}

static void dask_cells(struct sheet_maker *k, const struct probe *p)
{
#define CELL(name, type, process, dask, host) sheet_cell(k, dask);
#include "collector/report/cells_sample.def"
#undef CELL
}

static void host_cells(struct sheet_maker *k, const struct host_sample *h)
{
#define CELL(name, type, process, dask, host) sheet_cell(k, host);
#include "collector/report/cells_sample.def"
#undef CELL
}

static void sample_rows(struct sheet_maker *k)
{
	const struct run *run = k->report->run;
	const struct host_sample *h;
	const struct sample *s;
	const struct probe *p;
	const struct worker *w;
	size_t i, n;

	for (n = 0; n < run->workers.n && !k->rc; n++) {
		w = run->workers.v[n];
		EACH(samples, s, "process", process_cells)
		EACH(probes, p, "dask", dask_cells)
		EACH(hosts, h, "host", host_cells)
	}
}

static void worker_memory_columns(struct sheet_maker *k)
{
#define CELL(name, type, value) sheet_column_add(k, #name, VALUE_##type, NULL);
#include "collector/report/cells_memory.def"
}

static void worker_memory_rows(struct sheet_maker *k)
{
	const struct run *run = k->report->run;

	for (size_t i = 0; i < run->workers.n; i++) {
		struct worker_memory row = worker_memory(run, run->workers.v[i]), *m = &row;

		sheet_row_begin(k);
#define CELL(name, type, value) sheet_cell(k, value);
#include "collector/report/cells_memory.def"
		sheet_row_end(k);
	}
}

static void wall_columns(struct sheet_maker *k)
{
	sheet_column_add(k, "part", VALUE_TEXT, NULL);
	sheet_column_add(k, "seconds", VALUE_REAL, "s");
}

static void wall_row(struct sheet_maker *k, const char *part, struct value seconds)
{
	sheet_row_begin(k);
	sheet_cell(k, value_text(part));
	sheet_cell(k, seconds);
	sheet_row_end(k);
}

static void wall_rows(struct sheet_maker *k)
{
	const struct wall *w = k->report->wall;
	size_t i;

	if (!w)
		return;
	for (i = 0; i < WALL_PARTS; i++)
		wall_row(k, wall_parts[i].id, w->part[i]);
	wall_row(k, "rest", value_real(w->rest));
}

static const struct {
	const char *name, *key, *index[SHEET_INDICES];
	void (*columns)(struct sheet_maker *), (*rows)(struct sheet_maker *);
} sheets[] = {
	{"runs", "run", {NULL}, run_columns, run_rows},
	{"workers", "run, id", {"worker"}, worker_columns, worker_rows},
	{"tasks",
	 "run, worker_id, attempt",
	 {"key", "prefix", "start"},
	 task_columns_of,
	 task_rows},
	{"chunks",
	 "run, worker_id, attempt",
	 {"key", "chunk_id", "dataset", "filename", "start"},
	 chunk_columns_of,
	 chunk_rows},
	{"files", "", {"path", "name"}, file_columns, file_rows},
	{"codecs", "run, codec, library", {NULL}, codec_columns, codec_rows},
	{"servers", "", {"server"}, server_columns, server_rows},
	{"read_columns", "", {"column", "dataset"}, read_column_columns, read_column_rows},
	{"read_lines", "", {"file"}, read_line_columns, read_line_rows},
	{"findings", "", {"id"}, finding_columns, finding_rows},
	{"samples", "", {"worker_id", "time"}, sample_columns, sample_rows},
	{"sections", "", {"section"}, section_columns, section_rows},
	{"sections_by_dataset",
	 "",
	 {"section", "dataset"},
	 section_dataset_columns,
	 section_dataset_rows},
	{"memory_sections", "", {"name"}, memory_columns, memory_rows},
	{"custom_metrics", "", {"name"}, custom_columns, custom_rows},
	{"blocking", "", {NULL}, blocking_columns, blocking_rows},
	{"lines", "", {"file"}, line_columns, line_rows},
	{"stacks", "", {"prefix"}, stack_columns, stack_rows},
	{"worker_memory", "run, worker_id", {NULL}, worker_memory_columns, worker_memory_rows},
	{"client_wall", "run, part", {NULL}, wall_columns, wall_rows},
	{"timeline", "run, time", {NULL}, timeline_columns, timeline_rows},
	{"tracking", "", {"series", "worker_id", "time"}, tracking_columns, tracking_rows},
	{"metric_lists", "run, metric", {NULL}, list_columns, list_rows},
};

_Static_assert(sizeof(sheets) / sizeof(*sheets) <= SHEETS, "SHEETS bounds what writers open");

int sheets_write(const struct report *r, const struct sheet_way *way)
{
	struct sheet_maker *k = calloc(1, sizeof(*k));
	size_t i;
	int rc = 0;

	if (!k)
		return -ENOMEM;
	k->report = r;
	k->way = way;
	for (i = 0; i < sizeof(sheets) / sizeof(*sheets) && !rc; i++)
		rc = sheet_make(k, sheets[i].name, sheets[i].key, sheets[i].index,
				sheets[i].columns, sheets[i].rows);
	sheet_release(k);
	free(k);
	return rc;
}
