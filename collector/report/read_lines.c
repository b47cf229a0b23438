/* SPDX-License-Identifier: BSD-3-Clause */
/* read_lines.c - sums of columns over the lines that requested them. */
#include "collector/report/read_lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/report/report.h"

static const char *const kind_names[] = {[READ_LINE] = "line",
					 [READ_SEVERAL] = "several",
					 [READ_UNKNOWN] = "unknown",
					 [READ_REST] = "rest"};

const char *read_line_kind_name(enum read_line_kind kind)
{
	return kind_names[kind];
}

/* Splits "FILE:LINE FUNCTION"; false: it has another form. */
static bool split(struct arena *arena, const char *text, struct read_line *to)
{
	const char *function = strrchr(text, ' '), *digits = function;
	char *file;

	while (digits && digits > text && isdigit((unsigned char)digits[-1]))
		digits--;
	if (!digits || digits == function || digits == text || digits[-1] != ':')
		return false;
	file = arena_bytes(arena, (size_t)(digits - text));
	if (!file)
		return false;
	memcpy(file, text, (size_t)(digits - text));
	file[digits - text - 1] = '\0';
	to->file = file;
	to->function = function + 1;
	to->line = strtoull(digits, NULL, 10);
	return true;
}

static bool same_line(const void *item, const void *key)
{
	const struct read_line *a = item, *b = key;

	return a->kind == b->kind && a->line == b->line && text_order(a->file, b->file) == 0;
}

static uint64_t hash_of(const struct read_line *key)
{
	const char *file = key->file ? key->file : "";

	return hash_pair(hash_bytes(17, file, strlen(file)), key->line + key->kind);
}

/* NULL: no memory. */
static struct read_line *line_like(struct read_lines *l, const struct read_line *key)
{
	uint64_t hash = hash_of(key);
	struct read_line *s = table_find(&l->table, hash, same_line, key);

	if (s)
		return s;
	s = TABLE_NEW(&l->table, hash, &l->arena, &l->v);
	if (!s)
		return NULL;
	*s = *key;
	column_numbers_begin(s->number);
	return s;
}

/* text: "FILE:LINE FUNCTION"; NULL, or another form: unknown. */
static struct read_line *line_of(struct read_lines *l, const char *text)
{
	struct read_line key = {.kind = READ_UNKNOWN};

	if (text && split(&l->arena, text, &key))
		key.kind = READ_LINE;
	return line_like(l, &key);
}

struct name_of {
	const struct read_names *names;
	const char *name;
};

static bool same_name(const void *item, const void *key)
{
	return !memcmp(item, key, sizeof(struct name_of));
}

static int add_name(struct read_lines *l, struct read_names *names, const char *name)
{
	const struct name_of key = {names, name};
	uint64_t hash = hash_pair((uintptr_t)names, (uintptr_t)name);
	struct name_of *n;
	const char **at;

	if (table_find(&l->name_table, hash, same_name, &key))
		return 0;
	n = arena_get(&l->arena, sizeof(*n));
	at = n ? ARRAY_NEW(names) : NULL;
	if (!at || table_add(&l->name_table, hash, n)) {
		names->n -= at != NULL;
		return -ENOMEM;
	}
	*n = key;
	*at = name;
	return 0;
}

/* A column that several lines requested: its numbers count once, its name is listed for each. */
static int share(struct read_lines *l, const struct column_row *row)
{
	int rc = 0;

	for (size_t i = 0; i < CREMA_COLUMN_LINES && row->line[i] && !rc; i++) {
		struct read_line *s = line_of(l, row->line[i]);

		rc = s ? add_name(l, &s->shared, row->key.column) : -ENOMEM;
	}
	return rc;
}

static int take(struct read_lines *l, const struct column_row *row)
{
	bool several = row->more_lines || (row->line[0] && row->line[1]);
	struct read_line *s;
	int rc = several ? share(l, row) : 0;

	if (rc)
		return rc;
	s = several ? line_like(l, &(struct read_line){.kind = READ_SEVERAL})
		    : line_of(l, row->line[0]);
	if (!s)
		return -ENOMEM;
	report_merge(s->number, row->number, row_column, CREMA_COLUMN_NUMBERS, false);
	return add_name(l, &s->columns, row->key.column);
}

static int take_rest(struct read_lines *l, const struct read_columns *c)
{
	struct read_line *s;

	for (size_t i = 0; i < c->v.n; i++) {
		if (c->v.v[i]->kind != COLUMN_REST)
			continue;
		s = line_like(l, &(struct read_line){.kind = READ_REST});
		if (!s)
			return -ENOMEM;
		report_merge(s->number, c->v.v[i]->number, row_column, CREMA_COLUMN_NUMBERS, false);
	}
	return 0;
}

/* A number unknown for one file is unknown in the sum. */
static int take_opened(struct read_lines *l, const struct file_sum *f)
{
	for (size_t i = 0; i < f->opened.n; i++) {
		const struct opened_line *o = &f->opened.v[i];
		struct read_line *s = line_of(l, o->line);

		if (!s)
			return -ENOMEM;
		for (size_t k = 0; k < CREMA_OPENED_NUMBERS; k++) {
			struct value *sum = &s->opened.number[k];

			*sum = s->opened.line ? value_plus(*sum, o->number[k]) : o->number[k];
		}
		s->opened.line = o->line;
	}
	return 0;
}

bool read_line_asked(const struct read_line *s)
{
	return s->columns.n || s->shared.n;
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct read_line *a = *(struct read_line *const *)pa;
	const struct read_line *b = *(struct read_line *const *)pb;
	double x = value_number(column_bytes(a->number), NULL);
	double y = value_number(column_bytes(b->number), NULL);
	int order;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	order = text_order(a->file, b->file);
	return order ? order : a->line < b->line ? -1 : a->line > b->line;
}

int read_lines_gather(struct read_lines *l, const struct run *run, const struct read_columns *c,
		      const struct file_sum *files, size_t n)
{
	const struct model *m = run->model;
	int rc = 0;

	memset(l, 0, sizeof(*l));
	for (size_t i = 0; i < m->columns.n && !rc; i++) {
		const struct column_key *k = &m->columns.v[i]->key;

		if (run_has_row(run, k->worker, k->span))
			rc = take(l, m->columns.v[i]);
	}
	if (!rc)
		rc = take_rest(l, c);
	for (size_t i = 0; i < n && !rc; i++)
		rc = take_opened(l, &files[i]);
	if (l->v.n)
		qsort(l->v.v, l->v.n, sizeof(*l->v.v), by_bytes);
	return rc;
}

void read_lines_release(struct read_lines *l)
{
	for (size_t i = 0; i < l->v.n; i++) {
		free(l->v.v[i]->columns.v);
		free(l->v.v[i]->shared.v);
	}
	free(l->v.v);
	table_release(&l->table);
	table_release(&l->name_table);
	arena_release(&l->arena);
	memset(l, 0, sizeof(*l));
}

const struct read_line *read_lines_at(const struct read_lines *l, const char *file, uint64_t line)
{
	const struct read_line key = {.kind = READ_LINE, .file = file, .line = line};

	return table_find(&l->table, hash_of(&key), same_line, &key);
}

const struct read_line *read_lines_most(const struct read_lines *l, size_t number, double least)
{
	const struct read_line *most = NULL;
	double n;

	for (size_t i = 0; i < l->v.n; i++) {
		n = value_number(l->v.v[i]->number[number], NULL);
		if (l->v.v[i]->kind == READ_LINE && n > 0 && n >= least) {
			most = l->v.v[i];
			least = n;
		}
	}
	return most;
}

void read_names_json(const struct read_names *names, struct json *j, const char *name)
{
	emit_array(j, name);
	for (size_t i = 0; i < names->n; i++)
		if (names->v[i])
			emit_value(j, NULL, value_text(names->v[i]));
	emit_end(j);
}

void read_lines_json(const struct read_lines *l, struct json *j)
{
	const struct read_line *s;

	emit_array(j, "read_lines");
	for (size_t i = 0; i < l->v.n; i++) {
		s = l->v.v[i];
		emit_object(j, NULL);
#define CELL(name, type, value) emit_value(j, #name, value);
#define LIST EMIT_LIST
#include "collector/report/cells_read_line.def"
#undef CELL
#undef LIST
		emit_end(j);
	}
	emit_end(j);
}
