/* SPDX-License-Identifier: BSD-3-Clause */
/* test_model.c - frames to model: revisions, repeats, lost workers, truncated files. */
#include <math.h>
#include <unistd.h>

#include "report_fixture.h"

static void test_highest_revision_wins(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "k", "s", 0, 0, 100);

	(void)state;
	fx_hello(fx, 1, NULL);
	r.rev = 5;
	SET_COUNT(&r, read_bytes, 500);
	fx_task(fx, 1, &r);
	r.rev = 3; /* arrived late */
	SET_COUNT(&r, read_bytes, 300);
	fx_task(fx, 1, &r);
	assert_int_equal(fx->m.attempts.n, 1);
	assert_uint_value(count_of(&fx_attempt(fx, 1, 1)->c, CREMA_C_read_bytes), 500);
	r.type = CREMA_MSG_TASK_AMEND;
	r.rev = 6;
	SET_COUNT(&r, read_bytes, 600);
	fx_task(fx, 1, &r);
	assert_uint_value(count_of(&fx_attempt(fx, 1, 1)->c, CREMA_C_read_bytes), 600);
	fx_free(fx);
}

/* It belongs to the numbers, not to the identity. */
static void test_an_unknown_file_system_can_become_known(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "k", "s", 0, 0, 100);
	struct attempt_detail d;

	(void)state;
	fx_hello(fx, 1, NULL);
	r.rev = 5;
	TASK_SET(&r, function, ((struct text){"f", 1}));
	TASK_SET(&r, fs_unknown, ((struct text){"nfs", 3}));
	fx_task(fx, 1, &r);
	attempt_detail(fx_attempt(fx, 1, 1), &d);
	assert_string_equal(d.fs_unknown, "nfs");
	r = fx_record(1, "k", "s", 0, 0, 100);
	r.type = CREMA_MSG_TASK_AMEND;
	r.rev = 6;
	fx_task(fx, 1, &r);
	attempt_detail(fx_attempt(fx, 1, 1), &d);
	assert_null(d.fs_unknown);
	assert_string_equal(d.function, "f");
	fx_free(fx);
}

static void test_end_outranks_progress_of_the_same_revision(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record end = fx_record(1, "k", "s", 0, 0, 100);
	struct task_record progress = fx_record(1, "k", "s", 0, 0, -1);

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_task(fx, 1, &progress);
	fx_task(fx, 1, &end);
	fx_task(fx, 1, &progress);
	fx_runs(fx);
	assert_int_equal(fx_attempt(fx, 1, 1)->state, ATTEMPT_OK);
	fx_free(fx);
}

static void test_unknown_is_not_zero(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "k", "s", 0, 0, 100);

	(void)state;
	fx_hello(fx, 1, NULL);
	SET_COUNT(&r, read_calls, 0);
	fx_task(fx, 1, &r);
	assert_uint_value(count_of(&fx_attempt(fx, 1, 1)->c, CREMA_C_read_calls), 0);
	assert_unknown(count_of(&fx_attempt(fx, 1, 1)->c, CREMA_C_read_bytes));
	assert_unknown(own_ns(&fx_attempt(fx, 1, 1)->c, CREMA_T_lock_wait));
	fx_free(fx);
}

static void test_clock_of_the_collector_wins(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 1000, 2000, "ok");
	fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(60000), "real_ns",
	       (BASE + 60) * UINT64_C(1000000000), "offset_ns", UINT64_C(250000000), NULL);
	fx_runs(fx);
	assert_int_equal(fx_attempt(fx, 1, 1)->begin_ns, UTC_NS(1250));
	assert_int_equal(fx_attempt(fx, 1, 1)->end_ns, UTC_NS(2250));
	fx_free(fx);
}

static void test_workers_at_the_same_address_are_told_apart(void **state)
{
	struct fixture *fx = fx_new();
	int i;

	(void)state;
	for (i = 1; i <= 4; i++)
		fx_hello(fx, i, i == 3 ? NULL : "{\"worker_address\": \"tcp://a:1\"}");
	fx_runs(fx);
	assert_string_equal(fx->m.workers.v[0]->label, "tcp://a:1");
	assert_string_equal(fx->m.workers.v[2]->label, "node:3");
	for (i = 1; i <= 3; i += 2) {
		char text[40];

		snprintf(text, sizeof(text), "tcp://a:1 %.12s", fx->m.workers.v[i]->hex);
		assert_string_equal(fx->m.workers.v[i]->label, text);
		assert_int_equal(fx->m.workers.v[i]->place, i);
	}
	fx_free(fx);
}

static void test_attempts_of_a_gone_worker(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "k", "s", 0, 0, -1);

	(void)state;
	TASK_SET(&r, wall_ns, UINT64_C(1500000000));
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	fx_hello(fx, 3, NULL);
	fx_task(fx, 1, &r);
	fx_task(fx, 2, &r);
	fx_task(fx, 3, &r);
	fx_goodbye(fx, 1, 1600, "killed");
	fx_goodbye(fx, 2, 1600, "gone");
	fx_runs(fx);
	assert_int_equal(fx_attempt(fx, 1, 1)->state, ATTEMPT_KILLED);
	assert_int_equal(fx_attempt(fx, 2, 1)->state, ATTEMPT_LOST);
	assert_int_equal(fx_attempt(fx, 3, 1)->state, ATTEMPT_RUNNING);
	assert_int_equal(fx_attempt(fx, 2, 1)->end_ns, UTC_NS(1500)); /* its last record */
	fx_free(fx);
}

static void test_silent_worker_is_lost_when_others_live_on(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, -1, "running");
	fx_map(fx, 2, CREMA_MSG_SAMPLE, "boot_ns", AT(9000), NULL);
	assert_int_equal(model_close(&fx->m, 0), 0);
	assert_int_equal(fx_attempt(fx, 1, 1)->state, ATTEMPT_RUNNING);
	fx_map(fx, 2, CREMA_MSG_SAMPLE, "boot_ns", AT(11000), NULL);
	assert_int_equal(model_close(&fx->m, 0), 0);
	assert_int_equal(fx_attempt(fx, 1, 1)->state, ATTEMPT_LOST);
	fx_free(fx);
}

static void test_old_journal_has_nothing_running(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, -1, "running");
	assert_int_equal(model_close(&fx->m, (BASE + 30) * UINT64_C(1000000000)), 0);
	assert_int_equal(fx_attempt(fx, 1, 1)->state, ATTEMPT_RUNNING);
	assert_int_equal(model_close(&fx->m, (BASE + 90) * UINT64_C(1000000000)), 0);
	assert_int_equal(fx_attempt(fx, 1, 1)->state, ATTEMPT_LOST);
	fx_free(fx);
}

static void test_samples_and_totals_twice(void **state)
{
	struct fixture *fx = fx_new();
	const struct worker *w;

	(void)state;
	fx->twice = true;
	fx_hello(fx, 1, NULL);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(2000), "rss_bytes", UINT64_C(20), NULL);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(1000), "rss_bytes", UINT64_C(10), NULL);
	fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(2000), "tasks_done", UINT64_C(7), NULL);
	fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(1000), "tasks_done", UINT64_C(3), NULL);
	assert_int_equal(model_close(&fx->m, 0), 0);
	w = fx->m.workers.v[0];
	assert_int_equal(w->samples.n, 2);
	assert_float_equal(w->samples.v[0].rss_bytes, 10, 0);
	assert_float_equal(w->samples.v[1].rss_bytes, 20, 0);
	assert_true(isnan(w->samples.v[0].cpu_percent));
	assert_uint_value(w->totals.tasks_done, 7);
	assert_int_equal(w->records_lost, 0);
	fx_free(fx);
}

/* The collector's clock is set back by an hour between 60 s and 90 s: only its latest time
 * counts. */
static void test_the_collectors_clock_is_set(void **state)
{
	const uint64_t hour_ns = UINT64_C(3600000000000);
	struct fixture *fx = fx_new();
	struct worker *w;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(60000), "real_ns", UTC_NS(60000), NULL);
	fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(90000), "real_ns", UTC_NS(90000) - hour_ns,
	       NULL);
	assert_int_equal(model_close(&fx->m, 0), 0);
	w = fx->m.workers.v[0];
	assert_float_equal(w->clock_set_seconds, -3600, 1e-6);
	assert_int_equal(worker_utc_ns(w, AT(1000)), UTC_NS(1000) - hour_ns);
	assert_int_equal(worker_utc_ns(w, AT(80000)), UTC_NS(80000) - hour_ns);
	fx_free(fx);
	/* Drift of 4 ms in 30 s is not a change. */
	fx = fx_new();
	fx_hello(fx, 1, NULL);
	fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(60000), "real_ns", UTC_NS(60000), NULL);
	fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(90000), "real_ns", UTC_NS(90004), NULL);
	assert_int_equal(model_close(&fx->m, 0), 0);
	w = fx->m.workers.v[0];
	assert_float_equal(w->clock_set_seconds, 0, 0);
	assert_int_equal(worker_utc_ns(w, AT(61000)), UTC_NS(61000));
	fx_free(fx);
}

/* Pairs 10 s apart, received in any order, each off by a different number of ns: the nearest one
 * counts. */
static void test_the_nearest_clock_counts(void **state)
{
	static const unsigned order[] = {5, 2, 7, 0, 3, 6, 1, 4};
	const unsigned n = sizeof(order) / sizeof(*order);
	struct fixture *fx = fx_new();
	struct worker *w;
	unsigned i;

	(void)state;
	fx_hello(fx, 1, NULL);
	for (i = 0; i < n; i++) {
		fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(20000 + order[i] * 10000), "real_ns",
		       UTC_NS(20000 + order[i] * 10000) + order[i] * 100, NULL);
	}
	assert_int_equal(model_close(&fx->m, 0), 0);
	w = fx->m.workers.v[0];
	assert_int_equal(worker_utc_ns(w, 0), 0);
	assert_int_equal(worker_utc_ns(w, AT(1)), UTC_NS(1));
	for (i = 0; i < n; i++) {
		assert_int_equal(worker_utc_ns(w, AT(15001 + i * 10000)),
				 UTC_NS(15001 + i * 10000) + i * 100);
		assert_int_equal(worker_utc_ns(w, AT(20000 + i * 10000)),
				 UTC_NS(20000 + i * 10000) + i * 100);
		assert_int_equal(worker_utc_ns(w, AT(24999 + i * 10000)),
				 UTC_NS(24999 + i * 10000) + i * 100);
	}
	assert_int_equal(worker_utc_ns(w, AT(900000)), UTC_NS(900000) + 700);
	fx_free(fx);
}

static void test_gaps_are_lost_records(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 10, "ok");
	fx->seq[1] = 6;
	fx_simple(fx, 1, 2, "b", "s", 0, 10, 20, "ok");
	fx->seq[1] = 3; /* late, fills a part of the gap */
	fx_simple(fx, 1, 3, "c", "s", 0, 20, 30, "ok");
	assert_int_equal(model_close(&fx->m, 0), 0);
	assert_int_equal(fx->m.workers.v[0]->records_lost, 4);
	fx_free(fx);
}

/* Including those that were received before io_uring was detected. */
static void test_calls_of_files_are_unknown_with_io_uring(void **state)
{
	struct fixture *fx;

	(void)state;
	for (int used = 0; used < 2; used++) {
		fx = fx_new();
		fx_hello(fx, 1, NULL);
		fx_map(fx, 1, CREMA_MSG_FILE, "read_bytes", UINT64_C(500), "cached_bytes",
		       UINT64_C(3), "large_read_bytes", UINT64_C(4), "mapped_bytes", UINT64_C(7),
		       NULL);
		fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(1000), used ? "io_uring" : "other",
		       UINT64_C(1), NULL);
		assert_int_equal(model_close(&fx->m, 0), 0);
		assert_int_equal(fx->m.files.v[0]->read_bytes.type == VALUE_NULL, used);
		assert_int_equal(fx->m.files.v[0]->cached_bytes.type == VALUE_NULL, used);
		assert_int_equal(fx->m.files.v[0]->large_read_bytes.type == VALUE_NULL, used);
		assert_uint_value(fx->m.files.v[0]->mapped_bytes, 7);
		fx_free(fx);
	}
}

/* Records that an agent dropped leave a gap, too, and are reported once: as refused. */
static void test_dropped_records_are_not_lost(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 10, "ok");
	fx->seq[1] = 8;
	fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(1000), "records_refused", UINT64_C(5), NULL);
	assert_int_equal(model_close(&fx->m, 0), 0);
	assert_int_equal(fx->m.workers.v[0]->records_lost, 2);
	assert_uint_value(fx->m.workers.v[0]->totals.records_refused, 5);
	fx_free(fx);
}

static void test_ranges_merge(void **state)
{
	static const uint64_t in[][2] = {{10, 20}, {30, 40}, {0, 5}, {19, 31}, {5, 10}, {7, 8}};
	struct stream s = {0};
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(stream_received(&s, in[i][0], in[i][1]), 0);
	assert_int_equal(s.ranges.n, 2);
	assert_int_equal(s.ranges.v[1].from, 10);
	assert_int_equal(s.ranges.v[1].to, 40);
	for (; i < 6; i++)
		assert_int_equal(stream_received(&s, in[i][0], in[i][1]), 0);
	assert_int_equal(s.ranges.n, 1);
	assert_int_equal(s.ranges.v[0].from, 0);
	assert_int_equal(s.ranges.v[0].to, 40);
	free(s.ranges.v);
}

static void test_garbage_is_counted_and_skipped(void **state)
{
	struct fixture *fx = fx_new();
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	(void)state;
	fx_hello(fx, 1, NULL);
	pack_init(&pk, &b);
	pack_array(&pk, 5);
	pack_text(&pk, "no message");
	pack_array(&pk, 2); /* a task without values */
	pack_u64(&pk, CREMA_MSG_TASK_END);
	pack_u64(&pk, 1);
	pack_array(&pk, 2); /* not a map */
	pack_u64(&pk, CREMA_MSG_SAMPLE);
	pack_u64(&pk, 1);
	pack_array(&pk, 3); /* not JSON */
	pack_u64(&pk, CREMA_MSG_DASK);
	pack_u64(&pk, 1);
	pack_text(&pk, "{");
	pack_array(&pk, 2); /* a newer agent's: not an error */
	pack_u64(&pk, 200);
	pack_map(&pk, 0);
	fx_frame(fx, CREMA_FRAME_DATA, 1, 5, &b);
	assert_int_equal(fx->m.records_bad, 4);
	assert_int_equal(fx->m.attempts.n, 0);
	buf_release(&b);
	fx_free(fx);
}

static void test_torn_file_is_named_and_the_rest_read(void **state)
{
	char dir[] = "/tmp/crema-test-XXXXXX", path[sizeof(dir) + 32];
	struct fixture *fx = fx_new();
	struct buf frames = BUF_INIT;
	struct framefile f;
	size_t whole;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/journal", dir);
	fx->file = &frames;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 10, "ok");
	whole = frames.len;
	fx_simple(fx, 1, 2, "b", "s", 0, 10, 20, "ok");
	assert_int_equal(framefile_create(&f, dir, "spool", 1, NULL), 0);
	assert_int_equal(framefile_append(&f, frames.data, whole + 20), 0);
	assert_int_equal(model_read_dir(&fx->m, dir), 1);
	assert_int_equal(fx->m.attempts.n, 1);
	assert_int_equal(fx->m.torn.n, 1);
	assert_true(fx->m.torn.v[0].truncated && !fx->m.torn.v[0].no_header);
	assert_non_null(strstr(fx->m.torn.v[0].name, ".crema"));
	unlink(f.path);
	framefile_close(&f);
	rmdir(dir);
	assert_int_equal(model_read_dir(&fx->m, dir), -2 /* ENOENT */);
	buf_release(&frames);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_highest_revision_wins),
		cmocka_unit_test(test_an_unknown_file_system_can_become_known),
		cmocka_unit_test(test_end_outranks_progress_of_the_same_revision),
		cmocka_unit_test(test_unknown_is_not_zero),
		cmocka_unit_test(test_clock_of_the_collector_wins),
		cmocka_unit_test(test_attempts_of_a_gone_worker),
		cmocka_unit_test(test_silent_worker_is_lost_when_others_live_on),
		cmocka_unit_test(test_old_journal_has_nothing_running),
		cmocka_unit_test(test_samples_and_totals_twice),
		cmocka_unit_test(test_the_collectors_clock_is_set),
		cmocka_unit_test(test_the_nearest_clock_counts),
		cmocka_unit_test(test_workers_at_the_same_address_are_told_apart),
		cmocka_unit_test(test_gaps_are_lost_records),
		cmocka_unit_test(test_dropped_records_are_not_lost),
		cmocka_unit_test(test_calls_of_files_are_unknown_with_io_uring),
		cmocka_unit_test(test_ranges_merge),
		cmocka_unit_test(test_garbage_is_counted_and_skipped),
		cmocka_unit_test(test_torn_file_is_named_and_the_rest_read),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
