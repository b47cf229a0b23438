/* SPDX-License-Identifier: BSD-3-Clause */
/* test_full.c - full tables: what does not fit is counted, and disturbs nothing else. */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/count/codec.h"
#include "shim/count/fd.h"
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

static uint32_t remote_row(unsigned int i, uint32_t span)
{
	char name[32];

	snprintf(name, sizeof(name), "http://host/%u.root", i);
	return file_row_remote(arena_bulk_id(name, (uint32_t)strlen(name)), span);
}

static uint32_t span_id(unsigned int i)
{
	char name[32];

	return arena_id(name, (uint32_t)snprintf(name, sizeof(name), "span of files %u", i));
}

static void files_without_a_row_are_in_their_spans_rest(void **state)
{
	uint64_t refused = crema_shm->totals.files_refused;
	uint32_t first = span_id(0), row, rest = file_rest_row(first);
	unsigned int shared = 0;

	(void)state;
	for (unsigned int i = 0; i < 2 * CREMA_SHM_FILES; i++)
		shared += remote_row(i, first) == rest;
	assert_true(shared > CREMA_SHM_FILES);
	assert_int_equal(crema_shm->totals.files_refused - refused, shared);
	for (unsigned int i = 1; i <= CREMA_SHM_FILES_REST; i++) {
		row = remote_row(i, span_id(i));
		assert_int_equal(row, file_rest_row(span_id(i)));
		if (row == CREMA_SHM_FILES)
			break;
		assert_int_equal(crema_shm->file[row - 1].kind, CREMA_FILE_OTHER);
		assert_int_equal(crema_shm->file[row - 1].span, span_id(i));
		assert_int_equal(crema_shm->file[row - 1].path, 0);
	}
	/* more spans than such rows: it is unknown whose it is */
	row = file_rest_row(span_id(1000));
	assert_int_equal(row, CREMA_SHM_FILES);
	assert_int_equal(crema_shm->file[row - 1].span, 0);
	assert_int_equal(file_rest_row(first), rest);
}

/* A descriptor that one span's task has opened and another's reads. */
static void a_rest_row_follows_the_task(void **state)
{
	const char *path = harness_file("full.dat", 1000);
	struct harness_task h = harness_begin();
	uint32_t row[2];
	int fd;

	(void)state;
	fd = open(path, O_RDONLY);
	for (int i = 0; i < 2; i++) {
		task_slot(h.owner)->span = span_id((unsigned int)i); /* both have a row for it */
		assert_int_equal(read(fd, row, 1), 1);
		row[i] = fd_lookup(fd).row;
		assert_int_equal(crema_shm->file[row[i] - 1].span, span_id((unsigned int)i));
		assert_int_equal(crema_shm->file[row[i] - 1].kind, CREMA_FILE_OTHER);
	}
	assert_true(row[0] != row[1]);
	close(fd);
	harness_end(&h);
	harness_free(&h);
	unlink(path);
}

static uint32_t fill_texts(unsigned int n, uint32_t (*id)(const char *, uint32_t))
{
	char text[200];
	uint32_t at = 1;

	memset(text, 'x', sizeof(text));
	for (unsigned int i = 0; i < n && at; i++) {
		memcpy(text, &i, sizeof(i));
		at = id(text, sizeof(text));
	}
	return at;
}

static void bulk_texts_leave_room_for_the_others(void **state)
{
	static const char another[] =
		"/store/data/Run2022C/JetMET/NANOAOD/PromptNanoAODv10_v1-v1/70000/5f1c/4d0a/"
		"9a58/3e2e5a6f7b80/another file, whose name is longer than what a text of "
		"200 bytes and its head would have left free in the part for bulk texts, that is "
		"at least 208 bytes.root";
	uint64_t refused = crema_shm->totals.strings_refused;
	uint32_t file, span;

	(void)state;
	file = arena_bulk_id("a file", 6);
	assert_int_equal(fill_texts(CREMA_SHM_STRINGS_BULK / 200, arena_bulk_id), 0);
	assert_int_equal(crema_shm->totals.strings_refused - refused, 1);
	assert_true(crema_shm->strings_used <= CREMA_SHM_STRINGS_BULK);
	assert_int_equal(arena_bulk_id(another, sizeof(another) - 1), 0);
	assert_int_equal(arena_bulk_id("a file", 6), file);
	span = arena_id("a span", 6);
	assert_string_equal(arena_text(span), "a span");
	assert_int_equal(arena_bulk_id("a span", 6), span);
	assert_int_equal(span_id(5000), span_id(5000));
	assert_true(span_id(5000));
	for (unsigned int i = 0; i < 2000; i++) /* runs of a long-lived worker */
		assert_true(span_id(6000 + i));
	assert_int_equal(fill_texts(CREMA_SHM_STRINGS / 100, arena_id), 0);
	assert_true(crema_shm->strings_used <= CREMA_SHM_STRINGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(codecs_without_a_row_are_refused),
		cmocka_unit_test(files_without_a_row_are_in_their_spans_rest),
		cmocka_unit_test(a_rest_row_follows_the_task),
		cmocka_unit_test(bulk_texts_leave_room_for_the_others),
	};

	return cmocka_run_group_tests_name("shim full tables", tests, harness_setup, NULL);
}
