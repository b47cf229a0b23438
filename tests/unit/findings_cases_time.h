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

/* Share and amount of a class: just reached, just not, a large share of little. */
static bool class_case(struct fixture *fx, int side, enum crema_time_id id, int percent,
		       int least_ms)
{
	int wall = least_ms * 100 / percent;

	one_class(fx, id,
		  side == BELOW		 ? wall + 100
		  : side == BELOW_SECOND ? wall - 100
					 : wall,
		  side == BELOW_SECOND ? least_ms - 1 : least_ms, side != UNKNOWN);
	return true;
}

static bool case_gil_wait(struct fixture *fx, int side)
{
	return class_case(fx, side, CREMA_T_gil_wait, 10, 1000);
}

static bool case_storage_wait(struct fixture *fx, int side)
{
	return class_case(fx, side, CREMA_T_storage_wait, 20, 1000);
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
	r.own[CREMA_T_cpu] = UINT64_C(1000000) * (side == BELOW_SECOND ? 3000 : 4000);
	if (side == UNKNOWN)
		r.own_known &= ~(1u << CREMA_T_cpu);
	fx_task(fx, 1, &r);
	codec(fx, "_lzma.LZMADecompressor.decompress", "lzma", 50000000, 200000000,
	      side == AT || side == UNKNOWN ? 1000 : 999);
	return true;
}

static void limited(struct fixture *fx, int worker, uint64_t rss)
{
	fx_dask(fx, worker, 500, "{\"nthreads\": 1, \"memory_limit_bytes\": 1000000000}");
	if (rss)
		fx_map(fx, worker, CREMA_MSG_SAMPLE, "boot_ns", AT(500), "rss_bytes", rss, NULL);
}

/* "above 80 %": 80 % itself is not. */
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

#endif
