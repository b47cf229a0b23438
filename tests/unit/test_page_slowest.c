/* SPDX-License-Identifier: BSD-3-Clause */
/* test_page_slowest.c - the longest of very many tasks, compared with sorting all of them. */
#include "collector/page/page.h"
#include "report_fixture.h"

#define TASKS 500

static struct attempt attempts[TASKS];

/* Few lengths and few starts, which makes many equal in both. */
static void fill(const struct attempt **v, unsigned int *seed)
{
	size_t i;

	for (i = 0; i < TASKS; i++) {
		attempts[i].begin_ns = 1 + (uint64_t)(rand_r(seed) % 3);
		attempts[i].end_ns = attempts[i].begin_ns + (uint64_t)(rand_r(seed) % 40);
		v[i] = &attempts[i];
	}
}

static void test_as_a_stable_sort(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 7, 100, TASKS},
			    most[] = {0, 1, 3, 20, 499, 500, 900};
	const struct attempt *v[TASKS], *sorted[TASKS];
	unsigned int seed = 3, round;
	size_t s, m, i, k, front;

	(void)state;
	for (round = 0; round < 20; round++) {
		for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
			for (m = 0; m < sizeof(most) / sizeof(*most); m++) {
				fill(v, &seed);
				memcpy(sorted, v, sizeof(v));
				qsort(sorted, sizes[s], sizeof(*sorted), page_longest_first);
				assert_int_equal(page_slowest(v, sizes[s], most[m]), 0);
				front = most[m] < sizes[s] ? most[m] : sizes[s];
				for (i = 0; i < front; i++)
					assert_ptr_equal(v[i], sorted[i]);
				/* the others: all remaining ones, in order */
				for (i = front; i + 1 < sizes[s]; i++)
					assert_true(v[i] < v[i + 1]);
				for (i = front; i < sizes[s]; i++) {
					for (k = front; k < sizes[s] && sorted[k] != v[i]; k++)
						;
					assert_true(k < sizes[s]);
				}
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_a_stable_sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
