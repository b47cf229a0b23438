/* SPDX-License-Identifier: BSD-3-Clause */
/* test_budget.c - threads x wall time = CPU + waits + unclassified + idle, computed by hand. */
#include <jansson.h>
#include <math.h>

#include "collector/metrics/budget.h"
#include "findings_fixture.h"

static double sum_of(const struct budget *b)
{
	double sum = b->unclassified + b->idle;
	unsigned int i;

	for (i = 0; i < CREMA_TIMES; i++)
		sum += isnan(b->class_s[i]) ? 0 : b->class_s[i];
	return sum;
}

/* One worker of two threads for 4 s: a task of 4 s, and one of 1 s that failed. */
static void two_threads(struct fixture *fx, bool sleep_known)
{
	struct task_record r = work(1, "a", 0, 4000);

	fx_hello(fx, 1, "{\"nthreads\": 2}");
	SET_OWN(&r, cpu, 1000);
	SET_OWN(&r, network_wait, 2500);
	fx_task(fx, 1, &r);
	r = work(2, "b", 0, 1000);
	SET_OWN(&r, sleep, 600);
	if (!sleep_known)
		r.own_known &= ~(1u << CREMA_T_sleep);
	TASK_SET(&r, status, T("erred"));
	fx_task(fx, 1, &r);
}

static void test_parts_add_up(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;
	struct budget b;

	(void)state;
	two_threads(fx, true);
	collect(fx, &found);
	assert_true(budget_build(&b, found.report.facts));
	assert_real(b.wall_seconds, 4);
	assert_real(b.threads, 2);
	assert_real(b.thread_seconds, 8);
	assert_real(b.class_s[CREMA_T_cpu], 1);
	assert_real(b.class_s[CREMA_T_network_wait], 2.5);
	assert_real(b.class_s[CREMA_T_sleep], 0.6);
	assert_real(b.unclassified, 0.5 + 0.4);
	assert_real(b.idle, 3);
	assert_real(sum_of(&b), b.thread_seconds);
	found_free(&found);
	fx_free(fx);
}

static void test_an_unknown_class_is_in_unclassified(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;
	struct budget b;

	(void)state;
	two_threads(fx, false);
	collect(fx, &found);
	assert_true(budget_build(&b, found.report.facts));
	assert_true(isnan(b.class_s[CREMA_T_sleep]));
	assert_real(b.unclassified, 0.5 + 1);
	assert_real(sum_of(&b), 8);
	found_free(&found);
	fx_free(fx);
}

/* 8 s remain of a task whose page faults waited for storage: without the run queue's times they may
 * have been waits for a core. */
static void test_storage_or_run_queue(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = work(1, "a", 0, 10000);
	struct found found;
	struct budget b;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 1}");
	TASK_SET(&r, flags, CREMA_TASK_FAULT_STORAGE);
	SET_OWN(&r, cpu, 2000);
	r.own_known &= ~(1u << CREMA_T_runqueue);
	fx_task(fx, 1, &r);
	collect(fx, &found);
	assert_true(budget_build(&b, found.report.facts));
	assert_true(isnan(b.class_s[CREMA_T_storage_wait]) && isnan(b.class_s[CREMA_T_runqueue]));
	assert_real(b.class_s[CREMA_T_cpu], 2);
	assert_real(b.unclassified, 8);
	assert_null(finding_of(&found, "storage_wait"));
	assert_string_equal(gap_of(&found, "storage_wait"), "storage_wait_seconds");
	assert_string_equal(gap_of(&found, "unclassified"), "unclassified_seconds");
	assert_null(strstr(finding_of(&found, "low_cpu_efficiency")->sentence, "storage"));
	found_free(&found);
	fx_free(fx);
}

/* More concurrent tasks than threads were reported: none was idle. */
static void test_never_less_than_the_tasks(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;
	struct found found;
	struct budget b;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 1}");
	r = work(1, "a", 0, 2000);
	fx_task(fx, 1, &r);
	r = work(2, "b", 0, 2000);
	fx_task(fx, 1, &r);
	collect(fx, &found);
	assert_true(budget_build(&b, found.report.facts));
	assert_real(b.thread_seconds, 4);
	assert_real(b.idle, 0);
	assert_real(sum_of(&b), 4);
	found_free(&found);
	fx_free(fx);
}

static void test_json(void **state)
{
	static const char *const parts[] = {"cpu",	  "runqueue", "gil",   "lock",
					    "network",	  "storage",  "sleep", "unclassified",
					    "unmeasured", "idle"};
	struct fixture *fx = fx_new();
	struct buf out = BUF_INIT;
	struct sink s = {.out = &out};
	struct found found;
	struct json j;
	json_t *root, *budget;
	double sum = 0;
	size_t i;

	(void)state;
	two_threads(fx, true);
	collect(fx, &found);
	emit_init(&j, &s);
	emit_object(&j, NULL);
	budget_emit(found.report.facts, "budget", &j);
	emit_end(&j);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	budget = json_object_get(root, "budget");
	assert_int_equal(json_object_size(budget), 3 + sizeof(parts) / sizeof(*parts));
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		sum += json_number_value(json_object_get(budget, parts[i]));
	assert_real(sum, json_number_value(json_object_get(budget, "thread_seconds")));
	assert_real(sum, 8);
	json_decref(root);
	buf_release(&out);
	found_free(&found);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_add_up),
		cmocka_unit_test(test_an_unknown_class_is_in_unclassified),
		cmocka_unit_test(test_storage_or_run_queue),
		cmocka_unit_test(test_never_less_than_the_tasks),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
