/* SPDX-License-Identifier: BSD-3-Clause */
/* test_record.c - task records by name: encode, decode, lists of other releases. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/task.h"

static void fill(struct task_record *r)
{
	memset(r, 0, sizeof(*r));
	r->type = CREMA_MSG_TASK_END;
	r->rev = 12;
	TASK_SET(r, attempt, 7);
	TASK_SET(r, key, ((struct text){"process-abc", 11}));
	TASK_SET(r, entrystart, -3);
	TASK_SET(r, coffea_processtime, 1.5);
	for (int i = 0; i < CREMA_TIMES; i++) {
		r->own[i] = 100u + (unsigned)i;
		r->pool[i] = 200u + (unsigned)i;
	}
	for (int i = 0; i < CREMA_COUNTS; i++)
		r->count[i] = UINT64_MAX - (unsigned)i;
	r->own_known = (1u << CREMA_TIMES) - 1;
	r->pool_known = r->own_known & ~(1u << CREMA_T_sleep);
	r->count_known = (UINT64_C(1) << CREMA_COUNTS) - 1;
	r->count_known &= ~CREMA_COUNT_BIT(storage_read_bytes);
}

static void test_same_list(void **state)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;
	struct task_record r, back;
	struct task_map map;
	struct unpack u;

	(void)state;
	fill(&r);
	pack_init(&pk, &b);
	task_encode(&pk, &r);
	task_map_own(&map);
	assert_int_equal(unpack_open(&u, b.data, b.len), 0);
	assert_int_equal(task_decode(&back, &map, &u.root), 0);
	assert_int_equal(back.type, r.type);
	assert_int_equal(back.rev, 12);
	assert_true(back.known == r.known && back.own_known == r.own_known);
	assert_true(back.pool_known == r.pool_known && back.count_known == r.count_known);
	assert_true(text_is(back.key, "process-abc"));
	assert_int_equal(back.entrystart, -3);
	assert_true(back.coffea_processtime > 1.4 && back.coffea_processtime < 1.6);
	assert_memory_equal(back.own, r.own, sizeof(r.own));
	assert_int_equal(back.count[CREMA_C_read_bytes], r.count[CREMA_C_read_bytes]);
	assert_false(TASK_COUNT_KNOWN(&back, storage_read_bytes));
	assert_false(TASK_POOL_KNOWN(&back, sleep));
	assert_true(TASK_OWN_KNOWN(&back, sleep));
	assert_false(TASK_KNOWN(&back, dataset));
	unpack_release(&u);
	buf_release(&b);
}

static void test_names(void **state)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;
	struct task_map map;
	struct unpack u;

	(void)state;
	pack_init(&pk, &b);
	task_pack_names(&pk);
	assert_int_equal(unpack_open(&u, b.data, b.len), 0);
	assert_int_equal(u.root.via.array.size, TASK_SLOTS);
	assert_int_equal(task_map_init(&map, &u.root), 0);
	for (unsigned i = 0; i < TASK_SLOTS; i++) {
		assert_int_equal(map.slot[i], i);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(task_name(i), task_name(k));
	}
	assert_string_equal(task_name(TASK_FIELDS), "cpu_ns");
	assert_string_equal(task_name(TASK_FIELDS + CREMA_TIMES), "pool_cpu_ns");
	assert_string_equal(task_name(TASK_FIELDS + 2 * CREMA_TIMES), "read_calls");
	unpack_release(&u);
	buf_release(&b);
}

/* A list from another release: another order, unknown names, missing names. */
static void test_other_list(void **state)
{
	static const char *const names[] = {"read_bytes", "from_the_future", "key",
					    "cpu_ns",	  "attempt",	     "events"};
	struct buf b = BUF_INIT, m = BUF_INIT;
	struct task_record r;
	struct task_map map;
	struct unpack u, v;
	msgpack_packer pk;

	(void)state;
	pack_init(&pk, &b);
	pack_array(&pk, 7);
	for (int i = 0; i < 6; i++)
		pack_text(&pk, names[i]);
	pack_u64(&pk, 5); /* not even a name */
	assert_int_equal(unpack_open(&u, b.data, b.len), 0);
	assert_int_equal(task_map_init(&map, &u.root), 0);
	pack_init(&pk, &m);
	pack_array(&pk, 2 + 9);
	pack_u64(&pk, CREMA_MSG_TASK_START);
	pack_u64(&pk, 1);
	pack_u64(&pk, 4096);
	pack_map(&pk, 0);
	pack_text(&pk, "k");
	pack_text(&pk, "a number was promised");
	pack_u64(&pk, 3);
	pack_nil(&pk);
	for (int i = 0; i < 3; i++)
		pack_u64(&pk, 1);
	assert_int_equal(unpack_open(&v, m.data, m.len), 0);
	assert_int_equal(task_decode(&r, &map, &v.root), 0);
	assert_int_equal(r.count[CREMA_C_read_bytes], 4096);
	assert_true(TASK_COUNT_KNOWN(&r, read_bytes));
	assert_true(text_is(r.key, "k"));
	assert_int_equal(r.attempt, 3);
	assert_false(TASK_OWN_KNOWN(&r, cpu));
	assert_false(TASK_KNOWN(&r, events) || TASK_KNOWN(&r, prefix));
	unpack_release(&u);
	unpack_release(&v);
	buf_release(&b);
	buf_release(&m);
}

static void test_no_task(void **state)
{
	static const char *const bad[] = {
		"\x05", "\x90", "\x91\x03", "\x92\x08\x01", "\x92\x03\xc0", "\x92\x00\x01", "\x80"};
	static const size_t len[] = {1, 1, 2, 3, 3, 3, 1};
	struct task_record r;
	struct task_map map;
	struct unpack u;

	(void)state;
	task_map_own(&map);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(unpack_open(&u, bad[i], len[i]), 0);
		assert_int_equal(task_decode(&r, &map, &u.root), -EBADMSG);
		unpack_release(&u);
	}
	assert_int_equal(task_decode(&r, &map, NULL), -EBADMSG);
	assert_int_equal(task_map_init(&map, NULL), -EBADMSG);
	assert_int_equal(unpack_open(&u, "\x92\x03\x01", 3), 0);
	assert_int_equal(task_decode(&r, &map, &u.root), 0);
	assert_true(r.known == 0);
	unpack_release(&u);
}

/* Any scalar value of up to 300 bytes. */
static size_t put_plain(uint8_t *out, unsigned int *seed)
{
	static const uint8_t sizes[] = {0, 0, 0, 0, 1, 2, 4, 0, 0, 0, 4,  8, 1, 2,
					4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17, 1, 2, 4};
	size_t n = 1, bytes, i;
	uint8_t t;

	do
		t = (uint8_t)rand_r(seed);
	while ((t >= 0x80 && t < 0xa0) || t == 0xc1 || (t >= 0xc7 && t <= 0xc9) || t >= 0xdc);
	t = rand_r(seed) % 8 ? t : (uint8_t)(0xe0 + rand_r(seed) % 32);
	out[0] = t;
	bytes = t >= 0xa0 && t < 0xc0 ? t & 31u : t >= 0xc0 && t < 0xdc ? sizes[t - 0xc0] : 0;
	for (i = 0; i < bytes; i++)
		out[n++] = (uint8_t)rand_r(seed);
	if ((t >= 0xc4 && t <= 0xc6) || (t >= 0xd9 && t <= 0xdb)) {
		memset(out + 1, 0, bytes);
		out[bytes] = (uint8_t)(rand_r(seed) % 200);
		memset(out + n, 'x', out[bytes]);
		n += out[bytes];
	} else if (t == 0xca || t == 0xcb) {
		out[1] = 0x40; /* a number, often an integer */
		memset(out + 3, 0, bytes - 2);
	}
	return n;
}

/* For any scalar values task_read() returns the same as task_decode(), and nothing for a truncated
 * message. */
static void test_read_from_the_bytes_is_as_decoded(void **state)
{
	static uint8_t bytes[300 * 300];
	struct task_record from_bytes, decoded;
	unsigned int seed = 5, round, i, values;
	struct task_map map;
	struct unpack u;
	size_t n, at;

	(void)state;
	task_map_own(&map);
	for (round = 0; round < 3000; round++) {
		values = (unsigned int)rand_r(&seed) % 140;
		map.n = round % 3 ? TASK_SLOTS : (uint32_t)rand_r(&seed) % TASK_SLOTS;
		map.slot[(unsigned int)rand_r(&seed) % TASK_SLOTS] = -1;
		n = 0;
		bytes[n++] = 0xdc;
		bytes[n++] = 0;
		bytes[n++] = (uint8_t)(values + 2);
		bytes[n++] = (uint8_t)(CREMA_MSG_TASK_START + rand_r(&seed) % 4);
		bytes[n++] = (uint8_t)(rand_r(&seed) % 128);
		for (i = 0; i < values; i++)
			if (round % 2 && i % 32 < 24) /* nils come in runs */
				bytes[n++] = 0xc0;
			else
				n += put_plain(bytes + n, &seed);
		assert_int_equal(unpack_open(&u, bytes, n), 0);
		assert_int_equal(task_decode(&decoded, &map, &u.root), 0);
		assert_int_equal(task_read(&from_bytes, &map, bytes, n + 7), n);
		assert_memory_equal(&from_bytes, &decoded, sizeof(decoded));
		at = n * (round % 100) / 100; /* shorter: no byte after it counts */
		assert_int_equal(task_read(&from_bytes, &map, bytes, at), 0);
		unpack_release(&u);
		if (round % 10 == 0)
			task_map_own(&map);
	}
}

static void test_what_is_not_read_from_the_bytes(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} other[] = {
		{"\x93\x03\x01\x90", 4}, /* a container */
		{"\x92\x05\x01", 3},	 /* another message */
		{"\x92\x03\xc0", 3},	 /* no revision */
		{"\x92\xcc\x03\x01", 4}, /* a type in an unusual encoding */
		{"\x91\x03", 2},	 {"\x03", 1}, {"\x82\x03\x01\x01\x01", 5},
	};
	struct task_record r;
	struct task_map map;
	size_t i;

	(void)state;
	task_map_own(&map);
	for (i = 0; i < sizeof(other) / sizeof(*other); i++)
		assert_int_equal(task_read(&r, &map, other[i].bytes, other[i].n), 0);
	assert_int_equal(task_read(&r, &map, "\x92\x03\x01", 3), 3);
	assert_int_equal(task_read(&r, &map, "", 0), 0);
}

static void put_pairs(msgpack_packer *pk, int pairs)
{
	char key[16];

	for (int i = 0; i < pairs; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		pack_kv_u64(pk, key, (uint64_t)i);
	}
}

/* The same bytes as with pack_map(n): short and long maps, nested. */
static void test_counted_maps(void **state)
{
	static const int pairs[] = {0, 1, 15, 16, 300, 65535};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct buf counted = BUF_INIT, told = BUF_INIT;
		size_t outer, inner;
		msgpack_packer pk;

		pack_init(&pk, &told);
		pack_map(&pk, 2);
		pack_text(&pk, "inner");
		pack_map(&pk, (size_t)pairs[i]);
		put_pairs(&pk, pairs[i]);
		pack_kv_u64(&pk, "last", 1);
		pack_init(&pk, &counted);
		outer = pack_map_begin(&pk);
		pack_text(&pk, "inner");
		inner = pack_map_begin(&pk);
		put_pairs(&pk, pairs[i]);
		pack_map_end(&pk, inner);
		pack_kv_u64(&pk, "last", 1);
		pack_map_end(&pk, outer);
		assert_int_equal(counted.error, 0);
		assert_int_equal(counted.len, told.len);
		assert_memory_equal(counted.data, told.data, told.len);
		buf_release(&counted);
		buf_release(&told);
	}
}

static void test_maps_that_are_none(void **state)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;
	size_t map;

	(void)state;
	pack_init(&pk, &b);
	map = pack_map_begin(&pk);
	pack_text(&pk, "a key without its value");
	pack_map_end(&pk, map);
	assert_int_equal(b.error, -EINVAL);
	buf_clear(&b);
	map = pack_map_begin(&pk);
	put_pairs(&pk, 65536);
	pack_map_end(&pk, map);
	assert_int_equal(b.error, -EINVAL);
	pack_map_end(&pk, map); /* the error persists */
	assert_int_equal(b.error, -EINVAL);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_list),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_other_list),
		cmocka_unit_test(test_no_task),
		cmocka_unit_test(test_read_from_the_bytes_is_as_decoded),
		cmocka_unit_test(test_what_is_not_read_from_the_bytes),
		cmocka_unit_test(test_counted_maps),
		cmocka_unit_test(test_maps_that_are_none),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
