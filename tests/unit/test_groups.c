/* SPDX-License-Identifier: BSD-3-Clause */
/* test_groups.c - attempts grouped by a key: sums, the longest attempt, and the order of tables. */
#include "report_fixture.h"

#include <stdlib.h>

#include "collector/metrics/groups.h"

static void take(struct groups *g, const char *key, const struct attempt *a)
{
	struct classes c;

	attempt_classes(a, &c);
	assert_int_equal(groups_take(g, key, a, &c), 0);
}

/* Three groups: of 1 + 2 s, of 4 s, and of 0.5 + 1.5 + 1.5 s. */
static void test_sums_and_order(void **state)
{
	static const char *const keys[] = {"a", "b", "c"};
	static const struct {
		int key, wall;
	} tasks[] = {{0, 1000}, {1, 4000}, {2, 500}, {2, 1500}, {0, 2000}, {2, 1500}};
	static const struct {
		const char *key;
		size_t attempts;
		double wall, most;
	} due[] = {{"b", 1, 4, 4}, {"c", 3, 3.5, 1.5}, {"a", 2, 3, 2}};
	struct fixture *fx = fx_new();
	const struct group **v;
	struct groups g = {0};
	size_t i;

	(void)state;
	fx_hello(fx, 1, "{}");
	for (i = 0; i < 6; i++)
		fx_simple(fx, 1, i + 1, "k", "span", 0, 0, tasks[i].wall, "ok");
	fx_runs(fx);
	for (i = 0; i < 6; i++)
		take(&g, keys[tasks[i].key], fx_attempt(fx, 1, i + 1));
	v = groups_sorted(&g, groups_by_wall);
	assert_non_null(v);
	assert_int_equal(g.n, 3);
	for (i = 0; i < 3; i++) {
		assert_string_equal(v[i]->key, due[i].key);
		assert_int_equal(v[i]->t.attempts, due[i].attempts);
		assert_float_equal(v[i]->t.wall, due[i].wall, 1e-9);
		assert_float_equal(v[i]->max_wall, due[i].most, 1e-9);
		assert_ptr_equal(groups_find(&g, v[i]->key), v[i]);
	}
	assert_null(groups_find(&g, "another"));
	free(v);
	groups_release(&g);
	fx_free(fx);
}

/* In either order, and equal ones compare as equal. */
static void test_by_wall(void **state)
{
	struct group longer = {.t.wall = 2}, shorter = {.t.wall = 1}, as_short = shorter;
	const struct group *a = &longer, *b = &shorter, *c = &as_short;

	(void)state;
	assert_true(groups_by_wall(&a, &b) < 0);
	assert_true(groups_by_wall(&b, &a) > 0);
	assert_int_equal(groups_by_wall(&b, &c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_and_order),
		cmocka_unit_test(test_by_wall),
	};

	return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
