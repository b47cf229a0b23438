/* SPDX-License-Identifier: BSD-3-Clause */
/* model_map.c - counters and rows of numbers in the maps of messages. */
#include "collector/model/model_map.h"

#include <string.h>

bool model_is_newest(const struct model *m, uint64_t rev, struct row_version *of)
{
	struct row_version fed = {rev, m->fed.stream, m->fed.record};

	if (fed.rev != of->rev	       ? fed.rev < of->rev
	    : fed.stream != of->stream ? fed.stream < of->stream
				       : fed.record < of->record)
		return false;
	*of = fed;
	return true;
}

void model_raise(struct value *number, const struct row_number *of, size_t n,
		 const msgpack_object *map, bool newest)
{
	for (size_t i = 0; i < n; i++) {
		const msgpack_object *got = get(map, of[i].name);
		uint64_t u;

		if (newest && got && got->type == MSGPACK_OBJECT_NIL)
			number[i] = value_null();
		else if ((newest || number[i].type != VALUE_NULL) && object_u64(got, &u))
			raise_to(&number[i], value_uint(u));
	}
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
