/* SPDX-License-Identifier: BSD-3-Clause */
/* opened.c - see opened.h. */
#include "collector/model/opened.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/model.h"
#include "collector/model/model_map.h"

/* NULL: no memory; *full: no room for another line. */
static struct opened_line *line_of(struct opened_lines *o, const char *line, bool *full)
{
	struct opened_line *made;

	*full = false;
	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].line == line)
			return &o->v[i];
	*full = o->n == OPENED_LINES;
	made = *full ? NULL : ARRAY_NEW(o);
	if (made)
		made->line = line;
	return made;
}

int opened_take(struct opened_lines *to, struct model *m, const msgpack_object *list)
{
	struct opened_line *o;
	struct text line;
	uint64_t u;
	bool full;

	for (uint32_t i = 0; list && list->type == MSGPACK_OBJECT_ARRAY && i < list->via.array.size;
	     i++) {
		const msgpack_object *one = &list->via.array.ptr[i], *part = one->via.array.ptr;

		if (one->type != MSGPACK_OBJECT_ARRAY ||
		    one->via.array.size <= CREMA_OPENED_NUMBERS || !object_text(part, &line))
			continue;
		o = line_of(to, model_text(m, line), &full);
		if (!o && full)
			break;
		if (!o)
			return -ENOMEM;
		for (size_t k = 0; k < CREMA_OPENED_NUMBERS; k++)
			if (object_u64(&part[1 + k], &u))
				raise_to(&o->number[k], value_uint(u));
	}
	return 0;
}

int opened_add(struct opened_lines *to, const struct opened_lines *from)
{
	struct opened_line *o;
	bool full;

	for (size_t i = 0; i < from->n; i++) {
		o = line_of(to, from->v[i].line, &full);
		if (!o && full)
			break;
		if (!o)
			return -ENOMEM;
		for (size_t k = 0; k < CREMA_OPENED_NUMBERS; k++)
			o->number[k] = o->number[k].type == VALUE_NULL
					       ? from->v[i].number[k]
					       : value_plus(o->number[k], from->v[i].number[k]);
	}
	return 0;
}

void opened_release(struct opened_lines *o)
{
	free(o->v);
	memset(o, 0, sizeof(*o));
}
