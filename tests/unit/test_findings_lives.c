/* SPDX-License-Identifier: BSD-3-Clause */
/* test_findings_lives.c - threads of workers that were on a host at one time, or one after the
 * other. */
#include "findings_fixture.h"

#include "collector/findings/check.h"

struct life {
	const char *host; /* NULL: no more */
	int threads, from, until;
};

/* Each thread of a worker has a task, of which `queue` ms of each second are a wait for a core, and
 * `gil` ms for the interpreter lock. */
static void live(struct fixture *fx, const struct life *l, uint64_t cores, int queue, int gil)
{
	char key[16];
	uint64_t n = 0;

	for (int i = 0; l[i].host; i++) {
		int seconds = (l[i].until - l[i].from) / 1000;

		hello_at(fx, i + 1, l[i].host, l[i].threads, cores, l[i].from);
		for (int k = 0; k < l[i].threads; k++) {
			struct task_record r;

			snprintf(key, sizeof(key), "k%d", (int)n);
			r = work(++n, key, l[i].from, l[i].until);
			SET_OWN(&r, cpu, (1000 - queue - gil) * seconds);
			SET_OWN(&r, runqueue, queue * seconds);
			SET_OWN(&r, gil_wait, gil * seconds);
			fx_task(fx, i + 1, &r);
		}
		fx_goodbye(fx, i + 1, l[i].until, i ? "exit" : "killed");
	}
}

struct lives {
	struct life life[4];
	double threads; /* at one time, on the fullest host */
	const char *host;
};

static const struct lives lives[] = {
	{{{"node", 4, 0, 10000}, {"node", 4, 11000, 20000}}, 4, "node"},
	{{{"node", 4, 0, 10000}, {"node", 4, 10000, 20000}}, 4, "node"}, /* at once */
	{{{"node", 4, 0, 10000}, {"node", 2, 10000, 20000}}, 4, "node"},
	{{{"node", 2, 0, 10000}, {"node", 4, 10000, 20000}}, 4, "node"},
	{{{"node", 4, 0, 10000}, {"node", 4, 9000, 20000}}, 8, "node"},
	{{{"node", 4, 0, 20000}, {"node", 4, 0, 20000}}, 8, "node"},
	{{{"node", 4, 0, 20000}, {"node", 1, 0, 20000}}, 5, "node"},
	{{{"a", 4, 0, 9000}, {"a", 4, 10000, 20000}, {"b", 5, 0, 20000}}, 5, "b"},
};

static void test_threads_at_one_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lives) / sizeof(*lives); i++) {
		struct fixture *fx = fx_new();
		double threads, cores;
		struct found found;
		const char *host;

		live(fx, lives[i].life, 4, 500, 0);
		collect(fx, &found);
		host = fullest_host(&found.report, &threads, &cores);
		assert_non_null(host);
		assert_string_equal(host, lives[i].host);
		assert_real(threads, lives[i].threads);
		assert_real(cores, 4);
		found_free(&found);
		fx_free(fx);
	}
}

/* A worker that replaces another one adds no threads: other processes kept the cores busy. */
static void test_who_kept_the_cores_busy(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lives) / sizeof(*lives); i++) {
		bool others = lives[i].threads <= 4;
		struct fixture *fx = fx_new();
		const struct finding *f;
		struct found found;

		live(fx, lives[i].life, 4, 500, 0);
		collect(fx, &found);
		f = finding_of(&found, "run_queue");
		assert_non_null(f);
		assert_int_equal(f->severity, others ? FINDING_NOTE : FINDING_WARNING);
		assert_int_equal(!!strstr(f->sentence, "other processes kept the cores busy"),
				 others);
		assert_int_equal(!!strstr(f->advice, "Start no more worker threads"), !others);
		assert_real(value_number(evidence_of(f, "threads"), NULL), lives[i].threads);
		found_free(&found);
		fx_free(fx);
	}
}

/* Threads were idle while tasks waited for cores. */
static void test_idle_threads_of_replaced_workers(void **state)
{
	static const struct life one_by_one[] = {
		{"node", 2, 0, 4000}, {"node", 2, 5000, 6000}, {0}};
	static const struct life at_once[] = {{"node", 2, 0, 4000}, {"node", 2, 3000, 6000}, {0}};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct task_record r = work(99, "z", 10000, 11000);
		struct fixture *fx = fx_new();
		const struct finding *f;
		struct found found;
		size_t k = 0;

		live(fx, i ? at_once : one_by_one, 2, 600, 0);
		hello_on(fx, 9, "other", 2, 64);
		fx_task(fx, 9, &r);
		collect(fx, &found);
		while (strcmp(found.list.v[k].id, "idle_threads") != 0) /* also if it is left out */
			assert_true(++k < found.list.n + found.list.left_out);
		f = &found.list.v[k];
		assert_int_equal(f->severity, i ? FINDING_WARNING : FINDING_NOTE);
		found_free(&found);
		fx_free(fx);
	}
}

/* As many processes as there were threads. */
static void test_processes_instead_of_threads(void **state)
{
	static const struct life restarted[] = {
		{"node", 2, 0, 5000}, {"node", 2, 6000, 10000}, {"node", 2, 11000, 20000}, {0}};
	struct fixture *fx = fx_new();
	const struct finding *f;
	struct found found;

	(void)state;
	live(fx, restarted, 8, 0, 600);
	collect(fx, &found);
	f = finding_of(&found, "gil_wait");
	assert_non_null(f);
	assert_non_null(strstr(f->advice, "--nworkers 2 --nthreads 1"));
	found_free(&found);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_at_one_time),
		cmocka_unit_test(test_who_kept_the_cores_busy),
		cmocka_unit_test(test_idle_threads_of_replaced_workers),
		cmocka_unit_test(test_processes_instead_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
