/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stuck.c - the exact lines of `crema stuck` for a live.json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "collector/top/stuck.h"

/* Single quotes represent double ones. */
static int print(const char *json, double longer, char **out)
{
	char *copy = strdup(json);
	size_t n;
	FILE *f = open_memstream(out, &n);
	int rc;

	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	rc = stuck_print(f, copy, strlen(copy), longer);
	fclose(f);
	free(copy);
	return rc;
}

static void assert_prints(const char *json, double longer, const char *due)
{
	char *out;

	assert_int_equal(print(json, longer, &out), 0);
	assert_string_equal(out, due);
	free(out);
}

#define THROUGH                                                                                    \
	" 'through': ['read_more (_ssl)', 'XrdCl::File::Open (libXrdCl.so.3)', "                   \
	"'libssl.so.3+0x12f0']"

#define LIVE(rows)                                                                                 \
	"{'doing': [" rows "], 'doing_cut': 0, 'worker_rows': [], 'tasks': {'running': 7}}"

/* A complete row; then only what is known. */
static void test_a_row(void **state)
{
	(void)state;
	assert_prints(
		LIVE("{'key': 'fill-7', 'name': 'w-1', 'worker': 'tcp://10.0.0.7:4001', 'host': "
		     "'node3',"
		     " 'pid': 4711, 'heard_seconds': 12.5, 'pool': true, 'task_seconds': 300,"
		     " 'dataset': 'zmm', 'filename': '/data/a.root', 'entrystart': 1000, "
		     "'entrystop': 2050,"
		     " 'call': 'recv', 'kind': 'peer', 'object': '10.0.0.9:1094', 'call_seconds': "
		     "33,"
		     " 'place_seconds': 95.5, 'line': 'job.py:12 fill'," THROUGH "}"),
		60,
		"5 m 00.0 s  fill-7, a pool thread\n"
		"    worker w-1 tcp://10.0.0.7:4001, pid 4711 on node3, no message for 12.50 s\n"
		"    chunk zmm: /data/a.root, entries 1000 to 2050\n"
		"    in recv on peer 10.0.0.9:1094 for 33.00 s, and at each check for 95.50 s\n"
		"    at job.py:12 fill\n"
		"    through read_more (_ssl), XrdCl::File::Open (libXrdCl.so.3), "
		"libssl.so.3+0x12f0\n");
	assert_prints(LIVE("{'key': null, 'name': null, 'worker': null, 'host': null, 'pid': 8,"
			   " 'heard_seconds': 10, 'pool': false, 'task_seconds': 61}"),
		      60,
		      "61.00 s  a task\n"
		      "    worker pid 8 on an unknown host\n"
		      "    runs: in no call that waits\n");
}

static void test_parts_of_a_row(void **state)
{
#define HEAD "{'key': 'k', 'pid': 8, 'host': 'h', 'task_seconds': 90"
	static const struct {
		const char *row, *due; /* after the first line and the worker's own */
	} rows[] = {
		{HEAD ", 'name': 'w'}", "    worker w, pid 8 on h\n"
					"    runs: in no call that waits\n"},
		{HEAD ", 'worker': 'tcp://a:1'}", "    worker tcp://a:1, pid 8 on h\n"
						  "    runs: in no call that waits\n"},
		{HEAD ", 'heard_seconds': 10.5}", "    worker pid 8 on h, no message for 10.50 s\n"
						  "    runs: in no call that waits\n"},
		{HEAD ", 'dataset': 'd', 'entrystart': 5}", "    worker pid 8 on h\n"
							    "    chunk d\n"
							    "    runs: in no call that waits\n"},
		{HEAD ", 'filename': 'f', 'entrystop': 5}", "    worker pid 8 on h\n"
							    "    chunk f\n"
							    "    runs: in no call that waits\n"},
		{HEAD ", 'place_seconds': 70}",
		 "    worker pid 8 on h\n"
		 "    runs: in no call that waits, in this function at each check for 70.00 s\n"},
		{HEAD ", 'call': 'read', 'call_seconds': 80, 'place_seconds': 81}",
		 "    worker pid 8 on h\n"
		 "    in read for 80.00 s\n"},
		{HEAD ", 'call': 'read', 'call_seconds': 80, 'place_seconds': 81.5}",
		 "    worker pid 8 on h\n"
		 "    in read for 80.00 s, and at each check for 81.50 s\n"},
		{HEAD ", 'call': 'read', 'place_seconds': 72}",
		 "    worker pid 8 on h\n"
		 "    in read, seen there for 72.00 s\n"},
		{HEAD ", 'call': 'sem_wait', 'kind': 'GIL', 'call_seconds': 65}",
		 "    worker pid 8 on h\n"
		 "    in sem_wait for the GIL for 65.00 s\n"},
		{HEAD ", 'through': ['f5 (l)', 'f4 (l)', 'f3 (l)', 'f2 (l)', 'f1 (l)']}",
		 "    worker pid 8 on h\n"
		 "    runs: in no call that waits\n"
		 "    through f5 (l), f4 (l), f3 (l), f2 (l) ...\n"},
		{HEAD ", 'through': []}", "    worker pid 8 on h\n"
					  "    runs: in no call that waits\n"},
		{HEAD ", 'call': 'read', 'object': 'a pipe', 'call_seconds': 65}",
		 "    worker pid 8 on h\n"
		 "    in read on a pipe for 65.00 s\n"},
	};
	char json[512], due[512];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(json, sizeof(json), LIVE("%s"), rows[i].row);
		snprintf(due, sizeof(due), "90.00 s  k\n%s", rows[i].due);
		assert_prints(json, 60, due);
	}
}

/* Ordered by the seconds in the call, or those of the task if it waits for nothing. */
static void test_which_rows(void **state)
{
	static const struct {
		const char *row;
		double seconds;
	} rows[] = {
		{"{'task_seconds': 50, 'call': null, 'place_seconds': 90, 'seconds': null}", 50},
		{"{'task_seconds': 90, 'call': 'a', 'call_seconds': 70, 'seconds': 50}", 50},
	};
	char json[512], *out;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(json, sizeof(json), LIVE("%s"), rows[i].row);
		assert_int_equal(print(json, rows[i].seconds, &out), 0);
		assert_non_null(strstr(out, "a task"));
		free(out);
		assert_prints(json, rows[i].seconds + 1,
			      "no task has been in one place for 51.00 s or longer; 7 running\n");
	}
}

static void test_around_the_rows(void **state)
{
	char *out;

	(void)state;
	assert_prints(
		"{'doing': [], 'doing_cut': 12, 'tasks': {'running': 3}, 'worker_rows': ["
		"{'name': 'a', 'pid': 1, 'host': 'h', 'paused': true, 'rss_bytes': 850, "
		"'limit_bytes': 1000, 'ready': 41},"
		"{'name': 'b', 'pid': 2, 'host': 'h', 'paused': false},"
		"{'name': 'c', 'pid': 3, 'host': 'h', 'paused': true}]}",
		60,
		"paused by Dask: worker a, pid 1 on h, at 85.0 % of its memory limit, 41 tasks "
		"ready\n"
		"paused by Dask: worker c, pid 3 on h\n"
		"no task has been in one place for 60.00 s or longer; 3 running\n"
		"12 more threads of tasks are not shown\n");
	assert_int_equal(print("{'doing': 5}", 1, &out), -EBADMSG);
	assert_string_equal(out, "");
	free(out);
	assert_int_equal(print("{", 1, &out), -EBADMSG);
	free(out);
}

static void keep(void *to, const char *text)
{
	strcat(strcat(to, text), "\n");
}

/* One line each: paused workers, and tasks that have been in a call for this long. */
static void test_short_lines(void **state)
{
	char lines[512] = "";
	json_t *live =
		json_loads("{\"worker_rows\": [{\"name\": \"w\", \"pid\": 3, \"host\": \"h\", "
			   "\"paused\": true}], \"doing\": ["
			   "{\"key\": \"fill-3\", \"pid\": 8, \"host\": \"h\", \"call\": \"recv\", "
			   "\"kind\": \"peer\", \"object\": \"10.0.0.7:1094\", \"seconds\": 23, "
			   "\"line\": \"a.py:3 f\"},"
			   "{\"pid\": 9, \"host\": \"h\", \"call\": \"read\", \"seconds\": 20},"
			   "{\"key\": \"k\", \"pid\": 9, \"call\": \"read\", \"seconds\": 19.9}]}",
			   0, NULL);

	(void)state;
	assert_non_null(live);
	assert_int_equal(stuck_each(live, 20, keep, lines), 3);
	assert_string_equal(lines, "paused by Dask: worker w, pid 3 on h\n"
				   "fill-3 on pid 8 on h: recv on peer 10.0.0.7:1094 for 23.00 s "
				   "at a.py:3 f\n"
				   "a task on pid 9 on h: read for 20.00 s\n");
	json_decref(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_row),	    cmocka_unit_test(test_parts_of_a_row),
		cmocka_unit_test(test_which_rows),  cmocka_unit_test(test_around_the_rows),
		cmocka_unit_test(test_short_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
