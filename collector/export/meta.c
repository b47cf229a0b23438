/* SPDX-License-Identifier: BSD-3-Clause */
/* meta.c - the tables meta and columns. */
#include "collector/export/meta.h"

#include "version.h"

const char *meta_type(enum value_type type)
{
	switch (type) {
	case VALUE_UINT:
	case VALUE_INT:
		return "INTEGER";
	case VALUE_REAL:
		return "REAL";
	case VALUE_BOOL:
		return "BOOLEAN";
	case VALUE_TEXT:
		return "TEXT";
	default:
		return "";
	}
}

void meta_column(const struct sheet *s, size_t i, struct value row[META_COLUMN_CELLS])
{
	const struct sheet_column *c = &s->column[i];

	row[0] = value_text(s->name);
	row[1] = value_text(c->name);
	row[2] = value_text(meta_type(c->type));
	row[3] = value_text(c->unit);
}

void meta_each(const struct report *r, void (*put)(void *arg, const char *name, struct value v),
	       void *arg)
{
	put(arg, "program", value_text("crema"));
	put(arg, "version", value_text(CREMA_VERSION));
	put(arg, "format", value_uint(META_FORMAT));
	put(arg, "run", value_text(r->run->id));
	put(arg, "attempts", value_uint(r->run->attempts.n));
	put(arg, "unknown", value_text("an empty cell or NULL: it could not be measured"));
	put(arg, "counted",
	    value_text("tasks.counted is true for the last ok attempt of each key; metrics of runs "
		       "hold these, those ending in _all every attempt"));
}
