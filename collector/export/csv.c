/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * csv.c - a folder with one CSV file for each flat table of a run (docs/outputs.md).
 *
 * RFC 4180: commas, CRLF, a header, quotes doubled. Text always has quotes; unknown is an empty
 * cell without quotes, so it differs from an empty text. A spreadsheet takes a cell that begins
 * with = + - @, a tab or a line end for a formula: such texts, and those that begin with ', get a
 * leading '. Removing one ' restores each text.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/export/atomic_file.h"
#include "collector/export/export.h"
#include "collector/export/meta.h"
#include "collector/print/render.h"
#include "collector/print/sheets.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/utf8.h"

#define FILES (SHEETS + 2) /* plus columns and meta */

struct csv {
	const char *dir;
	struct atomic_file file[FILES];
	size_t n;
	const char *failed;	     /* the path that an error is about */
	struct atomic_file *columns; /* columns.csv */
	struct buf text;
};

static bool is_formula(const char *s)
{
	/* the last four: East Asian spreadsheets take them for = + - @ */
	static const char *const starts[] = {"=",
					     "+",
					     "-",
					     "@",
					     "\t",
					     "\r",
					     "\n",
					     "'",
					     "\xef\xbc\x9d",
					     "\xef\xbc\x8b",
					     "\xef\xbc\x8d",
					     "\xef\xbc\xa0"};
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (!strncmp(s, starts[i], strlen(starts[i])))
			return true;
	}
	return false;
}

static void put_text(struct csv *c, struct sink *s, const char *text)
{
	const char *p, *quote;

	buf_clear(&c->text);
	if (utf8_add(&c->text, text, strlen(text)) || buf_add(&c->text, "", 1)) {
		s->error = -ENOMEM;
		return;
	}
	p = (const char *)c->text.data;
	sink_puts(s, is_formula(p) ? "\"'" : "\"");
	for (; (quote = strchr(p, '"')); p = quote + 1) {
		sink_put(s, p, (size_t)(quote - p));
		sink_puts(s, "\"\"");
	}
	sink_puts(s, p);
	sink_puts(s, "\"");
}

static void put_cell(struct csv *c, struct sink *s, struct value v)
{
	switch (v.type) {
	case VALUE_UINT:
		sink_uint(s, v.v.u);
		break;
	case VALUE_INT:
		sink_printf(s, "%" PRId64, v.v.i);
		break;
	case VALUE_REAL:
		sink_real(s, v.v.d);
		break;
	case VALUE_BOOL:
		sink_puts(s, v.v.b ? "true" : "false");
		break;
	case VALUE_TEXT:
		put_text(c, s, v.v.s);
		break;
	default:
		break;
	}
}

static void put_row(struct csv *c, struct atomic_file *d, const struct value *cells, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (i)
			sink_puts(&d->sink, ",");
		put_cell(c, &d->sink, cells[i]);
	}
	sink_puts(&d->sink, "\r\n");
	if (d->sink.error)
		c->failed = d->path;
}

static struct atomic_file *open_file(struct csv *c, const char *name, int *rc)
{
	struct atomic_file *d = &c->file[c->n];
	char path[PATH_MAX], file[64];

	snprintf(file, sizeof(file), "%s.csv", name);
	*rc = c->n == FILES ? -E2BIG : dirs_join(path, sizeof(path), c->dir, file);
	if (*rc)
		return NULL;
	*rc = atomic_file_init(d, path);
	c->n++;
	if (*rc)
		c->failed = d->path;
	return *rc ? NULL : d;
}

static int csv_begin(void *arg, const struct sheet *s)
{
	struct csv *c = arg;
	struct atomic_file *d;
	struct value row[5];
	size_t i;
	int rc;

	d = open_file(c, s->name, &rc);
	for (i = 0; !rc && i < s->n; i++) {
		sink_printf(&d->sink, "%s%s", i ? "," : "", s->column[i].name);
		meta_column(s, i, row);
		put_row(c, c->columns, row, META_COLUMN_CELLS);
	}
	if (!rc)
		sink_puts(&d->sink, "\r\n");
	return rc;
}

static int csv_row(void *arg, const struct sheet *s, const struct value *cells)
{
	struct csv *c = arg;
	struct atomic_file *d = &c->file[c->n - 1];

	put_row(c, d, cells, s->n);
	return d->sink.error;
}

static int csv_end(void *arg, const struct sheet *s)
{
	(void)arg;
	(void)s;
	return 0;
}

static void put_meta(void *arg, const char *name, struct value v)
{
	struct csv *c = arg;
	struct value row[2] = {value_text(name), v};

	put_row(c, &c->file[0], row, 2);
}

static int write_all(struct csv *c, const struct report *r)
{
	const struct sheet_way way = {c, csv_begin, csv_row, csv_end};
	struct atomic_file *d;
	int rc;
	size_t i;

	d = open_file(c, "meta", &rc);
	if (rc)
		return rc;
	sink_puts(&d->sink, "name,value\r\n");
	meta_each(r, put_meta, c);
	c->columns = open_file(c, "columns", &rc);
	if (rc)
		return rc;
	sink_puts(&c->columns->sink, META_COLUMN_NAMES "\r\n");
	rc = sheets_write(r, &way);
	for (i = 0; i < c->n && !rc; i++) {
		rc = atomic_file_finish(&c->file[i]);
		c->failed = c->file[i].path;
	}
	for (i = 0; i < c->n && !rc; i++) {
		rc = atomic_file_close(&c->file[i]);
		c->failed = c->file[i].path;
	}
	return rc;
}

int export_csv(const struct report *r, const char *path, struct buf *why)
{
	struct csv *c = calloc(1, sizeof(*c));
	size_t i;
	int rc;

	if (!c)
		return report_fail(why, -ENOMEM, "cannot write '%s': %s", path, log_error(-ENOMEM));
	c->dir = c->failed = path;
	rc = atomic_file_folder("--csv", path, why);
	if (!rc && (rc = write_all(c, r)) != 0)
		report_fail(why, rc, "cannot write '%s': %s", c->failed, log_error(rc));
	for (i = 0; i < c->n; i++)
		atomic_file_drop(&c->file[i]);
	buf_release(&c->text);
	free(c);
	return rc;
}
