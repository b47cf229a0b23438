/* SPDX-License-Identifier: BSD-3-Clause */
/* task_read.c - reads a task record from the bytes of its message (task.h). */
#include <string.h>

#include "common/task_slots.h"
#include "common/walk.h"

/* Bytes of the value at p; 0: a container, no value, or cut. */
static inline size_t plain_size(const uint8_t *p, size_t n)
{
	struct walk_item item;
	size_t size = walk_size[*p];

	if (size)
		return size <= n ? size : 0;
	return walk_item(p, n, &item) && item.kind < WALK_ARRAY ? item.bytes : 0;
}

static inline bool is_unsigned(uint8_t t)
{
	return t < 0x80 || (t >= 0xcc && t <= 0xcf);
}

static inline uint64_t unsigned_at(const uint8_t *p, size_t size)
{
	return size == 1 ? *p : walk_big_endian(p + 1, size - 1);
}

/* What msgpack-c makes of a plain value; types that no field has are nil. */
static msgpack_object object_at(const uint8_t *p, size_t size)
{
	msgpack_object o = {.type = MSGPACK_OBJECT_NIL};
	uint64_t v = size <= 9 ? unsigned_at(p, size) : 0;
	uint32_t narrow = (uint32_t)v;
	size_t head;
	float f;

	if (is_unsigned(*p)) {
		o.type = MSGPACK_OBJECT_POSITIVE_INTEGER;
		o.via.u64 = v;
	} else if (*p >= 0xe0 || (*p >= 0xd0 && *p <= 0xd3)) {
		o.via.i64 = size == 1	? (int8_t)*p
			    : size == 2 ? (int8_t)v
			    : size == 3 ? (int16_t)v
			    : size == 5 ? (int32_t)narrow
					: (int64_t)v;
		o.type = o.via.i64 < 0 ? MSGPACK_OBJECT_NEGATIVE_INTEGER
				       : MSGPACK_OBJECT_POSITIVE_INTEGER;
	} else if (*p == 0xca) {
		memcpy(&f, &narrow, sizeof(f));
		o.type = MSGPACK_OBJECT_FLOAT32;
		o.via.f64 = f;
	} else if (*p == 0xcb) {
		o.type = MSGPACK_OBJECT_FLOAT64;
		memcpy(&o.via.f64, &v, sizeof(v));
	} else if ((*p >= 0xa0 && *p < 0xc0) || (*p >= 0xd9 && *p <= 0xdb)) {
		head = *p < 0xc0 ? 1 : 1 + ((size_t)1 << (*p - 0xd9));
		o.type = MSGPACK_OBJECT_STR;
		o.via.str.size = (uint32_t)(size - head);
		o.via.str.ptr = (const char *)p + head;
	}
	return o;
}

static void take(struct task_record *r, const struct task_slot *s, const uint8_t *p, size_t size)
{
	msgpack_object o = object_at(p, size);

	if (task_slot_take(r, s, &o))
		task_slot_set(r, s);
}

/* The head of an array of 2 to 65,535; 0 if it is not one. */
static size_t array_head(const uint8_t *p, size_t n, uint32_t *items)
{
	struct walk_item item;

	if (!walk_item(p, n, &item) || item.kind != WALK_ARRAY || item.number < 2 ||
	    item.number > UINT16_MAX)
		return 0;
	*items = (uint32_t)item.number;
	return item.bytes;
}

size_t task_read(struct task_record *r, const struct task_map *map, const void *p, size_t n)
{
	const uint8_t *at = p, *end = at + n;
	const struct task_slot *s;
	uint32_t items, i;
	uint64_t v;
	size_t size = array_head(at, n, &items);

	at += size;
	if (!size || at == end || *at < CREMA_MSG_TASK_START || *at > CREMA_MSG_TASK_AMEND)
		return 0;
	memset(r, 0, sizeof(*r));
	r->type = *at++;
	size = at < end && is_unsigned(*at) ? plain_size(at, (size_t)(end - at)) : 0;
	if (!size)
		return 0;
	r->rev = unsigned_at(at, size);
	at += size;
	for (i = 0; i < items - 2; i++, at += size) {
		while (items - 2 - i > WALK_RUN && end - at > WALK_RUN && walk_is_nils(at)) {
			at += WALK_RUN;
			i += WALK_RUN;
		}
		size = at < end ? plain_size(at, (size_t)(end - at)) : 0;
		if (!size)
			return 0;
		if (*at == 0xc0 || i >= map->n || map->slot[i] < 0)
			continue;
		s = &task_slots[map->slot[i]];
		if (s->kind != KIND_u64 || !is_unsigned(*at)) {
			take(r, s, at, size);
			continue;
		}
		v = unsigned_at(at, size);
		memcpy((char *)r + s->offset, &v, sizeof(v));
		task_slot_set(r, s);
	}
	return (size_t)(at - (const uint8_t *)p);
}
