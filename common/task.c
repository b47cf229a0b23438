/* SPDX-License-Identifier: BSD-3-Clause */
/* task.c - one task record: to and from messages. */
#include "common/task_slots.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(struct task_record, member)

const struct task_slot task_slots[TASK_SLOTS] = {
#define FIELD(name, type, help) {#name, KIND_##type, AT(name), TASK_F_##name, AT(known), 1},
#include "task_fields.def"
#undef FIELD
#define COUNT(id, unit, ...)
#define TIME(id, ...) {#id "_ns", KIND_u64, AT(own[CREMA_T_##id]), CREMA_T_##id, AT(own_known), 0},
#include "counters.def"
#undef TIME
#define TIME(id, ...)                                                                              \
	{"pool_" #id "_ns", KIND_u64, AT(pool[CREMA_T_##id]), CREMA_T_##id, AT(pool_known), 0},
#include "counters.def"
#undef TIME
#undef COUNT
#define TIME(id, ...)
#define COUNT(id, unit, ...)                                                                       \
	{#id, KIND_u64, AT(count[CREMA_C_##id]), CREMA_C_##id, AT(count_known), 1},
#include "counters.def"
#undef TIME
#undef COUNT
};

const char *task_name(unsigned i)
{
	return task_slots[i].name;
}

void task_pack_names(msgpack_packer *pk)
{
	pack_array(pk, TASK_SLOTS);
	for (unsigned i = 0; i < TASK_SLOTS; i++)
		pack_text(pk, task_slots[i].name);
}

static int16_t slot_by_name(const msgpack_object *name, uint32_t guess)
{
	struct text t;

	if (!object_text(name, &t))
		return -1;
	/* The usual case: both sides have the same tables. */
	if (guess < TASK_SLOTS && text_is(t, task_slots[guess].name))
		return (int16_t)guess;
	for (unsigned i = 0; i < TASK_SLOTS; i++)
		if (text_is(t, task_slots[i].name))
			return (int16_t)i;
	return -1;
}

int task_map_init(struct task_map *map, const msgpack_object *names)
{
	map->n = 0;
	if (!names || names->type != MSGPACK_OBJECT_ARRAY)
		return -EBADMSG;
	for (uint32_t i = 0; i < names->via.array.size && i < TASK_NAME_MAX; i++) {
		map->slot[i] = slot_by_name(&names->via.array.ptr[i], i);
		map->n = i + 1;
	}
	return 0;
}

void task_map_own(struct task_map *map)
{
	map->n = TASK_SLOTS;
	for (int i = 0; i < (int)TASK_SLOTS; i++)
		map->slot[i] = (int16_t)i;
}

static bool is_known(const struct task_record *r, const struct task_slot *s)
{
	const char *mask = (const char *)r + s->mask;

	if (s->wide)
		return (*(const uint64_t *)(const void *)mask >> s->bit) & 1u;
	return (*(const uint32_t *)(const void *)mask >> s->bit) & 1u;
}

void task_encode(msgpack_packer *pk, const struct task_record *r)
{
	pack_array(pk, 2 + TASK_SLOTS);
	pack_u64(pk, r->type);
	pack_u64(pk, r->rev);
	for (unsigned i = 0; i < TASK_SLOTS; i++) {
		const struct task_slot *s = &task_slots[i];
		const void *at = (const char *)r + s->offset;
		const struct text *t = at;

		if (!is_known(r, s))
			pack_nil(pk);
		else if (s->kind == KIND_u64)
			pack_u64(pk, *(const uint64_t *)at);
		else if (s->kind == KIND_i64)
			pack_i64(pk, *(const int64_t *)at);
		else if (s->kind == KIND_f64)
			pack_f64(pk, *(const double *)at);
		else
			pack_str(pk, t->ptr, t->len);
	}
}

bool task_slot_take(struct task_record *r, const struct task_slot *s, const msgpack_object *o)
{
	void *at = (char *)r + s->offset;

	switch (s->kind) {
	case KIND_u64:
		return object_u64(o, at);
	case KIND_i64:
		return object_i64(o, at);
	case KIND_f64:
		return object_f64(o, at);
	default:
		return object_text(o, at);
	}
}

int task_decode(struct task_record *r, const struct task_map *map, const msgpack_object *message)
{
	const msgpack_object *item;
	uint64_t type;
	uint32_t n;

	if (!message || message->type != MSGPACK_OBJECT_ARRAY || message->via.array.size < 2)
		return -EBADMSG;
	item = message->via.array.ptr;
	memset(r, 0, sizeof(*r));
	if (!object_u64(&item[0], &type) || !task_is_message(type) ||
	    !object_u64(&item[1], &r->rev))
		return -EBADMSG;
	r->type = (uint32_t)type;
	n = message->via.array.size - 2;
	if (n > map->n)
		n = map->n;
	for (uint32_t i = 0; i < n; i++) {
		const struct task_slot *s;

		if (map->slot[i] < 0)
			continue;
		s = &task_slots[map->slot[i]];
		if (task_slot_take(r, s, &item[2 + i]))
			task_slot_set(r, s);
	}
	return 0;
}
