/* SPDX-License-Identifier: BSD-3-Clause */
/* task_slots.h - where each value of a task record is kept: for task.c and task_read.c. */
#ifndef CREMA_COMMON_TASK_SLOTS_H
#define CREMA_COMMON_TASK_SLOTS_H

#include "common/task.h"

enum task_kind { KIND_u64, KIND_i64, KIND_f64, KIND_str };

/* Every slot: its wire name, how and where it is kept, and the mask that shows if it is known. */
struct task_slot {
	const char *name;
	enum task_kind kind;
	uint16_t offset;
	uint16_t bit;
	uint16_t mask; /* offset of the mask */
	uint16_t wide; /* the mask has 64 bits */
};

extern const struct task_slot task_slots[TASK_SLOTS];

/* Puts the value into the record: false if it is not of the slot's type. */
bool task_slot_take(struct task_record *r, const struct task_slot *s, const msgpack_object *o);

static inline void task_slot_set(struct task_record *r, const struct task_slot *s)
{
	char *mask = (char *)r + s->mask;

	if (s->wide)
		*(uint64_t *)(void *)mask |= UINT64_C(1) << s->bit;
	else
		*(uint32_t *)(void *)mask |= UINT32_C(1) << s->bit;
}

#endif
