/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_threads.c - storage bytes and CPU by thread: each is charged to the thread that caused it,
 * pool threads to their task, and the sums match the kernel's numbers for the whole process.
 */
#include "clocks.h"
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/libc/sys.h"

#define MS 1000000ull
enum { SIZE = 8 << 20 };

static uint64_t read_all(const char *path)
{
	static __thread char buf[1 << 16];
	int fd = open(path, O_RDONLY);
	uint64_t sum = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		sum += (uint64_t)n;
	close(fd);
	return sum;
}

static void a_cold_file_is_its_pages_and_a_warm_one_nothing(void **state)
{
	const char *path = harness_file("whole", SIZE - 1000);
	size_t pages = harness_make_cold(path);
	struct harness_task h = harness_begin();
	struct crema_task *t;

	(void)state;
	assert_int_equal(read_all(path), SIZE - 1000);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_storage_read_bytes], pages);
	harness_free(&h);
	h = harness_begin();
	assert_int_equal(read_all(path), SIZE - 1000);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_storage_read_bytes], 0);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], SIZE - 1000);
	harness_free(&h);
	unlink(path);
}

static void page_faults_of_a_map_are_charged(void **state)
{
	const char *path = harness_file("map", SIZE);
	size_t pages = harness_make_cold(path);
	struct harness_task h = harness_begin();
	int fd = open(path, O_RDONLY);
	volatile const char *m = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
	struct crema_task *t;
	unsigned sum = 0;

	(void)state;
	for (size_t i = 0; i < SIZE; i += 4096)
		sum += (unsigned char)m[i];
	munmap((void *)(uintptr_t)m, SIZE);
	close(fd);
	t = harness_end(&h);
	assert_true(sum > 0);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], 0);
	assert_int_equal(t->own.count[CREMA_C_mapped_bytes], SIZE);
	assert_int_equal(t->own.count[CREMA_C_storage_read_bytes], pages);
	assert_true(t->flags & CREMA_TASK_FAULT_STORAGE);
	harness_free(&h);
	unlink(path);
}

struct reader {
	const char *path;
	size_t pages;
	uint64_t charged;
};

static void *reader_task(void *arg)
{
	struct reader *r = arg;
	struct harness_task h = harness_begin();

	read_all(r->path);
	r->charged = harness_end(&h)->own.count[CREMA_C_storage_read_bytes];
	harness_free(&h);
	return NULL;
}

static void two_tasks_at_once_get_their_own_bytes(void **state)
{
	struct reader r[2] = {{harness_file("a", SIZE), 0, 0}, {harness_file("b", SIZE / 2), 0, 0}};
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		r[i].pages = harness_make_cold(r[i].path);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader_task, &r[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(r[i].charged, r[i].pages);
		unlink(r[i].path);
	}
}

struct pool_work {
	uint32_t owner;
	const char *path;
	struct lost lost;
};

static void *pool_thread(void *arg)
{
	struct pool_work *w = arg;
	struct owner before = segment_begin(w->owner, 1);
	char buf[1 << 16];
	int fd = open(w->path, O_RDONLY);

	lost_begin(&w->lost);
	while (read(fd, buf, sizeof(buf)) > 0)
		lost_look(&w->lost);
	close(fd);
	for (int i = 0; i < 500; i++) {
		harness_spin(MS / 10);
		lost_look(&w->lost);
	}
	segment_end(before);
	harness_spin(10 * MS); /* not for the task */
	return NULL;
}

/* `lost` is the stolen time that the thread measured, `stolen` the kernel's for all cores. */
static void pool_classes_sum_to_wall(const struct crema_task *t, uint64_t lost, uint64_t stolen)
{
	uint64_t wall = t->own.count[CREMA_C_pool_wall_ns], sum = lost, off;

	for (int i = 0; i < CREMA_TIMES; i++)
		sum += t->pool_time[i];
	off = wall > sum ? wall - sum : sum - wall;
	print_message("pool wall %.3f ms, classes %.3f ms, lost %.3f ms, stolen %.0f ms\n",
		      (double)wall / 1e6, (double)(sum - lost) / 1e6, (double)lost / 1e6,
		      (double)stolen / 1e6);
	assert_true(wall >= 50 * MS);
	assert_true(off <= t->pool_time[CREMA_T_cpu] / 50 + stolen);
}

static void pool_threads_work_for_the_task(void **state)
{
	const char *path = harness_file("pool", SIZE);
	size_t pages = harness_make_cold(path);
	struct harness_task h = harness_begin();
	struct pool_work w = {h.owner, path, {0}};
	struct look before = look();
	struct crema_task *t;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, pool_thread, &w), 0);
	pthread_join(thread, NULL);
	t = harness_end(&h);
	assert_int_equal(t->own.count[CREMA_C_read_bytes], SIZE);
	assert_int_equal(t->own.count[CREMA_C_storage_read_bytes], pages);
	assert_true(t->pool_time[CREMA_T_cpu] >= 50 * MS);
	assert_true(t->pool_time[CREMA_T_cpu] < 60 * MS + 30 * MS);
	assert_true(t->own.time[CREMA_T_cpu] < 20 * MS);
	assert_int_equal(t->own.count[CREMA_C_pool_segments], 1);
	pool_classes_sum_to_wall(t, w.lost.sum_ns, blocked_since(&before).stolen_ns);
	harness_free(&h);
	unlink(path);
}

static void *ends_by_exit(void *arg)
{
	(void)arg;
	harness_spin(20 * MS);
	pthread_exit(NULL);
}

static void *ends_by_cancel(void *arg)
{
	(void)arg;
	harness_spin(20 * MS);
	while (1)
		pause();
	return NULL;
}

static void *ends_by_return(void *arg)
{
	read_all(arg);
	harness_spin(20 * MS);
	return NULL;
}

static pthread_key_t late;

/* What a library does after the shim's end of its thread. */
static void speaks_late(void *arg)
{
	read_all(arg);
	harness_spin(20 * MS);
}

static void *ends_late(void *arg)
{
	harness_spin(20 * MS);
	assert_int_equal(pthread_setspecific(late, arg), 0);
	return NULL;
}

/* Threads without a task end in four ways; the process's numbers are the sum of the threads'. */
static void what_threads_did_adds_up_to_the_process(void **state)
{
	const char *path = harness_file("sum", SIZE);
	size_t pages = harness_make_cold(path);
	struct crema_snapshot *s = &crema_shm->snapshot;
	uint64_t unattributed = crema_shm->totals.unattributed.count[CREMA_C_read_bytes];
	uint64_t in;
	pthread_t threads[4];

	(void)state;
	shim_snapshot();
	in = s->process_inblock;
	assert_int_equal(pthread_key_create(&late, speaks_late), 0);
	assert_int_equal(pthread_create(&threads[0], NULL, ends_by_exit, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, ends_by_cancel, NULL), 0);
	assert_int_equal(pthread_create(&threads[2], NULL, ends_by_return, (void *)(uintptr_t)path),
			 0);
	assert_int_equal(pthread_create(&threads[3], NULL, ends_late, (void *)(uintptr_t)path), 0);
	usleep(200000);
	pthread_cancel(threads[1]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pthread_key_delete(late);
	shim_snapshot();
	assert_true(s->flags & 1);
	assert_false(s->flags & 2);
	/* the file's pages, and possibly some of libgcc_s, which cancellation loads */
	assert_true((s->process_inblock - in) * 512 >= pages);
	assert_true((s->process_inblock - in) * 512 < pages + (1 << 20));
	assert_int_equal(s->process_inblock, s->seen_inblock);
	assert_int_equal(s->process_oublock, s->seen_oublock);
	print_message("cpu: process %.3f ms, threads %.3f ms\n", (double)s->process_cpu_ns / 1e6,
		      (double)s->seen_cpu_ns / 1e6);
	/* the kernel includes a thread's last microseconds, after its final report */
	assert_true(s->process_cpu_ns >= s->seen_cpu_ns);
	assert_true(s->process_cpu_ns - s->seen_cpu_ns < 3 * MS);
	assert_int_equal(crema_shm->totals.unattributed.count[CREMA_C_read_bytes] - unattributed,
			 2 * SIZE);
	unlink(path);
}

static void *short_life(void *arg)
{
	(void)arg;
	return NULL;
}

static void blocks_of_ended_threads_are_used_again(void **state)
{
	uint64_t refused = crema_shm->totals.threads_refused;
	pthread_t thread;

	(void)state;
	for (unsigned i = 0; i < 2 * CREMA_SHM_THREADS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, short_life, NULL), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(crema_shm->totals.threads_refused, refused);
}

/* As for a thread that existed before the process was armed: its block is waiting for it. */
static void a_thread_finds_its_block_again(void **state)
{
	struct crema_thread *block = thread_self();

	(void)state;
	assert_non_null(block);
	thread_block = NULL;
	assert_ptr_equal(thread_self(), block);
}

/* Read calls so far, according to the kernel: of the whole process, or of the calling thread. */
static uint64_t syscr(const char *path)
{
	char buf[512];
	int fd = sys_open(path, O_RDONLY, 0);
	long n = sys_read(fd, buf, sizeof(buf) - 1);

	sys_close(fd);
	assert_true(n > 0);
	buf[n] = 0;
	return strtoull(strstr(buf, "syscr: ") + 7, NULL, 10);
}

static void *one_read(void *task)
{
	int fd = open("/dev/zero", O_RDONLY);
	char byte;

	if (shim_armed()) {
		task_ref(*(uint32_t *)task);
		thread_inherit(*(uint32_t *)task);
	}
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
	return NULL;
}

/* Read calls of the task's threads, one after the other: their own and those of measuring. */
static uint64_t reads_of_threads(int n, void *(*run)(void *), struct harness_task *h)
{
	uint64_t process = syscr("/proc/self/io"), own = syscr("/proc/thread-self/io");
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		assert_int_equal(pthread_create(&thread, NULL, run, &h->owner), 0);
		pthread_join(thread, NULL);
	}
	own = syscr("/proc/thread-self/io") - own;
	return syscr("/proc/self/io") - process - own;
}

/* The first read of a thread's run queue delay costs more than the thread. */
static void a_short_thread_is_not_looked_at(void **state)
{
	enum { THREADS = 200 };
	struct harness_task h = harness_begin();
	uint64_t reads;

	(void)state;
	reads = reads_of_threads(THREADS, one_read, &h);
	harness_end(&h);
	assert_int_equal(task_slot(h.owner)->own.count[CREMA_C_other_read_calls], THREADS);
	/* on a busy machine some of them lose the core, and these are measured */
	assert_in_range(reads, THREADS, THREADS + THREADS / 2);
	harness_free(&h);
}

static double time_of_threads(int n, struct harness_task *h)
{
	uint64_t from = harness_now_ns();
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		assert_int_equal(pthread_create(&thread, NULL, one_read, &h->owner), 0);
		pthread_join(thread, NULL);
	}
	return (double)(harness_now_ns() - from);
}

/* The same in a forked child, where nothing is measured. */
static double time_unmeasured(int n, struct harness_task *h)
{
	double ns = 0;
	int to[2], status;
	pid_t child;

	assert_int_equal(pipe(to), 0);
	child = fork();
	if (!child) {
		ns = time_of_threads(n, h);
		_exit(write(to[1], &ns, sizeof(ns)) != sizeof(ns));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(to[0], &ns, sizeof(ns)), sizeof(ns));
	close(to[0]);
	close(to[1]);
	return ns;
}

/* 1.2 times as much as an unmeasured thread, 1.7 times with a read of the delay; uses the minimum
 * of many times, which a busy machine does not change. */
static void a_short_thread_costs_little(void **state)
{
	enum { THREADS = 20, ROUNDS = 150 };
	struct harness_task h = harness_begin();
	double with = 1e12, without = 1e12, ns;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		ns = time_of_threads(THREADS, &h);
		with = ns < with ? ns : with;
		ns = time_unmeasured(THREADS, &h);
		without = ns < without ? ns : without;
	}
	harness_end(&h);
	print_message("%.1f us a thread, unmeasured %.1f us\n", with / THREADS / 1e3,
		      without / THREADS / 1e3);
	assert_true(with < 1.4 * without);
	harness_free(&h);
}

/* Waits for less than new threads are exempt from. */
static void *one_wait(void *task)
{
	struct timespec t = {0, 1};

	prctl(PR_SET_TIMERSLACK, 1);
	task_ref(*(uint32_t *)task);
	thread_inherit(*(uint32_t *)task);
	nanosleep(&t, NULL);
	return NULL;
}

static void a_short_wait_of_a_short_thread_is_not_looked_at(void **state)
{
	enum { THREADS = 300 };
	struct harness_task h = harness_begin();
	uint64_t reads;

	(void)state;
	reads = reads_of_threads(THREADS, one_wait, &h);
	harness_end(&h);
	print_message("%d threads: %d looks\n", THREADS, (int)(reads));
	/* on a busy machine some of them lose the core */
	assert_in_range(reads, 0, THREADS / 2);
	harness_free(&h);
}

static volatile int stop_spinning;

static void *spinner(void *unused)
{
	(void)unused;
	harness_pin(0);
	while (!stop_spinning)
		;
	return NULL;
}

static void *starved(void *unused)
{
	struct harness_task h;
	struct crema_task *t;
	uint64_t delay, outer;

	(void)unused;
	harness_pin(0);
	outer = run_delay_ns();
	h = harness_begin();
	delay = run_delay_ns();
	harness_spin(50 * MS);
	delay = run_delay_ns() - delay;
	t = harness_end(&h);
	outer = run_delay_ns() - outer;
	/* the time in clone(), and what may be missing without a read */
	assert_true(t->own.time[CREMA_T_runqueue] + MS / 2 > delay);
	assert_true(t->own.time[CREMA_T_runqueue] <= outer);
	assert_true(delay > 20 * MS);
	harness_free(&h);
	return NULL;
}

/* The delay before a thread's first instruction is not part of what it does afterwards. */
static void *born_late(void *seen)
{
	uint64_t before = run_delay_ns(), outer = before;
	struct harness_task h = harness_begin();
	struct crema_task *t;

	harness_spin(10 * MS);
	t = harness_end(&h);
	outer = run_delay_ns() - outer;
	if (before > MS) {
		assert_true(t->own.time[CREMA_T_runqueue] <= outer + MS / 10);
		*(int *)seen += 1;
	}
	harness_free(&h);
	return NULL;
}

static void what_a_thread_waited_before_it_ran_is_not_its_own(void **state)
{
	enum { SPINNERS = 3, TRIES = 40 };
	pthread_t others[SPINNERS], thread;
	pthread_attr_t attr;
	cpu_set_t core;
	int seen = 0;

	(void)state;
	stop_spinning = 0;
	CPU_ZERO(&core);
	CPU_SET(0, &core);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(core), &core);
	for (int i = 0; i < SPINNERS; i++)
		assert_int_equal(pthread_create(&others[i], NULL, spinner, NULL), 0);
	for (int i = 0; i < TRIES && seen < 2; i++) {
		assert_int_equal(pthread_create(&thread, &attr, born_late, &seen), 0);
		pthread_join(thread, NULL);
	}
	stop_spinning = 1;
	for (int i = 0; i < SPINNERS; i++)
		pthread_join(others[i], NULL);
	pthread_attr_destroy(&attr);
	assert_int_equal(seen, 2);
}

static void a_new_thread_without_a_core_is_looked_at(void **state)
{
	pthread_t other, thread;

	(void)state;
	stop_spinning = 0;
	assert_int_equal(pthread_create(&other, NULL, spinner, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, starved, NULL), 0);
	pthread_join(thread, NULL);
	stop_spinning = 1;
	pthread_join(other, NULL);
}

static void *many_lives(void *unused)
{
	pthread_t thread;

	(void)unused;
	while (!stop_spinning)
		if (!pthread_create(&thread, NULL, short_life, NULL))
			pthread_join(thread, NULL);
	return NULL;
}

/* They all report their end themselves: no other thread may do it for them. */
static void a_thread_that_ends_in_a_snapshot_is_not_reaped(void **state)
{
	pthread_t thread;
	int reaped = 0;

	(void)state;
	stop_spinning = 0;
	assert_int_equal(pthread_create(&thread, NULL, many_lives, NULL), 0);
	for (uint64_t end = harness_now_ns() + 1000 * MS; harness_now_ns() < end;) {
		shim_snapshot();
		reaped += (crema_shm->snapshot.flags & 2) != 0;
	}
	stop_spinning = 1;
	pthread_join(thread, NULL);
	assert_int_equal(reaped, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cold_file_is_its_pages_and_a_warm_one_nothing),
		cmocka_unit_test(page_faults_of_a_map_are_charged),
		cmocka_unit_test(two_tasks_at_once_get_their_own_bytes),
		cmocka_unit_test(pool_threads_work_for_the_task),
		cmocka_unit_test(what_threads_did_adds_up_to_the_process),
		cmocka_unit_test(a_thread_finds_its_block_again),
		cmocka_unit_test(a_short_thread_is_not_looked_at),
		cmocka_unit_test(a_short_thread_costs_little),
		cmocka_unit_test(a_short_wait_of_a_short_thread_is_not_looked_at),
		cmocka_unit_test(a_new_thread_without_a_core_is_looked_at),
		cmocka_unit_test(what_a_thread_waited_before_it_ran_is_not_its_own),
		cmocka_unit_test(a_thread_that_ends_in_a_snapshot_is_not_reaped),
		cmocka_unit_test(blocks_of_ended_threads_are_used_again),
	};

	return cmocka_run_group_tests_name("shim threads", tests, harness_setup, NULL);
}
