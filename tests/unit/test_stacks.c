/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stacks.c - long waits, from shared memory to the report's rows; names of functions. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <unistd.h>

#include "agent/stacks.h"
#include "collector/report/report.h"
#include "common/symbols.h"
#include "report_fixture.h"

__attribute__((noinline)) static int a_known_function(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static uint64_t address_in(int (*function)(int))
{
	return (uint64_t)(uintptr_t)function + 1;
}

static void hex_of(const struct module *m, char *hex)
{
	*hex = '\0';
	for (uint32_t i = 0; i < m->build_id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
}

/* 64-bit FNV-1a over the path and the build id: a module has the same id in each process. */
static uint64_t id_of(const struct module *m)
{
	uint64_t id = 0xcbf29ce484222325u;

	for (const char *c = m->path; *c; c++)
		id = (id ^ (unsigned char)*c) * 0x100000001b3u;
	for (uint32_t i = 0; i < m->build_id_bytes; i++)
		id = (id ^ m->build_id[i]) * 0x100000001b3u;
	return id;
}

static void test_an_address_becomes_a_name(void **state)
{
	struct modules modules = {0};
	char hex[2 * MODULES_BUILD_ID + 1];
	struct symbols s;
	struct module *m;
	uint64_t place;

	(void)state;
	assert_int_equal(a_known_function(1), 2);
	assert_int_equal(modules_read(&modules, getpid()), 0);
	m = modules_find(&modules, address_in(a_known_function), &place);
	assert_non_null(m);
	assert_non_null(strstr(m->path, "test_stacks"));
	assert_true(m->build_id_bytes >= 8);
	assert_int_equal(m->id, id_of(m));
	hex_of(m, hex);
	assert_int_equal(symbols_open(&s, m->path, hex), 0);
	assert_string_equal(symbols_name(&s, place), "a_known_function");
	assert_null(symbols_name(&s, 0));
	assert_null(symbols_name(&s, UINT64_MAX));
	symbols_release(&s);
	hex[0] = hex[0] == '0' ? '1' : '0';
	assert_int_equal(symbols_open(&s, m->path, hex), -ESTALE);
	assert_null(symbols_name(&s, place));
	symbols_release(&s);
	assert_int_not_equal(symbols_open(&s, "/dev/zero", hex), 0);
	symbols_release(&s);
	assert_int_not_equal(symbols_open(&s, "/proc/self/stat", hex), 0);
	symbols_release(&s);
	/* The heap is in no file; what was known remains when the process has ended. */
	assert_null(modules_find(&modules, (uint64_t)(uintptr_t)modules.module, &place));
	assert_null(modules_find(&modules, UINT64_MAX, &place));
	assert_true(modules_read(&modules, INT_MAX) < 0);
	assert_non_null(modules_find(&modules, address_in(a_known_function), &place));
	modules_release(&modules);
}

/* A worker's memory with its agent's side; frames are fed to the model. */
struct agent_side {
	struct crema_shm *shm;
	struct view view;
	struct outbox out;
	struct stacks stacks;
	uint64_t next, now;
};

static void agent_side_init(struct agent_side *a)
{
	static const uint8_t worker[16] = {1};

	memset(a, 0, sizeof(*a));
	a->shm = calloc(1, sizeof(*a->shm));
	assert_non_null(a->shm);
	a->shm->strings_used = 8;
	a->view = (struct view){.shm = a->shm, .fd = -1};
	outbox_init(&a->out, worker, 5, NULL, false);
	stacks_init(&a->stacks, &a->view, &a->out, NULL, getpid());
}

static void agent_side_release(struct agent_side *a)
{
	stacks_release(&a->stacks);
	outbox_release(&a->out);
	free(a->shm);
}

static uint32_t text(struct agent_side *a, const char *s)
{
	uint32_t n = (uint32_t)strlen(s), at = a->shm->strings_used;

	memcpy(a->shm->strings + at, &n, 4);
	memcpy(a->shm->strings + at + 4, s, n + 1);
	a->shm->strings_used += (4 + n + 1 + 3) & ~3u;
	return at;
}

static struct crema_stack *record(struct agent_side *a, const char *span, uint64_t ms)
{
	struct crema_stack *r = a->shm->stack;

	while (r->state)
		r++;
	memset(r, 0, sizeof(*r));
	*r = (struct crema_stack){.state = 2,
				  .wait = CREMA_T_storage_wait,
				  .number = a->next++,
				  .waited_ns = ms * 1000000u,
				  .end_boot_ns = BOOT,
				  .prefix = text(a, "task"),
				  .span = text(a, span),
				  .depth = 2,
				  .on = CREMA_ON_FILE,
				  .file = text(a, "/data/x.root")};
	r->address[0] = address_in(a_known_function);
	r->address[1] = 0x10; /* in no file */
	return r;
}

/* Polls a second later, and feeds what was sent to the model. */
static void poll_and_feed(struct agent_side *a, struct fixture *fx)
{
	struct buf scratch = BUF_INIT;
	const unsigned char *raw;
	struct frame frame;

	a->now += 1000000000u;
	stacks_poll(&a->stacks, a->now);
	outbox_flush(&a->out);
	for (struct outbox_frame *o = a->out.head; o; o = o->next) {
		assert_true(frame_decode(&frame, o->data, o->bytes) > 0);
		assert_int_equal(frame_payload(&frame, &scratch, &raw), 0);
		for (int i = 0; i < (fx->twice ? 2 : 1); i++)
			assert_int_equal(model_feed(&fx->m, &frame.head, raw, frame.head.raw_bytes),
					 0);
	}
	outbox_acked(&a->out, a->out.next_seq);
	buf_release(&scratch);
	for (uint32_t i = 0; i < CREMA_SHM_STACKS; i++)
		assert_int_equal(a->shm->stack[i].state, 0);
}

static json_t *rows_of(struct fixture *fx)
{
	struct buf out = BUF_INIT;
	struct sink sink = {.out = &out};
	struct report r;
	struct json j;
	json_t *root, *rows;

	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	emit_init(&j, &sink);
	emit_object(&j, NULL);
	blocking_json(r.blocking, r.run, &j);
	emit_end(&j);
	assert_int_equal(sink.error, 0);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	rows = json_incref(json_object_get(root, "blocking"));
	json_decref(root);
	buf_release(&out);
	report_release(&r);
	return rows;
}

static const char *string(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

/* From the worker's memory to the report; each record counts once, however often it is read. */
static void test_records_become_rows(void **state)
{
	struct fixture *fx = fx_new();
	struct agent_side a;
	json_t *rows;
	const json_t *row;

	(void)state;
	fx->twice = true;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 100, "ok");
	agent_side_init(&a);
	record(&a, "s", 30);
	record(&a, "s", 50);
	record(&a, "another", 70);
	poll_and_feed(&a, fx);
	record(&a, "s", 20);
	poll_and_feed(&a, fx);
	rows = rows_of(fx);
	assert_int_equal(json_array_size(rows), 1);
	row = json_array_get(rows, 0);
	assert_string_equal(string(row, "wait"), "storage");
	assert_string_equal(string(row, "file"), "/data/x.root");
	assert_string_equal(string(row, "prefix"), "task");
	assert_int_equal(json_integer_value(json_object_get(row, "count")), 3);
	assert_true(json_number_value(json_object_get(row, "waited_seconds")) == 0.1);
	assert_true(json_number_value(json_object_get(row, "longest_seconds")) == 0.05);
	assert_string_equal(json_string_value(json_array_get(json_object_get(row, "frames"), 0)),
			    "a_known_function");
	assert_string_equal(json_string_value(json_array_get(json_object_get(row, "frames"), 1)),
			    "0x10");
	json_decref(rows);
	agent_side_release(&a);
	fx_free(fx);
}

/* The worker's memory may contain anything. */
static void test_nonsense_in_memory_is_not_sent(void **state)
{
	struct fixture *fx = fx_new();
	struct agent_side a;
	struct crema_stack *r;

	(void)state;
	agent_side_init(&a);
	record(&a, "s", 30)->depth = CREMA_STACK_DEPTH + 1;
	record(&a, "s", 30)->wait = CREMA_TIMES;
	record(&a, "s", 30)->on = 99;
	record(&a, "s", 30)->peer_bytes = 29;
	r = record(&a, "s", 30);
	r->prefix = r->span = r->file = UINT32_MAX;
	poll_and_feed(&a, fx);
	assert_int_equal(fx->m.records_bad, 0);
	assert_int_equal(fx->m.sites.n, 1);
	assert_null(fx->m.sites.v[0]->file);
	assert_null(fx->m.sites.v[0]->span);
	agent_side_release(&a);
	fx_free(fx);
}

static void test_no_more_than_so_many_a_second(void **state)
{
	struct fixture *fx = fx_new();
	struct agent_side a;

	(void)state;
	fx_hello(fx, 1, NULL);
	agent_side_init(&a);
	for (uint32_t i = 0; i < CREMA_SHM_STACKS; i++)
		record(&a, "s", 1);
	poll_and_feed(&a, fx);
	assert_int_equal(fx->m.sites.n, 1);
	assert_int_equal(fx->m.sites.v[0]->waits.calls, STACKS_PER_SECOND);
	agent_side_release(&a);
	fx_free(fx);
}

/* A stack of one frame as a message; place 0: half a frame. */
static void message(struct fixture *fx, uint64_t number, uint64_t place, const char *wait)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_STACK, 4);
	pack_kv_u64(&pk, "number", number);
	pack_kv_text(&pk, "wait", wait);
	pack_kv_u64(&pk, "waited_ns", 5);
	pack_text(&pk, "frames");
	pack_array(&pk, place ? 2 : 1);
	pack_u64(&pk, 0);
	if (place)
		pack_u64(&pk, place);
	fx_end(fx, 1, &b);
}

static void test_bad_messages_and_too_many_places(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	message(fx, 0, 0, "sleep_ns");
	message(fx, 1, 1, "no such wait");
	message(fx, UINT64_MAX, 1, "sleep_ns");
	assert_int_equal(fx->m.records_bad, 3);
	for (uint64_t i = 0; i < MODEL_SITES + 7; i++)
		message(fx, i, i + 1, "sleep_ns");
	message(fx, MODEL_SITES + 7, 1, "sleep_ns");
	assert_int_equal(fx->m.records_bad, 3);
	assert_int_equal(fx->m.sites.n, MODEL_SITES);
	assert_int_equal(fx->m.sites.v[0]->waits.calls, 2);
	assert_int_equal(fx->m.sites_cut.calls, 7);
	assert_int_equal(fx->m.sites_cut.ns, 35);
	fx_free(fx);
}

/* A worker in trouble has many waits: a limited number per second is sent, in whichever poll. */
static void test_so_many_in_a_second(void **state)
{
	static const uint64_t at_ms[] = {10000, 10500, 10999, 11000, 11900};
	static const bool told[] = {true, false, false, true, false};
	struct agent_side a;

	(void)state;
	agent_side_init(&a);
	for (size_t i = 0; i < sizeof(at_ms) / sizeof(at_ms[0]); i++) {
		uint64_t before = a.out.tickets;

		for (unsigned int k = 0; k < STACKS_PER_SECOND; k++)
			record(&a, "a-span", 5)->depth = 0;
		stacks_poll(&a.stacks, at_ms[i] * 1000000u);
		assert_int_equal(a.out.tickets - before, told[i] ? STACKS_PER_SECOND : 0);
	}
	agent_side_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_so_many_in_a_second),
		cmocka_unit_test(test_an_address_becomes_a_name),
		cmocka_unit_test(test_records_become_rows),
		cmocka_unit_test(test_nonsense_in_memory_is_not_sent),
		cmocka_unit_test(test_no_more_than_so_many_a_second),
		cmocka_unit_test(test_bad_messages_and_too_many_places),
	};

	return cmocka_run_group_tests_name("stacks", tests, NULL, NULL);
}
