/* SPDX-License-Identifier: BSD-3-Clause */
/* model_map.h - reading the maps of messages: numbers that may be unknown, interned text. */
#ifndef CREMA_COLLECTOR_MODEL_MODEL_MAP_H
#define CREMA_COLLECTOR_MODEL_MODEL_MAP_H

#include "collector/model/model.h"
#include "common/rows.h"

static inline struct value map_uint(const msgpack_object *map, const char *key)
{
	uint64_t u;

	return object_u64(get(map, key), &u) ? value_uint(u) : value_null();
}

/* The larger of two cumulative numbers. */
static inline void raise_to(struct value *have, struct value v)
{
	if (v.type == VALUE_UINT && (have->type != VALUE_UINT || v.v.u > have->v.u))
		*have = v;
}

/* Whether the record being fed is the newest of a row's so far, or that one again. */
bool model_is_newest(const struct model *m, uint64_t rev, struct row_version *of);
/* raise_to() for every number of a row; one that its newest record does not know is unknown. */
void model_raise(struct value *number, const struct row_number *of, size_t n,
		 const msgpack_object *map, bool newest);

static inline const char *map_text(struct model *m, const msgpack_object *map, const char *key)
{
	return model_text(m, get_text(map, key));
}

#endif
