/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_findings_worth.c - what each finding costs, what its advice would save, its severity, and
 * advice that a check makes for the run; computed by hand from what the case feeds.
 */
#include "findings_cases.h"

/*
 * One more task, alone from 30 to 40 s. Storage, the network and codecs explain its time; it has no
 * time in the classes that the cases' shares and thresholds use.
 */
static void pay(struct fixture *fx)
{
	struct task_record r = work(900, "pay", 30000, 40000);

	TASK_SET(&r, prefix, T("pay"));
	SET_OWN(&r, storage_wait, 2000);
	SET_OWN(&r, network_wait, 3000);
	SET_COUNT(&r, decompress_cpu_ns, 1000000000);
	SET_COUNT(&r, compress_cpu_ns, 500000000);
	fx_task(fx, 1, &r);
}

/* A task of 10 s on a node with 4 cores. */
static void gil(struct fixture *fx, int threads, int gil_ms, int cpu_ms)
{
	struct task_record r = work(1, "a", 0, 10000);

	hello_of_host(fx, threads, 4);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(10000), NULL);
	SET_OWN(&r, gil_wait, gil_ms);
	SET_OWN(&r, cpu, cpu_ms);
	fx_task(fx, 1, &r);
}

static void gil_of_many(struct fixture *fx)
{
	gil(fx, 8, 6000, 1000);
}

static void gil_of_two(struct fixture *fx)
{
	gil(fx, 2, 1000, 8000);
}

static void gil_of_one(struct fixture *fx)
{
	gil(fx, 1, 1000, 8000);
}

/* LZMA at 200 MB/s for 1 s, ZSTD at 1000 MB/s; all CPU is the first task's, and another task has
 * half of the wall time. */
static void faster_codec(struct fixture *fx)
{
	case_decompression(fx, AT);
	codec(fx, "cramjam.cramjam.zstd.decompress_into", "zstd", 1, 100000000, 100);
	task_of(fx, 1, 2, "b", 0, 5000, 0);
}

/* Of 10 MB outside of baskets more than half came from gzip, or half of them from the frames of
 * coffea's processor; as many in baskets came from zlib. */
static void unpacked(struct fixture *fx)
{
	case_chunk_baggage(fx, AT);
	codec(fx, "zlib.decompress", "zlib", 1, 15000001, 1);
	codec(fx, "lz4.frame._frame.decompress", "lz4", 1, 4999999, 1);
}

static void carried(struct fixture *fx)
{
	case_chunk_baggage(fx, AT);
	codec(fx, "zlib.decompress", "zlib", 1, 15000000, 1);
	codec(fx, "lz4.frame._frame.decompress", "lz4", 1, 5000000, 1);
}

/* The rows of another worker have not arrived. */
static void carried_in_part(struct fixture *fx)
{
	case_chunk_baggage(fx, AT);
	codec(fx, "lz4.frame._frame.decompress", "lz4", 1, 4999999, 1);
}

/* A chunk with 100 MB in baskets that computed for 4 s. */
static void chunk_unpacks(struct fixture *fx, const char *name, uint64_t bytes)
{
	struct task_record r = chunk(1, "a", 0, 5000, "/data/a.root", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, 4000);
	SET_COUNT(&r, basket_raw_bytes, 100000000);
	fx_task(fx, 1, &r);
	codec(fx, "a.decompress", name, 1, bytes, 1000);
}

static void text_files(struct fixture *fx)
{
	chunk_unpacks(fx, "bzip2", 1000);
}

static void more_than_baskets(struct fixture *fx)
{
	chunk_unpacks(fx, "zlib", 200000001);
}

static void as_much_as_baskets(struct fixture *fx)
{
	chunk_unpacks(fx, "zlib", 200000000);
}

#define NOT_OF_BASKETS                                                                             \
	"Baskets are the smaller part of what was unpacked: load other files once per worker (a "  \
	"function with @functools.cache), not in each chunk."

/* Half of the codecs' CPU was for text files: re-reading baskets is not charged for it. */
static void rereads_and_unpacks(struct fixture *fx)
{
	struct task_record r = chunk(1, "a", 0, 5000, "/data/a.root", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, 4000);
	SET_OWN(&r, storage_wait, 1000);
	SET_COUNT(&r, decompress_cpu_ns, 1000000000);
	SET_COUNT(&r, basket_raw_bytes, 100000000);
	SET_COUNT(&r, basket_bytes, 4000000);
	SET_COUNT(&r, repeated_basket_bytes, 2000000);
	fx_task(fx, 1, &r);
	codec(fx, "a.decompress", "bzip2", 1, 1000, 500);
	codec(fx, "b.decompress", "zlib", 1, 1000, 500);
}

/* Four tasks in sequence on two threads. */
static void one_by_one(struct fixture *fx)
{
	char key[8];

	worker(fx, 1, 2, 8000);
	for (int i = 0; i < 4; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		task_of(fx, 1, (uint64_t)i + 1, key, i * 2000, 1500, 1500);
	}
}

/* 250 tasks of `ms` ms on two threads, one every 100 ms. */
static void tiny_of(struct fixture *fx, int ms)
{
	char key[8];

	worker(fx, 1, 2, 30000);
	for (int i = 0; i < 250; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		task_of(fx, 1, (uint64_t)i + 1, key, i * 100, ms, 1);
	}
}

/* From 0 to 24.92 s: 5 of 49.84 thread-seconds. */
static void tiny_on_two(struct fixture *fx)
{
	tiny_of(fx, 20);
}

/* From 0 to 24.904 s: 1 of 49.808 thread-seconds; too short to tell whether tasks wait for each
 * other. */
static void shortest_on_two(struct fixture *fx)
{
	tiny_of(fx, 4);
}

/* Less than 5 % of the wall time, most of which has no task: no reason for a warning. */
static void little_cost(struct fixture *fx)
{
	one_class(fx, CREMA_T_sleep, 10000, 2000, true);
	task_of(fx, 1, 2, "b", 50000, 1000, 1);
}

/* 3 us of CPU per call, and waits, in a task of 1 s. */
static void small_reads_of(struct fixture *fx, uint64_t calls, uint64_t wait_ms)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, read_calls, calls);
	SET_COUNT(&r, read_bytes, calls * 100);
	SET_OWN(&r, storage_wait, wait_ms);
	fx_task(fx, 1, &r);
}

static void reads_below_a_tenth(struct fixture *fx)
{
	small_reads_of(fx, 33333, 0);
}

static void reads_of_a_tenth(struct fixture *fx)
{
	small_reads_of(fx, 33334, 0);
}

static void reads_that_wait(struct fixture *fx)
{
	small_reads_of(fx, 5000, 86);
}

static const struct worth {
	const char *id;
	/* NULL: the case at its thresholds; `pays`: with pay() */
	void (*make)(struct fixture *fx);
	bool pays;
	const char *worth, *advice; /* NULL: the table's */
} worth[] = {
	{"stalled", NULL, false, "unknown of 3 s, high", NULL},
	{"interrupted", NULL, false, "unknown of 1 s, high", NULL},
	/* its host's cores are unknown */
	{"gil_wait", NULL, false, "1 of 10 s, warning", NULL},
	/* 1 s of CPU and 6 s of waits, one thread at a time: 3/4 of 7 s, if 4 processes compute */
	{"gil_wait", gil_of_many, false,
	 "6 of 10 s, warning; saves 5.25 s, about 5.250 s, if as many cores are free",
	 "Use processes instead of threads: dask worker --nworkers 4 --nthreads 1 on each node "
	 "(LocalCluster(n_workers=4, threads_per_worker=1))."},
	/* half of 9 s would be more than the waits */
	{"gil_wait", gil_of_two, false,
	 "1 of 10 s, warning; saves 1 s, about 1.000 s, if as many cores are free",
	 "Use processes instead of threads: dask worker --nworkers 2 --nthreads 1 on each node "
	 "(LocalCluster(n_workers=2, threads_per_worker=1))."},
	{"gil_wait", gil_of_one, false, "1 of 10 s, warning",
	 "The workers have one thread each: threads that tasks start, or the worker's other "
	 "threads, hold the lock."},
	{"lock_wait", NULL, false, "1 of 6.666 s, warning", NULL},
	{"storage_wait", NULL, false, "1 of 5 s, warning", NULL},
	{"network_wait", NULL, false, "1 of 5 s, warning", NULL},
	{"name_lookup", NULL, false, "1 of 10 s, warning", NULL},
	{"run_queue", NULL, false, "1 of 6.666 s, warning", NULL},
	{"sleeping", NULL, false, "1 of 10 s, warning; saves 1 s, at most 1.000 s", NULL},
	{"unclassified", NULL, false, "1 of 4 s, note", NULL},
	{"blocked_site", NULL, false, "1 of 10 s, warning", NULL},
	{"cpu_bound", NULL, false, "1 of 1.25 s, note", NULL},
	{"decompression", NULL, true, "1 of 40 s, note", NULL},
	{"compression", NULL, true, "0.5 of 40 s, note", NULL},
	{"low_compression", NULL, false, "unknown of 1 s, note", NULL},
	/* process() takes 0.88 s in any case; in addition 2 chunks of 56 ms, not 20 */
	{"chunk_overhead", NULL, false, "1.12 of 2 s, warning; saves 1.008 s, about 1.008 s",
	 "Use chunksize=10_000, which makes 2 chunks; memory per task grows with it."},
	/* 1,000,000 of 3,333,333 bytes, and all the time for reading and decompressing them */
	{"reread_in_task", NULL, true, "at least 0.9 of 40 s, warning", NULL},
	{"reread_in_task", rereads_and_unpacks, false, "at least 0.75 of 5 s, warning", NULL},
	{"not_by_coffea", NULL, true, "at least 1.33333 of 40 s, warning", NULL},
	{"chunk_baggage", NULL, true, "at least 0.5 of 40 s, warning", NULL},
	{"chunk_baggage", carried, false, "at least 0 of 1 s, warning", NULL},
	{"chunk_baggage", carried_in_part, false, "at least 0 of 1 s, warning", NULL},
	{"chunk_baggage", unpacked, false, "at least 0 of 1 s, warning",
	 "process() decompresses files or data: load them once per worker (a function with "
	 "@functools.cache), not in each chunk."},
	{"small_writes", NULL, false, "unknown of 1 s, warning", NULL},
	{"wide_read", NULL, true, "at least 3 of 40 s, warning", NULL},
	/* a fifth of the bytes */
	{"metadata_reread", NULL, true, "0.4 of 40 s, note",
	 "Use chunksize=5_000; memory per task grows with it."},
	/* it has no chunks */
	{"baskets_reread", NULL, true, "at least 0.6 of 40 s, note",
	 "Tasks read what others have read: give each its own range of entries (entry_start, "
	 "entry_stop of TTree.arrays() and iterate()) that ends where baskets end "
	 "(TTree.common_entry_offsets()), and read each column once."},
	{"read_amplification", NULL, true, "at least 1 of 40 s, warning", NULL},
	{"small_reads", NULL, false, "unknown of 1 s, note", NULL},
	{"small_reads", reads_below_a_tenth, false, "unknown of 1 s, note", NULL},
	{"small_reads", reads_of_a_tenth, false, "unknown of 1 s, warning", NULL},
	{"small_reads", reads_that_wait, false, "unknown of 1 s, warning", NULL},
	{"cold_cache", NULL, false, "unknown of 1 s, note", NULL},
	{"warm_cache", NULL, false, "unknown of 1 s, note", NULL},
	/* 20 x 3 ms, of which 20 x 1 ms elsewhere; of 80 ms */
	{"slow_server", NULL, true, "1.5 of 40 s, note", NULL},
	{"failed_requests", NULL, false, "unknown of 1 s, warning", NULL},
	{"preload_columns", NULL, false, "36 of 120 s, warning; saves 6 s, at least 6.000 s",
	 "Give each dataset of the fileset \"preload\": ['<b>Jet_eta', 'Jet_pt']."},
	{"unused_columns", NULL, false, "unknown of 1 s, warning",
	 "Take them off the preload list: 'unused'."},
	{"remote_amplification", NULL, true, "1.5 of 40 s, note", NULL},
	{"unattributed_network", NULL, false, "unknown of 1 s, note", NULL},
	{"killed_work", NULL, false, "1 of 3 s, high; saves 1 s, at most 1.000 s", NULL},
	{"failed_work", NULL, false, "1 of 1 s, high", NULL},
	{"retried_work", NULL, false, "1 of 3 s, warning; saves 1 s, at most 1.000 s", NULL},
	{"recomputed_work", NULL, false, "1 of 3 s, warning; saves 1 s, at most 1.000 s", NULL},
	{"stragglers", NULL, false, "1 of 6 s, warning; saves 1 s, at most 1.000 s", NULL},
	/* of 0.25 s each, and 0.375 s of the last one: half is more than on other workers */
	{"slow_worker", NULL, false, "0.5625 of 2 s, warning; saves 0.5625 s, at most 562.5 ms",
	 NULL},
	{"tail", NULL, false, "1.5 of 10 s, warning; saves 1.5 s, at most 1.500 s", NULL},
	{"client_part", NULL, false, "2 of 10 s, warning",
	 "Use fewer, larger partitions (step_size) and fill several variations at once; or run the "
	 "processor with coffea's Runner, which builds no graph."},
	{"few_chunks", NULL, false, "0.5 of 1 s, warning; saves 0.5 s, at most 500.0 ms",
	 "Use chunksize=100 (at least 4 chunks per thread), or fewer workers."},
	{"idle_threads", NULL, false, "1 of 2 s, warning", NULL},
	/* 6 of 15 thread-seconds */
	{"idle_threads", one_by_one, false, "4.5 of 7.5 s, warning; saves 4.5 s, at most 4.500 s",
	 "The tasks ran one by one: submit them together (client.map, or one compute() for all), "
	 "and gather the results afterwards. If each needs the one before, divide the work by data "
	 "instead."},
	{"low_cpu_efficiency", NULL, false, "2.001 of 4 s, note", NULL},
	{"worker_imbalance", NULL, false, "1 of 3 s, warning", NULL},
	{"dataset_imbalance", NULL, false, "1 of 5 s, note", NULL},
	{"late_workers", NULL, false, "3 of 10 s, note", NULL},
	{"memory_limit", NULL, false, "unknown of 1 s, high", NULL},
	{"memory_growth", NULL, false, "unknown of 1 s, high", NULL},
	{"memory_growth", held_growth, false, "unknown of 1 s, high",
	 "No object holds them: have malloc return them between chunks, client.run(lambda: "
	 "__import__('ctypes').CDLL('libc.so.6').malloc_trim(0))."},
	{"memory_growth", kept_growth, false, "unknown of 1 s, high",
	 "What 'analysis.py:17 process' allocates is in use after its task: look for what refers "
	 "to "
	 "it (a cache, a global list, the task's result), and drop it."},
	{"allocator_holds", NULL, false, "unknown of 1 s, note, 100.0 MB of memory", NULL},
	{"spill", NULL, false, "unknown of 1 s, warning", NULL},
	{"dask_overhead", NULL, false, "1 of 6 s, warning", NULL},
	{"tiny_tasks", NULL, false, "unknown of 19.95 s, warning", NULL},
	{"tiny_tasks", tiny_on_two, false, "22.42 of 24.92 s, warning",
	 "The tasks ran one by one: submit them together (client.map, or one compute() for all), "
	 "gather the results afterwards, and put more work into each task."},
	{"tiny_tasks", shortest_on_two, false, "24.404 of 24.904 s, warning", NULL},
	{"serialization", NULL, false, "1 of 10 s, warning", NULL},
	{"large_results", NULL, false, "unknown of 10 s, warning", NULL},
	{"gc_pauses", NULL, false, "at least 1 of 11 s, warning", NULL},
	{"large_arguments", NULL, false, "at least 0.8 of 4.9 s, warning", NULL},
	{"python_heavy", NULL, false, "1 of 5 s, warning", NULL},
	{"hot_line", NULL, false, "3 of 10 s, note", NULL},
	{"imports", NULL, false, "1 of 10.5 s, warning", NULL},
	{"fresh_workers", NULL, false, "unknown of 1 s, warning", NULL},
	{"process_start", NULL, false, "0.2 of 1 s, note", NULL},
	{"incomplete", NULL, false, "unknown of 1 s, high", NULL},
	{"silent_workers", NULL, false, "unknown of 1 s, high", NULL},
	{"unmeasured_tasks", NULL, false, "unknown of 1 s, note", NULL},
	{"child_processes", NULL, false, "unknown of 6 s, note", NULL},
	{"outside_threads", NULL, false, "unknown of 6 s, note", NULL},
	/* of 4 s of CPU in 2 s of the wall time 0.8 s would be saved */
	{"decompression", faster_codec, false, "0 of 5 s, note; saves 0.4 s", NULL},
	{"decompression", text_files, false, "0 of 5 s, note", NOT_OF_BASKETS},
	{"decompression", more_than_baskets, false, "0 of 5 s, note", NOT_OF_BASKETS},
	{"decompression", as_much_as_baskets, false, "0 of 5 s, note", NULL},
	{"sleeping", little_cost, false, "2 of 51 s, note; saves 2 s, at most 2.000 s", NULL},
};

#define WORTH (sizeof(worth) / sizeof(*worth))

static const struct {
	const char *id, *advice;
} table[] = {
#define FINDING(id, severity, first, second, looks_at, when, advice) {#id, advice},
#include "findings.def"
};

static const char *advice_of(const char *id)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (!strcmp(table[i].id, id))
			return table[i].advice;
	}
	fail_msg("no finding is called %s", id);
	return NULL;
}

static void case_at(struct fixture *fx, const char *id)
{
	for (size_t i = 0; i < findings_case_count; i++) {
		if (!strcmp(findings_cases[i].id, id))
			assert_true(findings_cases[i].make(fx, AT));
	}
}

/* "at least 1.2 of 40 s, warning; saves 1 s, at most 1.000 s" */
static void put_worth(struct sink *s, const struct finding *f)
{
	if (isnan(f->cost_s))
		sink_puts(s, "unknown");
	else
		sink_printf(s, "%s%.6g", f->cost_is_least ? "at least " : "", f->cost_s);
	sink_printf(s, " of %.6g s, %s", f->of_s, finding_severity_name(f->severity));
	if (!isnan(f->gain_s))
		sink_printf(s, "; saves %.6g s", f->gain_s);
	if (f->gain)
		sink_printf(s, ", %s", f->gain);
	sink_put(s, "", 1);
}

static void test_costs_gains_and_advice(void **state)
{
	struct buf text = BUF_INIT;
	struct sink s = {.out = &text};

	(void)state;
	for (size_t i = 0; i < WORTH; i++) {
		const struct worth *want = &worth[i];
		struct fixture *fx = fx_new();
		const struct finding *f;
		struct found found;

		if (want->make)
			want->make(fx);
		else
			case_at(fx, want->id);
		if (want->pays)
			pay(fx);
		collect(fx, &found);
		f = finding_of(&found, want->id);
		if (!f)
			fail_msg("%s found nothing", want->id);
		buf_clear(&text);
		put_worth(&s, f);
		if (strcmp((const char *)text.data, want->worth) != 0)
			fail_msg("%s: '%s', not '%s'", want->id, (const char *)text.data,
				 want->worth);
		assert_string_equal(f->advice, want->advice ? want->advice : advice_of(want->id));
		found_free(&found);
		fx_free(fx);
	}
	buf_release(&text);
}

static void test_none_is_missing(void **state)
{
	(void)state;
	for (size_t i = 0; i < findings_case_count; i++) {
		bool there = false;

		for (size_t k = 0; k < WORTH; k++)
			there |= !strcmp(worth[k].id, findings_cases[i].id);
		if (!there)
			fail_msg("what %s costs is not compared", findings_cases[i].id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costs_gains_and_advice),
		cmocka_unit_test(test_none_is_missing),
	};

	return cmocka_run_group_tests_name("findings_worth", tests, NULL, NULL);
}
