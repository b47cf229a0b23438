/* SPDX-License-Identifier: BSD-3-Clause */
/* test_model_workers.c - what messages reveal about their worker: when it was present, where it
 * listens, what its threads do; and frames that are not its messages. */
#include "report_fixture.h"

/* Each message alone, from a worker whose hello arrived at 0 s: when it was last seen. */
static void expect_last(struct fixture *fx, const char *what, int ms)
{
	fx_runs(fx);
	if (fx->m.workers.v[0]->last_boot_ns != AT(ms))
		fail_msg("%s: heard at %llu, not %llu", what,
			 (unsigned long long)fx->m.workers.v[0]->last_boot_ns,
			 (unsigned long long)AT(ms));
	assert_int_equal(fx->m.workers.v[0]->first_boot_ns, BOOT);
	fx_free(fx);
}

static struct fixture *greeted(void)
{
	struct fixture *fx = fx_new();

	fx_hello(fx, 1, NULL);
	return fx;
}

static void test_signs_of_life(void **state)
{
	static const struct {
		const char *what;
		uint64_t type;
		const char *key;
	} maps[] = {{"a sample", CREMA_MSG_SAMPLE, "boot_ns"},
		    {"a host's sample", CREMA_MSG_HOST, "boot_ns"},
		    {"totals", CREMA_MSG_TOTALS, "boot_ns"},
		    {"clocks", CREMA_MSG_CLOCKS, "boot_ns"},
		    {"a goodbye", CREMA_MSG_GOODBYE, "boot_ns"}};
	struct fixture *fx;
	struct buf b = BUF_INIT;
	msgpack_packer pk;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		fx = greeted();
		fx_map(fx, 1, maps[i].type, maps[i].key, AT(7000), NULL);
		fx_map(fx, 1, maps[i].type, maps[i].key, AT(6000), NULL);
		expect_last(fx, maps[i].what, 7000);
	}
	fx = greeted();
	fx_dask(fx, 1, 7000, "{\"nthreads\": 1}");
	expect_last(fx, "Dask's numbers", 7000);
	fx = greeted(); /* a task's start, and its end */
	fx_simple(fx, 1, 1, "k", "s", 0, 7000, -1, "running");
	expect_last(fx, "a start", 7000);
	fx = greeted();
	fx_simple(fx, 1, 1, "k", "s", 0, 3000, 7000, "ok");
	expect_last(fx, "an end", 7000);
	fx = greeted(); /* a long wait, by its end */
	fx_begin(&pk, &b, CREMA_MSG_STACK, 7);
	pack_kv_u64(&pk, "number", 0);
	pack_kv_text(&pk, "wait", "lock_wait_ns");
	pack_kv_u64(&pk, "waited_ns", 1000000);
	pack_kv_text(&pk, "span", "s");
	pack_kv_text(&pk, "prefix", "task");
	pack_kv_u64(&pk, "end_boot_ns", AT(7000));
	pack_text(&pk, "frames");
	pack_array(&pk, 0);
	fx_end(fx, 1, &b);
	expect_last(fx, "a long wait", 7000);
}

/* The facts arrived before the worker was listening: a task's record has the address; the facts
 * take precedence. */
static void test_names_out_of_tasks(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "k", "s", 0, 0, 100);

	(void)state;
	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{\"worker_address\": \"tcp://facts:1\", \"worker_name\": \"first\"}");
	TASK_SET(&r, worker_address, T("tcp://task:2"));
	TASK_SET(&r, worker_name, T("second"));
	fx_task(fx, 1, &r);
	fx_task(fx, 2, &r);
	fx_runs(fx);
	assert_string_equal(fx_attempt(fx, 1, 1)->worker->address, "tcp://task:2");
	assert_string_equal(fx_attempt(fx, 1, 1)->worker->name, "second");
	assert_string_equal(fx_attempt(fx, 2, 1)->worker->address, "tcp://facts:1");
	assert_string_equal(fx_attempt(fx, 2, 1)->worker->name, "first");
	fx_free(fx);
}

/* A reported end, or the start and the wall time, or the start. */
static void test_ends_of_attempts(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "a", "s", 0, 1000, 2500);

	(void)state;
	fx_hello(fx, 1, "{}");
	TASK_SET(&r, wall_ns, 7000000000);
	fx_task(fx, 1, &r);
	r = fx_record(2, "b", "s", 0, 1000, 2500);
	r.known &= ~(UINT64_C(1) << TASK_F_stop_boot_ns);
	fx_task(fx, 1, &r);
	r.known &= ~(UINT64_C(1) << TASK_F_wall_ns);
	TASK_SET(&r, attempt, 3);
	fx_task(fx, 1, &r);
	fx_runs(fx);
	assert_int_equal(fx_attempt(fx, 1, 1)->begin_ns, UTC_NS(1000));
	assert_int_equal(fx_attempt(fx, 1, 1)->end_ns, UTC_NS(2500));
	assert_int_equal(fx_attempt(fx, 1, 2)->end_ns, UTC_NS(2500));
	assert_int_equal(fx_attempt(fx, 1, 3)->end_ns, UTC_NS(1000));
	assert_float_equal(attempt_end(fx_attempt(fx, 1, 1)), BASE + 2.5, 1e-6);
	fx_free(fx);
}

static void doing(struct fixture *fx, int ms, uint64_t attempt)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_DOING, 2);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_text(&pk, "rows");
	pack_array(&pk, 1);
	pack_map(&pk, 2);
	pack_kv_u64(&pk, "attempt", attempt);
	pack_kv_text(&pk, "call", "recv");
	fx_end(fx, 1, &b);
}

/* The latest of several messages counts, in any order of arrival. */
static void test_the_latest_of_doing(void **state)
{
	static const int order[][3] = {{1000, 2000, 3000}, {3000, 1000, 2000}, {2000, 3000, 1000}};
	struct fixture *fx;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		fx = greeted();
		for (size_t k = 0; k < 3; k++)
			doing(fx, order[i][k], (uint64_t)order[i][k]);
		assert_int_equal(fx->m.workers.v[0]->doing_boot_ns, AT(3000));
		assert_int_equal(fx->m.workers.v[0]->doing.n, 1);
		assert_int_equal(fx->m.workers.v[0]->doing.v[0].attempt, 3000);
		fx_free(fx);
	}
}

/* Frames from another time, and those that only belong to a connection, are neither data nor
 * damage. */
static void test_other_frames(void **state)
{
	static const uint8_t types[] = {CREMA_FRAME_FILE_HEADER, CREMA_FRAME_CHALLENGE,
					CREMA_FRAME_AUTH,	 CREMA_FRAME_WELCOME,
					CREMA_FRAME_ACK,	 CREMA_FRAME_CLOCK,
					CREMA_FRAME_FOOTER,	 200};
	struct fixture *fx = fx_new();
	struct buf b = BUF_INIT;
	msgpack_packer pk;
	size_t i;

	(void)state;
	pack_init(&pk, &b);
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "boot_ns", AT(1000));
	for (i = 0; i < sizeof(types); i++)
		fx_frame(fx, types[i], 9, 0, &b);
	assert_int_equal(fx->m.frames, sizeof(types));
	assert_int_equal(fx->m.workers.n, 0);
	assert_int_equal(fx->m.records_bad, 0);
	buf_release(&b);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signs_of_life),	 cmocka_unit_test(test_names_out_of_tasks),
		cmocka_unit_test(test_ends_of_attempts), cmocka_unit_test(test_the_latest_of_doing),
		cmocka_unit_test(test_other_frames),
	};

	return cmocka_run_group_tests_name("model_workers", tests, NULL, NULL);
}
