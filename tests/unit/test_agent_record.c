/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_record.c - a slot in which each field is different, as the record that is sent. */
#include "tests/unit/values.h"

#include "tests/unit/fake_proc.h"

#include "agent/compose.h"
#include "agent/ending.h"

static struct crema_task filled(struct fake *f)
{
	struct crema_task t;

	fill(&t, sizeof(t), 1);
	strcpy(t.key, "the-key");
	t.key_bytes = 7;
	t.tid = 4321;
	t.flags = CREMA_TASK_CHUNK | CREMA_TASK_TREE_READ;
	t.tree_reads = 5;
	t.status = CREMA_STATUS_OK;
	t.known = t.fs_mask = t.time_unknown = 0;
	t.count_unknown = 0;
	t.unblocked = 0;
	t.start_mono_ns = 100 * SECOND;
	t.stop_mono_ns = 103 * SECOND + 7;
	t.coffea_processtime = 2.5;
	t.entrystart = -3;
	t.prefix = text(f, "prefix");
	t.span = text(f, "span");
	t.function = text(f, "function");
	t.worker_address = text(f, "address");
	t.worker_name = text(f, "name");
	t.dataset = text(f, "dataset");
	t.filename = text(f, "filename");
	t.treename = text(f, "treename");
	t.columns = text(f, "columns");
	t.sections_refused = 9;
	t.sections = 2;
	f->shm->task_section[1] = (struct crema_task_section){
		.wall_ns = 77, .path = text(f, "a b"), .calls = 3, .next = 7};
	f->shm->task_section[6] =
		(struct crema_task_section){.wall_ns = 88,
					    .path = text(f, "c") | CREMA_TASK_SECTION_POOL,
					    .calls = 1,
					    .next = 2};
	t.error_type = text(f, "type");
	t.error_text = text(f, "words");
	t.error_cause = text(f, "cause");
	return t;
}

static struct buf sections = BUF_INIT;

static struct task_record record_of(struct fake *f, const struct crema_task *t, uint32_t state)
{
	const struct compose c = {&f->view, &f->kinds, 0, 110 * SECOND, 210 * SECOND, &sections};
	struct compose_live live = {.storage_read = 0};
	struct task_record r;

	compose_task(&c, &r, t, 3, state, false, false, &live);
	return r;
}

#define ALWAYS_KNOWN                                                                               \
	(F(attempt) | F(thread) | F(thread_sequence) | F(status) | F(key) | F(key_hash) |          \
	 F(prefix) | F(span) | F(function) | F(worker_address) | F(worker_name) | F(flags) |       \
	 F(start_boot_ns) | F(stop_boot_ns) | F(wall_ns) | F(dataset) | F(filename) |              \
	 F(treename) | F(columns) | F(tree_reads) | F(error_type) | F(error_text) |                \
	 F(error_cause) | F(sections))
#define F(name) (UINT64_C(1) << TASK_F_##name)

static void test_fields(void **state)
{
	struct fake *f = *state;
	struct crema_task t = filled(f);
	struct task_record r = record_of(f, &t, CREMA_SLOT_DONE);

	assert_true(r.known == ALWAYS_KNOWN);
	assert_int_equal(r.attempt, t.attempt);
	assert_int_equal(r.thread, 4321);
	assert_int_equal(r.thread_sequence, t.thread_sequence);
	assert_int_equal(r.key_hash, t.key_hash);
	assert_int_equal(r.flags, t.flags);
	assert_int_equal(r.tree_reads, 5);
	assert_int_equal(r.start_boot_ns, t.start_boot_ns);
	assert_int_equal(r.stop_boot_ns, t.stop_boot_ns);
	assert_int_equal(r.wall_ns, 3 * SECOND + 7);
	assert_true(text_is(r.status, "ok") && text_is(r.key, "the-key"));
	assert_true(text_is(r.prefix, "prefix") && text_is(r.span, "span"));
	assert_true(text_is(r.function, "function") && text_is(r.dataset, "dataset"));
	assert_true(text_is(r.worker_address, "address") && text_is(r.worker_name, "name"));
	assert_true(text_is(r.filename, "filename") && text_is(r.treename, "treename"));
	assert_true(text_is(r.columns, "columns"));
	/* a circular list ends, too */
	assert_int_equal(r.sections.len, 1 + 8 * (sizeof(" t 3 77 3 a b p 1 88 1 c") - 1));
	assert_memory_equal(r.sections.ptr, "9 t 3 77 3 a b p 1 88 1 c t", 27);
	assert_true(text_is(r.error_type, "type") && text_is(r.error_text, "words"));
	assert_true(text_is(r.error_cause, "cause"));
	assert_memory_equal(r.own, t.own.time, sizeof(r.own));
	assert_memory_equal(r.pool, t.pool_time, sizeof(r.pool));
	assert_memory_equal(r.count, t.own.count, sizeof(r.count));
	assert_int_equal(r.own_known, (1u << CREMA_TIMES) - 1);
	assert_int_equal(r.pool_known, (1u << CREMA_TIMES) - 1);
	assert_true(r.count_known == (UINT64_C(1) << CREMA_COUNTS) - 1);
	t.status = CREMA_STATUS_ERRED;
	r = record_of(f, &t, CREMA_SLOT_DONE);
	assert_true(text_is(r.status, "erred"));
}

/* Each bit of `known` adds its fields, and no others. */
static void test_fields_that_need_not_be_there(void **state)
{
	struct fake *f = *state;
	struct crema_task t = filled(f);
	const struct {
		uint32_t bit;
		uint64_t fields;
	} cases[] = {
		{CREMA_KNOWN_EVENTS, F(events)},
		{CREMA_KNOWN_BYTESREAD, F(coffea_bytesread)},
		{CREMA_KNOWN_PROCESSTIME, F(coffea_processtime)},
		{CREMA_KNOWN_ENTRIES, F(entrystart) | F(entrystop)},
		{CREMA_KNOWN_RSS_START, F(rss_start_bytes)},
		{CREMA_KNOWN_RSS_STOP, F(rss_stop_bytes)},
		{CREMA_KNOWN_CONSUMES, F(consumes)},
	};
	struct task_record r;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		t.known = cases[i].bit;
		r = record_of(f, &t, CREMA_SLOT_DONE);
		assert_true(r.known == (ALWAYS_KNOWN | cases[i].fields));
	}
	t.known = UINT32_MAX;
	r = record_of(f, &t, CREMA_SLOT_DONE);
	assert_int_equal(r.events, t.events);
	assert_int_equal(r.coffea_bytesread, t.coffea_bytesread);
	assert_true(r.coffea_processtime == 2.5);
	assert_int_equal(r.entrystart, -3);
	assert_int_equal(r.entrystop, t.entrystop);
	assert_int_equal(r.rss_start_bytes, t.rss_start_bytes);
	assert_int_equal(r.rss_stop_bytes, t.rss_stop_bytes);
	assert_int_equal(r.consumes, t.consumes);
	t.flags = t.key_bytes = 0;
	t.key[0] = '\0';
	t.prefix = t.columns = 0;
	t.start_boot_ns = t.stop_boot_ns = 0;
	t.start_mono_ns = 0;
	t.consumes = 0;
	r = record_of(f, &t, CREMA_SLOT_DONE);
	assert_false(r.known & (F(tree_reads) | F(key_hash) | F(key) | F(prefix) | F(columns) |
				F(start_boot_ns) | F(stop_boot_ns) | F(wall_ns)));
	assert_true(r.known & F(consumes) && r.consumes == 0);
}

static void test_unknown_counts(void **state)
{
	struct fake *f = *state;
	struct crema_task t = filled(f);
	struct task_record r;

	t.time_unknown = 1u << CREMA_T_runqueue;
	t.count_unknown = CREMA_COUNT_BIT(write_bytes);
	r = record_of(f, &t, CREMA_SLOT_DONE);
	assert_int_equal(r.own_known, ((1u << CREMA_TIMES) - 1) & ~t.time_unknown);
	assert_int_equal(r.pool_known, r.own_known);
	assert_true(r.count_known == (((UINT64_C(1) << CREMA_COUNTS) - 1) & ~t.count_unknown));
	t.flags |= CREMA_TASK_POOL_UNSEEN;
	r = record_of(f, &t, CREMA_SLOT_DONE);
	assert_int_equal(r.pool_known, 0);
	assert_int_equal(r.own_known, ((1u << CREMA_TIMES) - 1) & ~t.time_unknown);
	assert_false(r.flags & CREMA_TASK_THREAD_REFUSED);
	t.unblocked = 1;
	r = record_of(f, &t, CREMA_SLOT_DONE);
	assert_true(r.flags & CREMA_TASK_THREAD_REFUSED);
}

/* A running task: its time until now, without an end. A killed one: its end is when the worker was
 * last seen. */
static void test_running_and_killed(void **state)
{
	struct fake *f = *state;
	const struct compose c = {&f->view, &f->kinds, 0, 110 * SECOND, 210 * SECOND, &sections};
	struct crema_task t = filled(f);
	struct compose_live live = {.storage_read = 0};
	struct task_record r;

	t.known = CREMA_KNOWN_RSS_START | CREMA_KNOWN_RSS_STOP;
	t.start_boot_ns = 200 * SECOND;
	r = record_of(f, &t, CREMA_SLOT_RUNNING);
	assert_true(text_is(r.status, "running"));
	assert_false(r.known & (F(stop_boot_ns) | F(rss_stop_bytes)));
	assert_int_equal(r.wall_ns, 10 * SECOND);
	assert_int_equal(r.start_boot_ns, 200 * SECOND);
	compose_task(&c, &r, &t, 3, CREMA_SLOT_RUNNING, false, true, &live);
	assert_true(text_is(r.status, "killed"));
	assert_int_equal(r.stop_boot_ns, 210 * SECOND);
	assert_int_equal(r.wall_ns, 10 * SECOND);
	t.start_boot_ns = 210 * SECOND + 1; /* impossible clocks */
	t.start_mono_ns = 110 * SECOND + 1;
	compose_task(&c, &r, &t, 3, CREMA_SLOT_RUNNING, false, true, &live);
	assert_false(r.known & (F(stop_boot_ns) | F(wall_ns)));
}

static struct crema_thread *block(struct fake *f, uint32_t i, uint32_t owner, bool is_pool)
{
	struct crema_thread *t = &f->shm->thread[i];

	fill(t, sizeof(*t), 100 + i);
	*t = (struct crema_thread){
		.state = 1, .tid = 50 + i, .owner = owner, .is_pool = is_pool, .seg = t->seg};
	return t;
}

static void test_blocks_of_its_threads(void **state)
{
	struct fake *f = *state;
	const struct compose c = {&f->view, &f->kinds, 0, 110 * SECOND, 210 * SECOND, &sections};
	struct crema_task t = filled(f);
	struct compose_live live = {.storage_read = 0};
	struct crema_thread *own = block(f, 0, 4, false);
	struct crema_thread *pool = block(f, CREMA_SHM_THREADS - 1, 4, true);
	struct task_record r;

	block(f, 5, 5, false);
	compose_task(&c, &r, &t, 3, CREMA_SLOT_DONE, true, false, &live);
	for (int i = 0; i < CREMA_TIMES; i++) {
		assert_int_equal(r.own[i], t.own.time[i] + own->seg.time[i]);
		assert_int_equal(r.pool[i], t.pool_time[i] + pool->seg.time[i]);
	}
	for (int i = 0; i < CREMA_COUNTS; i++)
		assert_int_equal(r.count[i],
				 t.own.count[i] + own->seg.count[i] + pool->seg.count[i]);
}

/* Only the kernel has the clocks of unfinished work; a reported value never decreases. */
static void test_live_clocks(void **state)
{
	struct fake_file files[] = {
		{"/proc/7/task/50/schedstat", "10000 3000 1\n"},
		{"/proc/7/task/51/schedstat", "20500 7000 1\n"},
		{"/proc/7/task/50/io", "read_bytes: 9216\nwrite_bytes: 51200\n"},
		{"/proc/7/task/51/io", "read_bytes: 2048\nwrite_bytes: 4096\n"},
		{NULL, NULL},
	};
	struct fake *f = *state;
	const struct compose c = {&f->view, &f->kinds, 7, 110 * SECOND, 210 * SECOND, &sections};
	struct crema_task t = filled(f);
	struct crema_thread *own = block(f, 0, 4, false), *pool = block(f, 1, 4, true);
	struct compose_live live = {.storage_read = 0};
	struct task_record r, first;

	own->base_cpu_ns = 4000;
	own->base_runqueue_ns = 1000;
	own->base_inblock = 2;
	own->base_oublock = 10;
	pool->base_cpu_ns = 500;
	pool->base_runqueue_ns = 7001; /* above the kernel's value: counts as 0 */
	fake_proc = files;
	compose_task(&c, &first, &t, 3, CREMA_SLOT_RUNNING, true, false, &live);
	assert_int_equal(first.own[CREMA_T_cpu],
			 t.own.time[CREMA_T_cpu] + own->seg.time[CREMA_T_cpu] + 6000);
	assert_int_equal(first.own[CREMA_T_runqueue],
			 t.own.time[CREMA_T_runqueue] + own->seg.time[CREMA_T_runqueue] + 2000);
	assert_int_equal(first.pool[CREMA_T_cpu],
			 t.pool_time[CREMA_T_cpu] + pool->seg.time[CREMA_T_cpu] + 20000);
	assert_int_equal(first.pool[CREMA_T_runqueue],
			 t.pool_time[CREMA_T_runqueue] + pool->seg.time[CREMA_T_runqueue]);
	assert_int_equal(first.count[CREMA_C_storage_read_bytes],
			 t.own.count[CREMA_C_storage_read_bytes] +
				 own->seg.count[CREMA_C_storage_read_bytes] +
				 pool->seg.count[CREMA_C_storage_read_bytes] + 9216 - 1024 + 2048);
	assert_int_equal(first.count[CREMA_C_storage_write_bytes],
			 t.own.count[CREMA_C_storage_write_bytes] +
				 own->seg.count[CREMA_C_storage_write_bytes] +
				 pool->seg.count[CREMA_C_storage_write_bytes] + 51200 - 5120 +
				 4096);
	fake_proc = files + 4; /* the threads have ended */
	compose_task(&c, &r, &t, 3, CREMA_SLOT_RUNNING, true, false, &live);
	assert_memory_equal(r.own, first.own, sizeof(r.own));
	assert_memory_equal(r.pool, first.pool, sizeof(r.pool));
	assert_memory_equal(r.count, first.count, sizeof(r.count));
	fake_proc = files;
	compose_task(&c, &r, &t, 3, CREMA_SLOT_DONE, true, false, &live);
	assert_int_equal(r.own[CREMA_T_cpu], t.own.time[CREMA_T_cpu] + own->seg.time[CREMA_T_cpu]);
}

/* The shim could not read the delay when the pool thread's segment began. */
static void test_an_unknown_start(void **state)
{
	struct fake_file files[] = {
		{"/proc/7/task/50/schedstat", "10000 3000 1\n"},
		{"/proc/7/task/51/schedstat", "20500 7000 1\n"},
		{NULL, NULL},
	};
	struct fake *f = *state;
	const struct compose c = {&f->view, &f->kinds, 7, 110 * SECOND, 210 * SECOND, &sections};
	const uint32_t all = (1u << CREMA_TIMES) - 1;
	struct crema_task t = filled(f);
	struct crema_thread *own = block(f, 0, 4, false), *pool = block(f, 1, 4, true);
	struct compose_live live = {.storage_read = 0};
	struct task_record r;

	t.time_unknown = 0;
	t.flags &= ~(uint32_t)CREMA_TASK_POOL_UNSEEN;
	fake_proc = files;
	compose_task(&c, &r, &t, 3, CREMA_SLOT_RUNNING, true, false, &live);
	assert_int_equal(r.own_known, all);
	assert_int_equal(r.pool_known, all);
	own->base_runqueue_ns = 1000;
	pool->base_runqueue_ns = CREMA_BASE_UNKNOWN;
	live = (struct compose_live){.storage_read = 0};
	compose_task(&c, &r, &t, 3, CREMA_SLOT_RUNNING, true, false, &live);
	assert_int_equal(r.own_known, all & ~(1u << CREMA_T_runqueue));
	assert_int_equal(r.pool_known, all & ~(1u << CREMA_T_runqueue));
	assert_int_equal(r.pool[CREMA_T_runqueue],
			 t.pool_time[CREMA_T_runqueue] + pool->seg.time[CREMA_T_runqueue]);
	assert_int_equal(r.pool[CREMA_T_cpu],
			 t.pool_time[CREMA_T_cpu] + pool->seg.time[CREMA_T_cpu] + 20500);
}

/* Changing any counter changes the checksum by which an amendment is detected. */
static void test_the_sum(void **state)
{
	struct fake *f = *state;
	struct crema_task t = filled(f);
	uint64_t before = compose_sum(&t);

	for (int i = 0; i < 2 * CREMA_TIMES + CREMA_COUNTS; i++) {
		uint64_t *at = i < CREMA_TIMES	     ? &t.own.time[i]
			       : i < 2 * CREMA_TIMES ? &t.pool_time[i - CREMA_TIMES]
						     : &t.own.count[i - 2 * CREMA_TIMES];

		(*at)++;
		assert_int_not_equal(compose_sum(&t), before);
		(*at)--;
		assert_int_equal(compose_sum(&t), before);
	}
}

/* The highest value that was measured: at both ends, by the agent's polls, as a new peak. */
static void test_peak_memory(void **state)
{
	static const struct {
		uint64_t start, stop, peak, seen, due;
		uint32_t known;
	} cases[] = {
		{9000, 0, 0, 5000, 9000, CREMA_KNOWN_RSS_START},
		{9000, 9500, 0, 5000, 9500, CREMA_KNOWN_RSS_START | CREMA_KNOWN_RSS_STOP},
		{9000, 100, 7000, 5000, 9000,
		 CREMA_KNOWN_RSS_START | CREMA_KNOWN_RSS_STOP | CREMA_KNOWN_RSS_PEAK},
		{9000, 100, 70000, 5000, 70000, CREMA_KNOWN_RSS_START | CREMA_KNOWN_RSS_PEAK},
		{9000, 100, 70000, 5000, 9000, CREMA_KNOWN_RSS_START},
		{90, 9500, 70000, 5000, 5000, CREMA_KNOWN_RSS_START},
	};
	struct fake *f = *state;

	for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
		struct crema_task *t = start(f, i, i + 1);

		t->known = cases[i].known;
		t->rss_start_bytes = cases[i].start;
		t->rss_stop_bytes = cases[i].stop;
		t->rss_peak_bytes = cases[i].peak;
	}
	poll_and_look(f, 0);
	for (uint32_t i = 0; i < COUNT_OF(cases); i++)
		done(f, i, 0);
	ack_all(f);
	poll_and_look(f, 1);
	assert_int_equal(f->n, COUNT_OF(cases));
	for (uint32_t i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(f->r[i].rss_peak_bytes, cases[i].due);
}

/* A peak between two records is kept: the agent checks at each poll. */
static void test_memory_between_records(void **state)
{
	struct fake *f = *state;

	start(f, 0, 1);
	poll_and_look(f, 0);
	assert_int_equal(f->r[0].rss_peak_bytes, 5000);
	ack_all(f);
	f->now += 1;
	drain_poll(&f->drain, 88000, f->now, f->now);
	done(f, 0, 0);
	poll_and_look(f, 1);
	assert_int_equal(f->r[0].rss_peak_bytes, 88000);
}

/* Milliseconds since boot, or one more if that would not be higher. */
static void test_revisions(void **state)
{
	struct fake *f = *state;

	f->now = 5 * SECOND;
	start(f, 0, 1);
	poll_and_look(f, 0);
	assert_int_equal(f->r[0].rev, 5000);
	ack_all(f);
	done(f, 0, 1);
	poll_and_look(f, 1);
	assert_int_equal(f->r[0].rev, 5001);
	ack_all(f);
	f->shm->task[0].version++;
	poll_and_look(f, SECOND);
	assert_int_equal(f->r[0].type, CREMA_MSG_TASK_AMEND);
	assert_int_equal(f->r[0].rev, 5000 + 1000);
}

static void test_slots_and_progress(void **state)
{
	struct fake *f = *state;

	start(f, 0, 1);
	start(f, CREMA_SHM_TASKS - 1, 2);
	start(f, 7, 3);
	done(f, 7, 1);
	poll_and_look(f, 0);
	assert_int_equal(f->drain.running, 2);
	assert_int_equal(f->drain.used, 3);
	ack_all(f);
	poll_and_look(f, DRAIN_PROGRESS_NS - 1);
	assert_int_equal(f->n, 0);
	poll_and_look(f, 1);
	assert_int_equal(f->types[CREMA_MSG_TASK_PROGRESS], 2);
	assert_int_equal(f->r[1].wall_ns, DRAIN_PROGRESS_NS);
	ack_all(f);
	poll_and_look(f, DRAIN_PROGRESS_NS - 1);
	assert_int_equal(f->n, 0);
}

/* What no task could measure, according to all records so far. */
static void test_unknown_in_all_tasks(void **state)
{
	struct fake *f = *state;

	assert_true(f->drain.unknown.time == UINT32_MAX && f->drain.unknown.count == UINT64_MAX);
	for (uint32_t i = 0; i < 2; i++) {
		struct crema_task *t = start(f, i, i + 1);

		t->time_unknown = 6u >> i;
		t->count_unknown = UINT64_C(0xc00000000) >> i;
	}
	poll_and_look(f, 0);
	assert_int_equal(f->drain.unknown.time, 2);
	assert_int_equal(f->drain.unknown.count, 0x400000000);
}

static const msgpack_object *goodbye(struct fake *f, const struct ending *e, uint64_t rss)
{
	ack_all(f);
	ending_goodbye(e, &f->view, &f->out, rss, 3, 777);
	look(f);
	assert_false(f->out.head->light);
	return message(f, CREMA_MSG_GOODBYE, 0);
}

static bool has_evidence(const msgpack_object *m, const char *due)
{
	const msgpack_object_array *all = &get(m, "evidence")->via.array;
	struct text t;

	for (uint32_t i = 0; i < all->size; i++)
		if (object_text(&all->ptr[i], &t) && text_is(t, due))
			return true;
	return false;
}

/* A worker that ended normally; one that was killed near its limit; one that the kernel killed. */
static void test_endings(void **state)
{
	struct fake_file files[] = {
		{"/proc/7/stat", "7 (p) S 1 1 1 1 1 4194304 5 6 7 8 9 10 11 12 13 14 1 15 99 1\n"},
		{"/proc/7/cgroup", "0::/a\n"},
		{"/sys/fs/cgroup/a/memory.events", "oom_kill 2\n"},
		{NULL, NULL},
	};
	static const char facts[] = "{\"x\": 1, \"memory_limit_bytes\": 100000, \"y\": 2}";
	struct fake *f = *state;
	const msgpack_object *m;
	struct buf stack = BUF_INIT;
	struct ending e;

	buf_add(&stack, facts, strlen(facts));
	fake_proc = files;
	ending_init(&e, 7);
	ending_facts(&e, &stack);
	assert_int_equal(e.limit_bytes, 100000);
	assert_int_equal(e.nanny, 1);
	assert_int_equal(e.oom_kills, 2);
	f->shm->goodbye = 1;
	m = goodbye(f, &e, 99999);
	assert_text(m, "how", "exit");
	assert_number(m, "boot_ns", 777);
	assert_number(m, "tasks_in_flight", 3);
	assert_nil(m, "cause");
	assert_true(has_evidence(m, "exit handlers ran"));
	f->shm->goodbye = 2;
	f->shm->exit_status = 41;
	assert_true(has_evidence(goodbye(f, &e, 0), "_exit was called with status 41"));
	f->shm->goodbye = 0;
	m = goodbye(f, &e, 79999);
	assert_text(m, "how", "killed");
	assert_int_equal(get(m, "evidence")->via.array.size, 1);
	m = goodbye(f, &e, 80000);
	assert_true(has_evidence(m, "resident set at 80 % of the worker's memory limit"));
	assert_nil(m, "cause");
	assert_nil(goodbye(f, &e, 94999), "cause");
	assert_text(goodbye(f, &e, 95000), "cause", "killed by the nanny: over the memory limit");
	files[2].text = "oom_kill 3\n";
	m = goodbye(f, &e, 95000);
	assert_true(has_evidence(m, "memory.events oom_kill rose from 2 to 3"));
	assert_text(m, "cause", "killed by the kernel: the cgroup was out of memory");
	buf_release(&stack);
}

#define PARENT(state, flags, threads, start)                                                       \
	"8 (n) " state " 1 1 1 1 1 " flags " 5 6 7 8 9 10 11 12 13 14 " threads " 15 " start " 1"  \
	"\n"

/* Whether its parent is gone as well: while it exits, as a zombie, and when its pid was reused. */
static void test_parents(void **state)
{
	static const struct {
		const char *stat;
		bool gone;
	} now[] = {
		{PARENT("S", "4194304", "4", "50"), false},
		{PARENT("R", "4194308", "4", "50"), true}, /* its files may be closed already */
		{PARENT("Z", "4194308", "1", "50"), true},
		{PARENT("S", "4194304", "4", "51"), true},
		{NULL, true},
	};
	struct fake_file files[] = {
		{"/proc/7/stat", "7 (p) S 8 1 1 1 1 4194304 5 6 7 8 9 10 11 12 13 14 1 15 99 1\n"},
		{"/proc/8/stat", now[0].stat},
		{NULL, NULL},
	};
	struct fake *f = *state;
	struct ending e;
	size_t i;

	fake_proc = files;
	ending_init(&e, 7);
	f->shm->goodbye = 2;
	for (i = 0; i < sizeof(now) / sizeof(*now); i++) {
		files[1].path = now[i].stat ? "/proc/8/stat" : "/proc/none";
		files[1].text = now[i].stat;
		assert_int_equal(
			has_evidence(goodbye(f, &e, 0), "its parent (the nanny) is gone too"),
			now[i].gone);
	}
}

static int proc_teardown(void **state)
{
	fake_proc = NULL;
	return teardown(state);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, proc_teardown)
	const struct CMUnitTest tests[] = {
		T(test_fields),
		T(test_fields_that_need_not_be_there),
		T(test_unknown_counts),
		T(test_running_and_killed),
		T(test_blocks_of_its_threads),
		T(test_live_clocks),
		T(test_an_unknown_start),
		T(test_the_sum),
		T(test_peak_memory),
		T(test_memory_between_records),
		T(test_revisions),
		T(test_slots_and_progress),
		T(test_unknown_in_all_tasks),
		T(test_endings),
		T(test_parents),
	};

	return cmocka_run_group_tests_name("agent record", tests, NULL, NULL);
}
