/* SPDX-License-Identifier: BSD-3-Clause */
/* model_servers.c - SERVER messages. */
#include <errno.h>

#include "collector/model/model_map.h"

static bool same_server(const void *item, const void *key)
{
	const struct server_row *a = item, *b = key;

	return a->worker == b->worker && a->server == b->server && a->scheme == b->scheme &&
	       a->span == b->span;
}

static struct server_row *server_of(struct model *m, const struct server_row *key)
{
	uint64_t hash = hash_pair(hash_pair((uintptr_t)key->server, (uintptr_t)key->span),
				  (uintptr_t)key->worker ^ (uintptr_t)key->scheme);
	struct server_row *s = table_find(&m->server_table, hash, same_server, key);

	if (s)
		return s;
	s = TABLE_NEW(&m->server_table, hash, &m->arena, &m->servers);
	if (!s)
		return NULL;
	*s = *key;
	return s;
}

int model_feed_server(struct model *m, struct worker *w, const msgpack_object *map)
{
	const msgpack_object *latency = get(map, "latency");
	struct server_row key = {.worker = w}, *s;
	uint64_t n;

	key.server = map_text(m, map, "server");
	key.scheme = map_text(m, map, "scheme");
	key.span = map_text(m, map, "span");
	s = server_of(m, &key);
	if (!s)
		return -ENOMEM;
	model_raise(s->number, row_server, CREMA_SERVER_NUMBERS, map,
		    model_is_newest(m, 0, &s->version));
	if (!latency || latency->type != MSGPACK_OBJECT_ARRAY)
		return m->error;
	for (uint32_t i = 0; i < latency->via.array.size && i < CREMA_LATENCY_BUCKETS; i++) {
		if (object_u64(&latency->via.array.ptr[i], &n) && n > s->latency[i])
			s->latency[i] = n;
	}
	return m->error;
}
