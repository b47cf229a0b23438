/* SPDX-License-Identifier: BSD-3-Clause */
/* test_walk.c - the msgpack walker against msgpack-c: each first byte, random values, truncated
 * ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "common/walk.h"

/* msgpack-c determines a value's length; zeros follow its first byte, so texts and containers are
 * empty. */
static void sizes_are_msgpack_s(void **state)
{
	char bytes[32] = {0};
	unsigned int first;

	(void)state;
	for (first = 0; first < 256; first++) {
		msgpack_unpacked value;
		size_t used = 0;

		bytes[0] = (char)first;
		msgpack_unpacked_init(&value);
		if (walk_size[first]) {
			assert_int_equal(msgpack_unpack_next(&value, bytes, sizeof(bytes), &used),
					 MSGPACK_UNPACK_SUCCESS);
			assert_int_equal(used, walk_size[first]);
			assert_true(value.data.type != MSGPACK_OBJECT_ARRAY &&
				    value.data.type != MSGPACK_OBJECT_MAP);
		} else {
			/* a container, a length that follows, or the unused byte */
			assert_true((first >= 0x80 && first < 0xa0) ||
				    (first >= 0xc4 && first < 0xca) || first >= 0xd9 ||
				    first == 0xc1);
			assert_true(first < 0xe0);
		}
		msgpack_unpacked_destroy(&value);
	}
}

/* The type of an item according to msgpack-c; lengths of 0 to 4 if the first byte does not define
 * them. */
static void items_are_msgpack_s(void **state)
{
	unsigned int first, length;

	(void)state;
	for (first = 0; first < 256; first++) {
		for (length = 0; length < 5; length++) {
			unsigned char bytes[64] = {(unsigned char)first};
			struct walk_item item = {0};
			msgpack_unpacked value;
			size_t used = 0, i;
			bool ok;

			/* the last byte of each possible length */
			if (first >= 0xc4 && first < 0xca)
				bytes[(size_t)1 << (first - 0xc4) % 3] = (unsigned char)length;
			else if (first >= 0xd9 && first < 0xdc)
				bytes[(size_t)1 << (first - 0xd9)] = (unsigned char)length;
			else if (first >= 0xdc && first < 0xe0)
				bytes[(size_t)2 << (first - 0xdc) % 2] = (unsigned char)length;
			else
				bytes[1] = (unsigned char)length;
			msgpack_unpacked_init(&value);
			ok = msgpack_unpack_next(&value, (char *)bytes, sizeof(bytes), &used) ==
			     MSGPACK_UNPACK_SUCCESS;
			assert_int_equal(walk_item(bytes, sizeof(bytes), &item), ok);
			if (!ok)
				continue;
			switch (value.data.type) {
			case MSGPACK_OBJECT_POSITIVE_INTEGER:
				/* a positive value of a signed type is not NUMBER */
				if (first < 0xd0) {
					assert_int_equal(item.kind, WALK_NUMBER);
					assert_true(item.number == value.data.via.u64);
				} else {
					assert_int_equal(item.kind, WALK_OTHER);
				}
				break;
			case MSGPACK_OBJECT_STR:
				assert_int_equal(item.kind, WALK_TEXT);
				assert_int_equal(item.number, value.data.via.str.size);
				break;
			case MSGPACK_OBJECT_ARRAY:
				assert_int_equal(item.kind, WALK_ARRAY);
				assert_int_equal(item.number, value.data.via.array.size);
				break;
			case MSGPACK_OBJECT_MAP:
				assert_int_equal(item.kind, WALK_MAP);
				assert_int_equal(item.number, 2 * value.data.via.map.size);
				break;
			default:
				assert_int_equal(item.kind, WALK_OTHER);
			}
			assert_int_equal(walk_values(bytes, sizeof(bytes), 1, WALK_DEPTH_MAX),
					 used);
			if (item.kind < WALK_ARRAY)
				assert_int_equal(item.bytes, used);
			for (i = 0; i < used; i++) {
				unsigned char *exact =
					malloc(i ? i : 1); /* a sanitizer detects over-reads */

				memcpy(exact, bytes, i);
				assert_int_equal(walk_values(exact, i, 1, WALK_DEPTH_MAX),
						 -EBADMSG);
				free(exact);
			}
			msgpack_unpacked_destroy(&value);
		}
	}
}

/* A run is skipped at once: any byte at any position in it is classified as if it were alone. */
static void runs(void **state)
{
	uint8_t bytes[WALK_RUN];
	bool nils, plain;
	unsigned int at, byte, fill;

	(void)state;
	for (fill = 0; fill < 3; fill++) {
		for (at = 0; at < WALK_RUN; at++) {
			for (byte = 0; byte < 256; byte++) {
				memset(bytes, fill ? 0xc0 : 0x7f, sizeof(bytes));
				bytes[at ^ 1u] = fill == 2 ? 0x00 : bytes[at ^ 1u];
				bytes[at] = (uint8_t)byte;
				plain = byte < 0x80 || byte == 0xc0;
				nils = fill == 1 && byte == 0xc0;
				assert_int_equal(walk_is_plain(bytes), plain);
				assert_int_equal(walk_is_nils(bytes), nils);
			}
		}
	}
}

static void depth(void **state)
{
	uint8_t deep[WALK_DEPTH_MAX + 3];

	(void)state;
	memset(deep, 0x91, sizeof(deep));
	deep[WALK_DEPTH_MAX] = 7;
	assert_int_equal(walk_values(deep, WALK_DEPTH_MAX + 1, 1, WALK_DEPTH_MAX),
			 WALK_DEPTH_MAX + 1);
	assert_int_equal(walk_values(deep, WALK_DEPTH_MAX + 1, 1, WALK_DEPTH_MAX - 1), -EBADMSG);
	deep[WALK_DEPTH_MAX] = 0x91;
	deep[WALK_DEPTH_MAX + 1] = 7;
	assert_int_equal(walk_values(deep, WALK_DEPTH_MAX + 2, 1, WALK_DEPTH_MAX), -EBADMSG);
	deep[2] = 0x90; /* the rest is not examined */
	assert_int_equal(walk_values(deep, sizeof(deep), 1, WALK_DEPTH_MAX), 3);
	assert_int_equal(walk_values(deep, 0, 0, WALK_DEPTH_MAX), 0);
	assert_int_equal(walk_values((const uint8_t *)"\xdd\xff\xff\xff\xff", 5, 1, 2), -EBADMSG);
	assert_int_equal(walk_values((const uint8_t *)"\xdf\xff\xff\xff\xff", 5, 1, 2), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_msgpack_s),
		cmocka_unit_test(items_are_msgpack_s),
		cmocka_unit_test(runs),
		cmocka_unit_test(depth),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
