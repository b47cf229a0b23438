/* SPDX-License-Identifier: BSD-3-Clause */
/* model_sections.c - SECTION and GAUGE messages: the highest revision of each row wins. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "collector/model/model_map.h"

static struct section_key key_of(struct model *m, struct worker *w, const msgpack_object *map)
{
	return (struct section_key){.worker = w,
				    .number = get_u64(map, "number", 0),
				    .path = map_text(m, map, "path"),
				    .span = map_text(m, map, "span"),
				    .prefix = map_text(m, map, "prefix"),
				    .kind = map_text(m, map, "kind"),
				    .thread = map_text(m, map, "thread"),
				    .source = map_text(m, map, "source"),
				    .dataset = map_text(m, map, "dataset"),
				    .beyond = get_true(map, "beyond")};
}

static uint64_t hash_of(const struct section_key *k)
{
	uint64_t names = hash_pair((uintptr_t)k->path, (uintptr_t)k->span);
	uint64_t kinds = hash_pair((uintptr_t)k->prefix, (uintptr_t)k->kind ^ (uintptr_t)k->thread);

	return hash_pair(names ^ (uintptr_t)k->source ^ k->number << 48,
			 kinds ^ (uintptr_t)k->worker);
}

static bool same_key(const void *item, const void *key)
{
	return !memcmp(item, key, sizeof(struct section_key)); /* both rows begin with their key */
}

static struct section_row *section_of(struct model *m, const struct section_key *key)
{
	uint64_t hash = hash_of(key);
	struct section_row *s = table_find(&m->section_table, hash, same_key, key);

	if (s)
		return s;
	s = TABLE_NEW(&m->section_table, hash, &m->arena, &m->sections);
	if (!s)
		return NULL;
	s->key = *key;
	return s;
}

/* [first bucket, its count, the next one's count, ...] */
static void take_buckets(uint32_t *bucket, const msgpack_object *list)
{
	uint64_t at, n;

	memset(bucket, 0, CREMA_WALL_BUCKETS * sizeof(*bucket));
	if (!list || list->type != MSGPACK_OBJECT_ARRAY || !list->via.array.size ||
	    !object_u64(&list->via.array.ptr[0], &at))
		return;
	for (uint32_t i = 1; i < list->via.array.size && at < CREMA_WALL_BUCKETS; i++, at++) {
		if (object_u64(&list->via.array.ptr[i], &n) && n <= UINT32_MAX)
			bucket[at] = (uint32_t)n;
	}
}

int model_feed_section(struct model *m, struct worker *w, const msgpack_object *map)
{
	struct section_key key = key_of(m, w, map);
	struct section_row *s = section_of(m, &key);

	if (!s)
		return -ENOMEM;
	if (!model_is_newest(m, get_u64(map, "rev", 0), &s->version))
		return m->error;
	for (size_t i = 0; i < CREMA_SECTION_NUMBERS; i++)
		s->number[i] = map_uint(map, row_section[i].name);
	take_buckets(s->wall_bucket, get(map, "wall_buckets"));
	model_take_counters(&s->c, get(map, "counters"));
	return m->error;
}

static struct gauge_row *gauge_of(struct model *m, const struct section_key *key)
{
	uint64_t hash = hash_of(key);
	struct gauge_row *g = table_find(&m->gauge_table, hash, same_key, key);

	if (g)
		return g;
	g = TABLE_NEW(&m->gauge_table, hash, &m->arena, &m->gauges);
	if (!g)
		return NULL;
	g->key = *key;
	return g;
}

static uint64_t item_uint(const msgpack_object_array *list, uint32_t at)
{
	uint64_t u = 0;

	if (at < list->size)
		object_u64(&list->ptr[at], &u);
	return u;
}

static double item_real(const msgpack_object_array *list, uint32_t at)
{
	double d;

	return at < list->size && object_f64(&list->ptr[at], &d) ? d : (double)NAN;
}

/* Members that an older agent lacks come last, and are unknown. */
static void take_stat(struct crema_stat *s, const msgpack_object *list)
{
	uint32_t at = 0;

	*s = (struct crema_stat){0};
	if (list->type != MSGPACK_OBJECT_ARRAY)
		return;
#define GAUGE_NUMBER(name, type, ...) s->name = item_##type(&list->via.array, at++);
#include "rows.def"
}

int model_feed_gauge(struct model *m, struct worker *w, const msgpack_object *map)
{
	const msgpack_object *stats = get(map, "stats");
	struct section_key key = key_of(m, w, map);
	struct gauge_row *g = gauge_of(m, &key);

	if (!g)
		return -ENOMEM;
	if (!model_is_newest(m, get_u64(map, "rev", 0), &g->version))
		return m->error;
	g->broken = map_uint(map, "broken");
	if (!stats || stats->type != MSGPACK_OBJECT_ARRAY)
		return m->error;
	for (uint32_t i = 0; i < stats->via.array.size && i < CREMA_GAUGE_STATS; i++)
		take_stat(&g->stat[i], &stats->via.array.ptr[i]);
	return m->error;
}
