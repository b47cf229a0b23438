/* SPDX-License-Identifier: BSD-3-Clause */
/* test_servers.c - from SERVER messages of several workers to the report's JSON. */
#include <jansson.h>

#include "collector/report/report.h"
#include "report_fixture.h"

/* 90 requests of 1 to 2 us and 10 of 1 to 2 ms, but the slowest took `max_ns`. */
static void server(struct fixture *fx, int worker, const char *name, const char *span,
		   uint64_t requests, uint64_t max_ns)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_SERVER, 9);
	pack_kv_text(&pk, "server", name);
	pack_kv_text(&pk, "scheme", "root");
	pack_kv_text(&pk, "span", span);
	pack_kv_u64(&pk, "requests", requests);
	pack_kv_u64(&pk, "failed", 1);
	pack_kv_u64(&pk, "read_bytes", 1000);
	pack_kv_u64(&pk, "latency_sum_ns", 2000000);
	pack_kv_u64(&pk, "latency_max_ns", max_ns);
	pack_text(&pk, "latency");
	pack_array(&pk, CREMA_LATENCY_BUCKETS + 2); /* more than defined: dropped */
	for (unsigned int i = 0; i < CREMA_LATENCY_BUCKETS + 2; i++)
		pack_u64(&pk, i == 1 ? requests - 10 : i == 11 ? 10 : i >= CREMA_LATENCY_BUCKETS);
	fx_end(fx, worker, &b);
}

static json_t *servers_of(struct fixture *fx)
{
	struct buf out = BUF_INIT;
	struct sink sink = {.out = &out};
	struct report r;
	struct json j;
	json_t *root, *servers;

	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	emit_init(&j, &sink);
	emit_object(&j, NULL);
	report_servers_json(&r, &j);
	emit_end(&j);
	assert_int_equal(sink.error, 0);
	root = json_loadb((const char *)out.data, out.len, 0, NULL);
	assert_non_null(root);
	servers = json_incref(json_object_get(root, "servers"));
	json_decref(root);
	buf_release(&out);
	report_release(&r);
	return servers;
}

static double number(const json_t *o, const char *name)
{
	return json_number_value(json_object_get(o, name));
}

static void assert_bounds(const json_t *server_, const char *name, double least, double most)
{
	const json_t *two = json_object_get(server_, name);

	assert_int_equal(json_array_size(two), 2);
	assert_true(json_number_value(json_array_get(two, 0)) == least);
	assert_true(json_number_value(json_array_get(two, 1)) == most);
}

static void test_sums_of_workers_and_bounds(void **state)
{
	struct fixture *fx = fx_new();
	const json_t *one;
	json_t *all;

	(void)state;
	fx->twice = true;
	fx_hello(fx, 1, NULL);
	fx_hello(fx, 2, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 100, "ok");
	server(fx, 1, "a:1094", "s", 50, 1500000);
	server(fx, 1, "a:1094", "s", 100, 1900000); /* later, cumulative */
	server(fx, 2, "a:1094", "s", 100, 1200000);
	server(fx, 2, "a:1094", "another", 100, 9900000); /* not from this run */
	server(fx, 2, NULL, "s", 100, 1048576);
	all = servers_of(fx);
	assert_int_equal(json_array_size(all), 2);
	one = json_array_get(all, 0);
	assert_string_equal(json_string_value(json_object_get(one, "server")), "a:1094");
	assert_int_equal((int)number(one, "requests"), 200);
	assert_int_equal((int)number(one, "failed_requests"), 2);
	assert_int_equal((int)number(one, "read_bytes"), 2000);
	assert_true(number(one, "latency_sum_s") == 0.004);
	assert_true(number(one, "latency_max_s") == 0.0019);
	assert_bounds(one, "latency_p50_s", 1024e-9, 2048e-9);
	assert_bounds(one, "latency_p99_s", 1048576e-9, 0.0019);
	assert_int_equal(json_array_size(json_object_get(one, "latency_buckets")), 2);
	assert_true(json_is_null(json_object_get(json_array_get(all, 1), "server")));
	json_decref(all);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_of_workers_and_bounds),
	};

	return cmocka_run_group_tests_name("servers", tests, NULL, NULL);
}
