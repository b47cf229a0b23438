/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_zstd.c - this program as zstd: it calls ZSTD_trace_* as the real one does, with chosen
 * numbers, and checks them in the task and in the codec's row.
 */
#include "harness.h"

#include "shim/count/codec.h"
#include "ids.h"
#include "zstd_trace.h"

#define MS 1000000ull

extern uint64_t zstd_frames_of_nobody;
extern __thread uint64_t zstd_frames_here;

static const struct trace frame = {10506, 0, 0, 0, 0, 7000, 500};

static const struct crema_codec_row *row_of(int id)
{
	for (unsigned int i = 0; i < CREMA_SHM_CODEC_ROWS; i++) {
		if (crema_shm->codec[i].state == 2 && crema_shm->codec[i].codec == (uint32_t)id)
			return &crema_shm->codec[i];
	}
	return NULL;
}

static void has(const struct crema_task *t, int calls_id, uint64_t calls, uint64_t in, uint64_t out)
{
	const uint64_t *n = &t->own.count[calls_id];

	assert_int_equal(n[0], calls);
	assert_int_equal(n[1], in);
	assert_int_equal(n[2], out);
}

/* Its times are this thread's between the two calls. */
static void a_frame_in_one_call(void **state)
{
	struct harness_task h = harness_begin();
	uint64_t nobody = zstd_frames_of_nobody, here = zstd_frames_here;
	uint64_t wall = harness_now_ns();
	unsigned long long name = ZSTD_trace_decompress_begin(NULL);
	const uint64_t *n;
	struct crema_task *t;

	(void)state;
	assert_true(name != 0);
	harness_spin(20 * MS);
	ZSTD_trace_decompress_end(name, &frame);
	wall = harness_now_ns() - wall;
	name = ZSTD_trace_compress_begin(NULL);
	ZSTD_trace_compress_end(name, &frame);
	ZSTD_trace_compress_end(ZSTD_trace_compress_begin(NULL), &frame);
	t = harness_end(&h);
	has(t, CREMA_C_decompress_calls, 1, 500, 7000);
	has(t, CREMA_C_compress_calls, 2, 2 * 7000, 2 * 500);
	n = &t->own.count[CREMA_C_decompress_calls];
	assert_in_range(n[3], 20 * MS, wall + MS);
	assert_in_range(n[4], 20 * MS, wall + MS);
	assert_true(t->own.count[CREMA_C_compress_calls + 3] < 5 * MS);
	assert_int_equal(unknown_counts(t), 0);
	assert_int_equal(zstd_frames_here, here + 3);
	assert_int_equal(zstd_frames_of_nobody, nobody);
	assert_int_equal(row_of(CREMA_CODEC_zstd_trace_d)->calls, 1);
	assert_int_equal(row_of(CREMA_CODEC_zstd_trace_d)->cpu_ns, n[3]);
	assert_int_equal(row_of(CREMA_CODEC_zstd_trace_d)->wall_ns, n[4]);
	assert_int_equal(row_of(CREMA_CODEC_zstd_trace_c)->in_bytes, 14000);
	harness_free(&h);
}

/* Times of a frame in pieces, or of one after which another began, include the caller's. */
static void times_of_pieces_are_unknown(void **state)
{
	struct trace pieces = frame;

	(void)state;
	pieces.streaming = 1;
	for (int i = 0; i < 2; i++) {
		struct harness_task h = harness_begin();
		unsigned long long first = ZSTD_trace_decompress_begin(NULL);
		struct crema_task *t;

		if (i)
			assert_true(ZSTD_trace_decompress_begin(NULL) != first);
		ZSTD_trace_decompress_end(first, i ? &frame : &pieces);
		t = harness_end(&h);
		has(t, CREMA_C_decompress_calls, 1, 500, 7000);
		assert_int_equal(t->own.count[CREMA_C_decompress_calls + 3], 0);
		assert_int_equal(t->own.count[CREMA_C_decompress_calls + 4], 0);
		assert_int_equal(unknown_counts(t), CREMA_COUNT_BIT(decompress_cpu_ns) |
							    CREMA_COUNT_BIT(decompress_wall_ns));
		harness_free(&h);
	}
	assert_int_equal(row_of(CREMA_CODEC_zstd_trace_d)->time_unknown, 1);
}

static void versions_and_places(void **state)
{
	static const struct {
		unsigned int version;
		int counts;
	} known[] = {{10404, 0}, {10405, 1}, {19999, 1}, {20000, 0}};
	uint64_t nobody = zstd_frames_of_nobody;

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct harness_task h = harness_begin();
		struct trace of = frame;
		struct crema_task *t;

		of.version = known[i].version;
		ZSTD_trace_decompress_end(ZSTD_trace_decompress_begin(NULL), &of);
		t = harness_end(&h);
		assert_int_equal(t->own.count[CREMA_C_decompress_calls], known[i].counts);
		harness_free(&h);
	}
	/* within a hooked function the frame belongs to that function */
	codec_depth = 1;
	assert_true(ZSTD_trace_decompress_begin(NULL) == 0);
	codec_depth = 0;
	/* without a task it is counted as unattributed */
	assert_int_equal(zstd_frames_of_nobody, nobody);
	ZSTD_trace_decompress_end(ZSTD_trace_decompress_begin(NULL), &frame);
	assert_int_equal(zstd_frames_of_nobody, nobody + 1);
}

/* Frames of a library with hooked functions belong to those functions. Here that is this program,
 * permanently: this is the last test. */
static void hooked_libraries_count_themselves(void **state)
{
	unsigned long long name = ZSTD_trace_decompress_begin(NULL);

	(void)state;
	assert_true(name != 0);
	zstd_is_hooked((const void *)(uintptr_t)hooked_libraries_count_themselves);
	assert_true(ZSTD_trace_decompress_begin(NULL) == 0);
	assert_true(ZSTD_trace_compress_begin(NULL) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_in_one_call),
		cmocka_unit_test(times_of_pieces_are_unknown),
		cmocka_unit_test(versions_and_places),
		cmocka_unit_test(hooked_libraries_count_themselves),
	};

	return cmocka_run_group_tests_name("shim zstd", tests, harness_setup, NULL);
}
