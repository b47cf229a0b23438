/* SPDX-License-Identifier: BSD-3-Clause */
/* test_column.c - columns: which numbers they get, columns within others, and those without a
 * row. */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/count/column.h"
#include "shim/count/segment.h"

#define MS UINT64_C(1000000)

static struct crema_column *row(const struct harness_task *h, const char *name)
{
	return column_row(task_slot(h->owner), arena_id(name, (uint32_t)strlen(name)), 0, 0);
}

static void read_some(const char *path, size_t bytes)
{
	char block[8192];
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0 && bytes <= sizeof(block));
	assert_int_equal(read(fd, block, bytes), (ssize_t)bytes);
	close(fd);
}

static struct column_asked asked(uint64_t requests, uint64_t bytes)
{
	return (struct column_asked){1, requests, 3 * requests, bytes};
}

/* Each line once, the first ones by name; others are only counted. */
static void who_asks(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_column *r = row(&h, "asked for");
	struct crema_line line = {.function = 1};

	(void)state;
	column_asked_by(r, &line); /* no file: unknown */
	assert_int_equal(r->lines, 0);
	line.file = 7;
	for (uint32_t i = 0; i < 2 * (CREMA_COLUMN_LINES + 3); i++) {
		line.line = 10 + i / 2;
		column_asked_by(r, &line);
	}
	assert_int_equal(r->lines, CREMA_COLUMN_LINES + 1);
	for (uint32_t i = 0; i < CREMA_COLUMN_LINES; i++)
		assert_int_equal(r->line[i].line, 10 + i);
	harness_end(&h);
}

/* Reads within a nested column belong to the inner one only; all of them belong to the task. */
static void exclusive(void **state)
{
	const char *path = harness_file("column", 10000);
	struct harness_task h = harness_begin();
	struct crema_column *outer = row(&h, "outer"), *inner = row(&h, "inner");
	struct column_asked within = asked(1, 700), all = asked(3, 1000);
	struct column_visit *a, *b;
	struct crema_task *t;

	(void)state;
	assert_ptr_not_equal(outer, inner);
	a = column_enter(outer);
	assert_non_null(a);
	assert_null(column_enter(outer)); /* open already */
	read_some(path, 1000);
	harness_spin(20 * MS);
	b = column_enter(inner);
	assert_ptr_equal(column_current(), inner);
	read_some(path, 700);
	harness_spin(30 * MS);
	column_leave(b, &within);
	assert_ptr_equal(column_current(), outer);
	read_some(path, 50);
	column_leave(a, &all);
	assert_null(column_current());
	read_some(path, 9);
	t = harness_end(&h);
	assert_int_equal(inner->read_bytes, 700);
	assert_int_equal(outer->read_bytes, 1050);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], 1759);
	assert_in_range(inner->cpu_ns, 30 * MS, 40 * MS);
	assert_in_range(outer->cpu_ns, 20 * MS, 29 * MS);
	assert_true(outer->wall_ns >= 20 * MS && inner->wall_ns >= 30 * MS);
	assert_int_equal(inner->requests, 1);
	assert_int_equal(outer->requests, 2);
	assert_int_equal(outer->requested_ranges, 6);
	assert_int_equal(inner->requested_bytes, 700);
	assert_int_equal(outer->requested_bytes, 300);
	assert_int_equal(outer->open | inner->open, 0);
	assert_int_equal(outer->flags | inner->flags, 0);
	assert_int_equal(crema_shm->unmeasured.columns, 0);
	harness_free(&h);
	unlink(path);
}

/* A nested task: it has separate columns, and none of its reads are in the outer one's. */
static void another_task_within(void **state)
{
	const char *path = harness_file("column", 5000);
	struct harness_task h = harness_begin(), within;
	struct crema_column *outer = row(&h, "around"), *inner;
	struct column_asked none = asked(0, 0);
	struct column_visit *a = column_enter(outer), *b;

	(void)state;
	read_some(path, 100);
	within = harness_begin();
	inner = row(&within, "of another task");
	b = column_enter(inner);
	read_some(path, 2000);
	column_leave(b, &none);
	read_some(path, 3000);
	harness_end(&within);
	read_some(path, 10);
	column_leave(a, &none);
	harness_end(&h);
	assert_int_equal(inner->read_bytes, 2000);
	assert_int_equal(outer->read_bytes, 110);
	harness_free(&within);
	harness_free(&h);
	unlink(path);
}

/* A thread that works for a task elsewhere: its share of the task's numbers is unknown. */
static void pool_thread(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_column *r = row(&h, "pooled");
	struct column_asked some = asked(2, 500);
	struct column_visit *v;
	struct owner before = segment_begin(h.owner, 1);

	(void)state;
	v = column_enter(r);
	harness_spin(2 * MS);
	column_leave(v, &some);
	segment_end(before);
	harness_end(&h);
	assert_int_equal(r->flags, CREMA_COLUMN_UNSURE);
	assert_int_equal(r->cpu_ns, 0);
	assert_int_equal(r->requested_bytes, 500);
	assert_true(r->wall_ns >= 2 * MS);
	assert_ptr_equal(row(&h, "pooled"), r); /* the flag does not create another row */
	harness_free(&h);
}

/* Left by another task than it was entered by, or out of order: only counted, not measured. */
static void not_measured(void **state)
{
	struct harness_task h = harness_begin(), other;
	struct crema_column *r = row(&h, "lost"), *s = row(&h, "first");
	struct column_asked unknown = {0};
	uint64_t before = crema_shm->unmeasured.columns;
	struct column_visit *v = column_enter(r), *w;

	(void)state;
	other = harness_begin();
	column_leave(v, &unknown);
	harness_end(&other);
	assert_int_equal(crema_shm->unmeasured.columns, before + 1);
	assert_int_equal(r->wall_ns, 0);
	assert_int_equal(r->flags, CREMA_COLUMN_UNASKED);
	v = column_enter(s);
	w = column_enter(r);
	column_leave(v, &unknown);
	assert_int_equal(crema_shm->unmeasured.columns, before + 2);
	column_leave(w, &unknown);
	column_leave(v, &unknown);
	assert_null(column_current());
	harness_end(&h);
	assert_null(column_enter(r)); /* no task */
	assert_int_equal(crema_shm->unmeasured.columns, before + 3);
	harness_free(&other);
	harness_free(&h);
}

/* More columns than rows: one row for the rest; a safe row is reused, an open one is not. */
static void full_table(void **state)
{
	struct harness_task h = harness_begin();
	struct crema_column *first = row(&h, "full 0"), *r;
	struct column_asked none = asked(0, 0);
	struct column_visit *v = column_enter(first);
	unsigned int beyond = 0;
	char name[16];

	(void)state;
	for (int i = 1; i < 2000; i++) {
		snprintf(name, sizeof(name), "full %d", i);
		r = row(&h, name);
		beyond += r->flags == CREMA_COLUMN_BEYOND;
		column_basket(r, 1000, 2000);
	}
	assert_in_range(beyond, 2000 - CREMA_SHM_COLUMNS, 1999);
	r = column_row(task_slot(h.owner), 0, 0, 0);
	assert_int_equal(r->flags, CREMA_COLUMN_BEYOND);
	assert_int_equal(r->baskets, beyond);
	assert_int_equal(r->basket_raw_bytes, 2000 * beyond);
	for (unsigned int i = 0; i < CREMA_SHM_COLUMNS; i++)
		crema_shm->column[i].safe_seq = crema_shm->column[i].seq;
	for (int i = 2000; i < 4000; i++) {
		snprintf(name, sizeof(name), "full %d", i);
		r = row(&h, name);
		assert_int_equal(r->flags, 0);
		assert_int_equal(r->baskets, 0);
		r->safe_seq = r->seq;
	}
	assert_ptr_equal(row(&h, "full 0"), first);
	assert_int_equal(first->open, 1);
	column_leave(v, &none);
	harness_end(&h);
	harness_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks),
		cmocka_unit_test(exclusive),
		cmocka_unit_test(another_task_within),
		cmocka_unit_test(pool_thread),
		cmocka_unit_test(not_measured),
		cmocka_unit_test(full_table),
	};

	return cmocka_run_group_tests_name("shim column", tests, harness_setup, NULL);
}
