/* SPDX-License-Identifier: BSD-3-Clause */
/* model_map.c - counters and rows of numbers in the maps of messages. */
#include "collector/model/model_map.h"

#include <string.h>

void model_raise(struct value *number, const struct row_number *of, size_t n,
		 const msgpack_object *map)
{
	for (size_t i = 0; i < n; i++)
		raise_to(&number[i], map_uint(map, of[i].name));
}

void model_take_counters(struct counters *c, const msgpack_object *map)
{
	uint64_t u;
	unsigned int i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < 2 * CREMA_TIMES + CREMA_COUNTS; i++) {
		if (!object_u64(get(map, task_name(TASK_FIELDS + i)), &u))
			continue;
		if (i < CREMA_TIMES) {
			c->own[i] = u;
			c->own_known |= 1u << i;
		} else if (i < 2 * CREMA_TIMES) {
			c->pool[i - CREMA_TIMES] = u;
			c->pool_known |= 1u << (i - CREMA_TIMES);
		} else {
			c->count[i - 2 * CREMA_TIMES] = u;
			c->count_known |= UINT64_C(1) << (i - 2 * CREMA_TIMES);
		}
	}
}
