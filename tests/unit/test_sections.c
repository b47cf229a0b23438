/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sections.c - from SECTION and GAUGE messages of several workers to the report's JSON, with
 * numbers computed by hand. */
#include <jansson.h>

#include "collector/report/report.h"
#include "report_fixture.h"

struct told {
	const char *path, *thread;
	uint64_t rev, count, wall_ms, cpu_ms, sleep_ms, read_bytes;
	bool storage_unknown;
	uint64_t number;
};

static void pack_told_counters(msgpack_packer *pk, const struct told *t)
{
	pack_text(pk, "counters");
	pack_map(pk, 2 * CREMA_TIMES + CREMA_COUNTS);
	for (unsigned int i = 0; i < 2 * CREMA_TIMES + CREMA_COUNTS; i++) {
		const char *name = task_name(TASK_FIELDS + i);
		uint64_t v = i == CREMA_T_cpu				 ? t->cpu_ms * 1000000
			     : i == CREMA_T_sleep			 ? t->sleep_ms * 1000000
			     : i == 2 * CREMA_TIMES + CREMA_C_read_bytes ? t->read_bytes
									 : 0;

		pack_kv_maybe(pk, name,
			      !t->storage_unknown ||
				      i != 2 * CREMA_TIMES + CREMA_C_storage_read_bytes,
			      v);
	}
}

static void section(struct fixture *fx, int worker, const char *span, const struct told *t)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_SECTION, 12);
	pack_kv_u64(&pk, "number", t->number);
	pack_kv_text(&pk, "path", t->path);
	pack_kv_text(&pk, "span", span);
	pack_kv_text(&pk, "prefix", "task");
	pack_kv_text(&pk, "thread", t->thread ? t->thread : "task");
	pack_kv_text(&pk, "source", "crema");
	pack_kv_u64(&pk, "rev", t->rev);
	pack_kv_u64(&pk, "begun", t->count + 1);
	pack_kv_u64(&pk, "count", t->count);
	pack_kv_u64(&pk, "broken", 0);
	pack_kv_u64(&pk, "wall_ns", t->wall_ms * 1000000);
	pack_told_counters(&pk, t);
	fx_end(fx, worker, &b);
}

static void gauge(struct fixture *fx, int worker, uint64_t rev, uint64_t count, double sum,
		  double min, double max, double last)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_GAUGE, 7);
	pack_kv_text(&pk, "path", "jets");
	pack_kv_text(&pk, "span", "s");
	pack_kv_text(&pk, "prefix", "task");
	pack_kv_text(&pk, "kind", "value");
	pack_kv_text(&pk, "source", "crema");
	pack_kv_u64(&pk, "rev", rev);
	pack_text(&pk, "stats");
	pack_array(&pk, CREMA_GAUGE_STATS + 1); /* more than defined: dropped */
	for (unsigned int i = 0; i <= CREMA_GAUGE_STATS; i++) {
		pack_array(&pk, 5);
		pack_u64(&pk, i ? 0 : count);
		pack_f64(&pk, sum);
		pack_f64(&pk, min);
		pack_f64(&pk, max);
		pack_f64(&pk, last);
	}
	fx_end(fx, worker, &b);
}

static json_t *json_of(struct fixture *fx)
{
	struct buf out = BUF_INIT, text = BUF_INIT;
	struct sink sink = {.out = &out}, plain = {.out = &text};
	struct report r;
	struct json j;
	json_t *root;

	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	emit_init(&j, &sink);
	emit_object(&j, NULL);
	sections_json(&r.sections, &j);
	emit_end(&j);
	sections_table(&r.sections, &plain, false);
	assert_int_equal(sink.error | plain.error, 0);
	for (size_t i = 0, line = 0; i < text.len; i++, line++) {
		if (text.data[i] == '\n')
			line = (size_t)-1;
		assert_true(line == (size_t)-1 || line < 80);
		assert_true(text.data[i] == '\n' || text.data[i] >= ' ');
	}
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	buf_release(&out);
	buf_release(&text);
	report_release(&r);
	return root;
}

static struct fixture *workers(void)
{
	struct fixture *fx = fx_new();

	fx->twice = true;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 100, "ok");
	fx_simple(fx, 2, 1, "l", "s", 0, 0, 100, "ok");
	return fx;
}

static const json_t *named(const json_t *root, const char *list, const char *key, const char *name)
{
	const json_t *all = json_object_get(root, list);

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *one = json_array_get(all, i), *text = json_object_get(one, key);

		if (name ? json_is_string(text) && !strcmp(json_string_value(text), name)
			 : json_is_null(text))
			return one;
	}
	fail_msg("no %s", name ? name : "null");
	return NULL;
}

static double number(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	assert_true(json_is_number(v));
	return json_number_value(v);
}

#define near(got, want) assert_true((got) - (want) < 1e-9 && (want) - (got) < 1e-9)

static void sums_and_self(void **state)
{
	struct fixture *fx = workers();
	const json_t *a, *b, *self;
	json_t *root;

	(void)state;
	section(fx, 1, "s", &(struct told){"a", NULL, 8, 3, 900, 500, 250, 7000, false, 0});
	section(fx, 1, "s",
		&(struct told){"a", NULL, 4, 1, 300, 100, 50, 1000, false, 0}); /* older */
	section(fx, 2, "s", &(struct told){"a", NULL, 2, 1, 100, 60, 0, 1000, true, 0});
	section(fx, 1, "s", &(struct told){"a/b", NULL, 2, 2, 400, 300, 0, 5000, false, 0});
	section(fx, 1, "s", &(struct told){"a/b/c", NULL, 2, 2, 100, 50, 0, 5000, false, 0});
	section(fx, 1, "s",
		&(struct told){"a\\/x", NULL, 2, 1, 70, 50, 0, 1, false, 0}); /* not nested in a */
	section(fx, 1, "s",
		&(struct told){"a/b", "pool", 2, 1, 70, 50, 0, 1, false,
			       0}); /* of another thread */
	section(fx, 2, "s",
		&(struct told){"a\\", NULL, 2, 1, 0, 0, 0, 0, false, 0}); /* not from a shim */
	section(fx, 1, "another", &(struct told){"a", NULL, 9, 9, 9, 9, 9, 9, false, 0});
	root = json_of(fx);
	assert_int_equal(json_array_size(json_object_get(root, "sections")), 6);
	assert_true(json_is_null(
		json_object_get(named(root, "sections", "section", "a\\/x"), "outer")));
	a = named(root, "sections", "section", "a");
	assert_true(json_is_null(json_object_get(a, "outer")));
	assert_int_equal((int)number(a, "count"), 4);
	assert_int_equal((int)number(a, "unfinished"), 2);
	near(number(a, "wall_seconds"), 1.0);
	near(number(a, "cpu_seconds"), 0.56);
	near(number(a, "sleep_seconds"), 0.25);
	near(number(a, "unclassified_seconds"), 0.19);
	assert_int_equal((int)number(a, "read_bytes"), 8000);
	assert_true(json_is_null(json_object_get(a, "storage_read_bytes")));
	self = json_object_get(a, "self");
	near(number(self, "wall_seconds"), 0.6);
	near(number(self, "cpu_seconds"), 0.26);
	near(number(self, "unclassified_seconds"), 0.09);
	assert_int_equal((int)number(self, "read_bytes"), 3000);
	b = named(root, "sections", "outer", "a");
	assert_string_equal(json_string_value(json_object_get(b, "section")), "a/b");
	assert_int_equal((int)number(json_object_get(b, "self"), "read_bytes"), 0);
	near(number(json_object_get(b, "self"), "wall_seconds"), 0.3);
	json_decref(root);
	fx_free(fx);
}

static void beyond_the_table_has_no_self(void **state)
{
	struct fixture *fx = workers();
	const json_t *other;
	json_t *root;

	(void)state;
	section(fx, 1, "s", &(struct told){NULL, NULL, 2, 5, 100, 50, 0, 3, false, 0});
	section(fx, 2, "s", &(struct told){NULL, NULL, 2, 6, 100, 50, 0, 4, false, 0});
	root = json_of(fx);
	other = named(root, "sections", "section", NULL);
	assert_int_equal((int)number(other, "count"), 11);
	assert_int_equal((int)number(other, "read_bytes"), 7);
	assert_true(json_is_null(json_object_get(json_object_get(other, "self"), "wall_seconds")));
	json_decref(root);
	fx_free(fx);
}

/* A worker has released a row, and the path was used again: both rows' numbers add up. */
static void a_path_in_two_rows(void **state)
{
	struct fixture *fx = workers();
	const json_t *a;
	json_t *root;

	(void)state;
	section(fx, 1, "s", &(struct told){"a", NULL, 20, 5, 100, 50, 0, 3, false, 1});
	section(fx, 1, "s", &(struct told){"a", NULL, 4, 6, 100, 50, 0, 4, false, 9});
	root = json_of(fx);
	a = named(root, "sections", "section", "a");
	assert_int_equal((int)number(a, "count"), 11);
	assert_int_equal((int)number(a, "read_bytes"), 7);
	json_decref(root);
	fx_free(fx);
}

static void values_of_workers_join(void **state)
{
	struct fixture *fx = workers();
	const json_t *value;
	json_t *root;

	(void)state;
	gauge(fx, 1, 6, 3, 10, 1, 6, 3);
	gauge(fx, 1, 4, 2, 7, 1, 6, 6); /* older */
	root = json_of(fx);
	value = json_object_get(named(root, "custom_metrics", "name", "jets"), "value");
	near(number(value, "last"), 3);
	json_decref(root);
	fx_free(fx);

	fx = workers();
	gauge(fx, 1, 6, 3, 10, 1, 6, 3);
	gauge(fx, 2, 2, 1, -4, -4, -4, -4);
	root = json_of(fx);
	value = json_object_get(named(root, "custom_metrics", "name", "jets"), "value");
	assert_int_equal((int)number(value, "count"), 4);
	near(number(value, "sum"), 6);
	near(number(value, "min"), -4);
	near(number(value, "max"), 6);
	assert_true(json_is_null(json_object_get(value, "last")));
	json_decref(root);
	fx_free(fx);
}

/* roastcoffea's track_memory only reports changes: the memory at a section's end is unknown, not 0
 * bytes. */
static void an_unknown_end_is_unknown(void **state)
{
	struct gauge_sum one = {.path = "jets", .kind = "memory", .source = "roastcoffea"},
			 *rows[] = {&one};
	struct sections sections = {.gauges = {.v = rows, .n = 1}};
	struct buf text = BUF_INIT;
	struct sink sink = {.out = &text};

	(void)state;
	one.stat[2] = (struct crema_stat){.count = 1, .sum = 4e6, .min = 4e6, .max = 4e6};
	sections_table(&sections, &sink, false);
	buf_add(&text, "", 1);
	assert_non_null(strstr((const char *)text.data, "unknown"));
	assert_null(strstr((const char *)text.data, " 0 B"));
	buf_release(&text);
}

static void hostile_names_stay_names(void **state)
{
	static const char *const names[] = {"<script>\"'&\n\x01", "\xff\xfe", "////", "\\", "a/",
					    "=cmd|' /C calc'!A0"};
	struct fixture *fx = workers();
	char longest[4097];
	json_t *root;

	(void)state;
	memset(longest, 'L', 4096);
	longest[4096] = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		section(fx, 1, "s", &(struct told){names[i], NULL, 2, 1, 70, 50, 0, 1, false, 0});
	section(fx, 1, "s", &(struct told){longest, NULL, 2, 1, 70, 50, 0, 1, false, 0});
	root = json_of(fx);
	assert_int_equal(json_array_size(json_object_get(root, "sections")), 7);
	named(root, "sections", "section", names[0]);
	named(root, "sections", "section", longest);
	json_decref(root);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_and_self),
		cmocka_unit_test(beyond_the_table_has_no_self),
		cmocka_unit_test(a_path_in_two_rows),
		cmocka_unit_test(values_of_workers_join),
		cmocka_unit_test(an_unknown_end_is_unknown),
		cmocka_unit_test(hostile_names_stay_names),
	};

	return cmocka_run_group_tests_name("sections", tests, NULL, NULL);
}
