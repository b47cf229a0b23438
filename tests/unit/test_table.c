/* SPDX-License-Identifier: BSD-3-Clause */
/* test_table.c - the hash table against a plain array, with hashes that collide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/table.h"

#define ITEMS 300u

static bool same(const void *item, const void *key)
{
	return *(const unsigned int *)item == *(const unsigned int *)key;
}

static void check_all(const struct table *t, unsigned int *item, const bool *there, uint64_t spread)
{
	bool seen[ITEMS] = {false};
	unsigned int *p, k;
	size_t at = 0, n = 0;

	for (k = 0; k < ITEMS; k++)
		assert_ptr_equal(table_find(t, k / spread, same, &k), there[k] ? &item[k] : NULL);
	while ((p = table_next(t, &at))) {
		assert_false(seen[*p]);
		assert_true(there[*p]);
		seen[*p] = true;
		n++;
	}
	assert_int_equal(n, t->n);
}

/* spread: this many items have each hash */
static void against_an_array(uint64_t spread)
{
	unsigned int item[ITEMS], k, i, seed = 5;
	bool there[ITEMS] = {false};
	struct table t = {0};
	size_t n = 0;

	for (k = 0; k < ITEMS; k++)
		item[k] = k;
	for (i = 0; i < 20000; i++) {
		k = (unsigned int)rand_r(&seed) % ITEMS;
		if (there[k])
			table_remove(&t, k / spread, &item[k]);
		else
			assert_int_equal(table_add(&t, k / spread, &item[k]), 0);
		there[k] = !there[k];
		n += there[k] ? 1 : (size_t)-1;
		assert_int_equal(t.n, n);
		if (i % 100 == 0)
			check_all(&t, item, there, spread);
	}
	check_all(&t, item, there, spread);
	assert_true(t.cap <= 4 * ITEMS);
	table_release(&t);
}

static void collisions(void **state)
{
	(void)state;
	against_an_array(1);
	against_an_array(7);
	against_an_array(ITEMS);
}

/* Runs that wrap around the end of the array, too: hashes near 2^64. */
static void around_the_end(void **state)
{
	unsigned int item[20], k;
	struct table t = {0};

	(void)state;
	for (k = 0; k < 20; k++) {
		item[k] = k;
		assert_int_equal(table_add(&t, UINT64_MAX - k % 3, &item[k]), 0);
	}
	for (k = 0; k < 20; k += 2)
		table_remove(&t, UINT64_MAX - k % 3, &item[k]);
	for (k = 0; k < 20; k++)
		assert_ptr_equal(table_find(&t, UINT64_MAX - k % 3, same, &k),
				 k % 2 ? &item[k] : NULL);
	table_release(&t);
}

static void an_empty_one(void **state)
{
	struct table t = {0};
	size_t at = 0;

	(void)state;
	assert_null(table_find(&t, 1, same, &at));
	assert_null(table_next(&t, &at));
	table_release(&t);
}

/* Each row is in the table, at its index in the array, and does not move. */
static void rows_of_all_three(void **state)
{
	struct row {
		unsigned int key, zero;
	};
	struct row *row;
	struct {
		struct row **v;
		size_t n, cap;
	} rows = {0};
	struct arena arena = {0};
	struct table t = {0};

	(void)state;
	for (unsigned int k = 0; k < ITEMS; k++) {
		row = TABLE_NEW(&t, k / 3, &arena, &rows);
		assert_non_null(row);
		assert_true(!row->key && !row->zero);
		row->key = k;
	}
	assert_int_equal(rows.n, ITEMS);
	for (unsigned int k = 0; k < ITEMS; k++) {
		assert_int_equal(rows.v[k]->key, k);
		assert_ptr_equal(table_find(&t, k / 3, same, &k), rows.v[k]);
	}
	free(rows.v);
	table_release(&t);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collisions),
		cmocka_unit_test(around_the_end),
		cmocka_unit_test(an_empty_one),
		cmocka_unit_test(rows_of_all_three),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
