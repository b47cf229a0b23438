/* SPDX-License-Identifier: BSD-3-Clause */
/* test_coffea_report.c - the complete report from files, with coffea's own report. */
#include <errno.h>
#include <jansson.h>
#include <unistd.h>

#include "own_dir.h"

#include "collector/report/coffea_report.h"
#include "collector/print/render.h"

#define NASTY "we\"ird\\\n\x01\xff<b>"

/* One run with two chunks and a killed attempt in files under `dir`; names are hostile. */
static int write_run(void **state)
{
	struct fixture *fx = fx_new();
	struct buf frames = BUF_INIT;
	struct task_record r;
	char big[4097];
	int i;

	memset(big, '"', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(make_dir(state), 0);
	fx->file = &frames;
	fx_hello(fx, 1,
		 "{\"worker_address\": \"tcp://"
		 "we\\\"ird"
		 "\", \"nthreads\": 1}");
	for (i = 1; i <= 3; i++) {
		r = fx_record((uint64_t)i, i == 2 ? big : NASTY, "span" NASTY, CREMA_TASK_CHUNK,
			      i * 1000, i * 1000 + 500);
		TASK_SET(&r, dataset, T(NASTY));
		TASK_SET(&r, filename, T(big));
		TASK_SET(&r, prefix, T(NASTY));
		TASK_SET(&r, columns, T("a\n" NASTY));
		TASK_SET(&r, events, 100);
		TASK_SET(&r, coffea_bytesread, 1000);
		TASK_SET(&r, coffea_processtime, 0.1);
		if (i == 1)
			TASK_SET(&r, status, T("killed"));
		fx_task(fx, 1, &r);
	}
	fx_dask(fx, 1, 3000, "{\"digests\": [[\"a\\nb\", \"span\", \"p\\\"\", \"x\", \"y\", 1]]}");
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(2000), "rss_bytes", UINT64_C(800), NULL);
	write_frames(1, &frames);
	buf_release(&frames);
	fx_free(fx);
	return 0;
}

static int render(const struct report_request *req, struct buf *out)
{
	struct report_request full = *req;
	int rc;

	full.tables = REPORT_ALL_TABLES;
	memset(out, 0, sizeof(*out));
	rc = report_render(&full, out);
	assert_int_equal(buf_add(out, "", 1), 0);
	return rc;
}

static void test_json_of_hostile_names(void **state)
{
	struct report_request req = {.dir = dir, .json = true};
	static const char *const members[] = {
		"\"run\": \"2027",     "\"metrics\": {",
		"\"tasks\": [",	       "\"chunks\": [",
		"\"workers\": [",      "\"files\": [",
		"\"codecs\": [",       "\"tracking_data\": {",
		"\"completeness\": {", "\"waste_reason\": \"killed\"",
	};
	struct buf out;
	json_t *root, *tasks;
	size_t i;

	(void)state;
	assert_int_equal(render(&req, &out), 0);
	for (i = 0; i < sizeof(members) / sizeof(*members); i++)
		assert_non_null(strstr((char *)out.data, members[i]));
	root = json_loadb((char *)out.data, out.len - 1, 0, NULL);
	assert_non_null(root);
	tasks = json_object_get(root, "tasks");
	assert_int_equal(json_array_size(tasks), 3);
	assert_int_equal(json_string_length(json_object_get(json_array_get(tasks, 1), "key")),
			 4096);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(root, "metrics"), "num_chunks")),
		2);
	json_decref(root);
	buf_release(&out);
}

static void test_text_is_narrow_and_clean(void **state)
{
	struct report_request req = {.dir = dir};
	const char *line, *end;
	struct buf out;

	(void)state;
	assert_int_equal(render(&req, &out), 0);
	for (line = (char *)out.data; *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		if (end - line > 80)
			fail_msg("%d wide: %.*s", (int)(end - line), (int)(end - line), line);
	}
	assert_null(strchr((char *)out.data, '\033'));
	assert_null(strchr((char *)out.data, '\x01'));
	assert_non_null(strstr((char *)out.data, "unknown"));
	assert_non_null(strstr((char *)out.data, "killed"));
	buf_release(&out);
	req.list = true;
	assert_int_equal(render(&req, &out), 0);
	assert_non_null(strstr((char *)out.data, "20270115-080001-"));
	buf_release(&out);
}

static void test_what_is_not_there(void **state)
{
	struct report_request req = {.dir = dir, .run = "no-such-run"};
	struct buf out;

	(void)state;
	assert_int_equal(render(&req, &out), -ENOENT);
	assert_non_null(strstr((char *)out.data, "no-such-run"));
	assert_null(strchr((char *)out.data, '\n'));
	buf_release(&out);
	req.dir = "/nonexistent/dir";
	assert_int_equal(render(&req, &out), -ENOENT);
	assert_non_null(strstr((char *)out.data, "/nonexistent/dir"));
	buf_release(&out);
}

static struct coffea_report compare(const char *text, int want)
{
	struct fixture *fx = fx_new();
	struct coffea_report c;

	assert_true(model_read_dir(&fx->m, dir) > 0);
	fx_runs(fx);
	assert_int_equal(coffea_report_parse(&c, text, strlen(text), "r.json"), want);
	coffea_report_compare(&c, fx_facts(fx, 0));
	fx_free(fx);
	return c;
}

static void test_equal_and_different(void **state)
{
	struct coffea_report c;

	(void)state;
	c = compare("{\"entries\": 200, \"chunks\": 2, \"bytesread\": 2000, "
		    "\"processtime\": 0.20000000000000004, \"columns\": [\"a\", \"b\"]}",
		    0);
	assert_int_equal(c.field[0].verdict, COFFEA_AGREES);
	assert_int_equal(c.field[1].verdict, COFFEA_AGREES);
	assert_int_equal(c.field[2].verdict, COFFEA_AGREES);
	assert_int_equal(c.field[3].verdict, COFFEA_AGREES);
	assert_string_equal(c.line, "");
	c = compare("[{\"out\": 1}, {\"entries\": 201, \"chunks\": 2, \"bytesread\": 2001, "
		    "\"processtime\": 0.2000001, \"columns\": []}]",
		    0);
	assert_int_equal(c.field[0].verdict, COFFEA_DISAGREES);
	assert_int_equal(c.field[1].verdict, COFFEA_AGREES);
	assert_int_equal(c.field[2].verdict, COFFEA_DISAGREES);
	assert_int_equal(c.field[3].verdict, COFFEA_DISAGREES);
}

static void test_bad_reports(void **state)
{
	struct coffea_report c;

	(void)state;
	c = compare("{not json", -EBADMSG);
	assert_false(c.read);
	assert_non_null(strstr(c.line, "r.json"));
	c = compare("{\"x\": 1}", -EBADMSG);
	assert_false(c.read);
	c = compare("{\"entries\": 200, \"bytesread\": null}", 0);
	assert_true(c.read);
	assert_int_equal(c.field[0].verdict, COFFEA_AGREES);
	assert_int_equal(c.field[2].verdict, COFFEA_UNKNOWN);
	assert_string_equal(c.line, "'r.json' lacks chunks, bytesread, processtime, columns");
	assert_int_equal(coffea_report_read(&c, "/nonexistent.json"), -ENOENT);
	assert_non_null(strstr(c.line, "/nonexistent.json"));
}

static void test_bad_report_leaves_the_rest(void **state)
{
	struct report_notice notice;
	struct report_request req = {
		.dir = dir, .coffea_report = "/nonexistent.json", .notice = &notice};
	struct buf out;

	(void)state;
	assert_int_equal(render(&req, &out), 0);
	assert_true(notice.coffea_unreadable);
	assert_non_null(strstr((char *)out.data, "Throughput"));
	assert_non_null(strstr((char *)out.data, "Completeness"));
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_of_hostile_names),
		cmocka_unit_test(test_text_is_narrow_and_clean),
		cmocka_unit_test(test_what_is_not_there),
		cmocka_unit_test(test_equal_and_different),
		cmocka_unit_test(test_bad_reports),
		cmocka_unit_test(test_bad_report_leaves_the_rest),
	};

	return cmocka_run_group_tests_name("coffea_report", tests, write_run, remove_dir);
}
