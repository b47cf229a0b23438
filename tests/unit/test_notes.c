/* SPDX-License-Identifier: BSD-3-Clause */
/* test_notes.c - what Completeness reports about tables of a worker that were full. */
#include "findings_fixture.h"

struct notes {
	char text[2000];
};

static void keep(void *arg, const char *line)
{
	struct notes *n = arg;
	size_t used = strlen(n->text);

	snprintf(n->text + used, sizeof(n->text) - used, "%s\n", line);
}

static void notes_of(struct fixture *fx, struct notes *n)
{
	struct found found;

	n->text[0] = '\0';
	collect(fx, &found);
	report_notes(&found.report, keep, n);
	found_free(&found);
	fx_free(fx);
}

static struct fixture *two_workers(void)
{
	struct fixture *fx = fx_new();

	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	return fx;
}

static void assert_note(const struct notes *n, const char *line)
{
	if (!strstr(n->text, line))
		fail_msg("not among the notes: %s\n%s", line, n->text);
}

static void no_table_was_full(void **state)
{
	struct fixture *fx = two_workers();
	struct notes n;

	(void)state;
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 100, "ok");
	fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(50), "threads_refused", UINT64_C(0), NULL);
	notes_of(fx, &n);
	assert_null(strstr(n.text, "no room"));
	assert_null(strstr(n.text, "threads"));
}

static void threads_found_no_room(void **state)
{
	struct fixture *fx = two_workers();
	struct notes n;

	(void)state;
	fx_simple(fx, 1, 1, "a", "s", CREMA_TASK_THREAD_REFUSED, 0, 100, "ok");
	fx_simple(fx, 2, 1, "b", "s", 0, 0, 100, "ok");
	fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(50), "threads_refused", UINT64_C(3), NULL);
	fx_map(fx, 2, CREMA_MSG_TOTALS, "boot_ns", AT(50), "threads_refused", UINT64_C(4), NULL);
	notes_of(fx, &n);
	assert_note(&n, "7 threads found no room in their worker's table of 512: what they did is "
			"unknown\n");
	assert_note(&n, "1 attempts had work done in such threads: only their wall time is "
			"known\n");
}

static void texts_found_no_room(void **state)
{
	struct fixture *fx = two_workers();
	struct notes n;

	(void)state;
	fx_simple(fx, 1, 1, "a", NULL, CREMA_TASK_TEXT_REFUSED, 0, 100, "ok");
	fx_simple(fx, 1, 2, "b", NULL, CREMA_TASK_TEXT_REFUSED, 0, 100, "ok");
	fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(50), "strings_refused", UINT64_C(12),
	       "files_refused", UINT64_C(5), NULL);
	notes_of(fx, &n);
	assert_note(&n, "2 attempts have no span or no prefix, because their worker's table of "
			"texts was full");
	assert_note(&n, "a worker's table of texts was full 12 times");
	assert_note(&n, "a worker's table of files was full 5 times: what was read there is in "
			"files_rest\n");
	assert_note(&n, "Dask's fine metrics are unknown: the tasks' spans are\n");
	assert_null(strstr(n.text, "older Dask"));
}

static void older_dask_has_no_spans(void **state)
{
	struct fixture *fx = two_workers();
	struct notes n;

	(void)state;
	fx_simple(fx, 1, 1, "a", NULL, 0, 0, 100, "ok");
	notes_of(fx, &n);
	assert_note(&n, "older Dask");
	assert_null(strstr(n.text, "full"));
}

/* Files beyond worker 1's table; span NULL: its last row. */
static void fx_rest(struct fixture *fx, const char *span)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_FILE, 3);
	pack_kv_text(&pk, "span", span);
	pack_kv_text(&pk, "kind", "other");
	pack_kv_u64(&pk, "read_bytes", 1000);
	fx_end(fx, 1, &b);
}

/* The rest row of the run's own span. */
static void files_beyond_the_table(void **state)
{
	struct fixture *fx = two_workers();
	struct found found;

	(void)state;
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 100, "ok");
	fx_rest(fx, "s");
	collect(fx, &found);
	assert_false(found.report.rest_unknown);
	assert_true(value_number(found.report.rest.read_bytes, NULL) == 1000);
	found_free(&found);
	fx_free(fx);
}

/* It is unknown which run they are of. */
static void files_of_spans_without_a_row(void **state)
{
	struct fixture *fx = two_workers();
	struct notes n = {""};
	struct found found;

	(void)state;
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 100, "ok");
	fx_rest(fx, "s");
	fx_rest(fx, NULL);
	fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(50), "files_refused", UINT64_C(5), NULL);
	collect(fx, &found);
	assert_true(found.report.rest_unknown);
	assert_int_equal(found.report.rest.read_bytes.type, VALUE_NULL);
	assert_int_equal(found.report.files.n, 0);
	report_notes(&found.report, keep, &n);
	assert_note(&n, "is in files_rest, or unknown\n");
	found_free(&found);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_table_was_full),
		cmocka_unit_test(threads_found_no_room),
		cmocka_unit_test(texts_found_no_room),
		cmocka_unit_test(older_dask_has_no_spans),
		cmocka_unit_test(files_beyond_the_table),
		cmocka_unit_test(files_of_spans_without_a_row),
	};

	return cmocka_run_group_tests_name("notes", tests, NULL, NULL);
}
