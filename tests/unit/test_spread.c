/* SPDX-License-Identifier: BSD-3-Clause */
/* test_spread.c - mean, deviations and extremes, with textbook numbers. */
#include "report_fixture.h"

/* 2, 4, 4, 4, 5, 5, 7, 9: the squared distances from 5 add up to 32. */
static void test_eight_numbers(void **state)
{
	static const double values[] = {4, 2, 5, 9, 4, 7, 4, 5};
	struct spread s = {0};

	(void)state;
	for (size_t i = 0; i < 8; i++)
		spread_add(&s, value_real(values[i]));
	assert_int_equal(s.n, 8);
	assert_near(spread_mean(&s), 5);
	assert_near(spread_std(&s), 2);
	assert_near(spread_sample_std(&s), 2.138089935);
	assert_near(spread_min(&s), 2);
	assert_near(spread_max(&s), 9);
	spread_add(&s, value_null()); /* an unknown one */
	assert_int_equal(s.n, 8);
	assert_int_equal(s.unknown, 1);
	assert_unknown(spread_mean(&s));
	assert_unknown(spread_std(&s));
	assert_unknown(spread_sample_std(&s));
	assert_unknown(spread_min(&s));
	assert_unknown(spread_max(&s));
}

/* Below 0, where no initial value may be taken for an extreme; a single number has no sample
 * deviation. */
static void test_few_numbers(void **state)
{
	struct spread s = {0};

	(void)state;
	assert_unknown(spread_mean(&s));
	assert_unknown(spread_min(&s));
	spread_add(&s, value_real(-3));
	assert_near(spread_mean(&s), -3);
	assert_near(spread_std(&s), 0);
	assert_unknown(spread_sample_std(&s));
	assert_near(spread_max(&s), -3);
	spread_add(&s, value_real(-1));
	assert_near(spread_max(&s), -1);
	assert_near(spread_min(&s), -3);
	assert_near(spread_sample_std(&s), 1.414213562);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eight_numbers),
		cmocka_unit_test(test_few_numbers),
	};

	return cmocka_run_group_tests_name("spread", tests, NULL, NULL);
}
