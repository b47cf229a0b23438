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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_table_was_full),
		cmocka_unit_test(threads_found_no_room),
	};

	return cmocka_run_group_tests_name("notes", tests, NULL, NULL);
}
