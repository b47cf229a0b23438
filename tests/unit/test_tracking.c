/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tracking.c - series of the run's workers: each number of a probe is in the right series. */
#include "report_fixture.h"

#include <math.h>

static void assert_points(const struct series *s, size_t n, const double *time, const double *value)
{
	size_t i;

	assert_int_equal(s->n, n);
	for (i = 0; i < n; i++) {
		assert_true(fabs(s->v[i].time - (BASE + time[i])) < 1e-6);
		assert_true(fabs(s->v[i].value - value[i]) < 1e-6);
	}
}

#define POINTS(s, a, b) assert_points(&(s), 2, (const double[]){0.4, 0.8}, (const double[]){a, b})

static void fx_sample(struct fixture *fx, int worker, int ms, uint64_t rss)
{
	fx_map(fx, worker, CREMA_MSG_SAMPLE, "boot_ns", AT(ms), "rss_bytes", rss, NULL);
}

/* Worker 1 has a run of 2 s with tasks of 0.5 and 1 s, two samples and two probes. */
static struct fixture *one_worker(void)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(2, "b", "s", 0, 1000, 2000);

	fx_hello(fx, 1, "{\"nthreads\": 9, \"memory_limit_bytes\": 90}");
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 500, "ok");
	TASK_SET(&r, rss_peak_bytes, 5000);
	TASK_SET(&r, rss_start_bytes, 3000);
	TASK_SET(&r, rss_stop_bytes, 4000);
	fx_task(fx, 1, &r);
	fx_dask(fx, 1, 400,
		"{\"nthreads\": 4, \"executing\": 1, \"ready\": 3, \"nbytes_managed\": 700, "
		"\"spilled_bytes\": 11, \"memory_limit_bytes\": 1000}");
	fx_dask(fx, 1, 800,
		"{\"nthreads\": 5, \"executing\": 2, \"ready\": 40, \"nbytes_managed\": 900, "
		"\"spilled_bytes\": 13, \"memory_limit_bytes\": 2000}");
	fx_dask(fx, 1, 2600, "{\"nthreads\": 6, \"executing\": 77, \"memory_limit_bytes\": 3000}");
	fx_sample(fx, 1, 400, 2000);
	fx_sample(fx, 1, 800, 2500);
	fx_sample(fx, 1, 1600, 2600);
	fx_sample(fx, 1, 2600, 999999); /* after the run's end */
	fx_runs(fx);
	return fx;
}

static void test_probes(void **state)
{
	struct fixture *fx = one_worker();
	const struct tracking *t = fx_facts(fx, 0)->tracking;
	const struct worker_track *k = &t->v[0];
	double at;
	size_t i;

	(void)state;
	assert_int_equal(t->n, 1);
	assert_int_equal(k->worker->id[0], 1);
	POINTS(k->executing, 1, 2);
	POINTS(k->active, 4, 42);
	POINTS(k->nbytes, 700, 900);
	POINTS(k->spilled, 11, 13);
	POINTS(k->limit, 1000, 2000);
	POINTS(k->nthreads, 4, 5);
	assert_true(k->last_seen.n >= 2); /* each second, and at the end */
	for (i = 0; i < k->last_seen.n; i++) {
		at = k->last_seen.v[i].time - BASE;
		assert_true(at >= 0.4);
		assert_true(fabs(k->last_seen.v[i].value - BASE - (at < 0.8 ? 0.4 : 0.8)) < 1e-6);
	}
	/* a task takes 0.75 s on average */
	assert_true(fabs(k->mean_task_wall - 0.75) < 1e-9);
	POINTS(k->occupancy, 3, 31.5);
	assert_uint_value(k->cores, 6); /* the newest value, even after the run */
	assert_uint_value(k->memory_limit, 3000);
	fx_free(fx);
}

static void test_samples(void **state)
{
	struct fixture *fx = one_worker();
	const struct tracking *t = fx_facts(fx, 0)->tracking;
	const struct worker_track *k = &t->v[0];

	(void)state;
	assert_points(&k->memory, 3, (const double[]){0.4, 0.8, 1.6},
		      (const double[]){2000, 2500, 2600});
	assert_true(fabs(k->peak_rss - 5000) < 1e-9); /* of a task, between samples */
	/* 0.4 s and 0.8 s apart */
	assert_true(fabs(t->interval - 0.8) < 1e-6);
	/* (0.4 * 2250 + 0.8 * 2550) / 1.2 */
	assert_true(fabs(series_average(&k->memory) - 2450) < 1e-3);
	fx_free(fx);
}

/* The highest value can be at either end of a task. */
static void test_peak_is_of_tasks_and_samples(void **state)
{
	struct fixture *fx;
	struct task_record r;
	int which;

	(void)state;
	for (which = 0; which < 4; which++) {
		fx = fx_new();
		fx_hello(fx, 1, "{}");
		r = fx_record(1, "a", "s", 0, 0, 1000);
		TASK_SET(&r, rss_peak_bytes, which == 0 ? 8000 : 1000);
		TASK_SET(&r, rss_start_bytes, which == 1 ? 8000 : 1000);
		TASK_SET(&r, rss_stop_bytes, which == 2 ? 8000 : 1000);
		fx_task(fx, 1, &r);
		fx_sample(fx, 1, 500, which == 3 ? 8000 : 1000);
		fx_runs(fx);
		assert_true(fabs(fx_facts(fx, 0)->tracking->v[0].peak_rss - 8000) < 1e-9);
		fx_free(fx);
	}
}

/* Each worker's tasks count for that worker: two workers in turn, and the first again. */
static void test_mean_is_per_worker(void **state)
{
	struct fixture *fx = fx_new();
	const struct tracking *t;
	size_t i;

	(void)state;
	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 100, "ok");
	fx_simple(fx, 2, 1, "b", "s", 0, 0, 1000, "ok");
	fx_simple(fx, 1, 2, "c", "s", 0, 500, 800, "ok");
	fx_simple(fx, 2, 2, "d", "s", 0, 1000, 3000, "ok");
	fx_simple(fx, 2, 3, "e", "s", 0, 3000, 9000, "erred"); /* not counted */
	fx_runs(fx);
	t = fx_facts(fx, 0)->tracking;
	assert_int_equal(t->n, 2);
	for (i = 0; i < 2; i++)
		assert_true(fabs(t->v[i].mean_task_wall -
				 (t->v[i].worker->id[0] == 1 ? 0.2 : 1.5)) < 1e-9);
	fx_free(fx);
}

/* Each second, and before and after each change; all workers are looked at each second only, as
 * thousands of workers make as many changes. */
static void test_worker_counts(void **state)
{
	static const double time[] = {0, 1, 2, 2.25, 2.25, 3}, value[] = {2, 2, 2, 2, 1, 1};
	struct fixture *fx = fx_new();
	const struct tracking *t;
	size_t i;

	(void)state;
	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 3000, "ok");
	fx_simple(fx, 2, 1, "b", "s", 0, 1500, 2000, "ok");
	fx_dask(fx, 1, 500, "{\"executing\": 1}");
	fx_dask(fx, 2, 600, "{\"executing\": 1}");
	fx_goodbye(fx, 2, 2250, "atexit");
	fx_runs(fx);
	t = fx_facts(fx, 0)->tracking;
	assert_points(&t->workers, 6, time, value);
	for (i = 0; i < t->n; i++) {
		if (t->v[i].worker->id[0] == 1)
			assert_points(&t->v[i].last_seen, 3, (const double[]){1, 2, 3},
				      (const double[]){BASE + 0.5, BASE + 0.5, BASE + 0.5});
		else
			assert_points(&t->v[i].last_seen, 2, (const double[]){1, 2},
				      (const double[]){BASE + 0.6, BASE + 0.6});
	}
	for (i = 0; i < 5; i++)
		assert_true(i == 4 ? isnan(tracking_moment(fx->facts.run, i))
				   : fabs(tracking_moment(fx->facts.run, i) - BASE - (double)i) <
					     1e-6);
	fx_free(fx);
}

static void test_what_is_unknown_is_no_point(void **state)
{
	struct fixture *fx = fx_new();
	const struct worker_track *k;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 2}");
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 1000, "ok");
	fx_dask(fx, 1, 500, "{\"executing\": null, \"ready\": 3}");
	fx_runs(fx);
	k = &fx_facts(fx, 0)->tracking->v[0];
	assert_int_equal(k->executing.n + k->active.n + k->nbytes.n + k->occupancy.n, 0);
	assert_int_equal(k->last_seen.n, 1);
	assert_true(isnan(k->peak_rss));
	assert_uint_value(k->cores, 2);
	assert_int_equal(k->memory_limit.type, VALUE_NULL);
	assert_true(isnan(series_average(&k->memory)));
	fx_free(fx);
}

static void test_times_in_words(void **state)
{
	char text[64];

	(void)state;
	assert_string_equal(iso_time(1795350600.25, text, sizeof(text)),
			    "2026-11-22T12:30:00.250000+00:00");
	assert_string_equal(iso_time(-1.5, text, sizeof(text)), "1969-12-31T23:59:58.500000+00:00");
	assert_null(iso_time((double)NAN, text, sizeof(text)));
	assert_null(iso_time(1e16, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_peak_is_of_tasks_and_samples),
		cmocka_unit_test(test_mean_is_per_worker),
		cmocka_unit_test(test_worker_counts),
		cmocka_unit_test(test_what_is_unknown_is_no_point),
		cmocka_unit_test(test_times_in_words),
	};

	return cmocka_run_group_tests_name("tracking", tests, NULL, NULL);
}
