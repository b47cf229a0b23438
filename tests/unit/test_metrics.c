/* SPDX-License-Identifier: BSD-3-Clause */
/* test_metrics.c - a run small enough to compute its numbers by hand; unknown stays unknown. */
#include "report_fixture.h"
#include "collector/metrics/groups.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)

#define STACK "{\"nthreads\": 2, \"memory_limit_bytes\": 1000, \"worker_address\": \"tcp://w\"}"

/* Milliseconds of CPU (own, pool), run queue, GIL and storage; the other classes stay unknown. */
static void set_times(struct task_record *r, int cpu, int pool, int runqueue, int gil, int storage)
{
	SET_OWN(r, cpu, cpu);
	SET_POOL(r, cpu, pool);
	SET_OWN(r, runqueue, runqueue);
	SET_OWN(r, gil_wait, gil);
	SET_OWN(r, storage_wait, storage);
}

static void set_counts(struct task_record *r, uint64_t read, uint64_t storage, uint64_t in,
		       uint64_t out)
{
	SET_COUNT(r, read_bytes, read);
	SET_COUNT(r, storage_read_bytes, storage);
	SET_COUNT(r, storage_unsure_bytes, 0);
	SET_COUNT(r, decompress_in_bytes, in);
	SET_COUNT(r, decompress_out_bytes, out);
}

static struct task_record chunk(uint64_t attempt, const char *key, int start, int stop,
				int64_t events)
{
	struct task_record r = fx_record(attempt, key, "work", CREMA_TASK_CHUNK, start, stop);

	TASK_SET(&r, dataset, T("d"));
	TASK_SET(&r, filename, T("f.root"));
	TASK_SET(&r, entrystart, 0);
	TASK_SET(&r, entrystop, events);
	TASK_SET(&r, events, events);
	return r;
}

static void feed_chunks(struct fixture *fx, bool savemetrics)
{
	struct task_record c0 = chunk(2, "c0", 100, 600, 1000),
			   c1 = chunk(1, "c1", 100, 1100, 3000);
	struct task_record bad = chunk(3, "c1", 620, 720, 3000);

	set_times(&c0, 200, 100, 50, 30, 100);
	set_counts(&c0, 4000, 8192, 3000, 6000);
	TASK_SET(&c0, rss_start_bytes, 500);
	TASK_SET(&c0, rss_stop_bytes, 700);
	TASK_SET(&c0, rss_peak_bytes, 900);
	set_times(&c1, 600, 0, 0, 100, 200);
	set_counts(&c1, 12000, 0, 9000, 12000);
	TASK_SET(&c1, rss_start_bytes, 600);
	TASK_SET(&c1, rss_stop_bytes, 600);
	set_times(&bad, 10, 0, 0, 0, 0);
	set_counts(&bad, 100, 0, 0, 0);
	TASK_SET(&bad, status, T("erred"));
	if (savemetrics) {
		TASK_SET(&c0, coffea_bytesread, 5000);
		TASK_SET(&c0, coffea_processtime, 0.4);
		TASK_SET(&c0, columns, T("Jet_pt\nMuon_pt"));
		TASK_SET(&c1, coffea_bytesread, 15000);
		TASK_SET(&c1, coffea_processtime, 0.9);
		TASK_SET(&c1, columns, T("Muon_pt\nMET_pt\n"));
	}
	fx_task(fx, 1, &c0);
	fx_task(fx, 2, &c1);
	fx_task(fx, 1, &bad);
}

static void feed_rest(struct fixture *fx)
{
	struct task_record pre = fx_record(1, "p", "pre", CREMA_TASK_PREPROCESSING, 0, 100);
	struct task_record merge =
		fx_record(4, "m", "work", CREMA_TASK_MERGE | CREMA_TASK_CHUNK, 1100, 1200);

	TASK_SET(&pre, dataset, T("d"));
	TASK_SET(&pre, filename, T("f.root"));
	set_times(&pre, 50, 0, 0, 0, 0);
	set_counts(&pre, 0, 0, 0, 0);
	TASK_SET(&merge, prefix, T("reduce"));
	set_times(&merge, 100, 0, 0, 0, 0);
	set_counts(&merge, 0, 0, 10, 20);
	fx_task(fx, 1, &pre);
	fx_task(fx, 1, &merge);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(500), "rss_bytes", UINT64_C(800), NULL);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(1500), "rss_bytes", UINT64_C(1000), NULL);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(2500), "rss_bytes", UINT64_C(9000), NULL);
	fx_map(fx, 2, CREMA_MSG_SAMPLE, "boot_ns", AT(500), "rss_bytes", UINT64_C(300), NULL);
}

static void feed_dask(struct fixture *fx)
{
	fx_dask(fx, 1, 1000,
		"{\"executing\": 1, \"ready\": 3, \"nthreads\": 2, \"digests\": ["
		"[\"execute\", \"work\", \"task\", \"thread-cpu\", \"seconds\", 0.5],"
		"[\"execute\", \"pre\", \"task\", \"thread-cpu\", \"seconds\", 0.05],"
		"[\"execute\", \"work\", \"task\", \"thread-noncpu\", \"seconds\", 0.7],"
		"[\"execute\", \"work\", \"reduce\", \"thread-cpu\", \"seconds\", 0.1],"
		"[\"execute\", \"work\", \"task\", \"memory-read\", \"count\", 3],"
		"[\"execute\", \"work\", \"task\", \"memory-read\", \"bytes\", 77],"
		"[\"get-data\", null, null, \"serialize\", \"seconds\", 9],"
		"[\"execute\", \"alien\", \"task\", \"thread-cpu\", \"seconds\", 9]]}");
	fx_dask(fx, 2, 1000,
		"{\"digests\": [[\"execute\", \"work\", \"task\", \"thread-cpu\", \"seconds\", "
		"0.6]]}");
	fx_dask(fx, 2, 500, "{\"digests\": []}"); /* older: must not be used */
}

static struct fixture *small_run(bool twice, bool savemetrics)
{
	struct fixture *fx = fx_new();

	fx->twice = twice;
	fx_hello(fx, 1, STACK);
	fx_hello(fx, 2, STACK);
	feed_chunks(fx, savemetrics);
	feed_rest(fx);
	feed_dask(fx);
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	return fx;
}

struct expected {
	const char *id;
	double value;
};

static void check(struct fixture *fx, const struct expected *e, size_t n)
{
	const struct facts *f = fx_facts(fx, 0);
	double got;
	bool known;
	size_t i;

	for (i = 0; i < n; i++) {
		got = value_number(metric_value(f, e[i].id), &known);
		if (!known || got - e[i].value > 1e-9 * (1 + e[i].value) ||
		    e[i].value - got > 1e-9 * (1 + e[i].value))
			fail_msg("%s is %.12g (known: %d), not %.12g", e[i].id, got, known,
				 e[i].value);
	}
}

#define CHECK(fx, table) check(fx, table, sizeof(table) / sizeof(*(table)))

static const struct expected from_workers[] = {
	{"wall_time", 1.2},
	{"total_events", 4000},
	{"num_chunks", 2},
	{"num_chunks_all", 3},
	{"num_tasks", 4},
	{"num_attempts", 5},
	{"read_bytes", 16000},
	{"read_bytes_all", 16100},
	{"read_rate_mbs", 16000 / 1.2 / 1e6},
	{"disk_read_bytes", 8192},
	{"bytes_read_compressed", 12000},
	{"bytes_read_uncompressed", 18000},
	{"compression_ratio", 1.5},
	{"event_rate_wall_khz", 4000 / 1.2 / 1000},
	{"event_rate_agg_khz_true", 4000 / 0.9 / 1000},
	{"event_rate_core_hz", 4000 / 1.2 / 4},
	{"event_rate_core_khz", 4 / 1.2 / 4},
	{"total_cpu_time_true", 0.9},
	{"total_cpu_time_true_all", 1.06},
	{"avg_cpu_time_per_chunk_true", 0.45},
	{"core_efficiency_true", 0.9 / (1.2 * 4)},
	{"speedup_factor_true", 0.75},
	{"efficiency_ratio_percent_true", 75},
	{"avg_workers", 2},
	{"cores_per_worker", 2},
	{"total_cores", 4},
	{"avg_memory_per_worker_bytes", 600},
	{"peak_memory_per_worker_bytes", 1000},
	{"avg_memory_utilization_percent", 70},
	{"min_memory_utilization_percent", 30},
	{"max_memory_utilization_percent", 100},
	{"memory_pressure", 1},
	{"worker_tracking_interval", 1},
	{"task_wall_seconds", 1.7},
	{"task_cpu_seconds", 0.95},
	{"task_pool_cpu_seconds", 0.1},
	{"runqueue_wait_seconds", 0.05},
	{"gil_wait_seconds", 0.13},
	{"storage_wait_seconds", 0.3},
	{"unclassified_seconds", 0.27},
	{"cpu_time_seconds_true", 1.05},
	{"processor_cpu_time_seconds_true", 0.9},
	{"overhead_cpu_time_seconds_true", 0.15},
	{"chunk_wall_min_seconds", 0.5},
	{"chunk_wall_max_seconds", 1.0},
	{"cpu_time_per_event_seconds", 0.9 / 4000},
	{"memory_per_event_bytes", 0.1},
	{"memory_per_event_std_bytes", 0.1},
	{"wasted_attempts", 1},
	{"wasted_wall_seconds", 0.1},
	{"wasted_cpu_seconds", 0.01},
	{"wasted_read_bytes", 100},
};

static const struct expected from_dask[] = {
	{"cpu_time_seconds", 1.25},
	{"io_time_seconds", 0.7},
	{"processor_cpu_time_seconds", 1.1},
	{"processor_noncpu_time_seconds", 0.7},
	{"processor_cpu_percentage", 1.1 / 1.8 * 100},
	{"processor_noncpu_percentage", 0.7 / 1.8 * 100},
	{"overhead_cpu_time_seconds", 0.15},
	{"overhead_noncpu_time_seconds", 0},
	{"io_overhead_percent", 0.7 / 1.2 * 100},
	{"fine_cpu_efficiency", 1.25 / (1.2 * 4)},
	{"memory_read_count", 3},
	{"total_bytes_memory_read_dask", 77},
	{"serialization_time_seconds", 9}, /* for other workers, without a span */
};

static const struct expected from_coffea[] = {
	{"total_bytes_read_coffea", 20000},
	{"overall_rate_mbs", 20000 / 1.2 / 1e6},
	{"overall_rate_gbps", 20000 * 8 / 1.2 / 1e9},
	{"total_cpu_time", 1.3},
	{"avg_cpu_time_per_chunk", 0.65},
	{"event_rate_agg_khz", 4000 / 1.3 / 1000},
	{"core_efficiency", 1.3 / (1.2 * 4)},
	{"speedup_factor", 1.3 / 1.2},
	{"efficiency_ratio_percent", 1.3 / 1.2 * 100},
	{"chunk_time_min_seconds", 0.4},
	{"chunk_time_max_seconds", 0.9},
	{"chunk_time_mean_seconds", 0.65},
	{"chunk_time_std_seconds", 0.25},
	{"time_per_event_seconds", 1.3 / 4000},
	{"time_per_event_std_seconds", 0.00005},
	{"num_columns", 3},
};

static void test_numbers_by_hand(void **state)
{
	struct fixture *fx = small_run(false, true);

	(void)state;
	CHECK(fx, from_workers);
	CHECK(fx, from_dask);
	CHECK(fx, from_coffea);
	assert_string_equal(metric_value(&fx->facts, "largest_dataset").v.s, "d");
	assert_unknown(metric_value(&fx->facts, "lock_wait_seconds"));
	assert_unknown(metric_value(&fx->facts, "io_time_seconds_true")); /* its network part is */
	fx_free(fx);
}

static void test_every_frame_twice_changes_nothing(void **state)
{
	struct fixture *fx = small_run(true, true);

	(void)state;
	CHECK(fx, from_workers);
	CHECK(fx, from_dask);
	CHECK(fx, from_coffea);
	fx_free(fx);
}

static void test_without_savemetrics(void **state)
{
	struct fixture *fx = small_run(false, false);
	size_t i;

	(void)state;
	CHECK(fx, from_workers);
	CHECK(fx, from_dask);
	for (i = 0; i < sizeof(from_coffea) / sizeof(*from_coffea); i++) {
		if (metric_value(&fx->facts, from_coffea[i].id).type != VALUE_NULL)
			fail_msg("%s is not unknown", from_coffea[i].id);
	}
	fx_free(fx);
}

static void test_part_of_a_sum_unknown(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record a = chunk(1, "a", 0, 100, 10), b = chunk(2, "b", 100, 200, 10);
	struct task_record c = chunk(3, "c", 200, 300, 10);

	(void)state;
	fx_hello(fx, 1, STACK);
	set_counts(&a, 10, 4096, 1, 1);
	set_counts(&b, 20, 8192, 1, 1);
	SET_COUNT(&b, storage_unsure_bytes, 6144);
	TASK_SET(&b, fs_unknown, T("9p"));
	SET_COUNT(&c, read_bytes, 5);
	SET_COUNT(&c, storage_read_bytes, 0);
	fx_task(fx, 1, &a);
	fx_task(fx, 1, &b);
	fx_task(fx, 1, &c);
	fx_runs(fx);
	assert_unknown(metric_value(fx_facts(fx, 0), "disk_read_bytes"));
	assert_uint_value(metric_value(&fx->facts, "storage_known_bytes"), 4096 + 2048);
	assert_uint_value(metric_value(&fx->facts, "read_bytes"), 35);
	assert_unknown(metric_value(&fx->facts, "bytes_read_compressed"));
	assert_unknown(metric_value(&fx->facts, "compression_ratio"));
	assert_unknown(metric_value(&fx->facts, "total_cpu_time_true"));
	assert_unknown(metric_value(&fx->facts, "cpu_time_seconds")); /* no probe was sent */
	fx_free(fx);
}

/* dask-awkward: 400 ms of reading, 300 of processing, 50 of merging, 150 of preprocessing. */
static void feed_graph(struct fixture *fx, const char *other_dataset)
{
	const uint64_t read = CREMA_TASK_CHUNK | CREMA_TASK_TREE_READ;
	struct task_record r[] = {
		fx_record(1, "read", "g", read, 0, 200), fx_record(2, "read2", "g", read, 0, 200),
		fx_record(3, "fill", "g", 0, 200, 500),	 fx_record(4, "agg", "g", 0, 500, 550),
		fx_record(5, "steps", "g", 0, 600, 700), fx_record(6, "set", "g", 0, 700, 750),
	};
	const char *prefix[] = {"getitem",	  "getitem",   "hist-on-block",
				"histreduce-agg", "get-steps", "preprocess-d"};
	size_t i;

	fx_hello(fx, 1, STACK);
	for (i = 0; i < sizeof(r) / sizeof(*r); i++) {
		TASK_SET(&r[i], prefix, T(prefix[i]));
		TASK_SET(&r[i], function, T(i == 3 || i == 5 ? "pipe" : "_execute_subgraph"));
		set_times(&r[i], (int)(r[i].wall_ns / 1000000), 0, 0, 0, 0);
		if (i < 2) {
			TASK_SET(&r[i], dataset, T(i ? other_dataset : "d"));
			TASK_SET(&r[i], entrystart, 0);
			TASK_SET(&r[i], entrystop, 1000);
		}
		fx_task(fx, 1, &r[i]);
	}
	fx_runs(fx);
	fx_facts(fx, 0);
}

static struct value of(struct fixture *fx, const char *metric)
{
	return metric_value(&fx->facts, metric);
}

static void test_work_on_what_a_graph_has_read_is_the_users(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	feed_graph(fx, "d");
	assert_near(of(fx, "total_cpu_time_true"), 0.7);
	assert_near(of(fx, "processor_cpu_time_seconds_true"), 0.7);
	assert_near(of(fx, "overhead_cpu_time_seconds_true"), 0.2);
	assert_near(of(fx, "processing_task_seconds"), 0.7);
	assert_near(of(fx, "processing_elapsed_seconds"), 0.5);
	assert_near(of(fx, "merging_task_seconds"), 0.05);
	assert_near(of(fx, "preprocessing_task_seconds"), 0.15);
	assert_near(of(fx, "preprocessing_elapsed_seconds"), 0.15);
	assert_uint_value(metric_value(&fx->facts, "num_chunks"), 2);
	assert_true(prefix_is_processor(&fx->facts, fx->facts.run->first_span,
					model_text(&fx->m, T("hist-on-block"))));
	assert_false(prefix_is_processor(&fx->facts, fx->facts.run->first_span,
					 model_text(&fx->m, T("histreduce-agg"))));
	assert_int_equal(fx->facts.datasets->n, 1);
	assert_near(tally_cpu(&fx->facts.datasets->v[0].t), 0.7);
	assert_string_equal(metric_value(&fx->facts, "slowest_dataset").v.s, "d");
	fx_free(fx);
	fx = fx_new();
	feed_graph(fx, "e"); /* it is unknown which of the two a fill belongs to */
	assert_int_equal(fx->facts.datasets->n, 2);
	assert_unknown(tally_cpu(&fx->facts.datasets->v[0].t));
	assert_unknown(tally_cpu(&fx->facts.datasets->v[1].t));
	assert_unknown(metric_value(&fx->facts, "slowest_dataset"));
	fx_free(fx);
}

/* A task next to coffea's chunks is not part of its work, whatever else the run reads. */
static void test_a_work_item_makes_chunks_whole(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "a", "s", CREMA_TASK_CHUNK, 0, 200);
	struct task_record tree =
		fx_record(2, "b", "s", CREMA_TASK_CHUNK | CREMA_TASK_TREE_READ, 0, 200);
	struct task_record rest = fx_record(3, "c", "s", 0, 200, 500);

	(void)state;
	fx_hello(fx, 1, STACK);
	set_times(&r, 200, 0, 0, 0, 0);
	set_times(&tree, 200, 0, 0, 0, 0);
	set_times(&rest, 300, 0, 0, 0, 0);
	fx_task(fx, 1, &r);
	fx_task(fx, 1, &tree);
	fx_task(fx, 1, &rest);
	fx_runs(fx);
	fx_facts(fx, 0);
	assert_near(of(fx, "total_cpu_time_true"), 0.4);
	assert_near(of(fx, "overhead_cpu_time_seconds_true"), 0.3);
	fx_free(fx);
}

static void test_empty_run_is_unknown(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 100, "ok");
	fx_runs(fx);
	assert_unknown(metric_value(fx_facts(fx, 0), "total_events"));
	assert_unknown(metric_value(&fx->facts, "cores_per_worker"));
	assert_unknown(metric_value(&fx->facts, "memory_pressure"));
	assert_uint_value(metric_value(&fx->facts, "num_chunks"), 0);
	fx_free(fx);
}

static void test_events_of_a_chunk(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record ok = chunk(1, "a", 0, 100, 10), bad = chunk(2, "b", 0, 100, 10);

	(void)state;
	fx_hello(fx, 1, NULL);
	ok.known &= ~(UINT64_C(1) << TASK_F_events);
	bad.known &= ~(UINT64_C(1) << TASK_F_events);
	TASK_SET(&bad, status, T("erred"));
	fx_task(fx, 1, &ok);
	fx_task(fx, 1, &bad);
	fx_runs(fx);
	assert_int_equal(attempt_events(fx_attempt(fx, 1, 1)).v.i, 10);
	assert_unknown(attempt_events(fx_attempt(fx, 1, 2)));
	fx_free(fx);
}

#define ALL_TIMES ((1u << CREMA_TIMES) - 1)

/* Page faults waited for storage, and calls for 5 ms of 100 ms. */
static struct task_record faulted(uint64_t attempt, const char *key, int cpu, uint32_t known)
{
	struct task_record r = fx_record(attempt, key, "s", CREMA_TASK_FAULT_STORAGE, 0, 100);

	set_times(&r, cpu, 0, 10, 0, 5);
	r.own_known = known;
	return r;
}

/* With another class unknown, what remains may be of that class. */
static void test_no_estimate_from_an_unknown_rest(void **state)
{
	const uint32_t queue = 1u << CREMA_T_runqueue, storage = 1u << CREMA_T_storage_wait;
	struct fixture *fx = fx_new();
	struct task_record r = faulted(1, "k", 30, ALL_TIMES & ~queue);
	struct classes c;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_task(fx, 1, &r);
	r = faulted(2, "m", 30, ALL_TIMES & ~storage);
	fx_task(fx, 1, &r);
	r = faulted(3, "n", 30, ALL_TIMES);
	r.known &= ~(UINT64_C(1) << TASK_F_wall_ns);
	fx_task(fx, 1, &r);
	fx_runs(fx);
	attempt_classes(fx_attempt(fx, 1, 1), &c);
	assert_unknown(c.cls[CREMA_T_storage_wait]);
	assert_near(value_real(c.seconds[CREMA_T_storage_wait]), 0);
	assert_int_equal(c.unknown, queue | storage);
	assert_false(c.storage_estimated);
	assert_near(c.cls[CREMA_T_cpu], 0.03);
	assert_near(c.unclassified, 0.07);
	attempt_classes(fx_attempt(fx, 1, 2), &c);
	assert_near(c.cls[CREMA_T_storage_wait], 0.06); /* only itself was unknown */
	assert_true(c.storage_estimated);
	attempt_classes(fx_attempt(fx, 1, 3), &c); /* without its wall time nothing remains */
	assert_unknown(c.cls[CREMA_T_storage_wait]);
	assert_unknown(c.unclassified);
	fx_free(fx);
}

static void test_classes_of_a_task(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = fx_record(1, "k", "s", 0, 0, 100);
	struct classes c;

	(void)state;
	fx_hello(fx, 1, NULL);
	set_times(&r, 70, 500, 20, 0, 40); /* more than its wall time: kept; pool time is extra */
	fx_task(fx, 1, &r);
	r = faulted(2, "m", 30, ALL_TIMES);
	fx_task(fx, 1, &r);
	r = faulted(3, "n", 95, ALL_TIMES); /* nothing remains: the times from the calls are kept */
	fx_task(fx, 1, &r);
	fx_runs(fx);
	attempt_classes(fx_attempt(fx, 1, 1), &c);
	assert_near(c.unclassified, -0.03);
	assert_false(c.storage_estimated);
	assert_int_equal(c.unknown, 1u << CREMA_T_lock_wait | 1u << CREMA_T_network_wait |
					    1u << CREMA_T_sleep);
	attempt_classes(fx_attempt(fx, 1, 2), &c);
	assert_true(c.storage_estimated);
	assert_near(c.cls[CREMA_T_storage_wait], 0.06);
	assert_near(c.unclassified, 0);
	attempt_classes(fx_attempt(fx, 1, 3), &c);
	assert_near(c.cls[CREMA_T_storage_wait], 0.005);
	assert_near(c.unclassified, -0.01);
	fx_free(fx);
}

static void test_worker_counts(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 4000, "ok");
	fx_goodbye(fx, 2, 1000, "exit"); /* two workers for 1 s, one for 3 s */
	fx_runs(fx);
	assert_near(metric_value(fx_facts(fx, 0), "avg_workers"), 1.25);
	assert_uint_value(metric_value(&fx->facts, "peak_workers"), 2);
	fx_free(fx);
}

/* However long a run reports to have taken, its series stay small; sums of changes stay exact. */
static void test_a_month_in_few_points(void **state)
{
	struct fixture *fx = fx_new();
	const struct series *s;
	struct task_record r = fx_record(1, "k", "s", 0, 0, 1);

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	TASK_SET(&r, stop_boot_ns, AT(0) + 40 * DAY_NS);
	TASK_SET(&r, wall_ns, 40 * DAY_NS);
	fx_task(fx, 1, &r);
	fx_goodbye(fx, 2, 1000, "exit");
	fx_runs(fx);
	assert_near(metric_value(fx_facts(fx, 0), "avg_workers"), 1 + 1 / (40 * 86400.0));
	assert_uint_value(metric_value(&fx->facts, "peak_workers"), 2);
	s = &fx->facts.tracking->workers;
	assert_in_range(s->n, 7200, 7210);
	assert_float_equal(s->v[s->n - 1].time - s->v[0].time, 40 * 86400.0, 1e-3);
	fx_free(fx);
}

static void feed_transfer(struct fixture *fx, int worker, int ms, const char *seconds)
{
	char json[160];

	snprintf(json, sizeof(json),
		 "{\"digests\": [[\"get-data\", null, null, \"serialize\", \"seconds\", %s]]}",
		 seconds);
	fx_dask(fx, worker, ms, json);
}

/* Transfers outside of tasks are the difference of the probes around the run, in any order of
 * arrival. */
static void test_transfers(void **state)
{
	struct fixture *fx = fx_new();
	const struct facts *f;

	(void)state;
	fx_hello(fx, 1, STACK);
	fx_hello(fx, 2, STACK);
	fx_hello(fx, 3, STACK);
	fx_simple(fx, 1, 1, "a", "work", 0, 5000, 7000, "ok");
	fx_simple(fx, 2, 1, "b", "work", 0, 5000, 7000, "ok");
	feed_transfer(fx, 1, 4900, "3");
	feed_transfer(fx, 1, 7100, "10.5");
	feed_transfer(fx, 1, 1000, "1");
	feed_transfer(fx, 1, 4000, "3");
	feed_transfer(fx, 1, 9000, "11");
	feed_transfer(fx, 2, 4900, "0.5");
	feed_transfer(fx, 2, 6900, "0.75"); /* its last */
	fx_runs(fx);
	f = fx_facts(fx, 0);
	assert_near(metric_value(f, "transfer_serialize_seconds"), 7.5 + 0.25);
	assert_near(metric_value(f, "serialization_time_seconds"), 7.75);
	fx_free(fx);
}

/* For each second of the run: the time since the worker's event loop last responded. */
static void test_last_seen(void **state)
{
	static const int probes[] = {-200, 300, 800, 3400};
	static const double seconds[] = {0.2, 0.2, 1.2, 2.2, 0.6, 1.6}; /* 0, 1, 2, 3, 4, 5 s */
	struct fixture *fx = fx_new();
	const struct series *s;
	size_t i;

	(void)state;
	fx_hello(fx, 1, STACK);
	fx_simple(fx, 1, 1, "a", "work", 0, 0, 5000, "ok");
	for (i = 0; i < 4; i++)
		fx_dask(fx, 1, probes[i], "{\"executing\": 1}");
	fx_runs(fx);
	s = &fx_facts(fx, 0)->tracking->v[0].last_seen;
	assert_int_equal(s->n, 6);
	for (i = 0; i < s->n; i++)
		assert_near(value_real(s->v[i].time - s->v[i].value), seconds[i]);
	fx_free(fx);
}

/* A worker that started before the run and sent no probe then, or whose digests were truncated. */
static void test_unseen_transfers(void **state)
{
	struct fixture *fx;
	int cut;

	(void)state;
	for (cut = 0; cut < 2; cut++) {
		fx = fx_new();
		fx_hello(fx, 1, STACK);
		fx_simple(fx, 1, 1, "a", "work", 0, 5000, 7000, "ok");
		if (cut)
			fx_dask(fx, 1, 1000, "{\"digests\": [], \"digests_cut\": 3}");
		feed_transfer(fx, 1, 7100, "3");
		fx_runs(fx);
		fx_facts(fx, 0);
		assert_unknown(metric_value(&fx->facts, "transfer_serialize_seconds"));
		assert_unknown(metric_value(&fx->facts, "serialization_time_seconds"));
		assert_unknown(metric_value(&fx->facts, "total_serialization_overhead_seconds"));
		fx_free(fx);
	}
}

#define CPU_OF(span, n) "[\"execute\", \"" span "\", \"a\", \"thread-cpu\", \"seconds\", " n "]"
#define CUT "\"digests_cut\": 3, \"digests_whole\": true}"

/* A later sample has no room for the run's span; an earlier one that had it after the run's end
 * counts. */
static void test_a_span_that_is_left_out_stays(void **state)
{
	struct fixture *fx;
	int early;

	(void)state;
	for (early = 0; early < 2; early++) {
		fx = fx_new();
		fx_hello(fx, 1, STACK);
		fx_simple(fx, 1, 1, "a", "work", 0, 1000, 2000, "ok");
		fx_dask(fx, 1, 900, "{\"digests\": [" CPU_OF("work", "1") "]}");
		if (!early)
			fx_dask(fx, 1, 2500,
				"{\"digests\": [" CPU_OF("other", "9") "," CPU_OF("work",
										  "3") "]," CUT);
		fx_dask(fx, 1, 3000, "{\"digests\": [" CPU_OF("other", "10") "]," CUT);
		fx_runs(fx);
		fx_facts(fx, 0);
		if (early)
			assert_unknown(metric_value(&fx->facts, "cpu_time_seconds"));
		else
			assert_near(metric_value(&fx->facts, "cpu_time_seconds"), 3);
		assert_int_equal(fx->runs.v[0].workers.v[0]->digests.n, 2);
		fx_free(fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_span_that_is_left_out_stays),
		cmocka_unit_test(test_numbers_by_hand),
		cmocka_unit_test(test_every_frame_twice_changes_nothing),
		cmocka_unit_test(test_without_savemetrics),
		cmocka_unit_test(test_part_of_a_sum_unknown),
		cmocka_unit_test(test_work_on_what_a_graph_has_read_is_the_users),
		cmocka_unit_test(test_a_work_item_makes_chunks_whole),
		cmocka_unit_test(test_empty_run_is_unknown),
		cmocka_unit_test(test_events_of_a_chunk),
		cmocka_unit_test(test_classes_of_a_task),
		cmocka_unit_test(test_no_estimate_from_an_unknown_rest),
		cmocka_unit_test(test_worker_counts),
		cmocka_unit_test(test_a_month_in_few_points),
		cmocka_unit_test(test_transfers),
		cmocka_unit_test(test_last_seen),
		cmocka_unit_test(test_unseen_transfers),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
