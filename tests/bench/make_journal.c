/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * make_journal.c - writes the journal of a synthetic run, of any size, with the agents' packers.
 *
 *	make_journal DIR TASKS [WORKERS [RUNS [START [SEED]]]]
 *
 * Coffea chunks of half a second in 4 threads of each worker (default: 20), in RUNS consecutive
 * spans (default: 1), with everything else that agents send: the start of each task, samples,
 * totals and Dask's numbers each second, rows of files and codecs at the end, a goodbye. Every
 * 1,000th attempt fails and is retried. START: seconds of UTC; SEED: of
 * the random numbers. The same arguments give the same run. Prints the sums of its attempts as
 * JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/journal/journal.h"
#include "common/task.h"
#include "tests/bench/chunk.h"

#define THREADS 4u
#define START 1795000000u
#define BOOT_NS UINT64_C(1000000000000)
#define SECOND_NS UINT64_C(1000000000)
#define TASK_NS (SECOND_NS / 2)
#define FAIL_EVERY 1000u

struct worker {
	uint8_t id[CREMA_WORKER_ID_BYTES];
	char address[40], name[16];
	struct buf hello;
	struct journal_hello in_journal;
	uint64_t seq, attempts, tasks, again; /* again: index + 1 of a task to retry */
	uint64_t read, cpu_ns, file_reads[CHUNK_FILES];
};

struct maker {
	struct journal *journal;
	struct worker *worker;
	uint64_t tasks, workers, runs, start, given, seed, failed;
	struct chunk_sums sums; /* of all workers */
	struct buf payload, frame;
	msgpack_packer pk;
	uint32_t messages;
};

static void die(const char *what, int rc)
{
	fprintf(stderr, "make_journal: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void begin_hello(struct maker *m, struct worker *w, uint64_t i)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_HELLO, w->id, 1);
	char stack[256];

	snprintf(stack, sizeof(stack),
		 "{\"nthreads\": %u, \"memory_limit_bytes\": 4000000000, \"worker_address\": "
		 "\"%s\", "
		 "\"worker_name\": \"%s\", \"dask\": \"2026.1.0\"}",
		 THREADS, w->address, w->name);
	buf_clear(&m->payload);
	pack_init(&m->pk, &m->payload);
	pack_map(&m->pk, 2);
	pack_text(&m->pk, "facts");
	pack_map(&m->pk, 7);
	pack_kv_text(&m->pk, "host", "node");
	pack_kv_u64(&m->pk, "pid", 1000 + i);
	pack_kv_u64(&m->pk, "boot_ns", BOOT_NS);
	pack_kv_u64(&m->pk, "real_ns", m->start * SECOND_NS);
	pack_kv_u64(&m->pk, "cores", 64);
	pack_kv_u64(&m->pk, "memory_bytes", UINT64_C(256000000000));
	pack_kv_text(&m->pk, "stack", stack);
	pack_text(&m->pk, "task_fields");
	task_pack_names(&m->pk);
	if (frame_encode(&w->hello, &head, m->payload.data, m->payload.len))
		die("hello", -1);
	w->in_journal = (struct journal_hello){w->hello.data, w->hello.len, 0};
}

static void begin_frame(struct maker *m)
{
	buf_clear(&m->payload);
	pack_init(&m->pk, &m->payload);
	m->messages = 0;
}

/* The array's header is written once its length is known. */
static void end_frame(struct maker *m, struct worker *w)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_DATA, w->id, 1);
	struct buf whole = BUF_INIT;
	msgpack_packer pk;
	int rc;

	pack_init(&pk, &whole);
	pack_array(&pk, m->messages);
	buf_add(&whole, m->payload.data, m->payload.len);
	head.first_seq = w->seq;
	head.count = m->messages;
	w->seq += m->messages;
	buf_clear(&m->frame);
	rc = frame_encode(&m->frame, &head, whole.data, whole.len);
	if (!rc)
		rc = journal_add(m->journal, &w->in_journal, m->frame.data, m->frame.len);
	if (rc)
		die("journal", rc);
	buf_release(&whole);
}

static void begin_map(struct maker *m, uint64_t type, size_t n)
{
	pack_array(&m->pk, 2);
	pack_u64(&m->pk, type);
	pack_map(&m->pk, n);
	m->messages++;
}

/* One task: its start and end; its counts are added to the worker's. */
static void put_task(struct maker *m, struct worker *w, uint64_t task, unsigned int thread,
		     uint64_t start_ns, bool fails)
{
	struct chunk chunk = {
		.task = task,
		.run = task * m->runs / m->tasks,
		.attempt = ++w->attempts,
		.thread = thread,
		.threads = THREADS,
		.address = w->address,
		.name = w->name,
		.start_ns = start_ns,
		.task_ns = TASK_NS,
		.fails = fails,
		.with_start = true,
		.seed = &m->seed,
	};
	struct chunk_sums sums = {0};

	m->messages += chunk_pack(&m->pk, &chunk, &sums);
	w->read += sums.read_bytes;
	w->cpu_ns += sums.cpu_ns;
	m->sums.read_bytes += sums.read_bytes;
	m->sums.cpu_ns += sums.cpu_ns;
	m->sums.events += sums.events;
	m->failed += fails;
	w->file_reads[task % CHUNK_FILES] += sums.read_bytes;
}

static void put_second(struct maker *m, struct worker *w, uint64_t boot_ns)
{
	char dask[160];

	begin_map(m, CREMA_MSG_SAMPLE, 6);
	pack_kv_u64(&m->pk, "boot_ns", boot_ns);
	pack_kv_f64(&m->pk, "cpu_percent", 350);
	pack_kv_f64(&m->pk, "cpu_seconds", (double)w->cpu_ns / 1e9);
	pack_kv_u64(&m->pk, "rss_bytes", 900000000 + chunk_random(&m->seed, 1000) * 4096);
	pack_kv_u64(&m->pk, "threads", 20);
	pack_kv_u64(&m->pk, "tasks_running", THREADS);
	begin_map(m, CREMA_MSG_TOTALS, 5);
	pack_kv_u64(&m->pk, "boot_ns", boot_ns);
	pack_kv_u64(&m->pk, "tasks_done", w->attempts);
	pack_kv_u64(&m->pk, "records_refused", 0);
	pack_text(&m->pk, "tasks");
	pack_map(&m->pk, 2);
	pack_kv_u64(&m->pk, "read_bytes", w->read);
	pack_kv_u64(&m->pk, "cpu_ns", w->cpu_ns);
	pack_text(&m->pk, "unattributed");
	pack_map(&m->pk, 1);
	pack_kv_u64(&m->pk, "read_bytes", 0);
	snprintf(dask, sizeof(dask),
		 "{\"executing\": %u, \"ready\": 3, \"nthreads\": %u, \"nbytes_managed\": 1000000, "
		 "\"status\": \"running\"}",
		 THREADS, THREADS);
	pack_array(&m->pk, 3);
	pack_u64(&m->pk, CREMA_MSG_DASK);
	pack_u64(&m->pk, boot_ns);
	pack_text(&m->pk, dask);
	m->messages++;
}

/* One second of one worker: two tasks per thread. */
static void second(struct maker *m, struct worker *w, uint64_t at_ns)
{
	unsigned int thread, half;
	uint64_t task;
	bool fails;

	begin_frame(m);
	for (half = 0; half < 2; half++) {
		for (thread = 0; thread < THREADS; thread++) {
			if (!w->again && m->given == m->tasks)
				continue;
			task = w->again ? w->again - 1 : m->given++;
			fails = !w->again && task % FAIL_EVERY == FAIL_EVERY - 1;
			w->again = fails ? task + 1 : 0;
			put_task(m, w, task, thread, at_ns + half * TASK_NS, fails);
		}
	}
	put_second(m, w, at_ns + SECOND_NS);
	end_frame(m, w);
}

static void finish(struct maker *m, struct worker *w, uint64_t at_ns)
{
	char path[96];
	uint64_t file;

	begin_frame(m);
	for (file = 0; file < CHUNK_FILES; file++) {
		if (!w->file_reads[file])
			continue;
		snprintf(path, sizeof(path), "/store/nano/sample%llu/file%llu.root",
			 (unsigned long long)(file % 8), (unsigned long long)file);
		begin_map(m, CREMA_MSG_FILE, 7);
		pack_kv_text(&m->pk, "path", path);
		pack_kv_text(&m->pk, "span", "00000000-0000-4000-8000-000000000000");
		pack_kv_text(&m->pk, "kind", "data");
		pack_kv_text(&m->pk, "storage", "exact");
		pack_kv_u64(&m->pk, "size_bytes", UINT64_C(2000000000));
		pack_kv_u64(&m->pk, "read_calls", w->file_reads[file] / 50000);
		pack_kv_u64(&m->pk, "read_bytes", w->file_reads[file]);
	}
	begin_map(m, CREMA_MSG_GOODBYE, 2);
	pack_kv_u64(&m->pk, "boot_ns", at_ns);
	pack_kv_text(&m->pk, "how", "exit");
	end_frame(m, w);
}

static void make(struct maker *m)
{
	uint64_t i, at_ns = BOOT_NS + SECOND_NS;
	bool more = true;

	for (i = 0; i < m->workers; i++) {
		memset(m->worker[i].id, 0xc0, sizeof(m->worker[i].id));
		memcpy(m->worker[i].id, &i, sizeof(i));
		snprintf(m->worker[i].address, sizeof(m->worker[i].address),
			 "tcp://10.0.%u.%u:4%03u", (unsigned int)(i / 250), (unsigned int)(i % 250),
			 (unsigned int)(i % 1000));
		snprintf(m->worker[i].name, sizeof(m->worker[i].name), "worker-%u",
			 (unsigned int)i);
		begin_hello(m, &m->worker[i], i);
	}
	for (; more; at_ns += SECOND_NS) {
		more = m->given < m->tasks;
		for (i = 0; i < m->workers; i++) {
			more |= m->worker[i].again != 0;
			second(m, &m->worker[i], at_ns);
		}
	}
	for (i = 0; i < m->workers; i++) {
		finish(m, &m->worker[i], at_ns + SECOND_NS);
		buf_release(&m->worker[i].hello);
	}
}

static void print_sums(const struct maker *m)
{
	printf("{\"attempts\": %llu, \"failed\": %llu, \"events\": %llu, \"read_bytes\": %llu, "
	       "\"cpu_ns\": %llu}\n",
	       (unsigned long long)(m->tasks + m->failed), (unsigned long long)m->failed,
	       (unsigned long long)m->sums.events, (unsigned long long)m->sums.read_bytes,
	       (unsigned long long)m->sums.cpu_ns);
}

int main(int argc, char **argv)
{
	struct maker m = {.workers = 20, .runs = 1, .start = START, .seed = 88172645463325252u};
	struct journal_config config = {0};
	int rc;

	if (argc < 3) {
		fprintf(stderr, "usage: make_journal DIR TASKS [WORKERS [RUNS [START [SEED]]]]\n");
		return 2;
	}
	m.tasks = strtoull(argv[2], NULL, 10);
	m.workers = argc > 3 ? strtoull(argv[3], NULL, 10) : m.workers;
	m.runs = argc > 4 ? strtoull(argv[4], NULL, 10) : m.runs;
	m.start = argc > 5 ? strtoull(argv[5], NULL, 10) : m.start;
	m.seed = argc > 6 ? strtoull(argv[6], NULL, 10) : m.seed;
	if (!m.tasks || !m.workers || !m.runs || !m.seed)
		return 2;
	m.worker = calloc(m.workers, sizeof(*m.worker));
	if (!m.worker)
		die("memory", -12);
	mkdir(argv[1], 0700);
	config.dir = argv[1];
	m.journal = journal_open(&config, &rc);
	if (!m.journal)
		die(argv[1], rc);
	make(&m);
	print_sums(&m);
	rc = journal_close(m.journal);
	buf_release(&m.payload);
	buf_release(&m.frame);
	free(m.worker);
	if (rc)
		die(argv[1], rc);
	return 0;
}
