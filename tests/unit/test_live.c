/* SPDX-License-Identifier: BSD-3-Clause */
/* test_live.c - live numbers from synthetic frames: sums, states, rates, repeated records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/journal/checkpoint.h"
#include "collector/live/live_parts.h"
#include "collector/ingest/server_payload.h"
#include "common/clock.h"
#include "common/framefile.h"
#include "common/task.h"

#define MESSAGES_MAX 20000

/* One frame under construction. */
struct told {
	struct buf body;
	msgpack_packer pk;
	uint32_t count;
};

static void told_init(struct told *t)
{
	memset(t, 0, sizeof(*t));
	pack_init(&t->pk, &t->body);
}

static void say_hello(struct live *live, uint8_t id, uint64_t stream)
{
	uint8_t worker[16];
	struct buf body = BUF_INIT;
	msgpack_packer pk;
	struct unpack u;

	memset(worker, id, sizeof(worker));
	pack_init(&pk, &body);
	pack_map(&pk, 2);
	pack_text(&pk, "facts");
	pack_map(&pk, 5);
	pack_kv_text(&pk, "host", "node\n7");
	pack_kv_u64(&pk, "pid", 42);
	pack_kv_u64(&pk, "boot_ns", 1000);
	pack_kv_u64(&pk, "real_ns", clock_real_ns());
	pack_kv_text(&pk, "stack",
		     "{\"worker_address\": \"tcp://a:1\", \"worker_name\": \"w\\u001b[2J\", "
		     "\"nthreads\": 2, \"memory_limit_bytes\": 1000}");
	pack_text(&pk, "task_fields");
	task_pack_names(&pk);
	assert_int_equal(unpack_open(&u, body.data, body.len), 0);
	assert_int_equal(live_hello(live, worker, stream, &u.root), 0);
	unpack_release(&u);
	buf_release(&body);
}

static void add_end(struct told *t, uint64_t attempt, const char *status, const char *prefix,
		    uint64_t wall_ns)
{
	struct task_record r;

	memset(&r, 0, sizeof(r));
	r.type = CREMA_MSG_TASK_END;
	r.rev = 1;
	TASK_SET(&r, attempt, attempt);
	TASK_SET(&r, status, ((struct text){status, strlen(status)}));
	TASK_SET(&r, prefix, ((struct text){prefix, strlen(prefix)}));
	TASK_SET(&r, key, ((struct text){"a key", 5}));
	TASK_SET(&r, wall_ns, wall_ns);
	TASK_SET(&r, flags, CREMA_TASK_CHUNK);
	TASK_SET(&r, events, 10);
	r.own_known = 1;
	task_encode(&t->pk, &r);
	t->count++;
}

/* Totals in which each layer of tasks has `bytes` read; own CPU has the same number in ns. */
static void add_totals(struct told *t, uint64_t boot_ns, uint64_t read, bool storage_known)
{
	pack_array(&t->pk, 2);
	pack_u64(&t->pk, CREMA_MSG_TOTALS);
	pack_map(&t->pk, 6);
	pack_kv_u64(&t->pk, "boot_ns", boot_ns);
	pack_kv_u64(&t->pk, "tasks_done", read / 100);
	pack_text(&t->pk, "tasks");
	pack_map(&t->pk, 3);
	pack_kv_u64(&t->pk, "gil_wait_ns", read * 1000000);
	pack_kv_u64(&t->pk, "pool_gil_wait_ns", read * 1000000);
	pack_kv_u64(&t->pk, "read_bytes", read);
	pack_text(&t->pk, "unattributed");
	pack_map(&t->pk, 1);
	pack_kv_u64(&t->pk, "read_bytes", 5);
	pack_text(&t->pk, "process");
	pack_map(&t->pk, 1);
	pack_kv_maybe(&t->pk, "storage_read_bytes", storage_known, 512);
	pack_text(&t->pk, "a newer agent's");
	pack_nil(&t->pk);
	t->count++;
}

static void add_sample(struct told *t, uint64_t boot_ns, double cpu_percent, uint64_t running)
{
	pack_array(&t->pk, 2);
	pack_u64(&t->pk, CREMA_MSG_SAMPLE);
	pack_map(&t->pk, 3);
	pack_kv_u64(&t->pk, "boot_ns", boot_ns);
	pack_kv_f64(&t->pk, "cpu_percent", cpu_percent);
	pack_kv_u64(&t->pk, "tasks_running", running);
	t->count++;
}

/* Each number is different. */
static void add_dask(struct told *t, uint64_t boot_ns, unsigned int first)
{
	char json[256];

	snprintf(json, sizeof(json),
		 "{\"nthreads\": %u, \"memory_limit_bytes\": %u, \"executing\": %u, \"ready\": %u, "
		 "\"long_running\": %u, \"in_flight_data\": %u, \"nbytes_managed\": %u, "
		 "\"spilled_bytes\": %u}",
		 first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6,
		 first + 7);
	pack_array(&t->pk, 3);
	pack_u64(&t->pk, CREMA_MSG_DASK);
	pack_u64(&t->pk, boot_ns);
	pack_text(&t->pk, json);
	t->count++;
}

static void add_goodbye_at(struct told *t, uint64_t boot_ns, const char *how)
{
	pack_array(&t->pk, 2);
	pack_u64(&t->pk, CREMA_MSG_GOODBYE);
	pack_map(&t->pk, 2);
	pack_kv_u64(&t->pk, "boot_ns", boot_ns);
	pack_kv_text(&t->pk, "how", how);
	t->count++;
}

static void add_goodbye(struct told *t, const char *how)
{
	add_goodbye_at(t, 0, how);
}

/* Wraps the messages into a payload and feeds it; the frame begins at `seq`. */
static void tell(struct live *live, struct told *t, uint8_t id, uint64_t stream, uint64_t seq,
		 uint64_t from)
{
	static uint32_t starts[MESSAGES_MAX];
	struct crema_frame_header head = {.stream = stream, .first_seq = seq, .count = t->count};
	struct buf raw = BUF_INIT;
	msgpack_packer pk;
	struct live_frame frame = {
		.head = &head, .starts = starts, .from = from, .lost = seq > from ? seq - from : 0};

	memset(head.worker, id, sizeof(head.worker));
	pack_init(&pk, &raw);
	pack_array(&pk, t->count);
	buf_add(&raw, t->body.data, t->body.len);
	head.raw_bytes = (uint32_t)raw.len;
	frame.raw = raw.data;
	assert_true(t->count < MESSAGES_MAX);
	assert_int_equal(server_payload_check(raw.data, raw.len, t->count, starts), 0);
	assert_int_equal(live_data(live, &frame), 0);
	buf_release(&raw);
	buf_release(&t->body);
	told_init(t);
}

static const struct live_prefix *prefix(const struct live *live, const char *name)
{
	static const struct live_prefix *list[LIVE_PREFIXES + 1];
	size_t i, n = live_prefixes(live, list);

	for (i = 0; i < n; i++) {
		if (!strcmp(list[i]->name, name))
			return list[i];
	}
	return NULL;
}

static void an_end_counts_once(void **state)
{
	struct live *live = live_new();
	struct live_cluster c;
	struct told t;

	(void)state;
	told_init(&t);
	say_hello(live, 1, 100);
	add_end(&t, 1, "ok", "read", 1000);
	add_end(&t, 3, "erred", "read", 10);
	add_end(&t, 2, "killed", "merge", 1);
	tell(live, &t, 1, 100, 0, 0);
	/* a second agent sends two of them again, and a new one */
	say_hello(live, 1, 200);
	add_end(&t, 3, "erred", "read", 10);
	add_end(&t, 2, "killed", "merge", 1);
	add_end(&t, 4, "ok", "read", 2000);
	tell(live, &t, 1, 200, 0, 0);
	/* numbers below `from` are known: this frame overlaps with the last one */
	add_end(&t, 5, "ok", "read", 1);
	add_end(&t, 6, "ok", "read", 4000);
	tell(live, &t, 1, 200, 2, 3);
	/* the same attempt number on another worker is another attempt */
	say_hello(live, 2, 100);
	add_end(&t, 1, "ok", "read", 8000);
	tell(live, &t, 2, 100, 0, 0);
	live_cluster(live, &c);
	assert_int_equal(c.ended[LIVE_OK], 4);
	assert_int_equal(c.ended[LIVE_ERRED], 1);
	assert_int_equal(c.ended[LIVE_KILLED], 1);
	assert_int_equal(c.events, 40); /* of successful ones */
	assert_int_equal(c.chunks, 4);
	assert_int_equal(prefix(live, "read")->ended[LIVE_OK], 4);
	assert_int_equal(prefix(live, "read")->wall_ns, 1000 + 10 + 2000 + 4000 + 8000);
	assert_int_equal(prefix(live, "merge")->ended[LIVE_KILLED], 1);
	live_free(live);
}

static void totals_are_the_latest_and_never_go_down(void **state)
{
	struct live *live = live_new();
	struct live_cluster c;
	struct told t;
	unsigned int read = LIVE_TASK + CREMA_C_read_bytes,
		     storage = LIVE_process_storage_read_bytes;

	(void)state;
	told_init(&t);
	say_hello(live, 1, 100);
	say_hello(live, 2, 100);
	add_totals(&t, 1000000000, 1000, true);
	add_totals(&t, 2000000000, 3000, true);
	add_totals(&t, 1500000000, 2000, true); /* older */
	tell(live, &t, 1, 100, 0, 0);
	add_totals(&t, 2000000000, 500, false);
	tell(live, &t, 2, 100, 0, 0);
	live_cluster(live, &c);
	assert_int_equal(c.total[read], 3500);
	assert_int_equal(c.total[LIVE_REST + CREMA_C_read_bytes], 10);
	assert_int_equal(c.total[LIVE_tasks_done], 35);
	assert_int_equal(c.total[storage], 512);
	assert_int_equal(c.workers_counted, 2);
	assert_int_equal(c.without[read], 0);
	assert_int_equal(c.without[storage], 1);
	assert_int_equal(c.without[LIVE_TASK + CREMA_C_mapped_bytes], 2);
	/* a worker's number drops temporarily: the sum does not, and is correct again later */
	add_totals(&t, 3000000000, 2900, true);
	tell(live, &t, 1, 100, 3, 3);
	live_cluster(live, &c);
	assert_int_equal(c.total[read], 3500);
	add_totals(&t, 4000000000, 3200, false); /* storage is no longer known */
	add_goodbye(&t, "killed");
	tell(live, &t, 1, 100, 4, 4);
	live_cluster(live, &c);
	assert_int_equal(c.total[read], 3700);
	assert_int_equal(c.total[storage], 512);
	assert_int_equal(c.without[storage], 2);
	assert_int_equal(c.gone_killed, 1);
	assert_int_equal(c.gone_ended, 0);
	live_free(live);
}

/* A TOTALS message with each value of the tables, and its destination: value i is 1000 + i. */
static const struct {
	const char *part, *key;
	unsigned int at;
} all_values[] = {
#define COUNT(id, unit, ...)
#define TIME(id, ...) {"tasks", #id "_ns", LIVE_OWN + CREMA_T_##id},
#include "counters.def"
#define TIME(id, ...) {"tasks", "pool_" #id "_ns", LIVE_POOL + CREMA_T_##id},
#include "counters.def"
#define TIME(id, ...)
#define COUNT(id, unit, ...) {"tasks", #id, LIVE_TASK + CREMA_C_##id},
#include "counters.def"
#define COUNT(id, unit, ...) {"unattributed", #id, LIVE_REST + CREMA_C_##id},
#include "counters.def"
#define TOTALS_AMOUNT(part, name, help) {#part, #name, LIVE_##part##_##name},
#include "rows.def"
#define TOTALS_NUMBER(name, ...) {"", #name, LIVE_##name},
#include "rows.def"
};
#define ALL_VALUES (sizeof(all_values) / sizeof(all_values[0]))

/* In reverse order, so that no value follows its predecessor in the table. */
static void pack_part(msgpack_packer *pk, const char *part)
{
	size_t i;

	for (i = ALL_VALUES; i-- > 0;) {
		if (!strcmp(all_values[i].part, part))
			pack_kv_u64(pk, all_values[i].key, 1000 + all_values[i].at);
	}
}

static uint32_t part_size(const char *part)
{
	uint32_t n = 0;

	for (size_t i = 0; i < ALL_VALUES; i++)
		n += !strcmp(all_values[i].part, part);
	return n;
}

static void each_total_has_its_place(void **state)
{
	static const char *const parts[] = {"children", "seen", "tasks", "unattributed", "process"};
	struct live *live = live_new();
	struct live_cluster c;
	struct told t;

	(void)state;
	assert_int_equal(ALL_VALUES, LIVE_VALUES);
	say_hello(live, 1, 0);
	told_init(&t);
	pack_array(&t.pk, 2);
	pack_u64(&t.pk, CREMA_MSG_TOTALS);
	pack_map(&t.pk, 1 + part_size("") + 5);
	pack_part(&t.pk, "");
	pack_kv_u64(&t.pk, "boot_ns", 2000);
	for (unsigned int i = 0; i < 5; i++) {
		pack_text(&t.pk, parts[i]);
		pack_map(&t.pk, part_size(parts[i]));
		pack_part(&t.pk, parts[i]);
	}
	t.count++;
	tell(live, &t, 1, 0, 0, 0);
	live_cluster(live, &c);
	for (size_t i = 0; i < ALL_VALUES; i++)
		assert_int_equal(c.total[all_values[i].at], 1000 + all_values[i].at);
	live_free(live);
}

static void rates_are_by_the_workers_clock(void **state)
{
	struct live *live = live_new();
	struct live_cluster c;
	uint8_t id[16];
	struct told t;
	int i;

	(void)state;
	told_init(&t);
	memset(id, 1, sizeof(id));
	say_hello(live, 1, 100);
	live_connection(live, id, 1);
	live_cluster(live, &c);
	assert_int_equal(c.connected, 1);
	assert_true(isnan(c.rate[LIVE_RATE_TASKS]));
	assert_true(c.threads == 2 && c.limit_bytes == 1000);
	/* 100 bytes and one task a second for 4 s, then 300 bytes and three tasks */
	for (i = 0; i <= 4; i++)
		add_totals(&t, UINT64_C(1000000000) * (uint64_t)(10 + i), 100u * (unsigned int)i,
			   true);
	tell(live, &t, 1, 100, 0, 0);
	live_cluster(live, &c);
	assert_true(c.rate[LIVE_RATE_LAYER + CREMA_L_read] == 100);
	assert_true(c.rate[LIVE_RATE_TASKS] == 1);
	/* 100 ms on own and pool threads each second */
	assert_true(fabs(c.rate[LIVE_RATE_CLASS + CREMA_T_gil_wait] - 0.2) < 1e-9);
	assert_true(isnan(c.rate[LIVE_RATE_CLASS + CREMA_T_cpu]));
	for (i = 1; i <= 4; i++)
		add_totals(&t, UINT64_C(1000000000) * (uint64_t)(14 + i),
			   400u + 300u * (unsigned int)i, true);
	tell(live, &t, 1, 100, 5, 5);
	live_cluster(live, &c);
	assert_true(c.rate[LIVE_RATE_LAYER + CREMA_L_read] == 300);
	live_connection(live, id, -1);
	live_cluster(live, &c);
	assert_int_equal(c.connected, 0);
	assert_int_equal(c.silent, 1);
	assert_true(c.rate[LIVE_RATE_TASKS] == 0);
	live_free(live);
}

static void gone_workers_are_folded_and_stay_in_the_sums(void **state)
{
	struct crema_frame_header head = {0};
	struct live *live = live_new();
	struct live_cluster c;
	struct told t;
	unsigned int i;
	bool folded;

	(void)state;
	told_init(&t);
	for (i = 0; i < 3 * LIVE_GONE_KEPT; i++) {
		uint32_t starts[2] = {1};
		struct live_frame frame = {.head = &head, .starts = starts};
		struct buf raw = BUF_INIT;
		msgpack_packer pk;

		memcpy(head.worker, &i, sizeof(i));
		add_totals(&t, 1000000000, 10, true);
		starts[1] = 1 + (uint32_t)t.body.len;
		add_goodbye(&t, "exit");
		pack_init(&pk, &raw);
		pack_array(&pk, 2);
		buf_add(&raw, t.body.data, t.body.len);
		head.count = 2;
		head.raw_bytes = (uint32_t)raw.len;
		frame.raw = raw.data;
		assert_int_equal(live_data(live, &frame), 0);
		buf_release(&raw);
		buf_release(&t.body);
		told_init(&t);
	}
	assert_true(live->worker_count < 2 * LIVE_GONE_KEPT); /* not only once a second */
	live_tick(live);
	assert_int_equal(live->worker_count, LIVE_GONE_KEPT);
	i = 0;
	memset(head.worker, 0, sizeof(head.worker));
	assert_null(live_worker(live, head.worker, &folded));
	assert_true(folded);
	live_cluster(live, &c);
	assert_int_equal(c.total[LIVE_TASK + CREMA_C_read_bytes], 30 * LIVE_GONE_KEPT);
	assert_int_equal(c.workers_seen, 3 * LIVE_GONE_KEPT);
	assert_int_equal(c.gone_ended, 3 * LIVE_GONE_KEPT);
	live_free(live);
}

/* Lost workers beyond LIVE_LOST_KEPT: what they had read remains. */
static void lost_workers_are_folded_and_no_more_are_let_in_than_there_is_room(void **state)
{
	const unsigned int extra = 100;
	struct live *live = live_new();
	struct live_cluster c;
	struct live_worker *w;
	uint8_t id[CREMA_WORKER_ID_BYTES] = {0};
	struct told t;
	bool folded;

	(void)state;
	told_init(&t);
	add_totals(&t, 1000, 77, true);
	tell(live, &t, 0, 1, 0, 0); /* the oldest: an id of zeros */
	assert_int_equal(buf_add(&live->workers->doing, "call", 4), 0);
	live->doing_bytes = 4;
	for (unsigned int i = 1; i < LIVE_LOST_KEPT + extra; i++) {
		memcpy(id + 8, &i, sizeof(i));
		assert_non_null(live_worker(live, id, &folded));
	}
	live_tick(live);
	assert_int_equal(live->worker_count, LIVE_LOST_KEPT + extra); /* they are only silent */
	for (w = live->workers; w; w = w->next)
		w->heard_ms -= LIVE_LOST_MS + 1000;
	live->workers->connections = 1; /* it may just have nothing to send */
	live_tick(live);
	assert_int_equal(live->worker_count, LIVE_LOST_KEPT + 1);
	assert_int_equal(live->doing_bytes, 0);
	live_cluster(live, &c);
	assert_int_equal(c.lost, LIVE_LOST_KEPT + extra);
	assert_int_equal(c.workers_seen, LIVE_LOST_KEPT + extra);
	assert_int_equal(c.total[LIVE_TASK + CREMA_C_read_bytes], 77);
	memset(id, 0, sizeof(id));
	assert_null(live_worker(live, id, &folded)); /* one of them returns */
	assert_true(folded);
	live_cluster(live, &c);
	assert_int_equal(c.lost, LIVE_LOST_KEPT + extra - 1);
	assert_false(live_full(live, id));
	for (unsigned int i = 0; live->worker_count < LIVE_WORKERS; i++) {
		memcpy(id, &i, sizeof(i));
		live_worker(live, id, &folded);
	}
	assert_false(live_full(live, id)); /* it is not new */
	id[7] = 1;
	assert_true(live_full(live, id));
	assert_false(live_full(NULL, id));
	live_free(live);
}

static double seconds_of_workers(unsigned int shift)
{
	struct live *live = live_new();
	uint8_t id[CREMA_WORKER_ID_BYTES] = {0};
	clock_t begin = clock();
	bool folded;

	for (uint64_t i = 1; i < LIVE_WORKERS; i++) {
		memcpy(id, &(uint64_t){i << shift}, 8);
		assert_non_null(live_worker(live, id, &folded));
	}
	begin = clock() - begin;
	live_free(live);
	return (double)begin / CLOCKS_PER_SEC;
}

/* Ids that differ in few bits once had the same hash: a lookup took as long as a linear search. */
static void ids_are_the_agents_choice(void **state)
{
	double honest = seconds_of_workers(0);

	(void)state;
	assert_true(seconds_of_workers(48) < 8 * honest);
}

static void prefixes_are_bounded_and_printable(void **state)
{
	struct live *live = live_new();
	const struct live_prefix *list[LIVE_PREFIXES + 1];
	struct told t;
	char name[200];
	uint64_t i, sum = 0;
	size_t n, k, j;

	(void)state;
	told_init(&t);
	say_hello(live, 1, 100);
	add_end(&t, 1, "ok", "other", 1);
	add_end(&t, 2, "ok", "", 1);
	add_end(&t, 3, "strange", "a\x1b[31m\n\"b\\\xff\xc3\xa9\xe2\x80\xae\xd8\x9c", 1);
	memset(name, 'x', sizeof(name));
	name[199] = '\0';
	add_end(&t, 4, "ok", name, 1);
	for (i = 5; i < 1000; i++) {
		snprintf(name, sizeof(name), "p%llu", (unsigned long long)i);
		add_end(&t, i, "ok", name, 1);
	}
	tell(live, &t, 1, 100, 0, 0);
	n = live_prefixes(live, list);
	assert_int_equal(n, LIVE_PREFIXES + 1);
	for (k = 0; k < n; k++) {
		for (j = 0; j < k; j++)
			assert_string_not_equal(list[j]->name, list[k]->name);
		for (j = 0; j < LIVE_STATUSES; j++)
			sum += list[k]->ended[j];
	}
	assert_int_equal(sum, 999);
	assert_int_equal(prefix(live, "(none)")->ended[LIVE_OK], 1);
	assert_int_equal(prefix(live, "a?[31m?\"b\\?\xc3\xa9??")->ended[LIVE_OTHER], 1);
	assert_int_equal(prefix(live, "p5")->ended[LIVE_OK], 1);
	assert_null(prefix(live, "p999"));
	live_free(live);
}

/* A set of attempts takes room only for those under way, and for lost ones up to a limit. */
static void memory_does_not_grow_with_tasks(void **state)
{
	struct live *live = live_new();
	struct live_cluster c;
	struct told t;
	uint64_t i, seq = 0;
	unsigned int turn;

	(void)state;
	told_init(&t);
	say_hello(live, 1, 100);
	for (turn = 0; turn < 20; turn++) { /* in pairs, in reverse order */
		for (i = 0; i < 5000; i += 2) {
			add_end(&t, turn * 5000 + i + 2, "ok", "p", 1);
			add_end(&t, turn * 5000 + i + 1, "ok", "p", 1);
		}
		tell(live, &t, 1, 100, seq, seq);
		seq += 5000;
	}
	assert_int_equal(live->workers->ended.n, 1);
	for (turn = 0; turn < 5; turn++) { /* every second one is lost */
		for (i = 0; i < 5000; i++)
			add_end(&t, 200000 + 2 * (turn * 5000 + i), "ok", "p", 1);
		tell(live, &t, 1, 100, seq, seq);
		seq += 5000;
	}
	live_cluster(live, &c);
	assert_int_equal(c.ended[LIVE_OK], 125000);
	assert_true(live->workers->ended.n <= LIVE_ATTEMPT_GAPS);
	live_free(live);
}

/* Every prefix of a valid message, and each of its bytes changed: no read beyond the end. */
static void damaged_messages_are_harmless(void **state)
{
	struct live *live = live_new();
	struct told t;
	uint8_t *copy;
	const struct live_fields *fields;
	struct live_worker *w;
	size_t n, i;
	bool folded;
	uint8_t id[16];

	(void)state;
	memset(id, 1, sizeof(id));
	told_init(&t);
	say_hello(live, 1, 100);
	add_end(&t, 1, "ok", "a prefix", 1000);
	for (n = 1; n <= t.body.len; n++) {
		copy = malloc(n); /* a sanitizer detects over-reads */
		memcpy(copy, t.body.data, n);
		w = live_worker(live, id, &folded);
		fields = live_fields_of(w, 100);
		assert_non_null(fields);
		assert_int_equal(live_message(live, w, fields, copy, n), 0);
		for (i = 0; i < 256 && n > 1; i++) {
			copy[n - 1] = (uint8_t)i;
			assert_int_equal(live_message(live, w, fields, copy, n), 0);
		}
		free(copy);
	}
	buf_release(&t.body);
	live_free(live);
}

static double since(struct live *live)
{
	struct buf out = BUF_INIT;
	json_t *root, *value;
	double time = (double)NAN;

	live_json(live, clock_mono_ns(), &(struct live_journal){.over = ""}, &out);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	value = json_object_get(json_object_get(root, "activity"), "since");
	if (!json_is_null(value))
		time = json_number_value(value);
	json_decref(root);
	buf_release(&out);
	return time;
}

/* Activity is tasks that ended since the last tick, or run; it ends once there were none for 10
 * s. */
static void activity_begins_and_ends(void **state)
{
	struct live *live = live_new();
	uint8_t id[16];
	uint64_t ended;
	struct told t;

	(void)state;
	told_init(&t);
	memset(id, 1, sizeof(id));
	say_hello(live, 1, 100);
	live_connection(live, id, 1);
	live_tick(live);
	assert_true(live_is_idle(live, &ended) && isnan(since(live)));
	assert_int_equal(ended, 0);
	add_totals(&t, 1000000000, 500, true);
	add_end(&t, 1, "ok", "a", 1);
	add_end(&t, 2, "erred", "a", 1);
	tell(live, &t, 1, 100, 0, 0);
	live_tick(live);
	assert_true(since(live) > (double)clock_real_ns() / 1e9 - 5);
	assert_false(live_is_idle(live, &ended));
	assert_int_equal(ended, 2);
	live->busy_ms -= LIVE_IDLE_MS - 5000;
	live_tick(live);
	assert_false(live_is_idle(live, &ended));
	live->busy_ms -= 5001;
	live_tick(live);
	assert_true(live_is_idle(live, &ended) && isnan(since(live)));
	live->workers->running = 1;
	live_tick(live);
	assert_false(live_is_idle(live, &ended));
	live->busy_ms -= LIVE_IDLE_MS + 1;
	live->workers->connections = 0; /* a worker that has left runs nothing */
	live_tick(live);
	assert_true(live_is_idle(live, &ended));
	live_free(live);
}

/* Saved sums of dropped segments are restored unchanged. */
static void sums_are_carried(void **state)
{
	static const char *const ends[LIVE_STATUSES] = {"ok", "erred", "killed", "cancelled"};
	struct live *live = live_new(), *other = live_new();
	struct live_cluster c;
	struct buf out = BUF_INIT;
	msgpack_packer pk;
	struct unpack u;
	struct told t;
	unsigned int i, n = 0, k;

	(void)state;
	told_init(&t);
	say_hello(live, 1, 100);
	for (i = 0; i < LIVE_STATUSES; i++) {
		for (k = 0; k <= i; k++, n++)
			add_end(&t, n, ends[i], "a", 1000 + i);
	}
	add_end(&t, n, "ok", "other", 5);
	tell(live, &t, 1, 100, 0, 0);
	live->records_lost = 7;
	live->records_bad = 8;
	pack_init(&pk, &out);
	live_pack_sums(live, &pk);
	assert_int_equal(unpack_open(&u, out.data, out.len), 0);
	for (i = 0; i < 2; i++)
		live_take_sums(other, &u.root); /* they are added */
	unpack_release(&u);
	buf_release(&out);
	live_cluster(other, &c);
	assert_int_equal(c.chunks, 4);
	assert_int_equal(c.events, 40);
	assert_int_equal(c.records_lost, 14);
	assert_int_equal(c.records_bad, 16);
	for (i = 0; i < LIVE_STATUSES; i++) {
		assert_int_equal(c.ended[i], 2 * (i + 1) + (i ? 0 : 2));
		assert_int_equal(prefix(other, "a")->ended[i], 2 * (i + 1));
		assert_int_equal(prefix(other, "other")->ended[i], i ? 0 : 2);
	}
	assert_int_equal(prefix(other, "a")->wall_ns, 2 * (1000 + 2 * 1001 + 3 * 1002 + 4 * 1003));
	assert_int_equal(prefix(other, "other")->wall_ns, 10);
	live_free(live);
	live_free(other);
}

static void add_refused(struct told *t, uint64_t boot_ns, uint64_t refused)
{
	pack_array(&t->pk, 2);
	pack_u64(&t->pk, CREMA_MSG_TOTALS);
	pack_map(&t->pk, 2);
	pack_kv_u64(&t->pk, "boot_ns", boot_ns);
	pack_kv_u64(&t->pk, "records_refused", refused);
	t->count++;
}

static uint64_t lost_of(struct live *live)
{
	struct live_cluster c;

	live_cluster(live, &c);
	return c.records_lost;
}

static struct live *through_checkpoint(const struct live *live);

/* The first worker refused 5 records, which are a gap; the second one lost 3; the third one refused
 * 10, whose gap is not visible yet: also once they are gone, and after a restart. */
static void refused_are_not_lost(void **state)
{
	static const uint64_t gaps[] = {5, 3, 0}, refused[] = {5, 0, 10};
	struct live *live = live_new(), *other;
	uint8_t id[CREMA_WORKER_ID_BYTES];
	struct told t;

	(void)state;
	told_init(&t);
	for (uint8_t i = 0; i < 3; i++) {
		say_hello(live, i + 1, 100);
		add_refused(&t, 1000, 0);
		tell(live, &t, i + 1, 100, 0, 0);
		add_refused(&t, 2000, refused[i]);
		tell(live, &t, i + 1, 100, 1 + gaps[i], 1);
	}
	assert_int_equal(lost_of(live), 3);
	other = through_checkpoint(live);
	assert_int_equal(lost_of(other), 3);
	/* the gap of the third one becomes visible, and the second one loses one more */
	add_refused(&t, 3000, 10);
	tell(other, &t, 3, 100, 12, 2);
	assert_int_equal(lost_of(other), 3);
	add_refused(&t, 3000, 0);
	tell(other, &t, 2, 100, 6, 5);
	assert_int_equal(lost_of(other), 4);
	/* they leave, and are folded into the sums */
	for (uint8_t i = 0; i < 3; i++) {
		add_goodbye(&t, "exit");
		tell(other, &t, i + 1, 100, 20, 20);
	}
	other->gone_count += LIVE_GONE_KEPT;
	other->gone_order += LIVE_GONE_KEPT + 3;
	live_fold(other);
	assert_null(other->workers);
	assert_int_equal(lost_of(other), 4);
	memset(id, 3, sizeof(id));
	assert_int_equal(live_refused(other, id), 10);
	memset(id, 4, sizeof(id));
	assert_int_equal(live_refused(other, id), 0);
	live_free(live);
	live = through_checkpoint(other);
	assert_int_equal(lost_of(live), 4);
	live_free(live);
	live_free(other);
}

/* The sums of an earlier version have all missing numbers: what all workers refused is deducted. */
static void sums_of_an_earlier_version(void **state)
{
	struct live *live = live_new();
	struct buf out = BUF_INIT;
	msgpack_packer pk;
	struct unpack u;

	(void)state;
	pack_init(&pk, &out);
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "records_lost", 12);
	assert_int_equal(unpack_open(&u, out.data, out.len), 0);
	live->total[LIVE_records_refused] = 5;
	live_take_sums(live, &u.root);
	assert_int_equal(lost_of(live), 7);
	unpack_release(&u);
	buf_release(&out);
	live_free(live);
}

/* As written by a version with its values in reverse order and another name for "read_bytes". */
static bool of_other_counters;

static void reverse(const msgpack_object *list, uint32_t group)
{
	msgpack_object *v = list->via.array.ptr, was;

	for (uint32_t i = 0, k = list->via.array.size - group; i < k; i += group, k -= group) {
		for (uint32_t part = 0; part < group; part++) {
			was = v[i + part];
			v[i + part] = v[k + part];
			v[k + part] = was;
		}
	}
}

static void reverse_bits(const msgpack_object *words)
{
	uint64_t was[(LIVE_VALUES + 63) / 64] = {0};
	uint32_t n = words->via.array.size;

	assert_int_equal(n, (LIVE_VALUES + 63) / 64);
	for (uint32_t i = 0; i < n; i++) {
		was[i] = words->via.array.ptr[i].via.u64;
		words->via.array.ptr[i].via.u64 = 0;
	}
	for (unsigned int i = 0, k = LIVE_VALUES - 1; i < LIVE_VALUES; i++, k--)
		words->via.array.ptr[k / 64].via.u64 |= (was[i / 64] >> (i % 64) & 1u) << (k % 64);
}

static unsigned int rename_values(const msgpack_object *names)
{
	unsigned int renamed = 0;
	struct text name;

	for (uint32_t i = 1; i < names->via.array.size; i += 2) {
		assert_true(object_text(&names->via.array.ptr[i], &name));
		if (!text_is(name, "read_bytes"))
			continue;
		names->via.array.ptr[i].via.str.ptr = "head_bytes";
		renamed++;
	}
	return renamed;
}

static int load(void *arg, const msgpack_object_array *item)
{
	uint64_t kind = item->ptr[0].via.u64;

	if (of_other_counters && kind == CHECKPOINT_NAMES) {
		assert_int_equal(rename_values(&item->ptr[1]), 2);
		reverse(&item->ptr[1], 2);
	}
	for (unsigned int i = 4; of_other_counters && kind == CHECKPOINT_SUMS && i <= 6; i++)
		reverse(&item->ptr[i], 1);
	if (of_other_counters && kind == CHECKPOINT_WORKER) {
		reverse_bits(&item->ptr[8]);
		reverse(&item->ptr[9], 1);
	}
	return live_load(arg, item);
}

/* The contents of live.json except for the times of day. */
static json_t *said(struct live *live)
{
	struct buf out = BUF_INIT;
	json_t *root, *row;
	size_t i;

	live_json(live, clock_mono_ns(), &(struct live_journal){.over = ""}, &out);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	json_object_del(root, "time");
	json_object_del(root, "uptime_seconds");
	json_array_foreach(json_object_get(root, "worker_rows"), i, row)
		json_object_del(row, "heard_seconds");
	buf_release(&out);
	return root;
}

/* The live numbers as another collector restores them from a checkpoint. */
static struct live *through_checkpoint(const struct live *live)
{
	char dir[] = "/tmp/crema-unit-XXXXXX";
	struct framefile file = {.fd = -1};
	struct live *other = live_new();
	struct buf frames = BUF_INIT;
	struct items c;
	uint64_t bytes;

	items_begin(&c, &frames, CREMA_FRAME_CHECKPOINT);
	live_save(live, &c);
	assert_int_equal(items_end(&c), 1);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(framefile_create(&file, dir, "journal", 1, NULL), 0);
	assert_int_equal(framefile_append(&file, frames.data, frames.len), 0);
	framefile_close(&file);
	live_restoring(other, true);
	assert_int_equal(items_read(file.path, CREMA_FRAME_CHECKPOINT, load, other, &bytes), 0);
	assert_int_equal(bytes, frames.len);
	live_loaded(other);
	live_restoring(other, false);
	unlink(file.path);
	assert_int_equal(rmdir(dir), 0);
	buf_release(&frames);
	return other;
}

static void same_numbers(struct live *live, struct live *other)
{
	json_t *a = said(live), *b = said(other);
	struct live_cluster x, y;

	live_cluster(live, &x);
	live_cluster(other, &y);
	assert_memory_equal(x.total, y.total, sizeof(x.total));
	assert_memory_equal(x.without, y.without, sizeof(x.without));
	assert_int_equal(x.with_notes, y.with_notes);
	assert_int_equal(x.lost, y.lost);
	assert_int_equal(x.workers_counted, y.workers_counted);
	/* the two were read at different times */
	json_object_del(json_object_get(a, "state"), "quiet_seconds");
	json_object_del(json_object_get(b, "state"), "quiet_seconds");
	assert_true(json_equal(a, b));
	json_decref(a);
	json_decref(b);
}

/* Records that are sent again later count once, and unfinished tasks continue. */
static void a_checkpoint_keeps_all(void **state)
{
	struct live *live = live_new(), *other;
	bool folded;
	struct told t;
	uint8_t id[16];

	(void)state;
	told_init(&t);
	for (unsigned int i = 1; i <= 3; i++) {
		say_hello(live, (uint8_t)i, 100);
		add_totals(&t, 2000000000, 1000 * i, i != 2);
		add_sample(&t, 3000000000, 2.5 * i, i);
		add_dask(&t, 3500000000, 100 * i);
		add_end(&t, i, i == 2 ? "erred" : "ok", i == 3 ? "merge" : "read", 1000 + i);
		add_end(&t, 10 * i, "ok", "other", 7);
		tell(live, &t, (uint8_t)i, 100, 0, 0);
	}
	add_goodbye(&t, "killed");
	tell(live, &t, 2, 100, 4, 4);
	live->records_lost = 5;
	live->records_bad = 6;
	memset(id, 9, sizeof(id));
	assert_int_equal(live_add_folded(live, id, true), 0);
	assert_int_equal(live->lost_gone, 1);
	memset(id, 8, sizeof(id));
	assert_int_equal(live_add_folded(live, id, false), 0);
	other = through_checkpoint(live);
	for (unsigned int i = 1; i <= 3; i++) {
		memset(id, (int)i, sizeof(id));
		live_connection(live, id, 1);
		live_connection(other, id, 1);
	}
	same_numbers(live, other);
	for (unsigned int i = 1; i <= 3; i++) {
		memset(id, (int)i, sizeof(id));
		live_connection(live, id, -1);
		live_connection(other, id, -1);
	}
	memset(id, 8, sizeof(id));
	assert_null(live_worker(other, id, &folded));
	assert_true(folded);
	for (unsigned int i = 0; i < 2; i++) {
		struct live *one = i ? other : live;

		say_hello(one, 1, 200);
		add_end(&t, 1, "ok", "read", 1001); /* already received */
		add_end(&t, 2, "ok", "read", 50);
		add_totals(&t, 1000000000, 1, true); /* older */
		add_totals(&t, 4000000000, 1500, true);
		add_goodbye(&t, "exit");
		tell(one, &t, 1, 200, 0, 0);
		add_goodbye(&t, "exit");
		tell(one, &t, 2, 100, 5, 5);
	}
	same_numbers(live, other);
	assert_int_equal(other->ended[LIVE_OK], 6);
	assert_int_equal(other->gone_count, 2);
	assert_int_equal(other->gone_order, live->gone_order);
	live_clear(other);
	live_free(live);
	live = live_new();
	same_numbers(live, other);
	live_free(live);
	live_free(other);
}

/* Totals of an agent that uses this name for "read_bytes". */
static void rename_told(struct told *t)
{
	static const char ours[] = "\xaaread_bytes", theirs[] = "\xaahead_bytes";
	unsigned char *at = t->body.data;

	while ((at = memmem(at, t->body.len - (size_t)(at - t->body.data), ours, sizeof(ours) - 1)))
		memcpy(at, theirs, sizeof(theirs) - 1);
}

/* Values are found by their names. A missing one is treated as if all messages had been read: no
 * worker has sent it so far. */
static void a_checkpoint_of_other_counters(void **state)
{
	struct live *read = live_new(), *live = live_new(), *other;
	struct live_cluster c;
	struct told t;

	(void)state;
	told_init(&t);
	for (unsigned int i = 1; i <= 6; i++) {
		struct live *one = i % 2 ? read : live;
		uint8_t id = (uint8_t)((i + 1) / 2);

		say_hello(one, id, 100);
		add_totals(&t, 2000000000, 1000 * id, id != 2);
		if (one == read)
			rename_told(&t);
		add_end(&t, i, "ok", "read", 1000);
		tell(one, &t, id, 100, 0, 0);
	}
	of_other_counters = true;
	other = through_checkpoint(live);
	of_other_counters = false;
	same_numbers(read, other);
	live_cluster(other, &c);
	assert_int_equal(c.without[LIVE_TASK + CREMA_C_read_bytes], 3);
	assert_int_equal(c.total[LIVE_TASK + CREMA_C_read_bytes], 0);
	assert_int_equal(c.total[LIVE_tasks_done], 60);
	add_totals(&t, 4000000000, 1500, true);
	tell(read, &t, 1, 100, 9, 9);
	add_totals(&t, 4000000000, 1500, true);
	tell(other, &t, 1, 100, 9, 9);
	same_numbers(read, other);
	live_cluster(other, &c);
	assert_int_equal(c.without[LIVE_TASK + CREMA_C_read_bytes], 2);
	assert_int_equal(c.total[LIVE_TASK + CREMA_C_read_bytes], 1500);
	live_free(read);
	live_free(live);
	live_free(other);
}

/* Read from a journal: by the workers' clocks the killed one left last, 10 s after the other. */
static void who_went_last(void **state)
{
	struct live *live = live_new();
	struct told t;
	json_t *said = json_pack("{s:i,s:i,s:[[s,i,i,i,i]]}", "age", 1, "clients", 1, "prefixes",
				 "a", 7, 3, 9, 1);

	(void)state;
	told_init(&t);
	live_restoring(live, true);
	say_hello(live, 1, 100);
	live_progress_feed(live, live->workers, said);
	say_hello(live, 2, 100);
	for (struct live_worker *w = live->workers; w; w = w->next)
		w->hello_real_ns -= UINT64_C(100000000000);
	add_sample(&t, 10000000000, 1, 0);
	add_goodbye_at(&t, 30000000000, "killed");
	tell(live, &t, 1, 100, 0, 0);
	add_sample(&t, 20000000000, 1, 0);
	add_goodbye_at(&t, 20000000000, "exit");
	tell(live, &t, 2, 100, 0, 0);
	live_restoring(live, false);
	assert_true(live_left_behind(live) == 7);
	json_decref(said);
	live_free(live);
}

static void json_is_whole(void **state)
{
	struct live *live = live_new();
	struct buf out = BUF_INIT;
	struct told t;
	json_t *root, *row;
	uint8_t id[16];

	(void)state;
	told_init(&t);
	memset(id, 1, sizeof(id));
	say_hello(live, 1, 100);
	live_connection(live, id, 1);
	add_totals(&t, 1000000000, 1000, true);
	add_end(&t, 1, "ok", "read", 1000);
	tell(live, &t, 1, 100, 0, 0);
	live_json(live, clock_mono_ns(), &(struct live_journal){-ENOSPC, "", NULL, NULL}, &out);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(root, "totals"), "read")), 1005);
	assert_true(json_is_null(json_object_get(json_object_get(root, "totals"), "mapped")));
	assert_true(json_is_null(json_object_get(json_object_get(root, "tasks"), "running")));
	assert_string_equal(json_string_value(json_object_get(root, "journal_error")),
			    "no space left on device");
	assert_int_equal(json_array_size(json_object_get(root, "worker_rows")), 1);
	row = json_array_get(json_object_get(root, "worker_rows"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "name")), "w?[2J");
	assert_string_equal(json_string_value(json_object_get(row, "host")), "node?7");
	assert_string_equal(json_string_value(json_object_get(row, "state")), "connected");
	json_decref(root);
	buf_release(&out);
	live_free(live);
}

static void a_watched_worker_needs_no_connection(void **state)
{
	struct live *live = live_new();
	struct live_cluster c;
	struct told t;

	(void)state;
	told_init(&t);
	live_watch(live);
	live_cluster(live, &c);
	assert_true(c.unread && c.losses_unknown && isnan(c.threads) && isnan(c.rate[0]));
	say_hello(live, 1, 100);
	add_sample(&t, 5000, 1, 1);
	tell(live, &t, 1, 100, 0, 0);
	live_set_reach(live, &(struct live_reach){
				     .any = true, .all = true, .losses = true, .records_lost = 7});
	live_cluster(live, &c);
	assert_true(!c.unread && !c.losses_unknown && c.connected == 1 && c.records_lost == 7);
	live->workers->heard_ms -= LIVE_SILENT_MS + 1;
	live_cluster(live, &c);
	assert_true(c.connected == 0 && c.silent == 1);
	live_free(live);
}

/* Which of a frame's messages count, and by which field order. */
static void known_numbers_and_given_fields(void **state)
{
	struct crema_frame_header head = {.stream = 100, .first_seq = 10, .count = 3};
	struct ranges known = {0};
	struct live_fields none = {0, true, -1, -1, -1, -1, -1, -1, -1, 0};
	struct live_frame frame = {.head = &head, .known = &known};
	uint32_t starts[3] = {1};
	struct live *live = live_new();
	struct buf raw = BUF_INIT;
	msgpack_packer pk;
	struct told t;

	(void)state;
	told_init(&t);
	memset(head.worker, 1, sizeof(head.worker));
	say_hello(live, 1, 100);
	add_end(&t, 1, "ok", "a", 1);
	starts[1] = 1 + (uint32_t)t.body.len;
	add_end(&t, 2, "erred", "a", 1);
	starts[2] = 1 + (uint32_t)t.body.len;
	add_end(&t, 3, "ok", "a", 1);
	pack_init(&pk, &raw);
	pack_array(&pk, 3);
	buf_add(&raw, t.body.data, t.body.len);
	head.raw_bytes = (uint32_t)raw.len;
	frame.raw = raw.data;
	frame.starts = starts;
	assert_int_equal(ranges_add(&known, 11, 12, 8), 0);
	assert_int_equal(live_data(live, &frame), 0);
	assert_int_equal(prefix(live, "a")->ended[LIVE_OK], 2);
	assert_int_equal(prefix(live, "a")->ended[LIVE_ERRED], 0);
	frame.known = NULL;
	frame.fields = &none;
	assert_int_equal(live_data(live, &frame), 0);
	assert_int_equal(live->records_bad, 3);
	frame.fields = NULL;
	assert_int_equal(live_data(live, &frame), 0);
	assert_int_equal(prefix(live, "a")->ended[LIVE_ERRED], 1);
	ranges_release(&known);
	buf_release(&raw);
	buf_release(&t.body);
	live_free(live);
}

/* Old records that arrive during an activity do not belong to it. */
static void old_records_are_no_activity(void **state)
{
	struct live *live = live_new();
	struct told t;

	(void)state;
	told_init(&t);
	live_watch(live);
	live_restoring(live, true);
	say_hello(live, 1, 100);
	add_totals(&t, 1000, 1000, true);
	tell(live, &t, 1, 100, 0, 0);
	live_restoring(live, false);
	live_tick(live);
	assert_true(isnan(live->since));
	add_totals(&t, 2000, 1200, true);
	tell(live, &t, 1, 100, 1, 0);
	live_tick(live);
	assert_false(isnan(live->since));
	live_restoring(live, true);
	say_hello(live, 2, 100);
	add_totals(&t, 1000, 3000, true);
	tell(live, &t, 2, 100, 0, 0);
	live_restoring(live, false);
	live_tick(live);
	assert_int_equal(live->total[LIVE_tasks_done] - live->since_work.done, 2);
	live_free(live);
}

/* While another journal may still have its records, a worker that left is kept. */
static void no_watched_worker_is_folded_early(void **state)
{
	struct live *live = live_new();
	struct told t;
	uint8_t i;

	(void)state;
	told_init(&t);
	live_watch(live);
	live->gone_count = LIVE_GONE_KEPT + 1; /* as if others had left */
	live->gone_order = LIVE_GONE_KEPT + 1;
	for (i = 0; i < 2; i++) {
		say_hello(live, i, 100);
		add_goodbye(&t, "exit");
		tell(live, &t, i, 100, 1, 0);
		live->workers->goodbye_order = 0;
		live_set_reach(live, &(struct live_reach){.any = true, .all = i > 0});
		live_tick(live);
		assert_int_equal(live->worker_count, i ? 0 : 1);
	}
	live_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_counts_once),
		cmocka_unit_test(totals_are_the_latest_and_never_go_down),
		cmocka_unit_test(each_total_has_its_place),
		cmocka_unit_test(rates_are_by_the_workers_clock),
		cmocka_unit_test(gone_workers_are_folded_and_stay_in_the_sums),
		cmocka_unit_test(lost_workers_are_folded_and_no_more_are_let_in_than_there_is_room),
		cmocka_unit_test(ids_are_the_agents_choice),
		cmocka_unit_test(prefixes_are_bounded_and_printable),
		cmocka_unit_test(memory_does_not_grow_with_tasks),
		cmocka_unit_test(damaged_messages_are_harmless),
		cmocka_unit_test(activity_begins_and_ends),
		cmocka_unit_test(sums_are_carried),
		cmocka_unit_test(refused_are_not_lost),
		cmocka_unit_test(sums_of_an_earlier_version),
		cmocka_unit_test(a_checkpoint_keeps_all),
		cmocka_unit_test(a_checkpoint_of_other_counters),
		cmocka_unit_test(json_is_whole),
		cmocka_unit_test(who_went_last),
		cmocka_unit_test(a_watched_worker_needs_no_connection),
		cmocka_unit_test(known_numbers_and_given_fields),
		cmocka_unit_test(old_records_are_no_activity),
		cmocka_unit_test(no_watched_worker_is_folded_early),
	};

	return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
