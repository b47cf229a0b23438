/* SPDX-License-Identifier: BSD-3-Clause */
/* test_files.c - the report's files: rows of several workers, of several hosts, unknown ones. */
#include "findings_fixture.h"

/* The worker uses io_uring: what its calls read is unknown, what it mapped is not. */
static void uses_io_uring(struct fixture *fx, int worker)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_TOTALS, 2);
	pack_kv_u64(&pk, "boot_ns", AT(900));
	pack_text(&pk, "io_uring");
	pack_bool(&pk, true);
	fx_end(fx, worker, &b);
}

static void task_of(struct fixture *fx, int worker)
{
	static const char *const keys[] = {"", "a", "b", "c"};
	struct task_record r = work(1, keys[worker], 0, 1000);

	fx_hello(fx, worker, "{\"nthreads\": 1}");
	fx_task(fx, worker, &r);
}

/* Modules, a data file, and charges that belong to no file, read by three workers. `hidden`: the
 * worker whose calls are unknown. */
static void three_workers(struct fixture *fx, int hidden)
{
	static const uint64_t bytes[] = {0, 100, 200, 40};

	for (int w = 1; w <= 3; w++) {
		task_of(fx, w);
		fx_pairs(fx, w, CREMA_MSG_FILE, "span:s", "span", "kind:s", "import",
			 "read_calls:u", bytes[w], "read_bytes:u", bytes[w], "mapped_bytes:u",
			 10 * bytes[w], "storage_read_bytes:u", bytes[w], NULL);
		fx_pairs(fx, w, CREMA_MSG_FILE, "path:s", "/data", "span:s", "span", "kind:s",
			 "data", "read_calls:u", bytes[w], "read_bytes:u", bytes[w],
			 "mapped_bytes:u", 10 * bytes[w], "storage_read_bytes:u", bytes[w], NULL);
		fx_pairs(fx, w, CREMA_MSG_FILE, "span:s", "span", "kind:s", "other", "read_calls:u",
			 bytes[w], "read_bytes:u", bytes[w], "mapped_bytes:u", 10 * bytes[w],
			 "storage_read_bytes:u", bytes[w], NULL);
		if (w == hidden)
			uses_io_uring(fx, w);
	}
}

static void assert_sum(const struct file_sum *s, bool known)
{
	struct value counted[] = {s->read_calls, s->read_bytes, s->storage_read_bytes};

	for (size_t i = 0; i < 3; i++) {
		if (known)
			assert_uint_value(counted[i], 340);
		else
			assert_int_equal(counted[i].type, VALUE_NULL);
	}
	assert_uint_value(s->mapped_bytes, 3400);
}

/* Whichever of the workers it is, and if there is none. */
static void test_one_unknown_row_makes_the_sum_unknown(void **state)
{
	struct found found;

	(void)state;
	for (int hidden = 0; hidden <= 3; hidden++) {
		struct fixture *fx = fx_new();

		three_workers(fx, hidden);
		collect(fx, &found);
		assert_int_equal(found.report.files.n, 1);
		assert_sum(&found.report.files.v[0], !hidden);
		assert_sum(&found.report.imports, !hidden);
		assert_sum(&found.report.rest, !hidden);
		found_free(&found);
		fx_free(fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_unknown_row_makes_the_sum_unknown),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
