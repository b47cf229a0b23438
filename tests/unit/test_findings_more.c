/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_findings_more.c - what checks add to their sentences in more complex runs, their advice and
 * costs, and inputs that are missing in other ways than in findings_cases.h.
 */
#include "findings_cases.h"

/* Nothing runs, and nothing began or ended in the last 3 s. */
static void quiet(struct fixture *fx, const char *probe)
{
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 0, 3000, "ok");
	fx_dask(fx, 1, 43000, probe);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(43000), NULL);
}

static void paused(struct fixture *fx)
{
	quiet(fx,
	      "{\"nthreads\": 1, \"ready\": 7, \"status\": \"Status.paused\", \"memory_bytes\": "
	      "850, \"memory_limit_bytes\": 1000}");
}

static void no_reason(struct fixture *fx)
{
	quiet(fx, "{\"nthreads\": 1, \"ready\": 7, \"status\": \"Status.running\"}");
}

static void two_runs(struct fixture *fx)
{
	struct task_record r = work(9, "z", 100, 900);

	case_serialization(fx, AT);
	TASK_SET(&r, span, T("another"));
	fx_task(fx, 1, &r);
}

/* Two workers; the first spent 3 s in its event loop moving results to disk and back. */
static void disk_times(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 9000);

	worker(fx, 1, 1, 10000);
	worker(fx, 2, 1, 10000);
	fx_task(fx, 1, &r);
	r = work(1, "b", 0, 9000);
	fx_task(fx, 2, &r);
	fx_dask(fx, 1, 500,
		"{\"nthreads\": 1, \"digests\": [[\"execute\", \"span\", \"task\", "
		"\"disk-write\", \"bytes\", 1000000], [\"execute\", \"span\", \"task\", "
		"\"disk-write\", \"seconds\", 2], [\"execute\", \"span\", \"task\", \"disk-read\", "
		"\"seconds\", 1]]}");
	fx_dask(fx, 2, 500, "{\"nthreads\": 1, \"digests\": []}");
}

/* In addition to coffea's bytes a table of 3 MB; the larger file has baskets, the other is
 * smaller. */
static void a_table_too(struct fixture *fx)
{
	static const struct {
		const char *path;
		uint64_t bytes, baskets;
	} files[] = {{"/data/a.root", 9000000000, 5},
		     {"/data/weights.json.gz", 3000000000, 0},
		     {"/data/small.json", 1000000000, 0}};

	case_not_by_coffea(fx, AT);
	for (size_t i = 0; i < 3; i++)
		fx_pairs(fx, 1, CREMA_MSG_FILE, "path:s", files[i].path, "span:s", "span", "kind:s",
			 "data", "read_bytes:u", files[i].bytes, "basket_calls:u", files[i].baskets,
			 NULL);
}

/* The same table becomes 1.5 s of collections. */
static void a_table_of_objects(struct fixture *fx)
{
	a_table_too(fx);
	fx_dask(fx, 1, 500, "{\"nthreads\": 1, \"digests\": [], \"gc_seconds\": 1.5}");
}

/* 2 s of CPU on 8 threads, one of which was busy: for 2 s of 5 s, or all of 1 s. */
static void starts_meanwhile(struct fixture *fx)
{
	worker(fx, 1, 8, 5000);
	task_of(fx, 1, 1, "a", 0, 1000, 1000);
	task_of(fx, 1, 2, "b", 4000, 1000, 1000);
	fresh_totals(fx, 4000, 6000, 1000000);
}

static void starts_at_once(struct fixture *fx)
{
	worker(fx, 1, 2, 1000);
	task_of(fx, 1, 1, "a", 0, 1000, 1000);
	fresh_totals(fx, 4000, 6000, 1000000);
}

/* The worker was idle for a minute before its first run, and is idle after it. */
static void starts_and_idles(struct fixture *fx)
{
	worker(fx, 1, 8, 65000);
	fresh_totals_at(fx, 49000, 0, 7000, 9000000);
	task_of(fx, 1, 1, "a", 60000, 1000, 1000);
	task_of(fx, 1, 2, "b", 64000, 1000, 1000);
	fresh_totals_at(fx, 51000, 0, 7500, 9000000);
	fresh_totals_at(fx, 65000, 4000, 0, 10000000);
	fresh_totals_at(fx, 66000, 4000, 13000, 10000000);
	fresh_totals_at(fx, 90000, 4000, 20000, 30000000);
}

/* As case_tail(), but with chunks on all threads, the last of which has `events` events. */
static void last_chunk(struct fixture *fx, int64_t events)
{
	struct task_record r;
	char key[8];

	worker(fx, 1, 4, 11000);
	for (int i = 0; i < 4; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = chunk((uint64_t)i + 1, key, 0, i ? 8000 : 10000, "/a.root", i * 1000000 + 8,
			  i * 1000000 + 8 + (i ? 1000 : events));
		SET_OWN(&r, cpu, 100);
		fx_task(fx, 1, &r);
	}
}

static void last_chunk_1(struct fixture *fx)
{
	last_chunk(fx, 8 * 19999);
}

static void last_chunk_2(struct fixture *fx)
{
	last_chunk(fx, 8 * 20000);
}

static void last_chunk_5(struct fixture *fx)
{
	last_chunk(fx, 8 * 50000);
}

/* Tasks of 4 s, of which 1 s was in the run queue, on a host with 4 cores; pool_ms: how long pool
 * threads worked. */
static void queue(struct fixture *fx, int threads, int pool_ms)
{
	struct task_record r = work(1, "a", 0, 4000);

	hello_of_host(fx, threads, 4);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(4000), NULL);
	SET_OWN(&r, runqueue, 1000);
	SET_OWN(&r, cpu, 3000);
	SET_COUNT(&r, pool_wall_ns, (uint64_t)pool_ms * 1000000);
	fx_task(fx, 1, &r);
}

static void queue_of_many(struct fixture *fx)
{
	queue(fx, 8, 0);
}

static void queue_of_others(struct fixture *fx)
{
	queue(fx, 4, 0);
}

static void queue_of_pools(struct fixture *fx)
{
	queue(fx, 4, 12000);
}

/* A library's threads, which no task has started any more, or Dask's own. */
static void queue_beside(struct fixture *fx, int outside_ms)
{
	queue(fx, 4, 0);
	fresh_totals_at(fx, 0, 0, 9000, 0);
	fresh_totals_at(fx, 4500, 3000, 12000 + (uint64_t)outside_ms, 0);
}

static void queue_of_libraries(struct fixture *fx)
{
	queue_beside(fx, 500);
}

static void queue_beside_the_loop(struct fixture *fx)
{
	queue_beside(fx, 499);
}

/* A task of 4 s that waited 2 s for threads of a library, or for a lock. */
static void locked_beside(struct fixture *fx, int outside_ms)
{
	struct task_record r = work(1, "a", 0, 4000);

	hello_of_host(fx, 1, 4);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(4000), NULL);
	SET_OWN(&r, lock_wait, 2000);
	SET_OWN(&r, cpu, 1000);
	fx_task(fx, 1, &r);
	fresh_totals_at(fx, 0, 0, 9000, 0);
	fresh_totals_at(fx, 4500, 1000, 10000 + (uint64_t)outside_ms, 0);
}

static void locked_by_libraries(struct fixture *fx)
{
	locked_beside(fx, 1000);
}

static void locked_by_locks(struct fixture *fx)
{
	locked_beside(fx, 999);
}

/* Ten tasks per thread, each 80 % CPU; a thread has a task for 80 % of the time. */
static void more_to_do(struct fixture *fx)
{
	char key[8];

	worker(fx, 1, 1, 12500);
	for (int i = 0; i < 10; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		task_of(fx, 1, (uint64_t)i + 1, key, i == 9 ? 11500 : i * 1000, 1000, 900);
	}
}

static void nine_to_do(struct fixture *fx)
{
	char key[8];

	worker(fx, 1, 1, 9000);
	for (int i = 0; i < 9; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		task_of(fx, 1, (uint64_t)i + 1, key, i * 1000, 1000, 900);
	}
}

static void raised(struct fixture *fx)
{
	struct task_record r = chunk(1, "a", 0, 1000, "/a.root", 1000, 2500);

	fx_hello(fx, 1, "{}");
	TASK_SET(&r, status, T("erred"));
	TASK_SET(&r, error_type, T("KeyError"));
	TASK_SET(&r, error_text, T("Muon_pt"));
	fx_task(fx, 1, &r);
}

/* The task waited for a model; files came from two servers. */
static void a_model_and_files(struct fixture *fx)
{
	case_network_wait(fx, AT);
	server_row_of(fx, "grpc", "triton:8001", 40, 0, 8000000000);
	server_row(fx, "slow", 20, 0, 60000000);
	server_row(fx, "fast", 20, 0, 20000000);
}

/* A model is slower than a file server, and has nothing to be compared with. */
static void a_model_and_a_file_server(struct fixture *fx)
{
	case_network_wait(fx, AT);
	server_row_of(fx, "grpc", "triton:8001", 40, 0, 8000000000);
	server_row(fx, "fast", 40, 0, 40000000);
}

static void two_models(struct fixture *fx)
{
	server_row_of(fx, "grpc", "other:8001", 40, 0, 2000000000);
	a_model_and_a_file_server(fx);
}

struct more {
	void (*make)(struct fixture *fx);
	const char *id, *sentence, *advice; /* substrings; "!...": must be absent */
	double cost;			    /* NAN: not compared */
	struct {
		const char *name, *text; /* NULL: a number */
		double number;
	} evidence[5];
};

#define ANY ((double)NAN)
static const struct more more[] = {
	{paused,
	 "stalled",
	 "the run has been stalled for 40.00 s: 7 ready on the workers; 1 of 1 worker paused, at "
	 "85 % of "
	 "the memory limit",
	 "Dask pauses a worker whose memory is above 80 % of its limit",
	 ANY,
	 {{"quiet_seconds", NULL, 40},
	  {"ready", NULL, 7},
	  {"paused_workers", NULL, 1},
	  {"paused_memory_percent", NULL, 85},
	  {"running", NULL, 0}}},
	{no_reason,
	 "stalled",
	 "40.00 s: 7 ready on the workers; the workers' reports do not explain it",
	 "Check the scheduler's log",
	 ANY,
	 {{"ready", NULL, 7}, {"paused_workers", NULL, 0}}},
	{two_runs,
	 "serialization",
	 "; transfers of 1 other run on these workers are included",
	 "",
	 ANY,
	 {{"concurrent_runs", NULL, 1}}},
	{disk_times,
	 "spill",
	 "; writing and reading them took 3.000 s",
	 "",
	 1.5,
	 {{"disk_seconds", NULL, 3}}},
	{a_table_too,
	 "not_by_coffea",
	 ", most of it (3.000 GB) from '/data/weights.json.gz'",
	 "Load '/data/weights.json.gz' once per worker",
	 ANY,
	 {{"file", "/data/weights.json.gz", 0}, {"file_read_bytes", NULL, 3e9}}},
	{a_table_of_objects,
	 "not_by_coffea",
	 "; full garbage collections took at least 1.500 s of CPU",
	 "Load '/data/weights.json.gz' once per worker",
	 ANY,
	 {{"collected_seconds", NULL, 1.5}}},
	/* the CPU of one worker, or the time without tasks: 38 of 40 thread-seconds, 1 of 2 */
	{starts_meanwhile, "fresh_workers", "used 2.000 s of CPU", "", 2, {{NULL, NULL, 0}}},
	{starts_at_once, "fresh_workers", "used 2.000 s of CPU", "", 0.5, {{NULL, NULL, 0}}},
	{starts_and_idles,
	 "fresh_workers",
	 "imported 1.000 MB of Python modules outside tasks; threads without a task used 2.000 s "
	 "of CPU",
	 "",
	 ANY,
	 {{"tasks_cpu_seconds", NULL, 4}}},
	{starts_meanwhile,
	 "idle_threads",
	 "; fresh workers imported Python modules meanwhile: 2.000 s of CPU outside tasks",
	 "",
	 4.75,
	 {{NULL, NULL, 0}}},
	{last_chunk_1,
	 "tail",
	 "'Processor', took 10.00 s, dataset 'data', file '/a.root', entries 8 to 160,000",
	 "chunksize=10_000, and",
	 ANY,
	 {{"chunksize", NULL, 10000},
	  {"last_dataset", "data", 0},
	  {"last_file", "/a.root", 0},
	  {"last_entrystart", NULL, 8},
	  {"last_entrystop", NULL, 160000}}},
	{last_chunk_2, "tail", "", "chunksize=20_000, and", ANY, {{"chunksize", NULL, 20000}}},
	{last_chunk_5, "tail", "", "chunksize=50_000, and", ANY, {{"chunksize", NULL, 50000}}},
	{queue_of_many,
	 "run_queue",
	 "; 'node' has 8 worker threads on 4 cores",
	 "here --nworkers 4 --nthreads 1.",
	 1,
	 {{"host", "node", 0}, {"threads", NULL, 8}, {"cores", NULL, 4}}},
	{queue_of_others,
	 "run_queue",
	 "4 worker threads on 4 cores, so other processes kept",
	 "Other processes use these cores",
	 1,
	 {{NULL, NULL, 0}}},
	{queue_of_libraries,
	 "run_queue",
	 "4 worker threads on 4 cores, and threads of these workers that belong to no task used "
	 "500.0 ms of CPU meanwhile",
	 "OMP_NUM_THREADS=1, NUMBA_NUM_THREADS=1",
	 1,
	 {{"outside_cpu_seconds", NULL, 0.5}}},
	{queue_beside_the_loop,
	 "run_queue",
	 "4 worker threads on 4 cores, so other processes kept",
	 "Other processes use these cores",
	 1,
	 {{NULL, NULL, 0}}},
	{locked_by_libraries,
	 "lock_wait",
	 ", and threads of these workers that belong to no task used 1.000 s of CPU meanwhile",
	 "so this is the job's work",
	 ANY,
	 {{"outside_cpu_seconds", NULL, 1}}},
	{locked_by_locks,
	 "lock_wait",
	 "!threads of these",
	 "hold the lock",
	 ANY,
	 {{NULL, NULL, 0}}},
	{queue_of_pools,
	 "run_queue",
	 ", and tasks had 3 threads of their own running on average",
	 "!--nworkers",
	 1,
	 {{"threads_per_task", NULL, 3}}},
	{more_to_do,
	 "cpu_bound",
	 "",
	 "The run is CPU-bound and had work queued",
	 ANY,
	 {{"busy_percent", NULL, 80}, {"tasks_per_thread", NULL, 10}}},
	{nine_to_do, "cpu_bound", "", "!work queued", ANY, {{NULL, NULL, 0}}},
	{a_model_and_files,
	 "network_wait",
	 "; 'triton:8001' answered 40 requests in 200.0 ms on average",
	 "let the inference server run more instances of the model",
	 ANY,
	 {{"server", "triton:8001", 0}}},
	{a_model_and_files,
	 "slow_server",
	 "'slow' answered 20 requests in 3.000 ms on average, the other servers in 1.000 ms",
	 "",
	 ANY,
	 {{"other_requests", NULL, 20}}},
	{two_models,
	 "slow_server",
	 "'triton:8001' answered 40 requests in 200.0 ms on average, the other servers in 50.00 ms",
	 "",
	 ANY,
	 {{"other_requests", NULL, 40}}},
	{raised,
	 "failed_work",
	 "!it raised", /* the run's state contains that, and the location */
	 "entry_start=1_000, entry_stop=2_500",
	 ANY,
	 {{"error_type", "KeyError", 0}, {"error", "Muon_pt", 0}, {"first_file", "/a.root", 0}}},
};

static void assert_part(const char *id, const char *text, const char *part)
{
	bool there = strstr(text, *part == '!' ? part + 1 : part) != NULL;

	if (there != (*part != '!'))
		fail_msg("%s: '%s' and '%s'", id, text, part);
}

static void check_one(const struct more *m, const struct finding *f)
{
	if (!f)
		fail_msg("%s found nothing", m->id);
	assert_part(m->id, f->sentence, m->sentence);
	assert_part(m->id, f->advice, m->advice);
	if (!isnan(m->cost) && !(fabs(f->cost_s - m->cost) < 1e-6))
		fail_msg("%s costs %g, not %g", m->id, f->cost_s, m->cost);
	for (size_t i = 0; i < 5 && m->evidence[i].name; i++) {
		struct value v = evidence_of(f, m->evidence[i].name);

		if (m->evidence[i].text)
			assert_string_equal(v.v.s, m->evidence[i].text);
		else
			assert_near(v, m->evidence[i].number);
	}
}

static void test_what_runs_add(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
		struct fixture *fx = fx_new();
		struct found found;

		more[i].make(fx);
		collect(fx, &found);
		check_one(&more[i], finding_of(&found, more[i].id));
		found_free(&found);
		fx_free(fx);
	}
}

/* The findings of a chunk of 11 s that computes and sleeps for these times, and reads three times
 * what coffea requested or the same amount. The caller releases it. */
static struct fixture *reading_chunk(bool reads, uint64_t cpu_ms, uint64_t sleep_ms,
				     const char *probe, struct found *found)
{
	struct fixture *fx = fx_new();
	struct task_record r = chunk(1, "a", 0, 11000, "/a", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, cpu_ms);
	SET_OWN(&r, sleep, sleep_ms);
	SET_COUNT(&r, read_bytes, reads ? 15000000 : 5000000);
	TASK_SET(&r, coffea_bytesread, 5000000);
	fx_task(fx, 1, &r);
	fx_dask(fx, 1, 500, probe);
	collect(fx, found);
	return fx;
}

/* Collections of objects that chunks create from what they read are not a separate cause. */
static void test_collections_after_reading(void **state)
{
	(void)state;
	for (int reads = 0; reads < 2; reads++) {
		const char *probe = "{\"nthreads\": 1, \"digests\": [], \"gc_seconds\": 1.5}";
		struct found found;
		struct fixture *fx = reading_chunk(reads, 10000, 0, probe, &found);

		assert_int_equal(finding_of(&found, "gc_pauses") != NULL, !reads);
		assert_int_equal(finding_of(&found, "not_by_coffea") != NULL, reads);
		found_free(&found);
		fx_free(fx);
	}
}

/* A cause whose cost is only known in part is ranked where the finding that it explains would
 * be. */
static void test_a_cause_stands_for_what_it_costs(void **state)
{
	(void)state;
	for (int reads = 0; reads < 2; reads++) {
		const char *probe = "{\"nthreads\": 1, \"digests\": [], \"gc_seconds\": 2.5}";
		struct found found;
		struct fixture *fx = reading_chunk(reads, 8000, 2000, probe, &found);

		assert_string_equal(found.list.v[0].id, reads ? "not_by_coffea" : "gc_pauses");
		assert_string_equal(found.list.v[1].id, "sleeping");
		assert_true(!reads || found.list.v[0].cost_s < found.list.v[1].cost_s);
		found_free(&found);
		fx_free(fx);
	}
}

/* The line to paste, if the file's name can be part of it. */
static void test_a_failed_chunk_alone(void **state)
{
	static const char *const file[] = {"/data/a b.root", "/data/it's.root",
					   "/data/\303\244.root"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct fixture *fx = fx_new();
		struct task_record r = chunk(1, "a", 0, 1000, file[i], 10000, 20000);
		const struct finding *f;
		struct found found;

		fx_hello(fx, 1, "{}");
		TASK_SET(&r, status, T("erred"));
		TASK_SET(&r, error_type, T("KeyError"));
		fx_task(fx, 1, &r);
		collect(fx, &found);
		f = finding_of(&found, "failed_work");
		assert_string_equal(f->advice,
				    i ? "The result lacks these tasks: check their errors, or use "
					"retries."
				      : "See the error alone: "
					"Processor().process(NanoEventsFactory.from_root({'/data/a "
					"b.root': 'Events'}, entry_start=10_000, "
					"entry_stop=20_000).events())");
		/* the run's state has the location */
		assert_string_equal(f->sentence, "1 attempt failed for good: 1.000 s of work");
		assert_string_equal(evidence_of(f, "error_type").v.s, "KeyError");
		assert_string_equal(evidence_of(f, "first_file").v.s, file[i]);
		found_free(&found);
		fx_free(fx);
	}
}

/* A key without a name does not print as the processor's. */
static void test_a_failed_chunk_without_a_name(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = chunk(1, "a", 0, 1000, "/data/a.root", 10000, 20000);
	struct found found;

	(void)state;
	r.known &= ~(UINT64_C(1) << TASK_F_prefix);
	fx_hello(fx, 1, "{}");
	TASK_SET(&r, status, T("erred"));
	fx_task(fx, 1, &r);
	collect(fx, &found);
	assert_string_equal(finding_of(&found, "failed_work")->advice,
			    "See the error alone: YourProcessor().process("
			    "NanoEventsFactory.from_root({'/data/a.root': 'Events'}, "
			    "entry_start=10_000, entry_stop=20_000).events())");
	found_free(&found);
	fx_free(fx);
}

/* 3 s of collections between two probes, of which the 2 s before the run may be another run's. */
static void test_collections_of_the_run_before(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct fixture *fx = fx_new();
		struct task_record r = work(1, "a", 3000, 7000);
		const struct finding *f;
		struct found found;

		fx_hello(fx, 1, "{}");
		SET_OWN(&r, cpu, 4000);
		fx_task(fx, 1, &r);
		fx_dask(fx, 1, late ? 1000 : 500,
			"{\"nthreads\": 1, \"digests\": [], \"gc_seconds\": 1}");
		fx_dask(fx, 1, 5000, "{\"nthreads\": 1, \"digests\": [], \"gc_seconds\": 4}");
		collect(fx, &found);
		f = finding_of(&found, "gc_pauses");
		if (late)
			assert_near(evidence_of(f, "collected_seconds"), 1);
		else
			assert_null(f);
		found_free(&found);
		fx_free(fx);
	}
}

/* A chunk that lacks this count, or this field. */
static void chunk_without(struct fixture *fx, uint64_t counts, uint64_t field, const char *path)
{
	struct task_record r = chunk(1, "a", 0, 1000, path, 0, 1000);
	char columns[200] = "c";

	for (int i = 1; i < 50; i++)
		strcat(columns, "\nc");
	fx_hello(fx, 1, "{}");
	TASK_SET(&r, columns, T(columns));
	SET_COUNT(&r, read_calls, 5000);
	r.count_known &= ~counts;
	r.known &= ~field;
	if (field == UINT64_C(1) << TASK_F_wall_ns)
		r.own_known = 0;
	fx_task(fx, 1, &r);
}

static void no_read_bytes(struct fixture *fx)
{
	chunk_without(fx, CREMA_COUNT_BIT(read_bytes), 0, "/a");
}

static void no_events(struct fixture *fx)
{
	chunk_without(fx, 0,
		      UINT64_C(1) << TASK_F_events | UINT64_C(1) << TASK_F_entrystart |
			      UINT64_C(1) << TASK_F_entrystop,
		      "/a");
}

static void no_cpu(struct fixture *fx)
{
	chunk_without(fx, 0, UINT64_C(1) << TASK_F_wall_ns, "/a");
}

static void no_baskets(struct fixture *fx)
{
	chunk_without(fx, 0, 0, "root://s//a.root");
}

static void no_size(struct fixture *fx)
{
	const struct file_of f = {1000000, 1000000, 750000, 750000, true};

	chunk_without(fx, 0, 0, "/data/a.root");
	file(fx, "/data/a.root", &f);
}

static void no_codec_cpu(struct fixture *fx)
{
	struct task_record r = work(1, "a", 0, 5000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	fx_pairs(fx, 1, CREMA_MSG_CODEC, "function:s", "zlib.compress", "codec:s", "zlib",
		 "direction:s", "compress", "span:s", "span", "in_bytes:u", UINT64_C(1000), NULL);
}

/* The offset between its clock and UTC is unknown. */
static void no_clock(struct fixture *fx)
{
	struct task_record r = chunk(1, "a", 0, 5000, "/a", 0, 1000);
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &b);
	pack_map(&pk, 2);
	pack_text(&pk, "facts");
	pack_map(&pk, 2);
	pack_kv_u64(&pk, "pid", 1);
	pack_kv_text(&pk, "stack", "{\"nthreads\": 1}");
	pack_text(&pk, "task_fields");
	task_pack_names(&pk);
	fx_frame(fx, CREMA_FRAME_HELLO, 1, 0, &b);
	buf_release(&b);
	fx_task(fx, 1, &r);
}

static void test_other_gaps(void **state)
{
	static const struct {
		void (*make)(struct fixture *fx);
		const char *id, *gap;
	} gaps[] = {
		{no_read_bytes, "small_reads", "read_bytes"},
		{no_events, "python_heavy", "total_events"},
		{no_cpu, "python_heavy", "total_cpu_time_true"},
		{no_baskets, "remote_amplification", "basket_bytes"},
		{no_size, "wide_read", "size_bytes"},
		{no_codec_cpu, "compression", "codecs"},
		{no_clock, "idle_threads", "wall_time"},
		{no_clock, "late_workers", "peak_workers"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(gaps) / sizeof(*gaps); i++) {
		struct fixture *fx = fx_new();
		struct found found;
		const char *gap;

		gaps[i].make(fx);
		collect(fx, &found);
		gap = gap_of(&found, gaps[i].id);
		if (!gap || strcmp(gap, gaps[i].gap) != 0)
			fail_msg("%s lacks %s, not %s", gaps[i].id, gap ? gap : "nothing",
				 gaps[i].gap);
		found_free(&found);
		fx_free(fx);
	}
}

/* Nine tasks of 500 ms and one of 2 s, of which `queued` ms were waiting for a core. */
static void straggler_queued(struct fixture *fx, int queued)
{
	struct task_record r;
	char key[8];

	worker(fx, 1, 1, 6500);
	for (int i = 0; i < 10; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, i * 500, i == 9 ? 6500 : i * 500 + 500);
		SET_OWN(&r, runqueue, i == 9 ? queued : 0);
		fx_task(fx, 1, &r);
	}
}

/* 3 s and 1 s; the busiest worker's task waited `queued` ms for a core. */
static void imbalance_queued(struct fixture *fx, int queued)
{
	struct task_record r = work(1, "a", 0, 3000);

	worker(fx, 1, 1, 3000);
	worker(fx, 2, 1, 3000);
	SET_OWN(&r, runqueue, queued);
	fx_task(fx, 1, &r);
	task_of(fx, 2, 1, "b", 0, 500, 1);
	task_of(fx, 2, 2, "c", 2500, 500, 1);
}

static void test_only_waiting_for_a_core_is_a_note(void **state)
{
	/* own excess: 2 - q - (4.5 + 2 - q) / 10 = 1.35 - 0.9 q; (3 - q) - (4 - q) / 2 = 1 - q / 2
	 */
	static const struct {
		void (*make)(struct fixture *fx, int queued);
		const char *id;
		int queued;
		enum finding_severity severity;
	} cases[] = {
		{straggler_queued, "stragglers", 944, FINDING_WARNING},
		{straggler_queued, "stragglers", 945, FINDING_NOTE},
		{imbalance_queued, "worker_imbalance", 1000, FINDING_WARNING},
		{imbalance_queued, "worker_imbalance", 1001, FINDING_NOTE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture *fx = fx_new();
		const struct finding *f;
		struct found found;

		cases[i].make(fx, cases[i].queued);
		collect(fx, &found);
		f = finding_of(&found, cases[i].id);
		assert_non_null(f);
		if (f->severity != cases[i].severity)
			fail_msg("%s, %d ms in the queue: a %s", f->id, cases[i].queued,
				 finding_severity_name(f->severity));
		found_free(&found);
		fx_free(fx);
	}
}

/* One by one on two workers, five tasks of 1 s on the first and one on the second; Dask reported
 * how many were queued on the first while each ran. NULL: it reported nothing. */
static void one_by_one_on_two(struct fixture *fx, const char *probe)
{
	char key[8];

	worker(fx, 1, 1, 9000);
	worker(fx, 2, 1, 9000);
	for (int i = 0; i < 6; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		task_of(fx, i == 5 ? 2 : 1, (uint64_t)i + 1, key, i * 1500, 1000, 1000);
		if (probe && i < 5)
			fx_dask(fx, 1, i * 1500 + 500, probe);
	}
}

/* If no task waits for the busiest worker, no other worker could have run it. */
static void test_one_by_one_is_no_imbalance(void **state)
{
	static const struct {
		const char *probe;
		bool imbalance;
	} cases[] = {
		{"{\"nthreads\": 1, \"executing\": 1, \"ready\": 0}", false},
		{"{\"nthreads\": 1, \"executing\": 1, \"ready\": 4}", true},
		{NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture *fx = fx_new();
		struct found found;

		one_by_one_on_two(fx, cases[i].probe);
		collect(fx, &found);
		assert_int_equal(!!finding_of(&found, "worker_imbalance"), cases[i].imbalance);
		assert_int_equal(!strstr(finding_of(&found, "idle_threads")->advice, "together"),
				 cases[i].imbalance);
		found_free(&found);
		fx_free(fx);
	}
}

/* A probe may coincide with a task that is about to start, or see the next run's queue. */
static void test_one_by_one_despite_a_queue(void **state)
{
	static const char *const idle = "{\"nthreads\": 1, \"executing\": 1, \"ready\": 0}",
				 *const queued =
					 "{\"nthreads\": 1, \"executing\": 1, \"ready\": 4}";

	(void)state;
	for (int next_run = 0; next_run < 2; next_run++) {
		struct fixture *fx = fx_new();
		struct found found;

		one_by_one_on_two(fx, NULL);
		fx_dask(fx, 1, 500, idle);
		if (!next_run)
			fx_dask(fx, 1, 2000, queued);
		fx_dask(fx, 1, 3500, idle);
		if (next_run) {
			fx_dask(fx, 1, 8530, queued);
			fx_dask(fx, 1, 9030, queued);
		}
		collect(fx, &found);
		assert_non_null(strstr(finding_of(&found, "idle_threads")->advice, "together"));
		found_free(&found);
		fx_free(fx);
	}
}

static void test_a_model_is_not_a_slow_file_server(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;

	(void)state;
	a_model_and_a_file_server(fx);
	collect(fx, &found);
	assert_null(finding_of(&found, "slow_server"));
	found_free(&found);
	fx_free(fx);
}

/* The cores were busy, though not with tasks. */
static void test_libraries_are_not_idle_cores(void **state)
{
	struct fixture *fx = fx_new();
	struct found found;

	(void)state;
	locked_by_libraries(fx);
	collect(fx, &found);
	assert_int_equal(finding_of(&found, "lock_wait")->severity, FINDING_NOTE);
	assert_null(finding_of(&found, "low_cpu_efficiency"));
	found_free(&found);
	fx_free(fx);
}

/* Starting workers cost 2 s, or half a second of a run that is hardly longer. */
static void test_a_start_below_a_second_is_a_note(void **state)
{
	(void)state;
	for (int at_once = 0; at_once < 2; at_once++) {
		struct fixture *fx = fx_new();
		struct found found;

		(at_once ? starts_at_once : starts_meanwhile)(fx);
		collect(fx, &found);
		assert_int_equal(finding_of(&found, "fresh_workers")->severity,
				 at_once ? FINDING_NOTE : FINDING_WARNING);
		found_free(&found);
		fx_free(fx);
	}
}

/* Twelve tasks of 500 ms; `modules` of the slow ones read Python modules, which indicates
 * imports. */
static void slow_tasks(struct fixture *fx, const int *slow_ms, int slow, int modules)
{
	struct task_record r;
	char key[16];
	int at = 0;

	fx_hello(fx, 1, "{}");
	for (int i = 0; i < 12; i++) {
		int wall = i < slow ? slow_ms[i] : 500;

		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, at, at + wall);
		SET_COUNT(&r, import_read_bytes, i < modules ? 1000000 : 0);
		fx_task(fx, 1, &r);
		at += wall;
	}
}

/* Tasks that import are only late compared with others that import. */
static void test_importing_is_not_late(void **state)
{
	static const struct {
		int slow_ms[3], slow, modules;
		double excess; /* 0: no straggler */
	} cases[] = {
		{{2000, 2200}, 2, 0, 3.2}, /* neither imports */
		{{2000, 2200}, 2, 2, 0},   /* both do */
		{{2000}, 1, 1, 0},	   /* alone: what else it did is unknown */
		{{2000, 6000}, 2, 2, 4},   /* one of them did more than import */
		{{2000, 3000}, 2, 1, 2.5}, /* the second imports nothing */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture *fx = fx_new();
		const struct finding *f;
		struct found found;

		slow_tasks(fx, cases[i].slow_ms, cases[i].slow, cases[i].modules);
		collect(fx, &found);
		f = finding_of(&found, "stragglers");
		assert_int_equal(f != NULL, cases[i].excess > 0);
		if (f)
			assert_near(evidence_of(f, "excess_seconds"), cases[i].excess);
		found_free(&found);
		fx_free(fx);
	}
}

/* Arguments that arrive before the first task starts belong to the run, unless another run was
 * active since the previous probe. */
static void test_first_arguments(void **state)
{
	static const struct {
		int other_begin, other_end; /* 0, 0: none */
		double arrived;
	} cases[] = {
		{0, 0, 30e6}, {500, 900, 30e6}, {500, 1100, 0}, {500, 2500, 0}, {3500, 4000, 30e6},
	};
	const struct finding *f;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture *fx = fx_new();
		struct found found;

		fx_hello(fx, 1, "{}");
		if (cases[i].other_end)
			fx_simple(fx, 1, 1, "b", "another", 0, cases[i].other_begin,
				  cases[i].other_end, "ok");
		fx_simple(fx, 1, 2, "a", "span", 0, 2000, 2200, "ok");
		fx_simple(fx, 1, 3, "c", "span", 0, 2800, 3000, "ok");
		fx_dask(fx, 1, 1000,
			"{\"nthreads\": 1, \"digests\": [], \"stream_bytes\": 7000000}");
		fx_dask(fx, 1, 2500,
			"{\"nthreads\": 1, \"digests\": [], \"stream_bytes\": 37000000}");
		collect_of(fx, cases[i].other_end && cases[i].other_begin < 2000, &found);
		f = finding_of(&found, "large_arguments");
		assert_int_equal(!!f, cases[i].arrived > 0);
		if (f) {
			assert_near(evidence_of(f, "arrived_bytes"), cases[i].arrived);
			assert_near(evidence_of(f, "idle_thread_seconds"), 0.3);
		}
		found_free(&found);
		fx_free(fx);
	}
}

static void test_large_outputs_are_no_chunk_overhead(void **state)
{
	(void)state;
	for (packed_bytes = 9999999; packed_bytes <= 10000000; packed_bytes++) {
		struct fixture *fx = fx_new();
		struct found found;

		case_chunk_overhead(fx, AT);
		collect(fx, &found);
		assert_int_equal(!finding_of(&found, "chunk_overhead"), packed_bytes == 10000000);
		found_free(&found);
		fx_free(fx);
	}
	packed_bytes = 0;
}

/* Starting Python and a cluster within seconds is only a note, and does not hide other parts. */
static void test_a_usual_start(void **state)
{
	static const struct {
		double imports, workers, preprocess, graph, all;
		const char *part; /* NULL: no finding */
		enum finding_severity severity;
	} t[] = {
		{3, 1, 0, 0, 10, "imports", FINDING_NOTE},
		{1, 3, 0, 0, 10, "workers", FINDING_NOTE},
		{1, 1, 9.9, 0, 20, "preprocess", FINDING_NOTE},
		{1, 10, 0, 0, 20, "workers", FINDING_WARNING},
		{10, 1, 0, 0, 20, "imports", FINDING_WARNING},
		{1, 9, 0, 2.5, 12, "graph", FINDING_WARNING},
		{1, 9, 0, 1.5, 12, "workers", FINDING_NOTE},
		{1.5, 1.5, 0, 0, 9, NULL, FINDING_NOTE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fixture *fx = fx_new();
		const struct finding *f;
		struct found found;
		struct wall w;

		assert_true(case_client_part(fx, AT));
		w = *fx->wall;
		w.seconds = t[i].all;
		w.part[WALL_imports] = value_real(t[i].imports);
		w.part[WALL_workers] = value_real(t[i].workers);
		w.part[WALL_preprocess] = value_real(t[i].preprocess);
		w.part[WALL_graph] = value_real(t[i].graph);
		fx->wall = &w;
		collect(fx, &found);
		f = finding_of(&found, "client_part");
		assert_int_equal(f != NULL, t[i].part != NULL);
		if (f) {
			assert_string_equal(f->evidence[0].value.v.s, t[i].part);
			assert_int_equal(f->severity, t[i].severity);
		}
		found_free(&found);
		fx_free(fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_runs_add),
		cmocka_unit_test(test_collections_after_reading),
		cmocka_unit_test(test_a_cause_stands_for_what_it_costs),
		cmocka_unit_test(test_collections_of_the_run_before),
		cmocka_unit_test(test_a_failed_chunk_alone),
		cmocka_unit_test(test_a_failed_chunk_without_a_name),
		cmocka_unit_test(test_other_gaps),
		cmocka_unit_test(test_large_outputs_are_no_chunk_overhead),
		cmocka_unit_test(test_only_waiting_for_a_core_is_a_note),
		cmocka_unit_test(test_one_by_one_is_no_imbalance),
		cmocka_unit_test(test_one_by_one_despite_a_queue),
		cmocka_unit_test(test_a_model_is_not_a_slow_file_server),
		cmocka_unit_test(test_libraries_are_not_idle_cores),
		cmocka_unit_test(test_a_start_below_a_second_is_a_note),
		cmocka_unit_test(test_importing_is_not_late),
		cmocka_unit_test(test_first_arguments),
		cmocka_unit_test(test_a_usual_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
