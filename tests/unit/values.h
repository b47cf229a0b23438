/* SPDX-License-Identifier: BSD-3-Clause */
/* values.h - fills structs with different numbers, and compares each with a decoded map. */
#ifndef TESTS_VALUES_H
#define TESTS_VALUES_H

#include "tests/unit/fake_shm.h"

/* A number of the map, and its offset in the struct. */
struct value {
	const char *name;
	size_t at;
};
#define VALUE(type, member)                                                                        \
	{                                                                                          \
#member, offsetof(struct type, member)                                             \
	}
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* No number is close to another one, or to 1000 or 1024 times it. */
static inline void fill(void *at, size_t bytes, uint64_t first)
{
	for (size_t i = 0; i < bytes / 8; i++)
		((uint64_t *)at)[i] = (first << 32) + 4096 * (5 + 7 * i);
}

static inline uint64_t number_at(const void *row, size_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)row + at, sizeof(v));
	return v;
}

static inline void add_at(void *row, size_t at, uint64_t more)
{
	uint64_t v = number_at(row, at) + more;

	memcpy((char *)row + at, &v, sizeof(v));
}

static inline void assert_number(const msgpack_object *map, const char *name, uint64_t due)
{
	uint64_t v = 0;

	if (!object_u64(get(map, name), &v) || v != due)
		fail_msg("%s is %ju, not %ju", name, (uintmax_t)v, (uintmax_t)due);
}

static inline void assert_text(const msgpack_object *map, const char *name, const char *due)
{
	if (!text_is(get_text(map, name), due))
		fail_msg("%s is not %s", name, due);
}

/* The key exists, and its value is unknown. */
static inline void assert_nil(const msgpack_object *map, const char *name)
{
	if (!get(map, name) || !is_nil(get(map, name)))
		fail_msg("%s is not nil", name);
}

static inline void assert_values(const msgpack_object *map, const void *row,
				 const struct value *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_number(map, value[i].name, number_at(row, value[i].at));
}

/* A map of counters as in totals and sections: own times, pool times (or none), counts. */
static inline void assert_counters(const msgpack_object *map, const struct crema_counters *due,
				   const uint64_t *pool, uint32_t no_time, uint64_t no_count)
{
	static const char *const own_names[] =
		{
#define TIME(id, ...) #id "_ns",
#define COUNT(id, unit, ...)
#include "counters.def"
#undef TIME
		},
				 *const pool_names[] =
					 {
#define TIME(id, ...) "pool_" #id "_ns",
#include "counters.def"
#undef TIME
#undef COUNT
					 },
				 *const count_names[] = {
#define TIME(id, ...)
#define COUNT(id, unit, ...) #id,
#include "counters.def"
#undef TIME
#undef COUNT
				 };

	assert_non_null(map);
	assert_int_equal(map->via.map.size, (pool ? 2 : 1) * CREMA_TIMES + CREMA_COUNTS);
	for (int i = 0; i < CREMA_TIMES; i++) {
		if (no_time >> i & 1) {
			assert_nil(map, own_names[i]);
			continue;
		}
		assert_number(map, own_names[i], due->time[i]);
		if (pool)
			assert_number(map, pool_names[i], pool[i]);
	}
	for (int i = 0; i < CREMA_COUNTS; i++) {
		if (no_count >> i & 1)
			assert_nil(map, count_names[i]);
		else
			assert_number(map, count_names[i], due->count[i]);
	}
}

#endif
