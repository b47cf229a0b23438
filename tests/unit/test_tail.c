/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tail.c - reading a journal's segments while they are written, completed and removed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector/follow/tail.h"
#include "common/frame.h"

static char dir[32], folder[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/crema-test-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(folder, sizeof(folder), "%s/journal", dir);
	return mkdir(folder, 0700);
}

static void remove_segment(uint64_t ns)
{
	char name[FRAMEFILE_NAME_BYTES], path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, framefile_name(name, ns, NULL));
	assert_int_equal(unlink(path), 0);
}

static int teardown(void **state)
{
	char **names, path[PATH_MAX];
	int n = framefile_list(folder, &names);

	(void)state;
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	free(names);
	rmdir(folder);
	return rmdir(dir);
}

/* Appends frames with these numbers. */
static void append(struct framefile *f, uint64_t from, uint64_t to)
{
	static const uint8_t worker[16] = {1};
	struct crema_frame_header head = frame_head(CREMA_FRAME_DATA, worker, 1);
	struct buf out = BUF_INIT;

	for (; from < to; from++) {
		head.first_seq = from;
		assert_int_equal(frame_encode(&out, &head, "abc", 3), 0);
	}
	assert_int_equal(framefile_append(f, out.data, out.len), 0);
	buf_release(&out);
}

static void segment(struct framefile *f, uint64_t ns, uint64_t from, uint64_t to)
{
	assert_int_equal(framefile_create(f, folder, "journal", ns, NULL), 0);
	append(f, from, to);
}

/* The next ones are these, and then it is the end for now. */
static void expect(struct tail *t, uint64_t from, uint64_t to)
{
	struct frame frame;

	for (; from < to; from++) {
		assert_int_equal(tail_next(t, &frame), 1);
		assert_int_equal(frame.head.first_seq, from);
	}
	assert_int_equal(tail_next(t, &frame), 0);
}

static void it_follows_what_is_written(void **state)
{
	struct framefile a, b;
	struct frame frame;
	struct tail t;

	(void)state;
	assert_int_equal(tail_init(&t, dir), 0);
	expect(&t, 0, 0);
	segment(&a, 100, 0, 2);
	expect(&t, 0, 2);
	append(&a, 2, 3);
	expect(&t, 2, 3);
	append(&a, 3, 5); /* before the successor was seen */
	segment(&b, 200, 5, 6);
	expect(&t, 3, 6);
	assert_false(t.lost);
	assert_int_equal(tail_bytes(&t), a.size + b.size);
	framefile_close(&a);
	framefile_close(&b);
	teardown(NULL);
	assert_int_equal(tail_next(&t, &frame), -ENOENT); /* the folder is gone */
	tail_close(&t);
	assert_int_equal(setup(NULL), 0);
}

static void a_segment_removed_while_it_is_read_is_read(void **state)
{
	struct framefile a, b;
	struct frame frame;
	struct tail t;

	(void)state;
	assert_int_equal(tail_init(&t, dir), 0);
	segment(&a, 100, 0, 3);
	assert_int_equal(tail_next(&t, &frame), 1);
	segment(&b, 200, 3, 4);
	remove_segment(100);
	expect(&t, 1, 4);
	assert_false(t.lost);
	tail_close(&t);
	framefile_close(&a);
	framefile_close(&b);
}

static void a_segment_removed_before_it_is_read_is_lost(void **state)
{
	struct framefile a, b, c;
	struct frame frame;
	struct tail t;

	(void)state;
	assert_int_equal(tail_init(&t, dir), 0);
	segment(&a, 100, 0, 2);
	assert_int_equal(tail_next(&t, &frame), 1);
	segment(&b, 200, 2, 3);
	tail_look(&t);
	segment(&c, 300, 3, 4);
	tail_look(&t);
	remove_segment(200);
	assert_int_equal(tail_next(&t, &frame), 1);
	assert_false(t.lost);
	expect(&t, 3, 4);
	assert_true(t.lost);
	tail_close(&t);
	framefile_close(&a);
	framefile_close(&b);
	framefile_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_follows_what_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(a_segment_removed_while_it_is_read_is_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_segment_removed_before_it_is_read_is_lost, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
