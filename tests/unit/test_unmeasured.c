/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_unmeasured.c - tasks of which only the wall time is known: a process executor ran them, or
 * the event loop. Their time is neither idle nor 0 in any class.
 */
#include <math.h>

#include "collector/metrics/budget.h"
#include "collector/print/print.h"
#include "collector/print/time_bar.h"
#include "findings_fixture.h"

#define ELSEWHERE CREMA_TASK_ELSEWHERE
#define ASYNC CREMA_TASK_ASYNC

static void away(struct fixture *fx, uint64_t attempt, const char *key, uint64_t flags, int from,
		 int to)
{
	fx_simple(fx, 1, attempt, key, "span", flags, from, to, "ok");
}

static void here(struct fixture *fx, uint64_t attempt, const char *key, int from, int to,
		 enum crema_time_id id, int ms)
{
	struct task_record r = work(attempt, key, from, to);

	r.own[id] = (uint64_t)ms * 1000000u;
	fx_task(fx, 1, &r);
}

/* Four threads: four tasks of 10 s that are not measured, then one of 0.1 s that is. */
static struct fixture *mostly(uint64_t flags)
{
	static const char *const keys[] = {"e0", "e1", "e2", "e3"};
	struct fixture *fx = fx_new();
	uint64_t i;

	fx_hello(fx, 1, "{\"nthreads\": 4}");
	for (i = 0; i < 4; i++)
		away(fx, i + 1, keys[i], flags, 0, 10000);
	here(fx, 9, "m", 10000, 10100, CREMA_T_cpu, 90);
	return fx;
}

static void check_metrics(const struct facts *f)
{
	static const char *const unknown[] = {
		"cpu_time_seconds_true", "total_cpu_time_true_all", "task_cpu_seconds",
		"runqueue_wait_seconds", "gil_wait_seconds",	    "lock_wait_seconds",
		"network_wait_seconds",	 "storage_wait_seconds",    "sleep_seconds",
		"task_pool_cpu_seconds", "io_time_seconds_true"};

	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_unknown(metric_value(f, unknown[i]));
	assert_near(metric_value(f, "task_wall_seconds"), 40.1);
	assert_near(metric_value(f, "unclassified_seconds"), 40.01);
	assert_near(metric_value(f, "unclassified_over_50ms_seconds"), 40.01);
	assert_near(metric_value(f, "idle_thread_seconds"), 4 * 10.1 - 40.1);
}

static void check_budget(const struct facts *f)
{
	struct budget b;

	assert_true(budget_build(&b, f));
	assert_real(b.thread_seconds, 40.4);
	assert_real(b.class_s[CREMA_T_cpu], 0.09); /* of the measured task: a part of the whole */
	assert_real(b.class_s[CREMA_T_gil_wait], 0);
	assert_real(b.unclassified, 0.01);
	assert_real(b.unmeasured, 40);
	assert_real(b.idle, 0.3);
}

/* As Dask counts, a coroutine keeps a thread from other tasks. */
static void test_occupy_threads(void **state)
{
	static const uint64_t flags[] = {ELSEWHERE, ASYNC};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fixture *fx = mostly(flags[i]);
		struct found found;

		collect(fx, &found);
		check_metrics(found.report.facts);
		check_budget(found.report.facts);
		assert_null(finding_of(&found, "idle_threads"));
		assert_null(gap_of(&found, "idle_threads"));
		assert_null(finding_of(&found, "tail"));
		assert_null(finding_of(&found, "low_cpu_efficiency"));
		assert_string_equal(gap_of(&found, "low_cpu_efficiency"),
				    "total_cpu_time_true_all");
		assert_string_equal(gap_of(&found, "gil_wait"), "gil_wait_seconds");
		assert_non_null(finding_of(&found, "unmeasured_tasks"));
		found_free(&found);
		fx_free(fx);
	}
}

static void assert_has(const struct buf *out, const char *text, bool has)
{
	if ((strstr((const char *)out->data, text) != NULL) != has)
		fail_msg("%s: '%s'", (const char *)out->data, text);
}

/* The bar, its legend and the table of classes. */
static void printed(const struct found *found, struct buf *out)
{
	struct sink s = {.out = out};

	buf_clear(out);
	time_bar_print(found->report.facts, &s, false);
	report_table_timing(&found->report, &s, false);
	sink_put(&s, "", 1);
	assert_int_equal(s.error, 0);
}

static void test_printed(void **state)
{
	struct fixture *fx = mostly(ELSEWHERE);
	struct buf out = BUF_INIT;
	struct found found;

	(void)state;
	collect(fx, &found);
	printed(&found, &out);
	assert_has(&out, "40.40 s = 4 threads for 10.10 s", true);
	assert_has(&out, "u not measured 99 % (40.00 s)", true);
	assert_has(&out, "no task 99 %", false);
	assert_has(&out, "not measured: 4 attempts in other processes or asynchronous", true);
	assert_has(&out, "99.8 %", true);
	found_free(&found);
	fx_free(fx);
	fx = fx_new();
	fx_hello(fx, 1, "{\"nthreads\": 4}");
	here(fx, 1, "m", 0, 100, CREMA_T_cpu, 90);
	collect(fx, &found);
	printed(&found, &out);
	assert_has(&out, "not measured", false);
	buf_release(&out);
	found_free(&found);
	fx_free(fx);
}

/* Without any measured task, no class has a value anywhere. */
static void test_nothing_measured(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;
	struct budget b;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 1}");
	away(fx, 1, "a", ELSEWHERE, 0, 4000);
	collect(fx, &found);
	assert_true(budget_build(&b, found.report.facts));
	for (unsigned int i = 0; i < CREMA_TIMES; i++)
		assert_true(isnan(b.class_s[i]));
	assert_real(b.unmeasured, 4);
	assert_real(b.unclassified, 0);
	assert_real(b.idle, 0);
	assert_unknown(tally_class_part(&found.report.facts->all, CREMA_T_cpu));
	assert_unknown(tally_cpu_part(&found.report.facts->all));
	assert_string_equal(gap_of(&found, "unclassified"), "unclassified_seconds");
	found_free(&found);
	fx_free(fx);
}

/* Dask runs any number of an actor's coroutines, besides as many tasks as it has threads. */
static void test_coroutine_of_an_actor(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 2}");
	away(fx, 1, "a", ASYNC | CREMA_TASK_ACTOR, 0, 10000);
	here(fx, 2, "m", 0, 10000, CREMA_T_cpu, 9000);
	collect(fx, &found);
	assert_near(metric_value(found.report.facts, "idle_thread_seconds"), 10);
	assert_near(metric_value(found.report.facts, "task_wall_seconds"), 10);
	assert_unknown(metric_value(found.report.facts, "cpu_time_seconds_true"));
	assert_non_null(finding_of(&found, "idle_threads"));
	found_free(&found);
	fx_free(fx);
}

/* A share of the tasks' time: 10 s are measured, and the time that is not may decide. */
static void test_shares(void **state)
{
	/* the lock's wait and the unmeasured time; found, quiet or unknown */
	static const struct {
		int gil, unmeasured;
		const char *found;
		bool unknown;
	} cases[] = {
		{5000, 1000, "tasks waited at least 45 % of their time (5.000 s)", false},
		{5000, 0, "tasks waited 50 % of their time (5.000 s)", false},
		{100, 100, NULL, false},
		{100, 10000, NULL, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture *fx = fx_new();
		const struct finding *f;
		struct found found;

		fx_hello(fx, 1, "{\"nthreads\": 4}");
		here(fx, 1, "m", 0, 10000, CREMA_T_gil_wait, cases[i].gil);
		if (cases[i].unmeasured)
			away(fx, 2, "a", ELSEWHERE, 0, cases[i].unmeasured);
		collect(fx, &found);
		f = finding_of(&found, "gil_wait");
		assert_int_equal(f != NULL, cases[i].found != NULL);
		if (f && strncmp(f->sentence, cases[i].found, strlen(cases[i].found)) != 0)
			fail_msg("%s", f->sentence);
		if (f && cases[i].unmeasured)
			assert_near(evidence_of(f, "unmeasured_seconds"), 1);
		assert_int_equal(gap_of(&found, "gil_wait") != NULL, cases[i].unknown);
		found_free(&found);
		fx_free(fx);
	}
}

static void children(struct fixture *fx, int at, uint64_t ms)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_TOTALS, 2);
	pack_kv_u64(&pk, "boot_ns", AT(at));
	pack_text(&pk, "children");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "cpu_ns", ms * 1000000);
	fx_end(fx, 1, &b);
}

/* What the executor's processes used is compared with the CPU of the measured tasks. */
static void test_child_processes(void **state)
{
	static const char *const said[] = {
		"child processes of the workers used at least 1.000 s of CPU during the run",
		"child processes of the workers used at least 1.000 s of CPU during the run; the "
		"measured tasks used 90.00 ms"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fixture *fx = fx_new();
		struct found found;

		fx_hello(fx, 1, "{\"nthreads\": 1}");
		away(fx, 1, "a", ELSEWHERE, 0, 4000);
		if (i)
			here(fx, 2, "m", 4000, 4100, CREMA_T_cpu, 90);
		children(fx, 0, 0);
		children(fx, 4000, 1000);
		collect(fx, &found);
		assert_non_null(finding_of(&found, "child_processes"));
		assert_string_equal(finding_of(&found, "child_processes")->sentence, said[i]);
		found_free(&found);
		fx_free(fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_occupy_threads),
		cmocka_unit_test(test_printed),
		cmocka_unit_test(test_nothing_measured),
		cmocka_unit_test(test_coroutine_of_an_actor),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_child_processes),
	};

	return cmocka_run_group_tests_name("unmeasured", tests, NULL, NULL);
}
