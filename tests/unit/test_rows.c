/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rows.c - rows of tests/checklist.txt that are findings or assumptions: each test is named
 * after its row. Runs are the cases of the findings' tests, at their thresholds.
 */
#include "findings_cases.h"

/* The check has a finding in its case, and the advice contains these words. */
static void assert_advice(const char *id, const char *words)
{
	struct fixture *fx = fx_new();
	const struct finding *f;
	struct found found;
	size_t i;

	for (i = 0; i < findings_case_count && strcmp(findings_cases[i].id, id) != 0; i++)
		;
	assert_true(i < findings_case_count);
	assert_true(findings_cases[i].make(fx, AT));
	collect(fx, &found);
	f = finding_of(&found, id);
	if (!f)
		fail_msg("%s was not found", id);
	else if (!strstr(f->advice, words))
		fail_msg("%s advises: %s", id, f->advice);
	found_free(&found);
	fx_free(fx);
}

/* Causes of scaling that is worse than linear: network, shared servers, scheduler, skew. */
static void test_row_102(void **state)
{
	(void)state;
	assert_advice("network_wait", "nearer copy");
	assert_advice("slow_server", "server");
	assert_advice("dask_overhead", "larger chunks");
	assert_advice("worker_imbalance", "that worker");
}

/* Chunks too small, or too few of them. */
static void test_row_136(void **state)
{
	(void)state;
	assert_advice("metadata_reread", "chunksize");
	assert_advice("few_chunks", "chunk");
}

static void test_row_137(void **state)
{
	(void)state;
	assert_advice("python_heavy", "Numba");
}

static void test_row_138(void **state)
{
	(void)state;
	assert_advice("cpu_bound", "cores");
}

static void test_row_139(void **state)
{
	(void)state;
	assert_advice("low_cpu_efficiency", "was not CPU");
	assert_advice("storage_wait", "nearer storage");
	assert_advice("gil_wait", "one thread per worker");
}

static void test_row_140(void **state)
{
	(void)state;
	assert_advice("dask_overhead", "chunk");
	assert_advice("tiny_tasks", "chunk");
}

static void test_row_141(void **state)
{
	(void)state;
	assert_advice("decompression", "codec");
	assert_advice("compression", "faster codec");
}

static void test_row_142(void **state)
{
	(void)state;
	assert_advice("serialization", "arrays and histograms");
}

static void test_row_143(void **state)
{
	(void)state;
	assert_advice("low_compression", "compressed before");
}

static void test_row_144(void **state)
{
	(void)state;
	assert_advice("stragglers", "slowest tasks");
	assert_advice("worker_imbalance", "that worker");
	assert_advice("dataset_imbalance", "cost more");
}

/* Dask's numbers count only if every worker with counted tasks sent its own. */
static void test_row_088(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 100, "ok");
	fx_simple(fx, 2, 1, "b", "s", 0, 0, 100, "ok");
	fx_dask(fx, 1, 100,
		"{\"digests\": [[\"execute\", \"s\", \"task\", \"thread-cpu\", \"seconds\", 1]]}");
	fx_runs(fx);
	assert_unknown(metric_value(fx_facts(fx, 0), "cpu_time_seconds"));
	assert_unknown(metric_value(&fx->facts, "overhead_cpu_time_seconds"));
	fx_free(fx);
}

static void keep_line(void *arg, const char *line)
{
	char *text = arg;

	if (strstr(line, "fine metrics"))
		snprintf(text, 200, "%s", line);
}

/* A message, not an error. */
static void test_row_089(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;
	char line[200] = "";

	(void)state;
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 100, "ok");
	collect(fx, &found);
	report_notes(&found.report, keep_line, line);
	assert_string_equal(line, "Dask's fine metrics: 1 workers sent none, 0 only a part");
	found_free(&found);
	fx_free(fx);
}

/* Workers may have different numbers of threads, and change them. */
static void test_row_152(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 1}");
	fx_hello(fx, 2, "{\"nthreads\": 7}");
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 2000, "ok");
	fx_dask(fx, 1, 1000, "{\"nthreads\": 2}");
	fx_runs(fx);
	/* 2, the latest from worker 1, and 7: 9 threads of 2 workers */
	assert_near(metric_value(fx_facts(fx, 0), "cores_per_worker"), 4.5);
	assert_near(metric_value(&fx->facts, "total_cores"), 9);
	fx_free(fx);
}

/* A worker without a memory limit (0 or not reported) is left out; without any limit the share is
 * unknown. */
static void test_row_153(void **state)
{
	static const char *const stacks[] = {"{\"memory_limit_bytes\": 0}", "{}",
					     "{\"memory_limit_bytes\": 1000}"};
	struct fixture *fx;
	const struct facts *f;
	int workers, i;

	(void)state;
	for (workers = 2; workers <= 3; workers++) {
		fx = fx_new();
		for (i = 1; i <= workers; i++) {
			fx_hello(fx, i, stacks[i - 1]);
			fx_map(fx, i, CREMA_MSG_SAMPLE, "boot_ns", AT(500), "rss_bytes",
			       UINT64_C(900), NULL);
		}
		fx_simple(fx, 1, 1, "a", "s", 0, 0, 1000, "ok");
		fx_runs(fx);
		f = fx_facts(fx, 0);
		if (workers == 2) {
			assert_unknown(metric_value(f, "max_memory_utilization_percent"));
			assert_unknown(metric_value(f, "memory_pressure"));
		} else {
			assert_near(metric_value(f, "avg_memory_utilization_percent"), 90);
			assert_near(metric_value(f, "memory_pressure"), 1);
		}
		fx_free(fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_row_088), cmocka_unit_test(test_row_089),
		cmocka_unit_test(test_row_102), cmocka_unit_test(test_row_136),
		cmocka_unit_test(test_row_137), cmocka_unit_test(test_row_138),
		cmocka_unit_test(test_row_139), cmocka_unit_test(test_row_140),
		cmocka_unit_test(test_row_141), cmocka_unit_test(test_row_142),
		cmocka_unit_test(test_row_143), cmocka_unit_test(test_row_144),
		cmocka_unit_test(test_row_152), cmocka_unit_test(test_row_153),
	};

	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
