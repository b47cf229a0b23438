/* SPDX-License-Identifier: BSD-3-Clause */
/* page_data.c - the bounded data of a run that the page shows; its small parts. */
#include <inttypes.h>
#include <string.h>

#include "collector/findings/findings.h"
#include "collector/metrics/budget.h"
#include "collector/page/page.h"
#include "common/rows.h"
#include "version.h"

#define NOTES 20

static void put_run(const struct report *r, struct json *j)
{
	static const char *const kinds[] = {"coffea", "preprocessing", "other"};
	const struct run *run = r->run;
	const struct worker *w = run->workers.n ? run->workers.v[0] : NULL;
	char text[40], sentence[RUN_SENTENCE_BYTES];

	emit_object(j, "run");
	emit_value(j, "id", value_text(run->id));
	page_name(j, "name", run->name);
	emit_value(j, "kind", value_text(kinds[run->kind]));
	emit_value(j, "start", value_real(run->start));
	emit_value(j, "stop", value_real(run->stop));
	emit_value(j, "start_time", value_text(iso_time(run->start, text, sizeof(text))));
	emit_value(j, "running", value_uint(run->running));
	emit_value(j, "state", value_text(run_state_name(r->facts->state.id)));
	emit_value(j, "state_text",
		   value_text(run_state_sentence(&r->facts->state, sentence, sizeof(sentence))));
	run_company_json(run, j);
	page_name(j, "python", w ? w->python : NULL);
	page_name(j, "dask", w ? w->dask : NULL);
	page_name(j, "coffea", w ? w->coffea : NULL);
	page_name(j, "uproot", w ? w->uproot : NULL);
	emit_end(j);
}

static void put_metric(void *arg, const struct metric *m, struct value v, const char *text)
{
	struct json *j = arg;

	emit_object(j, NULL);
	emit_value(j, "id", value_text(m->id));
	if (*m->alias)
		emit_value(j, "alias", value_text(m->alias));
	emit_value(j, "unit", value_text(m->unit));
	emit_value(j, "group", value_text(metric_group_titles[m->group]));
	emit_value(j, "source", value_text(m->source));
	emit_value(j, "help", value_text(m->help));
	if (m->kind == METRIC_NUM)
		emit_value(j, "value", v);
	page_name(j, "text", text);
	emit_end(j);
}

static void put_metrics(const struct report *r, struct json *j)
{
	emit_array(j, "metrics");
	metrics_each(r->facts, put_metric, j);
	emit_end(j);
}

static void put_term(const char *id, const char *name, struct json *j)
{
	emit_object(j, NULL);
	emit_value(j, "id", value_text(id));
	emit_value(j, "name", value_text(name));
	emit_end(j);
}

/* The parts of charts, with their displayed names. */
void page_terms(struct json *j)
{
	size_t i;

	emit_array(j, "classes");
	for (i = 0; i < CREMA_TIMES; i++)
		put_term(row_times[i].short_name, row_times[i].label, j);
	put_term("unclassified", "not classified", j);
	emit_end(j);
	emit_array(j, "layers");
	for (i = 0; i < CREMA_LAYERS; i++) {
		if (*row_layers[i].label)
			put_term(row_layers[i].name, row_layers[i].label, j);
	}
	emit_end(j);
}

/* Where time went: of counted tasks, or of all attempts if counted ones have little of it. */
static void put_time(const struct report *r, struct json *j)
{
	const struct tally *t = facts_shown(r->facts);

	emit_object(j, "time");
	emit_value(j, "all_attempts", value_bool(facts_shows_all(r->facts)));
	emit_value(j, "wall_seconds", tally_wall(t));
	emit_value(j, "pool_cpu_seconds", value_seconds(sum_value(&t->pool[CREMA_T_cpu])));
	page_classes(t, j);
	budget_emit(r->facts, "budget", j);
	emit_end(j);
}

/* The client's wall time; null without a record of it. */
static void put_client(const struct wall *w, struct json *j)
{
	size_t i;

	if (!w) {
		emit_value(j, "client", value_null());
		return;
	}
	emit_object(j, "client");
	emit_value(j, "wall_seconds", value_real(w->seconds));
	emit_array(j, "parts");
	for (i = 0; i < WALL_PARTS; i++) {
		emit_object(j, NULL);
		emit_value(j, "name", value_text(wall_parts[i].words));
		emit_value(j, "seconds", w->part[i]);
		emit_end(j);
	}
	emit_object(j, NULL);
	emit_value(j, "name", value_text("rest"));
	emit_value(j, "seconds", value_real(w->rest));
	emit_end(j);
	emit_end(j);
	page_name(j, "unseen", w->unseen);
	emit_end(j);
}

static void put_evidence(const struct finding *f, struct json *j)
{
	const struct evidence *e;
	size_t i;

	emit_array(j, "evidence");
	for (i = 0; i < f->evidence_count; i++) {
		e = &f->evidence[i];
		emit_object(j, NULL);
		emit_value(j, "name", value_text(e->name));
		if (e->value.type == VALUE_TEXT)
			page_name(j, "value", e->value.v.s);
		else
			emit_value(j, "value", e->value);
		emit_value(j, "unit", value_text(e->unit));
		emit_end(j);
	}
	emit_end(j);
}

static void put_findings(const struct report *r, struct json *j)
{
	const struct findings *all = r->findings;
	char cost[FINDING_COST_BYTES];
	const struct finding *f;
	size_t i;

	if (!all)
		return;
	emit_object(j, "findings");
	emit_value(j, "total", value_uint(all->n));
	emit_value(j, "checks", value_uint(all->checks));
	emit_value(j, "made", value_uint(all->made));
	emit_value(j, "idle", value_uint(all->idle));
	emit_array(j, "rows");
	for (i = 0; i < all->n && i < PAGE_ROWS; i++) {
		f = &all->v[i];
		emit_object(j, NULL);
		finding_cells(f, cost, emit_cell, j);
		put_evidence(f, j);
		emit_end(j);
	}
	emit_end(j);
	emit_array(j, "gaps");
	for (i = 0; i < all->gap_count; i++) {
		emit_object(j, NULL);
		emit_value(j, "id", value_text(all->gaps[i].id));
		emit_value(j, "unknown", value_text(all->gaps[i].unknown));
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

/* How the page formats a number of contract/rows.def, by its unit. */
#define WAY_calls "count"
#define WAY_bytes "bytes"
#define WAY_ns "seconds"

/* CELLs of cells_*.def */
#define CELL(name, type, value) put_##type(j, #name, value);
#define put_TEXT(j, name, value) page_name(j, name, value.v.s)
#define put_UINT emit_value
#define put_REAL emit_value
#define put_BOOL emit_value

static void put_codecs(const struct report *r, struct json *j)
{
	const struct codec_sum *c;
	size_t i;

	emit_object(j, "codecs");
	emit_value(j, "total", value_uint(r->codecs.n));
	emit_array(j, "columns");
#define CODEC_NUMBER(name, cell, title, unit, ...) page_column(j, #cell, title, WAY_##unit);
#include "rows.def"
	emit_end(j);
	emit_array(j, "rows");
	for (i = 0; i < r->codecs.n && i < PAGE_ROWS; i++) {
		c = &r->codecs.v[i];
		emit_object(j, NULL);
#include "collector/report/cells_codec.def"
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

static void put_servers(const struct report *r, struct json *j)
{
	const struct server_sum *s;
	size_t i;

	emit_object(j, "servers");
	emit_value(j, "total", value_uint(r->servers.n));
	emit_array(j, "columns");
#define SERVER_NUMBER(name, cell, title, unit, ...) page_column(j, #cell, title, WAY_##unit);
#include "rows.def"
	emit_end(j);
	emit_array(j, "rows");
	for (i = 0; i < r->servers.n && i < PAGE_ROWS; i++) {
		s = &r->servers.v[i];
		emit_object(j, NULL);
#define LIST(name, put)
#include "collector/report/cells_server.def"
#undef LIST
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

static void put_columns(const struct report *r, struct json *j)
{
	const struct column_sum *s;
	size_t i;

	emit_object(j, "columns");
	emit_value(j, "total", value_uint(r->columns.v.n));
	emit_array(j, "columns");
#define COLUMN_NUMBER(name, cell, title, unit, ...) page_column(j, #cell, title, WAY_##unit);
#include "rows.def"
	emit_end(j);
	emit_array(j, "rows");
	for (i = 0; i < r->columns.v.n && i < PAGE_COLUMNS; i++) {
		s = r->columns.v.v[i];
		emit_object(j, NULL);
#define LIST EMIT_LIST
#include "collector/report/cells_column.def"
#undef LIST
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

static void put_sections(const struct run *run, const struct section_list *list, const char *name,
			 struct json *j)
{
	const struct section_sum *s;
	size_t i, k;

	emit_object(j, name);
	emit_value(j, "total", value_uint(list->v.n));
	emit_array(j, "columns");
#define SECTION_NUMBER(name, cell, title, unit, ...) page_column(j, cell, title, WAY_##unit);
#include "rows.def"
	emit_end(j);
	emit_array(j, "rows");
	for (i = 0; i < list->v.n && i < PAGE_ROWS; i++) {
		s = list->v.v[i];
		emit_object(j, NULL);
		page_name(j, "section", s->path);
		page_name(j, "prefix", run_prefix_shown(run, s->prefix));
		emit_value(j, "thread", value_text(s->thread));
		page_name(j, "dataset", s->dataset);
		emit_value(j, "beyond", value_bool(s->beyond));
		for (k = 0; k < CREMA_SECTION_NUMBERS; k++) {
			if (*row_section_cells[k].cell)
				emit_value(j, row_section_cells[k].cell, section_cell(s, k));
		}
		emit_value(j, "wall_seconds", section_number(s, 0, false));
		emit_value(j, "cpu_seconds", section_number(s, 1, false));
		for (k = 0; section_spread_name(k); k++)
			emit_value(j, section_spread_name(k), section_spread(s, k));
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

static void put_waits(const struct report *r, struct json *j)
{
	const struct blocking *b = r->blocking;
	const struct blocking_row *row;
	char line[192];
	size_t i, k;

	emit_object(j, "blocking");
	emit_value(j, "known", value_bool(b->known));
	emit_value(j, "threshold_seconds",
		   b->known ? value_seconds(value_uint(b->threshold_ns)) : value_null());
	emit_value(j, "total", value_uint(b->rows.n));
	emit_array(j, "rows");
	for (i = 0; i < b->rows.n && i < PAGE_ROWS / 4; i++) {
		row = b->rows.v[i];
		emit_object(j, NULL);
		emit_value(j, "wait", value_text(class_name(row->wait)));
		page_name(j, "prefix", run_prefix_shown(r->run, row->prefix));
		page_name(j, "object", row->object);
		page_name(j, "line", row->line ? lines_name(row->line, line) : NULL);
		emit_value(j, "calls", value_uint(row->waits.calls));
		emit_value(j, "seconds", value_seconds(value_uint(row->waits.ns)));
		emit_value(j, "longest_seconds", value_seconds(value_uint(row->waits.longest_ns)));
		emit_array(j, "frames");
		for (k = 0; k < row->frames; k++)
			page_name(j, NULL, row->frame[k]);
		emit_end(j);
		emit_end(j);
	}
	emit_end(j);
	emit_end(j);
}

struct note_list {
	struct json *j;
	size_t n;
};

static void say_note(void *arg, const char *line)
{
	struct note_list *list = arg;

	if (list->n++ < NOTES)
		emit_value(list->j, NULL, value_text(line));
}

static void put_completeness(const struct report *r, struct json *j)
{
	const struct model *m = r->run->model;
	struct note_list list = {.j = j};

	emit_object(j, "completeness");
	emit_value(j, "workers_seen", value_uint(r->run->workers.n));
	report_losses_json(r, j);
	emit_value(j, "records_bad", value_uint(m->records_bad));
	emit_value(j, "files_read", value_uint(m->files_read));
	emit_value(j, "files_torn", value_uint(m->torn.n - m->missing));
	emit_value(j, "tasks_cpu_seconds", r->balance.tasks.cpu_seconds);
	emit_value(j, "unattributed_cpu_seconds", r->balance.unattributed.cpu_seconds);
	emit_value(j, "unseen_cpu_seconds", r->balance.unseen.cpu_seconds);
	emit_value(j, "process_cpu_seconds", r->balance.process.cpu_seconds);
	emit_value(j, "tasks_storage_bytes", r->balance.tasks.storage_read_bytes);
	emit_value(j, "unattributed_storage_bytes", r->balance.unattributed.storage_read_bytes);
	emit_value(j, "unseen_storage_bytes", r->balance.unseen.storage_read_bytes);
	emit_value(j, "process_storage_bytes", r->balance.process.storage_read_bytes);
	emit_array(j, "notes");
	report_notes(r, say_note, &list);
	emit_end(j);
	emit_value(j, "notes_total", value_uint(list.n));
	emit_end(j);
}

void page_data(const struct report *r, struct json *j)
{
	j->pretty = false;
	emit_object(j, NULL);
	emit_value(j, "version", value_text(CREMA_VERSION));
	page_terms(j);
	put_run(r, j);
	put_findings(r, j);
	put_metrics(r, j);
	put_time(r, j);
	put_client(r->wall, j);
	metric_waste(r->facts, "waste", j);
	report_timeline_json(r, j);
	page_series(r, j);
	page_stream(r, j);
	page_tasks(r, j);
	put_codecs(r, j);
	page_files(r, j);
	page_workers(r, j);
	put_servers(r, j);
	put_columns(r, j);
	put_sections(r->run, &r->sections.all, "sections", j);
	put_sections(r->run, &r->sections.by_dataset, "sections_by_dataset", j);
	put_waits(r, j);
	page_lines(r, j);
	page_source(r, j);
	put_completeness(r, j);
	emit_end(j);
}
