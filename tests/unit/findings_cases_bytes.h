/* SPDX-License-Identifier: BSD-3-Clause */
/* findings_cases_bytes.h - cases of chunks, files and servers. */
#ifndef FINDINGS_CASES_BYTES_H
#define FINDINGS_CASES_BYTES_H

/*
 * 20 chunks of 1,000 events from one file; each reads `read` bytes and uses `used`. One chunk for
 * the file would save 19 times what a chunk reads outside of its baskets; 80 % of that are saved
 * once there are 4 chunks, which is a chunksize of 5,000: 16 times.
 */
static void chunks_of(struct fixture *fx, uint64_t read, uint64_t used, bool known)
{
	struct task_record r;
	char key[16];
	int i;

	fx_hello(fx, 1, "{}");
	for (i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = chunk((uint64_t)i + 1, key, i * 100, i * 100 + 100, "/data/a.root", i * 1000,
			  i * 1000 + 1000);
		SET_COUNT(&r, read_bytes, read);
		SET_COUNT(&r, basket_bytes, used);
		if (!known)
			r.count_known &= ~CREMA_COUNT_BIT(basket_bytes);
		fx_task(fx, 1, &r);
	}
}

static bool case_metadata_reread(struct fixture *fx, int side)
{
	/* 16 x 62,500 = 1 MB of 5 MB */
	if (side == BELOW)
		chunks_of(fx, 250010, 187510, true); /* 1 MB of 5,000,200 */
	else if (side == BELOW_SECOND)
		chunks_of(fx, 100000, 37501, true); /* 999,984 of 2 MB */
	else
		chunks_of(fx, 250000, 187500, side != UNKNOWN);
	return true;
}

/* One file that a task read and used; the ends of the ranges of distinct bytes read, and of
 * baskets. */
struct file_of {
	uint64_t read, read_to, baskets, baskets_to;
	bool ranges;
};

static void pack_range(msgpack_packer *pk, const char *name, uint64_t to)
{
	pack_text(pk, name);
	pack_array(pk, 2);
	pack_u64(pk, 0);
	pack_u64(pk, to);
}

static void file(struct fixture *fx, const char *path, const struct file_of *f)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &b);
	pack_array(&pk, 1);
	pack_array(&pk, 2);
	pack_u64(&pk, CREMA_MSG_FILE);
	pack_map(&pk, f->ranges ? 13 : 11);
	pack_kv_text(&pk, "path", path);
	pack_kv_text(&pk, "span", "span");
	pack_kv_text(&pk, "kind", "data");
	pack_kv_u64(&pk, "read_calls", 1);
	pack_kv_u64(&pk, "read_bytes", f->read);
	pack_kv_u64(&pk, "mapped_bytes", 0);
	pack_kv_u64(&pk, "basket_calls", 1);
	pack_kv_u64(&pk, "basket_bytes", f->baskets);
	pack_kv_u64(&pk, "extent_bytes", f->ranges ? f->read : 0);
	pack_kv_u64(&pk, "unique_bytes", f->read_to);
	pack_kv_u64(&pk, "basket_extent_bytes", f->ranges ? f->baskets : 0);
	if (f->ranges) {
		pack_range(&pk, "ranges", f->read_to);
		pack_range(&pk, "basket_ranges", f->baskets_to);
	}
	fx_frame(fx, CREMA_FRAME_DATA, 1, 1, &b);
	buf_release(&b);
	fx_pairs(fx, 1, CREMA_MSG_FILE, "path:s", path, "span:s", "span", "kind:s", "data",
		 "unique_basket_bytes:u", f->baskets_to, NULL);
}

static void one_file(struct fixture *fx, const struct file_of *f)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	file(fx, "/data/\"<i>\"\n.root", f);
}

static bool case_reread_in_task(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, basket_bytes,
		  side == BELOW		 ? 3400000
		  : side == BELOW_SECOND ? 3000000
					 : 3333333);
	SET_COUNT(&r, repeated_basket_bytes, side == BELOW_SECOND ? 999999 : 1000000);
	if (side == UNKNOWN)
		r.count_known &= ~CREMA_COUNT_BIT(repeated_basket_bytes);
	fx_task(fx, 1, &r);
	return true;
}

static bool case_not_by_coffea(struct fixture *fx, int side)
{
	struct task_record r = chunk(1, "a", 0, 1000, "/data/a.root", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, read_bytes,
		  side == BELOW		 ? 29000000
		  : side == BELOW_SECOND ? 14900000
					 : 15000000);
	if (side != UNKNOWN)
		TASK_SET(&r, coffea_bytesread,
			 side == BELOW		? 10000000
			 : side == BELOW_SECOND ? 4950000
						: 5000000);
	fx_task(fx, 1, &r);
	return true;
}

/* 10 MB of 20 MB outside of baskets. */
static bool case_chunk_baggage(struct fixture *fx, int side)
{
	struct task_record r = chunk(1, "a", 0, 1000, "/data/a.root", 0, 1000);
	uint64_t raw = side == BELOW ? 10000001 : side == BELOW_SECOND ? 9999998 : 10000000;

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, basket_raw_bytes, raw);
	SET_COUNT(&r, decompress_out_bytes, raw + (side == BELOW_SECOND ? 9999999 : 10000000));
	if (side == UNKNOWN)
		r.count_known &= ~CREMA_COUNT_BIT(decompress_out_bytes);
	fx_task(fx, 1, &r);
	return true;
}

/* 5,000 lines of 1 kB. */
static bool case_small_writes(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);
	uint64_t calls = side == BELOW ? 4999 : 5000;

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, write_calls, calls);
	SET_COUNT(&r, write_bytes, calls * 1024 + (side == BELOW_SECOND));
	if (side == UNKNOWN)
		r.count_known &= ~CREMA_COUNT_BIT(write_calls);
	fx_task(fx, 1, &r);
	return true;
}

/* 50 columns and 75 % of a file of 1 MB. */
static bool case_wide_read(struct fixture *fx, int side)
{
	struct task_record r = chunk(1, "a", 0, 1000, "/data/a.root", 0, 1000);
	const struct file_of f = {1000000, 1000000, side == BELOW_SECOND ? 740000 : 750000,
				  side == BELOW_SECOND ? 740000 : 750000, true};
	char columns[1000] = "c";
	int i;

	fx_hello(fx, 1, "{}");
	for (i = 1; i < (side == BELOW ? 49 : 50); i++)
		strcat(columns, "\nc");
	if (side != UNKNOWN)
		TASK_SET(&r, columns, T(columns));
	fx_task(fx, 1, &r);
	file(fx, "/data/a.root", &f);
	fx_pairs(fx, 1, CREMA_MSG_FILE, "path:s", "/data/a.root", "span:s", "span", "kind:s",
		 "data", "size_bytes:u", UINT64_C(1000000), NULL);
	return true;
}

static bool case_baskets_reread(struct fixture *fx, int side)
{
	const struct file_of sides[] = {[AT] = {6000000, 6000000, 5000000, 4000000, true},
					[BELOW] = {6000000, 6000000, 5000005, 4000005, true},
					[BELOW_SECOND] = {6000000, 6000000, 4999995, 3999996, true},
					[UNKNOWN] = {6000000, 6000000, 5000000, 4000000, false}};

	one_file(fx, &sides[side]);
	return true;
}

static bool case_read_amplification(struct fixture *fx, int side)
{
	const struct file_of sides[] = {
		[AT] = {20000000, 20000000, 10000000, 10000000, true},
		[BELOW] = {20000001, 20000001, 10000001, 10000001, true},
		[BELOW_SECOND] = {19999997, 19999997, 9999998, 9999998, true},
		[UNKNOWN] = {20000000, 20000000, 10000000, 10000000, false}};

	one_file(fx, &sides[side]);
	return true;
}

static bool case_small_reads(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);
	uint64_t calls = side == BELOW ? 4999 : 5000;

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, read_calls, calls);
	SET_COUNT(&r, read_bytes, calls * 16384 + (side == BELOW_SECOND));
	if (side == UNKNOWN)
		r.count_known &= ~CREMA_COUNT_BIT(read_calls);
	fx_task(fx, 1, &r);
	return true;
}

static void from_storage(struct fixture *fx, uint64_t storage, uint64_t read, bool known)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, read_bytes, read);
	SET_COUNT(&r, storage_read_bytes, storage);
	if (!known)
		r.count_known &= ~CREMA_COUNT_BIT(storage_read_bytes);
	fx_task(fx, 1, &r);
}

static bool case_cold_cache(struct fixture *fx, int side)
{
	from_storage(fx, side == BELOW_SECOND ? 9999999 : 10000000,
		     side == BELOW ? 20000001 : 19000000 + (side == AT) * 1000000, side != UNKNOWN);
	return true;
}

/* "less than 10 %": exactly 10 % is not. */
static bool case_warm_cache(struct fixture *fx, int side)
{
	uint64_t read = side == BELOW_SECOND ? 9999999 : 10000000;

	from_storage(fx,
		     side == BELOW	    ? 1000000
		     : side == BELOW_SECOND ? 0
					    : 999999,
		     read, side != UNKNOWN);
	return true;
}

static void server_row_of(struct fixture *fx, const char *scheme, const char *name,
			  uint64_t requests, uint64_t failed, uint64_t sum_ns)
{
	fx_pairs(fx, 1, CREMA_MSG_SERVER, "server:s", name, "scheme:s", scheme, "span:s", "span",
		 "requests:u", requests, "failed:u", failed, "read_bytes:u", UINT64_C(1000),
		 "latency_sum_ns:u", sum_ns, "latency_max_ns:u", sum_ns, NULL);
}

static void server_row(struct fixture *fx, const char *name, uint64_t requests, uint64_t failed,
		       uint64_t sum_ns)
{
	server_row_of(fx, "http", name, requests, failed, sum_ns);
}

/* 20 requests of 3 ms each, and 20 of 1 ms elsewhere. */
static bool case_slow_server(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	if (side == UNKNOWN)
		fx_pairs(fx, 1, CREMA_MSG_SERVER, "server:s", "slow", "scheme:s", "http", "span:s",
			 "span", NULL);
	else
		server_row(fx, "slow", side == BELOW_SECOND ? 19 : 20, 0,
			   side == BELOW ? 59999999 : 60000000);
	server_row(fx, "fast", 20, 0, 20000000);
	return true;
}

/* 1 s of 10 s. */
static bool case_name_lookup(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, side == BELOW ? 10001 : 10000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, network_wait, 1000);
	SET_COUNT(&r, lookup_calls, 4);
	SET_COUNT(&r, lookup_ns, side == BELOW_SECOND ? 999999999 : 1000000000);
	if (side == UNKNOWN)
		r.count_known &= ~CREMA_COUNT_BIT(lookup_ns);
	fx_task(fx, 1, &r);
	return true;
}

static bool case_failed_requests(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	if (side == BELOW_SECOND)
		return false;
	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	if (side == UNKNOWN)
		fx_pairs(fx, 1, CREMA_MSG_SERVER, "server:s", "s", "scheme:s", "http", "span:s",
			 "span", NULL);
	else
		server_row(fx, "s", 10, side == AT, 1);
	return true;
}

static bool case_remote_amplification(struct fixture *fx, int side)
{
	uint64_t used = side == BELOW ? 1000001 : 1000000;
	uint64_t received = side == BELOW ? 2000001 : 2000000;
	struct task_record r = chunk(1, "a", 0, 1000, "root://server//a.root", 0, 1000);

	if (side == BELOW_SECOND)
		used = 999998, received = 1999997;
	fx_hello(fx, 1, "{}");
	SET_COUNT(&r, network_read_bytes, received);
	SET_COUNT(&r, basket_bytes, used);
	if (side == UNKNOWN)
		r.count_known &= ~CREMA_COUNT_BIT(network_read_bytes);
	fx_task(fx, 1, &r);
	r = chunk(2, "b", 0, 1000, "file:///disk/b.root", 0, 1000); /* not remote */
	SET_COUNT(&r, network_read_bytes, 0);
	SET_COUNT(&r, basket_bytes, 5000000);
	fx_task(fx, 1, &r);
	return true;
}

/* Totals of a worker: bytes received for tasks and otherwise, CPU of tasks and of children. */
static void totals_at(struct fixture *fx, uint64_t ms, uint64_t tasks, uint64_t rest,
		      uint64_t cpu_ms, uint64_t children_ms)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_TOTALS, 6);
	pack_kv_u64(&pk, "boot_ns", AT(ms));
	pack_kv_u64(&pk, "tasks_refused", 0);
	pack_kv_u64(&pk, "records_refused", 0);
	pack_text(&pk, "tasks");
	pack_map(&pk, 3);
	pack_kv_u64(&pk, "network_read_bytes", tasks);
	pack_kv_u64(&pk, "cpu_ns", cpu_ms * 1000000);
	pack_kv_u64(&pk, "pool_cpu_ns", 0);
	pack_text(&pk, "unattributed");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "network_read_bytes", rest);
	pack_text(&pk, "children");
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "cpu_ns", children_ms * 1000000);
	fx_end(fx, 1, &b);
}

static void totals(struct fixture *fx, uint64_t tasks, uint64_t rest, uint64_t cpu_ms,
		   uint64_t children_ms)
{
	totals_at(fx, 5000, tasks, rest, cpu_ms, children_ms);
}

static bool case_unattributed_network(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	if (side == BELOW)
		totals(fx, 40000001, 10000000, 0, 0);
	else if (side == BELOW_SECOND)
		totals(fx, 0, 9999999, 0, 0);
	else if (side == AT)
		totals(fx, 40000000, 10000000, 0, 0);
	return true;
}

#endif
