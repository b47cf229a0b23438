/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sort.c - sort_numbered() against qsort(), for integers and real numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/sort.h"

#define MOST 5000

/* By number, then by position: this keeps the order of equal ones. */
static int by_both(const void *pa, const void *pb)
{
	const struct numbered *a = pa, *b = pb;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *seed;
}

/* `bits` of 64 vary, starting at `shift`. */
static void check(size_t n, unsigned int bits, unsigned int shift)
{
	static struct numbered v[MOST], expected[MOST];
	uint64_t seed = n * 100 + bits;

	for (size_t i = 0; i < n; i++)
		v[i] = (struct numbered){next(&seed) >> (64 - bits) << shift | 5, {i}};
	memcpy(expected, v, sizeof(v));
	qsort(expected, n, sizeof(*v), by_both);
	assert_int_equal(sort_numbered(v, n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(v[i].number, expected[i].number);
		assert_int_equal(v[i].place, expected[i].place);
	}
}

static void test_numbers(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 3, 255, 256, 257, MOST};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		check(sizes[i], 64, 0);
		check(sizes[i], 3, 0);
		check(sizes[i], 8, 56);
		check(sizes[i], 9, 20);
		check(sizes[i], 40, 13);
	}
}

static void test_real_numbers(void **state)
{
	static const double rising[] = {-INFINITY, -1e300, -2, -1, -1e-300, 0,
					1e-300,	   0.5,	   1,  2,  1e300,   INFINITY};

	(void)state;
	for (size_t i = 1; i < sizeof(rising) / sizeof(*rising); i++)
		assert_true(sort_real(rising[i - 1]) < sort_real(rising[i]));
	assert_true(sort_real(-0.0) == sort_real(0.0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_real_numbers),
	};

	return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
