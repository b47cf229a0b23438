/* SPDX-License-Identifier: BSD-3-Clause */
/* findings_cases_threads.h - cases of threads, workers and datasets. */
#ifndef FINDINGS_CASES_THREADS_H
#define FINDINGS_CASES_THREADS_H

/* A worker with `threads` threads (0: unknown) that is present from 0 s until at least `last`
 * ms. */
static void worker(struct fixture *fx, int number, int threads, int last)
{
	char stack[40] = "{}";

	if (threads)
		snprintf(stack, sizeof(stack), "{\"nthreads\": %d}", threads);
	fx_hello(fx, number, stack);
	fx_map(fx, number, CREMA_MSG_SAMPLE, "boot_ns", AT(last), NULL);
}

/* One task of `wall` ms with `cpu` ms of CPU. */
static void task_of(struct fixture *fx, int number, uint64_t attempt, const char *key, int start,
		    int wall, int cpu)
{
	struct task_record r = work(attempt, key, start, start + wall);

	SET_OWN(&r, cpu, cpu);
	fx_task(fx, number, &r);
}

/* Two threads and one task: 2 s of 4 s are idle. */
static bool case_idle_threads(struct fixture *fx, int side)
{
	int wall = side == BELOW_SECOND ? 1999 : 2000;

	worker(fx, 1, side == UNKNOWN ? 0 : 2, 3000);
	task_of(fx, 1, 1, "a", 0, wall, wall);
	if (side == BELOW)
		task_of(fx, 1, 2, "b", 0, 1, 1);
	return true;
}

/* "less than 50 %": 1,999 ms of 4 s is; 2 s is not. */
static bool case_low_cpu_efficiency(struct fixture *fx, int side)
{
	int wall = side == BELOW_SECOND ? 3900 : 4000;

	worker(fx, 1, side == UNKNOWN ? 0 : 1, 5000);
	task_of(fx, 1, 1, "a", 0, wall, side == BELOW ? 2000 : side == BELOW_SECOND ? 1901 : 1999);
	return true;
}

/* 20 chunks of a file, `wall` ms each, of which process() takes `process`. */
static uint64_t packed_bytes; /* of each chunk's output */

static void slow_to_open(struct fixture *fx, int wall, int process, bool known)
{
	struct task_record r;
	char key[16];
	int i;

	worker(fx, 1, 1, 20 * wall);
	for (i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		r = chunk((uint64_t)i + 1, key, i * wall, (i + 1) * wall, "/a", i * 1000,
			  i * 1000 + 1000);
		SET_COUNT(&r, compress_in_bytes, packed_bytes);
		if (known)
			TASK_SET(&r, coffea_processtime, process / 1e3);
		fx_task(fx, 1, &r);
	}
}

/* 56 ms of 100 outside of process(): chunks of 10,000 events would take 2 x 56 + 880 ms, not 2 s.
 */
static bool case_chunk_overhead(struct fixture *fx, int side)
{
	if (side == BELOW)
		slow_to_open(fx, 500, 390, true);
	else
		slow_to_open(fx, 100, side == BELOW_SECOND ? 45 : 44, side != UNKNOWN);
	return true;
}

/* One chunk for two threads. */
static bool case_few_chunks(struct fixture *fx, int side)
{
	struct task_record r = chunk(1, "a", 0, side == BELOW_SECOND ? 999 : 1000, "/a", 0, 1000);

	worker(fx, 1, side == UNKNOWN ? 0 : side == BELOW ? 1 : 2, 2000);
	fx_task(fx, 1, &r);
	return true;
}

/* The second of two workers arrives after `late` ms of 10 s; the average is a trapezoid. */
static bool case_late_workers(struct fixture *fx, int side)
{
	int wall = side == BELOW_SECOND ? 1999 : 10000;
	int late = side == BELOW ? 5999 : side == BELOW_SECOND ? 1500 : 6000;

	if (side == UNKNOWN)
		return false;
	worker(fx, 1, 1, wall);
	fx_map(fx, 2, CREMA_MSG_CLOCKS, "boot_ns", AT(late), "real_ns", UTC_NS(late), NULL);
	fx_map(fx, 2, CREMA_MSG_SAMPLE, "boot_ns", AT(wall), NULL);
	task_of(fx, 1, 1, "a", 0, wall, wall);
	return true;
}

/* Four threads; three are busy until 8 s, then one for 2 s. */
static bool case_tail(struct fixture *fx, int side)
{
	int end = side == BELOW ? 9999 : side == BELOW_SECOND ? 9980 : 10000;
	int most = side == BELOW ? 8000 : side == BELOW_SECOND ? 7981 : 8000;

	worker(fx, 1, side == UNKNOWN ? 0 : 4, 11000);
	task_of(fx, 1, 1, "a", 0, end, end);
	task_of(fx, 1, 2, "b", 0, most, 1);
	task_of(fx, 1, 3, "c", 0, most, 1);
	return true;
}

/* 3 s and 1 s: the busiest has 150 % of the mean, which is 1 s more. */
static bool case_worker_imbalance(struct fixture *fx, int side)
{
	int most = side == BELOW_SECOND ? 2997 : 3000;
	int least = side == BELOW ? 1001 : side == BELOW_SECOND ? 999 : 1000;

	if (side == UNKNOWN) {
		struct task_record r = work(1, "a", 0, 3000);

		worker(fx, 1, 1, 3000);
		worker(fx, 2, 1, 3000);
		r.known &= ~(UINT64_C(1) << TASK_F_wall_ns);
		fx_task(fx, 1, &r);
		return true;
	}
	worker(fx, 1, 1, 3000);
	worker(fx, 2, 1, 3000);
	task_of(fx, 1, 1, "a", 0, most, 1);
	task_of(fx, 2, 1, "b", 0, least - 500, 1);
	task_of(fx, 2, 2, "c", most - 500, 500, 1); /* avoids a tail */
	return true;
}

/* A quarter of the events took half of the time: 2 s of 4 s, when 1 s would be its share. */
static bool case_dataset_imbalance(struct fixture *fx, int side)
{
	int slow = side == BELOW ? 1999 : side == BELOW_SECOND ? 1998 : 2000;
	int fast = side == BELOW ? 2001 : side == BELOW_SECOND ? 1998 : 2000;
	struct task_record r = chunk(1, "a", 0, slow, "/a", 0, 1000);

	fx_hello(fx, 1, "{}");
	TASK_SET(&r, dataset, T("slow <img src=x onerror=alert(1)>"));
	if (side == UNKNOWN) {
		r.known &= ~(UINT64_C(1) << TASK_F_wall_ns);
	}
	fx_task(fx, 1, &r);
	r = chunk(2, "b", 3000, 3000 + fast, "/b", 0, 3000);
	TASK_SET(&r, dataset, T("fast"));
	fx_task(fx, 1, &r);
	return true;
}

#endif
