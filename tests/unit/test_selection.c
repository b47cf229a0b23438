/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_selection.c - a large journal is read in parts, after a survey that finds what is where: its
 * list of runs and its reports equal those of the same journal read at once, even if the records
 * are not in the order of their times.
 */
#include "report_fixture.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/runs/read_runs.h"
#include "common/framefile.h"
#include "collector/print/render.h"
#include "own_dir.h"

static int reads, fails_at, fails_each; /* reads of files; the one that fails, or every n-th */

/* Overrides the C library's. */
ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
	reads++;
	if (reads == fails_at || (fails_each && reads % fails_each == 0)) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, n, offset);
}

static json_t *rendered(bool list, uint64_t whole_bytes, const char *run)
{
	struct report_request req = {
		.dir = dir, .json = true, .list = list, .whole_bytes = whole_bytes, .run = run};
	struct buf out = BUF_INIT;
	json_t *root;

	assert_int_equal(report_render(&req, &out), 0);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	buf_release(&out);
	return root;
}

/* A task of 500 ms that reads its span's only file. */
static void add(struct fixture *fx, int worker, uint64_t attempt, const char *span, int ms)
{
	char key[16];
	struct task_record r;

	snprintf(key, sizeof(key), "k-%d", (int)attempt);
	r = fx_record(attempt, key, span, 0, (uint64_t)ms, (uint64_t)ms + 500);
	TASK_SET(&r, filename, T("/data/a.root"));
	fx_task(fx, worker, &r);
}

static void write_file(uint64_t created_ns, struct buf *frames)
{
	write_frames(created_ns, frames);
	buf_consume(frames, frames->len);
}

/* Three runs; each of three files has a task of each run. */
static void write_journal(void)
{
	/* of each span first one in the middle, then the first, then the last */
	static const struct {
		const char *span;
		int worker, ms[3];
	} spans[] = {{"first", 1, {3000, 1000, 5000}},
		     {"second", 1, {12000, 11000, 13000}},
		     {"third", 2, {23000, 22000, 20000}}};
	struct buf frames = BUF_INIT;
	struct fixture *fx = fx_new();
	uint64_t attempt = 0;

	fx->file = &frames;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 3; k++)
			add(fx, spans[k].worker, ++attempt, spans[k].span, spans[k].ms[i]);
		write_file((uint64_t)i + 1, &frames);
	}
	buf_release(&frames);
	fx_free(fx);
}

static double number(const json_t *run, const char *name)
{
	assert_true(json_is_number(json_object_get(run, name)));
	return json_number_value(json_object_get(run, name));
}

static void test_parts_are_the_whole(void **state)
{
	static const double walls[] = {4.5, 2.5, 3.5};
	json_t *whole, *parts, *one, *run;
	size_t i;

	(void)state;
	write_journal();
	whole = rendered(true, 0, NULL);
	parts = rendered(true, 1, NULL);
	assert_true(json_equal(whole, parts));
	assert_int_equal(json_array_size(json_object_get(parts, "runs")), 3);
	json_array_foreach(json_object_get(parts, "runs"), i, run)
	{
		assert_float_equal(number(run, "wall_time"), walls[i], 1e-6);
		assert_float_equal(number(run, "num_tasks"), 3, 0);
		one = rendered(false, 1, json_string_value(json_object_get(run, "run")));
		assert_float_equal(number(json_object_get(one, "metrics"), "wall_time"), walls[i],
				   1e-6);
		json_decref(one);
	}
	json_decref(whole);
	json_decref(parts);
}

struct batches {
	const struct model *m;
	size_t seen;
};

static int see(void *arg, const struct run *r, size_t at, size_t n)
{
	struct batches *b = arg;

	assert_int_equal(at, b->seen++);
	assert_int_equal(n, 3);
	assert_int_equal(r->attempts.n, 3);
	assert_int_equal(b->m->attempts.n, 3);
	return 0;
}

/* If runs are read one by one, only one run's attempts are in memory. */
static void test_one_batch_at_a_time(void **state)
{
	const struct runs_source source = {.dir = dir, .whole_bytes = 1};
	struct runs runs = {0};
	struct model m;
	struct batches b = {&m, 0};

	(void)state;
	model_init(&m);
	assert_int_equal(runs_read_each(&m, &runs, &source, see, &b), 3);
	assert_int_equal(b.seen, 3);
	assert_int_equal(m.attempts.n, 0);
	runs_release(&runs);
	model_release(&m);
}

/* For tasks of runs that are only listed no counters are kept, and only names by which runs are
 * found. */
static void test_what_is_kept_of_a_task(void **state)
{
	struct selection s = {.pass = SELECTION_BATCH};
	struct task_record r, full;
	uint64_t kept;

	(void)state;
	memset(&full, 0xff, sizeof(full));
	r = full;
	selection_slim(NULL, &r);
	assert_memory_equal(&r, &full, sizeof(r));
	s.pass = SELECTION_RUNS;
	selection_slim(&s, &r);
	assert_memory_equal(&r, &full, sizeof(r));
	s.pass = SELECTION_BATCH;
	selection_slim(&s, &r);
	assert_true(r.own_known == 0 && r.pool_known == 0 && r.count_known == 0);
	for (int i = 0; i < CREMA_TIMES; i++)
		assert_true(!r.own[i] && !r.pool[i]);
	for (int i = 0; i < CREMA_COUNTS; i++)
		assert_true(!r.count[i]);
	kept = r.known;
	assert_true(TASK_KNOWN(&r, key_hash) && !TASK_KNOWN(&r, key));
	assert_true(TASK_KNOWN(&r, span) && TASK_KNOWN(&r, start_boot_ns));
	assert_false(TASK_KNOWN(&r, filename) || TASK_KNOWN(&r, dataset));
	r = full;
	s.pass = SELECTION_SURVEY;
	selection_slim(&s, &r);
	assert_int_equal(r.known,
			 kept | UINT64_C(1) << TASK_F_dataset | UINT64_C(1) << TASK_F_filename);
	r = full;
	r.known &= ~(UINT64_C(1) << TASK_F_key_hash);
	selection_slim(&s, &r);
	assert_true(TASK_KNOWN(&r, key));
}

static char *listed(int at, int each, struct report_notice *notice, int *rc)
{
	struct report_request req = {
		.dir = dir, .json = true, .list = true, .whole_bytes = 1, .notice = notice};
	struct buf out = BUF_INIT;

	reads = 0;
	fails_at = at;
	fails_each = each;
	*rc = report_render(&req, &out);
	fails_at = fails_each = 0;
	assert_int_equal(buf_add(&out, "", 1), 0);
	return (char *)out.data;
}

/* A disk that fails once: the list is complete, or the file that could not be read is named. */
static void test_a_read_that_fails(void **state)
{
	struct report_notice notice;
	int rc, n, survey, i;
	char *all = listed(0, 0, &notice, &rc), *found;

	(void)state;
	assert_int_equal(rc, 0);
	n = reads;
	survey = n / 4; /* then each of the three runs */
	assert_true(survey > 0 && n == 4 * survey);
	for (i = 1; i <= n; i++) {
		found = listed(i, 0, &notice, &rc);
		assert_true(i > survey ? !rc && !strcmp(found, all) && !*notice.torn
				       : *notice.torn);
		free(found);
	}
	/* never in the survey, always after it */
	found = listed(0, survey + 1, &notice, &rc);
	assert_int_equal(rc, -EIO);
	assert_non_null(strstr(found, "input/output error"));
	free(found);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_are_the_whole),
		cmocka_unit_test(test_one_batch_at_a_time),
		cmocka_unit_test(test_what_is_kept_of_a_task),
		cmocka_unit_test(test_a_read_that_fails),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
