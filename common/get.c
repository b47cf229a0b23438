/* SPDX-License-Identifier: BSD-3-Clause */
/* get.c - looks up keys in unpacked maps (pack.h). */
#include <string.h>

#include "common/pack.h"

const msgpack_object *get(const msgpack_object *map, const char *key)
{
	size_t n = strlen(key);

	if (!map || map->type != MSGPACK_OBJECT_MAP)
		return NULL;
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];

		if (kv->key.type == MSGPACK_OBJECT_STR && kv->key.via.str.size == n &&
		    memcmp(kv->key.via.str.ptr, key, n) == 0)
			return &kv->val;
	}
	return NULL;
}

uint64_t get_u64(const msgpack_object *map, const char *key, uint64_t missing)
{
	object_u64(get(map, key), &missing);
	return missing;
}

int64_t get_i64(const msgpack_object *map, const char *key, int64_t missing)
{
	object_i64(get(map, key), &missing);
	return missing;
}

double get_f64(const msgpack_object *map, const char *key, double missing)
{
	object_f64(get(map, key), &missing);
	return missing;
}

bool get_true(const msgpack_object *map, const char *key)
{
	const msgpack_object *o = get(map, key);

	return o && o->type == MSGPACK_OBJECT_BOOLEAN && o->via.boolean;
}

struct text get_text(const msgpack_object *map, const char *key)
{
	struct text t = {NULL, 0};

	object_text(get(map, key), &t);
	return t;
}

struct text get_bin(const msgpack_object *map, const char *key)
{
	struct text t = {NULL, 0};

	object_bin(get(map, key), &t);
	return t;
}

bool text_is(struct text t, const char *s)
{
	return t.ptr && t.len == strlen(s) && memcmp(t.ptr, s, t.len) == 0;
}

char *text_copy(char *dst, size_t size, struct text t)
{
	size_t n = t.ptr ? t.len : 0;

	if (size == 0)
		return dst;
	if (n > size - 1)
		n = size - 1;
	if (n)
		memcpy(dst, t.ptr, n);
	dst[n] = '\0';
	return dst;
}
