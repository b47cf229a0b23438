/* SPDX-License-Identifier: BSD-3-Clause */
/* test_runs_plain.c - grouping into runs without Dask; how long processes worked. */
#include "report_fixture.h"

#define PRE CREMA_TASK_PREPROCESSING
#define CHUNK CREMA_TASK_CHUNK

static void on_file(struct fixture *fx, int worker, uint64_t attempt, const char *key,
		    const char *span, uint64_t flags, int start_ms, const char *file)
{
	struct task_record r = fx_record(attempt, key, span, flags, start_ms, start_ms + 50);

	TASK_SET(&r, key_hash, hash_bytes(1, key, strlen(key)));
	TASK_SET(&r, dataset, T("d"));
	TASK_SET(&r, filename, T(file));
	fx_task(fx, worker, &r);
}

static void test_chunks_of_many_processes_are_one_run(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	for (int w = 1; w < 4; w++)
		fx_hello(fx, w, NULL);
	on_file(fx, 1, 1, "p", "coffea-metadata.0", PRE, 0, "f");
	on_file(fx, 2, 1, "f:0", "coffea-ab.1", CHUNK, 100, "f");
	on_file(fx, 3, 1, "f:1", "coffea-ab.1", CHUNK, 120, "f");
	on_file(fx, 2, 2, "f:2", "coffea-ab.1", CHUNK, 60000, "f"); /* waited for a node */
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	assert_int_equal(fx->runs.v[0].kind, RUN_COFFEA);
	assert_int_equal(fx->runs.v[0].attempts.n, 4);
	assert_int_equal(fx->runs.v[0].workers.n, 3);
	fx_free(fx);
}

static void test_a_chunk_that_comes_again_begins_a_run(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, 1, "f:0", "coffea-ab.1", CHUNK, 0, "f");
	on_file(fx, 1, 2, "f:1", "coffea-ab.1", CHUNK, 100, "f");
	on_file(fx, 1, 3, "f:0", "coffea-ab.2", CHUNK, 200, "f");
	on_file(fx, 1, 4, "f:1", "coffea-ab.2", CHUNK, 300, "f");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(fx->runs.v[0].attempts.n, 2);
	assert_true(fx_attempt(fx, 1, 1)->counted);
	assert_true(fx_attempt(fx, 1, 3)->counted);
	/* A row belongs to the run of its process and span. */
	assert_true(run_has_row(&fx->runs.v[0], fx_attempt(fx, 1, 1)->worker,
				fx_attempt(fx, 1, 1)->span));
	assert_false(run_has_row(&fx->runs.v[0], fx_attempt(fx, 1, 3)->worker,
				 fx_attempt(fx, 1, 3)->span));
	fx_free(fx);
}

static void test_a_chunk_recomputed_beside_others_does_not(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	on_file(fx, 1, 1, "f:0", "coffea-ab.1", CHUNK, 0, "f");
	r = fx_record(1, "f:1", "coffea-ab.1", CHUNK, 10, 500);
	fx_task(fx, 2, &r);
	on_file(fx, 1, 2, "f:0", "coffea-ab.2", CHUNK, 200, "f");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	assert_string_equal(fx_attempt(fx, 1, 1)->waste_reason, "recomputed");
	fx_free(fx);
}

static void test_metadata_of_its_files_goes_with_a_run(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, 1, "pf", "coffea-metadata.0", PRE, 0, "f");
	on_file(fx, 1, 2, "f:0", "coffea-ab.1", CHUNK, 100, "f");
	on_file(fx, 1, 3, "pg", "coffea-metadata.1", PRE, 200,
		"g"); /* the same processor continues */
	on_file(fx, 1, 4, "g:0", "coffea-ab.1", CHUNK, 300, "g");
	on_file(fx, 1, 5, "h:0", "coffea-cd.1", CHUNK, 400, "f");    /* another one, cached */
	on_file(fx, 1, 6, "px", "coffea-metadata.2", PRE, 500, "x"); /* without a chunk */
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 4);
	assert_int_equal(fx->runs.v[0].attempts.n, 2);
	assert_int_equal(fx->runs.v[1].attempts.n, 2);
	assert_int_equal(fx->runs.v[2].attempts.n, 1);
	assert_int_equal(fx->runs.v[3].kind, RUN_PREPROCESSING);
	fx_free(fx);
}

static void test_a_long_pause_divides(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, 1, "f:0", "coffea-ab.1", CHUNK, 0, "f");
	on_file(fx, 1, 2, "g:0", "coffea-ab.1", CHUNK, 601000, "g");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	fx_free(fx);
}

static void test_work_of_a_process(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;
	const struct worker *w;

	(void)state;
	fx_hello(fx, 1, NULL);
	r = fx_record(1, "a", "coffea-ab.1", CHUNK, 1000, 2000);
	fx_task(fx, 1, &r);
	r = fx_record(2, "b", "coffea-ab.1", CHUNK, 1500, 2500); /* overlaps */
	fx_task(fx, 1, &r);
	r = fx_record(3, "c", "coffea-ab.1", CHUNK, 4000, 4250);
	fx_task(fx, 1, &r);
	fx_runs(fx);
	w = fx_attempt(fx, 1, 1)->worker;
	assert_true(worker_work(w).v.d > 1.749 && worker_work(w).v.d < 1.751);
	assert_int_equal(worker_life(w).type, VALUE_NULL);    /* it is still running */
	assert_int_equal(worker_startup(w).type, VALUE_NULL); /* its start is unknown */
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks_of_many_processes_are_one_run),
		cmocka_unit_test(test_a_chunk_that_comes_again_begins_a_run),
		cmocka_unit_test(test_a_chunk_recomputed_beside_others_does_not),
		cmocka_unit_test(test_metadata_of_its_files_goes_with_a_run),
		cmocka_unit_test(test_a_long_pause_divides),
		cmocka_unit_test(test_work_of_a_process),
	};

	return cmocka_run_group_tests_name("runs without Dask", tests, NULL, NULL);
}
