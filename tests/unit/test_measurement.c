/* SPDX-License-Identifier: BSD-3-Clause */
/* test_measurement.c - the folder in roastcoffea's layout: numbers computed by hand, and names that
 * try to break out of keys. */
#include "report_fixture.h"

#include <jansson.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/export/export.h"

#define HOSTILE_FILE "/d/it's \"x\"\\\n<b>.root"
#define HOSTILE_KEY "('/d/it\\'s \"x\"\\\\\\n<b>.root', 0, 50)"
#define MIB 1048576u

static void chunk(struct fixture *fx, uint64_t attempt, const char *file, int start, int stop)
{
	char key[32];
	struct task_record r;

	snprintf(key, sizeof(key), "c-%d", (int)attempt);
	r = fx_record(attempt, key, "s", CREMA_TASK_CHUNK, start, stop);
	TASK_SET(&r, prefix, T("Proc'\"\n"));
	TASK_SET(&r, dataset, T("set\"'\n"));
	TASK_SET(&r, filename, T(file));
	TASK_SET(&r, entrystart, 50 * ((int64_t)attempt - 1));
	TASK_SET(&r, entrystop, 50 * (int64_t)attempt);
	TASK_SET(&r, events, 50);
	TASK_SET(&r, rss_start_bytes, 10 * MIB);
	TASK_SET(&r, rss_stop_bytes, (10 + 2 * attempt) * MIB);
	SET_COUNT(&r, read_bytes, 700);
	SET_COUNT(&r, storage_read_bytes, 512 * attempt);
	SET_COUNT(&r, decompress_cpu_ns, 250000000);
	SET_COUNT(&r, basket_bytes, 600);
	if (attempt == 1) {
		TASK_SET(&r, coffea_processtime, 0.5);
		TASK_SET(&r, coffea_bytesread, 800);
		TASK_SET(&r, columns, T("Jet_pt-data\nnJet-offsets\nMET_pt\nJet_pt-offsets"));
	}
	fx_task(fx, 1, &r);
}

static json_t *export_of(struct fixture *fx, char *dir)
{
	const struct facts *f = fx_facts(fx, 0);
	struct report r;
	struct buf why = BUF_INIT;
	char path[128];
	json_error_t error;
	json_t *found;
	int rc;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a/b", dir);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], f), 0);
	rc = export_measurement(&r, path, &why);
	assert_int_equal(rc, 0);
	report_release(&r);
	buf_release(&why);
	snprintf(path, sizeof(path), "%s/a/b/metrics.json", dir);
	found = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!found)
		fail_msg("metrics.json, line %d: %s", error.line, error.text);
	return found;
}

static double real(const json_t *o, const char *name)
{
	if (!json_is_number(json_object_get(o, name)))
		fail_msg("no number '%s'", name);
	return json_number_value(json_object_get(o, name));
}

static void remove_tree(const char *dir)
{
	static const char *const names[] = {"a/b/metrics.json",
					    "a/b/start_end_time.txt",
					    "a/b/config.json",
					    "a/b/metadata.json",
					    "a/b",
					    "a"};
	char path[128];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(remove(path), 0);
	}
	assert_int_equal(remove(dir), 0);
}

static void reader(struct fixture *fx, uint64_t attempt, const char *prefix, const char *file,
		   uint64_t flags)
{
	struct task_record r = fx_record(attempt, prefix, "s", flags, 0, 100);

	TASK_SET(&r, prefix, T(prefix));
	if (file)
		TASK_SET(&r, filename, T(file));
	SET_COUNT(&r, storage_read_bytes, 4096);
	SET_COUNT(&r, network_read_bytes, file ? 70000 : 0);
	fx_task(fx, 1, &r);
}

static json_t *spans_of(struct fixture *fx, char *dir)
{
	json_t *m = export_of(fx, dir),
	       *spans = json_incref(json_object_get(m, "raw_span_metrics"));

	json_decref(m);
	remove_tree(dir);
	fx_free(fx);
	return spans;
}

/* What roastcoffea plots as bytes read by tasks: for files on servers the network bytes, without
 * pages of libraries. */
static void test_bytes_read_by_task(void **state)
{
	char dir[] = "/tmp/crema-test-XXXXXX", other[] = "/tmp/crema-test-XXXXXX";
	struct fixture *fx = fx_new();
	json_t *spans;

	(void)state;
	fx_hello(fx, 1, NULL);
	reader(fx, 1, "far", "root://h//x.root", CREMA_TASK_CHUNK);
	reader(fx, 2, "meta", "http://h/x.root", CREMA_TASK_PREPROCESSING);
	reader(fx, 3, "merge", NULL, CREMA_TASK_MERGE);
	fx_runs(fx);
	spans = spans_of(fx, dir);
	assert_true(real(spans, "('execute', 'far', 'disk-read', 'bytes')") == 70000);
	assert_true(real(spans, "('execute', 'meta', 'disk-read', 'bytes')") == 70000);
	assert_true(real(spans, "('execute', 'merge', 'disk-read', 'bytes')") == 0);
	json_decref(spans);

	fx = fx_new(); /* local files, also by URL, and reads by the user's own tasks */
	fx_hello(fx, 1, NULL);
	reader(fx, 1, "near", "/d/x.root", CREMA_TASK_CHUNK);
	reader(fx, 2, "url", "file:///d/x.root", CREMA_TASK_CHUNK);
	reader(fx, 3, "far", "root://h//x.root", CREMA_TASK_CHUNK);
	reader(fx, 4, "own", NULL, 0);
	fx_runs(fx);
	spans = spans_of(fx, other);
	assert_true(real(spans, "('execute', 'near', 'disk-read', 'bytes')") == 4096);
	assert_true(real(spans, "('execute', 'url', 'disk-read', 'bytes')") == 4096);
	assert_true(real(spans, "('execute', 'far', 'disk-read', 'bytes')") == 70000);
	assert_true(real(spans, "('execute', 'own', 'disk-read', 'bytes')") == 4096);
	json_decref(spans);
}

static void test_chunks(void **state)
{
	char dir[] = "/tmp/crema-test-XXXXXX";
	struct fixture *fx = fx_new();
	json_t *m, *rows, *row, *info, *set;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 2, \"address\": \"tcp://w'\\\"\\n:1\"}");
	chunk(fx, 1, HOSTILE_FILE, 0, 1000);
	chunk(fx, 2, "/d/plain.root", 1000, 3000);
	fx_simple(fx, 1, 3, "c-3", "s", CREMA_TASK_CHUNK, 3000, 3500, "erred");
	fx_runs(fx);
	m = export_of(fx, dir);
	rows = json_object_get(m, "raw_chunk_metrics");
	assert_int_equal(json_array_size(rows), 2);
	row = json_array_get(rows, 0);
	assert_string_equal(json_string_value(json_object_get(row, "file")), HOSTILE_FILE);
	assert_string_equal(json_string_value(json_object_get(row, "duration_of")), "process()");
	assert_true(real(row, "duration") == 0.5 && real(row, "bytes_read") == 800);
	assert_true(real(row, "mem_delta_mb") == 2 && real(row, "mem_before_mb") == 10);
	assert_true(real(row, "num_branches_accessed") == 3);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(row, "accessed_branches"), 0)),
		"Jet_pt");
	row = json_array_get(rows, 1); /* without coffea's numbers: the task's time and reads */
	assert_string_equal(json_string_value(json_object_get(row, "duration_of")), "task");
	assert_true(real(row, "duration") == 2 && real(row, "bytes_read") == 700);
	assert_null(json_object_get(row, "num_branches_accessed"));
	info = json_object_get(m, "chunk_info");
	assert_int_equal(json_object_size(info), 2);
	row = json_object_get(info, HOSTILE_KEY);
	assert_non_null(row);
	assert_true(json_number_value(json_array_get(row, 2)) == 800);
	assert_non_null(json_object_get(info, "('/d/plain.root', 50, 100)"));
	assert_true(real(m, "num_failed_chunks") == 1);
	set = json_object_get(json_object_get(m, "per_dataset"), "set\"'\n");
	assert_true(real(set, "num_chunks") == 2 && real(set, "mean_duration") == 1.25);
	assert_null(json_object_get(m, "total_bytes_read")); /* one chunk lacks it: unknown */
	json_decref(m);
	remove_tree(dir);
	fx_free(fx);
}

static void test_spans(void **state)
{
	static const char prefix[] = "('execute', 'Proc\\'\"\\n', ";
	char dir[] = "/tmp/crema-test-XXXXXX", key[128];
	struct fixture *fx = fx_new();
	json_t *m, *spans;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 1}");
	chunk(fx, 1, "/d/a.root", 0, 1000);
	chunk(fx, 2, "/d/a.root", 1000, 2000);
	fx_dask(fx, 1, 2000,
		"{\"digests\":[[\"execute\",\"s\",\"Proc'\\\"\\n\",\"disk-read\",\"bytes\",7],"
		"[\"execute\",\"s\",\"Proc'\\\"\\n\",\"thread-cpu\",\"seconds\",1.5]]}");
	fx_runs(fx);
	m = export_of(fx, dir);
	spans = json_object_get(m, "raw_span_metrics");
	snprintf(key, sizeof(key), "%s'disk-read', 'bytes')", prefix);
	assert_true(real(spans, key) == 512 + 1024);
	snprintf(key, sizeof(key), "%s'decompress', 'seconds')", prefix);
	assert_true(real(spans, key) == 0.5);
	snprintf(key, sizeof(key), "%s'dask-disk-read', 'bytes')", prefix);
	assert_true(real(spans, key) == 7);
	snprintf(key, sizeof(key), "%s'thread-cpu', 'seconds')", prefix);
	assert_true(real(spans, key) == 1.5);
	json_decref(m);
	remove_tree(dir);
	fx_free(fx);
}

/* Samples at 0.9, 2.3 and 9 s of a run of 4 s: none is near 4.0, and the third is after the run. */
static void test_grid(void **state)
{
	static const double at[][2] = {{0, 100}, {0.5, 100}, {1, 100}, {1.5, 100},
				       {2, 300}, {2.5, 300}, {3, 300}, {3.5, 300}};
	char dir[] = "/tmp/crema-test-XXXXXX";
	struct fixture *fx = fx_new();
	json_t *m, *series, *point;
	char when[40];
	size_t i;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 1, \"address\": \"tcp://w:1\"}");
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 4000, "ok");
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(900), "rss_bytes", (uint64_t)100, NULL);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(2300), "rss_bytes", (uint64_t)300, NULL);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(9000), "rss_bytes", (uint64_t)900, NULL);
	fx_runs(fx);
	m = export_of(fx, dir);
	series = json_object_get(json_object_get(m, "tracking_data"), "worker_memory");
	series = json_object_get(series, fx->runs.v[0].workers.v[0]->label);
	assert_int_equal(json_array_size(series), sizeof(at) / sizeof(*at));
	for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
		point = json_array_get(series, i);
		iso_time(fx->runs.v[0].start + at[i][0], when, sizeof(when));
		assert_string_equal(json_string_value(json_array_get(point, 0)), when);
		assert_true(json_number_value(json_array_get(point, 1)) == at[i][1]);
	}
	json_decref(m);
	remove_tree(dir);
	fx_free(fx);
}

/* One line with what to do, and no files remain. */
static void test_without_python(void **state)
{
	static const struct {
		const char *python, *why;
	} cases[] = {
		{"/no/python",
		 "there is no '/no/python' to run: install Python 3, or name one by CREMA_PYTHON"},
		{"/bin/false",
		 "'/bin/false' failed (without a message): CREMA_PYTHON names another"},
		{"/bin/ls", "'/bin/ls' failed ("},
	};
	char dir[] = "/tmp/crema-test-XXXXXX";
	struct fixture *fx = fx_new();
	const struct facts *f;
	struct report r;
	size_t i;

	(void)state;
	fx_hello(fx, 1, "{\"nthreads\": 1}");
	chunk(fx, 1, "/d/a.root", 0, 1000);
	fx_runs(fx);
	f = fx_facts(fx, 0);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], f), 0);
	assert_non_null(mkdtemp(dir));
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf why = BUF_INIT;

		setenv("CREMA_PYTHON", cases[i].python, 1);
		assert_true(export_measurement(&r, dir, &why) < 0);
		buf_add(&why, "", 1);
		assert_non_null(strstr((const char *)why.data, cases[i].why));
		assert_null(strchr((const char *)why.data, '\n'));
		buf_release(&why);
	}
	unsetenv("CREMA_PYTHON");
	assert_int_equal(rmdir(dir), 0);
	report_release(&r);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks),	       cmocka_unit_test(test_bytes_read_by_task),
		cmocka_unit_test(test_spans),	       cmocka_unit_test(test_grid),
		cmocka_unit_test(test_without_python),
	};

	signal(SIGCHLD, SIG_IGN); /* as in children of nohup and some batch systems */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
