/* SPDX-License-Identifier: BSD-3-Clause */
/* model_columns.c - COLUMN messages: the highest revision of each row wins. */
#include <errno.h>
#include <string.h>

#include "collector/model/model_map.h"

static bool same_key(const void *item, const void *key)
{
	return !memcmp(item, key, sizeof(struct column_key)); /* the row begins with its key */
}

static struct column_row *row_of(struct model *m, const struct column_key *key)
{
	uint64_t hash = hash_pair(
		hash_pair((uintptr_t)key->column ^ key->number << 48, (uintptr_t)key->dataset),
		hash_pair((uintptr_t)key->worker, (uintptr_t)key->span));
	struct column_row *r = table_find(&m->column_table, hash, same_key, key);

	if (r)
		return r;
	r = TABLE_NEW(&m->column_table, hash, &m->arena, &m->columns);
	if (!r)
		return NULL;
	r->key = *key;
	return r;
}

static void take_lines(struct model *m, struct column_row *r, const msgpack_object *list)
{
	struct text line;

	memset(r->line, 0, sizeof(r->line));
	if (!list || list->type != MSGPACK_OBJECT_ARRAY)
		return;
	for (uint32_t i = 0; i < list->via.array.size && i < CREMA_COLUMN_LINES; i++)
		if (object_text(&list->via.array.ptr[i], &line))
			r->line[i] = model_text(m, line);
}

int model_feed_column(struct model *m, struct worker *w, const msgpack_object *map)
{
	const struct column_key key = {.worker = w,
				       .number = get_u64(map, "number", 0),
				       .column = map_text(m, map, "column"),
				       .tree = map_text(m, map, "tree"),
				       .dataset = map_text(m, map, "dataset"),
				       .span = map_text(m, map, "span"),
				       .together = get_true(map, "together"),
				       .beyond = get_true(map, "beyond")};
	struct column_row *r = row_of(m, &key);

	if (!r)
		return -ENOMEM;
	if (!model_is_newest(m, get_u64(map, "rev", 0), &r->version))
		return m->error;
	take_lines(m, r, get(map, "lines"));
	r->more_lines = get_true(map, "more_lines");
	for (size_t i = 0; i < CREMA_COLUMN_NUMBERS; i++)
		r->number[i] = map_uint(map, row_column[i].name);
	return m->error;
}
