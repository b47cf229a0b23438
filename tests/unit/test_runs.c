/* SPDX-License-Identifier: BSD-3-Clause */
/* test_runs.c - grouping into runs, and which attempts count. */
#include "report_fixture.h"

#define PRE CREMA_TASK_PREPROCESSING
#define CHUNK CREMA_TASK_CHUNK

/* A task on a dataset's file: preprocessing or a chunk. */
static void on_file(struct fixture *fx, uint64_t attempt, const char *key, const char *span,
		    uint64_t flags, int start_ms, const char *dataset, const char *file)
{
	struct task_record r = fx_record(attempt, key, span, flags, start_ms, start_ms + 50);

	TASK_SET(&r, dataset, T(dataset));
	TASK_SET(&r, filename, T(file));
	fx_task(fx, 1, &r);
}

static void test_two_calls_four_spans(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, "p", "pre1", PRE, 0, "d", "f.root");
	on_file(fx, 2, "c1", "work1", CHUNK, 100, "d", "f.root");
	fx_simple(fx, 1, 3, "reduce", "work1", CREMA_TASK_MERGE, 200, 210, "ok");
	on_file(fx, 4, "p", "pre2", PRE, 300, "d", "f.root");
	on_file(fx, 5, "c1", "work2", CHUNK, 400, "d", "f.root");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(fx->runs.v[0].attempts.n, 3);
	assert_int_equal(fx->runs.v[1].attempts.n, 2);
	assert_string_equal(fx->runs.v[0].spans[0], "work1");
	assert_string_equal(fx->runs.v[0].spans[1], "pre1");
	assert_string_equal(fx->runs.v[1].spans[1], "pre2");
	assert_int_equal(fx->runs.v[0].kind, RUN_COFFEA);
	/* The same keys in both runs: each counts in its run. */
	assert_true(fx_attempt(fx, 1, 2)->counted);
	assert_true(fx_attempt(fx, 1, 5)->counted);
	fx_free(fx);
}

/* Sending the processor to the workers; it has a separate span because it ended too early. */
static void test_the_processors_way_belongs_to_its_chunks(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, "p", "pre", PRE, 0, "d", "f.root");
	r = fx_record(2, "lambda-1", "way", 0, 60, 61);
	TASK_SET(&r, prefix, T("lambda"));
	fx_task(fx, 1, &r);
	on_file(fx, 3, "c", "work", CHUNK, 100, "d", "f.root");
	r = fx_record(4, "lambda-2", "alone", 0, 300, 301); /* nothing follows it */
	TASK_SET(&r, prefix, T("lambda"));
	fx_task(fx, 1, &r);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(fx->runs.v[0].attempts.n, 3);
	assert_string_equal(fx->runs.v[0].spans[2], "way");
	assert_true(run_has_span(&fx->runs.v[0], fx->runs.v[0].spans[2]));
	assert_int_equal(fx->runs.v[1].kind, RUN_OTHER);
	fx_free(fx);
}

static void test_cached_metadata_takes_nothing(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, "p", "pre1", PRE, 0, "d", "f.root");
	on_file(fx, 2, "c1", "work1", CHUNK, 100, "d", "f.root");
	on_file(fx, 3, "c1", "work2", CHUNK, 300, "d", "f.root"); /* no preprocessing in its span */
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_non_null(fx->runs.v[0].spans[1]);
	assert_null(fx->runs.v[1].spans[1]);
	fx_free(fx);
}

static void test_preprocessing_must_cover_the_chunks(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, "p1", "good", PRE, 0, "d", "f.root");
	on_file(fx, 2, "p2", "good", PRE, 0, "d", "g.root");
	on_file(fx, 3, "p3", "other", PRE, 100, "d", "f.root"); /* later, but without g.root */
	on_file(fx, 4, "p4", "other", PRE, 100, "another", "g.root"); /* of another dataset */
	on_file(fx, 5, "c1", "work", CHUNK, 200, "d", "f.root");
	on_file(fx, 6, "c2", "work", CHUNK, 200, "d", "g.root");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_string_equal(fx->runs.v[0].spans[1], "good");
	assert_int_equal(fx->runs.v[1].kind, RUN_PREPROCESSING);
	fx_free(fx);
}

static void test_the_last_earlier_one_is_taken(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, "p", "first", PRE, 0, "d", "f.root");
	on_file(fx, 2, "p", "second", PRE, 100, "d", "f.root");
	on_file(fx, 3, "c", "work", CHUNK, 200, "d", "f.root");
	on_file(fx, 4, "p", "later", PRE, 300, "d", "f.root");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 3);
	assert_string_equal(runs_find(&fx->runs, fx->runs.v[1].id)->spans[1], "second");
	assert_ptr_equal(runs_find(&fx->runs, "second"), &fx->runs.v[1]);
	assert_ptr_equal(runs_find(&fx->runs, "work"), &fx->runs.v[1]);
	assert_ptr_equal(runs_find(&fx->runs, "later"), &fx->runs.v[2]);
	assert_null(runs_find(&fx->runs, "wor"));
	fx_free(fx);
}

static void test_user_span_is_one_run(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, "p0", "before", PRE, 0, "d", "f.root"); /* must not be claimed */
	on_file(fx, 2, "p", "mine", PRE, 100, "d", "f.root");
	on_file(fx, 3, "c", "mine", CHUNK, 200, "d", "f.root");
	on_file(fx, 4, "p2", "mine", PRE, 300, "d", "f.root");
	on_file(fx, 5, "c2", "mine", CHUNK, 400, "d", "f.root");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(fx->runs.v[1].attempts.n, 4);
	assert_null(fx->runs.v[1].spans[1]);
	fx_free(fx);
}

static void test_other_work_is_one_run_per_span(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "a", "x", 0, 0, 10, "ok");
	fx_simple(fx, 1, 2, "b", "y", 0, 5, 15, "ok");
	fx_simple(fx, 1, 3, "c", "x", 0, 20, 30, "ok");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 2);
	assert_int_equal(fx->runs.v[0].attempts.n, 2);
	assert_int_equal(fx->runs.v[0].kind, RUN_OTHER);
	fx_free(fx);
}

static void test_without_spans_gaps_divide(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, "p", NULL, PRE, 0, "d", "f.root");
	on_file(fx, 2, "c", NULL, CHUNK, 100, "d", "f.root");
	on_file(fx, 3, "p", NULL, PRE, 300, "d",
		"f.root"); /* the next call: no gap, but its start */
	on_file(fx, 4, "c", NULL, CHUNK, 400, "d", "f.root");
	on_file(fx, 5, "x", NULL, 0, 11000, "d", "f.root"); /* 10.55 s after the last end */
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 3);
	assert_int_equal(fx->runs.v[0].attempts.n, 2);
	assert_int_equal(fx->runs.v[1].attempts.n, 2);
	assert_int_equal(fx->runs.v[2].attempts.n, 1);
	fx_free(fx);
}

static void test_ids(void **state)
{
	struct fixture *fx = fx_new();
	char id[RUN_ID_BYTES];

	(void)state;
	fx_hello(fx, 1, NULL);
	on_file(fx, 1, "p", "pre", PRE, 0, "d", "f.root");
	fx_runs(fx);
	memcpy(id, fx->runs.v[0].id, sizeof(id));
	assert_int_equal(strlen(id), 20);
	assert_memory_equal(id, "20270115-080000-", 16);
	runs_release(&fx->runs);
	on_file(fx, 2, "c", "work", CHUNK, 2000, "d", "f.root"); /* the run grows, its id stays */
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	assert_string_equal(fx->runs.v[0].id, id);
	assert_ptr_equal(runs_find(&fx->runs, "last"), &fx->runs.v[0]);
	assert_ptr_equal(runs_find(&fx->runs, id), &fx->runs.v[0]);
	assert_ptr_equal(runs_find(&fx->runs, "2027"), &fx->runs.v[0]);
	assert_ptr_equal(runs_find(&fx->runs, id + 16), &fx->runs.v[0]);
	assert_ptr_equal(runs_find(&fx->runs, "270"), &fx->runs.v[0]);
	assert_null(runs_find(&fx->runs, "2026"));
	fx_free(fx);
}

static const char *reason(const struct fixture *fx, int worker, uint64_t attempt)
{
	return fx_attempt(fx, worker, attempt)->waste_reason;
}

static void test_reasons(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx->twice = true;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	fx_simple(fx, 1, 1, "retried", "s", 0, 0, 10, "erred");
	fx_simple(fx, 1, 2, "retried", "s", 0, 20, 30, "ok");
	fx_simple(fx, 1, 3, "recomputed", "s", 0, 0, 10, "ok");
	fx_simple(fx, 2, 1, "recomputed", "s", 0, 20, 30, "ok");
	fx_simple(fx, 1, 4, "stolen", "s", 0, 0, 10, "ok");
	fx_simple(fx, 2, 2, "stolen", "s", 0, 5, 15, "ok");
	fx_simple(fx, 1, 5, "killed", "s", 0, 0, 10, "killed");
	fx_simple(fx, 2, 3, "killed", "s", 0, 20, 30, "ok");
	fx_simple(fx, 1, 6, "failed", "s", 0, 0, 10, "erred");
	fx_simple(fx, 1, 7, "running", "s", 0, 0, -1, "running");
	fx_simple(fx, 1, 8, "died after", "s", 0, 0, 10, "ok");
	fx_simple(fx, 2, 4, "died after", "s", 0, 20, 30, "lost");
	fx_runs(fx);
	assert_string_equal(reason(fx, 1, 1), "retried");
	assert_string_equal(reason(fx, 1, 3), "recomputed");
	assert_string_equal(reason(fx, 1, 4), "stolen");
	assert_string_equal(reason(fx, 1, 5), "killed");
	assert_string_equal(reason(fx, 1, 6), "erred");
	assert_null(reason(fx, 1, 7));
	assert_false(fx_attempt(fx, 1, 7)->counted);
	assert_true(fx_attempt(fx, 1, 2)->counted);
	assert_true(fx_attempt(fx, 2, 1)->counted);
	assert_true(fx_attempt(fx, 2, 2)->counted);
	assert_true(fx_attempt(fx, 2, 3)->counted);
	assert_true(fx_attempt(fx, 1, 8)->counted); /* the last successful one */
	assert_string_equal(reason(fx, 2, 4), "lost");
	fx_free(fx);
}

/* A successful task runs again because its worker has left, or because a later call requests it. */
static void test_equal_keys_of_later_calls(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 10, "ok");
	fx_simple(fx, 2, 1, "b", "s", 0, 0, 40, "ok");
	fx_simple(fx, 1, 2, "a", "s", 0, 20, 30, "ok"); /* b was running */
	fx_simple(fx, 1, 3, "c", "s", 0, 30, 35, "erred");
	fx_goodbye(fx, 2, 62, "killed"); /* its agent notices later than the scheduler does */
	fx_simple(fx, 1, 4, "a", "s", 0, 60, 70, "ok");
	fx_simple(fx, 1, 5, "b", "s", 0, 60, 80, "ok"); /* lost with its worker */
	fx_simple(fx, 1, 6, "c", "s", 0, 60, 70, "ok"); /* had failed */
	fx_simple(fx, 1, 7, "d", "s", 0, 90, 95, "ok");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	assert_int_equal(fx->runs.v[0].again, 1);
	fx_free(fx);
}

/* The later call began before the first had ended: certain if no worker has left. */
static void test_equal_keys_of_a_call_meanwhile(void **state)
{
	struct fixture *fx;

	(void)state;
	for (int left = 0; left < 3; left++) {
		fx = fx_new();
		fx_hello(fx, 1, NULL);
		fx_hello(fx, 2, NULL);
		fx_hello(fx, 3, NULL);
		fx_simple(fx, 1, 1, "a", "s", 0, 0, 1000, "ok");
		fx_simple(fx, 2, 1, "b", "s", 0, 0, 40000, "ok");
		fx_simple(fx, 3, 1, "c", "s", 0, 0, 500, "ok");
		fx_simple(fx, 1, 2, "a", "s", 0, 20000, 30000, "ok");
		/* before, too late to be the reason, or between them */
		fx_goodbye(fx, 3, left == 0 ? 900 : left == 1 ? 25100 : 19000, "exit");
		fx_runs(fx);
		assert_int_equal(fx->runs.n, 1);
		assert_int_equal(fx->runs.v[0].again, left < 2);
		fx_free(fx);
	}
}

static void test_keys_by_their_hash(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record a = fx_record(1, "a long key that was cut", "s", 0, 0, 10);
	struct task_record b = fx_record(2, "a long key that was cut", "s", 0, 20, 30);

	(void)state;
	fx_hello(fx, 1, NULL);
	TASK_SET(&a, key_hash, 1);
	TASK_SET(&b, key_hash, 2);
	fx_task(fx, 1, &a);
	fx_task(fx, 1, &b);
	fx_runs(fx);
	assert_true(fx_attempt(fx, 1, 1)->counted);
	assert_true(fx_attempt(fx, 1, 2)->counted);
	fx_free(fx);
}

/* An actor's method has the same key in each call: none is a repetition. */
static void test_calls_of_actors(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;

	(void)state;
	fx_hello(fx, 1, NULL);
	for (unsigned int i = 1; i <= 4; i++) {
		r = fx_record(i, "Counter.add", "s", CREMA_TASK_ACTOR, (int)i * 20,
			      (int)i * 20 + 10);
		TASK_SET(&r, key_hash, 7);
		if (i == 2)
			TASK_SET(&r, status, T("erred"));
		fx_task(fx, 1, &r);
	}
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	for (unsigned int i = 1; i <= 4; i++)
		assert_true(fx_attempt(fx, 1, i)->counted == (i != 2));
	assert_string_equal(fx_attempt(fx, 1, 2)->waste_reason, "erred");
	assert_int_equal(fx->runs.v[0].again, 0);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_calls_four_spans),
		cmocka_unit_test(test_the_processors_way_belongs_to_its_chunks),
		cmocka_unit_test(test_cached_metadata_takes_nothing),
		cmocka_unit_test(test_preprocessing_must_cover_the_chunks),
		cmocka_unit_test(test_the_last_earlier_one_is_taken),
		cmocka_unit_test(test_user_span_is_one_run),
		cmocka_unit_test(test_other_work_is_one_run_per_span),
		cmocka_unit_test(test_without_spans_gaps_divide),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_equal_keys_of_later_calls),
		cmocka_unit_test(test_equal_keys_of_a_call_meanwhile),
		cmocka_unit_test(test_keys_by_their_hash),
		cmocka_unit_test(test_calls_of_actors),
	};

	return cmocka_run_group_tests_name("runs", tests, NULL, NULL);
}
