/* SPDX-License-Identifier: BSD-3-Clause */
/* test_timeline.c - from totals over time to bins, with numbers computed by hand. */
#include <math.h>

#include "report_fixture.h"

#include "collector/runs/timeline.h"

struct totals_at {
	int ms, snapshot_ms; /* snapshot_ms 0: not reported */
	uint64_t read, unattributed_read, storage, cpu_ms;
};

#define UNKNOWN UINT64_MAX
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static void fx_totals(struct fixture *fx, int worker, const struct totals_at *t)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_TOTALS, 5);
	pack_kv_u64(&pk, "boot_ns", AT(t->ms));
	pack_kv_maybe(&pk, "snapshot_boot_ns", t->snapshot_ms != 0, AT(t->snapshot_ms));
	pack_text(&pk, "tasks");
	pack_map(&pk, 2);
	pack_kv_maybe(&pk, "read_bytes", t->read != UNKNOWN, t->read);
	pack_kv_u64(&pk, "cpu_ns", t->cpu_ms * 1000000);
	pack_text(&pk, "unattributed");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "read_bytes", t->unattributed_read);
	pack_text(&pk, "process");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "storage_read_bytes", t->storage);
	fx_end(fx, worker, &b);
}

/* The bins of a series, -1 for unknown ones. */
static void expect(const struct timeline *t, enum history_series s, const int64_t *bins, size_t n)
{
	struct value v;
	size_t i;

	assert_int_equal(t->bins, n);
	for (i = 0; i < n; i++) {
		v = timeline_value(t, s, i);
		if ((v.type == VALUE_UINT ? (int64_t)v.v.u : -1) != bins[i])
			fail_msg("%s, bin %zu: %lld, not %lld", history_name(s), i,
				 v.type == VALUE_UINT ? (long long)v.v.u : -1LL,
				 (long long)bins[i]);
	}
}

#define EXPECT(t, s, ...)                                                                          \
	do {                                                                                       \
		const int64_t bins_[] = {__VA_ARGS__};                                             \
		expect((t), HISTORY_##s, bins_, sizeof(bins_) / sizeof(*bins_));                   \
	} while (0)

static void build(struct fixture *fx, struct timeline *t)
{
	fx_runs(fx);
	assert_int_equal(timeline_build(t, &fx->runs.v[0]), 0);
}

/* One task from 0.5 s to 3.7 s; totals at 1, 2, 3 and 4 s; the last totals complete the sum. */
static void test_work_lies_where_it_was_done(void **state)
{
	struct fixture *fx = fx_new();
	struct timeline t;

	(void)state;
	fx->twice = true;
	fx_hello(fx, 1, NULL); /* present from 0 s */
	fx_simple(fx, 1, 1, "k", "s", 0, 500, 3700, "ok");
	fx_totals(fx, 1, &(struct totals_at){.ms = 4000, .read = 1700, .storage = 4096});
	fx_totals(fx, 1, &(struct totals_at){.ms = 1000, .read = 100, .unattributed_read = 7});
	fx_totals(fx, 1, &(struct totals_at){.ms = 2000, .read = 1100, .unattributed_read = 7});
	fx_totals(fx, 1, &(struct totals_at){.ms = 3000, .read = 1100, .unattributed_read = 7});
	fx_goodbye(fx, 1, 4000, "exit");
	build(fx, &t);
	/* 107 before 1.0 are in 0.5-1.0, 1,000 in 1.0-2.0, 593 in 3.0-3.7 */
	EXPECT(&t, read_bytes, 107 + 500, 500, 0 + 423, 170);
	EXPECT(&t, storage_read_bytes, 0, 0, 2925, 1171);
	EXPECT(&t, write_bytes, -1, -1, -1, -1);
	assert_float_equal(t.start, BASE + 0.5, 1e-6);
	assert_float_equal(t.stop, BASE + 3.7, 1e-6);
	assert_float_equal(t.bin_seconds, 1, 0);
	assert_float_equal(t.resolution, 1, 1e-9);
	assert_float_equal(timeline_bin_width(&t, 3), 0.2, 1e-9);
	assert_float_equal(t.workers[0], 1, 1e-9);
	assert_float_equal(t.running[3], 1, 1e-9);
	timeline_release(&t);
	fx_free(fx);
}

static void test_tasks_under_way_are_averages(void **state)
{
	struct fixture *fx = fx_new();
	struct timeline t;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	fx_goodbye(fx, 2, 1250, "exit");
	fx_simple(fx, 1, 1, "a", "s", 0, 0, 2000, "ok");
	fx_simple(fx, 1, 2, "b", "s", 0, 500, 1250, "ok");
	build(fx, &t);
	assert_int_equal(t.bins, 2);
	assert_float_equal(t.running[0], 1.5, 1e-9);
	assert_float_equal(t.running[1], 1.25, 1e-9);
	assert_float_equal(t.workers[0], 2, 1e-9);
	assert_float_equal(t.workers[1], 1.25, 1e-9);
	timeline_release(&t);
	fx_free(fx);
}

/* A value that is unknown for a while is spread once it is known; one that stays unknown is not
 * 0. */
static void test_unknown_is_not_zero(void **state)
{
	struct fixture *fx = fx_new();
	struct timeline t;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 9000, "ok");
	fx_totals(fx, 1, &(struct totals_at){.ms = 1000, .read = 100});
	fx_totals(fx, 1, &(struct totals_at){.ms = 2000, .read = UNKNOWN});
	fx_totals(fx, 1, &(struct totals_at){.ms = 3000, .read = 300});
	fx_totals(fx, 1, &(struct totals_at){.ms = 9000, .read = UNKNOWN, .cpu_ms = 8});
	fx_goodbye(fx, 1, 9000, "exit");
	build(fx, &t);
	EXPECT(&t, read_bytes, 100, 100, 100, 0, -1, -1, -1, -1, -1);
	assert_float_equal(t.resolution, 6, 1e-9);
	timeline_release(&t);
	fx_free(fx);
}

/* A sum without what is being folded at that moment, and one that was reduced. */
static void test_sums_that_fall(void **state)
{
	struct fixture *fx = fx_new();
	struct timeline t;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 4000, "ok");
	fx_totals(fx, 1, &(struct totals_at){.ms = 1000, .read = 1000, .storage = 10});
	fx_totals(fx, 1, &(struct totals_at){.ms = 2000, .read = 100, .storage = 50});
	fx_totals(fx, 1, &(struct totals_at){.ms = 3000, .read = 1400, .storage = 30});
	fx_totals(fx, 1, &(struct totals_at){.ms = 4000, .read = 1400, .storage = 40});
	fx_goodbye(fx, 1, 4000, "exit");
	build(fx, &t);
	EXPECT(&t, read_bytes, 1000, 200, 200, 0);
	EXPECT(&t, storage_read_bytes, 10, 20, 0, 10);
	timeline_release(&t);
	fx_free(fx);
}

/* CPU of a running task is as old as the worker's snapshot: it is spread since the previous one. */
static void test_old_snapshots_wait(void **state)
{
	struct fixture *fx = fx_new();
	struct timeline t;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 4000, "ok");
	fx_totals(fx, 1, &(struct totals_at){.ms = 1000, .snapshot_ms = 900, .cpu_ms = 900});
	fx_totals(fx, 1, &(struct totals_at){.ms = 2000, .snapshot_ms = 900, .cpu_ms = 900});
	fx_totals(fx, 1, &(struct totals_at){.ms = 3000, .snapshot_ms = 900, .cpu_ms = 900});
	fx_totals(fx, 1, &(struct totals_at){.ms = 4000, .snapshot_ms = 3900, .cpu_ms = 3900});
	fx_goodbye(fx, 1, 4000, "exit");
	build(fx, &t);
	EXPECT(&t, cpu_seconds, 900000000, 1000000000, 1000000000, 1000000000);
	timeline_release(&t);
	fx_free(fx);
}

/* 1,500 s need 375 bins of 4 s; the sum of 1 byte each second stays exact. */
static void test_long_runs_have_long_bins(void **state)
{
	struct fixture *fx = fx_new();
	uint64_t sum = 0;
	struct timeline t;
	size_t i;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 1500000, "ok");
	for (i = 1; i <= 1500; i++)
		fx_totals(fx, 1, &(struct totals_at){.ms = (int)i * 1000, .read = i});
	fx_goodbye(fx, 1, 1500000, "exit");
	build(fx, &t);
	assert_int_equal(t.bins, 375);
	assert_float_equal(t.bin_seconds, 4, 0);
	for (i = 0; i < t.bins; i++) {
		assert_uint_value(timeline_value(&t, HISTORY_read_bytes, i), 4);
		sum += t.sum[HISTORY_read_bytes][i];
	}
	assert_int_equal(sum, 1500);
	timeline_release(&t);
	fx_free(fx);
}

/* The latest point of each cell of 2^28 ns (268 ms): times are at the cells' boundaries, in any
 * order. */
static void test_cells_of_time(void **state)
{
	static const struct {
		int cell, ns; /* from its beginning */
		bool kept;
	} points[] = {{7, 5, true},
		      {2, 0, false},
		      {2, (1 << 28) - 1, true},
		      {3, 0, true},
		      {4, (1 << 28) - 1, true},
		      {2, 77, false},
		      {9, 1 << 27, false},
		      {9, (1 << 27) + 1, true}};
	struct fixture *fx = fx_new();
	struct history *h;
	size_t i, k = 0;

	(void)state;
	fx_hello(fx, 1, NULL);
	h = &fx->m.workers.v[0]->history;
	for (i = 0; i < COUNT_OF(points); i++) {
		uint64_t cell = (BOOT >> 28) + (uint64_t)points[i].cell;
		struct totals t = {.boot_ns = (cell << 28) + (uint64_t)points[i].ns};

		assert_int_equal(history_add(&fx->m, h, &t, i), 0);
	}
	history_thin(&fx->m);
	assert_int_equal(fx->m.history_points, 5);
	assert_int_equal(h->n, 5);
	for (i = 0; i < COUNT_OF(points); i++)
		k += points[i].kept;
	assert_int_equal(k, h->n);
	for (k = 0; k < h->n; k++) {
		assert_true(!k || h->v[k].boot_ns > h->v[k - 1].boot_ns);
		/* the snapshot's time is the index in the list */
		assert_true(points[h->v[k].snapshot_ns].kept);
	}
	fx_free(fx);
}

/* With twice as many points as allowed fewer are kept, and the sum is unchanged. */
static void test_points_are_bounded(void **state)
{
	struct fixture *fx = fx_new();
	uint64_t sum = 0;
	struct timeline t;
	size_t i, n = 2 * HISTORY_POINTS + 1000;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, (int)n * 300, "ok");
	for (i = 1; i <= n; i++)
		fx_totals(fx, 1, &(struct totals_at){.ms = (int)i * 300, .read = 10 * i});
	fx_goodbye(fx, 1, (int)n * 300, "exit");
	assert_true(fx->m.history_points <= 2 * HISTORY_POINTS);
	build(fx, &t);
	assert_true(fx->m.history_points <= HISTORY_POINTS);
	assert_int_equal(fx->m.history_points, fx->m.workers.v[0]->history.n);
	assert_true(t.bins <= TIMELINE_BINS && t.bins > TIMELINE_BINS / 2);
	for (i = 0; i < t.bins; i++)
		sum += t.sum[HISTORY_read_bytes][i];
	assert_int_equal(sum, 10 * n);
	timeline_release(&t);
	fx_free(fx);
}

/* Clocks drift by 4 ms in 3 s, and each of two totals 3 ms apart (in two cells of the history) is
 * closest to a different pair: the second total gets the first one's time, not an earlier one. */
static void test_times_by_two_clock_pairs(void **state)
{
	struct fixture *fx = fx_new();
	struct timeline t;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(0), "real_ns", UTC_NS(0), NULL);
	fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(3064), "real_ns", UTC_NS(3060), NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 2000, "ok");
	fx_totals(fx, 1, &(struct totals_at){.ms = 1531, .read = 1531});
	fx_totals(fx, 1, &(struct totals_at){.ms = 1534, .read = 1831});
	fx_totals(fx, 1, &(struct totals_at){.ms = 2000, .read = 2000});
	fx_goodbye(fx, 1, 3000, "exit");
	build(fx, &t);
	EXPECT(&t, read_bytes, 1000, 531 + 300 + 169);
	assert_float_equal(t.resolution, 1.531, 1e-9);
	timeline_release(&t);
	fx_free(fx);
}

/* Two runs in sequence on one worker: each has its own numbers, and they share the second between
 * them. */
static void test_runs_share_the_second_between_them(void **state)
{
	struct fixture *fx = fx_new();
	struct timeline t;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "a", "one", 0, 0, 1400, "ok");
	fx_simple(fx, 1, 2, "b", "two", 0, 1600, 3000, "ok");
	fx_totals(fx, 1, &(struct totals_at){.ms = 1000, .read = 100});
	fx_totals(fx, 1, &(struct totals_at){.ms = 2000, .read = 150});
	fx_totals(fx, 1, &(struct totals_at){.ms = 3000, .read = 350});
	fx_goodbye(fx, 1, 3000, "exit");
	build(fx, &t);
	EXPECT(&t, read_bytes, 100, 50);
	timeline_release(&t);
	assert_int_equal(timeline_build(&t, &fx->runs.v[1]), 0);
	EXPECT(&t, read_bytes, 50 + 120, 80);
	timeline_release(&t);
	fx_free(fx);
}

static void test_runs_without_totals_or_clock(void **state)
{
	struct fixture *fx = fx_new();
	struct timeline t;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 5, 5, "ok"); /* no duration */
	build(fx, &t);
	assert_true(isnan(t.resolution));
	EXPECT(&t, read_bytes, -1);
	timeline_release(&t);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_lies_where_it_was_done),
		cmocka_unit_test(test_tasks_under_way_are_averages),
		cmocka_unit_test(test_unknown_is_not_zero),
		cmocka_unit_test(test_sums_that_fall),
		cmocka_unit_test(test_old_snapshots_wait),
		cmocka_unit_test(test_long_runs_have_long_bins),
		cmocka_unit_test(test_cells_of_time),
		cmocka_unit_test(test_points_are_bounded),
		cmocka_unit_test(test_times_by_two_clock_pairs),
		cmocka_unit_test(test_runs_share_the_second_between_them),
		cmocka_unit_test(test_runs_without_totals_or_clock),
	};

	return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
