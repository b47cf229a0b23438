/* SPDX-License-Identifier: BSD-3-Clause */
/* test_run_state.c - the state of synthetic runs: what is reported about workers, tasks and
 * clients. */
#include "report_fixture.h"

#include <jansson.h>

static struct run_state state_of(struct fixture *fx, size_t run)
{
	struct run_state s;

	assert_int_equal(run_state_find(&fx->runs.v[run], &s), 0);
	return s;
}

static void check(struct fixture *fx, enum run_state_id id, enum run_state_why why,
		  const char *sentence)
{
	char line[RUN_SENTENCE_BYTES];
	struct run_state s;

	fx_runs(fx);
	s = state_of(fx, 0);
	assert_string_equal(run_state_sentence(&s, line, sizeof(line)), sentence);
	assert_int_equal(s.id, id);
	assert_int_equal(s.why, why);
	fx_free(fx);
}

static struct fixture *one_task(const char *status)
{
	struct fixture *fx = fx_new();

	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 0, 1000, status);
	return fx;
}

static void test_finished(void **state)
{
	(void)state;
	check(one_task("ok"), RUN_STATE_FINISHED, RUN_WHY_NONE, "finished");
}

static void test_failed(void **state)
{
	(void)state;
	check(one_task("erred"), RUN_STATE_FAILED, RUN_WHY_TASK_FAILED,
	      "failed: 1 task failed, first a");
}

/* Dask's hash at the end of a key is removed, but nothing that only resembles one. */
static void test_failed_key(void **state)
{
	static const char *const key[][2] = {
		{"P-0123456789abcdef0123456789abcdef", "failed: 1 task failed, first P"},
		{"P-0123456789abcdef0123456789abcde", "failed: 1 task failed, first "
						      "P-0123456789abcdef0123456789abcde"},
		{"P-0123456789abcdef0123456789abcdef0",
		 "failed: 1 task failed, first P-0123456789abcdef0123456789abcdef0"},
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct fixture *fx = fx_new();

		fx_hello(fx, 1, "{}");
		fx_simple(fx, 1, 1, key[i][0], "span", 0, 0, 1000, "erred");
		check(fx, RUN_STATE_FAILED, RUN_WHY_TASK_FAILED, key[i][1]);
	}
}

static void test_done_by_another_attempt(void **state)
{
	struct fixture *fx = one_task("erred");

	(void)state;
	fx_simple(fx, 1, 2, "a", "span", 0, 2000, 3000, "ok");
	check(fx, RUN_STATE_FINISHED, RUN_WHY_NONE, "finished");
}

static void test_waiting(void **state)
{
	struct fixture *fx = one_task("ok");

	(void)state;
	fx_dask(fx, 1, 30999, "{\"ready\": 3, \"digests\": []}");
	check(fx, RUN_STATE_RUNNING, RUN_WHY_NONE, "running: 3 ready on the workers");
}

/* CREMA_STALL_AFTER is longer, then shorter. */
static void test_other_patience(void **state)
{
	static const struct {
		double seconds;
		bool stalled;
	} of[] = {{10.5, false}, {10, true}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fixture *fx = one_task("ok");

		fx_dask(fx, 1, 11000, "{\"ready\": 3, \"digests\": []}");
		run_stall_seconds = of[i].seconds;
		check(fx, of[i].stalled ? RUN_STATE_STALLED : RUN_STATE_RUNNING,
		      of[i].stalled ? RUN_WHY_UNKNOWN : RUN_WHY_NONE,
		      of[i].stalled ? "stalled for 10.00 s: 3 ready on the workers; the workers' "
				      "reports do not explain it"
				    : "running: 3 ready on the workers");
	}
	run_stall_seconds = 30;
}

static void test_paused(void **state)
{
	struct fixture *fx = one_task("ok");
	struct run_state s;

	(void)state;
	fx_hello(fx, 2, "{}");
	fx_dask(fx, 1, 500, "{\"ready\": 3, \"status\": \"running\", \"digests\": []}");
	fx_dask(fx, 1, 2000, "{\"ready\": 3, \"status\": \"paused\", \"digests\": []}");
	fx_dask(fx, 1, 31000,
		"{\"ready\": 3, \"status\": \"paused\", \"memory_bytes\": 84, "
		"\"memory_limit_bytes\": 100, \"digests\": []}");
	fx_dask(fx, 2, 31000, "{\"ready\": 1, \"status\": \"running\", \"digests\": []}");
	fx_runs(fx);
	s = state_of(fx, 0);
	assert_int_equal((int)(s.paused_since - BASE), 2);
	assert_int_equal(s.workers, 2);
	runs_release(&fx->runs);
	check(fx, RUN_STATE_STALLED, RUN_WHY_PAUSED,
	      "stalled for 30.00 s: 4 ready on the workers; 1 of 2 workers paused, at 84 % of the "
	      "memory limit");
}

/* Tasks that wait on the workers belong to the later run. */
static void test_later_run(void **state)
{
	struct fixture *fx = one_task("ok");

	(void)state;
	fx_simple(fx, 1, 2, "b", "later", 0, 5000, 6000, "ok");
	fx_dask(fx, 1, 8000, "{\"ready\": 3, \"digests\": []}");
	check(fx, RUN_STATE_FINISHED, RUN_WHY_NONE, "finished");
}

static void test_in_call(void **state)
{
	struct fixture *fx = one_task("ok");

	(void)state;
	fx_simple(fx, 1, 2, "b", "span", 0, 2000, -1, "running");
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(32000), "cpu_percent", UINT64_C(19), NULL);
	check(fx, RUN_STATE_STALLED, RUN_WHY_IN_CALL,
	      "stalled for 30.00 s: 1 task under way; still in a call: b on node, pid 1, since "
	      "08:00:02 UTC");
}

static void test_computing(void **state)
{
	struct fixture *fx = one_task("ok");

	(void)state;
	fx_simple(fx, 1, 2, "b", "span", 0, 2000, -1, "running");
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(32000), "cpu_percent", UINT64_C(20), NULL);
	check(fx, RUN_STATE_RUNNING, RUN_WHY_NONE, "running: 1 task under way");
}

static void test_taken_back(void **state)
{
	struct fixture *fx = one_task("ok");

	(void)state;
	fx_dask(fx, 1, 2000,
		"{\"ready\": 0, \"taken_back\": [[\"span\", true, 2, 0.5], [\"other\", false, 7, "
		"0.1]], \"digests\": []}");
	check(fx, RUN_STATE_INTERRUPTED, RUN_WHY_CLIENT_LEFT,
	      "interrupted: its client left; 2 tasks on the workers had not ended");
}

static const char taken_one[] =
	"{\"ready\": 0, \"taken_back\": [[\"span\", false, 2, 0.5, [\"fedcba9876543210\", "
	"\"5\"]]], \"digests\": []}";

/* One of the two that were taken back had ended: its result was lost, and computed again. */
static void test_taken_back_again(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "a", "span", 0, 0, 1000);

	(void)state;
	fx_hello(fx, 1, "{}");
	TASK_SET(&r, key_hash, UINT64_C(0xfedcba9876543210));
	fx_task(fx, 1, &r);
	fx_dask(fx, 1, 2000, taken_one);
	check(fx, RUN_STATE_INTERRUPTED, RUN_WHY_TAKEN_BACK,
	      "interrupted: its client took tasks back; 1 task on the workers had not ended");
	fx = fx_new();
	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	TASK_SET(&r, attempt, 2);
	TASK_SET(&r, key_hash, 5);
	fx_task(fx, 1, &r);
	fx_dask(fx, 1, 2000, taken_one);
	check(fx, RUN_STATE_FINISHED, RUN_WHY_NONE, "finished");
}

static void test_client_went_on(void **state)
{
	struct fixture *fx = one_task("ok");

	(void)state;
	fx_dask(fx, 1, 2000, taken_one);
	fx_simple(fx, 1, 2, "b", "span", 0, 2400, 3000, "ok"); /* was already on its way */
	fx_runs(fx);
	assert_int_equal(state_of(fx, 0).id, RUN_STATE_INTERRUPTED);
	runs_release(&fx->runs);
	fx_simple(fx, 1, 3, "c", "span", 0, 2600, 3000, "ok");
	check(fx, RUN_STATE_FINISHED, RUN_WHY_NONE, "finished");
}

static void totals(struct fixture *fx, int ms, const char *counter, uint64_t bytes)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_TOTALS, 2);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_text(&pk, "tasks");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, counter, bytes);
	fx_end(fx, 1, &b);
}

/* Its task reads slowly, without CPU; the last bytes arrived 29.9 s ago, then 30. */
static void test_reading(void **state)
{
	int ms;

	(void)state;
	for (ms = 70000; ms <= 70100; ms += 100) {
		struct fixture *fx = one_task("ok");

		fx_simple(fx, 1, 2, "b", "span", 0, 2000, -1, "running");
		totals(fx, 39000, "read_bytes", 5000);
		totals(fx, 40100, "read_bytes", 6000);
		totals(fx, ms, "read_bytes", 6999);
		check(fx, ms == 70000 ? RUN_STATE_RUNNING : RUN_STATE_STALLED,
		      ms == 70000 ? RUN_WHY_NONE : RUN_WHY_IN_CALL,
		      ms == 70000 ? "running: 1 task under way"
				  : "stalled for 68.10 s: 1 task under way; still in a call: b on "
				    "node, pid 1, since 08:00:02 UTC");
	}
}

/* Bytes that move in any direction, but not those that a codec decompresses from memory. */
static void test_moving(void **state)
{
	static const struct {
		const char *counter;
		bool moves;
	} ways[] = {
		{"read_bytes", true},	       {"mapped_bytes", true},
		{"write_bytes", true},	       {"network_read_bytes", true},
		{"network_write_bytes", true}, {"decompress_out_bytes", false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct fixture *fx = one_task("ok");

		fx_simple(fx, 1, 2, "b", "span", 0, 2000, -1, "running");
		totals(fx, 39000, ways[i].counter, 5000);
		totals(fx, 40100, ways[i].counter, 6000);
		totals(fx, 70000, ways[i].counter, 6999);
		check(fx, ways[i].moves ? RUN_STATE_RUNNING : RUN_STATE_STALLED,
		      ways[i].moves ? RUN_WHY_NONE : RUN_WHY_IN_CALL,
		      ways[i].moves ? "running: 1 task under way"
				    : "stalled for 68.00 s: 1 task under way; still in a call: b "
				      "on node, pid 1, since 08:00:02 UTC");
	}
}

static void doing(struct fixture *fx, int ms, uint64_t attempt, int since_ms)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_DOING, 2);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_text(&pk, "rows");
	pack_array(&pk, 2);
	pack_map(&pk, 6);
	pack_kv_u64(&pk, "attempt", attempt);
	pack_kv_text(&pk, "call", "recv");
	pack_kv_text(&pk, "kind", "peer");
	pack_kv_text(&pk, "object", "10.0.0.7:1094");
	pack_kv_text(&pk, "line", "a.py:3 \033f");
	pack_kv_u64(&pk, "call_boot_ns", AT(since_ms));
	pack_map(&pk, 2); /* one that is not in a call */
	pack_kv_u64(&pk, "attempt", 2);
	pack_kv_u64(&pk, "place_boot_ns", AT(2000));
	fx_end(fx, 1, &b);
}

/* Of two unfinished tasks the one that is in a call is named, with the call. */
static void test_stuck_call(void **state)
{
	struct fixture *fx = one_task("ok");

	(void)state;
	fx_simple(fx, 1, 2, "b", "span", 0, 2000, -1, "running");
	fx_simple(fx, 1, 3, "c", "span", 0, 2000, -1, "running");
	doing(fx, 31000, 3, 12000);
	doing(fx, 30000, 2, 3000); /* older */
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(35000), "cpu_percent", UINT64_C(0), NULL);
	check(fx, RUN_STATE_STALLED, RUN_WHY_IN_CALL,
	      "stalled for 33.00 s: 2 tasks under way; still in a call: c on node, pid 1, since "
	      "08:00:02 UTC: recv on peer 10.0.0.7:1094 for 23.00 s at a.py:3 ?f");
}

static const char client_there[] =
	"{\"scheduler\": {\"age\": 1.5, \"clients\": 1, \"prefixes\": [[\"task\", 5, 2, 9, 1], "
	"[\"merge\", 1, 0, 9, null]]}, \"digests\": []}";

static void test_no_worker(void **state)
{
	struct fixture *fx = one_task("killed");

	(void)state;
	fx_dask(fx, 1, 2000, client_there);
	fx_goodbye(fx, 1, 3000, "killed");
	check(fx, RUN_STATE_STALLED, RUN_WHY_NO_WORKER,
	      "stalled: no worker is left; the client was waiting for 6 tasks when the last worker "
	      "left, "
	      "at "
	      "08:00:03 UTC");
	fx = one_task("killed"); /* there is another worker */
	fx_dask(fx, 1, 2000, client_there);
	fx_goodbye(fx, 1, 3000, "killed");
	fx_hello(fx, 2, "{}");
	fx_dask(fx, 2, 3500, "{\"digests\": []}");
	fx_runs(fx);
	assert_int_equal(state_of(fx, 0).id, RUN_STATE_INTERRUPTED);
	fx_free(fx);
	fx = one_task("killed"); /* the client had left */
	fx_dask(fx, 1, 2000, client_there);
	fx_dask(fx, 1, 2500,
		"{\"scheduler\": {\"age\": 0, \"clients\": 0, \"prefixes\": [[\"task\", 5, 2, 9, "
		"1]]}, "
		"\"digests\": []}");
	fx_goodbye(fx, 1, 3000, "killed");
	check(fx, RUN_STATE_INTERRUPTED, RUN_WHY_WORKERS_GONE,
	      "interrupted: 1 task ended with its worker and did not run again");
}

/* The worker that reported the client is gone; another one ran the remaining tasks, and ended as
 * `how`. */
static void after_another(const char *how, int tasks, const char *last, enum run_state_id id)
{
	struct fixture *fx = one_task("killed");
	char key[16];

	fx_dask(fx, 1, 2000, client_there);
	fx_goodbye(fx, 1, 3000, "killed");
	fx_hello(fx, 2, "{}");
	for (int i = 0; i < tasks; i++) {
		snprintf(key, sizeof(key), "%c", 'a' + i);
		fx_simple(fx, 2, (uint64_t)i + 1, key, "span", 0, 3100, 3200, "ok");
	}
	fx_dask(fx, 2, 3500, last);
	fx_goodbye(fx, 2, 3600, how);
	fx_runs(fx);
	assert_int_equal(state_of(fx, 0).id, id);
	fx_free(fx);
}

static void test_another_worker_went_on(void **state)
{
	(void)state;
	after_another("killed", 6, "{\"digests\": []}", RUN_STATE_FINISHED);
	after_another("killed", 5, "{\"digests\": []}", RUN_STATE_STALLED);
	after_another("exit", 2, "{\"closing\": \"scheduler-close\", \"digests\": []}",
		      RUN_STATE_FINISHED);
}

static void test_cluster_closed(void **state)
{
	struct fixture *fx = one_task("killed");

	(void)state;
	fx_dask(fx, 1, 2000, "{\"closing\": \"scheduler-close\", \"digests\": []}");
	fx_runs(fx);
	assert_string_equal(fx->runs.v[0].attempts.v[0]->waste_reason, "shutdown");
	runs_release(&fx->runs);
	check(fx, RUN_STATE_INTERRUPTED, RUN_WHY_CLOSED,
	      "interrupted: the cluster was closed with 1 task under way");
}

/* Tasks waited on worker 1 when it was closed, at `closed`; worker 2 started one at 3000. */
static void waited(uint64_t closed, bool later_run, enum run_state_id id, size_t unfinished)
{
	struct fixture *fx = fx_new();
	struct run_state s;

	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 1000, 1500, "ok");
	fx_simple(fx, 2, 1, "c", "span", 0, 3000, 3500, "ok");
	if (later_run)
		fx_simple(fx, 2, 2, "d", "other", 0, 900000, 900500, "ok");
	fx_dask(fx, 1, closed, "{\"closing\": \"worker-close\", \"ready\": 2, \"digests\": []}");
	fx_goodbye(fx, 1, closed + 100, "exit");
	fx_dask(fx, 2, 910000, "{\"ready\": 3, \"digests\": []}");
	fx_goodbye(fx, 2, 910100, "exit");
	fx_runs(fx);
	s = state_of(fx, 0);
	assert_int_equal(s.id, id);
	assert_int_equal(s.unfinished, unfinished);
	fx_free(fx);
}

static void test_tasks_waited_on_closed_workers(void **state)
{
	(void)state;
	waited(3100, false, RUN_STATE_INTERRUPTED, 2);
	waited(3000, false, RUN_STATE_INTERRUPTED, 2);
	waited(2900, false, RUN_STATE_FINISHED, 0); /* moved to worker 2 */
	waited(3100, true, RUN_STATE_FINISHED, 0);  /* may be tasks of the later run */
}

static void test_worker_killed(void **state)
{
	struct fixture *fx = one_task("killed");

	(void)state;
	fx_runs(fx);
	assert_string_equal(fx->runs.v[0].attempts.v[0]->waste_reason, "killed");
	runs_release(&fx->runs);
	check(fx, RUN_STATE_INTERRUPTED, RUN_WHY_WORKERS_GONE,
	      "interrupted: 1 task ended with its worker and did not run again");
}

/* What a worker without a goodbye did at last is unknown: others may have run the task again. */
static void silent_too(bool first, int others, const char *sentence)
{
	struct fixture *fx = one_task("killed");

	if (!first)
		fx_goodbye(fx, 1, 1000, "killed");
	for (int i = 2; i < 2 + others; i++) {
		fx_hello(fx, i, "{}");
		fx_simple(fx, i, 1, i == 2 ? "b" : "c", "span", 0, 1000, 1500, "ok");
	}
	fx_hello(fx, 5, "{}");
	fx_simple(fx, 5, 1, "d", "span", 0, 1000, 1500, "ok");
	fx_dask(fx, 5, 30000, "{\"digests\": []}");
	check(fx, RUN_STATE_INTERRUPTED, RUN_WHY_WORKERS_GONE, sentence);
}

static void test_others_went_silent(void **state)
{
	(void)state;
	silent_too(true, 0, "interrupted: 1 task ended with its worker and did not run again");
	silent_too(false, 0, "interrupted: 1 task ended with its worker and did not run again");
	silent_too(false, 1,
		   "interrupted: 1 task ended with its worker and may have run again: 1 worker "
		   "sent no goodbye");
	silent_too(true, 2,
		   "interrupted: 1 task ended with its worker and may have run again: 3 workers "
		   "sent no goodbye");
}

/* Each member of the JSON has a different number. */
static void test_json(void **state)
{
	static const struct {
		const char *name;
		double due;
	} numbers[] = {{"at", 100.5},		{"last_task_edge", 60.25},
		       {"running", 5},		{"ready", 7},
		       {"workers", 4},		{"paused_workers", 2},
		       {"silent_workers", 3},	{"paused_since", 50},
		       {"doubtful_tasks", 6},	{"paused_memory_percent", 85},
		       {"failed_tasks", 11},	{"unfinished_tasks", 12},
		       {"tasks_taken_back", 13}};
	struct run r = {.running = 5};
	const struct run_state s = {.run = &r,
				    .id = RUN_STATE_STALLED,
				    .why = RUN_WHY_PAUSED,
				    .now = 100.5,
				    .since = 60.25,
				    .waiting = 7,
				    .workers = 4,
				    .paused = 2,
				    .silent = 3,
				    .doubtful = 6,
				    .paused_percent = 85,
				    .paused_since = 50,
				    .failures = 11,
				    .unfinished = 12,
				    .taken_back = 13};
	struct buf out = BUF_INIT;
	struct sink sink = {.out = &out};
	json_t *root, *found;
	struct json j;

	(void)state;
	emit_init(&j, &sink);
	emit_object(&j, NULL);
	run_state_json(&s, &j, "state");
	emit_end(&j);
	root = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	found = json_object_get(root, "state");
	assert_string_equal(json_string_value(json_object_get(found, "state")), "stalled");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		assert_float_equal(json_number_value(json_object_get(found, numbers[i].name)),
				   numbers[i].due, 1e-9);
	json_decref(root);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finished),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_failed_key),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_other_patience),
		cmocka_unit_test(test_paused),
		cmocka_unit_test(test_later_run),
		cmocka_unit_test(test_in_call),
		cmocka_unit_test(test_computing),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_taken_back_again),
		cmocka_unit_test(test_client_went_on),
		cmocka_unit_test(test_reading),
		cmocka_unit_test(test_moving),
		cmocka_unit_test(test_stuck_call),
		cmocka_unit_test(test_no_worker),
		cmocka_unit_test(test_another_worker_went_on),
		cmocka_unit_test(test_cluster_closed),
		cmocka_unit_test(test_tasks_waited_on_closed_workers),
		cmocka_unit_test(test_worker_killed),
		cmocka_unit_test(test_others_went_silent),
		cmocka_unit_test(test_done_by_another_attempt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
