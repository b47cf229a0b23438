/* SPDX-License-Identifier: BSD-3-Clause */
/* test_full.c - full tables: what does not fit is counted, and disturbs nothing else. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

#include "shim/count/codec.h"
#include "shim/count/file_row.h"

static void long_texts_are_cut(void **state)
{
	static char text[40000];
	uint32_t whole, cut, first;

	(void)state;
	memset(text, 'x', sizeof(text));
	first = arena_id(text, 32767);
	whole = arena_id(text, 32768);
	cut = arena_id(text, sizeof(text));
	assert_int_equal(strlen(arena_text(first)), 32767);
	assert_int_equal(strlen(arena_text(whole)), 32768);
	assert_int_equal(strlen(arena_text(cut)), 32768);
}

static void codecs_without_a_row_are_refused(void **state)
{
	enum { MORE = 5 };
	const struct codec_sum sum = {1, 200, 300, 40, 50, 0};
	uint64_t refused = crema_shm->totals.codecs_refused;
	struct harness_task h = harness_begin();
	struct crema_task *t = task_slot(h.owner);
	uint64_t calls = 0;
	char span[16];

	(void)state;
	for (unsigned int i = 0; i < CREMA_SHM_CODEC_ROWS + MORE; i++) {
		t->span = arena_id(span, (uint32_t)snprintf(span, sizeof(span), "span-%u", i));
		codec_count(CREMA_CODEC_zlib_decompress, 1, &sum);
	}
	harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_decompress_calls], CREMA_SHM_CODEC_ROWS + MORE);
	for (unsigned int i = 0; i < CREMA_SHM_CODEC_ROWS; i++) {
		assert_int_equal(crema_shm->codec[i].in_bytes, 200);
		calls += crema_shm->codec[i].calls;
	}
	assert_int_equal(calls, CREMA_SHM_CODEC_ROWS);
	assert_int_equal(crema_shm->totals.codecs_refused - refused, MORE);
	harness_free(&h);
}

static void files_without_a_row_share_the_last(void **state)
{
	enum { MORE = 7 };
	uint64_t refused = crema_shm->totals.files_refused;
	unsigned int used = 0, shared = 0;
	char name[32];

	(void)state;
	for (unsigned int i = 0; i < CREMA_SHM_FILES - 1; i++)
		used += crema_shm->file[i].state != 0;
	for (unsigned int i = used; i < CREMA_SHM_FILES - 1 + MORE; i++) {
		snprintf(name, sizeof(name), "http://host/%u.root", i);
		shared += file_row_remote(arena_id(name, (uint32_t)strlen(name)), 0) ==
			  CREMA_SHM_FILES;
	}
	assert_true(shared >= MORE); /* for some, the search stops before the end of the table */
	assert_int_equal(crema_shm->totals.files_refused - refused, shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(codecs_without_a_row_are_refused),
		cmocka_unit_test(files_without_a_row_share_the_last),
	};

	return cmocka_run_group_tests_name("shim full tables", tests, harness_setup, NULL);
}
