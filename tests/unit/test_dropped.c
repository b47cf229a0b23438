/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dropped.c - the remains of dropped runs: written, read back, and whose tasks they
 * exclude. */
#include "report_fixture.h"

#include "collector/model/dropped.h"

#define SECOND UINT64_C(1000000000)

/* Feeds the model a dropped run of 2 s from `start` on, as its journal has it. */
static void feed_run(struct fixture *fx, const char *id, const char *span, bool plain,
		     uint64_t start)
{
	struct dropped_value values[] = {
		{"num_chunks", value_uint(12)}, {"below", value_int(-3)},
		{"wall_time", value_real(2.5)}, {"track_workers", value_bool(true)},
		{"slowest", value_text("set")}, {"unknown", value_null()}};
	struct dropped_run run = {.id = id,
				  .kind = "coffea",
				  .why = "keep",
				  .plain = plain,
				  .start_ns = start,
				  .stop_ns = start + 2 * SECOND,
				  .dropped_ns = 77};
	struct buf out = BUF_INIT, scratch = BUF_INIT;
	const unsigned char *raw;
	struct frame frame;

	run.spans.v = &span;
	run.spans.n = span != NULL;
	run.values.v = values;
	run.values.n = sizeof(values) / sizeof(values[0]);
	assert_int_equal(dropped_pack(&run, CREMA_FRAME_DROPPED_RUN, &out), 0);
	assert_int_equal(frame_decode(&frame, out.data, out.len), out.len);
	assert_int_equal(frame.head.type, CREMA_FRAME_DROPPED_RUN);
	assert_int_equal(frame_payload(&frame, &scratch, &raw), 0);
	assert_int_equal(model_feed(&fx->m, &frame.head, raw, frame.head.raw_bytes), 0);
	buf_release(&out);
	buf_release(&scratch);
}

static void what_is_written_is_read(void **state)
{
	struct fixture *fx = fx_new();
	const struct dropped_run *d;

	(void)state;
	feed_run(fx, "20260101-000000-ab12", "a span", true, 5 * SECOND);
	assert_int_equal(fx->m.dropped.n, 1);
	d = dropped_find(&fx->m, "ab12");
	assert_ptr_equal(d, fx->m.dropped.v[0]);
	assert_ptr_equal(d, dropped_find(&fx->m, "a span"));
	assert_null(dropped_find(&fx->m, "last"));
	assert_string_equal(d->id, "20260101-000000-ab12");
	assert_string_equal(d->kind, "coffea");
	assert_string_equal(d->why, "keep");
	assert_true(d->plain);
	assert_int_equal(d->start_ns, 5 * SECOND);
	assert_int_equal(d->stop_ns, 7 * SECOND);
	assert_int_equal(d->dropped_ns, 77);
	assert_int_equal(d->spans.n, 1);
	assert_int_equal(d->values.n, 6);
	assert_uint_value(dropped_value(d, "num_chunks"), 12);
	assert_near(dropped_value(d, "below"), -3);
	assert_near(dropped_value(d, "wall_time"), 2.5);
	assert_int_equal(dropped_value(d, "track_workers").type, VALUE_BOOL);
	assert_string_equal(dropped_value(d, "slowest").v.s, "set");
	assert_unknown(dropped_value(d, "unknown"));
	assert_unknown(dropped_value(d, "another"));
	assert_int_equal(fx->m.records_bad, 0);
	fx_free(fx);
}

/* By its span; if spans do not identify it, or there are none, by its time and a second around
 * it. */
static void tasks_of_dropped_runs_are_left_out(void **state)
{
	static const struct {
		const char *span;
		int start_ms;
		bool left_out;
	} tasks[] = {
		{"dask", 9000, true},  {"kept", 5000, false}, {"plain", 3999, false},
		{"plain", 4000, true}, {"plain", 8000, true}, {"plain", 8001, false},
		{NULL, 19999, true},   {NULL, 23000, true},   {NULL, 18999, false},
		{NULL, 23001, false},
	};
	struct fixture *fx = fx_new();
	size_t i, left_out = 0;
	char key[16];

	(void)state;
	feed_run(fx, "one", "dask", false, UTC_NS(100));
	feed_run(fx, "two", "plain", true, UTC_NS(5000));
	feed_run(fx, "three", NULL, true, UTC_NS(20000));
	fx_hello(fx, 1, "{}");
	for (i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		fx_simple(fx, 1, i + 1, key, tasks[i].span, 0, tasks[i].start_ms,
			  tasks[i].start_ms + 10, "ok");
		left_out += tasks[i].left_out;
	}
	fx_map(fx, 1, CREMA_MSG_CLOCKS, "boot_ns", AT(0), "real_ns", UTC_NS(0), "offset_ns",
	       UINT64_C(0), "error_ns", UINT64_C(0), NULL);
	assert_int_equal(model_close(&fx->m, 0), 0);
	assert_int_equal(dropped_filter(&fx->m), 0);
	assert_int_equal(fx->m.dropped_attempts, left_out);
	assert_int_equal(fx->m.attempts.n, sizeof(tasks) / sizeof(tasks[0]) - left_out);
	for (i = 0; i < fx->m.attempts.n; i++)
		assert_false(tasks[fx->m.attempts.v[i]->attempt - 1].left_out);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(tasks_of_dropped_runs_are_left_out),
	};

	return cmocka_run_group_tests_name("dropped", tests, NULL, NULL);
}
