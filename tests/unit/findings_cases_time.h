/* SPDX-License-Identifier: BSD-3-Clause */
/* findings_cases_time.h - cases of time classes, codecs and memory. */
#ifndef FINDINGS_CASES_TIME_H
#define FINDINGS_CASES_TIME_H

/* One task of `wall` ms with `ms` in a class. */
static void one_class(struct fixture *fx, enum crema_time_id id, int wall, int ms, bool known)
{
	struct task_record r = work(1, "a", 0, wall);

	fx_hello(fx, 1, "{\"nthreads\": 4}");
	r.own[id] = (uint64_t)ms * 1000000;
	if (!known)
		r.own_known &= ~(1u << id);
	fx_task(fx, 1, &r);
}

/* Share and amount of a class: just reached, just missed, and a large share of a small amount. */
static bool class_case(struct fixture *fx, int side, enum crema_time_id id, int percent,
		       int least_ms)
{
	int wall = least_ms * 100 / percent;

	one_class(fx, id,
		  side == BELOW		 ? wall + 1
		  : side == BELOW_SECOND ? wall - 100
					 : wall,
		  side == BELOW_SECOND ? least_ms - 1 : least_ms, side != UNKNOWN);
	return true;
}

#define CLASS_CASE(finding, class, percent, least_ms)                                              \
	static bool case_##finding(struct fixture *fx, int side)                                   \
	{                                                                                          \
		return class_case(fx, side, CREMA_T_##class, percent, least_ms);                   \
	}

CLASS_CASE(gil_wait, gil_wait, 10, 1000)
CLASS_CASE(lock_wait, lock_wait, 15, 1000)
CLASS_CASE(storage_wait, storage_wait, 20, 1000)
CLASS_CASE(network_wait, network_wait, 20, 1000)
CLASS_CASE(run_queue, runqueue, 15, 1000)
CLASS_CASE(sleeping, sleep, 10, 1000)

/* On one thread: others would be idle. */
static bool case_cpu_bound(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0,
				    side == BELOW	   ? 1251
				    : side == BELOW_SECOND ? 1150
							   : 1250);

	fx_hello(fx, 1, "{\"nthreads\": 1}");
	SET_OWN(&r, cpu, side == BELOW_SECOND ? 999 : 1000);
	if (side == UNKNOWN)
		r.own_known &= ~(1u << CREMA_T_cpu);
	fx_task(fx, 1, &r);
	return true;
}

/* 1 s of 4 s; the rest is CPU. */
static bool case_unclassified(struct fixture *fx, int side)
{
	int wall = side == BELOW ? 4001 : side == BELOW_SECOND ? 3900 : 4000;
	int rest = side == BELOW_SECOND ? 999 : 1000;
	struct task_record r = work(1, "a", 0, wall);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, wall - rest);
	if (side == UNKNOWN)
		r.known &= ~(UINT64_C(1) << TASK_F_wall_ns);
	fx_task(fx, 1, &r);
	if (side == UNKNOWN) { /* the other task provides time to check */
		r = work(2, "b", 0, 1000);
		fx_task(fx, 1, &r);
	}
	return true;
}

/* A long wait of a task at one call site; the worker's totals show that waits are recorded. */
static void long_wait_on(struct fixture *fx, const char *wait, uint64_t ns, bool recorded,
			 const char *on, const char *peer)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	pack_init(&pk, &b);
	pack_array(&pk, 2);
	pack_array(&pk, 2);
	pack_u64(&pk, CREMA_MSG_STACK);
	pack_map(&pk, 8);
	pack_kv_u64(&pk, "number", 0);
	pack_kv_text(&pk, "wait", wait);
	pack_kv_u64(&pk, "waited_ns", ns);
	pack_kv_text(&pk, "span", "span");
	pack_kv_text(&pk, "prefix", "task");
	pack_kv_text(&pk, "on", on);
	pack_kv_text(&pk, "peer", peer);
	pack_text(&pk, "frames");
	pack_array(&pk, 2);
	pack_u64(&pk, 0);
	pack_u64(&pk, 4096);
	pack_array(&pk, 2);
	pack_u64(&pk, CREMA_MSG_TOTALS);
	pack_map(&pk, recorded ? 2 : 1);
	pack_kv_u64(&pk, "boot_ns", AT(5000));
	if (recorded) {
		pack_text(&pk, "blocked");
		pack_map(&pk, 2);
		pack_kv_u64(&pk, "threshold_ns", 20000000);
		pack_kv_u64(&pk, "recorded", 1);
	}
	fx_frame(fx, CREMA_FRAME_DATA, 1, 2, &b);
	buf_release(&b);
}

static void long_wait(struct fixture *fx, const char *wait, uint64_t ns, bool recorded)
{
	long_wait_on(fx, wait, ns, recorded, NULL, "<b>\"server\"</b>:80");
}

static bool case_blocked_site(struct fixture *fx, int side)
{
	one_class(fx, CREMA_T_cpu,
		  side == BELOW		 ? 10001
		  : side == BELOW_SECOND ? 9000
					 : 10000,
		  0, true);
	long_wait(fx, "network_wait_ns", UINT64_C(1000000) * (side == BELOW_SECOND ? 999 : 1000),
		  side != UNKNOWN);
	return true;
}

static void codec(struct fixture *fx, const char *function, const char *name, uint64_t in,
		  uint64_t out, uint64_t cpu_ms)
{
	fx_pairs(fx, 1, CREMA_MSG_CODEC, "function:s", function, "codec:s", name, "direction:s",
		 "decompress", "span:s", "span", "calls:u", UINT64_C(1), "in_bytes:u", in,
		 "out_bytes:u", out, "cpu_ns:u", cpu_ms * 1000000, "wall_ns:u", cpu_ms * 1000000,
		 NULL);
}

/* 1 s of 4 s of CPU is 25 %. */
static bool case_decompression(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 5000);

	fx_hello(fx, 1, "{}");
	r.own[CREMA_T_cpu] = UINT64_C(1000000) * (side == BELOW_SECOND ? 3000
						  : side == BELOW      ? 4001
								       : 4000);
	if (side == UNKNOWN)
		r.own_known &= ~(1u << CREMA_T_cpu);
	fx_task(fx, 1, &r);
	codec(fx, "_lzma.LZMADecompressor.decompress", "lzma", 50000000, 200000000,
	      side == BELOW_SECOND ? 999 : 1000);
	return true;
}

/* 0.4 s of 4 s would be a tenth, but 1 s is required: 1 of 10. */
static bool case_compression(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 20000);

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, side == BELOW ? 10001 : side == BELOW_SECOND ? 9000 : 10000);
	if (side == UNKNOWN)
		r.own_known &= ~(1u << CREMA_T_cpu);
	fx_task(fx, 1, &r);
	fx_pairs(fx, 1, CREMA_MSG_CODEC, "function:s", "zlib.compress", "codec:s", "zlib",
		 "direction:s", "compress", "span:s", "span", "calls:u", UINT64_C(1), "in_bytes:u",
		 UINT64_C(1000), "out_bytes:u", UINT64_C(500), "cpu_ns:u",
		 UINT64_C(1000000) * (side == BELOW_SECOND ? 999 : 1000), "wall_ns:u", UINT64_C(1),
		 NULL);
	return true;
}

/* "less than 120 %": exactly 120 % is not. */
static bool case_low_compression(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	if (side == UNKNOWN) {
		fx_hello(fx, 1, "{}");
		fx_task(fx, 1, &r);
		fx_pairs(fx, 1, CREMA_MSG_CODEC, "function:s", "zlib.decompress", "codec:s", "zlib",
			 "direction:s", "decompress", "span:s", "span", "in_bytes:u",
			 UINT64_C(10000000), NULL);
		return true;
	}
	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	codec(fx, "zlib.decompress", "zlib", side == BELOW_SECOND ? 9999999 : 10000000,
	      side == BELOW ? 12000000 : 11999988, 1);
	return true;
}

static void limited(struct fixture *fx, int worker, uint64_t rss)
{
	fx_dask(fx, worker, 500, "{\"nthreads\": 1, \"memory_limit_bytes\": 1000000000}");
	if (rss)
		fx_map(fx, worker, CREMA_MSG_SAMPLE, "boot_ns", AT(500), "rss_bytes", rss, NULL);
}

/* "above 80 %": exactly 80 % is not. */
static bool case_memory_limit(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);

	if (side == BELOW_SECOND)
		return false;
	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	limited(fx, 1, side == AT ? 800000001 : side == BELOW ? 800000000 : 0);
	return true;
}

/* Ten tasks in fifths of two: 500 MB, 550 MB, ..., 600 MB. */
static bool case_memory_growth(struct fixture *fx, int side)
{
	/* of the second, third and last fifth */
	static const uint64_t rss[][3] = {[AT] = {500, 550, 600},
					  [BELOW] = {501, 550, 601},
					  [BELOW_SECOND] = {400, 450, 499},
					  [UNKNOWN] = {0, 0, 0}};
	struct task_record r;
	char key[16];
	int i, part;

	fx_hello(fx, 1, "{\"memory_limit_bytes\": 1000000000}");
	for (i = 0; i < 10; i++) {
		part = i < 4 ? 0 : i < 6 ? 1 : 2;
		snprintf(key, sizeof(key), "k%d", i);
		r = work((uint64_t)i + 1, key, i * 100, i * 100 + 100);
		if (side != UNKNOWN)
			TASK_SET(&r, rss_stop_bytes, rss[side][part] * 1000000);
		fx_task(fx, 1, &r);
	}
	fx_dask(fx, 1, 500, "{\"nthreads\": 1, \"memory_limit_bytes\": 1000000000}");
	return true;
}

/* As case_memory_growth(), but most of the remaining memory is free in malloc's heaps. */
__attribute__((unused)) static void held_growth(struct fixture *fx)
{
	case_memory_growth(fx, AT);
	for (int i = 0; i < 4; i++)
		fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(250 * i + 100), "rss_anon_bytes",
		       (uint64_t)590000000, "rss_file_bytes", (uint64_t)10000000, "rss_shmem_bytes",
		       (uint64_t)0, "heap_free_bytes", (uint64_t)70000000, "heap_returnable_bytes",
		       (uint64_t)(i < 2 ? 0 : 50000000), NULL);
}

/* The same, and one line keeps almost all of it: in two stacks, in another worker, too, which is
 * not this worker's, and in a row of a maximum that is not the last one. */
__attribute__((unused)) static void kept_growth(struct fixture *fx)
{
	static const struct fx_place leak[] = {{"append", "lib.py", 3, false},
					       {"process", "/home/u/analysis.py", 17, true}},
				     other[] = {{"fill", "/home/u/analysis.py", 30, true}};

	case_memory_growth(fx, AT);
	fx_hello(fx, 2, "{}");
	fx_large(fx, 1, 1, 90000000, 2, leak);
	fx_large(fx, 1, 2, 60000000, 1, leak + 1);
	fx_large(fx, 1, 3, 149000000, 1, other);
	fx_large(fx, 2, 4, 500000000, 1, other);
}

/* Three samples, the first of which was lower, and one after the end: 20 % of 500 MB. */
static bool case_allocator_holds(struct fixture *fx, int side)
{
	static const uint64_t kept[] = {
		[AT] = 100000000, [BELOW] = 99999999, [BELOW_SECOND] = 99000000, [UNKNOWN] = 0};
	uint64_t file = side == BELOW_SECOND ? 90000000 : 100000000;
	struct task_record r = work(1, "a", 0, 1000);

	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	for (int i = 0; i < 4; i++) {
		if (side == UNKNOWN)
			fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(300 * i + 200), NULL);
		else
			fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(300 * i + 200),
			       "rss_anon_bytes", (uint64_t)390000000, "rss_file_bytes", file,
			       "rss_shmem_bytes", (uint64_t)10000000, "heap_bytes",
			       (uint64_t)300000000, "heap_free_bytes", (uint64_t)200000000,
			       "heap_returnable_bytes", i % 3 ? kept[side] + (i == 1) : 0, NULL);
	}
	return true;
}

static bool case_spill(struct fixture *fx, int side)
{
	struct task_record r = work(1, "a", 0, 1000);
	char json[300];

	if (side == BELOW_SECOND)
		return false;
	fx_hello(fx, 1, "{}");
	fx_task(fx, 1, &r);
	snprintf(json, sizeof(json),
		 "{\"nthreads\": 1, \"digests\": [[\"execute\", \"span\", \"task\", "
		 "\"disk-write\", \"bytes\", %d]]}",
		 side == AT ? 1000000 : 999999);
	if (side != UNKNOWN)
		fx_dask(fx, 1, 500, json);
	return true;
}

#endif
