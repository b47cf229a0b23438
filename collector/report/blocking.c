/* SPDX-License-Identifier: BSD-3-Clause */
/* blocking.c - merges long waits by their innermost frames. */
#include "collector/report/blocking.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emit/emit_text.h"
#include "common/symbols.h"
#include "collector/report/lines.h"
#include "common/dirs.h"
#include "common/rows.h"

struct blocking_library {
	const struct site_module *module;
	const char *base; /* of its path */
	bool plumbing;	  /* libc or ours: in every stack, so of no use */
	struct symbols symbols;
};

static bool same_library(const void *item, const void *key)
{
	return ((const struct blocking_library *)item)->module == key;
}

static bool starts_with(const char *s, const char *head)
{
	return !strncmp(s, head, strlen(head));
}

static struct blocking_library *library_of(struct blocking *b, const struct model *m, uint64_t id)
{
	const struct site_module *module = id ? model_module(m, id) : NULL;
	struct blocking_library *l;

	if (!module || !module->path)
		return NULL;
	l = table_find(&b->library_table, hash_pair(id, 1), same_library, module);
	if (l)
		return l;
	l = TABLE_NEW(&b->library_table, hash_pair(id, 1), &b->arena, &b->libraries);
	if (!l) {
		b->no_memory = true;
		return NULL;
	}
	l->module = module;
	l->base = dirs_base(module->path, "");
	l->plumbing = symbols_of_libc(l->base) || starts_with(l->base, "ld-linux") ||
		      starts_with(l->base, "libcrema.so");
	symbols_open(&l->symbols, module->path, module->build_id);
	return l;
}

static const char *keep(struct blocking *b, const char *text)
{
	size_t n = strlen(text);
	char *copy = arena_get(&b->arena, n + 1);

	if (copy)
		memcpy(copy, text, n);
	else
		b->no_memory = true;
	return copy ? copy : "";
}

/* "function", "library.so+0x12f0" or "0x7f...". The address is the one after the call. */
static const char *frame_text(struct blocking *b, const struct blocking_library *l,
			      const struct site_frame *f)
{
	const char *name = l ? symbols_name(&l->symbols, f->place ? f->place - 1 : 0) : NULL;
	char text[300], plain[300];

	if (name)
		snprintf(text, sizeof(text), "%s", symbols_plain(name, plain, sizeof(plain)));
	else if (l)
		snprintf(text, sizeof(text), "%s+0x%" PRIx64, l->base, f->place);
	else
		snprintf(text, sizeof(text), "0x%" PRIx64, f->place);
	return keep(b, text);
}

static const char *object_of(const struct site *s)
{
	return s->file ? s->file : s->peer ? s->peer : s->on;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_row(const void *item, const void *key)
{
	const struct blocking_row *a = item, *b = key;

	if (a->wait != b->wait || a->prefix != b->prefix || a->frames != b->frames ||
	    a->python != b->python || !same_text(a->object, b->object) ||
	    !lines_same(a->line, b->line))
		return false;
	for (uint32_t i = 0; i < a->frames; i++) {
		if (strcmp(a->frame[i], b->frame[i]))
			return false;
	}
	return true;
}

static void name_frames(struct blocking *b, const struct model *m, const struct site *s,
			struct blocking_row *row)
{
	const struct blocking_library *l;

	for (uint32_t i = 0; i < s->depth && row->frames < BLOCKING_FRAMES; i++) {
		l = library_of(b, m, s->frame[i].module);
		if (!l || !l->plumbing)
			row->frame[row->frames++] = frame_text(b, l, &s->frame[i]);
	}
}

static int take_site(struct blocking *b, const struct model *m, const struct site *s)
{
	struct blocking_row key = {.wait = s->wait,
				   .prefix = s->prefix,
				   .object = object_of(s),
				   .python = s->python != NULL,
				   .line = s->python ? lines_user_place(s->python, 0) : NULL};
	struct blocking_row *row;
	uint64_t hash = (uintptr_t)key.prefix ^ key.wait;

	name_frames(b, m, s, &key);
	for (uint32_t i = 0; i < key.frames; i++)
		hash = hash_bytes(hash, key.frame[i], strlen(key.frame[i]));
	row = table_find(&b->table, hash, same_row, &key);
	if (!row) {
		row = TABLE_NEW(&b->table, hash, &b->arena, &b->rows);
		if (!row)
			return -ENOMEM;
		*row = key;
	}
	if (!row->site || s->waits.ns > row->site->waits.ns)
		row->site = s;
	if (!row->longest || s->waits.longest_ns > row->waits.longest_ns)
		row->longest = s;
	row->waits.calls += s->waits.calls;
	row->waits.ns += s->waits.ns;
	if (s->waits.longest_ns > row->waits.longest_ns)
		row->waits.longest_ns = s->waits.longest_ns;
	return 0;
}

static int by_time(const void *pa, const void *pb)
{
	const struct blocking_row *a = *(struct blocking_row *const *)pa;
	const struct blocking_row *b = *(struct blocking_row *const *)pb;

	return a->waits.ns > b->waits.ns ? -1 : a->waits.ns < b->waits.ns;
}

static void add_worker(struct blocking *b, const struct worker *w)
{
	const struct blocked_totals *t = &w->totals.blocked;

	for (size_t i = 0; i < w->stacks.ranges.n; i++)
		b->received += w->stacks.ranges.v[i].to - w->stacks.ranges.v[i].from;
	if (!t->known)
		return;
	if (!b->known || t->threshold_ns < b->threshold_ns)
		b->threshold_ns = t->threshold_ns;
	b->known = true;
	for (unsigned int i = 0; i < CREMA_TIMES; i++) {
		b->waits += t->calls[i];
		b->waits_ns += t->ns[i];
	}
}

/* Cells of a sheet are pointers until the row is complete. */
static void keep_lines(struct blocking *b, struct blocking_row *r)
{
	const struct line_list *list = r->longest->holder.python;
	const struct line_place *p = list ? lines_user_place(list, 0) : NULL;
	char text[LINES_TEXT];

	p = p || !list || !list->depth ? p : list->place[0];
	r->holder = p;
	r->line_text = r->line ? keep(b, lines_text(r->line, text)) : NULL;
	r->holder_text = p ? keep(b, lines_text(p, text)) : NULL;
}

int blocking_gather(struct blocking *b, const struct run *run)
{
	const struct model *m = run->model;
	const struct site *s;
	int rc = 0;

	memset(b, 0, sizeof(*b));
	for (size_t i = 0; i < m->sites.n && !rc; i++) {
		s = m->sites.v[i];
		if (run_has_row(run, NULL, s->span))
			rc = take_site(b, m, s);
	}
	if (b->rows.n)
		qsort(b->rows.v, b->rows.n, sizeof(*b->rows.v), by_time);
	for (size_t i = 0; i < b->rows.n; i++)
		keep_lines(b, b->rows.v[i]);
	for (size_t i = 0; i < run->workers.n; i++)
		add_worker(b, run->workers.v[i]);
	b->cut = m->sites_cut;
	return b->no_memory ? -ENOMEM : rc;
}

void blocking_release(struct blocking *b)
{
	for (size_t i = 0; i < b->libraries.n; i++)
		symbols_release(&b->libraries.v[i]->symbols);
	free(b->libraries.v);
	free(b->rows.v);
	table_release(&b->table);
	table_release(&b->library_table);
	arena_release(&b->arena);
}

void blocking_stack_json(struct blocking *b, const struct model *m, const struct site *s,
			 struct json *j, const char *name)
{
	const struct blocking_library *l;
	char place[32];

	emit_array(j, name);
	for (uint32_t i = 0; i < s->depth; i++) {
		const struct site_frame *f = &s->frame[i];

		l = library_of(b, m, f->module);
		snprintf(place, sizeof(place), "0x%" PRIx64, f->place);
		emit_object(j, NULL);
		emit_value(
			j, "function",
			value_text(l && f->place ? symbols_name(&l->symbols, f->place - 1) : NULL));
		emit_value(j, "module", value_text(l ? l->module->path : NULL));
		emit_value(j, "build_id", value_text(l ? l->module->build_id : NULL));
		emit_value(j, "offset", value_text(place));
		emit_end(j);
	}
	emit_end(j);
}

const char *blocking_wait(const struct blocking_row *r)
{
	return row_times[r->wait].short_name;
}

void blocking_frames_json(const struct blocking_row *r, struct json *j, const char *name)
{
	emit_array(j, name);
	for (uint32_t k = 0; k < r->frames; k++)
		emit_value(j, NULL, value_text(r->frame[k]));
	emit_end(j);
}

void blocking_python_json(const struct line_list *list, struct json *j, const char *name)
{
	if (list)
		lines_frames_json(list, j, name);
	else
		emit_value(j, name, value_null());
}

static void put_holder(const struct blocking_row *r, cell_put put, void *arg)
{
	const struct site_holder *h = &r->longest->holder;
	bool known = r->holder_text;

	put(arg, "longest_holder", VALUE_TEXT, value_text(r->holder_text));
	put(arg, "longest_holder_samples", VALUE_UINT,
	    known ? value_uint(h->samples) : value_null());
	put(arg, "longest_samples", VALUE_UINT, known ? value_uint(h->of) : value_null());
}

void blocking_cells(const struct blocking_row *r, cell_put put, void *arg)
{
	put(arg, "wait", VALUE_TEXT, value_text(blocking_wait(r)));
	put(arg, "prefix", VALUE_TEXT, value_text(r->prefix));
	put(arg, "file", VALUE_TEXT, value_text(r->site->file));
	put(arg, "peer", VALUE_TEXT, value_text(r->site->peer));
	put(arg, "line", VALUE_TEXT, value_text(r->line_text));
	put(arg, "python_frames_cut", VALUE_BOOL,
	    r->site->python ? value_bool(r->site->python_cut) : value_null());
	put(arg, "count", VALUE_UINT, value_uint(r->waits.calls));
	put(arg, "waited_seconds", VALUE_REAL, value_seconds(value_uint(r->waits.ns)));
	put(arg, "longest_seconds", VALUE_REAL, value_seconds(value_uint(r->waits.longest_ns)));
	put_holder(r, put, arg);
}

const struct blocking_row *blocking_longest(const struct blocking *b, enum crema_time_id wait)
{
	const struct blocking_row *longest = NULL;

	for (size_t i = 0; b && i < b->rows.n; i++) {
		const struct blocking_row *r = b->rows.v[i];

		if (r->wait == wait &&
		    (!longest || r->waits.longest_ns > longest->waits.longest_ns))
			longest = r;
	}
	return longest;
}

void blocking_json(struct blocking *b, const struct run *run, struct json *j)
{
	const struct blocking_row *r;

	emit_array(j, "blocking");
	for (size_t i = 0; i < b->rows.n && i < BLOCKING_ROWS; i++) {
		r = b->rows.v[i];
		emit_object(j, NULL);
		blocking_cells(r, emit_cell, j);
		blocking_frames_json(r, j, "frames");
		blocking_stack_json(b, run->model, r->site, j, "stack");
		blocking_python_json(r->site->python, j, "python_frames");
		blocking_python_json(r->longest->holder.python, j, "longest_holder_frames");
		emit_end(j);
	}
	emit_end(j);
}

void blocking_completeness_json(const struct blocking *b, struct json *j)
{
	const struct value none = value_null();
	size_t rows = b->rows.n > BLOCKING_ROWS ? b->rows.n - BLOCKING_ROWS : 0;

	emit_object(j, "long_waits");
	emit_value(j, "threshold_seconds",
		   b->known ? value_seconds(value_uint(b->threshold_ns)) : none);
	emit_value(j, "waits", b->known ? value_uint(b->waits) : none);
	emit_value(j, "waited_seconds", b->known ? value_seconds(value_uint(b->waits_ns)) : none);
	emit_value(j, "with_record", value_uint(b->received));
	/* During a run the totals may be older than the records. */
	emit_value(j, "dropped",
		   b->known ? value_uint(b->waits > b->received ? b->waits - b->received : 0)
			    : none);
	emit_value(j, "beyond_the_table", value_uint(b->cut.calls));
	emit_value(j, "rows_left_out", value_uint(rows));
	emit_end(j);
}

#define TOP 8
#define WIDE_COLUMNS 110

/* WITH_LINE: too narrow for task and native function, which the line stands for. */
enum layout { WITHOUT_LINE, WITH_LINE, WIDE };

/* The visible part of a row of the table. */
struct shown {
	const char *wait, *from, *on, *task; /* from, task: NULL: not shown */
	const struct line_place *line;
	struct waits waits;
};

static bool looks_like(const struct shown *a, const struct shown *b)
{
	return a->wait == b->wait && same_text(a->from, b->from) && same_text(a->on, b->on) &&
	       same_text(a->task, b->task) && lines_same(a->line, b->line);
}

static int by_shown_time(const void *pa, const void *pb)
{
	const struct shown *a = pa, *b = pb;

	return a->waits.ns > b->waits.ns ? -1 : a->waits.ns < b->waits.ns;
}

/* Merges rows that differ only further up the stack; returns how many remain. */
static size_t merge_rows(const struct blocking *b, const struct run *run, enum layout layout,
			 struct shown *v)
{
	const struct blocking_row *r;
	size_t i, k, n = 0;

	for (i = 0; i < b->rows.n; i++) {
		r = b->rows.v[i];
		v[n] = (struct shown){row_times[r->wait].head,
				      r->frames ? r->frame[0] : "(no stack)",
				      dirs_base(r->object, ""),
				      run_prefix_shown(run, r->prefix),
				      r->line,
				      r->waits};
		if (layout == WITH_LINE)
			v[n].task = NULL;
		if (layout == WITH_LINE && r->line)
			v[n].from = NULL;
		for (k = 0; k < n && !looks_like(&v[k], &v[n]); k++)
			;
		if (k == n) {
			n++;
			continue;
		}
		v[k].waits.calls += r->waits.calls;
		v[k].waits.ns += r->waits.ns;
		if (r->waits.longest_ns > v[k].waits.longest_ns)
			v[k].waits.longest_ns = r->waits.longest_ns;
	}
	qsort(v, n, sizeof(*v), by_shown_time);
	return n;
}

static enum layout layout_of(const struct blocking *b, const struct sink *s)
{
	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.v[i]->line)
			return sink_columns(s) >= WIDE_COLUMNS ? WIDE : WITH_LINE;
	return WITHOUT_LINE;
}

static void put_shown(struct grid *g, enum layout layout, const struct shown *v)
{
	grid_text(g, v->wait);
	if (v->line)
		line_place_cell(g, v->line);
	else if (layout == WIDE)
		grid_text(g, "");
	if (v->from)
		grid_text(g, v->from);
	grid_text(g, v->on);
	if (layout != WITH_LINE)
		grid_text(g, v->task);
	grid_value(g, value_uint(v->waits.calls), AS_COUNT);
	grid_value(g, value_seconds(value_uint(v->waits.ns)), AS_SECONDS);
	grid_value(g, value_seconds(value_uint(v->waits.longest_ns)), AS_SECONDS);
}

void blocking_table(const struct blocking *b, const struct run *run, struct sink *s, bool colour)
{
	enum layout layout = layout_of(b, s);
	struct shown *v;
	char title[96];
	struct grid g;
	size_t n;

	if (!b->rows.n)
		return;
	v = calloc(b->rows.n, sizeof(*v));
	if (!v) {
		s->error = -ENOMEM;
		return;
	}
	n = merge_rows(b, run, layout, v);
	snprintf(title, sizeof(title), "Long waits (%" PRIu64 " ms and more), most time first",
		 b->threshold_ns / 1000000u);
	table_section(s, colour, title);
	grid_init(&g, s, colour);
	if (layout == WIDE)
		grid_columns(&g, "<wait", "<line", "<called from", "<on", "<task", ">count",
			     ">total", ">longest", NULL);
	else if (layout == WITH_LINE)
		grid_columns(&g, "<wait", "<line", "<on", ">count", ">total", ">longest", NULL);
	else
		grid_columns(&g, "<wait", "<called from", "<on", "<task", ">count", ">total",
			     ">longest", NULL);
	for (size_t i = 0; i < n && i < TOP; i++)
		put_shown(&g, layout, &v[i]);
	free(v);
	grid_print(&g);
	table_more(s, n, TOP);
	if (b->known && b->waits > b->received)
		text_paragraph(s, "  ",
			       "%" PRIu64 " more such waits of these workers left no record",
			       b->waits - b->received);
}
