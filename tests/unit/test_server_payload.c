/* SPDX-License-Identifier: BSD-3-Clause */
/* test_server_payload.c - which bytes are messages; no prefix is read beyond its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/ingest/server_payload.h"
#include "common/pack.h"

static void payload_check_accepts_messages_only(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		uint32_t count;
		int want;
	} example[] = {
		{"\x90", 1, 0, 0},
		{"\x91\x91\x01", 3, 1, 0},
		{"\x92\x91\x01\x92\x02\x81\xa1k\xc0", 9, 2, 0},
		{"\x91\x92\xcc\xc8\xcb\0\0\0\0\0\0\0\0", 13, 1, 0},
		{"\x91\x91\x01\xc0", 4, 1, -EBADMSG}, /* extra bytes */
		{"\x91\x91\x01", 3, 2, -EBADMSG},     /* wrong count */
		{"\x91\x90", 2, 1, -EBADMSG},	      /* a message without its number */
		{"\x91\x91\xa1x", 4, 1, -EBADMSG},    /* a text instead of its number */
		{"\x91\x81\x01\x01", 4, 1, -EBADMSG}, /* a map instead of a message */
		{"\x81\x91\x01\x01", 4, 1, -EBADMSG}, /* a map of messages */
		{"\x91\x92\x01\xc6\xff\xff\xff\xff", 8, 1, -EBADMSG},
		{"\x91\x92\x01\xdd\xff\xff\xff\xff", 8, 1, -EBADMSG},
		{"\x91\x92\x01\xc1", 4, 1, -EBADMSG},
		{"\x91\x92\x01\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x01", 19,
		 1, -EBADMSG}, /* too deep */
	};
	size_t i, cut;

	(void)state;
	for (i = 0; i < sizeof(example) / sizeof(example[0]); i++) {
		const uint8_t *p = (const uint8_t *)example[i].bytes;

		assert_int_equal(server_payload_check(p, example[i].n, example[i].count, NULL),
				 example[i].want);
		for (cut = 0; cut < example[i].n; cut++) {
			uint8_t *exact = malloc(cut ? cut : 1); /* a sanitizer detects over-reads */

			memcpy(exact, p, cut);
			if (!example[i].want)
				assert_int_equal(
					server_payload_check(exact, cut, example[i].count, NULL),
					-EBADMSG);
			free(exact);
		}
	}
}

static void put_value(msgpack_packer *pk, unsigned int depth)
{
	static const char text[300] = "text";
	unsigned int i, n = (unsigned int)rand() % 4;

	switch (rand() % (depth < 5 ? 9 : 7)) {
	case 0:
		pack_u64(pk, (uint64_t)rand() >> rand() % 32);
		break;
	case 1:
		pack_u64(pk, UINT64_MAX >> rand() % 64);
		break;
	case 2:
		pack_i64(pk, -(rand() >> rand() % 31));
		break;
	case 3:
		pack_nil(pk);
		break;
	case 4:
		pack_f64(pk, 1.5);
		break;
	case 5:
		pack_str(pk, text, (size_t)rand() % sizeof(text));
		break;
	case 6:
		pack_bin(pk, text, (size_t)rand() % sizeof(text));
		break;
	case 7:
		pack_array(pk, n);
		for (i = 0; i < n; i++)
			put_value(pk, depth + 1);
		break;
	default:
		pack_map(pk, n);
		for (i = 0; i < 2 * n; i++)
			put_value(pk, depth + 1);
	}
}

static void what_was_packed_is_found(void **state)
{
	uint32_t starts[8], want[8];
	unsigned int round, i, j, count, values;
	struct buf raw = BUF_INIT;
	msgpack_packer pk;

	(void)state;
	srand(1);
	for (round = 0; round < 3000; round++) {
		buf_clear(&raw);
		pack_init(&pk, &raw);
		count = (unsigned int)rand() % 8;
		pack_array(&pk, count);
		for (i = 0; i < count; i++) {
			values = (unsigned int)rand() % 90;
			want[i] = (uint32_t)raw.len;
			pack_array(&pk, 1 + values);
			pack_u64(&pk, 1 + i);
			for (j = 0; j < values; j++)
				put_value(&pk, 0);
		}
		assert_int_equal(raw.error, 0);
		assert_int_equal(server_payload_check(raw.data, raw.len, count, starts), 0);
		for (i = 0; i < count; i++)
			assert_int_equal(starts[i], want[i]);
		assert_int_equal(server_payload_check(raw.data, raw.len - 1, count, NULL),
				 -EBADMSG);
		assert_int_equal(server_payload_check(raw.data, raw.len, count + 1, NULL),
				 -EBADMSG);
	}
	buf_release(&raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payload_check_accepts_messages_only),
		cmocka_unit_test(what_was_packed_is_found),
	};

	return cmocka_run_group_tests_name("server_payload", tests, NULL, NULL);
}
