/* SPDX-License-Identifier: BSD-3-Clause */
/* test_frame.c - frames, msgpack helpers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/pack.h"
#include "common/walk.h"

static const uint8_t worker[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255};

/* Copies bytes to the end of a page that precedes an unreadable one: an over-read crashes. */
static unsigned char *fence(const void *p, size_t n, void **map, size_t *size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (n + page - 1) / page * page;
	unsigned char *m;

	*size = room + page;
	m = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(m != MAP_FAILED);
	assert_int_equal(mprotect(m + room, page, PROT_NONE), 0);
	*map = m;
	if (n)
		memcpy(m + room - n, p, n);
	return m + room - n;
}

static void make(struct buf *out, const void *raw, size_t n)
{
	struct crema_frame_header h = frame_head(CREMA_FRAME_DATA, worker, 77);

	h.first_seq = 1000;
	h.count = 3;
	assert_int_equal(frame_encode(out, &h, raw, n), 0);
}

static void round_trip(const void *raw, size_t n, bool zlib)
{
	struct buf out = BUF_INIT, scratch = BUF_INIT;
	const unsigned char *back;
	struct frame f;

	make(&out, raw, n);
	assert_int_equal(frame_decode(&f, out.data, out.len), out.len);
	assert_int_equal(f.head.type, CREMA_FRAME_DATA);
	assert_memory_equal(f.head.worker, worker, 16);
	assert_int_equal(f.head.stream, 77);
	assert_int_equal(f.head.first_seq, 1000);
	assert_int_equal(f.head.count, 3);
	assert_int_equal(f.head.raw_bytes, n);
	assert_int_equal((f.head.flags & CREMA_FRAME_ZLIB) != 0, zlib);
	assert_int_equal(frame_payload(&f, &scratch, &back), 0);
	if (n)
		assert_memory_equal(back, raw, n);
	buf_release(&out);
	buf_release(&scratch);
}

/* Stored uncompressed although zlib would make it smaller. */
static void stored_as_it_is(const void *raw, size_t n)
{
	struct crema_frame_header h = frame_head(CREMA_FRAME_DATA, worker, 77);
	struct buf out = BUF_INIT;
	struct frame f;

	assert_int_equal(frame_encode_stored(&out, &h, raw, n), 0);
	assert_int_equal(frame_decode(&f, out.data, out.len), out.len);
	assert_int_equal(f.head.flags, 0);
	assert_int_equal(f.head.stored_bytes, n);
	assert_memory_equal(f.stored, raw, n);
	buf_release(&out);
}

static void test_round_trips(void **state)
{
	unsigned char *big = malloc(3 << 20);

	(void)state;
	memset(big, 'x', 3 << 20);
	round_trip(NULL, 0, false);
	round_trip("abc", 3, false);
	round_trip(big, FRAME_ZLIB_FROM - 1, false);
	round_trip(big, FRAME_ZLIB_FROM, true);
	stored_as_it_is(big, FRAME_ZLIB_FROM);
	round_trip(big, 3 << 20, true);
	srand(1);
	for (int i = 0; i < 100000; i++)
		big[i] = (unsigned char)rand();
	round_trip(big, 100000, false);
	free(big);
}

static void test_too_large(void **state)
{
	struct crema_frame_header h = frame_head(CREMA_FRAME_DATA, worker, 1);
	unsigned char *big = calloc(1, CREMA_FRAME_RAW_MAX + 1);
	struct buf out = BUF_INIT;

	(void)state;
	assert_int_equal(frame_encode(&out, &h, big, CREMA_FRAME_RAW_MAX + 1), -EMSGSIZE);
	assert_int_equal(frame_encode_stored(&out, &h, big, CREMA_FRAME_RAW_MAX + 1), -EMSGSIZE);
	for (size_t i = 0; i < CREMA_FRAME_STORED_MAX + 100000; i++)
		big[i] = (unsigned char)(rand() >> 7);
	assert_int_equal(frame_encode(&out, &h, big, CREMA_FRAME_STORED_MAX + 100000), -EMSGSIZE);
	assert_int_equal(out.len, 0);
	buf_release(&out);
	free(big);
}

static void test_every_prefix(void **state)
{
	struct buf out = BUF_INIT;
	struct frame f;

	(void)state;
	make(&out, "0123456789", 10);
	for (size_t n = 0; n < out.len; n++) {
		void *map;
		size_t size;
		unsigned char *p = fence(out.data, n, &map, &size);

		assert_int_equal(frame_decode(&f, p, n), -EAGAIN);
		munmap(map, size);
	}
	buf_release(&out);
}

static void test_every_bit(void **state)
{
	struct buf out = BUF_INIT;
	struct frame f;

	(void)state;
	make(&out, "0123456789", 10);
	for (size_t bit = 0; bit < 8 * out.len; bit++) {
		ssize_t rc;

		out.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
		rc = frame_decode(&f, out.data, out.len);
		/* A larger length requires more bytes; everything else is detected at once. */
		assert_true(rc == -EBADMSG || rc == -EAGAIN);
		if (rc == -EAGAIN)
			assert_in_range(bit / 8, offsetof(struct crema_frame_header, flags),
					offsetof(struct crema_frame_header, stored_bytes) + 3);
		out.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	assert_true(frame_decode(&f, out.data, out.len) > 0);
	buf_release(&out);
}

static void seal(unsigned char *p, size_t n)
{
	uLong crc;

	memset(p + offsetof(struct crema_frame_header, crc), 0, 4);
	crc = crc32(crc32(0, NULL, 0), p, (uInt)n);
	memcpy(p + offsetof(struct crema_frame_header, crc), &crc, 4);
}

static void test_caps(void **state)
{
	struct crema_frame_header h;
	struct buf out = BUF_INIT;
	struct frame f;

	(void)state;
	make(&out, "x", 1);
	memcpy(&h, out.data, sizeof(h));
	h.stored_bytes = CREMA_FRAME_STORED_MAX + 1;
	memcpy(out.data, &h, sizeof(h));
	assert_int_equal(frame_decode(&f, out.data, out.len), -EBADMSG);
	h.stored_bytes = 1;
	h.flags = CREMA_FRAME_ZLIB;
	h.raw_bytes = CREMA_FRAME_RAW_MAX + 1;
	memcpy(out.data, &h, sizeof(h));
	seal(out.data, out.len);
	assert_int_equal(frame_decode(&f, out.data, out.len), -EBADMSG);
	buf_release(&out);
}

static void test_version(void **state)
{
	struct crema_frame_header h = frame_head(CREMA_FRAME_ACK, NULL, 0);
	struct buf out = BUF_INIT;
	struct frame f;

	(void)state;
	h.version = CREMA_WIRE_VERSION + 1;
	assert_int_equal(frame_encode(&out, &h, NULL, 0), 0);
	assert_int_equal(frame_decode(&f, out.data, out.len), -EPROTONOSUPPORT);
	buf_release(&out);
}

/* A valid CRC over a payload that inflates to more, or less, than its header states. */
static void test_bombs(void **state)
{
	struct buf out = BUF_INIT, scratch = BUF_INIT;
	unsigned char zeros[4096] = {0};
	const unsigned char *raw;
	struct crema_frame_header h;
	struct frame f;
	uint32_t lies[] = {0, 1, 4095, 4097, CREMA_FRAME_RAW_MAX};

	(void)state;
	make(&out, zeros, sizeof(zeros));
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		memcpy(&h, out.data, sizeof(h));
		h.raw_bytes = lies[i];
		memcpy(out.data, &h, sizeof(h));
		seal(out.data, out.len);
		assert_true(frame_decode(&f, out.data, out.len) > 0);
		assert_int_equal(frame_payload(&f, &scratch, &raw), -EBADMSG);
	}
	buf_release(&out);
	buf_release(&scratch);
}

static void test_unpack_hostile(void **state)
{
	static const char *const bad[] = {
		"\xdd\xff\xff\xff\xff",
		"\xdf\xff\xff\xff\xff",
		"\xc1",
		"\xdb\xff\xff\xff\xff"
		"a",
		"\xc6\x00\x00\x00\x05"
		"abcd",
		"\x92\x01",
		"\x81\x01",
		"\x01\x02",
		"\xc9\xff\xff",
		"\xcf\x01",
		"\xa5"
		"abcd",
	};
	static const size_t len[] = {5, 5, 1, 6, 9, 2, 2, 2, 3, 2, 5};
	unsigned char deep[64];
	struct unpack u;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		void *map;
		size_t size;
		unsigned char *p = fence(bad[i], len[i], &map, &size);

		assert_int_equal(unpack_open(&u, p, len[i]), -EBADMSG);
		munmap(map, size);
	}
	assert_int_equal(unpack_open(&u, "", 0), -EBADMSG);
	memset(deep, 0x91, sizeof(deep));
	deep[63] = 1;
	assert_int_equal(unpack_open(&u, deep, sizeof(deep)), -EBADMSG);
	assert_int_equal(unpack_open(&u, deep + 64 - WALK_DEPTH_MAX - 1, WALK_DEPTH_MAX + 1), 0);
	unpack_release(&u);
	srand(7);
	for (int i = 0; i < 200000; i++) {
		unsigned char p[24];

		for (size_t k = 0; k < sizeof(p); k++)
			p[k] = (unsigned char)(rand() >> 5);
		if (unpack_open(&u, p, sizeof(p)) == 0)
			unpack_release(&u);
	}
}

static void test_get(void **state)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;
	struct unpack u;
	char text[4];
	double d = 0;

	(void)state;
	pack_init(&pk, &b);
	pack_map(&pk, 6);
	pack_kv_u64(&pk, "u", UINT64_MAX);
	pack_kv_i64(&pk, "i", -5);
	pack_kv_f64(&pk, "f", 2.5);
	pack_kv_text(&pk, "s", "hello");
	pack_kv_nil(&pk, "n");
	pack_kv_f64(&pk, "nan", (double)__builtin_nanf(""));
	assert_int_equal(unpack_open(&u, b.data, b.len), 0);
	assert_true(get_u64(&u.root, "u", 1) == UINT64_MAX);
	assert_int_equal(get_i64(&u.root, "u", 1), 1);
	assert_int_equal(get_i64(&u.root, "i", 1), -5);
	assert_int_equal(get_u64(&u.root, "i", 9), 9);
	assert_int_equal(get_u64(&u.root, "f", 9), 9);
	assert_true(object_f64(get(&u.root, "i"), &d) && d < -4.9);
	assert_true(is_nil(get(&u.root, "n")) && is_nil(get(&u.root, "nan")));
	assert_true(is_nil(get(&u.root, "missing")) && is_nil(NULL));
	assert_true(text_is(get_text(&u.root, "s"), "hello"));
	assert_string_equal(text_copy(text, sizeof(text), get_text(&u.root, "s")), "hel");
	assert_null(get_text(&u.root, "u").ptr);
	assert_null(get(get(&u.root, "u"), "x"));
	unpack_release(&u);
	buf_release(&b);
}

/* One item of each kind, with the bytes that the format defines: complete, one short, one too
 * many. */
static void test_sizes_of_items(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} items[] = {{"\x05", 1},
		     {"\xa3"
		      "abc",
		      4},
		     {"\xd9\x03"
		      "abc",
		      5},
		     {"\xc4\x02"
		      "xy",
		      4},
		     {"\xc5\0\x01x", 4},
		     {"\xc6\0\0\0\x01x", 6},
		     {"\xc7\x03\x07"
		      "abc",
		      6},
		     {"\xc8\0\x01\x07x", 5},
		     {"\xd4\x07x", 3},
		     {"\xd6\x07wxyz", 6},
		     {"\xcd\1\2", 3},
		     {"\xcb\0\0\0\0\0\0\0\0", 9},
		     {"\x92\1\2", 3},
		     {"\x81\1\2", 3},
		     {"\xdc\0\2\1\2", 5},
		     {"\xde\0\1\1\2", 5}};
	unsigned char room[16] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		memcpy(room, items[i].bytes, items[i].n);
		room[items[i].n] = 1;
		assert_int_equal(unpack_check(room, items[i].n), 0);
		assert_int_equal(unpack_check(room, items[i].n - 1), -EBADMSG);
		assert_int_equal(unpack_check(room, items[i].n + 1), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),  cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_every_prefix), cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_caps),	     cmocka_unit_test(test_version),
		cmocka_unit_test(test_bombs),	     cmocka_unit_test(test_unpack_hostile),
		cmocka_unit_test(test_get),	     cmocka_unit_test(test_sizes_of_items),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
