/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_totals.c - the worker's sums, sections and gauges as messages, number by number. */
#include "tests/unit/values.h"

#include "agent/rows.h"
#include "common/rows.h"

static const struct value totals_values[] = {
	VALUE(crema_totals, tasks_started),
	VALUE(crema_totals, tasks_done),
	VALUE(crema_totals, tasks_refused),
	VALUE(crema_totals, strings_refused),
	VALUE(crema_totals, files_refused),
	VALUE(crema_totals, threads_refused),
	VALUE(crema_totals, shared_network_read_bytes),
	VALUE(crema_totals, shared_network_write_bytes),
};
/* Classes whose clocks are not read for threads without a task. */
#define REST_TIMES (1u << CREMA_T_cpu | 1u << CREMA_T_runqueue)
#define REST_COUNTS                                                                                \
	(CREMA_COUNT_BIT(storage_read_bytes) | CREMA_COUNT_BIT(storage_write_bytes) |              \
	 CREMA_COUNT_BIT(voluntary_switches) | CREMA_COUNT_BIT(involuntary_switches))

static struct rows rows;
static const struct drain_unknown all_known;

static int rows_setup(void **state)
{
	int rc = setup(state);
	struct fake *f = *state;

	rows_init(&rows, &f->view, &f->out, &f->kinds);
	return rc;
}

static int rows_teardown(void **state)
{
	rows_release(&rows);
	return teardown(state);
}

static const msgpack_object *totals(struct fake *f, const struct drain_unknown *unknown, bool last)
{
	ack_all(f);
	rows_totals(&rows, unknown, last, 4242);
	look(f);
	assert_int_equal(f->types[CREMA_MSG_TOTALS], 1);
	assert_int_equal(f->out.head->light, !last);
	return message(f, CREMA_MSG_TOTALS, 0);
}

static void fill_totals(struct fake *f)
{
	struct crema_totals *t = &f->shm->totals;

	fill(t, sizeof(*t), 1);
	t->count_unknown = 0;
	t->claimed_network_read_bytes = 0;
	t->threads_refused = t->tasks_unblocked = 0;
}

static struct crema_thread *thread(struct fake *f, uint32_t i, uint32_t owner, bool is_pool)
{
	struct crema_thread *t = &f->shm->thread[i];

	fill(t, sizeof(*t), 100 + i);
	t->state = 1;
	t->owner = owner;
	t->is_pool = is_pool;
	t->folding = 0;
	return t;
}

static void test_plain_sums(void **state)
{
	struct fake *f = *state;
	struct crema_totals *t = &f->shm->totals;
	const msgpack_object *m, *part;

	fill_totals(f);
	f->out.dropped = 3;
	fill(&f->shm->unmeasured, sizeof(f->shm->unmeasured), 2);
	m = totals(f, &all_known, false);
	assert_values(m, t, totals_values, COUNT_OF(totals_values));
	assert_number(m, "boot_ns", 4242);
	assert_number(m, "records_refused", t->records_refused + 3);
	assert_counters(get(m, "tasks"), &t->tasks, t->tasks_pool_time, 0, 0);
	assert_counters(get(m, "unattributed"), &t->unattributed, NULL, REST_TIMES, REST_COUNTS);
	part = get(m, "unmeasured");
	assert_number(part, "outside", f->shm->unmeasured.outside);
	assert_number(part, "refused", f->shm->unmeasured.refused);
	assert_number(part, "values", f->shm->unmeasured.values);
	assert_number(part, "columns", f->shm->unmeasured.columns);
	assert_nil(m, "snapshot_boot_ns");
	assert_nil(get(m, "process"), "cpu_ns");
	assert_int_equal(get(m, "notes")->via.array.size, 0);
	totals(f, &all_known, true);
}

static void add_times(uint64_t *to, const uint64_t *more)
{
	for (int i = 0; i < CREMA_TIMES; i++)
		to[i] += more[i];
}

static void add_counts(struct crema_counters *to, const struct crema_counters *more)
{
	for (int i = 0; i < CREMA_COUNTS; i++)
		to->count[i] += more->count[i];
}

/* Blocks of threads: own, pool, without a task; one that is being folded only counts afterwards. */
static void test_live_blocks(void **state)
{
	struct fake *f = *state;
	struct crema_totals due, *t = &f->shm->totals;
	struct crema_thread *own, *pool, *free_one, *folding;
	const msgpack_object *m;

	fill_totals(f);
	own = thread(f, 0, 5, false);
	pool = thread(f, 7, 5, true);
	free_one = thread(f, CREMA_SHM_THREADS - 1, 0, true);
	folding = thread(f, 9, 6, false);
	folding->folding = 1;
	thread(f, 11, 5, false)->state = 0;
	due = *t;
	add_times(due.tasks.time, own->seg.time);
	add_times(due.tasks_pool_time, pool->seg.time);
	add_times(due.unattributed.time, free_one->seg.time);
	add_counts(&due.tasks, &own->seg);
	add_counts(&due.tasks, &pool->seg);
	add_counts(&due.unattributed, &free_one->seg);
	m = totals(f, &all_known, false);
	assert_counters(get(m, "tasks"), &due.tasks, due.tasks_pool_time, 0, 0);
	assert_counters(get(m, "unattributed"), &due.unattributed, NULL, REST_TIMES, REST_COUNTS);
	add_times(due.tasks.time, folding->seg.time);
	add_counts(&due.tasks, &folding->seg);
	m = totals(f, &all_known, true);
	assert_counters(get(m, "tasks"), &due.tasks, due.tasks_pool_time, 0, 0);
}

/* From the snapshot: what the process used, and what open segments had used by then. */
static void test_snapshot(void **state)
{
	static const struct value amounts[] = {
		{"process", offsetof(struct crema_snapshot, process_cpu_ns)},
		{"seen", offsetof(struct crema_snapshot, seen_cpu_ns)},
		{"children", offsetof(struct crema_snapshot, children_cpu_ns)},
	};
	struct fake *f = *state;
	struct crema_snapshot *snap = &f->shm->snapshot;
	struct crema_totals due;
	struct crema_thread *own, *pool;
	const msgpack_object *m, *part;

	fill_totals(f);
	fill(snap, sizeof(*snap), 2);
	snap->seq = 2;
	snap->flags = 1;
	own = thread(f, 1, 5, false);
	pool = thread(f, 2, 5, true);
	thread(f, 3, 0, false);
	memset(&own->seg, 0, sizeof(own->seg));
	memset(&pool->seg, 0, sizeof(pool->seg));
	memset(&f->shm->thread[3].seg, 0, sizeof(own->seg));
	pool->now_oublock = pool->base_oublock - 1; /* a thread's clock never decreases */
	due = f->shm->totals;
	due.tasks.time[CREMA_T_cpu] += own->now_cpu_ns - own->base_cpu_ns;
	due.tasks_pool_time[CREMA_T_cpu] += pool->now_cpu_ns - pool->base_cpu_ns;
	due.tasks.count[CREMA_C_storage_read_bytes] +=
		512 *
		(own->now_inblock - own->base_inblock + pool->now_inblock - pool->base_inblock);
	due.tasks.count[CREMA_C_storage_write_bytes] +=
		512 * (own->now_oublock - own->base_oublock);
	m = totals(f, &all_known, false);
	assert_counters(get(m, "tasks"), &due.tasks, due.tasks_pool_time, 0, 0);
	assert_number(m, "snapshot_boot_ns", snap->boot_ns);
	for (size_t i = 0; i < COUNT_OF(amounts); i++) {
		part = get(m, amounts[i].name);
		assert_number(part, "cpu_ns", number_at(snap, amounts[i].at));
		assert_number(part, "storage_read_bytes", 512 * number_at(snap, amounts[i].at + 8));
		assert_number(part, "storage_write_bytes",
			      512 * number_at(snap, amounts[i].at + 16));
	}
	snap->flags = 2; /* one thread's io could not be read */
	m = totals(f, &all_known, false);
	assert_nil(get(m, "seen"), "storage_read_bytes");
	assert_nil(get(m, "seen"), "storage_write_bytes");
	assert_number(get(m, "seen"), "cpu_ns", snap->seen_cpu_ns);
	assert_number(get(m, "process"), "storage_read_bytes", 512 * snap->process_inblock);
	snap->seq = 3; /* it is being written */
	assert_nil(totals(f, &all_known, false), "snapshot_boot_ns");
}

/* Values that no task could measure, and those that the shim marked, are nil; the others are
 * not. Threads without a task count what they receive, whatever is unknown of tasks. */
static void test_unknown_sums(void **state)
{
	uint64_t network = CREMA_COUNT_BIT(network_read_bytes);
	struct drain_unknown unknown = {1u << CREMA_T_sleep, CREMA_COUNT_BIT(late_bytes) | network};
	struct fake *f = *state;
	struct crema_totals *t = &f->shm->totals;
	uint64_t counts = CREMA_COUNT_BIT(late_bytes) | CREMA_COUNT_BIT(read_bytes);
	const msgpack_object *m;

	fill_totals(f);
	t->count_unknown = CREMA_COUNT_BIT(read_bytes);
	m = totals(f, &unknown, false);
	assert_counters(get(m, "tasks"), &t->tasks, t->tasks_pool_time, unknown.time,
			counts | network);
	assert_nil(get(m, "tasks"), "pool_sleep_ns");
	assert_counters(get(m, "unattributed"), &t->unattributed, NULL, REST_TIMES | unknown.time,
			REST_COUNTS | counts);
	t->count_unknown = network;
	m = totals(f, &all_known, false);
	assert_nil(get(m, "unattributed"), "network_read_bytes");
}

/* Threads without a block: what they did is missing in the rest, and if they worked for tasks, in
 * the sums of these, too. */
static void test_threads_without_a_block(void **state)
{
	struct fake *f = *state;
	struct crema_totals *t = &f->shm->totals;
	const msgpack_object *m;

	fill_totals(f);
	t->threads_refused = 1;
	m = totals(f, &all_known, false);
	assert_number(m, "threads_refused", 1);
	assert_counters(get(m, "tasks"), &t->tasks, t->tasks_pool_time, 0, 0);
	assert_counters(get(m, "unattributed"), &t->unattributed, NULL, UINT32_MAX, UINT64_MAX);
	assert_null(get(m, "io_uring"));
	t->tasks_unblocked = 1;
	m = totals(f, &all_known, false);
	assert_counters(get(m, "tasks"), &t->tasks, t->tasks_pool_time, UINT32_MAX, UINT64_MAX);
	assert_non_null(get(m, "io_uring")); /* the numbers of files */
}

/* Network bytes that were attributed to tasks are no longer part of the rest. */
static void test_claimed_bytes(void **state)
{
	struct fake *f = *state;
	struct crema_totals due, *t = &f->shm->totals;
	const msgpack_object *m;

	fill_totals(f);
	due = *t;
	t->claimed_network_read_bytes = 1000;
	due.unattributed.count[CREMA_C_network_read_bytes] -= 1000;
	m = totals(f, &all_known, false);
	assert_counters(get(m, "unattributed"), &due.unattributed, NULL, REST_TIMES, REST_COUNTS);
	t->claimed_network_read_bytes = t->unattributed.count[CREMA_C_network_read_bytes];
	m = totals(f, &all_known, false);
	assert_number(get(m, "unattributed"), "network_read_bytes", 0);
	t->claimed_network_read_bytes++;
	m = totals(f, &all_known, false);
	assert_nil(get(m, "unattributed"), "network_read_bytes");
	assert_number(get(m, "tasks"), "network_read_bytes",
		      t->tasks.count[CREMA_C_network_read_bytes]);
}

static void test_blocked_and_notes(void **state)
{
	static const char *const names[] = {
#define TIME(id, ...) #id "_ns",
#define COUNT(id, unit, ...)
#include "counters.def"
#undef TIME
#undef COUNT
	};
	struct fake *f = *state;
	struct crema_blocked *b = &f->shm->blocked;
	const msgpack_object *m, *part;

	fill(b, sizeof(*b), 6);
	f->shm->note[0] = text(f, "first");
	f->shm->note[1] = 3; /* not a text */
	f->shm->note[CREMA_SHM_NOTES - 1] = text(f, "last");
	m = totals(f, &all_known, false);
	part = get(m, "blocked");
	assert_number(part, "threshold_ns", b->threshold_ns);
	assert_number(part, "recorded", b->recorded);
	for (int i = 0; i < CREMA_TIMES; i++) {
		assert_number(get(part, "calls"), names[i], b->calls[i]);
		assert_number(get(part, "ns"), names[i], b->ns[i]);
	}
	part = get(m, "notes");
	assert_int_equal(part->via.array.size, 2);
	assert_memory_equal(part->via.array.ptr[0].via.str.ptr, "first", 5);
	assert_memory_equal(part->via.array.ptr[1].via.str.ptr, "last", 4);
	b->threshold_ns = 0;
	assert_nil(get(totals(f, &all_known, false), "blocked"), "threshold_ns");
}

static const msgpack_object *row(struct fake *f, bool last, unsigned int type, unsigned int due)
{
	rows_sections(&rows, last);
	look(f);
	assert_int_equal(f->types[type], due);
	return message(f, type, 0);
}

static struct crema_section *section(struct fake *f, uint32_t i)
{
	struct crema_section *s = &f->shm->section[i];

	fill(s, sizeof(*s), i + 1);
	s->seq = 20;
	s->safe_seq = 0;
	s->state = 2;
	s->path = text(f, "outer/inner");
	s->span = text(f, "a-span");
	s->prefix = text(f, "process");
	s->dataset = text(f, "ttbar");
	memset(s->wall_bucket, 0, sizeof(s->wall_bucket));
	s->wall_bucket[3] = 2;
	s->wall_bucket[5] = 7;
	s->flags = s->unsure = s->time_unknown = s->fs_mask = 0;
	s->count_unknown = 0;
	return s;
}

static void assert_identity(const msgpack_object *m)
{
	assert_text(m, "path", "outer/inner");
	assert_text(m, "span", "a-span");
	assert_text(m, "prefix", "process");
}

/* The reported times of single uses: none for a row in which none has ended. */
static void assert_walls(const msgpack_object *m, bool any)
{
	static const uint64_t told[] = {3, 2, 0, 7};
	const msgpack_object *b = get(m, "wall_buckets");

	assert_int_equal(is_nil(get(m, "wall_min_ns")), !any);
	assert_int_equal(is_nil(get(m, "wall_max_ns")), !any);
	assert_int_equal(b->via.array.size, any ? 4 : 1);
	for (uint32_t i = 0; any && i < 4; i++)
		assert_int_equal(b->via.array.ptr[i].via.u64, told[i]);
}

static void test_sections(void **state)
{
	static const struct value values[] = {
		VALUE(crema_section, number),	   VALUE(crema_section, begun),
		VALUE(crema_section, broken),	   VALUE(crema_section, wall_ns),
		VALUE(crema_section, wall_min_ns), VALUE(crema_section, wall_max_ns),
		VALUE(crema_section, count),	   {"rev", offsetof(struct crema_section, seq)},
	};
	struct fake *f = *state;
	struct crema_section *s = section(f, 2);
	const msgpack_object *m;

	f->shm->section[3] = *s;
	f->shm->section[3].state = 0;
	m = row(f, false, CREMA_MSG_SECTION, 1);
	assert_values(m, s, values, COUNT_OF(values));
	assert_identity(m);
	assert_text(m, "thread", "task");
	assert_text(m, "source", "crema");
	assert_text(m, "dataset", "ttbar");
	assert_null(get(m, "beyond"));
	assert_walls(m, true);
	assert_counters(get(m, "counters"), &s->own, s->pool_time, 0, 0);
	f->shm->filesystem[4] = (struct crema_filesystem){.state = 2, .f_type = 0x6969};
	fskinds_poll(&f->kinds, &f->view, getpid());
	ack_all(f);
	s->seq = 22;
	s->flags = CREMA_SECTION_POOL;
	s->unsure = 1;
	s->time_unknown = 1u << CREMA_T_gil_wait;
	s->count_unknown = CREMA_COUNT_BIT(write_bytes);
	s->fs_mask = 1u << 4;
	m = row(f, true, CREMA_MSG_SECTION, 1);
	assert_false(f->out.head->light);
	assert_text(m, "thread", "pool");
	assert_counters(get(m, "counters"), &s->own, NULL, s->time_unknown,
			CREMA_COUNT_BIT(write_bytes) | CREMA_COUNT_BIT(storage_read_bytes) |
				CREMA_COUNT_BIT(cached_bytes) | CREMA_COUNT_BIT(readahead_bytes));
	ack_all(f);
	s->seq = 24;
	s->flags = CREMA_SECTION_FOUND | CREMA_SECTION_BEYOND;
	s->dataset = 0;
	s->count = 0;
	memset(s->wall_bucket, 0, sizeof(s->wall_bucket));
	m = row(f, false, CREMA_MSG_SECTION, 1);
	assert_text(m, "source", "roastcoffea");
	assert_true(is_nil(get(m, "dataset")));
	assert_true(get(m, "beyond")->via.boolean);
	assert_walls(m, false);
	assert_null(get(m, "counters"));
	assert_int_equal(m->via.map.size, 16);
}

static void test_gauges(void **state)
{
	static const struct {
		uint32_t flags;
		const char *kind, *source;
	} cases[] = {
		{0, "value", "crema"},
		{CREMA_SECTION_MEMORY, "memory", "crema"},
		{CREMA_SECTION_BYTES | CREMA_SECTION_FOUND, "bytes", "roastcoffea"},
	};
	struct fake *f = *state;
	struct crema_gauge *g = &f->shm->gauge[1];
	const msgpack_object *m, *stats;

	fill(g, sizeof(*g), 5);
	g->state = 2;
	g->path = text(f, "outer/inner");
	g->span = text(f, "a-span");
	g->prefix = text(f, "process");
	for (unsigned int i = 0; i < CREMA_GAUGE_STATS; i++)
		g->stat[i] = (struct crema_stat){i, 10 + i, 20 + i, 30.5 + i, -40.25 + i};
	for (size_t k = 0; k < COUNT_OF(cases); k++) {
		g->flags = cases[k].flags;
		g->seq = 2 + 2 * k;
		m = row(f, false, CREMA_MSG_GAUGE, 1);
		assert_text(m, "kind", cases[k].kind);
		assert_text(m, "source", cases[k].source);
		assert_number(m, "number", g->number);
		assert_number(m, "rev", g->seq);
		assert_number(m, "broken", g->broken);
		assert_identity(m);
		stats = get(m, "stats");
		assert_int_equal(stats->via.array.size, CREMA_GAUGE_STATS);
		for (unsigned int i = 0; i < CREMA_GAUGE_STATS; i++) {
			const msgpack_object *o = stats->via.array.ptr[i].via.array.ptr;

			assert_int_equal(o[0].via.u64, i);
			assert_true(o[1].via.f64 == 10 + i && o[2].via.f64 == 20 + i);
			assert_true(o[3].via.f64 == 30.5 + i && o[4].via.f64 == -40.25 + i);
		}
		ack_all(f);
	}
}

/* Sent when it changed; sent as a record after three quiet polls; released when that has
 * arrived. */
static void test_a_quiet_row_goes_for_good(void **state)
{
	struct fake *f = *state;
	struct crema_section *s = section(f, 0);

	s->seq = 0; /* the first number */
	row(f, false, CREMA_MSG_SECTION, 1);
	assert_true(f->out.head->light);
	for (int changes = 0; changes < 2; changes++) {
		ack_all(f);
		row(f, false, CREMA_MSG_SECTION, 0);
		row(f, false, CREMA_MSG_SECTION, 0);
		s->seq += 2;
		row(f, false, CREMA_MSG_SECTION, 1);
	}
	ack_all(f);
	for (unsigned int polls = 1; polls < ROWS_QUIET_POLLS; polls++)
		row(f, false, CREMA_MSG_SECTION, 0);
	row(f, false, CREMA_MSG_SECTION, 1);
	assert_false(f->out.head->light);
	row(f, false, CREMA_MSG_SECTION, 1);
	assert_int_equal(s->safe_seq, 0); /* not yet acknowledged */
	ack_all(f);
	row(f, false, CREMA_MSG_SECTION, 0);
	assert_int_equal(s->safe_seq, s->seq);
	s->seq += 2;
	row(f, false, CREMA_MSG_SECTION, 1);
	rows_forget(&rows);
	ack_all(f);
	row(f, false, CREMA_MSG_SECTION, 1);
}

static const msgpack_object *column(struct fake *f, bool busy, unsigned int due)
{
	rows_columns(&rows, busy, false);
	look(f);
	assert_int_equal(f->types[CREMA_MSG_COLUMN], due);
	return message(f, CREMA_MSG_COLUMN, 0);
}

/* The known numbers of a column, one bit each. */
static uint64_t column_known(const msgpack_object *m, const struct crema_column *c)
{
	uint64_t known = 0;

	for (unsigned int i = 0; i < CREMA_COLUMN_NUMBERS; i++) {
		if (is_nil(get(m, row_column[i].name)))
			continue;
		assert_number(m, row_column[i].name, c->counted[i]);
		known |= UINT64_C(1) << i;
	}
	return known;
}

#define BIT(name) (UINT64_C(1) << CREMA_COLUMN_N_##name)
#define ALL_NUMBERS ((UINT64_C(1) << CREMA_COLUMN_NUMBERS) - 1)

static uint64_t counted_bits(void)
{
	uint64_t bits = 0;

	for (unsigned int i = 0; i < CREMA_COLUMN_NUMBERS; i++)
		bits |= (uint64_t)(row_column_from[i].kind != ROW_HOOK) << i;
	return bits;
}

/* Lines of the user's code that requested a column. */
static void test_lines_of_columns(void **state)
{
	static const char *const told[] = {"/home/an.py:42 process", "/home/an.py:43 select"};
	struct fake *f = *state;
	struct crema_column *c = &f->shm->column[5];
	const msgpack_object *m, *lines;

	c->state = c->seq = 2;
	c->lines = 2;
	c->line[0] = (struct crema_line){text(f, "/home/an.py"), text(f, "process"), 42};
	c->line[1] = (struct crema_line){text(f, "/home/an.py"), text(f, "select"), 43};
	m = column(f, false, 1);
	lines = get(m, "lines");
	assert_int_equal(lines->via.array.size, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(lines->via.array.ptr[i].via.str.size, strlen(told[i]));
		assert_memory_equal(lines->via.array.ptr[i].via.str.ptr, told[i], strlen(told[i]));
	}
	assert_null(get(m, "more_lines"));
	ack_all(f);
	c->seq = 4;
	c->lines = CREMA_COLUMN_LINES + 1;
	c->line[2] = c->line[3] = c->line[0];
	m = column(f, false, 1);
	assert_int_equal(get(m, "lines")->via.array.size, CREMA_COLUMN_LINES);
	assert_true(get(m, "more_lines")->via.boolean);
}

static void test_columns(void **state)
{
	const uint64_t asked = BIT(requests) | BIT(requested_ranges) | BIT(requested_bytes);
	const uint64_t once = BIT(tasks) | BIT(preload_tasks) | BIT(preload_used);
	struct fake *f = *state;
	struct crema_column *c = &f->shm->column[5];
	const msgpack_object *m;

	fill(c, sizeof(*c), 9);
	c->seq = 20;
	c->state = 2;
	c->column = text(f, "Jet_pt");
	c->tree = text(f, "Events");
	c->dataset = text(f, "ttbar");
	c->span = text(f, "a-span");
	c->flags = c->time_unknown = c->fs_mask = c->lines = 0;
	c->count_unknown = 0;
	m = column(f, false, 1);
	assert_null(get(m, "lines"));
	assert_text(m, "column", "Jet_pt");
	assert_text(m, "tree", "Events");
	assert_text(m, "dataset", "ttbar");
	assert_text(m, "span", "a-span");
	assert_number(m, "rev", 20);
	assert_number(m, "number", c->number);
	assert_null(get(m, "together"));
	assert_null(get(m, "beyond"));
	assert_true(column_known(m, c) == ALL_NUMBERS);
	ack_all(f);
	c->seq = 22;
	c->wait_min_ns = 0;
	c->flags = CREMA_COLUMN_TOGETHER | CREMA_COLUMN_UNSURE | CREMA_COLUMN_UNASKED |
		   CREMA_COLUMN_UNCOUNTED;
	m = column(f, false, 1);
	assert_true(get(m, "together")->via.boolean);
	assert_true(column_known(m, c) ==
		    (ALL_NUMBERS & ~(asked | once | counted_bits() | BIT(wait_min_ns))));
	ack_all(f);
	c->seq = 24;
	c->flags = CREMA_COLUMN_BEYOND;
	c->time_unknown = 1u << CREMA_T_lock_wait;
	c->count_unknown = CREMA_COUNT_BIT(read_bytes) | CREMA_COUNT_BIT(basket_bytes);
	m = column(f, false, 1);
	assert_true(get(m, "beyond")->via.boolean);
	assert_true(
		column_known(m, c) ==
		(ALL_NUMBERS & ~(BIT(lock_wait_ns) | BIT(read_bytes) | BIT(baskets) |
				 BIT(basket_bytes) | BIT(basket_raw_bytes) | BIT(wait_min_ns))));
}

/* Each chunk changes all columns: they are sent once a minute while tasks run, otherwise at
 * once. */
static void test_busy_workers_send_few_columns(void **state)
{
	struct fake *f = *state;
	struct crema_column *c = &f->shm->column[0];
	unsigned int sent = 0;

	c->state = 2;
	column(f, false, 1);
	for (int second = 0; second < 180; second++) {
		c->seq += 2;
		ack_all(f);
		rows_columns(&rows, true, false);
		look(f);
		sent += f->types[CREMA_MSG_COLUMN];
	}
	assert_int_equal(sent, 3);
	ack_all(f);
	c->seq += 2;
	column(f, false, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rows_setup, rows_teardown)
	const struct CMUnitTest tests[] = {
		T(test_plain_sums),
		T(test_live_blocks),
		T(test_snapshot),
		T(test_unknown_sums),
		T(test_threads_without_a_block),
		T(test_claimed_bytes),
		T(test_blocked_and_notes),
		T(test_sections),
		T(test_gauges),
		T(test_a_quiet_row_goes_for_good),
		T(test_columns),
		T(test_lines_of_columns),
		T(test_busy_workers_send_few_columns),
	};

	return cmocka_run_group_tests_name("agent totals", tests, NULL, NULL);
}
