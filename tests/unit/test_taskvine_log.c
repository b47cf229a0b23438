/* SPDX-License-Identifier: BSD-3-Clause */
/* test_taskvine_log.c - reading TaskVine's transactions log, and which process ran a task. */
#include <unistd.h>

#include "collector/runs/taskvine_log.h"
#include "report_fixture.h"

static const char text[] =
	"# time manager_pid TASK task_id WAITING ...\n"
	"1800000001000000 7 MANAGER 7 START 0\n"
	"1800000001000000 7 TASK 2 READY processing FIRST_RESOURCES 1 {\"cores\":[1,\"cores\"]}\n"
	"1800000002000000 7 TASK 2 RUNNING worker-a  FIRST_RESOURCES {\"cores\":[1,\"cores\"]}\n"
	"1800000003000000 7 TASK 2 WAITING_RETRIEVAL worker-a\n"
	"1800000003000000 7 TASK 2 RETRIEVED SIGNAL  9  {} "
	"{\"time_worker_start\":[1800000002.01,\"s\"],"
	"\"time_worker_end\":[1800000002.9,\"s\"],\"wall_time\":[0.89,\"s\"],"
	"\"size_input_mgr\":[0.0009527206420898438,\"MB\"],\"size_output_mgr\":[0,\"MB\"]}\n"
	"1800000003000000 7 TASK 2 READY processing FIRST_RESOURCES 2 {\"cores\":[1,\"cores\"]}\n"
	"1800000005000000 7 TASK 2 RUNNING worker-a  FIRST_RESOURCES {\"cores\":[1,\"cores\"]}\n"
	"not a line\n"
	"1800000006000000 7 TASK 3 READY accumulating FIRST_RESOURCES 1 {}\n";

static void write_log(char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void test_executions(void **state)
{
	char path[] = "/tmp/taskvine-log-XXXXXX";
	struct taskvine_log log;

	(void)state;
	write_log(path);
	assert_int_equal(taskvine_log_read(&log, path), 0);
	unlink(path);
	assert_int_equal(log.executions.n, 3);
	assert_int_equal(log.lines_bad, 1);
	assert_string_equal(log.executions.v[0].category, "processing");
	assert_string_equal(log.executions.v[0].result, "SIGNAL");
	assert_int_equal(log.executions.v[0].input_bytes.v.u, 999);
	assert_int_equal(log.executions.v[0].output_bytes.v.u, 0);
	assert_true(log.executions.v[1].running > 1800000004);
	assert_string_equal(log.executions.v[1].result, "");
	assert_int_equal(log.executions.v[1].wall_seconds.type, VALUE_NULL);
	assert_string_equal(log.executions.v[2].category, "accumulating");
	taskvine_log_release(&log);
}

static void test_each_process_finds_its_execution(void **state)
{
	char path[] = "/tmp/taskvine-log-XXXXXX";
	struct fixture *fx = fx_new();
	struct taskvine_log log;
	struct run run;
	struct worker *of[3];

	(void)state;
	write_log(path);
	assert_int_equal(taskvine_log_read(&log, path), 0);
	unlink(path);
	memset(&run, 0, sizeof(run));
	for (int i = 0; i < 3; i++) {
		struct worker **at = ARRAY_NEW(&run.workers);
		uint8_t id[16] = {(uint8_t)(i + 1)};

		*at = of[i] = model_worker(&fx->m, id);
		of[i]->cwd = i < 2 ? "/space/task.2" : "/space/task.x";
	}
	of[0]->process_start = 1800000005.004;
	of[1]->process_start = 1800000002.003; /* 10 ms earlier, by /proc's clock */
	of[2]->process_start = 1800000005.5;
	taskvine_log_match(&log, &run);
	assert_ptr_equal(log.executions.v[0].worker, of[1]);
	assert_ptr_equal(log.executions.v[1].worker, of[0]);
	assert_null(log.executions.v[2].worker);
	taskvine_log_release(&log);
	free(run.workers.v);
	fx_free(fx);
}

static void test_what_is_no_log(void **state)
{
	struct taskvine_log log;

	(void)state;
	assert_true(taskvine_log_read(&log, "/nonexistent/transactions") < 0);
	assert_non_null(strstr(log.line, "/nonexistent/transactions"));
	taskvine_log_release(&log);
	assert_int_equal(taskvine_log_read(&log, "/dev/null"), 0);
	assert_non_null(strstr(log.line, "contains no tasks"));
	taskvine_log_release(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_executions),
		cmocka_unit_test(test_each_process_finds_its_execution),
		cmocka_unit_test(test_what_is_no_log),
	};

	return cmocka_run_group_tests_name("TaskVine's log", tests, NULL, NULL);
}
