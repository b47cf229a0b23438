/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_findings_said.c - what each check reports about the run at its thresholds
 * (findings_cases_*.h): the sentence, all of the evidence and how much of the run it is about,
 * computed by hand from what the case feeds; the JSON is compared member by member.
 */
#include <jansson.h>
#include <math.h>

#include "findings_cases.h"

/* gap: the unknown input that is named when the case lacks it; NULL: none */
static const struct said {
	const char *id;
	double weight;
	const char *gap, *sentence, *evidence;
} said[] = {
	{"stalled", 1, NULL,
	 "the run has been stalled for 30.00 s: 1 task under way; still in a call: b on node, pid "
	 "1, "
	 "since 08:00:03 UTC",
	 "quiet_seconds=30 s; running=1 tasks; workers=1 workers; paused_workers=0 workers; "
	 "longest_running=b"},
	{"interrupted", 1, NULL,
	 "the run is interrupted: 1 task ended with its worker and did not run again",
	 "why=workers gone; tasks_taken_back=0 tasks; unfinished_tasks=1 tasks"},
	{"gil_wait", 0.1, "gil_wait_seconds",
	 "tasks waited 10 % of their time (1.000 s) for the interpreter lock; workers had 4 "
	 "threads",
	 "gil_wait_seconds=1 s; task_wall_seconds=10 s; percent=10 %; cores_per_worker=4 threads"},
	{"lock_wait", 1 / 6.666, "lock_wait_seconds",
	 "tasks waited 15 % of their time (1.000 s) for locks other than the interpreter's",
	 "lock_wait_seconds=1 s; task_wall_seconds=6.666 s; percent=15.00150015 %"},
	{"storage_wait", 0.2, "storage_wait_seconds",
	 "tasks waited 20 % of their time (1.000 s) for storage",
	 "storage_wait_seconds=1 s; task_wall_seconds=5 s; percent=20 %"},
	{"network_wait", 0.2, "network_wait_seconds",
	 "tasks waited 20 % of their time (1.000 s) for the network",
	 "network_wait_seconds=1 s; task_wall_seconds=5 s; percent=20 %"},
	{"name_lookup", 0.1, "lookup_seconds",
	 "tasks took 10 % of their time (1.000 s) to look up host names (DNS), 4 times",
	 "lookup_seconds=1 s; lookup_calls=4 calls; task_wall_seconds=10 s; percent=10 %"},
	{"run_queue", 1 / 6.666, "runqueue_wait_seconds",
	 "tasks were ready and waited 15 % of their time (1.000 s) for a core",
	 "runqueue_wait_seconds=1 s; task_wall_seconds=6.666 s; percent=15.00150015 %"},
	{"sleeping", 0.1, "sleep_seconds", "tasks slept 10 % of their time (1.000 s)",
	 "sleep_seconds=1 s; task_wall_seconds=10 s; percent=10 %"},
	{"unclassified", 0.25, "unclassified_seconds",
	 "25 % of the tasks' time (1.000 s) is not classified",
	 "unclassified_seconds=1 s; task_wall_seconds=4 s; percent=25 %"},
	{"fresh_workers", 1.0 / 3, "unattributed: cpu_seconds",
	 "1 fresh worker imported 1.000 MB of Python modules outside tasks; threads without a task "
	 "used 2.000 s of CPU there, tasks used 4.000 s",
	 "workers=1 workers; unattributed_cpu_seconds=2 s; tasks_cpu_seconds=4 s; "
	 "unattributed_import_read_bytes=1000000 bytes"},
	{"blocked_site", 0.1, "blocking",
	 "10 % of the tasks' time (1.000 s) was spent waiting for the network at one call site, "
	 "in 1 long wait, '0x1000', for '<b>\"server\"</b>:80'",
	 "seconds=1 s; task_wall_seconds=10 s; percent=10 %; waits=1 waits; class=network; "
	 "function=0x1000; object=<b>\"server\"</b>:80"},
	{"cpu_bound", 0.8, "cpu_and_runqueue_seconds",
	 "80 % of the tasks' time was CPU (1.000 s) or waiting for a core (0 s)",
	 "cpu_and_runqueue_seconds=1 s; task_wall_seconds=1.25 s; percent=80 %; task_cpu_seconds=1 "
	 "s; runqueue_wait_seconds=0 s"},
	{"decompression", 0.25, "total_cpu_time_true_all",
	 "25 % of the tasks' CPU time (1.000 s of 4.000 s) is LZMA decompression",
	 "codec=lzma; decompress_cpu_seconds=1 s; total_cpu_time_true_all=4 s; percent=25 %; "
	 "decompress_out_bytes=200000000 bytes"},
	{"compression", 0.1, "total_cpu_time_true_all",
	 "10 % of the tasks' CPU time (1.000 s of 10.00 s) is compression, of 1.000 kB",
	 "compress_cpu_seconds=1 s; total_cpu_time_true_all=10 s; percent=10 %; "
	 "compress_in_bytes=1000 bytes"},
	{"low_compression", 0, "codecs",
	 "ZLIB expanded 10.00 MB to only 12.00 MB (1.20x), for 1.000 ms of CPU",
	 "codec=zlib; decompress_in_bytes=10000000 bytes; decompress_out_bytes=11999988 bytes; "
	 "codec_ratio=1.1999988; decompress_cpu_seconds=0.001 s"},
	{"metadata_reread", 0.2, "basket_bytes",
	 "chunks of 1,000 events read 25 % outside of their baskets (metadata, gaps; 1.250 MB of "
	 "5.000 MB): a chunksize of 5,000 would save 1.000 MB",
	 "events_per_chunk=1000 events; chunks=20 chunks; chunk_read_bytes=5000000 bytes; "
	 "chunk_outside_bytes=1250000 bytes; chunk_outside_percent=25 %; chunksize=5000 events; "
	 "saved_bytes=1000000 bytes"},
	{"baskets_reread", 0.2, "unique_basket_bytes",
	 "20 % of the basket bytes (1.000 MB of 5.000 MB) had been decompressed before; 1.000 MB "
	 "of these are in '/data/\"<i>\"?.root'",
	 "file_basket_bytes=5000000 bytes; reread_basket_bytes=1000000 bytes; percent=20 %; "
	 "file=/data/\"<i>\"\n.root; file_reread_basket_bytes=1000000 bytes"},
	{"read_amplification", 0.5, "unique_bytes",
	 "of the 20.00 MB read from files, counting each byte once, the baskets used are 10.00 MB "
	 "(2.00x); 10.00 MB unused in '/data/\"<i>\"?.root'",
	 "unique_bytes=20000000 bytes; unique_basket_bytes=10000000 bytes; amplification=2; "
	 "file=/data/\"<i>\"\n.root; file_outside_bytes=10000000 bytes"},
	{"small_reads", 0, "read_calls", "5,000 read calls returned 16.38 kB on average",
	 "read_calls=5000 calls; read_bytes=81920000 bytes; mean_bytes=16384 bytes"},
	{"cold_cache", 0, "disk_read_bytes",
	 "storage delivered 10.00 MB, 50 % of the 20.00 MB that read calls returned: the files "
	 "were not in memory yet",
	 "disk_read_bytes=10000000 bytes; read_bytes=20000000 bytes; percent=50 %"},
	{"warm_cache", 0, "disk_read_bytes",
	 "storage delivered 1.000 MB of the 10.00 MB that read calls returned (10 %)",
	 "disk_read_bytes=999999 bytes; read_bytes=10000000 bytes; percent=9.99999 %"},
	{"slow_server", 0.75, "servers",
	 "'slow' answered 20 requests in 3.000 ms on average, the other servers in 1.000 ms "
	 "(3.00x)",
	 "server=slow; requests=20 requests; mean_latency_seconds=0.003 s; other_requests=20 "
	 "requests; other_mean_latency_seconds=0.001 s; times=3"},
	{"failed_requests", 0.1, "servers", "1 of 10 requests failed, 1 of them to 's'",
	 "failed=1 requests; requests=10 requests; server=s; server_failed=1 requests"},
	{"preload_columns", 0.05, "read_columns",
	 "2 columns took 9 requests, one after the other, and tasks waited 36.00 s for them; read "
	 "ahead, 3 requests would do, which saves at least 6.000 s at this latency (1.000 s)",
	 "columns=2 columns; requests=9 requests; requests_ahead=3 requests; "
	 "shortest_wait_seconds=1 s; columns_wait_seconds=36 s; saved_seconds=6 s"},
	{"unused_columns", 0.1, "read_columns",
	 "1 column was read ahead and never used: 1.000 MB, 10 % of the bytes of all columns",
	 "columns=1 columns; unused_bytes=1000000 bytes; basket_bytes=10000000 bytes; percent=10 "
	 "%"},
	{"remote_amplification", 0.5, "network_read_bytes",
	 "1 chunk of remote files received 2.000 MB for 1.000 MB of baskets used (2.00x)",
	 "remote_received_bytes=2000000 bytes; remote_basket_bytes=1000000 bytes; amplification=2; "
	 "chunks=1 chunks"},
	{"unattributed_network", 0.2, "completeness",
	 "20 % of what the workers received in total (10.00 MB of 50.00 MB) belongs to no "
	 "task",
	 "unattributed_network_read_bytes=10000000 bytes; received_bytes=50000000 bytes; "
	 "percent=20 %"},
	{"killed_work", 0.5, NULL,
	 "1 attempt was lost with its worker: 1.000 s of work; the first was of kind 'task'; "
	 "'node:1' sent no goodbye",
	 "attempts=1 attempts; wall_seconds=1 s; prefix=task; worker=node:1"},
	{"failed_work", 1, NULL, "1 attempt failed for good: 1.000 s of work",
	 "attempts=1 attempts; wall_seconds=1 s; prefix=task"},
	{"retried_work", 0.5, NULL,
	 "1 attempt failed and was repeated: 1.000 s of work; the first was of kind 'task'",
	 "attempts=1 attempts; wall_seconds=1 s; prefix=task"},
	{"recomputed_work", 0.5, NULL,
	 "1 attempt succeeded but ran twice: 1.000 s of work; the first was of kind 'task'",
	 "attempts=1 attempts; wall_seconds=1 s; prefix=task"},
	{"stragglers", 1.0 / 6, NULL,
	 "1 of 10 tasks 'task' took 1.000 s longer in total than the median of 500.0 ms each; the "
	 "slowest took 1.500 s, on 'node:1'",
	 "prefix=task; tasks=10 tasks; stragglers=1 tasks; median_seconds=0.5 s; excess_seconds=1 "
	 "s; slowest_seconds=1.5 s; slowest_worker=node:1"},
	{"tail", 0.2, "cores_per_worker",
	 "for the last 20 % of the wall time (2.000 s) at most half of the 4 threads had a task: "
	 "6 thread-seconds without one; the longest of these tasks, 'task', took 10.00 s",
	 "tail_seconds=2 s; wall_time=10 s; percent=20 %; threads=4 threads; "
	 "tail_idle_thread_seconds=6 s; last_prefix=task"},
	{"client_part", 0.2, "graph",
	 "building the graph took 2.000 s of the client's 10.00 s (20 %)",
	 "part=graph; seconds=2 s; client_wall_seconds=10 s; percent=20 %"},
	{"few_chunks", 0.5, "cores_per_worker",
	 "1 chunk for 2 threads: 1 of these threads had no chunk",
	 "num_chunks=1 chunks; threads=2 threads; wall_time=1 s; chunksize=100 events"},
	{"idle_threads", 0.5, "total_cores",
	 "threads had no task for 50 % of the time: 2 of 4 thread-seconds",
	 "total_cores=2 threads; wall_time=2 s; idle_thread_seconds=2 s; task_wall_seconds_all=2 "
	 "s; percent=50 %; thread_seconds=4 s"},
	{"low_cpu_efficiency", 0.50025, "total_cores",
	 "CPU was busy for 50 % of the available thread time: 1.999 of 4 thread-seconds",
	 "total_cpu_time_true_all=1.999 s; thread_seconds=4 s; percent=49.975 %"},
	{"chunk_overhead", 0.56, "coffea_processtime",
	 "56 % of the chunks' time (1.120 s of 2.000 s) went to opening the file and building "
	 "the "
	 "events, outside of process(): 56.00 ms for each of 20 chunks of 1,000 events",
	 "chunks=20 chunks; events_per_chunk=1000 events; chunk_wall_seconds=2 s; "
	 "processtime_seconds=0.88 s; overhead_seconds=1.12 s; overhead_percent=56 %; "
	 "overhead_seconds_per_chunk=0.056 s; chunksize=10000 events; chunks_then=2 chunks"},
	{"reread_in_task", 0.3, "repeated_basket_bytes",
	 "30 % of the baskets (1.000 MB of 3.333 MB) had been decompressed before by the same "
	 "task: it opens a file or reads a column repeatedly",
	 "repeated_basket_bytes=1000000 bytes; basket_bytes=3333333 bytes; percent=30.000003 %"},
	{"not_by_coffea", 2.0 / 3, "coffea_bytesread",
	 "chunks read 15.00 MB, of which coffea requested 5.000 MB: 10.00 MB bypassed coffea",
	 "chunk_read_bytes=15000000 bytes; requested_bytes=5000000 bytes; other_bytes=10000000 "
	 "bytes"},
	{"chunk_baggage", 0.5, "decompress_out_bytes",
	 "chunks decompressed 10.00 MB outside baskets, 50 % of the total: 10.00 MB for each of 1 "
	 "chunks",
	 "decompress_out_bytes=20000000 bytes; beside_baskets_bytes=10000000 bytes; "
	 "beside_baskets_bytes_per_chunk=10000000 bytes; chunks=1 chunks"},
	{"small_writes", 0, "write_calls",
	 "tasks wrote to files 5,000 times, 1.024 kB on average, in 0 s of CPU",
	 "write_calls=5000 calls; write_bytes=5120000 bytes; mean_bytes=1024 bytes; "
	 "task_cpu_seconds=0 s"},
	{"slow_worker", 1 / 3.75, NULL,
	 "the 4 tasks 'task' on 'node:1' took longer than elsewhere: their median is 500.0 ms, "
	 "that of all 11 is 250.0 ms (without waits for a core)",
	 "worker=node:1; prefix=task; tasks=4 tasks; tasks_of_all=11 tasks; median_seconds=0.5 s; "
	 "median_of_all_seconds=0.25 s; excess_seconds=1 s"},
	{"wide_read", 0.75, "columns",
	 "chunks read 50 columns, 75 % of the files' bytes (750.0 kB of 1.000 MB); crema does not "
	 "know which of them the analysis used",
	 "columns=50 columns; unique_basket_bytes=750000 bytes; size_bytes=1000000 bytes; "
	 "percent=75 %"},
	{"worker_imbalance", 1.0 / 3, "tasks: wall_seconds",
	 "each thread of 'node:1' worked for 3.000 s; the mean of 2 workers is 2.000 s",
	 "worker=node:1; workers=2 workers; busiest_seconds_per_thread=3 s; "
	 "mean_seconds_per_thread=2 s"},
	{"dataset_imbalance", 0.25, "chunks: wall_seconds",
	 "dataset 'slow <img src=x onerror=alert(1)>' took 50 % of the chunks' time (2.000 s) "
	 "for 25 % of the events",
	 "dataset=slow <img src=x onerror=alert(1)>; wall_seconds=2 s; percent_of_time=50 %; "
	 "events=1000 events; percent_of_events=25 %"},
	{"late_workers", 0.3, NULL, "there were 1.400 workers on average, and 2 at the peak",
	 "avg_workers=1.4 workers; peak_workers=2 workers; wall_time=10 s"},
	{"memory_limit", 0.8, "max_memory_utilization_percent",
	 "1 of 1 workers exceeded 80 % of their memory limit; 'node:1' reached 80 % of 1.000 GB",
	 "max_memory_utilization_percent=80.0000001 %; memory_limit_bytes=1000000000 bytes; "
	 "worker=node:1; workers_above=1 workers"},
	{"memory_growth", 1.0 / 6, "rss_stop_bytes",
	 "the memory of 'node:1' grew from 500.0 MB to 600.0 MB, 16.67 MB per task; at this rate "
	 "it reaches its limit of 1.000 GB in 24 tasks",
	 "worker=node:1; early_rss_bytes=500000000 bytes; late_rss_bytes=600000000 bytes; "
	 "bytes_per_task=16666666.67 bytes; memory_limit_bytes=1000000000 bytes; tasks_left=24 "
	 "tasks"},
	{"allocator_holds", 0.2, "worker_memory",
	 "100.0 MB of the 500.0 MB of 'node:1' were free in malloc's heaps all the time",
	 "worker=node:1; kept_bytes=100000000 bytes; resident_bytes=500000000 bytes"},
	{"spill", 0, "dask_spill_write_bytes", "Dask spilled results to disk: 1.000 MB written",
	 "dask_spill_write_bytes=1000000 bytes"},
	{"dask_overhead", 0.2, "task_wall_seconds",
	 "20 % of the tasks' time (1.000 s) went to tasks other than chunks (1), 1.000 s of it to "
	 "'merge'",
	 "seconds=1 s; task_wall_seconds=5 s; percent=20 %; tasks=1 tasks; most_prefix=merge; "
	 "most_seconds=1 s"},
	{"tiny_tasks", 0, "task_wall_seconds",
	 "200 tasks took 50.00 ms on average, 10.00 s in total",
	 "num_tasks=200 tasks; mean_seconds=0.05 s; task_wall_seconds=10 s"},
	{"serialization", 0.1, "total_serialization_overhead_seconds",
	 "Dask serialized objects for 750.0 ms and deserialized them for 250.0 ms; tasks took "
	 "10.00 s",
	 "serialization_time_seconds=0.75 s; deserialization_time_seconds=0.25 s; "
	 "transfer_serialize_seconds=0 s; transfer_deserialize_seconds=0 s; task_wall_seconds=10 "
	 "s; percent=10 %"},
	{"large_arguments", 0, "task_message_bytes",
	 "the scheduler sent workers at least 10.00 MB, 1.000 MB for each of 10 tasks: functions "
	 "and arguments; while they arrived, threads had no task for 800.0 ms",
	 "arrived_bytes=10000000 bytes; tasks=10 tasks; bytes_per_task=1000000 bytes; "
	 "idle_thread_seconds=0.8 s"},
	{"large_results", 0, "comm_write_bytes",
	 "workers sent at least 100.0 MB of results to the client, until 3.000 s or longer after "
	 "the last task ended",
	 "sent_bytes=100000000 bytes; seconds_after_last_task=3 s"},
	{"gc_pauses", 0.1, "gc_seconds",
	 "Python's full garbage collections took at least 1.000 s of CPU; relative to the tasks' "
	 "10.00 s, this is 10 %",
	 "collected_seconds=1 s; total_cpu_time_true_all=10 s; percent=10 %"},
	{"python_heavy", 2.0 / 3, "decompression_time_seconds",
	 "chunks used 100.0 us of CPU for each of 10,000 events outside codecs, 1.000 s in total",
	 "total_cpu_time_true=1.5 s; cpu_outside_codecs_seconds=1 s; total_events=10000 events; "
	 "microseconds_per_event=100 us"},
	{"hot_line", 0.3, "stacks",
	 "30 % +- 2.8 % of the sampled CPU of tasks (3.000 s) was at 'an.py:42 P.process', most of "
	 "it in its call of 'sort'",
	 "line_cpu_seconds=3 s; line=an.py:42 P.process; line_file=/home/an.py; line_percent=30 %; "
	 "line_percent_error=2.840309842 %; line_samples=300 samples"},
	{"imports", 0.1, "import_read_bytes",
	 "1 task read Python modules (1.000 MB in total) and took 1.000 s longer than others of "
	 "their kind, 10 % of the tasks' time",
	 "tasks=1 tasks; excess_seconds=1 s; task_wall_seconds=10 s; import_read_bytes=1000000 "
	 "bytes; percent=10 %"},
	{"process_start", 0.2, "startup_seconds",
	 "startup and imports took 20 % of the lifetime (1.000 s) of 1 process",
	 "processes=1 processes; startup_seconds=1 s; process_life_seconds=5 s; percent=20 %"},
	{"incomplete", 1, "records_refused", "data is missing: 3 records lost in transit",
	 "records_lost=3"},
	{"silent_workers", 0.5, NULL,
	 "1 of 2 workers went silent without a goodbye, the first of them 'node:1'",
	 "silent_workers=1 workers; workers=2 workers; worker=node:1"},
	{"unmeasured_tasks", 1, NULL,
	 "only the wall time of 1 attempt is known: 1 asynchronous and 0 in other processes, the "
	 "first of kind 'task'",
	 "asynchronous=1 attempts; in_other_processes=0 attempts; attempts=1 attempts; "
	 "prefix=task; unmeasured=1 attempts"},
	{"outside_threads", 1.0 / 3, "unattributed",
	 "threads of the workers that belong to no task used 1.000 s of CPU during the run; tasks "
	 "used 2.000 s",
	 "outside_cpu_seconds=1 s; tasks_cpu_seconds=2 s"},
	{"child_processes", 1.0 / 6, "children",
	 "child processes of the workers used at least 1.000 s of CPU during the run; tasks used "
	 "5.000 s",
	 "children_cpu_seconds=1 s; tasks_cpu_seconds=5 s"},
};

#define SAID (sizeof(said) / sizeof(said[0]))

static const struct said *said_of(const char *id)
{
	size_t i;

	for (i = 0; i < SAID; i++) {
		if (!strcmp(said[i].id, id))
			return &said[i];
	}
	fail_msg("nothing is expected of %s", id);
	return NULL;
}

static void test_sentences_and_evidence(void **state)
{
	struct buf evidence = BUF_INIT;
	const struct said *want;
	const struct finding *f;
	struct fixture *fx;
	struct found found;
	size_t i;

	(void)state;
	assert_int_equal(SAID, findings_case_count);
	for (i = 0; i < findings_case_count; i++) {
		want = said_of(findings_cases[i].id);
		fx = fx_new();
		assert_true(findings_cases[i].make(fx, AT));
		collect(fx, &found);
		f = finding_of(&found, want->id);
		assert_non_null(f);
		assert_string_equal(f->sentence, want->sentence);
		if (fabs(f->weight - want->weight) > 1e-6)
			fail_msg("%s: weight %.9g, not %.9g", want->id, f->weight, want->weight);
		buf_clear(&evidence);
		put_evidence(&evidence, f);
		assert_string_equal((const char *)evidence.data, want->evidence);
		found_free(&found);
		fx_free(fx);
	}
	buf_release(&evidence);
}

static void test_gaps(void **state)
{
	struct fixture *fx;
	struct found found;
	const char *want, *gap;
	size_t i;

	(void)state;
	for (i = 0; i < findings_case_count; i++) {
		fx = fx_new();
		want = said_of(findings_cases[i].id)->gap;
		assert_int_equal(findings_cases[i].make(fx, UNKNOWN), want != NULL);
		if (want) {
			collect(fx, &found);
			gap = gap_of(&found, findings_cases[i].id);
			assert_non_null(gap);
			assert_string_equal(gap, want);
			found_free(&found);
		}
		fx_free(fx);
	}
}

/* Runs about which a check reports more than at its thresholds. */

static void faster_codec(struct fixture *fx)
{
	case_decompression(fx, AT);
	codec(fx, "cramjam.cramjam.zstd.decompress_into", "zstd", 1, 100000000, 100);
}

static void slow_network(struct fixture *fx)
{
	struct task_record r;
	char key[16];
	int i, wall;

	fx_hello(fx, 1, "{}");
	for (i = 0; i < 12; i++) {
		wall = i < 10 ? 500 : 500 * (i - 7); /* 1.5 and 2 s */
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, i * 3000, i * 3000 + wall);
		SET_OWN(&r, cpu, wall / 4);
		SET_OWN(&r, network_wait, wall / 2);
		fx_task(fx, 1, &r);
	}
}

static void tiny_with_threads(struct fixture *fx)
{
	struct task_record r;
	char key[16];
	int i;

	worker(fx, 1, 2, 30000);
	for (i = 0; i < 250; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, i * 100, i * 100 + 20);
		fx_task(fx, 1, &r);
	}
}

/* As case_memory_growth(), but the task that begins first ends last. */
static void backward_growth(struct fixture *fx)
{
	struct task_record r;
	char key[16];
	int i;

	fx_hello(fx, 1, "{\"memory_limit_bytes\": 1000000000}");
	for (i = 9; i >= 0; i--) {
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, 100 - i * 10, i * 100 + 200);
		TASK_SET(&r, rss_stop_bytes, i < 4 ? 500000000 : i < 6 ? 550000000 : 600000000);
		fx_task(fx, 1, &r);
	}
}

/* Spilled while a task ended and by the memory monitor, and read back for another worker. */
static void spilled_in_all_ways(struct fixture *fx)
{
	struct task_record r = work(1, "a", 1000, 3000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	fx_dask(fx, 1, 500,
		"{\"nthreads\": 1, \"digests\": ["
		"[\"memory-monitor\", null, null, \"disk-write\", \"seconds\", 0.25]]}");
	fx_dask(fx, 1, 3500,
		"{\"nthreads\": 1, \"digests\": ["
		"[\"get-data\", null, null, \"disk-read\", \"seconds\", 0.125],"
		"[\"memory-monitor\", null, null, \"disk-write\", \"seconds\", 0.75],"
		"[\"memory-monitor\", null, null, \"disk-write\", \"bytes\", 2000000],"
		"[\"execute\", \"span\", \"task\", \"disk-write\", \"bytes\", 3000000],"
		"[\"execute\", \"span\", \"task\", \"disk-write\", \"seconds\", 0.275]]}");
}

/* Each worker's maximum during the run counts. */
static void held_on_disk(struct fixture *fx)
{
	struct task_record r = work(1, "a", 1000, 3000);

	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	fx_task(fx, 1, &r);
	r = work(1, "b", 1000, 3000);
	fx_task(fx, 2, &r);
	fx_dask(fx, 1, 500, "{\"nthreads\": 1, \"spilled_bytes\": 9000000}");
	fx_dask(fx, 1, 1500, "{\"nthreads\": 1, \"spilled_bytes\": 600000}");
	fx_dask(fx, 1, 2500, "{\"nthreads\": 1, \"spilled_bytes\": 300000}");
	fx_dask(fx, 2, 2500, "{\"nthreads\": 1, \"spilled_bytes\": 800000}");
}

static void shared_host(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 4000);

	worker(fx, 1, 2, 5000);
	worker(fx, 2, 3, 5000);
	SET_OWN(&r, runqueue, 1000);
	fx_task(fx, 1, &r);
	TASK_SET(&r, key, T("b"));
	fx_task(fx, 2, &r);
}

static void lost_reads(struct fixture *fx)
{
	struct task_record r;
	int i;

	fx_hello(fx, 1, "{}");
	for (i = 0; i < 3; i++) {
		r = work((uint64_t)i + 1, i ? "a" : "b", i * 2000, i * 2000 + 1000 + i);
		SET_COUNT(&r, read_bytes, 1000000u << i);
		TASK_SET(&r, prefix, i ? T("first") : T("other"));
		TASK_SET(&r, status, i == 2 ? T("ok") : T("erred"));
		fx_task(fx, 1, &r);
	}
}

/* Chunks wrote half of what was read outside of coffea, or one byte less. */
static void scratch(struct fixture *fx, uint64_t written)
{
	struct task_record r = chunk(1, "a", 0, 1000, "/data/a.root", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, read_bytes, 15000000);
	SET_COUNT(&r, write_bytes, written);
	TASK_SET(&r, coffea_bytesread, 5000000);
	fx_task(fx, 1, &r);
}

static void scratch_files(struct fixture *fx)
{
	scratch(fx, 5000000);
}

static void little_written(struct fixture *fx)
{
	scratch(fx, 4999999);
}

/* Without savemetrics=True coffea counts nothing: 10 MB of 15 came from a file without baskets. */
static void pickles(struct fixture *fx)
{
	struct task_record r = chunk(1, "a", 0, 1000, "/data/a.root", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, read_bytes, 15000000);
	fx_task(fx, 1, &r);
	fx_pairs(fx, 1, CREMA_MSG_FILE, "path:s", "/data/a.root", "span:s", "span", "kind:s",
		 "data", "read_bytes:u", UINT64_C(4000000), "basket_calls:u", UINT64_C(1), NULL);
	fx_pairs(fx, 1, CREMA_MSG_FILE, "path:s", "/data/sf.pkl", "span:s", "span", "kind:s",
		 "data", "read_bytes:u", UINT64_C(10000000), "basket_calls:u", UINT64_C(0), NULL);
	/* it is unknown whether baskets were in it */
	fx_pairs(fx, 1, CREMA_MSG_FILE, "path:s", "/data/b", "span:s", "span", "kind:s", "data",
		 "read_bytes:u", UINT64_C(1000000), NULL);
}

/* A second of 5 s in storage waits, 19 pages from storage, and this number of syncs. */
static void slow_syncs(struct fixture *fx, uint64_t syncs)
{
	struct task_record r = work(1, "a", 0, 5000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, storage_wait, 1000);
	SET_COUNT(&r, write_calls, 20);
	SET_COUNT(&r, write_bytes, 40000);
	SET_COUNT(&r, sync_calls, syncs);
	SET_COUNT(&r, storage_read_bytes, 19 * 4096);
	fx_task(fx, 1, &r);
}

static void waits_to_sync(struct fixture *fx)
{
	slow_syncs(fx, 20);
}

static void reads_as_much(struct fixture *fx)
{
	slow_syncs(fx, 19);
}

/* A second of 5 s in storage waits while storage delivered less than 1 % of what was written. */
static void slow_writes(struct fixture *fx, uint64_t charged)
{
	struct task_record r = work(1, "a", 0, 5000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, storage_wait, 1000);
	SET_COUNT(&r, write_calls, 20);
	SET_COUNT(&r, write_bytes, 1000000);
	SET_COUNT(&r, storage_read_bytes, charged);
	fx_task(fx, 1, &r);
}

static void waits_to_write(struct fixture *fx)
{
	slow_writes(fx, 9999);
}

static void waits_to_read(struct fixture *fx)
{
	slow_writes(fx, 10000);
}

static const struct {
	void (*make)(struct fixture *fx);
	const char *id, *sentence, *evidence;
} more[] = {
	{scratch_files, "not_by_coffea",
	 "chunks read 15.00 MB, of which coffea requested 5.000 MB: 10.00 MB bypassed coffea; "
	 "chunks also wrote 5.000 MB to files",
	 "chunk_read_bytes=15000000 bytes; requested_bytes=5000000 bytes; other_bytes=10000000 "
	 "bytes; write_bytes=5000000 bytes"},
	{little_written, "not_by_coffea",
	 "chunks read 15.00 MB, of which coffea requested 5.000 MB: 10.00 MB bypassed coffea",
	 "chunk_read_bytes=15000000 bytes; requested_bytes=5000000 bytes; other_bytes=10000000 "
	 "bytes"},
	{pickles, "not_by_coffea",
	 "chunks read 15.00 MB, 10.00 MB of it in files without baskets, most of it (10.00 MB) "
	 "from "
	 "'/data/sf.pkl'",
	 "chunk_read_bytes=15000000 bytes; other_bytes=10000000 bytes; file=/data/sf.pkl; "
	 "file_read_bytes=10000000 bytes"},
	{waits_to_write, "storage_wait",
	 "tasks waited 20 % of their time (1.000 s) for storage; hardly anything was read from "
	 "storage, but 20 write calls wrote 1.000 MB",
	 "storage_wait_seconds=1 s; task_wall_seconds=5 s; percent=20 %; write_calls=20 calls; "
	 "write_bytes=1000000 bytes"},
	{waits_to_sync, "storage_wait",
	 "tasks waited 20 % of their time (1.000 s) for storage; 20 calls of fsync waited for the "
	 "disk",
	 "storage_wait_seconds=1 s; task_wall_seconds=5 s; percent=20 %; sync_calls=20 calls; "
	 "write_calls=20 calls; write_bytes=40000 bytes"},
	{reads_as_much, "storage_wait", "tasks waited 20 % of their time (1.000 s) for storage",
	 "storage_wait_seconds=1 s; task_wall_seconds=5 s; percent=20 %"},
	{waits_to_read, "storage_wait", "tasks waited 20 % of their time (1.000 s) for storage",
	 "storage_wait_seconds=1 s; task_wall_seconds=5 s; percent=20 %"},
	{faster_codec, "decompression",
	 "25 % of the tasks' CPU time (1.000 s of 4.000 s) is LZMA decompression; at the 1000 MB/s "
	 "at which this run decompressed ZSTD, it would save 800.0 ms",
	 "codec=lzma; decompress_cpu_seconds=1 s; total_cpu_time_true_all=4 s; percent=25 %; "
	 "decompress_out_bytes=200000000 bytes; other_codec=zstd; "
	 "other_codec_bytes_per_second=1000000000 bytes/s; saved_cpu_seconds=0.8 s"},
	{slow_network, "stragglers",
	 "2 of 12 tasks 'task' took 2.500 s longer in total than the median of 500.0 ms each; the "
	 "slowest took 2.000 s, 50 % of it waiting for the network, on 'node:1'",
	 "prefix=task; tasks=12 tasks; stragglers=2 tasks; median_seconds=0.5 s; "
	 "excess_seconds=2.5 s; slowest_seconds=2 s; slowest_worker=node:1; "
	 "slowest_class=network; slowest_class_percent=50 %"},
	{tiny_with_threads, "tiny_tasks",
	 "250 tasks took 20.00 ms on average, 5.000 s in total of 49.84 thread-seconds",
	 "num_tasks=250 tasks; mean_seconds=0.02 s; task_wall_seconds=5 s; thread_seconds=49.84 s"},
	{backward_growth, "memory_growth",
	 "the memory of 'node:1' grew from 500.0 MB to 600.0 MB, 16.67 MB per task; at this rate "
	 "it reaches its limit of 1.000 GB in 24 tasks",
	 "worker=node:1; early_rss_bytes=500000000 bytes; late_rss_bytes=600000000 bytes; "
	 "bytes_per_task=16666666.67 bytes; memory_limit_bytes=1000000000 bytes; tasks_left=24 "
	 "tasks"},
	{held_growth, "memory_growth",
	 "the memory of 'node:1' grew from 500.0 MB to 600.0 MB, 16.67 MB per task; at this rate "
	 "it reaches its limit of 1.000 GB in 24 tasks; 50.00 MB are free in malloc's heaps",
	 "worker=node:1; early_rss_bytes=500000000 bytes; late_rss_bytes=600000000 bytes; "
	 "bytes_per_task=16666666.67 bytes; memory_limit_bytes=1000000000 bytes; tasks_left=24 "
	 "tasks; kept_bytes=50000000 bytes"},
	{kept_growth, "memory_growth",
	 "the memory of 'node:1' grew from 500.0 MB to 600.0 MB, 16.67 MB per task; at this rate "
	 "it reaches its limit of 1.000 GB in 24 tasks; 15.00 MB stay with each task of "
	 "'task': 'analysis.py:17 process'",
	 "worker=node:1; early_rss_bytes=500000000 bytes; late_rss_bytes=600000000 bytes; "
	 "bytes_per_task=16666666.67 bytes; memory_limit_bytes=1000000000 bytes; tasks_left=24 "
	 "tasks; kept_line=analysis.py:17 process; kept_line_file=/home/u/analysis.py; "
	 "kept_line_bytes=150000000 bytes; kept_bytes_per_task=15000000 bytes"},
	{spilled_in_all_ways, "spill",
	 "Dask spilled results to disk: 5.000 MB written; writing and reading them took 900.0 ms",
	 "dask_spill_write_bytes=5000000 bytes; disk_seconds=0.9 s"},
	{held_on_disk, "spill", "Dask spilled results to disk: workers held up to 1.400 MB of them",
	 "most_spilled_bytes=1400000 bytes"},
	{shared_host, "run_queue",
	 "tasks were ready and waited 25 % of their time (2.000 s) for a core",
	 "runqueue_wait_seconds=2 s; task_wall_seconds=8 s; percent=25 %"},
	{lost_reads, "failed_work", "1 attempt failed for good: 1.000 s of work, 1.000 MB read",
	 "attempts=1 attempts; wall_seconds=1 s; read_bytes=1000000 bytes; prefix=other"},
	{lost_reads, "retried_work",
	 "1 attempt failed and was repeated: 1.001 s of work, 2.000 MB read; the first was "
	 "of kind 'first'",
	 "attempts=1 attempts; wall_seconds=1.001 s; read_bytes=2000000 bytes; prefix=first"},
};

static void test_what_else_is_known(void **state)
{
	struct buf evidence = BUF_INIT;
	const struct finding *f;
	struct fixture *fx;
	struct found found;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		fx = fx_new();
		more[i].make(fx);
		collect(fx, &found);
		f = finding_of(&found, more[i].id);
		if (!f)
			fail_msg("%s found nothing", more[i].id);
		assert_string_equal(f->sentence, more[i].sentence);
		buf_clear(&evidence);
		put_evidence(&evidence, f);
		assert_string_equal((const char *)evidence.data, more[i].evidence);
		found_free(&found);
		fx_free(fx);
	}
	buf_release(&evidence);
}

/* Checks that need more than one input. */

static void codec_without_cpu(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 5000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, 4000);
	fx_task(fx, 1, &r);
	fx_pairs(fx, 1, CREMA_MSG_CODEC, "function:s", "zlib.decompress", "codec:s", "zlib",
		 "direction:s", "decompress", "span:s", "span", "calls:u", UINT64_C(1), NULL);
}

/* Totals with one part that has one number. */
static void one_part(struct fixture *fx, const char *part, const char *name)
{
	struct task_record r = work(1, "a", 0, 5000); /* whose CPU is unknown */
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	r.own_known &= ~(1u << CREMA_T_cpu);
	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	fx_begin(&pk, &b, CREMA_MSG_TOTALS, 2);
	pack_kv_u64(&pk, "boot_ns", AT(5000));
	pack_text(&pk, part);
	pack_map(&pk, 1);
	pack_kv_u64(&pk, name, UINT64_C(1000000000));
	fx_end(fx, 1, &b);
}

static void children_only(struct fixture *fx)
{
	one_part(fx, "children", "cpu_ns");
}

static void tasks_only(struct fixture *fx)
{
	one_part(fx, "tasks", "network_read_bytes");
}

static void test_other_gaps(void **state)
{
	static const struct {
		void (*make)(struct fixture *fx);
		const char *id, *gap;
	} gaps[] = {
		{codec_without_cpu, "decompression", "codecs"},
		{children_only, "child_processes", "total_cpu_time_true_all"},
		{tasks_only, "unattributed_network", "completeness"},
	};
	struct fixture *fx;
	struct found found;
	const char *gap;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		fx = fx_new();
		gaps[i].make(fx);
		collect(fx, &found);
		gap = gap_of(&found, gaps[i].id);
		if (!gap)
			fail_msg("%s lacks nothing", gaps[i].id);
		assert_string_equal(gap, gaps[i].gap);
		found_free(&found);
		fx_free(fx);
	}
}

static void assert_text(const json_t *object, const char *key, const char *want)
{
	const char *text = json_string_value(json_object_get(object, key));

	assert_non_null(text);
	assert_string_equal(text, want);
}

/* null if it is unknown */
static void assert_number(const json_t *object, const char *key, double want)
{
	const json_t *value = json_object_get(object, key);

	assert_non_null(value);
	if (isnan(want))
		assert_true(json_is_null(value));
	else
		assert_real(json_number_value(value), want);
}

static void check_evidence(const json_t *list, const struct finding *f)
{
	const json_t *row, *value;
	size_t i;

	assert_int_equal(json_array_size(list), f->evidence_count);
	for (i = 0; i < f->evidence_count; i++) {
		row = json_array_get(list, i);
		value = json_object_get(row, "value");
		assert_text(row, "name", f->evidence[i].name);
		assert_text(row, "unit", f->evidence[i].unit);
		if (f->evidence[i].value.type == VALUE_TEXT)
			assert_text(row, "value", f->evidence[i].value.v.s);
		else
			assert_true(json_is_number(value) &&
				    json_number_value(value) ==
					    value_number(f->evidence[i].value, NULL));
	}
}

static void check_checked(const json_t *checked, const struct findings *list)
{
	const json_t *idle = json_object_get(checked, "nothing_to_look_at");
	const json_t *gaps = json_object_get(checked, "not_made");
	size_t i;

	assert_int_equal(json_integer_value(json_object_get(checked, "made")), list->made);
	assert_int_equal(json_array_size(idle), list->idle);
	assert_int_equal(json_array_size(gaps), list->gap_count);
	assert_int_equal(list->made + list->idle + list->gap_count, findings_case_count);
	for (i = 0; i < list->idle; i++)
		assert_string_equal(json_string_value(json_array_get(idle, i)), list->idle_ids[i]);
	for (i = 0; i < list->gap_count; i++) {
		assert_text(json_array_get(gaps, i), "id", list->gaps[i].id);
		assert_text(json_array_get(gaps, i), "unknown", list->gaps[i].unknown);
	}
}

static void check_json(const struct findings *list)
{
	struct buf out = BUF_INIT;
	struct sink s = {.out = &out};
	json_t *root, *row;
	struct json j;
	size_t i;

	emit_init(&j, &s);
	emit_object(&j, NULL);
	findings_json(list, &j);
	emit_end(&j);
	root = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "findings")), list->n);
	for (i = 0; i < list->n; i++) {
		row = json_array_get(json_object_get(root, "findings"), i);
		assert_text(row, "id", list->v[i].id);
		assert_text(row, "severity", finding_severity_name(list->v[i].severity));
		assert_text(row, "sentence", list->v[i].sentence);
		assert_text(row, "advice", list->v[i].advice);
		assert_number(row, "cost_seconds", list->v[i].cost_s);
		assert_number(row, "of_seconds", list->v[i].of_s);
		assert_number(row, "gain_seconds", list->v[i].gain_s);
		assert_true(json_is_true(json_object_get(row, "cost_at_least")) ==
			    list->v[i].cost_is_least);
		check_evidence(json_object_get(row, "evidence"), &list->v[i]);
	}
	check_checked(json_object_get(root, "findings_checked"), list);
	json_decref(root);
	buf_release(&out);
}

/* Most of the wait is in one function: a few long syncs, or reads. */
static void test_where_storage_was_waited_for(void **state)
{
	static const struct {
		const char *function, *said;
		uint64_t waited_ms, syncs;
	} cases[] = {
		{"os_fsync", "; 2 calls of fsync waited for the disk", 500, 2},
		{"fdatasync", "; 1 call of fsync waited for the disk", 500, 1},
		{"os_fsync", "", 499, 2},
		{"os_fsync", "", 500, 0},
		{"os_read", "", 500, 2},
	};
	char sentence[256];
	struct fixture *fx;
	struct found found;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fx = fx_new();
		slow_syncs(fx, cases[i].syncs);
		long_wait(fx, "storage_wait_ns", cases[i].waited_ms * 1000000, true);
		collect(fx, &found);
		assert_int_equal(found.report.blocking->rows.n, 1);
		found.report.blocking->rows.v[0]->frame[0] = cases[i].function;
		found.report.blocking->rows.v[0]->frames = 1;
		findings_release(&found.list);
		assert_int_equal(findings_collect(&found.report, &found.list), 0);
		snprintf(sentence, sizeof(sentence),
			 "tasks waited 20 %% of their time (1.000 s) for storage%s", cases[i].said);
		assert_string_equal(finding_of(&found, "storage_wait")->sentence, sentence);
		found_free(&found);
		fx_free(fx);
	}
}

static void test_json(void **state)
{
	struct fixture *fx;
	struct found found;
	size_t i;

	(void)state;
	for (i = 0; i < findings_case_count; i++) {
		fx = fx_new();
		assert_true(findings_cases[i].make(fx, AT));
		collect(fx, &found);
		check_json(&found.list);
		found_free(&found);
		fx_free(fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences_and_evidence),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_what_else_is_known),
		cmocka_unit_test(test_other_gaps),
		cmocka_unit_test(test_where_storage_was_waited_for),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests_name("findings_said", tests, NULL, NULL);
}
