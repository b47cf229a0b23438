/* SPDX-License-Identifier: BSD-3-Clause */
/* findings_cases_work.h - cases of wasted work, slow tasks, Dask, Python and missing data. */
#ifndef FINDINGS_CASES_WORK_H
#define FINDINGS_CASES_WORK_H

/* Two attempts at one key. */
static bool attempts(struct fixture *fx, int side, const char *first, const char *second)
{
	if (side != AT && side != BELOW)
		return false;
	fx_hello(fx, 1, "{}");
	if (first && side == AT)
		fx_simple(fx, 1, 1, "a", "span", 0, 0, 1000, first);
	if (second || side == BELOW)
		fx_simple(fx, 1, 2, "a", "span", 0, 2000, 3000, second ? second : "ok");
	return true;
}

static bool case_killed_work(struct fixture *fx, int side)
{
	return attempts(fx, side, "killed", "ok");
}

static bool case_failed_work(struct fixture *fx, int side)
{
	return attempts(fx, side, "erred", NULL);
}

static bool case_retried_work(struct fixture *fx, int side)
{
	return attempts(fx, side, "erred", "ok");
}

static bool case_recomputed_work(struct fixture *fx, int side)
{
	if (side == AT) { /* on a worker that left: otherwise a later call requested it */
		fx_hello(fx, 2, "{}");
		fx_simple(fx, 2, 1, "a", "span", 0, 0, 1000, "ok");
		fx_goodbye(fx, 2, 1500, "killed");
	}
	return attempts(fx, side, NULL, "ok");
}

/* Ten tasks of `median` ms, the last one longer. */
static bool case_stragglers(struct fixture *fx, int side)
{
	int median = side == BELOW_SECOND ? 400 : 500, i, at = 0, wall;
	struct task_record r;
	char key[16];

	if (side == UNKNOWN)
		return false;
	fx_hello(fx, 1, "{}");
	for (i = 0; i < 10; i++) {
		wall = i < 9 ? median : side == BELOW ? 1499 : side == BELOW_SECOND ? 1399 : 1500;
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, at, at + wall);
		fx_task(fx, 1, &r);
		at += wall;
	}
	return true;
}

/* 4 tasks of 500 ms on one worker, 7 of 250 ms on another. */
static bool case_slow_worker(struct fixture *fx, int side)
{
	int median = side == BELOW ? 300 : side == BELOW_SECOND ? 240 : 250;
	int slow = side == BELOW ? 599 : side == BELOW_SECOND ? 489 : 500, i;
	struct task_record r;
	char key[16];

	if (side == UNKNOWN)
		return false;
	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	for (i = 0; i < 11; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = i < 4 ? work((uint64_t)i + 1, key, i * slow, i * slow + slow)
			  : work((uint64_t)i - 3, key, (i - 4) * median, (i - 3) * median);
		fx_task(fx, i < 4 ? 1 : 2, &r);
	}
	return true;
}

/* 1 s more than another task of its kind, of 10 s in total. */
static bool case_imports(struct fixture *fx, int side)
{
	int wall = side == BELOW ? 5501 : side == BELOW_SECOND ? 5499 : 5500;
	int other = side == BELOW ? 4501 : 4500;
	struct task_record r = work(1, "a", 0, wall);

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, import_read_bytes, 1000000);
	if (side == UNKNOWN)
		r.count_known &= ~CREMA_COUNT_BIT(import_read_bytes);
	fx_task(fx, 1, &r);
	r = work(2, "b", 6000, 6000 + other);
	fx_task(fx, 1, &r);
	return true;
}

/* Of a worker's life until then: CPU of tasks and of all threads (0: unknown), and bytes of modules
 * that were read without a task. */
static void fresh_totals_at(struct fixture *fx, uint64_t at_ms, uint64_t tasks_ms, uint64_t seen_ms,
			    uint64_t imports)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_TOTALS, seen_ms ? 4 : 3);
	pack_kv_u64(&pk, "boot_ns", AT(at_ms));
	pack_text(&pk, "tasks");
	pack_map(&pk, 2);
	pack_kv_u64(&pk, "cpu_ns", tasks_ms * 1000000);
	pack_kv_u64(&pk, "pool_cpu_ns", 0);
	pack_text(&pk, "unattributed");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "import_read_bytes", imports);
	if (seen_ms) {
		pack_text(&pk, "seen");
		pack_map(&pk, 1);
		pack_kv_u64(&pk, "cpu_ns", seen_ms * 1000000);
	}
	fx_end(fx, 1, &b);
}

static void fresh_totals(struct fixture *fx, uint64_t tasks_ms, uint64_t seen_ms, uint64_t imports)
{
	fresh_totals_at(fx, 5000, tasks_ms, seen_ms, imports);
}

static bool case_fresh_workers(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	if (side == BELOW)
		fresh_totals(fx, 4001, 6001, 1000000);
	else if (side == BELOW_SECOND)
		fresh_totals(fx, 1000, 2999, 1000000);
	else if (side == AT)
		fresh_totals(fx, 4000, 6000, 1000000);
	return true;
}

static bool case_dask_overhead(struct fixture *fx, int side)
{
	struct task_record r = chunk(1, "a", 0,
				     side == BELOW	    ? 4001
				     : side == BELOW_SECOND ? 3900
							    : 4000,
				     "/a", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	r = work(2, "merge", 5000, side == BELOW_SECOND ? 5999 : 6000);
	TASK_SET(&r, prefix, T("merge"));
	if (side == UNKNOWN)
		r.known &= ~(UINT64_C(1) << TASK_F_wall_ns);
	fx_task(fx, 1, &r);
	return true;
}

static bool case_tiny_tasks(struct fixture *fx, int side)
{
	int i, n = side == BELOW ? 199 : 200, wall = side == BELOW_SECOND ? 51 : 50;
	struct task_record r;
	char key[16];

	fx_hello(fx, 1, "{}");
	for (i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, i * 100, i * 100 + wall);
		if (side == UNKNOWN && i == 7)
			r.known &= ~(UINT64_C(1) << TASK_F_wall_ns);
		fx_task(fx, 1, &r);
	}
	return true;
}

static bool case_serialization(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0,
				    side == BELOW	   ? 10001
				    : side == BELOW_SECOND ? 9000
							   : 10000);
	char json[400];

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	snprintf(json, sizeof(json),
		 "{\"digests\": [[\"execute\", \"span\", \"task\", \"serialize\", \"seconds\", "
		 "%s], [\"execute\", \"span\", \"task\", \"deserialize\", \"seconds\", 0.25]]}",
		 side == BELOW_SECOND ? "0.749" : "0.75");
	if (side != UNKNOWN)
		fx_dask(fx, 1, 500, json);
	return true;
}

/* Ten tasks on one thread; meanwhile the scheduler sent 10 MB, 1 MB for each. The increments of the
 * first and the last probe may belong to other runs. */
static bool case_large_arguments(struct fixture *fx, int side)
{
	int i, n = side == BELOW ? 11 : side == BELOW_SECOND ? 9 : 10;
	struct task_record r;
	char key[16], json[80];

	fx_hello(fx, 1, "{}");
	for (i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, 1000 + i * 500, 1400 + i * 500);
		fx_task(fx, 1, &r);
	}
	snprintf(json, sizeof(json), "{\"nthreads\": 1, \"digests\": [], \"stream_bytes\": %d}",
		 side == BELOW_SECOND ? 10000499 : 10000500);
	fx_dask(fx, 1, 800, "{\"nthreads\": 1, \"digests\": [], \"stream_bytes\": 20}");
	fx_dask(fx, 1, 1200, "{\"nthreads\": 1, \"digests\": [], \"stream_bytes\": 500}");
	fx_dask(fx, 1, 5000, json);
	fx_dask(fx, 1, 7000,
		side == UNKNOWN ? "{\"nthreads\": 1, \"digests\": []}"
				: "{\"nthreads\": 1, \"digests\": [], \"stream_bytes\": 50000000}");
	return true;
}

static void sent(struct fixture *fx, int ms, bool known, uint64_t sent_bytes,
		 uint64_t received_bytes)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_TOTALS, 3);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_text(&pk, "tasks");
	pack_map(&pk, 2);
	pack_kv_maybe(&pk, "comm_write_bytes", known, 0);
	pack_kv_u64(&pk, "comm_read_bytes", 0);
	pack_text(&pk, "unattributed");
	pack_map(&pk, 2);
	pack_kv_u64(&pk, "comm_write_bytes", sent_bytes);
	pack_kv_u64(&pk, "comm_read_bytes", received_bytes);
	fx_end(fx, 1, &b);
}

/* A task of 10 s, or of 11; 100 MB were sent between the totals 3 and 4 s after its end. Messages
 * of 13 s and one task are deducted. What was sent before the first totals in the run may belong to
 * another one. */
static bool case_large_results(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 1000, side == BELOW_SECOND ? 12000 : 11000);
	uint64_t messages = 10000 + 1300000, n = side == BELOW ? 99999999 : 100000000;

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	sent(fx, 500, true, 0, 0);
	sent(fx, 2000, true, 700000000, 0);
	sent(fx, 8000, side != UNKNOWN, 700000000, 3000);
	sent(fx, 14000, true, 700000000, 3000);
	sent(fx, 15000, true, 700003000 + messages + n, 3000);
	return true;
}

/* 1 s of 10 s of CPU. */
static bool case_gc_pauses(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, side == BELOW_SECOND ? 9000 : 11000);
	char json[80];

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, side == BELOW ? 10001 : side == BELOW_SECOND ? 9000 : 10000);
	fx_task(fx, 1, &r);
	snprintf(json, sizeof(json), "{\"nthreads\": 1, \"digests\": []%s%s}",
		 side == UNKNOWN ? "" : ", \"gc_seconds\": ",
		 side == UNKNOWN	? ""
		 : side == BELOW_SECOND ? "0.999"
					: "1");
	fx_dask(fx, 1, 500, json);
	return true;
}

/* 1 s of CPU outside of codecs over 10,000 events is 100 us. */
/* A task of 10 s that computes; 100 samples are one second. */
static bool case_hot_line(struct fixture *fx, int side)
{
	static const struct fx_place line[] = {{"sort", "/lib/numpy.py", 7, false},
					       {"P.process", "/home/an.py", 42, true}};
	static const struct fx_place rest = {"run", "/lib/dask.py", 1, false};
	uint64_t cpu = side == BELOW ? 299 : side == BELOW_SECOND ? 99 : 300;
	uint64_t others = side == BELOW ? 701 : side == BELOW_SECOND ? 201 : 700;
	struct task_record r = work(1, "a", 0, 10000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, 10000);
	fx_task(fx, 1, &r);
	fx_samples(fx, 1, 0, side != UNKNOWN, cpu, 2, line);
	fx_samples(fx, 1, 1, side != UNKNOWN, others, 1, &rest);
	return true;
}

static bool case_python_heavy(struct fixture *fx, int side)
{
	struct task_record r = chunk(1, "a", 0, 5000, "/a", 0, side == BELOW ? 10001 : 10000);

	if (side == BELOW_SECOND)
		r = chunk(1, "a", 0, 5000, "/a", 0, 9000);
	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, side == BELOW_SECOND ? 1499 : 1500);
	SET_COUNT(&r, decompress_cpu_ns, 500000000);
	if (side == UNKNOWN)
		r.count_known &= ~CREMA_COUNT_BIT(decompress_cpu_ns);
	fx_task(fx, 1, &r);
	return true;
}

/* A process without Dask that began at 0 s. */
static void plain_process(struct fixture *fx, bool start_known)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &b);
	pack_map(&pk, 2);
	pack_text(&pk, "facts");
	pack_map(&pk, start_known ? 4 : 3);
	pack_kv_u64(&pk, "pid", 1);
	pack_kv_u64(&pk, "boot_ns", BOOT);
	pack_kv_u64(&pk, "real_ns", BASE * UINT64_C(1000000000));
	if (start_known)
		pack_kv_u64(&pk, "start_ticks", BOOT / 10000000);
	pack_text(&pk, "task_fields");
	task_pack_names(&pk);
	fx_frame(fx, CREMA_FRAME_HELLO, 1, 0, &b);
	buf_release(&b);
}

/* Its first chunk began after 1 of 5 s. */
static bool case_process_start(struct fixture *fx, int side)
{
	int first = side == BELOW_SECOND ? 999 : 1000;
	int end = side == BELOW ? 5001 : side == BELOW_SECOND ? 4000 : 5000;
	struct task_record r = chunk(1, "a", first, first + 1000, "/a", 0, 1000);

	TASK_SET(&r, span, T("coffea-ab.1"));
	plain_process(fx, side != UNKNOWN);
	fx_task(fx, 1, &r);
	fx_goodbye(fx, 1, end, "exit");
	return true;
}

static bool case_incomplete(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	if (side == BELOW_SECOND)
		return false;
	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	if (side != UNKNOWN)
		totals(fx, 0, 0, 0, 0);
	if (side == AT)
		fx->seq[1] += 3; /* three records are missing before the next one */
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(500), NULL);
	return true;
}

/* The other worker's last message came 10 s later. */
static bool case_silent_workers(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	if (side != AT && side != BELOW)
		return false;
	fx_hello(fx, 1, "{}");
	fx_hello(fx, 2, "{}");
	fx_task(fx, 1, &r);
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(1000), NULL);
	fx_map(fx, 2, CREMA_MSG_SAMPLE, "boot_ns", AT(side == AT ? 12000 : 10000), NULL);
	return true;
}

static bool case_unmeasured_tasks(struct fixture *fx, int side)
{
	if (side != AT && side != BELOW)
		return false;
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", side == AT ? CREMA_TASK_ASYNC : 0, 0, 1000, "ok");
	return true;
}

/* 1 s in addition to 2 s of the task. */
static bool case_outside_threads(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 6000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, side == BELOW ? 2001 : side == BELOW_SECOND ? 1000 : 2000);
	fx_task(fx, 1, &r);
	if (side == UNKNOWN)
		return true;
	fresh_totals_at(fx, 0, 0, 9000, 0);
	fresh_totals_at(fx, 6500, 2000, side == BELOW_SECOND ? 11999 : 12000, 0);
	return true;
}

/* 1 s in addition to 5 s of tasks. */
static bool case_child_processes(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 6000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, side == BELOW ? 5001 : side == BELOW_SECOND ? 1000 : 5000);
	fx_task(fx, 1, &r);
	if (side == UNKNOWN)
		return true;
	totals_at(fx, 0, 0, 0, 0, 0);
	totals(fx, 0, 0, 0, side == BELOW_SECOND ? 999 : 1000);
	return true;
}

/* 2 of 10 s for the graph; imports took less. */
static bool case_client_part(struct fixture *fx, int side)
{
	static struct wall w;
	size_t i;

	memset(&w, 0, sizeof(w));
	for (i = 0; i < WALL_PARTS; i++)
		w.part[i] = value_real(0);
	w.read = true;
	w.seconds = side == BELOW ? 10.01 : side == BELOW_SECOND ? 9 : 10;
	w.part[WALL_imports] = value_real(1.5);
	w.part[WALL_steady] = value_real(5);
	w.part[WALL_gather] = value_real(0.5);
	w.part[WALL_graph] =
		side == UNKNOWN ? value_null() : value_real(side == BELOW_SECOND ? 1.999 : 2);
	fx->wall = &w;
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 0, 1000, "ok");
	return true;
}

#endif
