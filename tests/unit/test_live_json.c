/* SPDX-License-Identifier: BSD-3-Clause */
/* test_live_json.c - the rows of workers in live.json: names that could end a string, and
 * numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/live/live_parts.h"
#include "common/clock.h"

static struct live_worker *add(struct live *live, uint8_t first, const char *name)
{
	uint8_t id[CREMA_WORKER_ID_BYTES] = {first};
	struct live_worker *w;
	bool folded;

	w = live_worker(live, id, &folded);
	assert_non_null(w);
	live_text(w->name, sizeof(w->name), (struct text){name, strlen(name)});
	live_connection(live, id, 1);
	return w;
}

static json_t *rows(struct live *live, uint64_t *cut)
{
	struct buf out = BUF_INIT;
	json_t *root, *list;

	live_json(live, clock_mono_ns(), &(struct live_journal){.over = ""}, &out);
	assert_int_equal(out.error, 0);
	root = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	*cut = (uint64_t)json_integer_value(json_object_get(root, "worker_rows_cut"));
	list = json_incref(json_object_get(root, "worker_rows"));
	json_decref(root);
	buf_release(&out);
	return list;
}

static double real(const json_t *row, const char *key)
{
	assert_true(json_is_number(json_object_get(row, key)));
	return json_number_value(json_object_get(row, key));
}

static void texts_and_numbers(void **state)
{
	static const struct {
		double value, want; /* NAN: null */
	} cpu[] = {
		{0, 0},
		{0.5, 0.5},
		{99.9999996, 100},
		{0.0000004, 0},
		{-1.25, -1.25},
		{-0.0000001, 0},
		{1e9 + 0.6, 1e9 + 1},
		{123456789.987654, 123456789.987654},
		{1e300, 1e300},
		{(double)INFINITY, (double)NAN},
		{(double)NAN, (double)NAN},
	};
	struct live *live = live_new();
	struct live_worker *w = add(live, 1, "a\"b\\c</script>\n\"");
	json_t *list, *row;
	uint64_t cut;
	size_t i;

	(void)state;
	w->pid = UINT64_C(4294967296);
	w->rss_bytes = 1e12;
	w->row.value[LIVE_tasks_done] = 7;
	w->row.known[LIVE_tasks_done / 64] |= UINT64_C(1) << LIVE_tasks_done % 64;
	for (i = 0; i < sizeof(cpu) / sizeof(cpu[0]); i++) {
		w->cpu_percent = cpu[i].value;
		list = rows(live, &cut);
		assert_int_equal(json_array_size(list), 1);
		row = json_array_get(list, 0);
		if (isnan(cpu[i].want))
			assert_true(json_is_null(json_object_get(row, "cpu_percent")));
		else
			assert_true(real(row, "cpu_percent") == cpu[i].want);
		assert_string_equal(json_string_value(json_object_get(row, "name")),
				    "a\"b\\c</script>?\"");
		assert_true(json_is_null(json_object_get(row, "host")));
		assert_true(json_is_null(json_object_get(row, "limit_bytes")));
		assert_int_equal(json_integer_value(json_object_get(row, "pid")), 4294967296);
		assert_int_equal(json_integer_value(json_object_get(row, "done")), 7);
		assert_true(real(row, "rss_bytes") == 1e12);
		json_decref(list);
	}
	live_free(live);
}

/* 3,000 tasks in 2 s of the worker's clock; bytes were not counted at one of the ends. */
static void rates(void **state)
{
	struct live *live = live_new();
	struct live_worker *w = add(live, 1, "w");
	json_t *list, *row;
	uint64_t cut;

	(void)state;
	w->anchor[0] = (struct live_anchor){.boot_ns = 1000000000,
					    .known = UINT64_C(1) << LIVE_RATE_TASKS};
	w->now = (struct live_anchor){.boot_ns = 3000000000, .known = UINT64_MAX};
	w->now.value[LIVE_RATE_TASKS] = 3001;
	list = rows(live, &cut);
	row = json_array_get(list, 0);
	assert_true(real(row, "tasks_per_second") == 1500.5);
	assert_int_equal(json_object_size(json_object_get(row, "bytes_per_second")), CREMA_LAYERS);
	assert_int_equal(json_object_size(json_object_get(row, "threads_in")), CREMA_TIMES);
	assert_true(json_is_null(
		json_object_get(json_object_get(row, "bytes_per_second"), "network_read")));
	json_decref(list);
	live_free(live);
}

static void the_connected_are_first_and_the_rest_is_counted(void **state)
{
	struct live *live = live_new();
	json_t *list;
	uint64_t cut;
	unsigned int i;

	(void)state;
	for (i = 0; i < LIVE_JSON_WORKERS + 20; i++) {
		uint8_t id[CREMA_WORKER_ID_BYTES] = {1, (uint8_t)i, (uint8_t)(i >> 8)};
		bool folded;

		assert_non_null(live_worker(live, id, &folded));
		if (i == 5)
			live_connection(live, id, 1);
	}
	list = rows(live, &cut);
	assert_int_equal(json_array_size(list), LIVE_JSON_WORKERS);
	assert_int_equal(cut, 20);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "state")),
			    "connected");
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "state")),
			    "silent");
	json_decref(list);
	live_free(live);
}

/* Records that did not fit into a worker's memory are also a gap in the sequence: they count
 * once. What one worker refused hides nothing that another one lost. */
static void losses(void **state)
{
	static const struct {
		uint64_t missing[3], refused[3], sums[2];
	} cases[] = {
		{{5306}, {5006}, {300, 5006}},
		{{6}, {6}, {0, 6}},
		{{5}, {6}, {0, 6}},
		{{5, 3, 0}, {5, 0, 10}, {3, 15}},
		{{10, 7, 4}, {2, 9, 3}, {9, 14}},
	};
	struct buf out = BUF_INIT;
	json_t *root, *of;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct live *live = live_new();

		for (uint8_t k = 0; k < 3; k++) {
			uint8_t id[CREMA_WORKER_ID_BYTES] = {k};
			bool folded;
			struct live_worker *w = live_worker(live, id, &folded);

			assert_non_null(w);
			w->connections = 1;
			w->missing = cases[i].missing[k];
			w->row.value[LIVE_records_refused] = cases[i].refused[k];
			live->total[LIVE_records_refused] += cases[i].refused[k];
		}
		live_json(live, clock_mono_ns(), &(struct live_journal){.over = ""}, &out);
		root = json_loadb((const char *)out.data, out.len, 0, NULL);
		of = json_object_get(root, "completeness");
		assert_int_equal(json_integer_value(json_object_get(of, "records_lost")),
				 cases[i].sums[0]);
		assert_int_equal(json_integer_value(json_object_get(of, "records_lost_at_least")),
				 cases[i].sums[0]);
		assert_int_equal(json_integer_value(json_object_get(of, "records_refused")),
				 cases[i].sums[1]);
		assert_int_equal(
			json_integer_value(json_object_get(of, "records_refused_at_least")),
			cases[i].sums[1]);
		json_decref(root);
		buf_clear(&out);
		live_free(live);
	}
	buf_release(&out);
}

/* A worker's message of `bytes` bytes with one row. */
static void tell_doing(struct live *live, struct live_worker *w, uint64_t boot_ns, size_t bytes)
{
	struct buf b = BUF_INIT;
	char *filler = calloc(1, bytes);
	struct unpack u;
	msgpack_packer pk;

	pack_init(&pk, &b);
	pack_array(&pk, 2);
	pack_u64(&pk, CREMA_MSG_DOING);
	pack_map(&pk, 3);
	pack_kv_u64(&pk, "boot_ns", boot_ns);
	pack_text(&pk, "rows");
	pack_array(&pk, 1);
	pack_map(&pk, 1);
	pack_kv_text(&pk, "key", "k");
	pack_kv_str(&pk, "filler", filler, bytes - b.len - 7 - (bytes > 65535 + 40 ? 5 : 3));
	assert_int_equal(b.len, bytes);
	assert_int_equal(unpack_open(&u, b.data, b.len), 0);
	assert_int_equal(live_calls_take(live, w, &u.root.via.array.ptr[1], b.data, b.len), 0);
	unpack_release(&u);
	buf_release(&b);
	free(filler);
}

/* Functions between the line and the call, outermost first, without the C library's and the
 * interpreter's. */
static void what_it_goes_through(void **state)
{
	static const char *const native[] = {"__recv libc.so.6",
					     "libssl.so.3+0x12f0",
					     "XrdCl::File::Open libXrdCl.so.3",
					     "read_more _ssl.cpython-311-x86_64-linux-gnu.so",
					     "cfunction_vectorcall_O libpython3.11.so.1.0",
					     "main python3.11",
					     "?"};
	static const char *const due[] = {"read_more (_ssl)", "XrdCl::File::Open (libXrdCl.so.3)",
					  "libssl.so.3+0x12f0"};
	const uint8_t id[CREMA_WORKER_ID_BYTES] = {1};
	struct live *live = live_new();
	struct buf b = BUF_INIT, out = BUF_INIT;
	struct live_worker *w;
	msgpack_packer pk;
	struct unpack u;
	json_t *root, *rows;
	size_t known = 0;
	bool folded;

	(void)state;
	w = live_worker(live, id, &folded);
	live_connection(live, id, 1);
	pack_init(&pk, &b);
	pack_array(&pk, 2);
	pack_u64(&pk, CREMA_MSG_DOING);
	pack_map(&pk, 2);
	pack_kv_u64(&pk, "boot_ns", 5);
	pack_text(&pk, "rows");
	pack_array(&pk, 2);
	pack_map(&pk, 1);
	pack_text(&pk, "native");
	pack_array(&pk, 7);
	for (unsigned int i = 0; i < 7; i++)
		pack_text(&pk, native[i]);
	pack_map(&pk, 0);
	assert_int_equal(unpack_open(&u, b.data, b.len), 0);
	assert_int_equal(live_calls_take(live, w, &u.root.via.array.ptr[1], b.data, b.len), 0);
	live_json(live, clock_mono_ns(), &(struct live_journal){.over = ""}, &out);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	rows = json_object_get(root, "doing");
	assert_int_equal(json_array_size(rows), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *through = json_object_get(json_array_get(rows, i), "through");

		if (json_is_null(through))
			continue;
		known++;
		assert_int_equal(json_array_size(through), 3);
		for (size_t k = 0; k < 3; k++)
			assert_string_equal(json_string_value(json_array_get(through, k)), due[k]);
	}
	assert_int_equal(known, 1);
	json_decref(root);
	unpack_release(&u);
	buf_release(&out);
	buf_release(&b);
	live_free(live);
}

static int64_t rows_and_cut(struct live *live)
{
	struct buf out = BUF_INIT;
	int64_t n;
	json_t *root;

	live_json(live, clock_mono_ns(), &(struct live_journal){.over = ""}, &out);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	n = json_integer_value(json_object_get(root, "doing_cut")) +
	    (int64_t)json_array_size(json_object_get(root, "doing"));
	json_decref(root);
	buf_release(&out);
	return n;
}

/* With half of a worker's bytes each, there is room for twice as many workers. */
static void what_has_room(void **state)
{
	enum { ROOM = 2 * LIVE_DOING_MEMORY / CREMA_DOING_BYTES, MORE = 9 };
	struct live *live = live_new();
	struct live_worker *w[ROOM + MORE];

	(void)state;
	for (unsigned int i = 0; i < ROOM + MORE; i++) {
		uint8_t id[CREMA_WORKER_ID_BYTES] = {1, (uint8_t)i, (uint8_t)(i >> 8)};
		bool folded;

		w[i] = live_worker(live, id, &folded);
		live_connection(live, id, 1);
		tell_doing(live, w[i], 5, CREMA_DOING_BYTES / 2);
	}
	assert_int_equal(rows_and_cut(live), ROOM);
	for (unsigned int i = 0; i < 5; i++)
		live_calls_forget(live, w[i]);
	for (unsigned int i = 0; i < MORE; i++) /* again: takes the same room */
		tell_doing(live, w[ROOM - 1 - i], 6, CREMA_DOING_BYTES / 2);
	assert_int_equal(rows_and_cut(live), ROOM - 5);
	for (unsigned int i = 0; i < MORE; i++)
		tell_doing(live, w[ROOM + i], 6, CREMA_DOING_BYTES / 2);
	assert_int_equal(rows_and_cut(live), ROOM);
	tell_doing(live, w[7], 7,
		   CREMA_DOING_BYTES + 1); /* one that is too long replaces the previous one */
	assert_int_equal(rows_and_cut(live), ROOM - 1);
	tell_doing(live, w[7], 8, CREMA_DOING_BYTES / 2);
	assert_int_equal(rows_and_cut(live), ROOM);
	tell_doing(live, w[7], 7, CREMA_DOING_BYTES + 1); /* older: repeated by a new agent */
	assert_int_equal(rows_and_cut(live), ROOM);
	live_free(live);
}

static enum live_doing doing_still(double quiet, double running, double ready, double cores,
				   bool paused, double still)
{
	struct live *live = live_new();
	struct live_cluster c;
	struct live_worker *w = add(live, 1, "w");
	char line[256];
	enum live_doing found;

	w->running = running;
	w->ready = ready;
	w->paused = paused;
	w->rss_bytes = 84;
	w->limit_bytes = 100;
	live->prefix[0].ended[LIVE_OK] = 2;
	live->prefix[0].wall_ns = 8000000000; /* the mean is 4 s */
	live->prefixes = 1;
	live_cluster(live, &c);
	c.quiet_seconds = quiet;
	c.still_seconds = still;
	c.rate[LIVE_RATE_CPU] = cores;
	found = live_doing(live, &c);
	live_stall_text(live, &c, line, sizeof(line));
	if (paused)
		assert_string_equal(line, "stalled for 50.00 s: 0 under way, 2 ready on the "
					  "workers; 1 of 1 workers paused, at 84 % of the memory "
					  "limit");
	live_free(live);
	return found;
}

static enum live_doing doing(double quiet, double running, double ready, double cores, bool paused)
{
	return doing_still(quiet, running, ready, cores, paused, quiet);
}

/* The last worker left while a client was waiting for 7 of 10 tasks. */
static enum live_doing left_behind(double quiet, const char *goodbye, int clients)
{
	struct live *live = live_new();
	struct live_worker *w = add(live, 1, "w");
	json_t *said = json_pack("{s:i,s:i,s:[[s,i,i,i,i]]}", "age", 1, "clients", clients,
				 "prefixes", "a", 7, 3, 9, 1);
	struct live_cluster c;
	char line[256];
	enum live_doing found;

	live_progress_feed(live, w, said);
	json_decref(said);
	w->goodbye = true;
	w->killed = strcmp(goodbye, "exit") != 0;
	live_cluster(live, &c);
	c.quiet_seconds = quiet;
	found = live_doing(live, &c);
	live_stall_text(live, &c, line, sizeof(line));
	if (found == LIVE_STALLED)
		assert_string_equal(line, "stalled for 30.00 s: no worker is left; a client was "
					  "waiting for 7 tasks when the last worker left");
	live_free(live);
	return found;
}

/* Half a million bytes are read per second, or at most 999 in total. */
static void moving(void **state)
{
	struct live *live = live_new();

	(void)state;
	live_watch_edges(live, 1000);
	live->total[LIVE_TASK + CREMA_C_network_read_bytes] = 999;
	live_watch_edges(live, 2000);
	assert_int_equal(live->moved_ms, 0);
	live->total[LIVE_TASK + CREMA_C_read_bytes] = 1;
	live_watch_edges(live, 3000);
	assert_int_equal(live->moved_ms, 3000);
	live->total[LIVE_TASK + CREMA_C_comm_read_bytes] = 500000;
	live_watch_edges(live, 4000);
	assert_int_equal(live->moved_ms, 3000);
	live_free(live);
}

static void stalls(void **state)
{
	(void)state;
	assert_int_equal(doing(50, 0, 0, 0, false), LIVE_IDLE);
	assert_int_equal(doing(50, 0, 2, 0, true), LIVE_STALLED);
	assert_int_equal(doing(39, 0, 2, 0, false), LIVE_RUNNING);
	assert_int_equal(doing(40, 1, 0, 0.19, false), LIVE_STALLED);
	assert_int_equal(doing(40, 1, 0, 0.2, false), LIVE_RUNNING);
	assert_int_equal(doing(40, 2, 0, 0.39, false), LIVE_STALLED);
	assert_int_equal(doing_still(40, 2, 0, 0.39, false, 29), LIVE_RUNNING);
	assert_int_equal(left_behind(30, "killed", 1), LIVE_STALLED);
	assert_int_equal(left_behind(29, "killed", 1), LIVE_RUNNING);
	assert_int_equal(left_behind(30, "exit", 1), LIVE_IDLE);
	assert_int_equal(left_behind(30, "killed", 0), LIVE_IDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_and_numbers),
		cmocka_unit_test(rates),
		cmocka_unit_test(losses),
		cmocka_unit_test(what_has_room),
		cmocka_unit_test(what_it_goes_through),
		cmocka_unit_test(stalls),
		cmocka_unit_test(moving),
		cmocka_unit_test(the_connected_are_first_and_the_rest_is_counted),
	};

	return cmocka_run_group_tests_name("live_json", tests, NULL, NULL);
}
