/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_metrics_by_hand.c - one run in which every number of contract/metrics.def is known, each
 * computed by hand. A metric without a line here fails.
 *
 * Three workers: A has 2 threads, B has 1, C has 3 and leaves at 600 ms. Limits are 100 MiB.
 *
 *	ms	0      100             600 620  720           1100    1150  1200
 *	A	| preproc | chunk c0    |   | bad |             | merge      |
 *	B	          | chunk c1                            |      | other|
 *
 * `bad` is a first attempt at c1 that failed; the second one, on B, counts.
 */
#include "report_fixture.h"

#define MIB 1048576

static const char *const stacks[] = {
	"{\"nthreads\": 2, \"memory_limit_bytes\": 104857600, \"worker_address\": \"tcp://a\"}",
	"{\"nthreads\": 1, \"memory_limit_bytes\": 104857600, \"worker_address\": \"tcp://b\"}",
	"{\"nthreads\": 3, \"memory_limit_bytes\": 104857600, \"worker_address\": \"tcp://c\"}",
};

/* Milliseconds of the own thread by class, in the order of counters.def, and the pool's CPU. */
static void times(struct task_record *r, int cpu, int runqueue, int gil, int lock, int network,
		  int storage, int asleep, int pool_cpu)
{
	SET_OWN(r, cpu, cpu);
	SET_OWN(r, runqueue, runqueue);
	SET_OWN(r, gil_wait, gil);
	SET_OWN(r, lock_wait, lock);
	SET_OWN(r, network_wait, network);
	SET_OWN(r, storage_wait, storage);
	SET_OWN(r, sleep, asleep);
	SET_POOL(r, cpu, pool_cpu);
}

/* All counters are known; those that a test does not set are 0. */
static struct task_record record(uint64_t attempt, const char *key, const char *span,
				 uint64_t flags, int start, int stop)
{
	struct task_record r = fx_record(attempt, key, span, flags, start, stop);
	int i;

	for (i = 0; i < CREMA_COUNTS; i++)
		r.count_known |= UINT64_C(1) << i;
	TASK_SET(&r, dataset, T("small"));
	TASK_SET(&r, filename, T("f.root"));
	return r;
}

static struct task_record chunk(uint64_t attempt, const char *key, int start, int stop,
				int64_t events)
{
	struct task_record r = record(attempt, key, "work", CREMA_TASK_CHUNK, start, stop);

	TASK_SET(&r, entrystart, 0);
	TASK_SET(&r, entrystop, events);
	TASK_SET(&r, events, events);
	return r;
}

static void codec(struct task_record *r, uint64_t calls, uint64_t in, uint64_t out, int cpu_ms,
		  int wall_ms)
{
	SET_COUNT(r, decompress_calls, calls);
	SET_COUNT(r, decompress_in_bytes, in);
	SET_COUNT(r, decompress_out_bytes, out);
	SET_COUNT(r, decompress_cpu_ns, (uint64_t)cpu_ms * 1000000u);
	SET_COUNT(r, decompress_wall_ns, (uint64_t)wall_ms * 1000000u);
}

static void memory(struct task_record *r, uint64_t start, uint64_t stop, uint64_t peak)
{
	TASK_SET(r, rss_start_bytes, start * MIB);
	TASK_SET(r, rss_stop_bytes, stop * MIB);
	TASK_SET(r, rss_peak_bytes, peak * MIB);
}

static void feed_c0(struct fixture *fx)
{
	struct task_record r = chunk(2, "c0", 100, 600, 1000);

	times(&r, 200, 50, 30, 20, 40, 100, 10, 100); /* 450 of 500 ms: 50 not classified */
	SET_COUNT(&r, read_bytes, 4000);
	SET_COUNT(&r, read_calls, 4);
	SET_COUNT(&r, late_bytes, 500);
	SET_COUNT(&r, large_read_bytes, 3000);
	SET_COUNT(&r, cached_bytes, 1000);
	SET_COUNT(&r, readahead_bytes, 2096);
	SET_COUNT(&r, storage_read_bytes, 8192);
	SET_COUNT(&r, storage_write_bytes, 4096);
	SET_COUNT(&r, write_bytes, 10);
	SET_COUNT(&r, import_read_bytes, 300);
	SET_COUNT(&r, network_read_bytes, 700);
	SET_COUNT(&r, network_write_bytes, 70);
	codec(&r, 3, 3000, 6000, 20, 25);
	SET_COUNT(&r, compress_cpu_ns, 5000000);
	SET_COUNT(&r, basket_bytes, 3200);
	SET_COUNT(&r, basket_raw_bytes, 6400);
	memory(&r, 10, 12, 120);
	TASK_SET(&r, coffea_bytesread, 5000);
	TASK_SET(&r, coffea_processtime, 0.4);
	TASK_SET(&r, columns, T("Jet_pt\nMuon_pt"));
	fx_task(fx, 1, &r);
}

static void feed_c1(struct fixture *fx)
{
	struct task_record r = chunk(1, "c1", 100, 1100, 3000);

	times(&r, 600, 0, 100, 50, 60, 150, 0, 0); /* 960 of 1000 ms: 40 not classified */
	SET_COUNT(&r, read_bytes, 12000);
	SET_COUNT(&r, read_calls, 6);
	SET_COUNT(&r, large_read_bytes, 10000);
	SET_COUNT(&r, cached_bytes, 10000);
	SET_COUNT(&r, network_read_bytes, 1300);
	SET_COUNT(&r, network_write_bytes, 30);
	codec(&r, 5, 9000, 12000, 80, 100);
	SET_COUNT(&r, basket_bytes, 9600);
	SET_COUNT(&r, basket_raw_bytes, 12800);
	memory(&r, 20, 19, 20);
	TASK_SET(&r, dataset, T("big"));
	TASK_SET(&r, coffea_bytesread, 15000);
	TASK_SET(&r, coffea_processtime, 0.9);
	TASK_SET(&r, columns, T("Muon_pt\nMET_pt\n"));
	fx_task(fx, 2, &r);
}

static void feed_others(struct fixture *fx)
{
	struct task_record bad = chunk(3, "c1", 620, 720, 3000);
	struct task_record pre = record(1, "p", "work", CREMA_TASK_PREPROCESSING, 0, 100);
	struct task_record merge = record(4, "m", "work", CREMA_TASK_MERGE, 1100, 1200);
	struct task_record other = record(2, "o", "work", 0, 1150, 1200);

	times(&bad, 10, 0, 0, 0, 0, 0, 0, 0);
	SET_COUNT(&bad, read_bytes, 100);
	SET_COUNT(&bad, storage_read_bytes, 4096);
	SET_COUNT(&bad, storage_write_bytes, 512);
	codec(&bad, 1, 50, 60, 0, 0);
	TASK_SET(&bad, status, T("erred"));
	fx_task(fx, 1, &bad);

	TASK_SET(&pre, prefix, T("metadata"));
	times(&pre, 50, 0, 0, 0, 20, 10, 0, 0); /* 80 of 100 ms */
	SET_COUNT(&pre, read_bytes, 600);
	SET_COUNT(&pre, read_calls, 2);
	SET_COUNT(&pre, storage_read_bytes, 512);
	SET_COUNT(&pre, import_read_bytes, 100);
	fx_task(fx, 1, &pre);

	TASK_SET(&merge, prefix, T("reduce"));
	times(&merge, 90, 0, 0, 5, 0, 0, 0, 0); /* 95 of 100 ms */
	SET_COUNT(&merge, storage_write_bytes, 512);
	SET_COUNT(&merge, write_bytes, 40);
	codec(&merge, 1, 10, 20, 1, 2);
	fx_task(fx, 1, &merge);

	TASK_SET(&other, prefix, T("lambda"));
	times(&other, 10, 0, 0, 0, 0, 0, 0, 0); /* 10 of 50 ms */
	fx_task(fx, 2, &other);
}

/* One worker's row of a file: its size, and the baskets used as ranges; raw bytes are twice
 * that. */
static void feed_file(struct fixture *fx, int worker, const char *path, uint64_t size,
		      uint64_t from, uint64_t to)
{
	struct ranges set = {0};
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	assert_int_equal(ranges_add(&set, from, to, 9), 0);
	fx_begin(&pk, &b, CREMA_MSG_FILE, 9);
	pack_kv_text(&pk, "path", path);
	pack_kv_text(&pk, "span", "work");
	pack_kv_text(&pk, "kind", "data");
	pack_kv_u64(&pk, "size_bytes", size);
	pack_kv_u64(&pk, "basket_bytes", to - from);
	pack_kv_u64(&pk, "basket_raw_bytes", 2 * (to - from));
	pack_kv_u64(&pk, "basket_extent_bytes", to - from);
	pack_kv_u64(&pk, "unique_basket_bytes", to - from);
	pack_text(&pk, "basket_ranges");
	ranges_pack(&pk, &set);
	fx_end(fx, worker, &b);
	ranges_release(&set);
}

static void feed_sample(struct fixture *fx, int worker, int ms, uint64_t rss_mib, uint64_t cpu)
{
	fx_map(fx, worker, CREMA_MSG_SAMPLE, "boot_ns", AT(ms), "rss_bytes", rss_mib * MIB,
	       "cpu_percent", cpu, NULL);
}

/* Workers 1 and 2 are on one host, 3 on another. */
static void feed_host(struct fixture *fx, int worker, int ms, uint64_t stolen_seconds)
{
	fx_map(fx, worker, CREMA_MSG_HOST, "boot_ns", AT(ms), "stolen_seconds", stolen_seconds,
	       "net_read_bytes", 1000 * stolen_seconds, "net_write_bytes", 10 * stolen_seconds,
	       "disk_read_bytes", 100 * stolen_seconds, "disk_write_bytes", 2 * stolen_seconds,
	       "nfs_set", UINT64_C(2), "nfs_read_bytes", 30 * stolen_seconds,
	       "nfs_server_read_bytes", 7 * stolen_seconds, "lustre_set", UINT64_C(3),
	       "lustre_read_bytes", 50 * stolen_seconds, "lustre_server_read_bytes",
	       40 * stolen_seconds, NULL);
}

static void feed_dask(struct fixture *fx)
{
	fx_dask(fx, 1, -700,
		"{\"gc_seconds\": 2, \"stream_bytes\": 1000,"
		"\"digests\": [[\"get-data\", null, null, \"serialize\", \"seconds\", 4],"
		"[\"memory-monitor\", null, null, \"disk-write\", \"bytes\", 5]]}");
	fx_dask(fx, 1, 400, "{\"executing\": 0, \"nthreads\": 2, \"spilled_bytes\": 100}");
	fx_dask(fx, 1, 1000,
		"{\"executing\": 1, \"ready\": 3, \"nthreads\": 2, \"spilled_bytes\": 50, "
		"\"gc_seconds\": 2.75, \"stream_bytes\": 4000, \"digests\": ["
		"[\"execute\", \"work\", \"task\", \"thread-cpu\", \"seconds\", 0.5],"
		"[\"execute\", \"work\", \"metadata\", \"thread-cpu\", \"seconds\", 0.05],"
		"[\"execute\", \"work\", \"reduce\", \"thread-cpu\", \"seconds\", 0.1],"
		"[\"execute\", \"work\", \"task\", \"thread-noncpu\", \"seconds\", 0.7],"
		"[\"execute\", \"work\", \"reduce\", \"thread-noncpu\", \"seconds\", 0.15],"
		"[\"execute\", \"work\", \"task\", \"memory-read\", \"count\", 3],"
		"[\"execute\", \"work\", \"task\", \"memory-read\", \"bytes\", 77],"
		"[\"execute\", \"work\", \"task\", \"disk-read\", \"bytes\", 11],"
		"[\"execute\", \"work\", \"task\", \"disk-write\", \"bytes\", 13],"
		"[\"execute\", \"work\", \"task\", \"compress\", \"seconds\", 0.01],"
		"[\"execute\", \"work\", \"task\", \"decompress\", \"seconds\", 0.02],"
		"[\"execute\", \"work\", \"task\", \"serialize\", \"seconds\", 0.03],"
		"[\"execute\", \"work\", \"task\", \"deserialize\", \"seconds\", 0.04],"
		"[\"execute\", \"work\", \"task\", \"executor\", \"seconds\", 0.05],"
		"[\"execute\", \"work\", \"task\", \"other\", \"seconds\", 0.06],"
		"[\"get-data\", null, null, \"serialize\", \"seconds\", 4.5],"
		"[\"get-data\", null, null, \"compress\", \"seconds\", 0.25],"
		"[\"get-data\", null, null, \"disk-read\", \"bytes\", 6],"
		"[\"memory-monitor\", null, null, \"disk-write\", \"bytes\", 12],"
		"[\"memory-monitor\", null, null, \"serialize\", \"seconds\", 1],"
		"[\"execute\", \"alien\", \"task\", \"thread-cpu\", \"seconds\", 9]]}");
	fx_dask(fx, 2, 1000,
		"{\"executing\": 1, \"ready\": 0, \"nthreads\": 1, \"spilled_bytes\": 25, "
		"\"gc_seconds\": 0.5, \"stream_bytes\": 600, \"digests\": [[\"execute\", \"work\", "
		"\"task\", \"thread-cpu\", \"seconds\", "
		"0.6]]}");
}

static struct fixture *the_run(bool twice)
{
	struct fixture *fx = fx_new();
	int i;

	fx->twice = twice;
	for (i = 0; i < 3; i++)
		fx_hello(fx, i + 1, stacks[i]);
	feed_c0(fx);
	feed_c1(fx);
	feed_others(fx);
	feed_file(fx, 1, "f.root", 10000, 0, 3000);
	feed_file(fx, 2, "f.root", 10000, 2000, 5000);
	feed_file(fx, 2, "g.root", 4000, 0, 1000);
	feed_sample(fx, 1, 500, 80, 50);
	feed_sample(fx, 1, 1500, 100, 70);
	feed_sample(fx, 2, 500, 30, 30);
	feed_host(fx, 1, -700, 10);
	feed_host(fx, 1, -5, 30);
	feed_host(fx, 2, 900, 32);
	feed_host(fx, 2, 1300, 37);
	feed_host(fx, 1, 9000, 90);
	feed_host(fx, 3, 100, 200);
	feed_host(fx, 3, 500, 201);
	feed_dask(fx);
	fx_goodbye(fx, 3, 600, "exit");
	fx_runs(fx);
	assert_int_equal(fx->runs.n, 1);
	return fx;
}

struct expected {
	const char *id;
	double value;
};

static const struct expected by_hand[] = {
	/* wall 1.2 s; requested 5000 + 15000; read 4000 + 12000 + 600; storage 8192 + 512 */
	{"overall_rate_gbps", 20000 * 8 / 1.2 / 1e9},
	{"overall_rate_mbs", 20000 / 1.2 / 1e6},
	{"read_rate_mbs", 16600 / 1.2 / 1e6},
	{"storage_read_rate_mbs", 8704 / 1.2 / 1e6},
	{"decompressed_rate_mbs", 18000 / 1.2 / 1e6},
	{"storage_write_rate_mbs", 4608 / 1.2 / 1e6}, /* 4096 + 512 */
	{"network_read_rate_mbs", 2000 / 1.2 / 1e6},  /* 700 + 1300 */
	{"network_write_rate_mbs", 100 / 1.2 / 1e6},  /* 70 + 30 */
	/* 1000 + 3000 events; process() took 0.4 + 0.9 s; CPU 0.2 + 0.1 (pool) + 0.6 s; 5 cores */
	{"event_rate_wall_khz", 4000 / 1.2 / 1000},
	{"event_rate_agg_khz", 4000 / 1.3 / 1000},
	{"event_rate_agg_khz_true", 4000 / 0.9 / 1000},
	{"event_rate_core_hz", 4000 / (1.2 * 5)},
	{"event_rate_core_khz", 4000 / (1.2 * 5) / 1000},

	{"total_events", 4000},
	{"num_chunks", 2},
	{"num_chunks_all", 3},
	{"num_failed_chunks", 1},
	{"num_columns", 3}, /* Jet_pt, Muon_pt, MET_pt */
	{"wall_time", 1.2},
	{"workers_wall_time", 1.2},
	{"averaged_seconds", 1.2},
	{"preprocessing_elapsed_seconds", 0.1},
	{"processing_elapsed_seconds", 1.0}, /* from 100 to 1100 ms */
	{"preprocessing_task_seconds", 0.1},
	{"processing_task_seconds", 1.5}, /* 0.5 + 1.0 */
	{"merging_task_seconds", 0.1},
	{"num_tasks", 5},
	{"num_attempts", 6},

	{"total_bytes_read_coffea", 20000},
	{"read_bytes", 16600},
	{"read_bytes_all", 16700},
	{"read_calls", 12}, /* 4 + 6 + 2 */
	{"late_bytes", 500},
	{"basket_bytes", 12800},	     /* 3200 + 9600 */
	{"basket_raw_bytes", 19200},	     /* 6400 + 12800 */
	{"read_amplification", 1.25},	     /* chunks read 16000 of 12800 */
	{"requested_amplification", 1.5625}, /* 20000 / 12800 */
	{"outside_basket_bytes", 3200},	     /* 16000 - 12800 */
	{"outside_basket_percent", 20},	     /* of 16000 */
	{"requested_outside_percent", 36},   /* 7200 / 20000 */
	{"large_read_bytes", 13000},	     /* 3000 + 10000 */
	{"cached_bytes", 11000},	     /* 1000 + 10000 */
	{"readahead_bytes", 2096},
	{"import_read_bytes", 400}, /* 300 + 100 */
	{"mapped_bytes", 0},
	{"disk_read_bytes", 8704},	/* 8192 + 512 */
	{"disk_read_bytes_all", 12800}, /* + 4096 of the bad one */
	{"storage_known_bytes", 8704},
	{"dask_spill_read_bytes", 11 + 6},
	{"disk_write_bytes", 4608},	/* 4096 + 512 */
	{"disk_write_bytes_all", 5120}, /* + 512 */
	{"dask_spill_write_bytes", 13 + 12 - 5},
	{"network_read_bytes", 2000},		     /* 700 + 1300 */
	{"network_write_bytes", 100},		     /* 70 + 30 */
	{"write_bytes", 50},			     /* 10 + 40 */
	{"bytes_read_compressed", 12000},	     /* 3000 + 9000, not the merge's 10 */
	{"bytes_read_uncompressed", 18000},	     /* 6000 + 12000 */
	{"bytes_read_compressed_all", 12050},	     /* + 50 */
	{"bytes_read_uncompressed_all", 18060},	     /* + 60 */
	{"decompress_calls", 8},		     /* 3 + 5 */
	{"compression_ratio", 1.5},		     /* 18000 / 12000 */
	{"avg_bytes_read_percent", (50 + 25) / 2.0}, /* [0, 5000) of 10000; 1000 of 4000 */
	{"total_bytes_memory_read_dask", 77},
	{"memory_read_count", 3},

	/* 3 workers until 0.6 s, then 2: points 3 (0 s), 3, 2 (0.6 s), 2 (1 s), 2 (1.2 s) */
	{"avg_workers", (3 * 0.6 + 2 * 0.6) / 1.2},
	{"mean_workers", (3 + 3 + 2 + 2 + 2) / 5.0},
	{"peak_workers", 3},
	{"cores_per_worker", (2 + 1 + 3) / 3.0},
	{"total_cores", 2.5 * 2},
	/* A: (80 + 100) / 2 over its second; B: 30; C has no sample */
	{"avg_memory_per_worker_bytes", (90 + 30) / 2.0 * MIB},
	{"peak_memory_per_worker_bytes", 120.0 * MIB}, /* inside c0 */
	{"peak_memory_bytes", 120.0 * MIB},
	{"avg_memory_utilization_percent", (80 + 100 + 30) / 3.0},
	{"min_memory_utilization_percent", 30},
	{"max_memory_utilization_percent", 100},
	{"memory_pressure", 1},
	{"concurrent_runs", 0},
	{"spilled_bytes", 100 + 25},
	/* at 1.0 and 1.2 s A uses 1 of 2 and B 1 of 1: 2 of 3; at 0 s nothing is known */
	{"avg_cpu_utilization_percent", 200 / 3.0},
	{"avg_worker_cpu_percent", (50 + 70 + 30) / 3.0},
	{"worker_tracking_interval", 1},
	/* 37 - 30 on one host and 201 - 200 on the other, times feed_host()'s factors; the busiest
	 * interval is from 0.9 to 1.3 s: 37 - 32 */
	{"host_net_read_bytes", 8000},
	{"host_net_write_bytes", 80},
	{"host_disk_read_bytes", 800},
	{"host_disk_write_bytes", 16},
	{"host_net_read_peak_mbs", 5000 / 0.4 / 1e6},
	{"host_net_write_peak_mbs", 50 / 0.4 / 1e6},
	{"host_disk_read_peak_mbs", 500 / 0.4 / 1e6},
	{"host_disk_write_peak_mbs", 10 / 0.4 / 1e6},
	{"host_nfs_read_bytes", 240},
	{"host_nfs_server_read_bytes", 56},
	{"host_lustre_read_bytes", 400},
	{"host_lustre_server_read_bytes", 320},
	{"track_workers", 1},

	{"total_cpu_time", 1.3},
	{"total_cpu_time_true", 0.9},
	/* 200 + 100 + 600 + bad 10 + pre 50 + merge 90 + other 10 ms */
	{"total_cpu_time_true_all", 1.06},
	{"avg_cpu_time_per_chunk", 0.65},
	{"avg_cpu_time_per_chunk_true", 0.45},
	{"core_efficiency", 1.3 / (1.2 * 5)},
	{"core_efficiency_true", 0.15}, /* 0.9 / 6 */
	{"fine_cpu_efficiency", 1.25 / 6},
	{"speedup_factor", 1.3 / 1.2},
	{"speedup_factor_true", 0.75},
	{"io_overhead_percent", 0.85 / 1.2 * 100},	/* Dask's 0.7 + 0.15 */
	{"io_overhead_percent_true", 0.38 / 1.2 * 100}, /* storage 0.26 + network 0.12 */
	{"efficiency_ratio_percent", 1.3 / 1.2 * 100},
	{"efficiency_ratio_percent_true", 75},
	/* 1.2 s * 5 threads - (500 + 1000 + 100 + 100 + 100 + 50) ms */
	{"idle_thread_seconds", 6 - 1.85},
	/* A 100 + 500 + 100, B 1000 + 50, C 0 ms: 1050 / (1750 / 3) */
	{"worker_imbalance", 1.8},

	{"task_wall_seconds", 1.75},
	{"task_cpu_seconds", 0.95}, /* 200 + 600 + 50 + 90 + 10 ms */
	{"task_pool_cpu_seconds", 0.1},
	{"runqueue_wait_seconds", 0.05},
	{"gil_wait_seconds", 0.13},	/* 30 + 100 */
	{"lock_wait_seconds", 0.075},	/* 20 + 50 + 5 */
	{"network_wait_seconds", 0.12}, /* 40 + 60 + 20 */
	{"storage_wait_seconds", 0.26}, /* 100 + 150 + 10 */
	{"sleep_seconds", 0.01},
	{"unclassified_seconds", 0.155}, /* 50 + 40 + 20 + 5 + 40 */
	{"stolen_cpu_seconds",
	 8}, /* 37 - 30, and 201 - 200 of the host that was only sampled during the run */
	{"unclassified_over_50ms_seconds", 0.115}, /* without the other's 40: it took 50 ms */

	{"cpu_time_seconds", 1.25}, /* 0.5 + 0.05 + 0.1 + 0.6 */
	{"cpu_time_seconds_true", 1.05},
	{"io_time_seconds", 0.85},
	{"io_time_seconds_true", 0.38},
	{"compression_time_seconds", 0.005},
	{"dask_compress_seconds", 0.01 + 0.25},
	{"decompression_time_seconds", 0.101}, /* 20 + 80 + 1 */
	{"decompression_wall_seconds", 0.127}, /* 25 + 100 + 2 */
	{"dask_decompress_seconds", 0.02},
	/* outside of tasks A packed for 4.5 + 1 - 4 s since its probe before the run */
	{"transfer_serialize_seconds", 1.5},
	{"transfer_deserialize_seconds", 0},
	{"transfer_compress_seconds", 0.25},
	{"transfer_decompress_seconds", 0},
	{"serialization_time_seconds", 0.03 + 1.5},
	{"deserialization_time_seconds", 0.04},
	{"gc_seconds", 0.75 + 0.5},
	{"task_message_bytes", 3000 + 600},
	{"executor_time_seconds", 0.05},
	{"other_time_seconds", 0.06},
	{"processor_cpu_time_seconds", 1.1}, /* 0.5 + 0.6: prefix "task" in span "work" */
	{"processor_cpu_time_seconds_true", 0.9},
	{"processor_noncpu_time_seconds", 0.7},
	{"processor_cpu_percentage", 1.1 / 1.8 * 100},
	{"processor_noncpu_percentage", 0.7 / 1.8 * 100},
	{"overhead_cpu_time_seconds", 0.15},	  /* 0.05 + 0.1 */
	{"overhead_cpu_time_seconds_true", 0.15}, /* 50 + 90 + 10 ms */
	{"overhead_noncpu_time_seconds", 0.15},
	{"total_compression_overhead_seconds", 0.106},
	{"dask_total_compression_overhead_seconds", 0.28},
	{"total_serialization_overhead_seconds", 1.57},

	{"chunk_time_min_seconds", 0.4},
	{"chunk_time_max_seconds", 0.9},
	{"chunk_time_mean_seconds", 0.65},
	{"chunk_time_std_seconds", 0.25},	/* sqrt((0.25^2 + 0.25^2) / 2) */
	{"chunk_duration_std", 0.353553390593}, /* sqrt(0.125 / 1) */
	{"chunk_wall_min_seconds", 0.5},
	{"chunk_wall_max_seconds", 1.0},
	{"chunk_wall_mean_seconds", 0.75},
	{"chunk_wall_std_seconds", 0.25},
	{"time_per_event_seconds", 1.3 / 4000},
	{"time_per_event_std_seconds", 0.00005}, /* 0.0004 and 0.0003 */
	{"cpu_time_per_event_seconds", 0.9 / 4000},
	/* +2 MiB over 1000 events, -1 MiB over 3000: 2097.152 and -349.525333... */
	{"memory_per_event_bytes", (2097.152 - MIB / 3000.0) / 2},
	{"memory_per_event_std_bytes", (2097.152 + MIB / 3000.0) / 2},
	{"chunk_mem_delta_mean_mb", 0.5},
	{"chunk_mem_delta_min_mb", -1},
	{"chunk_mem_delta_max_mb", 2},
	{"chunk_mem_delta_std_mb", 2.12132034356}, /* sqrt(1.5^2 + 1.5^2) */
	{"chunk_events_mean", 2000},
	{"chunk_events_min", 1000},
	{"chunk_events_max", 3000},

	{"wasted_attempts", 1},
	{"wasted_wall_seconds", 0.1},
	{"wasted_cpu_seconds", 0.01},
	{"wasted_read_bytes", 100},
};

static const struct expected *find(const char *id)
{
	size_t i;

	for (i = 0; i < sizeof(by_hand) / sizeof(*by_hand); i++) {
		if (!strcmp(by_hand[i].id, id))
			return &by_hand[i];
	}
	return NULL;
}

static void check_all(const struct facts *f)
{
	const struct expected *e;
	double got, off;
	size_t i;
	bool known;

	for (i = 0; i < metric_count; i++) {
		if (metric_table[i].kind != METRIC_NUM)
			continue;
		e = find(metric_table[i].id);
		if (!e)
			fail_msg("%s was not worked out by hand", metric_table[i].id);
		got = value_number(metric_value(f, e->id), &known);
		off = got > e->value ? got - e->value : e->value - got;
		if (!known ||
		    off > 2e-7 * /* UTC as a double */ (1 + (e->value < 0 ? -e->value : e->value)))
			fail_msg("%s is %.12g (known: %d), not %.12g", e->id, got, known, e->value);
	}
}

static void test_every_number(void **state)
{
	struct fixture *fx = the_run(false);

	(void)state;
	check_all(fx_facts(fx, 0));
	assert_string_equal(metric_value(&fx->facts, "wall_time_source").v.s, "workers");
	/* CPU per event: 0.3 s / 1000 against 0.6 s / 3000 */
	assert_string_equal(metric_value(&fx->facts, "slowest_dataset").v.s, "small");
	assert_string_equal(metric_value(&fx->facts, "largest_dataset").v.s, "big");
	fx_free(fx);
}

static void test_every_frame_twice(void **state)
{
	struct fixture *fx = the_run(true);

	(void)state;
	check_all(fx_facts(fx, 0));
	fx_free(fx);
}

/*
 * The client's block from -1 to 2 s: A's first message is at -0.7 s, that of B and C at 0, C left
 * at 0.6 s. No worker for 0.3 s, one for 0.7 s, three for 0.6 s, two for 1.4 s.
 */
static void test_the_clients_block(void **state)
{
	struct fixture *fx = the_run(false);
	struct run *r = &fx->runs.v[0];

	(void)state;
	assert_true(run_take_block(r, BASE - 1.0, BASE + 2.0));
	fx_facts(fx, 0);
	facts_client_wall(&fx->facts, 3);
	assert_near(metric_value(&fx->facts, "averaged_seconds"), 3);
	assert_near(metric_value(&fx->facts, "avg_workers"), (0.7 + 3 * 0.6 + 2 * 1.4) / 3);
	assert_near(metric_value(&fx->facts, "total_cores"), (0.7 + 3 * 0.6 + 2 * 1.4) / 3 * 2);
	assert_near(metric_value(&fx->facts, "idle_thread_seconds"), 2 * 5.3 - 1.85);
	assert_near(metric_value(&fx->facts, "workers_wall_time"), 1.2);
	fx_free(fx);
}

/* With clocks that differ by less than a second the block still contains the tasks; beyond that it
 * is ignored. */
static void test_a_block_by_another_clock(void **state)
{
	struct fixture *fx = the_run(false);
	struct run *r = &fx->runs.v[0];

	(void)state;
	assert_false(run_take_block(r, BASE + 1.5, BASE + 9.0));
	assert_false(run_take_block(r, BASE - 9.0, BASE - 0.5));
	assert_false(run_has_block(r));
	assert_near(metric_value(fx_facts(fx, 0), "averaged_seconds"), 1.2);
	assert_true(run_take_block(r, BASE + 0.5, BASE + 3.0));
	assert_near(metric_value(fx_facts(fx, 0), "averaged_seconds"), 3);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_every_frame_twice),
		cmocka_unit_test(test_the_clients_block),
		cmocka_unit_test(test_a_block_by_another_clock),
	};

	return cmocka_run_group_tests_name("metrics_by_hand", tests, NULL, NULL);
}
