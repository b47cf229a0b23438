/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wall.c - the parts of the client's wall time, with numbers computed by hand. */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "own_dir.h"
#include "report_fixture.h"

#include "collector/print/print.h"
#include "collector/report/wall.h"

/* Two threads: A and B from 3 and 4 s to 8 s, C to 12 s (tail), the merge from 12 to 14 s. */
static const struct facts *run(struct fixture *fx, double worker)
{
	struct task_record r;

	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 3000, 8000, "ok");
	fx_simple(fx, 1, 2, "b", "span", 0, 4000, 8000, "ok");
	fx_simple(fx, 1, 3, "c", "span", 0, 8000, 12000, "ok");
	r = fx_record(4, "m", "span", CREMA_TASK_MERGE, 12000, 14000);
	TASK_SET(&r, key_hash, 0xabc);
	fx_task(fx, 1, &r);
	fx_runs(fx);
	fx->m.workers.v[0]->first = worker;
	return fx_facts(fx, 0);
}

#define RECORD(waits, ahead, unseen)                                                               \
	"{\"format\": 1, \"begin_utc\": 1799999990, \"wall\": 30, \"clock_ahead\": " ahead         \
	", \"seconds\": {\"imports\": 5, \"graph\": 2.5, \"gather\": 0.5, \"own\": 1}, "           \
	"\"waits\": [" waits "], \"keys\": [\"1\", \"abc\"], \"unseen\": {" unseen "}}"

static struct wall taken(const struct facts *f, const char *text)
{
	struct wall w;

	assert_true(wall_take(&w, text, strlen(text), f, true));
	return w;
}

/* -1: unknown; unnamed parts are 0. */
static void expect(const struct wall *w, double rest, const double v[WALL_PARTS])
{
	double sum = rest;
	size_t i;

	for (i = 0; i < WALL_PARTS; i++) {
		if (v[i] < 0) {
			assert_unknown(w->part[i]);
			continue;
		}
		assert_near(w->part[i], v[i]);
		sum += v[i];
	}
	assert_near(value_real(w->rest), rest);
	assert_near(value_real(w->seconds), sum);
}

#define EXPECT(w, rest, ...) expect(w, rest, (const double[WALL_PARTS]){__VA_ARGS__})
#define CLIENT [WALL_imports] = 5, [WALL_graph] = 2.5, [WALL_own] = 1
#define NO_WAIT                                                                                    \
	[WALL_workers] = -1, [WALL_schedule] = -1, [WALL_ramp] = -1, [WALL_steady] = -1,           \
	[WALL_tail] = -1, [WALL_merge] = -1, [WALL_gather] = -1, [WALL_other] = -1

/* The client began 10 s before BASE; a wait from 10 to 26 s is from 0 to 16 s of the run. */
static void test_a_wait_is_cut(void **state)
{
	struct fixture *fx = fx_new();
	const struct facts *f = run(fx, BASE + 2);
	struct wall w = taken(f, RECORD("[10, 26, 9]", "0", ""));

	(void)state;
	EXPECT(&w, 5, CLIENT, [WALL_workers] = 2, [WALL_schedule] = 1, [WALL_ramp] = 1,
	       [WALL_steady] = 4, [WALL_tail] = 4, [WALL_merge] = 2, [WALL_gather] = 2.5);
	assert_int_equal(w.largest, WALL_imports);
	assert_true(w.ended);
	assert_false(wall_matters(&w)); /* from a fifth on */
	w.seconds = 25;
	assert_true(wall_matters(&w));
	w.seconds = 20;
	w.largest = WALL_tail;
	assert_true(wall_matters(&w));
	w.largest = WALL_steady; /* the same 4 s */
	assert_false(wall_matters(&w));
	fx_free(fx);
}

/* What the client does while tasks run is a separate part: here it only waits from 5 to 6 s, then
 * again from 13 s; the collector's clock is 1 s ahead. */
static void test_overlaps_are_the_clients(void **state)
{
	struct fixture *fx = fx_new();
	const struct facts *f = run(fx, BASE);
	struct wall w = taken(f, RECORD("[14, 15, 9], [22, 24, null]", "1", ""));

	(void)state;
	EXPECT(&w, 18, CLIENT, [WALL_steady] = 1, [WALL_merge] = 1, [WALL_gather] = 1.5);
	fx_free(fx);
}

/* A wait before the first task, and one after another graph was submitted, are for something else;
 * one that begins after the last task of an earlier graph is gathering. */
static void test_other_waits(void **state)
{
	struct fixture *fx = fx_new();
	const struct facts *f = run(fx, BASE);
	struct wall w =
		taken(f, RECORD("[1, 2, 0.5], [25, 25.5, 9], [26, 27, null], [28, 28.25, 27.5], "
				"[29, 29.5, null]",
				"0", ""));

	(void)state;
	EXPECT(&w, 17.75, CLIENT, [WALL_other] = 1.75, [WALL_gather] = 2);
	fx_free(fx);
}

static void test_unknown_is_in_the_rest(void **state)
{
	struct fixture *fx = fx_new();
	const struct facts *f = run(fx, BASE);
	struct wall w = taken(f, RECORD("[10, 26, 9]", "null", ""));

	(void)state;
	EXPECT(&w, 21.5, CLIENT, NO_WAIT);
	assert_non_null(strstr(w.unseen, "clock"));
	w = taken(f, RECORD("[10, 26, 9]", "0",
			    "\"own\": \"x is missing\", \"graph\": \"x is missing\""));
	assert_unknown(w.part[WALL_own]);
	assert_unknown(w.part[WALL_graph]);
	assert_near(value_real(w.rest), 30 - 5 - 16 - 0.5);
	assert_string_equal(w.unseen, "x is missing");
	w = taken(f, RECORD("[10, 26, 9]", "0", "\"wait\": \"too many\""));
	EXPECT(&w, 21.5, CLIENT, NO_WAIT);
	fx_free(fx);
	fx = fx_new();
	w = taken(run(fx, (double)NAN), RECORD("[10, 26, 9]", "0", ""));
	assert_unknown(w.part[WALL_workers]);
	assert_unknown(w.part[WALL_schedule]);
	assert_near(w.part[WALL_ramp], 1);
	fx_free(fx);
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* Found by a key that the client submitted; others' records, partial ones and other formats are
 * ignored. */
static void test_the_clients_record_is_found(void **state)
{
	struct fixture *fx = fx_new();
	const struct facts *f = run(fx, BASE);
	char folder[200];
	struct wall w;

	(void)state;
	assert_false(wall_find(&w, dir, f));
	snprintf(folder, sizeof(folder), "%s/clients", dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_file(folder, "1799999990.5-7.json",
		   "{\"format\": 1, \"begin_utc\": 1, \"wall\": 2, \"keys\": [\"1\"]}");
	write_file(folder, "1799999991.5-7.json", "{\"format\": 1, \"begin_");
	write_file(folder, "1899999991.5-7.json", RECORD("", "0", ""));
	assert_false(wall_find(&w, dir, f));
	write_file(folder, "1799999992.5-7.json", RECORD("", "0", ""));
	((struct run *)f->run)->start = 1; /* files are from now */
	assert_true(wall_find(&w, dir, f));
	assert_near(value_real(w.seconds), 30);
	assert_true(wall_read(&w, "/nonexistent/record", f) == -ENOENT);
	assert_non_null(strstr(w.line, "/nonexistent/record"));
	snprintf(folder, sizeof(folder), "%s/clients/1799999991.5-7.json", dir);
	assert_int_equal(wall_read(&w, folder, f), -EBADMSG);
	fx_free(fx);
}

static size_t times_said(const struct wall *w, const char *words)
{
	struct report r = {.wall = w};
	struct buf text = BUF_INIT;
	struct sink s = {.out = &text};
	const char *at;
	size_t n = 0;

	report_table_wall(&r, &s, false);
	sink_put(&s, "", 1);
	for (at = (const char *)text.data; (at = strstr(at, words)); at++)
		n++;
	buf_release(&text);
	return n;
}

/* If the record is not the last one, this is reported once. */
static void test_a_client_that_is_killed(void **state)
{
	struct fixture *fx = fx_new();
	struct wall w = taken(run(fx, BASE), RECORD("[10, 26, 9]", "0", ""));

	(void)state;
	assert_int_equal(times_said(&w, "is not recorded"), 0);
	w.ended = false;
	assert_int_equal(times_said(&w, "is not recorded"), 1);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wait_is_cut),
		cmocka_unit_test(test_overlaps_are_the_clients),
		cmocka_unit_test(test_other_waits),
		cmocka_unit_test(test_unknown_is_in_the_rest),
		cmocka_unit_test(test_a_client_that_is_killed),
		cmocka_unit_test_setup_teardown(test_the_clients_record_is_found, make_dir,
						remove_dir),
	};

	return cmocka_run_group_tests_name("the client's wall time", tests, NULL, NULL);
}
