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

#define BYTES UINT64_C(100000000)

/* A file that both workers read and used once: the whole of its first BYTES. */
struct copy {
	const char *path, *kind, *filesystem;
	uint64_t size[2];
	bool one_host;
};

static void pack_whole(msgpack_packer *pk, const char *name)
{
	pack_text(pk, name);
	pack_array(pk, 2);
	pack_u64(pk, 0);
	pack_u64(pk, BYTES);
}

static void read_once(struct fixture *fx, int worker, const struct copy *c)
{
	static const char *const numbers[] = {
		"read_calls",	    "read_bytes",	   "extent_bytes",
		"unique_bytes",	    "basket_calls",	   "basket_bytes",
		"basket_raw_bytes", "basket_extent_bytes", "unique_basket_bytes"};
	struct task_record r = chunk(1, worker == 1 ? "a" : "b", 0, 1000, c->path, 0, 10);
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	hello_on(fx, worker, worker == 1 || c->one_host ? "node1" : "node2", 1, 4);
	SET_COUNT(&r, decompress_cpu_ns, 800000000);
	SET_OWN(&r, cpu, 900);
	TASK_SET(&r, coffea_bytesread, (uint64_t)worker);
	fx_task(fx, worker, &r);
	fx_begin(&pk, &b, CREMA_MSG_FILE, 16);
	pack_kv_text(&pk, "path", c->path);
	pack_kv_text(&pk, "span", "span");
	pack_kv_text(&pk, "kind", c->kind);
	pack_kv_text(&pk, "filesystem", c->filesystem);
	pack_kv_u64(&pk, "size_bytes", c->size[worker - 1]);
	for (size_t i = 0; i < 9; i++)
		pack_kv_u64(&pk, numbers[i], BYTES);
	pack_whole(&pk, "ranges");
	pack_whole(&pk, "basket_ranges");
	fx_end(fx, worker, &b);
}

/* The average over the files of the share of each that was used, in percent. */
static double share_used(const struct found *found)
{
	return value_number(metric_avg_bytes_read_percent(found->report.facts), NULL);
}

static void two_readers(struct fixture *fx, const struct copy *c, struct found *found)
{
	read_once(fx, 1, c);
	read_once(fx, 2, c);
	collect(fx, found);
}

static void assert_layers(const struct file_sum *f, uint64_t read, uint64_t again)
{
	struct layer_values v;

	layers_values(f, &v);
	assert_uint_value(f->read_bytes, read);
	assert_uint_value(v.unique_bytes, read - again);
	assert_real(value_number(v.reread_bytes, NULL), (double)again);
	assert_uint_value(v.unique_basket_bytes, read - again);
}

/* Each has its own file of that path: neither read anything again. */
static void test_hosts_have_their_own_files(void **state)
{
	static const char *const filesystems[] = {"tmpfs", "ext4", "overlay",
						  "fuse.fuse-overlayfs"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct copy c = {"/tmp/x", "data", filesystems[i], {2 * BYTES, 4 * BYTES}, 0};
		struct fixture *fx = fx_new();
		const struct file_sum *f;
		struct found found;
		int first;

		two_readers(fx, &c, &found);
		assert_int_equal(found.report.files.n, 2);
		first = strcmp(found.report.files.v[0].path, "/tmp/x (node1)") != 0;
		for (int k = 0; k < 2; k++) {
			f = &found.report.files.v[k ^ first];
			assert_string_equal(f->path, k ? "/tmp/x (node2)" : "/tmp/x (node1)");
			assert_layers(f, BYTES, 0);
			assert_uint_value(f->size_bytes, c.size[k]);
			/* of its host's chunk */
			assert_int_equal(f->chunks, 1);
			assert_uint_value(f->requested, (uint64_t)k + 1);
		}
		assert_null(finding_of(&found, "baskets_reread"));
		assert_real(share_used(&found), (50 + 25) / 2.0);
		found_free(&found);
		fx_free(fx);
	}
}

/* One file: the second reader read it again. */
static void test_hosts_share_a_file(void **state)
{
	static const struct copy shared[] = {
		{"/eos/x", "data", "nfs", {2 * BYTES, 2 * BYTES}, false},
		{"/eos/x", "data", "lustre", {2 * BYTES, 2 * BYTES}, false},
		{"/eos/x", "data", "fuse.eosxd", {2 * BYTES, 2 * BYTES}, false},
		{"root://s//x", "remote", "unknown", {2 * BYTES, 2 * BYTES}, false},
		{"/tmp/x", "data", "tmpfs", {2 * BYTES, 2 * BYTES}, true},
		{"/mnt/x", "data", "type 0x123", {2 * BYTES, 2 * BYTES}, true},
	};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct fixture *fx = fx_new();
		struct found found;

		two_readers(fx, &shared[i], &found);
		assert_int_equal(found.report.files.n, 1);
		assert_string_equal(found.report.files.v[0].path, shared[i].path);
		assert_layers(&found.report.files.v[0], 2 * BYTES, BYTES);
		assert_int_equal(found.report.files.v[0].chunks, 2);
		assert_non_null(finding_of(&found, "baskets_reread"));
		assert_real(share_used(&found), 50);
		found_free(&found);
		fx_free(fx);
	}
}

/* Hosts may share that file system or not; or a path had two files, one after the other. */
static void test_what_may_be_two_files_has_no_distinct_bytes(void **state)
{
	static const struct copy unsure[] = {
		{"/mnt/x", "data", "type 0x123", {2 * BYTES, 2 * BYTES}, false},
		{"/mnt/x", "data", "9p", {2 * BYTES, 2 * BYTES}, false},
		{"/nfs/x", "data", "nfs", {2 * BYTES, 3 * BYTES}, false},
		{"/tmp/x", "data", "ext4", {2 * BYTES, 3 * BYTES}, true},
	};
	struct layer_values v;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct fixture *fx = fx_new();
		struct found found;

		two_readers(fx, &unsure[i], &found);
		assert_int_equal(found.report.files.n, 1);
		assert_string_equal(found.report.files.v[0].path, unsure[i].path);
		assert_uint_value(found.report.files.v[0].read_bytes, 2 * BYTES);
		layers_values(&found.report.files.v[0], &v);
		assert_int_equal(v.unique_bytes.type, VALUE_NULL);
		assert_int_equal(v.reread_bytes.type, VALUE_NULL);
		assert_int_equal(v.unique_basket_bytes.type, VALUE_NULL);
		assert_int_equal(v.read_basket_bytes.type, VALUE_NULL);
		assert_real(value_number(v.worker_reread_bytes, NULL), 0);
		assert_null(finding_of(&found, "baskets_reread"));
		assert_int_equal(metric_avg_bytes_read_percent(found.report.facts).type,
				 VALUE_NULL);
		found_free(&found);
		fx_free(fx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_unknown_row_makes_the_sum_unknown),
		cmocka_unit_test(test_hosts_have_their_own_files),
		cmocka_unit_test(test_hosts_share_a_file),
		cmocka_unit_test(test_what_may_be_two_files_has_no_distinct_bytes),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
