/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_findings_inputs.c - runs in which a check has more or fewer inputs than at its thresholds
 * (findings_cases.h): its sentence and evidence then, that it finds nothing, or which input it
 * lacks.
 */
#include "findings_cases.h"

#define QUIET "quiet"
#define IDLE "nothing to look at"

/* A file that tasks mapped, and one without baskets, each in addition to the case's file. */
static void mapped_file(struct fixture *fx)
{
	case_read_amplification(fx, AT);
	fx_pairs(fx, 1, CREMA_MSG_FILE, "path:s", "/data/\"<i>\"\n.root", "span:s", "span",
		 "kind:s", "data", "mapped_bytes:u", UINT64_C(1), NULL);
}

static void file_without_baskets(struct fixture *fx)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	case_read_amplification(fx, AT);
	fx_begin(&pk, &b, CREMA_MSG_FILE, 9);
	pack_kv_text(&pk, "path", "/data/weights");
	pack_kv_text(&pk, "span", "span");
	pack_kv_text(&pk, "kind", "data");
	pack_kv_u64(&pk, "read_calls", 1);
	pack_kv_u64(&pk, "read_bytes", 90000000);
	pack_kv_u64(&pk, "extent_bytes", 90000000);
	pack_kv_u64(&pk, "unique_bytes", 90000000);
	pack_kv_u64(&pk, "basket_calls", 0);
	pack_range(&pk, "ranges", 90000000);
	fx_end(fx, 1, &b);
}

/* A chunk with all counts except for those that are removed. */
static void chunk_lacks(struct fixture *fx, uint64_t counts, uint64_t mapped, bool cpu)
{
	struct task_record r = chunk(1, "a", 0, 4000, "/a", 0, 1000);

	worker(fx, 1, 1, 5000);
	r.count_known &= ~counts;
	SET_COUNT(&r, read_calls, 1);
	if (!(counts & CREMA_COUNT_BIT(read_bytes)))
		SET_COUNT(&r, read_bytes, 20000000);
	SET_COUNT(&r, mapped_bytes, mapped);
	if (!cpu)
		r.own_known &= ~(1u << CREMA_T_cpu);
	fx_task(fx, 1, &r);
}

static void no_read_bytes(struct fixture *fx)
{
	chunk_lacks(fx, CREMA_COUNT_BIT(read_bytes), 0, true);
}

static void mapped_too(struct fixture *fx)
{
	chunk_lacks(fx, 0, 1, true);
}

static void no_cpu(struct fixture *fx)
{
	chunk_lacks(fx, 0, 0, false);
}

/* Baskets in the tree's own record are counted, but their bytes belong to the record. */
static void embedded(struct fixture *fx)
{
	struct task_record r;
	char key[16];
	int i;

	fx_hello(fx, 1, "{}");
	for (i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = chunk((uint64_t)i + 1, key, i * 100, i * 100 + 100, "/data/a.root", i * 1000,
			  i * 1000 + 1000);
		SET_COUNT(&r, read_bytes, 250000);
		SET_COUNT(&r, embedded_baskets, 1);
		fx_task(fx, 1, &r);
	}
}

/* 4 chunks of 200 ms for each of 5 files; process() takes 80 ms of each. */
static void five_files(struct fixture *fx)
{
	struct task_record r;
	char key[16], path[16];
	int i;

	worker(fx, 1, 1, 4000);
	for (i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		snprintf(path, sizeof(path), "/%d", i / 4);
		r = chunk((uint64_t)i + 1, key, i * 200, i * 200 + 200, path, i % 4 * 1000,
			  i % 4 * 1000 + 1000);
		TASK_SET(&r, coffea_processtime, 0.08);
		fx_task(fx, 1, &r);
	}
}

static void threads_unknown(struct fixture *fx)
{
	struct task_record r = chunk(1, "a", 0, 1000, "/a", 0, 1000);

	worker(fx, 1, 0, 4000);
	TASK_SET(&r, coffea_processtime, 0.1);
	fx_task(fx, 1, &r);
}

/* The output of a stream at its end is not reported with its input. */
static void nothing_unpacked(struct fixture *fx)
{
	case_decompression(fx, BELOW);
	codec(fx, "zlib.decompress", "zlib", 50000000, 0, 1);
}

static void packed_without_cpu(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	fx_pairs(fx, 1, CREMA_MSG_CODEC, "function:s", "zlib.decompress", "codec:s", "zlib",
		 "direction:s", "decompress", "span:s", "span", "calls:u", UINT64_C(1),
		 "in_bytes:u", UINT64_C(20000000), "out_bytes:u", UINT64_C(20000000), NULL);
}

static void refused_and_lost(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	fx_map(fx, 1, CREMA_MSG_TOTALS, "boot_ns", AT(900), "tasks_refused", UINT64_C(2000),
	       "records_refused", UINT64_C(300), NULL);
	fx->seq[1] += 307; /* refused records have sequence numbers, too */
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(950), NULL);
}

/* As case_memory_growth(): 100,000,002 bytes in 6 tasks; the distance to the limit is 24 times that
 * of a task, less one byte. */
static void grows_to_a_limit(struct fixture *fx)
{
	const char *facts = "{\"nthreads\": 1, \"memory_limit_bytes\": 1000000009}";
	struct task_record r;
	char key[16];
	int i;

	fx_hello(fx, 1, facts);
	for (i = 0; i < 10; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, i * 100, i * 100 + 100);
		TASK_SET(&r, rss_stop_bytes, i < 4 ? 500000000 : i < 6 ? 550000000 : 600000002);
		fx_task(fx, 1, &r);
	}
	fx_dask(fx, 1, 500, facts);
}

/* The file with the most repeated baskets is not the one with the most baskets. */
static void two_that_read_again(struct fixture *fx)
{
	struct task_record r = chunk(1, "a", 0, 1000, "/again.root", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, basket_bytes, 1000000);
	SET_COUNT(&r, repeated_basket_bytes, 900000);
	fx_task(fx, 1, &r);
	r = chunk(2, "b", 1000, 2000, "/most.root", 0, 1000);
	SET_COUNT(&r, basket_bytes, 2000000);
	SET_COUNT(&r, repeated_basket_bytes, 600000);
	fx_task(fx, 1, &r);
}

static void columns_without_ranges(struct fixture *fx)
{
	const struct file_of f = {1000000, 1000000, 750000, 750000, false};
	struct task_record r = chunk(1, "a", 0, 1000, "/data/a.root", 0, 1000);
	char columns[1000] = "c";
	int i;

	fx_hello(fx, 1, "{}");
	for (i = 1; i < 50; i++)
		strcat(columns, "\nc");
	TASK_SET(&r, columns, T(columns));
	fx_task(fx, 1, &r);
	file(fx, "/data/a.root", &f);
}

/* 2 s of CPU: the thresholds are twice as high. */
static void writes(struct fixture *fx, uint64_t calls, uint64_t syncs)
{
	struct task_record r = work(1, "a", 0, 4000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, 2000);
	SET_COUNT(&r, write_calls, calls);
	SET_COUNT(&r, write_bytes, calls * 1024);
	SET_COUNT(&r, sync_calls, syncs);
	fx_task(fx, 1, &r);
}

static void writes_enough(struct fixture *fx)
{
	writes(fx, 10000, 99);
}

static void syncs_enough(struct fixture *fx)
{
	writes(fx, 200, 100);
}

static void writes_too_few(struct fixture *fx)
{
	writes(fx, 9999, 99);
}

/* Tasks take 600 to 800 ms on one worker and 230 to 290 on another: the median of all is 280. */
static void slow_in_disorder(struct fixture *fx)
{
	static const int slow[] = {800, 600, 700, 650},
			 others[] = {290, 230, 280, 260, 250, 240, 270};
	struct task_record r;
	int i, at = 0;
	char key[8];

	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	for (i = 0; i < 11; at = i == 3 ? 0 : at + 1000, i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = i < 4 ? work((uint64_t)i + 1, key, at, at + slow[i])
			  : work((uint64_t)i - 3, key, at, at + others[i - 4]);
		fx_task(fx, i < 4 ? 1 : 2, &r);
	}
}

static void no_worker_left(struct fixture *fx)
{
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 0, 1000, "killed");
	fx_dask(fx, 1, 2000,
		"{\"scheduler\": {\"age\": 1.5, \"clients\": 1, \"prefixes\": [[\"task\", 5, 2, 9, "
		"1]]}, \"digests\": []}");
	fx_goodbye(fx, 1, 3000, "killed");
}

static void no_wall(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 4000);

	worker(fx, 1, 1, 5000);
	fx_task(fx, 1, &r);
	r = work(2, "b", 0, 4000);
	r.known &= ~(UINT64_C(1) << TASK_F_wall_ns);
	fx_task(fx, 1, &r);
}

static void mostly_network(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 4000);

	worker(fx, 1, 1, 5000);
	SET_OWN(&r, cpu, 1000);
	SET_OWN(&r, network_wait, 2000);
	SET_OWN(&r, lock_wait, 500);
	fx_task(fx, 1, &r);
}

static void mostly_nothing(struct fixture *fx)
{
	worker(fx, 1, 2, 5000);
	task_of(fx, 1, 1, "a", 0, 4000, 3500);
}

/* As case_tail(), in two tasks on each of two threads; the second ones begin later. */
static void tail_of_many(struct fixture *fx)
{
	worker(fx, 1, 4, 11000);
	task_of(fx, 1, 1, "a", 0, 10000, 10000);
	task_of(fx, 1, 2, "b", 0, 4000, 1);
	task_of(fx, 1, 3, "c", 0, 4000, 1);
	task_of(fx, 1, 4, "d", 4100, 3900, 1);
	task_of(fx, 1, 5, "e", 4100, 3900, 1);
}

/* None of its tasks has classes of time. */
static void asynchronous(struct fixture *fx)
{
	fx_hello(fx, 1, "{\"nthreads\": 1}");
	fx_simple(fx, 1, 1, "a", "span", CREMA_TASK_ASYNC, 0, 1000, "ok");
}

static void lock_at_a_site(struct fixture *fx)
{
	case_lock_wait(fx, AT);
	long_wait(fx, "lock_wait_ns", 900000000, true);
}

static void half_cached(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 4000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, storage_wait, 2000);
	SET_COUNT(&r, large_read_bytes, 8000000);
	SET_COUNT(&r, cached_bytes, 3000000);
	fx_task(fx, 1, &r);
}

/* Few slow responses from one server, many fast ones from another; the third has the longest time
 * in total. */
static void three_servers(struct fixture *fx)
{
	case_network_wait(fx, AT);
	server_row(fx, "slow", 1, 0, 50000000);
	server_row(fx, "many", 900, 0, 90000000);
	server_row(fx, "most", 40, 0, 100000000);
}

/* Concurrent lookups on pool threads: only as much as the wait for the network counts. */
static void long_lookup(struct fixture *fx, const char *on)
{
	struct task_record r = work(1, "a", 0, 4000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, network_wait, 500);
	SET_COUNT(&r, lookup_calls, 1);
	SET_COUNT(&r, lookup_ns, 5000000000);
	fx_task(fx, 1, &r);
	long_wait_on(fx, "network_wait_ns", UINT64_C(300000000), true, on, "db.example");
}

static void a_slow_host(struct fixture *fx)
{
	long_lookup(fx, "host");
}

static void a_slow_peer(struct fixture *fx)
{
	long_lookup(fx, "socket");
}

static void one_answer(struct fixture *fx)
{
	case_network_wait(fx, AT);
	server_row(fx, "one", 1, 0, 50000000);
}

/* A task of 4 s that waits 1 s for a core, and for locks; its pool threads wait for half of their
 * time. */
static void pools(struct fixture *fx, int lock_ms, int pool_ms)
{
	struct task_record r = work(1, "a", 0, 4000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, runqueue, 1000);
	SET_OWN(&r, lock_wait, lock_ms);
	SET_COUNT(&r, pool_wall_ns, (uint64_t)pool_ms * 1000000);
	SET_POOL(&r, runqueue, pool_ms / 2);
	fx_task(fx, 1, &r);
}

static void small_pool(struct fixture *fx)
{
	pools(fx, 1000, 400);
}

static void busy_pool(struct fixture *fx)
{
	pools(fx, 2000, 4000);
}

/* 12 s of 40 s are unclassified; programs may have used a tenth of that. */
static void programs(struct fixture *fx, uint64_t before_ms, uint64_t children_ms)
{
	struct task_record r = work(1, "a", 0, 40000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, 28000);
	fx_task(fx, 1, &r);
	totals_at(fx, 1, 0, 0, 0, before_ms);
	totals_at(fx, 39000, 0, 0, 28000, children_ms);
}

/* The programs of an earlier run are not why this one waited. */
static void earlier_programs(struct fixture *fx)
{
	programs(fx, 1200, 1200);
}

static void some_programs(struct fixture *fx)
{
	programs(fx, 0, 1200);
}

static void few_programs(struct fixture *fx)
{
	programs(fx, 0, 1199);
}

/* 3.5 s of CPU for 1,000 events, of which codecs used 750 ms. */
static void computes(struct fixture *fx)
{
	struct task_record r = chunk(1, "a", 0, 4000, "/a", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, 3500);
	SET_COUNT(&r, decompress_cpu_ns, 500000000);
	SET_COUNT(&r, compress_cpu_ns, 250000000);
	fx_task(fx, 1, &r);
}

static const struct input {
	void (*make)(struct fixture *fx);
	const char *id;
	/* part of the sentence; the missing input, if there is no evidence; QUIET, IDLE */
	const char *text, *evidence;
} inputs[] = {
	{mapped_file, "read_amplification", "unique_bytes", NULL},
	{file_without_baskets, "read_amplification", "of the 20.00 MB read from files",
	 "unique_bytes=20000000 bytes; unique_basket_bytes=10000000 bytes; amplification=2; "
	 "file=/data/\"<i>\"\n.root; file_outside_bytes=10000000 bytes"},
	{no_read_bytes, "cold_cache", "read_bytes", NULL},
	{no_read_bytes, "warm_cache", "read_bytes", NULL},
	{no_read_bytes, "not_by_coffea", "read_bytes", NULL},
	{mapped_too, "cold_cache", "read_bytes", NULL},
	{mapped_too, "warm_cache", "read_bytes", NULL},
	{no_cpu, "low_cpu_efficiency", "total_cpu_time_true_all", NULL},
	/* 16 of 20 chunks of 250 kB: four of 5,000 events remain */
	{embedded, "metadata_reread", "chunks of 1,000 events read 100 % outside of their baskets",
	 "events_per_chunk=1000 events; chunks=20 chunks; chunk_read_bytes=5000000 bytes; "
	 "chunk_outside_bytes=5000000 bytes; chunk_outside_percent=100 %; chunksize=5000 events; "
	 "saved_bytes=4000000 bytes"},
	/* 5 x 120 ms and 1.6 s instead of 4 s */
	{five_files, "chunk_overhead", "120.0 ms for each of 20 chunks of 1,000 events",
	 "chunks=20 chunks; events_per_chunk=1000 events; chunk_wall_seconds=4 s; "
	 "processtime_seconds=1.6 s; overhead_seconds=2.4 s; overhead_percent=60 %; "
	 "overhead_seconds_per_chunk=0.12 s; chunksize=5000 events; chunks_then=5 chunks"},
	{threads_unknown, "chunk_overhead", "total_cores", NULL},
	{nothing_unpacked, "low_compression", QUIET, NULL},
	{packed_without_cpu, "low_compression", "ZLIB expanded 20.00 MB to only 20.00 MB (1.00x)",
	 "codec=zlib; decompress_in_bytes=20000000 bytes; decompress_out_bytes=20000000 bytes; "
	 "codec_ratio=1"},
	{refused_and_lost, "incomplete",
	 "data is missing: 2000 tasks refused by full tables, 300 records refused, 7 records lost "
	 "in transit",
	 "tasks_refused=2000; records_refused=300; records_lost=7"},
	{grows_to_a_limit, "memory_growth",
	 "16.67 MB per task; at this rate it reaches its limit of 1.000 GB in 23 tasks",
	 "worker=node:1; early_rss_bytes=500000000 bytes; late_rss_bytes=600000002 bytes; "
	 "bytes_per_task=16666667 bytes; memory_limit_bytes=1000000009 bytes; tasks_left=23 "
	 "tasks"},
	{two_that_read_again, "reread_in_task",
	 "50 % of the baskets (1.500 MB of 3.000 MB) had been decompressed before by the same "
	 "task: it opens a file or reads a column repeatedly; most of them in file '/again.root'",
	 "repeated_basket_bytes=1500000 bytes; basket_bytes=3000000 bytes; percent=50 %; "
	 "file=/again.root"},
	{columns_without_ranges, "wide_read", "unique_basket_bytes", NULL},
	{writes_enough, "small_writes", "10,000 times, 1.024 kB on average, in 2.000 s of CPU",
	 "write_calls=10000 calls; write_bytes=10240000 bytes; mean_bytes=1024 bytes; "
	 "task_cpu_seconds=2 s"},
	{syncs_enough, "small_writes",
	 "200 times, 1.024 kB on average, in 2.000 s of CPU, and 100 times until it was on the "
	 "disk (fsync)",
	 "write_calls=200 calls; write_bytes=204800 bytes; mean_bytes=1024 bytes; "
	 "task_cpu_seconds=2 s; sync_calls=100 calls"},
	{writes_too_few, "small_writes", QUIET, NULL},
	/* 520, 320, 420 and 370 ms more */
	{slow_in_disorder, "slow_worker",
	 "the 4 tasks 'task' on 'node:1' took longer than elsewhere: their median is 650.0 ms, "
	 "that of all 11 is 280.0 ms",
	 "worker=node:1; prefix=task; tasks=4 tasks; tasks_of_all=11 tasks; median_seconds=0.65 s; "
	 "median_of_all_seconds=0.28 s; excess_seconds=1.63 s"},
	{no_wall, "idle_threads", "tasks: wall_seconds", NULL},
	{mostly_network, "low_cpu_efficiency",
	 "CPU was busy for 25 % of the available thread time: 1 of 4 thread-seconds; threads were "
	 "waiting for the "
	 "network for 50 %",
	 "total_cpu_time_true_all=1 s; thread_seconds=4 s; percent=25 %; most=waiting for the "
	 "network; most_seconds=2 s; most_percent=50 %"},
	{mostly_nothing, "low_cpu_efficiency",
	 "CPU was busy for 44 % of the available thread time: 3.500 of 8 thread-seconds; threads "
	 "were without a "
	 "task for 50 %",
	 "total_cpu_time_true_all=3.5 s; thread_seconds=8 s; percent=43.75 %; most=without a task; "
	 "most_seconds=4 s; most_percent=50 %"},
	{tail_of_many, "tail", "for the last 20 % of the wall time (2.000 s)",
	 "tail_seconds=2 s; wall_time=10 s; percent=20 %; threads=4 threads; "
	 "tail_idle_thread_seconds=6 s; last_prefix=task"},
	{asynchronous, "gil_wait", "gil_wait_seconds", NULL},
	{asynchronous, "lock_wait", "lock_wait_seconds", NULL},
	{asynchronous, "storage_wait", "storage_wait_seconds", NULL},
	{asynchronous, "network_wait", "network_wait_seconds", NULL},
	{asynchronous, "run_queue", "runqueue_wait_seconds", NULL},
	{asynchronous, "sleeping", "sleep_seconds", NULL},
	{asynchronous, "unclassified", "unclassified_seconds", NULL},
	{asynchronous, "cpu_bound", "cpu_and_runqueue_seconds", NULL},
	{lock_at_a_site, "lock_wait",
	 " for locks other than the interpreter's; 900.0 ms of long waits at '0x1000'",
	 "lock_wait_seconds=1 s; task_wall_seconds=6.666 s; percent=15.00150015 %; "
	 "longest_site=0x1000; longest_site_seconds=0.9 s"},
	{half_cached, "storage_wait",
	 "tasks waited 50 % of their time (2.000 s) for storage; 38 % of the bytes from large "
	 "reads came from the page cache",
	 "storage_wait_seconds=2 s; task_wall_seconds=4 s; percent=50 %; cached_bytes=3000000 "
	 "bytes; large_read_bytes=8000000 bytes; cached_percent=37.5 %"},
	{three_servers, "network_wait", "; 'most' answered 40 requests in 2.500 ms on average",
	 "network_wait_seconds=1 s; task_wall_seconds=5 s; percent=20 %; server=most; requests=40 "
	 "requests; mean_latency_seconds=0.0025 s"},
	{one_answer, "network_wait", "; 'one' answered 1 request in 50.00 ms on average",
	 "network_wait_seconds=1 s; task_wall_seconds=5 s; percent=20 %; server=one; requests=1 "
	 "requests; mean_latency_seconds=0.05 s"},
	{a_slow_host, "name_lookup",
	 "tasks took 125 % of their time (5.000 s) to look up host names (DNS), 1 time; 300.0 ms "
	 "of it waiting for 'db.example'",
	 "lookup_seconds=5 s; lookup_calls=1 calls; task_wall_seconds=4 s; percent=125 %; "
	 "host=db.example; host_seconds=0.3 s"},
	{a_slow_peer, "name_lookup", "to look up host names (DNS), 1 time",
	 "lookup_seconds=5 s; lookup_calls=1 calls; task_wall_seconds=4 s; percent=125 %"},
	{small_pool, "run_queue", "waited 25 % of their time (1.000 s) for a core",
	 "runqueue_wait_seconds=1 s; task_wall_seconds=4 s; percent=25 %"},
	/* 1 s, and half of the 2 s in which its threads worked or waited */
	{busy_pool, "run_queue", "waited 50 % of their time (2.000 s) for a core",
	 "queued_seconds=2 s; task_wall_seconds=4 s; percent=50 %; runqueue_wait_seconds=1 s"},
	{some_programs, "unclassified",
	 "30 % of the tasks' time (12.00 s) is not classified; programs that the workers started "
	 "used at least 1.200 s of CPU during the run",
	 "unclassified_seconds=12 s; task_wall_seconds=40 s; percent=30 %; "
	 "children_cpu_seconds=1.2 s"},
	{earlier_programs, "unclassified", "30 % of the tasks' time (12.00 s) is not classified",
	 "unclassified_seconds=12 s; task_wall_seconds=40 s; percent=30 %"},
	{few_programs, "unclassified", "30 % of the tasks' time (12.00 s) is not classified",
	 "unclassified_seconds=12 s; task_wall_seconds=40 s; percent=30 %"},
	{computes, "cpu_bound", "; chunks computed 2.750 ms per event outside codecs",
	 "cpu_and_runqueue_seconds=3.5 s; task_wall_seconds=4 s; percent=87.5 %; "
	 "task_cpu_seconds=3.5 s; runqueue_wait_seconds=0 s; cpu_outside_codecs_seconds=2.75 s"},
	{no_worker_left, "stalled", "the run is stalled: no worker is left", ""},
};

static bool is_idle(const struct findings *list, const char *id)
{
	for (size_t i = 0; i < list->idle; i++) {
		if (!strcmp(list->idle_ids[i], id))
			return true;
	}
	return false;
}

static void check(const struct input *in, const struct found *found, struct buf *evidence)
{
	const char *gap = gap_of(found, in->id);
	const struct finding *f = NULL;

	for (size_t i = 0; i < found->list.n + found->list.left_out; i++)
		f = strcmp(found->list.v[i].id, in->id) ? f : &found->list.v[i];
	if (!in->evidence) {
		gap = gap ? gap : f ? f->sentence : is_idle(&found->list, in->id) ? IDLE : QUIET;
		if (strcmp(gap, in->text) != 0)
			fail_msg("%s: '%s', not '%s'", in->id, gap, in->text);
		return;
	}
	if (!f)
		fail_msg("%s found nothing: %s", in->id, gap ? gap : "quiet");
	if (!strstr(f->sentence, in->text))
		fail_msg("%s: '%s' lacks '%s'", in->id, f->sentence, in->text);
	buf_clear(evidence);
	put_evidence(evidence, f);
	if (*in->evidence)
		assert_string_equal((const char *)evidence->data, in->evidence);
}

static void check_counts(const struct findings *list)
{
	size_t count[FINDING_SEVERITIES] = {0};

	for (size_t i = 0; i < list->n; i++)
		count[list->v[i].severity]++;
	assert_memory_equal(count, list->count, sizeof(count));
}

static void test_other_inputs(void **state)
{
	struct buf evidence = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(inputs) / sizeof(*inputs); i++) {
		struct fixture *fx = fx_new();
		struct found found;

		inputs[i].make(fx);
		collect(fx, &found);
		check(&inputs[i], &found, &evidence);
		check_counts(&found.list);
		found_free(&found);
		fx_free(fx);
	}
	buf_release(&evidence);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_inputs),
	};

	return cmocka_run_group_tests_name("findings_inputs", tests, NULL, NULL);
}
