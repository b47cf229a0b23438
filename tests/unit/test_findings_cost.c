/* SPDX-License-Identifier: BSD-3-Clause */
/* test_findings_cost.c - what findings cost, computed by hand, and their ranking by cost. */
#include <math.h>

#include "collector/findings/cost.h"
#include "findings_cases.h"

/* Two threads: for 1 s two tasks ran, for 3 s only the first. The first explains 0.5 + 3 s of the
 * wall time, the second 0.5 s. */
static void two_tasks(struct fixture *fx)
{
	struct task_record r = work(1, "slow", 0, 4000);

	fx_hello(fx, 1, "{\"nthreads\": 2}");
	SET_OWN(&r, cpu, 1000);
	SET_OWN(&r, network_wait, 3000);
	fx_task(fx, 1, &r);
	r = work(2, "quick", 0, 1000);
	SET_OWN(&r, lock_wait, 1000);
	fx_task(fx, 1, &r);
}

static double cost_at(const struct found *found, const char *id)
{
	const struct finding *f = finding_of(found, id);

	assert_non_null(f);
	return f->cost_s;
}

static void test_the_wall_time_is_divided(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;
	struct costs c;
	double sum = 0;
	size_t i;

	(void)state;
	two_tasks(fx);
	collect(fx, &found);
	assert_int_equal(costs_build(&c, found.report.run), 0);
	assert_int_equal(c.n, 2);
	assert_real(c.any, 4);
	assert_real(c.task_seconds, 5);
	assert_real(cost_of(&c, c.v[0].attempt) + cost_of(&c, c.v[1].attempt), 4);
	assert_real(fmax(c.v[0].seconds, c.v[1].seconds), 3.5);
	for (i = 0; i < CREMA_TIMES; i++)
		sum += c.class_s[i];
	assert_real(sum + c.unclassified, 4);
	assert_real(c.class_s[CREMA_T_cpu], 3.5 / 4);
	assert_real(c.class_s[CREMA_T_network_wait], 3.5 * 3 / 4);
	assert_real(c.class_s[CREMA_T_lock_wait], 0.5);
	costs_release(&c);
	assert_real(cost_at(&found, "network_wait"), 2.625);
	assert_real(cost_at(&found, "lock_wait"), 0.5);
	assert_real(finding_of(&found, "lock_wait")->of_s, 4);
	found_free(&found);
	fx_free(fx);
}

/* One task has a codec's CPU while it waits for a core, one computes on pool threads. Others ran in
 * the event loop, elsewhere or have no end: they have no share. */
static void test_codecs_and_cpu(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = work(1, "a", 1000, 5000);
	struct found found;
	struct costs c;
	uint64_t i;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 2}");
	SET_OWN(&r, cpu, 2000);
	SET_OWN(&r, runqueue, 1000);
	SET_COUNT(&r, decompress_cpu_ns, 400000000);
	SET_COUNT(&r, compress_cpu_ns, 600000000);
	fx_task(fx, 1, &r);
	r = work(2, "b", 3000, 5000);
	SET_OWN(&r, cpu, 500);
	SET_COUNT(&r, decompress_cpu_ns, 7000000000);
	fx_task(fx, 1, &r);
	r = work(3, "c", 5000, 5500);
	SET_COUNT(&r, compress_cpu_ns, 50000000);
	fx_task(fx, 1, &r);
	for (i = 4; i < 7; i++) {
		r = work(i, "d", 1000, i == 6 ? -1 : 9000);
		TASK_SET(&r, flags, i == 4 ? CREMA_TASK_ASYNC : i == 5 ? CREMA_TASK_ELSEWHERE : 0);
		fx_task(fx, 1, &r);
	}
	collect(fx, &found);
	assert_int_equal(costs_build(&c, found.report.run), 0);
	/* a is alone for 2 s, then with b for 2 s, then c for 0.5 s: shares of 3, 1 and 0.5 s */
	assert_int_equal(c.n, 3);
	assert_real(c.any, 4.5);
	assert_real(c.task_seconds, 6.5);
	for (i = 0; i < c.n; i++) {
		const double due[] = {3, 1, 0.5};
		uint64_t number = c.v[i].attempt->attempt;

		assert_real(c.v[i].seconds, due[number - 1]);
		assert_real(cost_of(&c, c.v[i].attempt), due[number - 1]);
	}
	assert_real(cost_of(&c, fx_attempt(fx, 1, 4)), 0);
	assert_real(c.cpu_seconds, 2.5);
	/* a: 3 of 4 s; each second of its CPU took 1.5 s. b: no more than its wall time. */
	assert_real(c.decompress, 0.75 * 0.4 * 1.5 + 0.5 * 2);
	assert_real(c.compress, 0.75 * 0.6 * 1.5 + 0.05);
	assert_real(c.class_s[CREMA_T_cpu], 0.75 * 2 + 0.5 * 0.5);
	assert_real(c.class_s[CREMA_T_runqueue], 0.75);
	assert_real(c.unclassified, 0.75 * 1 + 0.5 * 1.5 + 0.5);
	assert_real(cost_of_cpu(&c, 1), 1 / 2.5 * 2.5);
	assert_real(cost_of_cpu(&c, 0.5), 0.5);
	costs_release(&c);
	found_free(&found);
	fx_free(fx);
	fx = fx_new();
	assert_int_equal(costs_build(&c, &(struct run){0}), 0);
	assert_int_equal(c.n, 0);
	fx_free(fx);
}

/* Gaps without any task are not in any share. */
static void test_a_gap_is_no_task(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;
	struct found found;
	struct costs c;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 2}");
	r = work(1, "a", 0, 1000);
	fx_task(fx, 1, &r);
	r = work(2, "b", 5000, 7000);
	fx_task(fx, 1, &r);
	collect(fx, &found);
	assert_int_equal(costs_build(&c, found.report.run), 0);
	assert_real(c.any, 3);
	assert_real(cost_part(1, 4, 3), 0.75);
	assert_real(cost_part(5, 4, 3), 3); /* never more than the whole */
	assert_true(isnan(cost_part(1, 0, 3)));
	costs_release(&c);
	found_free(&found);
	fx_free(fx);
}

/* A chunk's baskets come from its file's location; those of another task from files if it read as
 * much there. */
static void test_waits_for_baskets(void **state)
{
	static const struct {
		const char *file; /* of the chunk */
		int64_t read, baskets;
		double due;
	} cases[] = {
		{"/data/a.root", 0, 1000, 1}, {"root://server//a.root", 1000, 1000, 2},
		{NULL, 1000, 1000, 1},	      {NULL, 999, 1000, 3},
		{NULL, -1, 1000, 3},	      {NULL, 1000, -1, 3},
	};
	struct task_record r;
	struct fixture *fx;
	struct found found;
	struct costs c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fx = fx_new();
		fx_hello(fx, 1, "{}");
		r = cases[i].file ? chunk(1, "a", 0, 4000, cases[i].file, 0, 1000)
				  : work(1, "a", 0, 4000);
		SET_OWN(&r, cpu, 1000);
		SET_OWN(&r, storage_wait, 1000);
		SET_OWN(&r, network_wait, 2000);
		SET_COUNT(&r, read_bytes, (uint64_t)cases[i].read);
		SET_COUNT(&r, basket_bytes, (uint64_t)cases[i].baskets);
		if (cases[i].read < 0)
			r.count_known &= ~CREMA_COUNT_BIT(read_bytes);
		if (cases[i].baskets < 0)
			r.count_known &= ~CREMA_COUNT_BIT(basket_bytes);
		fx_task(fx, 1, &r);
		collect(fx, &found);
		assert_int_equal(costs_build(&c, found.report.run), 0);
		assert_real(c.reading, cases[i].due);
		costs_release(&c);
		found_free(&found);
		fx_free(fx);
	}
}

static void test_ranked_by_cost(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;
	const struct finding *f;
	double before = 0, cost;
	size_t i;
	int severity = -1;

	(void)state;
	two_tasks(fx);
	collect(fx, &found);
	assert_true(found.list.n >= 2);
	for (i = 0; i < found.list.n; i++) {
		f = &found.list.v[i];
		cost = isnan(f->cost_s) ? -1 : f->cost_s;
		if ((int)f->severity == severity && cost > before)
			fail_msg("%s costs %g after one of %g", f->id, cost, before);
		assert_true(isnan(f->cost_s) || (f->cost_s >= 0 && f->cost_s <= f->of_s));
		severity = (int)f->severity;
		before = cost;
	}
	found_free(&found);
	fx_free(fx);
}

/* A straggler, and threads that are idle meanwhile: one cause. */
static void test_the_specific_one_speaks(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r;
	struct found found;
	size_t i;
	char key[8];

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 4}");
	for (i = 0; i < 11; i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		r = work(i + 1, key, i ? (int)i * 100 : 0, i ? (int)i * 100 + 100 : 9000);
		SET_OWN(&r, cpu, i ? 100 : 9000);
		fx_task(fx, 1, &r);
	}
	collect(fx, &found);
	assert_string_equal(found.list.v[0].id, "stragglers");
	assert_real(found.list.v[0].cost_s, (9 - 0.5) * (1 - 0.1 / 9));
	assert_null(finding_of(&found, "idle_threads"));
	assert_null(finding_of(&found, "low_cpu_efficiency"));
	for (i = 0; i < found.list.n; i++)
		assert_null(found.list.v[i].left_out_for);
	assert_true(found.list.left_out >= 1);
	for (i = 0; i < found.list.left_out; i++)
		assert_non_null(found.list.v[found.list.n + i].left_out_for);
	found_free(&found);
	fx_free(fx);
}

/* The cause of idle threads is named instead if it explains half of their time: 2 s of CPU of 4.75
 * s without a task do not, 2.375 s do. */
static void test_idle_while_workers_start(void **state)
{
	(void)state;
	for (int half = 0; half < 2; half++) {
		struct fixture *fx = fx_new();
		struct found found;

		worker(fx, 1, 8, 5000);
		task_of(fx, 1, 1, "a", 0, 1000, 1000);
		task_of(fx, 1, 2, "b", 4000, 1000, 1000);
		fresh_totals(fx, 4000, half ? 6375 : 6000, 1000000);
		collect(fx, &found);
		assert_real(cost_at(&found, "fresh_workers"), half ? 2.375 : 2);
		if (!half)
			assert_real(cost_at(&found, "idle_threads"), 4.75);
		else
			assert_null(finding_of(&found, "idle_threads"));
		found_free(&found);
		fx_free(fx);
	}
}

/* Two tasks on two threads; the second ends 3 s earlier, and each waits for a core for the time
 * given. */
static bool has_tail(int long_queue, int short_queue, int wall)
{
	struct task_record r = work(1, "a", 0, wall);
	struct fixture *fx = fx_new();
	struct found found;
	bool has;

	worker(fx, 1, 2, 5000);
	SET_OWN(&r, runqueue, long_queue);
	fx_task(fx, 1, &r);
	r = work(2, "b", 0, 1000);
	SET_OWN(&r, runqueue, short_queue);
	fx_task(fx, 1, &r);
	if (wall == 1000)
		task_of(fx, 1, 3, "c", 4000, 10, 10);
	collect(fx, &found);
	has = finding_of(&found, "tail") != NULL;
	if (has)
		assert_real(finding_of(&found, "tail")->cost_s, 1.5);
	found_free(&found);
	fx_free(fx);
	return has;
}

static void test_a_tail_is_one_long_task(void **state)
{
	(void)state;
	assert_true(has_tail(0, 0, 4000));
	assert_false(has_tail(3100, 100, 4000)); /* 0.9 s each, on cores used by others */
	assert_true(has_tail(2000, 500, 4000));	 /* 2 s and 0.5 s */
	assert_false(has_tail(0, 0, 1000));	 /* 3 s without any task */
}

/* 20 chunks of 100 ms, `queue` ms of each spent waiting for a core. The first one also imports for
 * `import_ms`. */
static void twenty_chunks(struct fixture *fx, int import_ms, double process, int queue)
{
	struct task_record r;
	char key[16];

	worker(fx, 1, 1, 2000 + import_ms);
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = chunk((uint64_t)i + 1, key, i ? import_ms + i * 100 : 0,
			  import_ms + i * 100 + 100, "/a", i * 1000, i * 1000 + 1000);
		TASK_SET(&r, coffea_processtime, process);
		SET_OWN(&r, runqueue, queue);
		SET_COUNT(&r, import_read_bytes, i || !import_ms ? 0 : 2000000);
		fx_task(fx, 1, &r);
	}
}

/* The case of chunk_overhead. */
static bool has_overhead(int queue)
{
	struct fixture *fx = fx_new();
	struct found found;
	bool has;

	twenty_chunks(fx, 0, 0.04, queue);
	collect(fx, &found);
	has = finding_of(&found, "chunk_overhead") != NULL;
	found_free(&found);
	fx_free(fx);
	return has;
}

static void test_overhead_of_a_busy_node(void **state)
{
	(void)state;
	assert_true(has_overhead(0));
	assert_false(has_overhead(50)); /* 1.08 s would be saved, half of it is due to others */
}

/* 5 or 60 of each chunk's 100 ms are outside of process(). */
static void test_imports_are_no_overhead_of_chunks(void **state)
{
	static const double process[] = {0.095, 0.04};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fixture *fx = fx_new();
		const struct finding *f;
		struct found found;

		twenty_chunks(fx, 3000, process[i], 0);
		collect(fx, &found);
		f = finding_of(&found, "chunk_overhead");
		assert_int_equal(f != NULL, i == 1);
		if (f)
			assert_non_null(strstr(
				f->sentence, "60 % of the chunks' time (1.200 s of 2.000 s) went"));
		found_free(&found);
		fx_free(fx);
	}
}

/* Of two datasets one began with a chunk that took 6 s instead of 1 s, to import or for its events.
 */
static void test_imports_are_no_cost_of_a_dataset(void **state)
{
	(void)state;
	for (int imports = 0; imports < 2; imports++) {
		struct fixture *fx = fx_new();
		struct task_record r;
		struct found found;
		char key[16];

		worker(fx, 1, 1, 20000);
		for (int n = 0; n < 8; n++) {
			snprintf(key, sizeof(key), "k%d", n);
			r = chunk((uint64_t)n + 1, key, n ? 5000 + n * 1000 : 0, 6000 + n * 1000,
				  n < 2 ? "/a" : "/b", n * 1000, n * 1000 + 1000);
			TASK_SET(&r, dataset, n < 2 ? T("a") : T("b"));
			SET_COUNT(&r, import_read_bytes, n || !imports ? 0 : 2000000);
			fx_task(fx, 1, &r);
		}
		collect(fx, &found);
		assert_int_equal(finding_of(&found, "dataset_imbalance") != NULL, !imports);
		found_free(&found);
		fx_free(fx);
	}
}

/* `slow` imports, `other` does not. */
static struct fixture *with_imports(struct task_record *slow, const struct task_record *other,
				    struct found *found)
{
	struct fixture *fx = fx_new();

	worker(fx, 1, 1, 5000);
	SET_COUNT(slow, import_read_bytes, 1000000);
	fx_task(fx, 1, slow);
	fx_task(fx, 1, other);
	collect(fx, found);
	return fx;
}

/* 2 s of imports, or 2.5 s, and 1.2 s of waits for locks, which grow with the run. */
static void test_imports_are_paid_once(void **state)
{
	(void)state;
	for (int far = 0; far < 2; far++) {
		struct task_record r = work(1, "a", 0, far ? 3500 : 3000);
		struct task_record other = work(2, "b", 4000, 5000);
		struct fixture *fx;
		struct found found;

		SET_OWN(&r, lock_wait, 300);
		SET_OWN(&other, lock_wait, 900);
		fx = with_imports(&r, &other, &found);
		assert_real(cost_at(&found, "imports"), far ? 2.5 : 2);
		assert_real(cost_at(&found, "lock_wait"), 1.2);
		assert_string_equal(found.list.v[0].id, far ? "imports" : "lock_wait");
		assert_string_equal(found.list.v[1].id, far ? "lock_wait" : "imports");
		found_free(&found);
		fx_free(fx);
	}
}

/* A slow import that sleeps: 2 s longer than the others, 1.2 s of it asleep. */
static void test_sleep_within_imports(void **state)
{
	struct task_record r = work(1, "a", 0, 3000), other = work(2, "b", 4000, 5000);
	struct fixture *fx;
	struct found found;

	(void)state;
	SET_OWN(&r, sleep, 1200);
	fx = with_imports(&r, &other, &found);
	assert_string_equal(found.list.v[0].id, "imports");
	assert_null(finding_of(&found, "sleeping"));
	found_free(&found);
	fx_free(fx);
}

/* At least half of the threads' time was idle; tasks waited for a core, which others or their own
 * threads used. */
static void test_idle_while_others_compute(void **state)
{
	static const struct {
		int queue;
		uint64_t cores;
		int hosts;
		enum finding_severity severity;
	} t[] = {
		{500, 2, 1, FINDING_NOTE},    {499, 2, 1, FINDING_WARNING},
		{500, 1, 1, FINDING_WARNING}, {500, 2, 2, FINDING_NOTE},
		{500, 1, 2, FINDING_WARNING},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct task_record r = work(1, "a", 0, 2000);
		struct fixture *fx = fx_new();
		struct found found;

		for (int host = 1; host <= t[i].hosts; host++)
			hello_on(fx, host, host == 1 ? "node" : "other", 2, t[i].cores);
		SET_OWN(&r, runqueue, t[i].queue);
		fx_task(fx, 1, &r);
		if (t[i].hosts > 1) {
			r = work(2, "a", 0, 100);
			SET_OWN(&r, runqueue, 100);
			fx_task(fx, 2, &r);
		}
		collect(fx, &found);
		assert_int_equal(finding_of(&found, "idle_threads")->severity, t[i].severity);
		found_free(&found);
		fx_free(fx);
	}
}

/* Among notes, cores used by other processes cost seconds; files that were in memory cost
 * nothing. */
static void test_what_costs_before_what_does_not(void **state)
{
	struct task_record r = work(1, "a", 0, 4000);
	struct fixture *fx = fx_new();
	struct found found;

	(void)state;
	hello_of_host(fx, 1, 2);
	SET_OWN(&r, runqueue, 2000);
	SET_COUNT(&r, read_bytes, 10000000);
	SET_COUNT(&r, storage_read_bytes, 0);
	fx_task(fx, 1, &r);
	collect(fx, &found);
	assert_int_equal(finding_of(&found, "run_queue")->severity, FINDING_NOTE);
	assert_real(cost_at(&found, "run_queue"), 2);
	assert_true(isnan(cost_at(&found, "warm_cache")));
	assert_true(finding_of(&found, "run_queue") < finding_of(&found, "warm_cache"));
	found_free(&found);
	fx_free(fx);
}

/* The advice about the lock is also the advice about the cores, and has a larger effect. */
static void test_the_lock_before_the_cores(void **state)
{
	(void)state;
	for (int gil = 1400; gil <= 1500; gil += 100) {
		struct task_record r = work(1, "a", 0, 10000);
		struct fixture *fx = fx_new();
		struct found found;

		worker(fx, 1, 4, 10000);
		SET_OWN(&r, gil_wait, gil);
		SET_OWN(&r, runqueue, 5000);
		fx_task(fx, 1, &r);
		collect(fx, &found);
		assert_true((finding_of(&found, "run_queue") == NULL) == (gil == 1500));
		found_free(&found);
		fx_free(fx);
	}
}

static void test_text_of_a_cost(void **state)
{
	struct finding f = {.cost_s = 4.04, .of_s = 4.6};
	char text[FINDING_COST_BYTES];

	(void)state;
	assert_string_equal(finding_cost(&f, text, sizeof(text)), "costs about 4.0 of 4.6 s");
	f.cost_s = (double)NAN;
	assert_string_equal(finding_cost(&f, text, sizeof(text)), "");
	f = (struct finding){.cost_s = 0.0401, .of_s = 0.5};
	assert_string_equal(finding_cost(&f, text, sizeof(text)), "costs about 0.040 of 0.500 s");
	f = (struct finding){.cost_s = 99.4, .of_s = 1234.5};
	assert_string_equal(finding_cost(&f, text, sizeof(text)), "costs about 99 of 1234 s");
	f = (struct finding){.cost_s = 0.04, .of_s = 4};
	assert_string_equal(finding_cost(&f, text, sizeof(text)), "costs less than 0.1 of 4.0 s");
	f.cost_is_least = true;
	assert_string_equal(finding_cost(&f, text, sizeof(text)), "");
	f = (struct finding){.cost_s = 3, .of_s = 4, .gain = "at most 2.5 s"};
	assert_string_equal(finding_cost(&f, text, sizeof(text)),
			    "costs about 3.0 of 4.0 s; the advice saves at most 2.5 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_wall_time_is_divided),
		cmocka_unit_test(test_codecs_and_cpu),
		cmocka_unit_test(test_a_gap_is_no_task),
		cmocka_unit_test(test_waits_for_baskets),
		cmocka_unit_test(test_ranked_by_cost),
		cmocka_unit_test(test_the_specific_one_speaks),
		cmocka_unit_test(test_idle_while_workers_start),
		cmocka_unit_test(test_a_tail_is_one_long_task),
		cmocka_unit_test(test_overhead_of_a_busy_node),
		cmocka_unit_test(test_imports_are_no_overhead_of_chunks),
		cmocka_unit_test(test_imports_are_no_cost_of_a_dataset),
		cmocka_unit_test(test_imports_are_paid_once),
		cmocka_unit_test(test_sleep_within_imports),
		cmocka_unit_test(test_idle_while_others_compute),
		cmocka_unit_test(test_what_costs_before_what_does_not),
		cmocka_unit_test(test_the_lock_before_the_cores),
		cmocka_unit_test(test_text_of_a_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
