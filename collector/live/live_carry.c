/* SPDX-License-Identifier: BSD-3-Clause */
/* live_carry.c - saves and restores the live numbers of dropped segments. */
#include <errno.h>
#include <string.h>

#include "collector/live/live_parts.h"
#include "collector/model/lost.h"

static void pack_prefix(msgpack_packer *pk, const struct live_prefix *p)
{
	unsigned int i;

	pack_array(pk, 2 + LIVE_STATUSES);
	pack_text(pk, p->name);
	pack_u64(pk, p->wall_ns);
	for (i = 0; i < LIVE_STATUSES; i++)
		pack_u64(pk, p->ended[i]);
}

void live_pack_sums(const struct live *live, msgpack_packer *pk)
{
	size_t i;
	size_t map;

	map = pack_map_begin(pk);
	pack_kv_u64(pk, "chunks", live->chunks);
	pack_kv_u64(pk, "events", live->events);
	pack_kv_u64(pk, "lost_gone", live->records_lost);
	pack_kv_u64(pk, "records_bad", live->records_bad);
	pack_text(pk, "ended");
	pack_array(pk, LIVE_STATUSES);
	for (i = 0; i < LIVE_STATUSES; i++)
		pack_u64(pk, live->ended[i]);
	pack_text(pk, "prefixes");
	pack_array(pk, live->prefixes + 1);
	for (i = 0; i < live->prefixes; i++)
		pack_prefix(pk, &live->prefix[i]);
	pack_prefix(pk, &live->prefix[LIVE_PREFIXES]);
	pack_map_end(pk, map);
}

static uint64_t item_u64(const msgpack_object *list, uint32_t i)
{
	uint64_t v = 0;

	if (list && list->type == MSGPACK_OBJECT_ARRAY && i < list->via.array.size)
		object_u64(&list->via.array.ptr[i], &v);
	return v;
}

static void take_prefix(struct live *live, const msgpack_object *row)
{
	struct live_prefix *p;
	struct text name;
	uint32_t i;

	if (row->type != MSGPACK_OBJECT_ARRAY || !row->via.array.size ||
	    !object_text(&row->via.array.ptr[0], &name))
		return;
	p = live_prefix_of(live, name);
	p->wall_ns += item_u64(row, 1);
	for (i = 0; i < LIVE_STATUSES; i++)
		p->ended[i] += item_u64(row, 2 + i);
}

/* Earlier versions had the numbers missing from all workers' streams. */
static uint64_t take_lost(const struct live *live, const msgpack_object *map)
{
	uint64_t missing = get_u64(map, "records_lost", 0);

	return get_u64(map, "lost_gone", lost_records(missing, live->total[LIVE_records_refused]));
}

void live_take_sums(struct live *live, const msgpack_object *map)
{
	const msgpack_object *ended = get(map, "ended"), *rows = get(map, "prefixes");
	uint32_t i;

	live->chunks += get_u64(map, "chunks", 0);
	live->events += get_u64(map, "events", 0);
	live->records_lost += take_lost(live, map);
	live->records_bad += get_u64(map, "records_bad", 0);
	for (i = 0; i < LIVE_STATUSES; i++)
		live->ended[i] += item_u64(ended, i);
	for (i = 0; rows && rows->type == MSGPACK_OBJECT_ARRAY && i < rows->via.array.size; i++)
		take_prefix(live, &rows->via.array.ptr[i]);
}

int live_take_ended(struct live *live, const uint8_t *worker, const msgpack_object *list)
{
	bool folded;
	struct live_worker *w = live_worker(live, worker, &folded);

	if (!w)
		return folded ? 0 : -ENOMEM;
	return list && ranges_unpack(&w->ended, list) == -ENOMEM ? -ENOMEM : 0;
}
