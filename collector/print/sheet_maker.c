/* SPDX-License-Identifier: BSD-3-Clause */
/* sheet_maker.c - writes the columns and rows of one flat table. */
#include "collector/print/sheet_maker.h"

#include <errno.h>
#include <string.h>

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* A column's unit follows from its name. */
static const char *unit_of(const char *name)
{
	static const struct {
		const char *end, *unit;
	} units[] = {
		{"_bytes", "bytes"},
		{"_bytesread", "bytes"},
		{"nbytes_managed", "bytes"},
		{"_seconds", "s"},
		{"_s", "s"},
		{"_percent", "%"},
		{"_gb", "GB"},
	};
	static const char *const times[] = {
		"start",     "stop",	     "time",	      "first_seen",
		"last_seen", "goodbye_time", "process_start", "host_sample_time"};
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (ends_in(name, units[i].end))
			return units[i].unit;
	}
	for (i = 0; i < sizeof(times) / sizeof(*times); i++) {
		if (!strcmp(name, times[i]))
			return "s since 1970-01-01 UTC";
	}
	return "";
}

void sheet_column_add(struct sheet_maker *k, const char *name, enum value_type type,
		      const char *unit)
{
	if (k->sheet.n == SHEET_COLUMNS) {
		k->rc = -E2BIG;
		return;
	}
	k->column[k->sheet.n++] = (struct sheet_column){name, type == VALUE_INT ? VALUE_UINT : type,
							unit ? unit : unit_of(name)};
}

void sheet_put_column(void *maker, const char *name, enum value_type type, struct value v)
{
	(void)v;
	sheet_column_add(maker, name, type, NULL);
}

void sheet_put_cell(void *maker, const char *name, enum value_type type, struct value v)
{
	(void)name, (void)type;
	sheet_cell(maker, v);
}

void sheet_cell(struct sheet_maker *k, struct value v)
{
	if (k->at < k->sheet.n)
		k->cell[k->at++] = v;
	else
		k->rc = -E2BIG;
}

struct sink sheet_list_open(struct sheet_maker *k)
{
	struct buf *b = &k->list[k->lists < SHEET_LISTS ? k->lists : SHEET_LISTS - 1];

	buf_clear(b);
	return (struct sink){.out = b};
}

void sheet_list_cell(struct sheet_maker *k, struct sink *s)
{
	struct buf *b = s->out;

	if (s->error || k->lists == SHEET_LISTS) {
		k->rc = s->error ? s->error : -E2BIG;
		return;
	}
	k->lists++;
	if (b->len && b->data[b->len - 1] == '\n')
		b->len--;
	if (buf_add(b, "", 1)) {
		k->rc = -ENOMEM;
		return;
	}
	sheet_cell(k, strcmp((const char *)b->data, "null") ? value_text((const char *)b->data)
							    : value_null());
}

void sheet_row_begin(struct sheet_maker *k)
{
	k->at = k->lists = 0;
	sheet_cell(k, value_text(k->report->run->id));
}

int sheet_row_end(struct sheet_maker *k)
{
	if (!k->rc && k->at != k->sheet.n)
		k->rc = -EPROTO;
	if (!k->rc)
		k->rc = k->way->row(k->way->arg, &k->sheet, k->cell);
	return k->rc;
}

int sheet_make(struct sheet_maker *k, const char *name, const char *key, const char *const *index,
	       void (*columns)(struct sheet_maker *), void (*rows)(struct sheet_maker *))
{
	size_t i;

	k->sheet = (struct sheet){.name = name, .key = key, .column = k->column};
	for (i = 0; i < SHEET_INDICES && index[i]; i++)
		k->sheet.index[i] = index[i];
	sheet_column_add(k, "run", VALUE_TEXT, NULL);
	columns(k);
	if (!k->rc)
		k->rc = k->way->begin(k->way->arg, &k->sheet);
	if (!k->rc)
		rows(k);
	if (!k->rc)
		k->rc = k->way->end(k->way->arg, &k->sheet);
	return k->rc;
}

void sheet_release(struct sheet_maker *k)
{
	size_t i;

	for (i = 0; i < SHEET_LISTS; i++)
		buf_release(&k->list[i]);
}
