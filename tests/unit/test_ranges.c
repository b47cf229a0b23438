/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ranges.c - sets of bytes against a map of single bytes; the ring of extents. */
#include "fake_shm.h"

#include "agent/extents.h"
#include "common/ranges.h"

#define SIZE 500

static uint64_t counted(const unsigned char *map)
{
	uint64_t n = 0;

	for (int i = 0; i < SIZE; i++)
		n += map[i] & 1;
	return n;
}

static void test_sets_equal_a_map(void **state)
{
	unsigned char map[2][SIZE];
	struct ranges set[2];
	uint64_t both, seed = 7;

	(void)state;
	for (int round = 0; round < 200; round++) {
		memset(map, 0, sizeof(map));
		memset(set, 0, sizeof(set));
		for (int k = 0; k < 60; k++) {
			uint64_t from, n;

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			from = (seed >> 33) % SIZE;
			n = (seed >> 45) % 12;
			n = from + n > SIZE ? SIZE - from : n;
			assert_int_equal(ranges_add(&set[k % 2], from, from + n, SIZE), 0);
			memset(map[k % 2] + from, 1, n);
		}
		both = 0;
		for (int i = 0; i < SIZE; i++)
			both += map[0][i] & map[1][i];
		assert_int_equal(set[0].bytes, counted(map[0]));
		assert_int_equal(ranges_common(&set[0], &set[1]), both);
		for (size_t i = 1; i < set[0].n; i++)
			assert_true(set[0].v[i].from > set[0].v[i - 1].to);
		assert_int_equal(ranges_join(&set[0], &set[1]), 0);
		assert_int_equal(set[0].bytes, counted(map[0]) + counted(map[1]) - both);
		ranges_release(&set[0]);
		ranges_release(&set[1]);
	}
}

static void test_a_limit_leaves_the_set_as_it_was(void **state)
{
	struct ranges set = {0};

	(void)state;
	assert_int_equal(ranges_add(&set, 0, 10, 2), 0);
	assert_int_equal(ranges_add(&set, 20, 30, 2), 0);
	assert_int_equal(ranges_add(&set, 40, 50, 2), -ENOSPC);
	assert_int_equal(set.bytes, 20);
	assert_int_equal(ranges_add(&set, 5, 25, 2), 0); /* joins both */
	assert_int_equal(set.n, 1);
	assert_int_equal(set.bytes, 30);
	ranges_release(&set);
}

static void test_lists_travel(void **state)
{
	struct ranges set = {0}, got = {0};
	struct buf out = {0};
	struct unpack u;
	msgpack_packer pk;

	(void)state;
	ranges_add(&set, 3, 10, 9);
	ranges_add(&set, UINT64_C(1) << 40, (UINT64_C(1) << 40) + 5, 9);
	pack_init(&pk, &out);
	ranges_pack(&pk, &set);
	assert_int_equal(unpack_open(&u, out.data, out.len), 0);
	assert_int_equal(ranges_unpack(&got, &u.root), 0);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.bytes, 12);
	assert_int_equal(got.v[1].from, UINT64_C(1) << 40);
	u.root.via.array.size--; /* half a pair */
	assert_int_equal(ranges_unpack(&got, &u.root), -EBADMSG);
	assert_int_equal(got.bytes, 0);
	u.root.via.array.size++;
	u.root.via.array.ptr[3].type = MSGPACK_OBJECT_NIL; /* the good pair is not kept either */
	assert_int_equal(ranges_unpack(&got, &u.root), -EBADMSG);
	assert_int_equal(got.n, 0);
	assert_int_equal(got.bytes, 0);
	unpack_release(&u);
	ranges_release(&set);
	ranges_release(&got);
	buf_release(&out);
}

static void put(struct fake *f, uint64_t at, uint32_t row, uint64_t offset, uint32_t bytes)
{
	struct crema_extent *e = &f->shm->extent[at % CREMA_SHM_EXTENTS];

	e->offset = offset;
	e->bytes = bytes;
	e->row = row;
}

static void test_the_ring_is_emptied(void **state)
{
	struct fake *f = *state;
	struct extents e;

	extents_init(&e);
	f->shm->extents_tail = f->shm->extents_head = CREMA_SHM_EXTENTS - 1; /* across the end */
	put(f, CREMA_SHM_EXTENTS - 1, 5, 100, 50);
	put(f, CREMA_SHM_EXTENTS, 5, 120, 50);
	put(f, CREMA_SHM_EXTENTS + 1, 5 | CREMA_EXTENT_BASKET, 110, 20);
	put(f, CREMA_SHM_EXTENTS + 2, CREMA_SHM_FILES + 7, 1, 1); /* garbage */
	f->shm->extents_head += 6; /* the fifth is currently being written */
	put(f, CREMA_SHM_EXTENTS + 4, 5, 0, 10);
	extents_take(&e, &f->view, false);
	assert_int_equal(e.file[4].read_bytes, 100);
	assert_int_equal(e.file[4].read.bytes, 70);
	assert_int_equal(e.file[4].basket_bytes, 20);
	assert_int_equal(f->shm->extents_tail, CREMA_SHM_EXTENTS + 3);
	extents_take(&e, &f->view, true); /* it will never be completed */
	assert_int_equal(e.file[4].read_bytes, 110);
	assert_int_equal(f->shm->extents_tail, f->shm->extents_head);
	f->shm->extents_head += 10 * CREMA_SHM_EXTENTS; /* impossible */
	extents_take(&e, &f->view, false);
	assert_int_equal(e.file[4].read_bytes, 110);
	extents_release(&e);
}

static void test_what_a_dead_thread_had_under_way(void **state)
{
	struct fake *f = *state;
	struct extents e;

	extents_init(&e);
	f->shm->thread[3].state = 1;
	f->shm->thread[3].file_row = 2;
	f->shm->thread[3].extent_offset = 10;
	f->shm->thread[3].extent_bytes = 7;
	extents_take(&e, &f->view, false);
	assert_int_equal(e.file[1].read_bytes, 0);
	extents_take(&e, &f->view, true);
	assert_int_equal(e.file[1].read_bytes, 7);
	extents_release(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets_equal_a_map),
		cmocka_unit_test(test_a_limit_leaves_the_set_as_it_was),
		cmocka_unit_test(test_lists_travel),
		cmocka_unit_test_setup_teardown(test_the_ring_is_emptied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_a_dead_thread_had_under_way, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
