/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sqlite.c - a SQLite database with the flat tables of a run (docs/outputs.md).
 *
 * Unknown is NULL. SQLite's integers are signed: a count above 2^63 - 1, which no run reaches, is
 * also NULL, and `meta` has the number of such values. The database is created under a temporary
 * name and renamed.
 */
#include <sqlite3.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/export/atomic_file.h"
#include "collector/export/export.h"
#include "collector/export/meta.h"
#include "collector/print/render.h"
#include "collector/print/sheets.h"
#include "common/log.h"
#include "common/utf8.h"

#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

struct base {
	sqlite3 *db;
	sqlite3_stmt *insert, *describe;
	struct buf sql, text;
	uint64_t too_large;
};

static int run_sql(struct base *b, const char *sql)
{
	return sqlite3_exec(b->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

static int bind_text(struct base *b, sqlite3_stmt *s, int at, const char *text)
{
	buf_clear(&b->text);
	if (utf8_add(&b->text, text, strlen(text)))
		return SQLITE_NOMEM;
	return sqlite3_bind_text64(s, at, b->text.len ? (const char *)b->text.data : "",
				   b->text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static int bind_value(struct base *b, sqlite3_stmt *s, int at, struct value v)
{
	switch (v.type) {
	case VALUE_UINT:
		if (v.v.u <= INT64_MAX)
			return sqlite3_bind_int64(s, at, (int64_t)v.v.u);
		b->too_large++;
		return sqlite3_bind_null(s, at);
	case VALUE_INT:
		return sqlite3_bind_int64(s, at, v.v.i);
	case VALUE_REAL:
		return sqlite3_bind_double(s, at, v.v.d);
	case VALUE_BOOL:
		return sqlite3_bind_int64(s, at, v.v.b);
	case VALUE_TEXT:
		return bind_text(b, s, at, v.v.s);
	default:
		return sqlite3_bind_null(s, at);
	}
}

static int insert_row(struct base *b, sqlite3_stmt *s, const struct value *cells, size_t n)
{
	size_t i;
	int rc = SQLITE_OK;

	for (i = 0; i < n && rc == SQLITE_OK; i++)
		rc = bind_value(b, s, (int)i + 1, cells[i]);
	if (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_DONE)
		return sqlite3_reset(s) == SQLITE_OK ? 0 : -EIO;
	sqlite3_reset(s);
	return -EIO;
}

/* "INSERT INTO name VALUES (?, ?, ...)" */
static int prepare_insert(struct base *b, const char *name, size_t n, sqlite3_stmt **out)
{
	struct sink s = {.out = &b->sql};
	size_t i;

	buf_clear(&b->sql);
	sink_printf(&s, "INSERT INTO \"%s\" VALUES (", name);
	for (i = 0; i < n; i++)
		sink_puts(&s, i ? ", ?" : "?");
	sink_puts(&s, ")");
	if (s.error)
		return -ENOMEM;
	return sqlite3_prepare_v2(b->db, (const char *)b->sql.data, (int)b->sql.len, out, NULL) ==
			       SQLITE_OK
		       ? 0
		       : -EIO;
}

static int base_begin(void *arg, const struct sheet *s)
{
	struct base *b = arg;
	struct sink sql = {.out = &b->sql};
	struct value row[META_COLUMN_CELLS];
	enum value_type type;
	size_t i;
	int rc = 0;

	buf_clear(&b->sql);
	sink_printf(&sql, "CREATE TABLE \"%s\" (", s->name);
	for (i = 0; i < s->n && !rc; i++) {
		/* SQLite has no booleans: 0 and 1 */
		type = s->column[i].type == VALUE_BOOL ? VALUE_UINT : s->column[i].type;
		sink_printf(&sql, "%s\"%s\" %s", i ? ", " : "", s->column[i].name, meta_type(type));
		meta_column(s, i, row);
		rc = insert_row(b, b->describe, row, META_COLUMN_CELLS);
	}
	if (*s->key)
		sink_printf(&sql, ", PRIMARY KEY (%s)", s->key);
	sink_puts(&sql, ")");
	sink_put(&sql, "", 1);
	if (rc || sql.error)
		return rc ? rc : -ENOMEM;
	rc = run_sql(b, (const char *)b->sql.data);
	if (rc)
		return rc;
	return prepare_insert(b, s->name, s->n, &b->insert);
}

static int base_row(void *arg, const struct sheet *s, const struct value *cells)
{
	struct base *b = arg;

	return insert_row(b, b->insert, cells, s->n);
}

/* Indices are created after the rows, which is faster. */
static int base_end(void *arg, const struct sheet *s)
{
	struct base *b = arg;
	struct sink sql = {.out = &b->sql};
	size_t i;
	int rc = 0;

	sqlite3_finalize(b->insert);
	b->insert = NULL;
	for (i = 0; i < SHEET_INDICES && s->index[i] && !rc; i++) {
		buf_clear(&b->sql);
		sink_printf(&sql, "CREATE INDEX \"%s_%s\" ON \"%s\" (\"%s\")", s->name, s->index[i],
			    s->name, s->index[i]);
		sink_put(&sql, "", 1);
		rc = sql.error ? sql.error : run_sql(b, (const char *)b->sql.data);
	}
	return rc;
}

struct meta_rows {
	struct base *base;
	sqlite3_stmt *insert;
	int rc;
};

static void put_meta(void *arg, const char *name, struct value v)
{
	struct meta_rows *m = arg;
	struct value row[2] = {value_text(name), v};

	if (!m->rc)
		m->rc = insert_row(m->base, m->insert, row, 2);
}

static int write_meta(struct base *b, const struct report *r)
{
	struct meta_rows m = {.base = b};

	m.rc = prepare_insert(b, "meta", 2, &m.insert);
	if (m.rc)
		return m.rc;
	meta_each(r, put_meta, &m);
	put_meta(&m, "integers_too_large", value_uint(b->too_large));
	sqlite3_finalize(m.insert);
	return m.rc;
}

static int write_all(struct base *b, const struct report *r)
{
	const struct sheet_way way = {b, base_begin, base_row, base_end};
	int rc;

	rc = run_sql(b, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
			"PRAGMA user_version=" STRING(
				META_FORMAT) "; BEGIN;"
					     "CREATE TABLE meta (name TEXT PRIMARY KEY, value);"
					     "CREATE TABLE columns (table_name TEXT, column_name "
					     "TEXT, type TEXT,"
					     " unit TEXT, PRIMARY KEY (table_name, column_name))");
	if (rc)
		return rc;
	rc = prepare_insert(b, "columns", META_COLUMN_CELLS, &b->describe);
	if (!rc)
		rc = sheets_write(r, &way);
	if (!rc)
		rc = write_meta(b, r);
	sqlite3_finalize(b->insert);
	sqlite3_finalize(b->describe);
	b->insert = b->describe = NULL;
	return rc ? rc : run_sql(b, "COMMIT");
}

int export_sqlite(const struct report *r, const char *path, struct buf *why)
{
	struct base b = {0};
	struct atomic_file d;
	int rc = atomic_file_init(&d, path);

	if (!strcmp(path, "-") || (!rc && !*d.temp)) {
		atomic_file_drop(&d);
		return report_fail(why, -EINVAL, "--sqlite needs a regular file, not '%s'", path);
	}
	if (rc)
		return report_fail(why, rc, "cannot write '%s': %s", path, log_error(rc));
	if (sqlite3_open_v2(d.temp, &b.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		rc = -EIO;
	else
		rc = write_all(&b, r);
	if (rc)
		report_fail(why, rc, "cannot write '%s': %s", path,
			    rc == -EIO ? sqlite3_errmsg(b.db) : log_error(rc));
	if (sqlite3_close(b.db) != SQLITE_OK && !rc)
		rc = report_fail(why, -EIO, "cannot close '%s'", path);
	if (!rc && (rc = atomic_file_close(&d)) != 0)
		report_fail(why, rc, "cannot write '%s': %s", path, log_error(rc));
	atomic_file_drop(&d);
	buf_release(&b.sql);
	buf_release(&b.text);
	return rc;
}
